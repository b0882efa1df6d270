"""Custom resources of any shape, reconciled one by one: each is copied, or refused with a reason."""

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from odd_objects import JUNK, paths, replaced

from syncer.api import ClusterError, Key, Obj, Refused, Resource, key_of
from syncer.testing import World
from syncer.testing.objects import host_copy, secret

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples" / "custom"
CERT_MANAGER, MONITORING = "cert-manager.io/v1", "monitoring.coreos.com/v1"
KINDS = {
    "certificates.cert-manager.io": Resource(CERT_MANAGER, "Certificate", "certificates"),
    "issuers.cert-manager.io": Resource(CERT_MANAGER, "Issuer", "issuers"),
    "clusterissuers.cert-manager.io": Resource(CERT_MANAGER, "ClusterIssuer", "clusterissuers", namespaced=False),
    "servicemonitors.monitoring.coreos.com": Resource(MONITORING, "ServiceMonitor", "servicemonitors"),
    "podmonitors.monitoring.coreos.com": Resource(MONITORING, "PodMonitor", "podmonitors"),
    "databases.example.com": Resource("example.com/v1", "Database", "databases", namespaced=False),
}
#: One of each type: what can't even be read never gets to a syncer, and one text is like the other.
TYPES = (
    "null",
    "true",
    "zero",
    "fraction",
    "empty",
    "slashes",
    "list",
    "map",
    "nulls",
    "null map",
    "maps",
    "lists",
    "deep",
)
REFERENCE = {"name": "x", "key": "k"}
#: An object of each kind that says all that its entry looks at.
WHOLE: dict[str, Obj] = {
    "certificates.cert-manager.io": {
        "secretName": "db-tls",
        "issuerRef": {"name": "ca", "kind": "Issuer", "group": "cert-manager.io"},
        "keystores": {"jks": {"passwordSecretRef": REFERENCE}, "pkcs12": {"passwordSecretRef": REFERENCE}},
    },
    "issuers.cert-manager.io": {
        "ca": {"secretName": "x"},
        "vault": {"server": "a", "path": "b", "auth": {"tokenSecretRef": REFERENCE}},
    },
    "servicemonitors.monitoring.coreos.com": {
        "selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
        },
        "endpoints": [
            {
                "basicAuth": {"username": REFERENCE, "password": REFERENCE},
                "tlsConfig": {"ca": {"secret": REFERENCE, "configMap": REFERENCE}, "caFile": "a"},
            }
        ],
    },
    "podmonitors.monitoring.coreos.com": {
        "selector": {"matchLabels": {"app": "web"}},
        "podMetricsEndpoints": [{"basicAuth": {"username": REFERENCE}}],
    },
    "databases.example.com": {"writeConnectionSecretToRef": {"name": "x", "namespace": "shop"}},
    "clusterissuers.cert-manager.io": {"ca": {"secretName": "x"}},
}


def worlds() -> World:
    """Everything that the examples configure."""
    custom: dict[str, Any] = {}
    for file in sorted(EXAMPLES.glob("*.yaml")):
        custom |= yaml.safe_load(file.read_text())["sync"]["custom"]
    return World(config={"sync": {"custom": custom}}, serves=KINDS.values()).given(
        virtual=[secret("x"), secret("db-tls")]
    )


def whole(kind: str) -> Obj:
    """Return an object with a status, as a user has made it."""
    resource = KINDS[kind]
    metadata = {"name": "odd", "uid": "u-1"} | ({"namespace": "shop"} if resource.namespaced else {})
    named = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return {
        **named,
        "spec": copy.deepcopy(WHOLE[kind]),
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def ask(world: World, kind: str, key: Key) -> None:
    """Decide and carry out as the flow does; a refusal, ours or an API server's, is an answer."""
    for syncer in (name for name in world.pair.controllers if name == kind or name.startswith(f"{kind}:")):
        with contextlib.suppress(Refused, ClusterError):
            world.apply(world.decide(syncer, key if syncer == kind else Key("shop", "db-tls")))


@pytest.mark.parametrize("side", ["virtual", "both"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_object_with_any_contents_is_copied_or_refused(kind: str, side: str) -> None:
    """One place after the other, with one odd thing after the other, in the original, and in the copy too."""
    obj, raised = whole(kind), []
    world = worlds()
    from_host = kind == "clusterissuers.cert-manager.io"
    for path in paths(obj):
        for name in TYPES:
            odd = replaced(obj, path, JUNK[name])
            parts = {part: value for part, value in odd.items() if part not in ("apiVersion", "kind", "metadata")}
            there = {**odd, "metadata": {**odd["metadata"], "labels": {"tenancy.x-k8s.io/super.public": "true"}}}
            host = there if from_host else host_copy(obj, **parts)
            try:
                world.given(virtual=[odd], host=[host] if side != "virtual" else [])
                ask(world, kind, key_of(obj))
            except RecursionError:
                assert name == "deep"  # the flow parks it
            except Exception as error:
                raised.append(f"{'.'.join(map(str, path))} = {name}: {error!r:.200}")
            world.gone(virtual=[odd], host=[host])
    assert raised == []
