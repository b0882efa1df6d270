"""What a controller asks of its reconciler, and what that answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from syncer.api.objects import Key


class Request(NamedTuple):
    """An object of a cluster, to be reconciled. The namespace of a cluster-scoped object is ``""``.

    ``uid`` is empty unless the watch attaches it (:meth:`Controller.watch_object`).
    """

    cluster: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> Key:
        """The namespace and name."""
        return Key(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.cluster}: {self.key}"


@dataclass(frozen=True, slots=True)
class Result:
    """When a request is to be reconciled again, though nothing has changed.

    ``requeue``: after a delay that grows with each time, as after an error. ``requeue_after``:
    after so many seconds; the request counts as successful. The latter wins.
    """

    requeue: bool = False
    requeue_after: float = 0.0


#: Brings a request in step with its object as it is now; None as the result is done.
#: An exception is logged, and the request is retried. One that isn't async runs in a thread.
Reconcile = Callable[[Request], Awaitable[Result | None] | Result | None]
