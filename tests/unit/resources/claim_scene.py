"""Claims and classes of the host for tests."""

from typing import Any

from syncer.api import Decision, Obj, dig
from syncer.resources.claims import ClaimSyncer
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build

NAME = ClaimSyncer.name
_SIZE = "spec.resources.requests.storage"


def claim(size: str = "1Gi", **spec: Any) -> Obj:
    """Return a claim of the tenant's."""
    return build(PERSISTENT_VOLUME_CLAIMS, "data", spec={"resources": {"requests": {"storage": size}}, **spec})


def original_in(world: World) -> Obj:
    """Return the claim as it is in the virtual cluster."""
    found = world.virtual("PersistentVolumeClaim", "shop/data")
    assert found
    return found


def copy_in(world: World) -> Obj:
    """Return its copy."""
    found = world.copy_of(NAME, "shop/data")
    assert found
    return found


def bound(world: World, request: str, capacity: str | None) -> None:
    """Let the host bind the claim to a volume, and bring that up."""
    world.settle(NAME, "shop/data")
    status: Obj = {"phase": "Bound", **({"capacity": {"storage": capacity}} if capacity else {})}
    spec = {"volumeName": "pv-1", "resources": {"requests": {"storage": request}}}
    world.given(host=[merged(copy_in(world), {"spec": spec, "status": status})])
    world.settle(NAME, "shop/data")


def asked(world: World, size: str) -> Decision:
    """Let the tenant ask for a size, carry the decision about it out, and return it."""
    world.given(virtual=[merged(original_in(world), {"spec": {"resources": {"requests": {"storage": size}}}})])
    decision = world.decide(NAME, "shop/data")
    world.apply(decision)
    return decision


def request_on_host(world: World) -> Any:
    """Return the size that the copy asks for."""
    return dig(copy_in(world), _SIZE)
