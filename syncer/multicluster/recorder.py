"""Events that controllers record about objects, each in the cluster of its object."""

import asyncio
from collections.abc import Callable
from functools import partial

from syncer.api.objects import Key, Obj, Resource
from syncer.clusters.client import Client
from syncer.observe.events import EventRecorder, EventType


class Recorder:
    """Records Events about the objects of a cluster, as controller-runtime's ``EventRecorder``
    does.

    Recording never waits and never fails: events are written in the background, and what can't be
    written is dropped. Equal ones are counted in a single Event. About an object are 25 at once and
    then one in 5 minutes, in a cluster 100 at once and then 10 a second for each component, and of
    those that wait, 1 MiB. It takes the right to create and patch ``events`` in the namespaces of
    the objects (``default`` for those of the cluster)::

        recorder = cluster.recorder("my-controller")
        recorder.event(pod, "Warning", "NoImage", "the image can't be pulled")
    """

    def __init__(self, component: str, cluster: str, client: Callable[[], Client]) -> None:
        self._loop = asyncio.get_running_loop()
        self._events = EventRecorder(
            _Current(client),
            cluster=cluster,
            component=component,
            clock=self._loop.time,
        )

    def event(
        self,
        obj: Obj,
        type: EventType,  # noqa: A002 — as in an Event
        reason: str,
        message: str,
    ) -> None:
        """Record an event about an object, on any thread.

        ``obj`` has ``apiVersion`` and ``kind``; only its identity is used. ``reason`` is a word in
        CamelCase, ``message`` a sentence for the object's owner, of which 1024 bytes are kept.

        Raises:
            ValueError: There is no such type.
        """
        if type not in ("Normal", "Warning"):
            raise ValueError(f"an Event is Normal or Warning, not {type}")
        resource = Resource(obj["apiVersion"], obj["kind"], "")
        record = partial(self._events.record, resource, obj, reason, message, level=type)
        if _running_loop() is self._loop:
            record()
        else:
            self._loop.call_soon_threadsafe(record)

    async def run(self) -> None:
        """Write what was recorded, until cancelled; the cluster does it."""
        await self._events.run()


class _Current:
    """Writes with the client that a cluster has at present."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        return await self._client().create(resource, obj)

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        return await self._client().patch(resource, key, patch)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
