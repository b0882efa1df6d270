"""A daemon as the examples of custom resources configure it, and what an operator on the host does."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from harness import CLUSTER, HOME, NAMESPACE, Daemon, Two, between

from syncer.api import Obj, uid_of
from syncer.config import Override, SyncerConfig, build, read
from syncer.plugins import installed
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import crd, secret

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

EXAMPLES = Path(__file__).parents[2] / "examples" / "custom"

CERTIFICATES, ISSUERS = "certificates.cert-manager.io", "issuers.cert-manager.io"
CLUSTER_ISSUERS = "clusterissuers.cert-manager.io"
MONITORS = "servicemonitors.monitoring.coreos.com"
DATABASES = "databases.example.com"
PUBLIC = {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}}
#: What cert-manager puts on the Secrets that it makes.
FAO = {"controller.cert-manager.io/fao": "true"}

#: Kinds whose name in the singular isn't the plural's beginning.
_KINDS = {
    CLUSTER_ISSUERS: "ClusterIssuer",
    MONITORS: "ServiceMonitor",
    "podmonitors.monitoring.coreos.com": "PodMonitor",
}


def definition(name: str, **parts: Any) -> Obj:
    """Return the CRD of a kind."""
    kind = _KINDS.get(name)
    names = {"spec": {"names": {"kind": kind, "listKind": f"{kind}List"}}} if kind else {}
    return merged(crd(name, **parts), names)


def define(two: Two, *names: str) -> None:
    """Let both sides serve namespaced kinds."""
    for server in (two.virtual, two.host):
        for name in names:
            server.put(definition(name))


def example(name: str, *, cluster: str = CLUSTER, **options: Any) -> SyncerConfig:
    """Return the configuration of an example, for the cluster and the namespace of the tests, with
    options by path.
    """
    document = read(str(EXAMPLES / f"{name}.yaml"))
    document.data["cluster"] = cluster
    document.data["host"]["namespace"] = HOME
    return build(document, INSTALLED, [Override(path, value, "test") for path, value in options.items()]).config


@contextlib.asynccontextmanager
async def running(two: Two, config: SyncerConfig, *, user: str = "admin") -> AsyncIterator[Daemon]:
    """Yield a daemon with a configuration."""
    async with between(two.host, [(config, two.virtual)], user=user) as daemon:
        yield daemon


def custom(resource: str, name: str, *, namespace: str = NAMESPACE, **parts: Any) -> Obj:
    """Return a custom object; one of a kind without namespaces has ``namespace=""``."""
    plural, _, group = resource.partition(".")
    version = "v1"
    kind = _KINDS.get(resource, plural.removesuffix("s").capitalize())
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return merged({"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata}, parts)


def certificate(name: str = "db", to: str = "db-tls", issuer: str = "ca", kind: str = "Issuer") -> Obj:
    """Return a Certificate of the shop."""
    spec = {"secretName": to, "dnsNames": ["db.example.org"], "issuerRef": {"name": issuer, "kind": kind}}
    return custom(CERTIFICATES, name, spec=spec)


def issue(two: Two, copy: Obj, **data: str) -> Obj:
    """Do as cert-manager does for a Certificate on the host: make its Secret, and say so."""
    made = secret(
        copy["spec"]["secretName"],
        {"tls.crt": "certificate", "tls.key": "key", **data},
        namespace=copy["metadata"]["namespace"],
        type="kubernetes.io/tls",
        metadata={"labels": FAO},
    )
    two.host.put(made)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z", "reason": "Ready"}
    two.host.put(merged(copy, {"status": {"conditions": [ready], "revision": 1}}))
    return made


def owned_by(owner: Obj) -> Obj:
    """Return the metadata of an object that belongs to another."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {"ownerReferences": [{**reference, "uid": uid_of(owner)}]}


def there(server: ApiServer, resource: str, key: str) -> Obj:
    """Return an object that must be there."""
    found = server.get(resource, key)
    assert found, f"there is no {resource} {key}"
    return found


def cert_manager(two: Two) -> None:
    """Let both sides serve what cert-manager brings."""
    define(two, CERTIFICATES, ISSUERS)
    for server in (two.virtual, two.host):
        server.put(definition(CLUSTER_ISSUERS, scope="Cluster"))
