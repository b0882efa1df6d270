"""Explain why a server's certificate is not trusted: which one, since when, from which file."""

import asyncio
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from syncer.clusters.certificates import client_context, first_certificate, proxy_context, validity
from syncer.clusters.dial import dial
from syncer.clusters.login import Login
from syncer.clusters.transport import ConnectionFailed, Endpoint

#: Timeout of the second connection to a server whose certificate is not trusted, in seconds.
LOOK_SECONDS = 5.0
# Codes of OpenSSL's x509_vfy.h.
_OUT_OF_DATE = frozenset({9, 10})
_OTHER_NAME = frozenset({62, 64})
_UNKNOWN_ISSUER = frozenset({2, 18, 19, 20, 21})


async def why_not_trusted(login: Login, error: ssl.SSLError) -> str:
    """Return a sentence for a failed TLS handshake."""
    address = login.endpoint.authority
    if not isinstance(error, ssl.SSLCertVerificationError):
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return f"no TLS connection to {address}: {reason}"

    if error.verify_code in _OUT_OF_DATE:
        return await _which_is_out_of_date(login)
    if error.verify_code in _OTHER_NAME:
        name = login.endpoint.server_name or login.endpoint.host
        hint = "Set tls-server-name to a name that it is for."
        return f"the certificate of {address} is not for {name}. {hint}"
    if error.verify_code in _UNKNOWN_ISSUER:
        ca = "an authority that this system trusts"
        if login.ca:
            ca = f"the certificate authority in {login.ca}"
        hint = "Set certificate-authority to the right one."
        return f"the certificate of {address} is not signed by {ca}. {hint}"
    return f"the certificate of {address} is not trusted: {error.verify_message}"


async def why_not_for(login: Login, host: str, port: int) -> str:
    """Return why clients that use another address of the server don't trust it; ``""`` if they do.

    The certificate at that address is checked. If the address can't be reached from here, the
    certificate at the login's own address must name it. ``""``, too, if neither is reached.
    """
    address = replace(login.endpoint, host=host, port=port, server_name="", proxy=None)
    for endpoint in (address, replace(login.endpoint, server_name=host)):
        try:
            await _shake_hands(endpoint, login)
        except ssl.SSLCertVerificationError as error:
            if error.verify_code in _OTHER_NAME:
                certificate = "the certificate of the virtual API server"
                return f"{certificate} doesn't name {host}, which pods use"
            server = f"the server at {address.authority}, which pods use,"
            return f"{server} is not trusted: {error.verify_message}"
        except (OSError, ConnectionFailed):  # a TimeoutError is an OSError
            continue
        return ""
    return ""


async def _shake_hands(endpoint: Endpoint, login: Login) -> None:
    """Make a TLS connection, over which nothing is sent.

    Raises:
        OSError: There is no connection; ``ssl.SSLError`` if the server is not trusted.
        ConnectionFailed: The proxy refuses.
    """
    ca = login.ca.read()
    look = _Look()
    proxy_tls = proxy_context(endpoint.proxy, ca=ca, insecure=login.insecure)
    async with asyncio.timeout(LOOK_SECONDS):
        await dial(look, endpoint, client_context(ca=ca, insecure=False), proxy_tls)
    look.transport.abort()


async def _which_is_out_of_date(login: Login) -> str:
    """Return the certificate that is out of date, the server's or the CA's, with its date."""
    address = login.endpoint.authority
    now = datetime.now(UTC)
    found = []
    if login.ca:
        problem = validity(first_certificate(login.ca.read())).wrong(now)
        if problem:
            found.append(f"the certificate authority in {login.ca} {problem}")
    try:
        problem = validity(await _peer_certificate(login)).wrong(now)
        if problem:
            found.append(f"the certificate of {address} {problem}")
    except (OSError, ValueError):
        pass
    if not found:
        return f"a certificate between {address} and its authority is out of date"
    return " and ".join(found)


async def _peer_certificate(login: Login) -> bytes:
    """Return the server's certificate in DER form.

    The certificate isn't verified, so nothing is sent over this connection.
    """
    endpoint = login.endpoint
    context = client_context(ca=None, insecure=True)
    look = _Look()
    proxy_tls = proxy_context(endpoint.proxy, ca=login.ca.read(), insecure=True)
    async with asyncio.timeout(LOOK_SECONDS):
        await dial(look, endpoint, context, proxy_tls)
    tls = look.transport.get_extra_info("ssl_object")
    look.transport.abort()
    return tls.getpeercert(binary_form=True) or b""


class _Look(asyncio.Protocol):
    """A connection that nothing is sent over."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
