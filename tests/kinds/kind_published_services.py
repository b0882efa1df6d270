"""Services under names on the host. Matrix, restarts and sieve have rows of their own for them."""

from typing import Any

from syncer.api import Obj, key_of
from syncer.resources.kinds import ENDPOINT_SLICES
from syncer.resources.published_services import PublishedServiceSyncer
from syncer.testing import strategies
from syncer.testing.laws import Scene, Trial
from syncer.testing.merge import merged
from syncer.testing.objects import NAMESPACE, build, host_copy
from syncer.testing.samples import Sample

#: The options with which the Services of the tests' namespace appear.
PUBLISHED: dict[str, Any] = {
    "enabled": True,
    "namespaces": ["infra"],
    "mappings": {"byName": {f"{NAMESPACE}/*": "infra/p-*"}},
}


def copy_of(virtual: Obj) -> Obj:
    """Return the copy of a Service on the host, with an address unless it is headless."""
    spec = dict(virtual.get("spec") or {})
    if spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        spec["clusterIP"] = "10.96.0.7"
    return host_copy(virtual, spec=spec)


def slice_of_copy(copy: Obj, *addresses: str) -> Obj:
    """Return the slice of a copy as the host's controller makes it, with the labels of the copy."""
    key = key_of(copy)
    labels = {**copy["metadata"]["labels"], "kubernetes.io/service-name": key.name}
    return build(
        ENDPOINT_SLICES,
        f"{key.name}-1",
        namespace=key.namespace,
        metadata={"labels": labels},
        addressType="IPv4",
        endpoints=[{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        ports=[{"name": "http", "port": 8080, "protocol": "TCP"}],
    )


def _copied(virtual: Obj) -> Scene:
    virtual = merged(virtual, {"metadata": {"namespace": NAMESPACE}})
    copy = copy_of(virtual)
    return Scene(key_of(virtual), (virtual,), (copy, slice_of_copy(copy, "10.1.0.1")))


def _unready(trial: Trial) -> None:
    for obj in trial.scene.host:
        if obj["kind"] == ENDPOINT_SLICES.kind:
            trial.world.given(host=[merged(obj, {"endpoints": []})])


def _without_copy(trial: Trial) -> None:
    trial.world.gone(host=trial.scene.host)


SAMPLE = Sample(
    syncer=PublishedServiceSyncer,
    objects=strategies.services().map(_copied),
    config={"sync": {"toHost": {"publishedServices": PUBLISHED}}},
    dropped=("spec",),
    events={"the copy isn't ready": _unready, "the copy is gone": _without_copy},
)
