"""The certificates of a virtual control plane in tests: a Service, the settings, and the Secrets after a run."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from cryptography import x509

from syncer.api import Obj
from syncer.pki.layout import PkiSettings
from syncer.pki.plan import SecretsPlan, plan

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
MEMBERS = ("api-control-plane-0", "api-control-plane-1", "api-control-plane-2")
WANTED = PkiSettings("shop", "api", "api-pki", "api-kubeconfig", "api-daemon", "api-etcd", MEMBERS)
AUTHORITIES = ("ca", "front-proxy-ca", "etcd-ca")


def service(*, uid: str = "1", ingress: Iterable[Mapping[str, str]] = (), **spec: Any) -> Obj:
    """Return the Service in front of the virtual API server."""
    ports = [{"name": "https", "port": 443, "targetPort": 6443}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "api", "namespace": "shop", "uid": uid},
        "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ports": ports, **spec},
        "status": {"loadBalancer": {"ingress": [dict(each) for each in ingress]}},
    }


def run(
    secrets: dict[str, Obj], *, now: datetime = NOW, of: Obj | None = None, wanted: PkiSettings = WANTED, **changed: Any
) -> SecretsPlan:
    """Plan, and store what is planned, as an API server does."""
    made = plan(replace(wanted, **changed), service() if of is None else of, secrets, now)
    for step in made.steps:
        if step.write is not None:
            metadata = {**step.write["metadata"], "resourceVersion": str(len(secrets))}
            secrets[metadata["name"]] = {**step.write, "metadata": metadata}
    return made


def writes(made: SecretsPlan) -> list[str]:
    """Return the names of the Secrets that a plan writes."""
    return [step.write["metadata"]["name"] for step in made.steps if step.write is not None]


def actions(made: SecretsPlan, *kinds: str) -> dict[str, str]:
    """Return, by ``SECRET/FILE``, why the files were made or renewed, of which these became."""
    outcomes = [each for step in made.steps for each in step.outcomes]
    return {f"{each.secret}/{each.file}": each.why for each in outcomes if each.action in kinds}


def files(secret: Obj) -> dict[str, bytes]:
    """Return the files of a Secret."""
    return {name: base64.b64decode(content) for name, content in secret["data"].items()}


def put(secret: Obj, name: str, content: bytes | None) -> None:
    """Replace a file in a Secret; None removes it."""
    secret["data"] = {**secret["data"], name: base64.b64encode(content or b"").decode()}
    if content is None:
        del secret["data"][name]


def certificate(secret: Obj, name: str) -> x509.Certificate:
    """Return a certificate in a Secret."""
    return x509.load_pem_x509_certificate(files(secret)[name])
