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

from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Key, Obj
from syncer.clusters.certificates import first_certificate, load_client_certificate, validity
from syncer.clusters.client import SideClient
from syncer.resources.kinds import CERTIFICATE_REQUESTS, CONFIG_MAPS

SIGNER = "kubernetes.io/kubelet-serving"
#: Where an API server publishes the CA of its clients.
CLIENT_CA = Key("kube-system", "extension-apiserver-authentication")
#: Seconds between two checks whether a request is signed.
LOOK_SECONDS = 0.5
#: Seconds in which a request must be signed.
SIGNING_SECONDS = 20.0
#: The name in the certificate, as the signer requires it; all nodes share it.
COMMON_NAME = "system:node:vsyncer"
ORGANIZATION = "system:nodes"
#: Days of validity of a self-signed certificate.
OWN_DAYS = 365
#: A certificate is renewed after this part of its life.
RENEW_AFTER = 0.7


class NotSigned(Exception):
    """The virtual cluster signs no certificate; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A serving certificate with its key, and the times of its renewal and its end.

    ``certificate`` is PEM with the chain, ``key`` is PEM.
    """

    certificate: bytes
    key: bytes
    renew_at: datetime
    ends_at: datetime
    #: True if it is signed by an authority that clients may trust.
    is_signed: bool = True

    @classmethod
    def of(cls, certificate: bytes, key: bytes) -> "Serving":
        """Return the certificate, to be renewed some time before its end.

        Raises:
            ValueError: ``certificate`` is no certificate.
        """
        begins, ends = validity(first_certificate(certificate))
        return cls(certificate, key, begins + (ends - begins) * RENEW_AFTER, ends)


def from_files(certificate: Path, key: Path) -> Serving:
    """Return a certificate from files.

    Raises:
        OSError: A file can't be read.
        ValueError: The first file is no certificate.
    """
    return Serving.of(certificate.read_bytes(), key.read_bytes())


def self_signed(addresses: Sequence[str]) -> Serving:
    """Return a self-signed certificate, which no client can verify."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    certificate = (
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
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return replace(Serving.of(pem, _pem(key)), is_signed=False)


async def signed(virtual: SideClient, addresses: Sequence[str]) -> Serving:
    """Request a certificate from the virtual cluster, approve the request, and return the result.

    Raises:
        NotSigned: The virtual cluster didn't sign the request.
        Unreachable: The virtual cluster doesn't answer.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject())
        .add_extension(_names(addresses), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = request.public_bytes(serialization.Encoding.PEM)
    obj: Obj = {
        "apiVersion": CERTIFICATE_REQUESTS.api_version,
        "kind": CERTIFICATE_REQUESTS.kind,
        "metadata": {"generateName": "vsyncer-kubelet-"},
        "spec": {
            "request": base64.b64encode(pem).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "server auth"],
        },
    }
    try:
        created = await virtual.create(CERTIFICATE_REQUESTS, obj)
        certificate = await _issued(virtual, created)
        return Serving.of(certificate, _pem(key))
    except (NotFound, ValueError) as error:
        raise NotSigned(f"the certificate request can't be used: {error}") from error


async def _issued(virtual: SideClient, request: Obj) -> bytes:
    """Approve a request, wait for its certificate, and delete the request."""
    name = Key("", request["metadata"]["name"])
    approved = {
        "type": "Approved",
        "status": "True",
        "reason": "Vsyncer",
        "message": "the daemon's own kubelet server",
    }
    try:
        await virtual.replace(
            CERTIFICATE_REQUESTS,
            {**request, "status": {"conditions": [approved]}},
            subresource="approval",
        )
        async with asyncio.timeout(SIGNING_SECONDS):
            while True:
                current = await virtual.get(CERTIFICATE_REQUESTS, name)
                status = current.get("status") or {}
                if status.get("certificate"):
                    return base64.b64decode(status["certificate"])

                for condition in status.get("conditions") or ():
                    if condition["type"] in ("Denied", "Failed"):
                        message = condition.get("message", condition["type"])
                        raise NotSigned(f"the signer {SIGNER} says: {message}")
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise NotSigned(
            f"nothing signs requests to {SIGNER}: run the virtual cluster's controller manager with"
            " --cluster-signing-cert-file and --cluster-signing-key-file, or set"
            " kubelet.certificate and kubelet.key",
        ) from None
    finally:
        with suppress(ClusterError):  # the virtual cluster deletes it after some hours
            await virtual.delete(CERTIFICATE_REQUESTS, name)


async def authentication(virtual: SideClient) -> Mapping[str, str]:
    """Return the settings by which the virtual API server trusts clients and front proxies.

    They are the ``data`` of the ConfigMap that it publishes; empty if there is none.

    Raises:
        ClusterError: The ConfigMap can't be read.
    """
    try:
        return (await virtual.get(CONFIG_MAPS, CLIENT_CA)).get("data") or {}
    except NotFound:
        return {}


async def client_ca(virtual: SideClient) -> bytes:
    """Return the CA of the virtual cluster's clients, PEM; empty if there is none.

    Raises:
        ClusterError: The CA can't be read.
    """
    return (await authentication(virtual)).get("client-ca-file", "").encode()


def context(serving: Serving, ca: bytes) -> ssl.SSLContext:
    """Return the TLS context of the server.

    A client certificate is optional, as a client may have a token instead.

    Raises:
        ssl.SSLError: The certificate, its key or the CA can't be used.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_client_certificate(tls, certificate=serving.certificate, key=serving.key)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_alpn_protocols(["http/1.1"])
    tls.num_tickets = 0
    tls.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    if ca:
        tls.load_verify_locations(cadata=ca.decode("ascii", "replace"))
        tls.verify_mode = ssl.CERT_OPTIONAL
    return tls


def _subject() -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION)
    common_name = x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME)
    return x509.Name([organization, common_name])


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
