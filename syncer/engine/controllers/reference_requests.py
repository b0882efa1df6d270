"""The requests that a change of the references concerns."""

from collections.abc import Iterable, Mapping

from syncer.api.objects import Key, Resource
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.workqueue.queue import Queue


class ReferenceRequests:
    """Queues what a reference that begins or ends concerns, for controllers that are ready."""

    def __init__(self, controllers: Mapping[str, BoundSyncer], queue: Queue) -> None:
        """Create it for the controllers of a virtual cluster, by the names of their syncers; later ones may join."""
        self._controllers = controllers
        self._queue = queue

    def may_be_used(self, resource: Resource, keys: Iterable[Key]) -> None:
        """Notify the syncers of objects that a reference to them began or ended."""
        users = [
            controller
            for controller in self._controllers.values()
            if controller.ready and controller.syncer.when_used and controller.syncer.resource == resource
        ]
        if not users:
            return
        for key in keys:
            for controller in users:
                self._queue.add(controller.request(key))

    def ask(self, syncer: str, key: Key) -> None:
        """Queue a key of a syncer."""
        controller = self._controllers.get(syncer)
        if controller and controller.ready and controller.direction.syncs:
            self._queue.add(controller.request(key))
