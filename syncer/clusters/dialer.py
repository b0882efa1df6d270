"""Connections to an API server with our credentials, for requests and other protocols."""

import asyncio
import ssl
from collections.abc import Iterable
from typing import TypeVar

from syncer.clusters.credentials import Access, Credentials
from syncer.clusters.dial import dial
from syncer.clusters.transport import USER_AGENT, ConnectionFailed, DeadlineExceeded, Endpoint

C = TypeVar("C", bound=asyncio.BaseProtocol)


def _is_safe(text: str) -> bool:
    """Return True for a text without line breaks and other control characters, in ASCII."""
    return text.isprintable() and text.isascii()


class Dialer:
    """Opens connections to an API server, and writes the heads of requests."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Credentials,
        *,
        user_agent: str = USER_AGENT,
    ) -> None:
        self.endpoint = endpoint
        self.user_agent = user_agent
        #: The text before each path: a proxy without a tunnel gets whole URLs.
        self.prefix = endpoint.url if endpoint.proxy and not endpoint.tls else endpoint.prefix
        self.credentials = credentials

    async def connect(self, protocol: C, access: Access, deadline: float) -> C:
        """Connect a protocol, until ``deadline`` on the loop's clock.

        Raises:
            ConnectionFailed: There is no connection; the message names the address.
        """
        endpoint = self.endpoint
        try:
            async with asyncio.timeout_at(deadline):
                await dial(protocol, endpoint, access.tls, access.proxy_tls)
        except ConnectionFailed:
            raise
        except TimeoutError:
            through = f" through {endpoint.proxy}" if endpoint.proxy else ""
            raise DeadlineExceeded(
                f"no connection to {endpoint.authority}{through} in time",
            ) from None
        except ssl.SSLError as error:
            raise ConnectionFailed(await self.credentials.explain(error)) from error
        except OSError as error:
            raise ConnectionFailed(f"no connection to {endpoint.authority}: {error}") from error
        return protocol

    async def open(
        self,
        protocol: C,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        deadline: float,
        *,
        version: str = "1.1",
    ) -> tuple[C, bytes]:
        """Connect a protocol that reads a whole response by itself.

        Return it, with the head to send.

        ``path`` includes the query. Each connection is for one request. In ``version`` 1.0 of HTTP
        a body ends with its connection.

        Raises:
            ConnectionFailed: There are no credentials, or no connection.
            ValueError: The head can't be written in ASCII, or has a line break in it.
        """
        access = await self.credentials.access(deadline)
        lines = [f"{name}: {value}" for name, value in headers]
        if " " in path or not all(_is_safe(text) for text in (path, *lines)):
            raise ValueError("not the head of a request")
        head = f"{method} {self.prefix}{path} HTTP/{version}\r\n{self.fixed_head(access)}"
        data = "".join((head, *(f"{line}\r\n" for line in lines), "\r\n")).encode("latin-1")
        return await self.connect(protocol, access, deadline), data

    async def refused(self) -> bool:
        """Handle a 401. Return True if a second attempt makes sense."""
        return await self.credentials.refused(await self.credentials.access())

    def fixed_head(self, access: Access) -> str:
        """Return the header lines that all requests with an access share."""
        lines = [
            ("Host", self.endpoint.authority),
            ("User-Agent", self.user_agent),
            *access.headers,
        ]
        proxy = self.endpoint.proxy
        if proxy is not None and proxy.authorization and not self.endpoint.tls:
            lines.append(("Proxy-Authorization", proxy.authorization))
        return "".join(f"{name}: {value}\r\n" for name, value in lines)
