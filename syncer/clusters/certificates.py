"""Read certificates: their validity, and SSL contexts from files or inline data."""

import base64
import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from syncer.clusters.proxy import Proxy

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
# Tags of ASN.1.
_EXPLICIT_0 = 0xA0
_UTC_TIME = 0x17


class Validity(NamedTuple):
    """The time in which a certificate is valid."""

    begins: datetime
    ends: datetime

    def wrong(self, now: datetime) -> str:
        """Return ``"expired at …"`` or ``"is valid only from …"``; ``""`` if it is valid."""
        if now < self.begins:
            return f"is valid only from {self.begins:%Y-%m-%d %H:%M:%S}Z on"
        if now >= self.ends:
            return f"expired at {self.ends:%Y-%m-%d %H:%M:%S}Z"
        return ""


def first_certificate(pem: bytes) -> bytes:
    """Return the first certificate of a PEM text in DER form.

    Raises:
        ValueError: There is none.
    """
    found = _PEM.search(pem)
    if found is None:
        raise ValueError("no certificate in PEM form")
    return base64.b64decode(found[1])


def certificates_of(pem: bytes) -> frozenset[bytes]:
    """Return the certificates in a PEM text, whatever their order and line breaks."""
    return frozenset(b"".join(found.split()) for found in _PEM.findall(pem))


def validity(der: bytes) -> Validity:
    """Return the validity of a certificate in DER form.

    The standard library decodes only a peer's trusted certificate, but this is used when the peer
    is *not* trusted; so the two dates are read from the ASN.1 of RFC 5280 §4.1.

    Raises:
        ValueError: The data isn't a certificate.
    """
    try:
        [whole] = _elements(der)
        tbs = _elements(whole.content)[0]
        fields = _elements(tbs.content)
        # The version of the certificate, which is optional, precedes the other fields.
        dates = fields[4] if fields[0].tag == _EXPLICIT_0 else fields[3]
        begins, ends = _elements(dates.content)
        return Validity(_time(begins), _time(ends))
    except (IndexError, ValueError) as error:
        raise ValueError("not a certificate in DER form") from error


class _Element(NamedTuple):
    tag: int
    content: bytes


def _elements(data: bytes) -> list[_Element]:
    """Split DER data into its elements."""
    found = []
    at = 0
    while at < len(data):
        tag = data[at]
        length = data[at + 1]
        start = at + 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[start : start + size], "big")
            start = start + size
        at = start + length
        if at > len(data):
            raise ValueError("cut off")
        found.append(_Element(tag, data[start:at]))
    return found


def _time(element: _Element) -> datetime:
    text = element.content.decode("ascii")
    if element.tag == _UTC_TIME:
        century = "19" if text[:2] >= "50" else "20"
        text = century + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def client_context(*, ca: bytes | None, insecure: bool) -> ssl.SSLContext:
    """Return a context that trusts a CA bundle (PEM), or the system's CAs if there is none.

    Like Go's client, and unlike Python 3.13's default, it accepts an intermediate CA as the root of
    trust and certificates without key identifiers, as kubeadm and many others make them.

    Raises:
        ssl.SSLError: The CA bundle can't be read.
    """
    authorities = None
    if ca:
        authorities = ca.decode("ascii", "replace")
    context = ssl.create_default_context(cadata=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def proxy_context(
    proxy: Proxy | None,
    *,
    ca: bytes | None,
    insecure: bool,
) -> ssl.SSLContext | None:
    """Return a context for an https proxy: it trusts the system's CAs and the cluster's.

    None if there is no proxy, or it isn't https: to load the system's CAs takes some 40 ms.

    Raises:
        ssl.SSLError: The CA bundle (PEM) can't be read.
    """
    if proxy is None or not proxy.tls:
        return None
    context = client_context(ca=None, insecure=insecure)
    if ca:
        context.load_verify_locations(cadata=ca.decode("ascii", "replace"))
    return context


def load_client_certificate(context: ssl.SSLContext, *, certificate: bytes, key: bytes) -> None:
    """Load a client certificate (PEM, with its chain) into a context.

    Raises:
        ssl.SSLError: The key isn't the certificate's.
    """
    with _as_file(certificate + b"\n" + key) as path:
        context.load_cert_chain(path)


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Yield the path of a file with this content, in memory if possible.

    OpenSSL reads keys only from files.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(data)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            Path(path).unlink()
