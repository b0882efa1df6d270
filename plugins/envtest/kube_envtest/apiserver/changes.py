"""Every change of what a server stores, told to a test as it happens, with its author."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube_envtest.apiserver.storage import Event, Storage

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One change; nobody may change the objects in it.

    ``user`` is who sent the request, ``""`` for what the server's own controllers and ``ApiServer.put`` and ``delete``
    do. ``resource`` is as ``ApiServer.get`` takes it (``pods``, ``deployments.apps``). A new object has no ``before``,
    one that is gone no ``after``.
    """

    user: str
    resource: str
    before: Obj | None
    after: Obj | None

    @property
    def obj(self) -> Obj:
        """The object as it is now, or as it last was."""
        found = self.after or self.before
        assert found is not None
        return found


class Changes:
    """Tells followers of every change, with the user whose request is being answered."""

    def __init__(self, storage: Storage) -> None:
        self.user = ""
        self._storage = storage
        self._followers: list[Callable[[Change], None]] = []

    def follow(self, follower: Callable[[Change], None]) -> None:
        """Call ``follower`` on every change from now on."""
        if not self._followers:
            self._storage.listeners.append(self._tell)
        self._followers.append(follower)

    def _tell(self, table: str, event: Event) -> None:
        group, _, plural = table.partition("/")
        resource = f"{plural}.{group}" if group else plural
        before = event.previous.obj if event.previous else None
        change = Change(self.user, resource, before, None if event.type == "DELETED" else event.entry.obj)
        for follower in self._followers:
            follower(change)
