"""What becomes of a request that failed: the class of the error says it."""

from dataclasses import dataclass
from enum import StrEnum

from syncer.api.errors import (
    Conflict,
    Exists,
    Forbidden,
    Invalid,
    Missing,
    NotConnected,
    Refused,
    TooMany,
    Unauthorized,
    Unreachable,
)

#: Seconds after which a parked request is looked at again even if nothing has changed.
PARKED_SECONDS = 300.0
#: Seconds between attempts where a right is missing.
FORBIDDEN_SECONDS = 30.0


class Fate(StrEnum):
    """What the queue does with a failed request."""

    AT_ONCE = "at_once"  # the store has been brought up to date: decide again
    BACK_OFF = "back_off"  # again, each time later
    PARK = "park"  # a change wakes it, or a slow timer
    LATER = "later"  # after the time that the error names
    RECONNECT = "reconnect"  # back off, and see whether the cluster is there at all


@dataclass(frozen=True, slots=True)
class Next:
    """The fate of a request, the seconds that go with it, and whether the tenant should be told."""

    fate: Fate
    seconds: float = 0.0
    event: str = ""


def after(error: Exception, failures: int) -> Next:
    """What to do after an error that is the request's ``failures``-th in a row (0 for the first)."""
    match error:
        case Refused():
            return Next(Fate.PARK, PARKED_SECONDS, error.reason)
        case Invalid():
            return Next(Fate.PARK, PARKED_SECONDS, "SyncFailed")
        case Forbidden() | Unauthorized():
            return Next(Fate.LATER, FORBIDDEN_SECONDS, "SyncFailed")
        case Conflict() | Exists() | Missing() if failures == 0:
            return Next(Fate.AT_ONCE)
        case TooMany():
            return Next(Fate.LATER, error.retry_after)
        case NotConnected() | Unreachable(status=0):
            return Next(Fate.RECONNECT)
        case _:
            return Next(Fate.BACK_OFF, event="SyncFailed" if failures == FAILURES_TOLD else "")


#: How many failures in a row the tenant is told of; fewer may be a passing trouble.
FAILURES_TOLD = 5
