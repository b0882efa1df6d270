"""The shop: objects of it that must exist, many at once, and a daemon that has done all it can for them."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

from harness import NAMESPACE, Daemon, Two, host_path

from syncer.api import Obj
from syncer.clusters.transport import HttpRequest
from syncer.engine.controllers.request_status import RequestStatus
from syncer.testing import ApiServer
from syncer.testing.objects import configmap


def the_original(two: Two, plural: str, name: str) -> Obj:
    """Return a virtual object that must be there."""
    found = two.original(plural, name)
    assert found, f"there is no {plural} {name} in the shop"
    return found


def the_copy(two: Two, plural: str, name: str) -> Obj:
    """Return a host copy that must be there."""
    found = two.copy(plural, name)
    assert found, f"there is no copy of {plural} {name}"
    return found


def copy_name(name: str) -> str:
    """Return the name of an object's copy, without its namespace."""
    return host_path(name).partition("/")[2]


def many(two: Two, number: int, data: Mapping[str, str] | None = None) -> None:
    """Make so many ConfigMaps, ``c0`` and on."""
    for each in range(number):
        two.virtual.put(configmap(f"c{each}", data))


def forget(two: Two, number: int, since: int = 0) -> None:
    """Let them be gone; with no watch to show it, as from an API server whose etcd was restored from another day."""
    for each in range(since, number):
        two.virtual.delete("configmaps", f"{NAMESPACE}/c{each}")


@contextlib.asynccontextmanager
async def settled(daemon: AbstractAsyncContextManager[Daemon]) -> AsyncIterator[Daemon]:
    """Yield a daemon, once both sides are in step or nothing more will become of what isn't."""
    async with daemon as running:
        await running.settled()
        yield running


def status(daemon: Daemon, name: str, syncer: str = "configmaps") -> RequestStatus:
    """Return how the request about an object of the shop stands, which must not be in step."""
    found = daemon.status(name, syncer)
    assert found, f"{name} is in step"
    return found


async def edit_by(server: ApiServer, path: str, patch: Obj, *, by: str = "kubectl-edit") -> None:
    """Change an object as a named field manager."""
    body, kind = json.dumps(patch).encode(), "application/merge-patch+json"
    reply = await server.transport("somebody").send(
        HttpRequest(
            "PATCH", f"{path}?fieldManager={by}", body=body, content_type=kind, accept="application/json", timeout=10
        )
    )
    assert reply.status < 300, reply.body
