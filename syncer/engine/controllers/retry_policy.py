"""What becomes of a request that failed: the class of the error says it.

A passing trouble is tried again, later each time, and a conflict first of all at once from fresh state. What will not
pass by itself is parked: it is looked at again when something changes that its decision was made from, when the quota
has room or the right is there (:mod:`syncer.engine.controllers.wakeups`), and after a long time in any case.
"""

from dataclasses import dataclass
from enum import StrEnum

from syncer.api.errors import (
    Conflict,
    Denied,
    Exists,
    Forbidden,
    Invalid,
    Missing,
    NotConnected,
    QuotaExceeded,
    Refused,
    TooMany,
    Unauthorized,
    Unreachable,
)

#: Seconds after which a parked request is looked at again even if nothing has changed.
PARKED_SECONDS = 300.0
#: Seconds between attempts where credentials are not accepted.
UNAUTHORIZED_SECONDS = 30.0
#: How many failures in a row the tenant is told of; fewer may be a passing trouble.
FAILURES_TOLD = 5


class RetryAction(StrEnum):
    """What the queue does with a failed request."""

    AT_ONCE = "at_once"  # the store has been brought up to date: decide again
    BACK_OFF = "back_off"  # again, each time later
    PARK = "park"  # a change wakes it, or a slow timer
    LATER = "later"  # after the time that the error names
    RECONNECT = "reconnect"  # back off, and see whether the cluster is there at all


@dataclass(frozen=True, slots=True)
class Retry:
    """The fate of a request, the seconds that go with it, and whether the tenant should be told."""

    action: RetryAction
    seconds: float = 0.0
    event: str = ""


def after(error: Exception, failures: int) -> Retry:
    """Return what to do after an error that is the request's ``failures``-th in a row (0 for the first)."""
    match error:
        case Refused():
            return Retry(RetryAction.PARK, PARKED_SECONDS, error.reason)
        case QuotaExceeded():
            return Retry(RetryAction.PARK, PARKED_SECONDS, "QuotaExceeded")
        case Invalid() | Denied() | Forbidden():
            return Retry(RetryAction.PARK, PARKED_SECONDS, "SyncFailed")
        case Unauthorized():
            return Retry(RetryAction.LATER, UNAUTHORIZED_SECONDS, "SyncFailed")
        case Conflict() | Exists() | Missing() if failures == 0:
            return Retry(RetryAction.AT_ONCE)
        case TooMany():
            return Retry(RetryAction.LATER, error.retry_after)
        case NotConnected() | Unreachable(status=0):
            return Retry(RetryAction.RECONNECT)
        case _:
            return Retry(RetryAction.BACK_OFF, event="SyncFailed" if failures == FAILURES_TOLD else "")
