"""The requests that a change of the references concerns."""

from collections.abc import Iterable, Mapping

from syncer.api.objects import Key, Resource
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.workqueue.queue import Queue


class ReferenceRequests:
    """Queues the requests that a new or ended reference concerns, of controllers that are ready."""

    def __init__(self, controllers: Mapping[str, BoundSyncer], queue: Queue) -> None:
        """Queue requests of these controllers, by the names of their syncers.

        More may be added to the mapping later.
        """
        self._controllers = controllers
        self._queue = queue

    def may_be_used(self, resource: Resource, keys: Iterable[Key]) -> None:
        """Notify the syncers of objects that a reference to them began or ended."""
        users = []
        for controller in self._controllers.values():
            syncer = controller.syncer
            if controller.ready and syncer.when_used and syncer.resource == resource:
                users.append(controller)
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
