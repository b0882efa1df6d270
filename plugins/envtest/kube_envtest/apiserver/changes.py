"""Notify a test of every stored change, with its author."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube_envtest.apiserver.storage import Event, Storage

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A stored change. Its objects must not be modified.

    ``user`` sent the request; it is ``""`` for the server's own controllers and for
    ``ApiServer.put`` and ``delete``. ``resource`` is in the form of ``ApiServer.get`` (``pods``,
    ``deployments.apps``). A new object has no ``before``, a deleted one no ``after``.
    """

    user: str
    resource: str
    before: Obj | None
    after: Obj | None

    @property
    def obj(self) -> Obj:
        """The object after the change, or before its deletion."""
        found = self.after or self.before
        assert found is not None
        return found


class Changes:
    """Notifies followers of every change, with the user of the request that is being answered."""

    def __init__(self, storage: Storage) -> None:
        self.user = ""
        self._storage = storage
        self._followers: list[Callable[[Change], None]] = []

    def follow(self, follower: Callable[[Change], None]) -> None:
        """Call ``follower`` for every change from now on."""
        if not self._followers:
            self._storage.listeners.append(self._notify)
        self._followers.append(follower)

    def _notify(self, table: str, event: Event) -> None:
        group, _, plural = table.partition("/")
        resource = f"{plural}.{group}" if group else plural
        before = event.previous.obj if event.previous else None
        after = None
        if event.type != "DELETED":
            after = event.entry.obj
        change = Change(self.user, resource, before, after)
        for follower in self._followers:
            follower(change)
