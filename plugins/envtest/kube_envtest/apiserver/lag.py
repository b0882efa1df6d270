"""A server whose watch cache has fallen behind: some clients' lists and watches show an older state for a while."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(eq=False, slots=True)
class Lag:
    """For the clients that it matches, nothing after ``revision`` has happened yet. GETs are fresh all the same.

    ``user`` and ``resource`` (plural) are shell patterns. Make one with ``ApiServer.lag``.
    """

    revision: int
    user: str
    resource: str
    ended: Callable[["Lag"], None]

    def matches(self, resource: str, user: str) -> bool:
        """Whether a list or a watch of this resource by this user is meant."""
        return fnmatchcase(resource, self.resource) and fnmatchcase(user, self.user)

    def end(self) -> None:
        """Catch up: watches show what they held back, in order, and lists are as of now."""
        self.ended(self)


def shown(lags: list[Lag], resource: str, user: str) -> int | None:
    """The revision after which nothing is shown to this user; None where everything is."""
    return min((lag.revision for lag in lags if lag.matches(resource, user)), default=None)
