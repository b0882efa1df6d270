"""A stale watch cache: lists and watches of some clients show an older state for a while."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(eq=False, slots=True)
class Lag:
    """A lag: for matching clients, changes after ``revision`` are invisible, except to GETs.

    ``user`` and ``resource`` (plural) are shell patterns. Create it with ``ApiServer.lag``.
    """

    revision: int
    user: str
    resource: str
    ended: Callable[["Lag"], None]

    def matches(self, resource: str, user: str) -> bool:
        """Return True if it applies to a list or watch of this resource by this user."""
        return fnmatchcase(resource, self.resource) and fnmatchcase(user, self.user)

    def end(self) -> None:
        """End the lag: watches show the changes held back, in order, and lists are current."""
        self.ended(self)


def shown(lags: list[Lag], resource: str, user: str) -> int | None:
    """Return the revision after which this user sees nothing; None if there is no lag."""
    return min((lag.revision for lag in lags if lag.matches(resource, user)), default=None)
