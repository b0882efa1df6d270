"""Certificates, keys, tokens and kubeconfigs of a control plane, as files in its folder."""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ADMIN = "admin"
MASTERS = "system:masters"
FRONT_PROXY = "front-proxy-client"
CLUSTER_NAMES = ("kubernetes.default.svc.cluster.local",)
SERVER_NAMES = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class User:
    """A user with a token."""

    name: str
    token: str
    groups: tuple[str, ...]


def write_certificates(folder: Path, service_range: str, node_address: str = "", names: Sequence[str] = ()) -> None:
    """Write `ca.crt/.key`, `server.crt/.key` and `admin.crt/.key`; the admin is in the group
    system:masters, and the server's has the further names. With a node address the server's has
    that, too, and `front-proxy.crt/.key` are those of the API server as a proxy of aggregated APIs.
    """
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.crt")
    authority.private_key_pem.write_to_path(folder / "ca.key")
    kubernetes_service = str(ipaddress.ip_network(service_range.partition(",")[0])[1])
    reached = [node_address, *CLUSTER_NAMES] if node_address else []
    _write_pair(folder, "server", authority.issue_cert(*SERVER_NAMES, kubernetes_service, *reached, *names))
    if node_address:
        _write_pair(folder, FRONT_PROXY, authority.issue_cert(FRONT_PROXY, common_name=FRONT_PROXY))
    _write_pair(folder, ADMIN, authority.issue_cert(ADMIN, common_name=ADMIN, organization_name=MASTERS))


def write_certificate(folder: Path, name: str, user: str, group: str | None, addresses: Sequence[str]) -> None:
    """Write `name.crt/.key` of the folder's CA: a client certificate of the user, and a serving
    certificate of the addresses.
    """
    authority = trustme.CA.from_pem((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    # Without any name, the empty extension for names makes Go refuse the certificate.
    certificate = authority.issue_cert(*(addresses or [name]), common_name=user, organization_name=group)
    _write_pair(folder, name, certificate)


def _write_pair(folder: Path, name: str, certificate: trustme.LeafCert) -> None:
    (folder / f"{name}.crt").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(folder / f"{name}.key")


def write_service_account_keys(folder: Path) -> None:
    """Write `sa.key` and `sa.pub`, which sign and verify tokens of ServiceAccounts."""
    key = ec.generate_private_key(ec.SECP256R1())
    (folder / "sa.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    public = key.public_key()
    (folder / "sa.pub").write_bytes(
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def write_tokens(folder: Path, users: Mapping[str, User]) -> None:
    """Write `tokens.csv` in the format of `--token-auth-file`: token, name, uid, groups."""
    lines = (f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"\n' for user in users.values())
    (folder / "tokens.csv").write_text("".join(lines))


def certificate_kubeconfig(folder: Path, url: str, name: str) -> str:
    """Return a kubeconfig with the client certificate `name.crt`."""
    credentials = {
        "client-certificate-data": _encoded(folder / f"{name}.crt"),
        "client-key-data": _encoded(folder / f"{name}.key"),
    }
    return _kubeconfig(folder, url, name, credentials)


def token_kubeconfig(folder: Path, url: str, user: User) -> str:
    """Return a kubeconfig with the user's token."""
    return _kubeconfig(folder, url, user.name, {"token": user.token})


def replace(path: Path, text: str) -> None:
    """Write a private file atomically: a concurrent reader sees the old or the new one, never a part."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).rename(path)


def _kubeconfig(folder: Path, url: str, user: str, credentials: dict[str, str]) -> str:
    """Return a kubeconfig with everything inline, so that the file can be copied.

    As JSON, which is YAML.
    """
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "cluster", "cluster": {"server": url, "certificate-authority-data": _encoded(folder / "ca.crt")}}
        ],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": user}}],
        "current-context": "cluster",
    }
    return json.dumps(document, indent=2) + "\n"


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
