"""The serving certificate of the nodes' port, and the CA of their clients; both are renewed while
the daemon runs.

Certificates come from files, or from the signer ``kubernetes.io/kubelet-serving`` of the virtual
cluster (kubernetes.io, "Certificates and Certificate Signing Requests").
"""

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from syncer.api.errors import ClusterError, Missing
from syncer.api.objects import Key, Obj
from syncer.clusters.certificates import first_certificate, load_client_certificate, validity
from syncer.clusters.client import SideClient
from syncer.resources.kinds import CERTIFICATE_REQUESTS, CONFIG_MAPS

SIGNER = "kubernetes.io/kubelet-serving"
#: Where an API server publishes the CA of its clients.
CLIENT_CA = Key("kube-system", "extension-apiserver-authentication")
#: Seconds between two looks whether a request is signed, and for all of them.
LOOK_SECONDS, SIGNING_SECONDS = 0.5, 20.0
#: The name in the certificate, as the signer wants it: all nodes share it.
COMMON_NAME, ORGANIZATION = "system:node:vsyncer", "system:nodes"
#: Days of validity of a certificate that nobody signed.
OWN_DAYS = 365
#: The part of its life after which a certificate is renewed.
RENEW_AFTER = 0.7


class NotSigned(Exception):
    """The virtual cluster signs no certificate; the message says why."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A serving certificate: PEM with its chain, its key, and the times of its renewal and its end."""

    certificate: bytes
    key: bytes
    renew_at: datetime
    ends_at: datetime
    #: True if somebody has signed it whom clients may trust.
    is_signed: bool = True

    @classmethod
    def of(cls, certificate: bytes, key: bytes) -> "Serving":
        """Return the certificate, to be renewed some time before it ends.

        Raises:
            ValueError: It is no certificate.
        """
        begins, ends = validity(first_certificate(certificate))
        return cls(certificate, key, begins + (ends - begins) * RENEW_AFTER, ends)


def from_files(certificate: Path, key: Path) -> Serving:
    """Return a certificate from files.

    Raises:
        OSError: A file can't be read.
        ValueError: It is no certificate.
    """
    return Serving.of(certificate.read_bytes(), key.read_bytes())


def self_signed(addresses: Sequence[str]) -> Serving:
    """Return a certificate that nobody can verify."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(_subject())
        .issuer_name(_subject())
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=OWN_DAYS))
        .add_extension(_names(addresses), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return replace(
        Serving.of(made.public_bytes(serialization.Encoding.PEM), _pem(key)),
        is_signed=False,
    )


async def signed(virtual: SideClient, addresses: Sequence[str]) -> Serving:
    """Return a certificate that the virtual cluster has signed: it is requested and approved here.

    Raises:
        NotSigned: It wasn't.
        Unreachable: The virtual cluster doesn't answer.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(_subject())
    pem = request.add_extension(_names(addresses), critical=False).sign(key, hashes.SHA256())
    obj: Obj = {
        "apiVersion": CERTIFICATE_REQUESTS.api_version,
        "kind": CERTIFICATE_REQUESTS.kind,
        "metadata": {"generateName": "vsyncer-kubelet-"},
        "spec": {
            "request": base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "server auth"],
        },
    }
    try:
        made = await virtual.create(CERTIFICATE_REQUESTS, obj)
        return Serving.of(await _issued(virtual, made), _pem(key))
    except (Missing, ValueError) as error:
        raise NotSigned(f"the certificate request can't be used: {error}") from error


async def _issued(virtual: SideClient, made: Obj) -> bytes:
    """Approve a request, wait for its certificate, and delete the request."""
    name = Key("", made["metadata"]["name"])
    approved = {
        "type": "Approved",
        "status": "True",
        "reason": "Vsyncer",
        "message": "the daemon's own kubelet server",
    }
    try:
        await virtual.replace(
            CERTIFICATE_REQUESTS,
            {**made, "status": {"conditions": [approved]}},
            subresource="approval",
        )
        async with asyncio.timeout(SIGNING_SECONDS):
            while True:
                status = (await virtual.get(CERTIFICATE_REQUESTS, name)).get("status") or {}
                if status.get("certificate"):
                    return base64.b64decode(status["certificate"])
                wrong = [each for each in status.get("conditions") or () if each["type"] in ("Denied", "Failed")]
                if wrong:
                    raise NotSigned(
                        f"the signer {SIGNER} says: {wrong[0].get('message', wrong[0]['type'])}",
                    )
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise NotSigned(
            f"nothing signs requests to {SIGNER}: run the virtual cluster's controller manager with "
            "--cluster-signing-cert-file and --cluster-signing-key-file, or set kubelet.certificate and kubelet.key",
        ) from None
    finally:
        with suppress(ClusterError):  # the virtual cluster removes it after some hours
            await virtual.delete(CERTIFICATE_REQUESTS, name)


async def authentication(virtual: SideClient) -> Mapping[str, str]:
    """Return the settings by which the virtual API server trusts clients and front proxies, as it
    publishes them; empty if it doesn't.

    Raises:
        ClusterError: They can't be read.
    """
    try:
        return (await virtual.get(CONFIG_MAPS, CLIENT_CA)).get("data") or {}
    except Missing:
        return {}


async def client_ca(virtual: SideClient) -> bytes:
    """Return the CA of the virtual cluster's clients, PEM; empty if it has none.

    Raises:
        ClusterError: It can't be read.
    """
    return (await authentication(virtual)).get("client-ca-file", "").encode()


def context(serving: Serving, ca: bytes) -> ssl.SSLContext:
    """Return the TLS context of the server. A client without a certificate may have a token.

    Raises:
        ssl.SSLError: The certificate, its key or the CA can't be used.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_client_certificate(made, certificate=serving.certificate, key=serving.key)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    made.num_tickets = 0
    made.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    if ca:
        made.load_verify_locations(cadata=ca.decode("ascii", "replace"))
        made.verify_mode = ssl.CERT_OPTIONAL
    return made


def _subject() -> x509.Name:
    names = [(NameOID.ORGANIZATION_NAME, ORGANIZATION), (NameOID.COMMON_NAME, COMMON_NAME)]
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in names])


def _names(addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_name(address) for address in addresses])


def _name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
