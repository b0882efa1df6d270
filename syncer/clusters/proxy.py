"""Find the proxy for an API server, like Go's client: in the kubeconfig, else in the environment.

The rules of the environment are those of golang.org/x/net/http/httpproxy: ``HTTPS_PROXY`` for
servers with TLS, ``HTTP_PROXY`` for those without, in upper or lower case; never for this host
itself, nor for entries of ``NO_PROXY``: ``*``, names with all names below them, IP addresses and
ranges, names and addresses with a port.
"""

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

_PORTS = {"http": 80, "https": 443}

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, reached with or without TLS; ``source`` is its origin, for people.

    ``authorization`` is the value of the ``Proxy-Authorization`` header, ``""`` for none.
    """

    host: str
    port: int
    tls: bool = False
    authorization: str = field(default="", repr=False)
    source: str = ""

    def __str__(self) -> str:
        scheme = "https" if self.tls else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"the proxy {scheme}://{host}:{self.port} (from {self.source})"


def parse(url: str, *, source: str) -> Proxy:
    """Parse the URL of a proxy, with or without user and password.

    Raises:
        ValueError: ``url`` is not the URL of an http or https proxy; the message doesn't quote it,
            as it may contain a password.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise ValueError("not a URL of a proxy") from None
    if parts.scheme not in _PORTS:
        scheme = parts.scheme or "a URL without a scheme"
        raise ValueError(f"only http and https proxies are supported, not {scheme}")
    if not host:
        raise ValueError("a URL of a proxy without a host")
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
    return Proxy(host, port or _PORTS[parts.scheme], parts.scheme == "https", authorization, source)


def from_environment(
    host: str,
    port: int,
    *,
    tls: bool,
    environ: Mapping[str, str],
) -> Proxy | None:
    """Return the environment's proxy for an API server, None for a direct connection.

    Raises:
        ValueError: The environment names a proxy that can't be used; the message has the variable.
    """
    name = "HTTPS_PROXY" if tls else "HTTP_PROXY"
    source = name if environ.get(name) else name.lower()
    url = environ.get(source, "").strip()
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not url or _is_excepted(host, port, no_proxy):
        return None
    if "://" not in url:
        url = f"http://{url}"
    try:
        return parse(url, source=source)
    except ValueError as error:
        raise ValueError(f"{source} in the environment: {error}") from None


def _is_excepted(host: str, port: int, no_proxy: str) -> bool:
    """Return True if an address needs no proxy: it is in ``NO_PROXY``, or of this machine."""
    host = host.lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in no_proxy.split(","))
    return any(_covers(entry, host, address, port) for entry in entries if entry)


def _covers(entry: str, host: str, address: _Address | None, port: int) -> bool:
    """Return True if an entry of ``NO_PROXY`` matches an address."""
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _in_range(address, entry)
    name, wanted = _split_port(entry)
    if wanted not in ("", str(port)):
        return False
    listed = _address(name)
    if listed is not None:
        return listed == address
    # "*.example.com" and ".example.com" are the names below; "example.com" is that name, too.
    below = name.removeprefix("*") if name.startswith("*.") else name
    if below.startswith("."):
        return host.endswith(below)
    return host == below or host.endswith(f".{below}")


def _in_range(address: _Address, entry: str) -> bool:
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _split_port(entry: str) -> tuple[str, str]:
    """Split ``name:port``; an IPv6 address has a port only if it is in brackets."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _address(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
