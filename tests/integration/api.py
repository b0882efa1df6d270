"""A cluster as tests see it: one call, one request, over the daemon's own client on a thread of its own."""

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from kube_envtest import ControlPlane
from syncer.api import ClusterError, Key, NotFound, Obj, Resource, Side
from syncer.clusters import codec
from syncer.clusters.api_requests import PatchKind
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.resources import kinds
from syncer.resources.definitions.versions import custom_resource

T = TypeVar("T")

#: Seconds within which what happens by itself must have happened; plenty, so that a slow machine fails nothing.
PATIENCE = 120.0
#: Seconds between two looks at what is waited for, at first and later: each look takes CPU from the servers.
SHORTEST_PAUSE = 0.02
LONGEST_PAUSE = 0.2

#: Every resource that tests write, by kind; those of custom resources are added as they are defined.
RESOURCES: dict[str, Resource] = {
    resource.kind: resource for resource in vars(kinds).values() if isinstance(resource, Resource)
} | {
    "Lease": Resource("coordination.k8s.io/v1", "Lease", "leases"),
    "Deployment": Resource("apps/v1", "Deployment", "deployments"),
}


class Loop:
    """An event loop in a thread of its own, so that tests can be plain functions."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._begun: list[Future[Any]] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for what it gives."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE * 4)

    def start(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Begin to run a coroutine there, until `end`; an error of its own is shown at once."""
        begun = asyncio.run_coroutine_threadsafe(work, self._loop)
        begun.add_done_callback(_show)
        self._begun.append(begun)
        return begun

    def end(self, *begun: "Future[Any]") -> None:
        """Cancel what `start` has begun.

        Raises:
            Exception: One of them had ended before by this error.
        """
        for each in begun:
            self._begun.remove(each)
            each.cancel()
        for each in begun:
            if not each.cancelled():
                each.result(PATIENCE)

    def stop(self) -> None:
        """End what runs, and the thread."""
        try:
            self.end(*self._begun)
        finally:
            self.run(_cancel_all())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def _show(ended: "Future[Any]") -> None:
    """Print the error of what ended by itself into the output of the test that runs."""
    if not ended.cancelled() and (error := ended.exception()):
        traceback.print_exception(error)


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Api:
    """Reads and writes of one cluster as its administrator."""

    def __init__(self, loop: Loop, plane: ControlPlane, side: Side) -> None:
        self.loop, self.plane = loop, plane
        self.cluster: SideClient = loop.run(self._connect(plane, side))

    async def _connect(self, plane: ControlPlane, side: Side) -> SideClient:
        return connect(ConnectionSettings(str(plane.kubeconfig())), side=side, environ={})

    def close(self) -> None:
        """Close the connections."""
        self.loop.run(self.cluster.close())

    def create(self, obj: Obj) -> Obj:
        """POST."""
        return self.loop.run(self.cluster.create(RESOURCES[obj["kind"]], obj))

    def get(self, kind: str, key: Key) -> Obj | None:
        """GET; None where there is none."""
        try:
            return self.loop.run(self.cluster.get(RESOURCES[kind], key))
        except NotFound:
            return None

    def patch(self, kind: str, key: Key, patch: Obj, *, subresource: str = "", how: PatchKind = "merge") -> Obj:
        """PATCH."""
        return self.loop.run(self.cluster.patch(RESOURCES[kind], key, patch, kind=how, subresource=subresource))

    def delete(self, kind: str, key: Key, *, grace: int | None = None) -> None:
        """DELETE."""
        self.loop.run(self.cluster.delete(RESOURCES[kind], key, grace=grace))

    def list(self, kind: str, *, namespace: str = "", selector: str = "") -> "list[Obj]":
        """Return all objects of a kind."""
        return self.loop.run(self.cluster.list(RESOURCES[kind], namespace=namespace, selector=selector))

    def define(self, crd: Obj) -> Obj:
        """Make a CustomResourceDefinition; returns when its objects can be written."""
        made = self.create(crd)
        self.serves(crd)
        return made

    def serves(self, crd: Obj) -> None:
        """Wait until this cluster serves what a CustomResourceDefinition defines."""
        kind = learn(crd).kind
        eventually(lambda: self._serves(kind), f"{self.plane.name} serves {kind}")

    def _serves(self, kind: str) -> bool:
        try:
            self.list(kind)
        except ClusterError:
            return False
        return True

    def make_namespace(self, name: str) -> None:
        """Make a namespace and wait until pods can be made in it."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        if self.plane.controllers:
            eventually(lambda: self.get("ServiceAccount", Key(name, "default")), f"{name} has a ServiceAccount")


def learn(crd: Obj) -> Resource:
    """Return the resource of a CustomResourceDefinition in its storage version; tests can write its kind then."""
    resource = custom_resource(crd)
    RESOURCES[resource.kind] = resource
    return resource


class Sightings:
    """Every state that a watch has shown of a kind in a namespace."""

    def __init__(self, api: Api, kind: str, namespace: str) -> None:
        self._cluster, self._resource, self._namespace = api.cluster, RESOURCES[kind], namespace
        self.states: list[Obj] = []

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                async with self._cluster.watch(self._resource, namespace=self._namespace) as events:
                    async for batch in events:
                        self.states += [codec.decode(event.object) for event in batch if event.type != "BOOKMARK"]
            except ClusterError:
                await asyncio.sleep(0.1)


def eventually(look: Callable[[], T | None], expectation: str, *, seconds: float = PATIENCE) -> T:
    """Return the result of ``look`` as soon as it is true; fail with ``what`` and the last result otherwise."""
    deadline = time.monotonic() + seconds
    pause = SHORTEST_PAUSE
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds:g} s it is still not so that {expectation}: {found!r}")
        time.sleep(pause)
        pause = min(pause * 1.3, LONGEST_PAUSE)
    return found


def nothing_left(look: Callable[[], Sequence[object]], expectation: str, *, seconds: float = PATIENCE) -> None:
    """Return as soon as ``look`` gives nothing any more; AssertionError with the first of what is left in the end."""
    left: list[object] = []

    def none() -> bool:
        left[:] = look()
        return not left

    try:
        eventually(none, expectation, seconds=seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}; {len(left)} are left: {left[:8]}") from None
