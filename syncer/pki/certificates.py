"""Certificates with their keys: issued, read and checked. Nothing is fetched or stored here.

Lives, names of files, subjects and usages are kubeadm's (``cmd/kubeadm/app/phases/certs`` and
``cmd/kubeadm/app/util/pkiutil`` of Kubernetes), with ECDSA keys.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: The life of a certificate of a server or client.
LIFE = timedelta(days=365)
#: The life of the certificate of a CA.
AUTHORITY_LIFE = timedelta(days=3650)
#: Clocks of other machines may be late.
BACKDATE = timedelta(minutes=5)
#: A certificate is renewed when less than this part of its life is left.
LEFT = 1 / 3

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class Unusable(Exception):
    """A certificate or key can't be used; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The contents of a certificate of a server or client.

    ``names`` are DNS names and IP addresses. A client that no server looks up must have none: etcd
    compares those of a client with its address (``checkCertSAN``).
    """

    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()
    client: bool = True

    @property
    def subject(self) -> x509.Name:
        """The user, and the group if there is one."""
        return _subject(self.common_name, self.organization)

    @property
    def usages(self) -> list[x509.ObjectIdentifier]:
        """A certificate with names is a server's; it may be a client's besides."""
        found: list[x509.ObjectIdentifier] = []
        if self.names:
            found.append(ExtendedKeyUsageOID.SERVER_AUTH)
        if self.client:
            found.append(ExtendedKeyUsageOID.CLIENT_AUTH)
        return found


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: PrivateKey

    @property
    def begins(self) -> datetime:
        """The time from which it is valid."""
        return self.certificate.not_valid_before_utc

    @property
    def ends(self) -> datetime:
        """The time at which it ends."""
        return self.certificate.not_valid_after_utc

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as a file."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key as a file."""
        return key_pem(self.key)


def read_pair(certificate: bytes, key: bytes) -> KeyPair:
    """Return a certificate with its key from their files.

    Raises:
        Unusable: One can't be read, or they don't belong together.
    """
    try:
        found = x509.load_pem_x509_certificates(certificate)
    except ValueError as error:
        raise Unusable("the certificate can't be read") from error
    if len(found) != 1:
        raise Unusable(f"there are {len(found)} certificates instead of one")
    pair = KeyPair(found[0], read_key(key))
    try:
        belongs = pair.certificate.public_key() == pair.key.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Unusable("the certificate can't be read") from error
    if not belongs:
        raise Unusable("the key isn't that of the certificate")
    return pair


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def read_key(pem: bytes) -> PrivateKey:
    """Return a private key from its file.

    Raises:
        Unusable: It can't be read, is encrypted, or is neither ECDSA nor RSA.
    """
    try:
        found = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Unusable("the key can't be read") from error
    if not isinstance(found, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise Unusable("the key is neither ECDSA nor RSA")
    return found


def key_pem(key: PrivateKey) -> bytes:
    """Return the file of a private key, in the form of kubeadm's."""
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def public_pem(key: PrivateKey) -> bytes:
    """Return the file of the public half of a key."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def holds(file: bytes, public: bytes) -> bool:
    """Return True if a file of public keys holds this one."""
    return b"".join(public.split()) in b"".join(file.split())


def new_authority(name: str, now: datetime, key: PrivateKey | None = None) -> KeyPair:
    """Return a CA, with a new key unless there is one."""
    if key is None:
        key = new_key()
    public = key.public_key()
    subject = _subject(name)
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)

    builder = _builder(subject, public, now, now + AUTHORITY_LIFE).issuer_name(subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(authority=True), critical=True)
    builder = builder.add_extension(identifier, critical=False)
    return KeyPair(builder.sign(key, hashes.SHA256()), key)


def issue(leaf: Leaf, authority: KeyPair, now: datetime) -> KeyPair:
    """Return a new certificate with a new key. It ends no later than its CA."""
    key = new_key()
    ends = min(now + LIFE, authority.ends)
    issuer = authority.certificate.subject
    constraints = x509.BasicConstraints(ca=False, path_length=None)

    builder = _builder(leaf.subject, key.public_key(), now, ends).issuer_name(issuer)
    builder = builder.add_extension(constraints, critical=True)
    builder = builder.add_extension(_key_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(leaf.usages), critical=False)
    builder = builder.add_extension(_authority_identifier(authority), critical=False)
    if leaf.names:
        names = x509.SubjectAlternativeName([_name(name) for name in leaf.names])
        builder = builder.add_extension(names, critical=False)
    return KeyPair(builder.sign(authority.key, hashes.SHA256()), key)


def is_authority(pair: KeyPair) -> bool:
    """Return True if a certificate is that of a CA, which may sign certificates."""
    try:
        extensions = pair.certificate.extensions
        for each in extensions:
            if isinstance(each.value, x509.KeyUsage) and not each.value.key_cert_sign:
                return False
        return extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def fault(pair: KeyPair, leaf: Leaf, authority: KeyPair, now: datetime) -> str:
    """Return why a certificate is to be renewed; ``""`` if it can stay."""
    certificate = pair.certificate
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except (InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm):
        return "it was signed by another CA"

    try:
        lacking = [name for name in leaf.names if name not in _names(certificate)]
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        if certificate.subject != leaf.subject or set(usages) != set(leaf.usages):
            return "it was for another use"
    except (ValueError, x509.ExtensionNotFound):
        return "it was damaged"

    if lacking:
        return f"it lacked {', '.join(lacking)}"
    if pair.begins > now:
        return "it wasn't valid yet"
    if pair.ends - now < (pair.ends - pair.begins) * LEFT:
        return f"it would end on {day(pair.ends)}"
    return ""


def day(time: datetime) -> str:
    """Return the date of a time, such as ``2026-01-31``."""
    return f"{time:%Y-%m-%d}"


def _builder(
    subject: x509.Name,
    public: PublicKey,
    now: datetime,
    ends: datetime,
) -> x509.CertificateBuilder:
    """Return a certificate without its issuer and extensions."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(ends)
    )


def _subject(name: str, organization: str = "") -> x509.Name:
    attributes: list[x509.NameAttribute[str]] = []
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    return x509.Name(attributes)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    """Return the usages of a key.

    Unlike kubeadm's they leave out the enciphering of keys, which an ECDSA key can't do (RFC 8813).
    """
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_identifier(authority: KeyPair) -> x509.AuthorityKeyIdentifier:
    """Return the CA's own identifier, or that of its key if it has none."""
    extensions = authority.certificate.extensions
    try:
        own = extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names(certificate: x509.Certificate) -> Sequence[str]:
    """Return the DNS names and IP addresses of a certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names = found.get_values_for_type(x509.DNSName)
    addresses = found.get_values_for_type(x509.IPAddress)
    return [*names, *(str(address) for address in addresses)]
