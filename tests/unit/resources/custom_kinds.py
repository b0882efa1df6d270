"""Custom resources for tests, and worlds that serve them."""

from collections.abc import Mapping
from typing import Any

from syncer.api import Key, Obj, Resource
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, secret

CERTIFICATES = Resource("cert-manager.io/v1", "Certificate", "certificates")
ISSUERS = Resource("cert-manager.io/v1", "Issuer", "issuers")
CLUSTER_ISSUERS = Resource("cert-manager.io/v1", "ClusterIssuer", "clusterissuers", namespaced=False)
MONITORS = Resource("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")
ORDERS = Resource("acme.cert-manager.io/v1", "Order", "orders")
CLASSES = Resource("example.org/v1", "Class", "classes", namespaced=False)
#: Kinds without ``spec``.
TEMPLATES = Resource("example.test/v1", "Template", "templates")
PARAMETERS = Resource("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "volumesnapshotclasses", namespaced=False)

EVERY = (CERTIFICATES, ISSUERS, CLUSTER_ISSUERS, MONITORS, ORDERS, CLASSES, TEMPLATES, PARAMETERS)

CERTIFICATE, ISSUER, MONITOR, CLASS = map(str, (CERTIFICATES, ISSUERS, MONITORS, CLASSES))
SECRET = f"{CERTIFICATE}:secrets"
#: Where the Secret of the Certificate lies on the host.
HOST_KEY = "vc-ns/db-tls-x-shop-x-vc"

#: What cert-manager is like: the Secret is made by an operator on the host.
CERT_MANAGER: Mapping[str, Any] = {
    CERTIFICATE: {
        "references": {"spec.secretName": "Secret", "spec.issuerRef.name": ISSUER},
        "related": [{"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretName"}}],
    },
    ISSUER: {"references": {"spec.ca.secretName": "Secret"}},
}


def world_of(custom: Mapping[str, Any], **options: Any) -> World:
    """Return a world with these entries and all built-in syncers."""
    config = merged({"sync": {"custom": dict(custom)}}, options.pop("config", {}))
    return World(config=config, serves=EVERY, **options)


def certificate(name: str = "db", to: str = "db-tls", **parts: Any) -> Obj:
    """Return a Certificate of the shop."""
    spec = {"secretName": to, "dnsNames": ["db.example.org"], "issuerRef": {"name": "ca", "kind": "Issuer"}}
    return build(CERTIFICATES, name, **merged({"spec": spec}, parts))


def made(name: str = "db-tls-x-shop-x-vc", **parts: Any) -> Obj:
    """Return a Secret as cert-manager makes it on the host."""
    base = {"type": "kubernetes.io/tls", "metadata": {"annotations": {"cert-manager.io/certificate-name": "x"}}}
    return secret(name, {"tls.key": "k", "tls.crt": "c"}, namespace="vc-ns", **merged(base, parts))


def begun(**options: Any) -> World:
    """Return a world in which the Certificate is on the host."""
    world = world_of(options.pop("entries", CERT_MANAGER), **options).given(virtual=[certificate()])
    world.settle(CERTIFICATE, "shop/db")
    world.woken()
    return world


def asked(world: World) -> set[tuple[str, Key]]:
    """Return the syncers and keys that were queued since the last call."""
    return {(request.syncer, request.key) for request in world.woken()}
