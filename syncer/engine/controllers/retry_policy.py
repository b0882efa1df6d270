"""The retry policy: the class of an error decides what happens to the request.

A temporary error is retried with increasing delays, a conflict first at once from fresh state. An
unexpected exception, of a syncer or because of a malformed object, is retried a few times. So is a
refusal by admission: the caches of an admission plugin may lack an object made just before, such as
the PriorityClass that a Pod names. An error that will not pass by itself parks the request, which
is retried when an object changes that its decision was made from, when the quota has room or the
right is granted (:mod:`syncer.engine.controllers.wakeups`), and after a long time in any case. A
request of an object that is too large is retried only when that object changes: each attempt costs
memory, also if the objects around it change all the time.
"""

from dataclasses import dataclass
from enum import StrEnum

from syncer.api.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Forbidden,
    Invalid,
    NotConnected,
    NotFound,
    QuotaExceeded,
    Refused,
    SyncerError,
    TooLarge,
    TooMany,
    Unauthorized,
    Unreachable,
)
from syncer.engine.stores.identity import IdentityLost

#: Seconds after which a parked request is retried even if nothing has changed.
PARKED_SECONDS = 300.0
#: The same, while the virtual cluster has lost its identity.
LOST_SECONDS = 20.0
#: No retry by a timer, nor by a change of another object.
NEVER = float("inf")
#: Number of consecutive failures after which the tenant gets an event; fewer may be temporary.
FAILURES_BEFORE_EVENT = 5


class RetryAction(StrEnum):
    """The queue's action for a failed request."""

    AT_ONCE = "at_once"  # decide again; the store has been updated
    BACK_OFF = "back_off"  # retry with increasing delays
    PARK = "park"  # wait for a change, or for a slow timer
    LATER = "later"  # retry after the delay that the error names
    RECONNECT = "reconnect"  # back off, and probe the cluster


@dataclass(frozen=True, slots=True)
class Retry:
    """The action after a failed request."""

    action: RetryAction
    #: The delay in seconds; with 0.0 it grows with each failure.
    seconds: float = 0.0
    #: The reason of the event for the tenant; ``""`` for none.
    event: str = ""


def retry_for(error: Exception, failures: int) -> Retry:
    """Return the action after an error.

    ``failures`` is the number of consecutive failures before it.
    """
    match error:
        case TooLarge():
            return Retry(RetryAction.PARK, NEVER, error.reason)
        case Invalid(status=413):
            return Retry(RetryAction.PARK, NEVER, "TooLarge")
        case IdentityLost():
            # No object of the request shows when the identity is restored.
            return Retry(RetryAction.PARK, LOST_SECONDS, error.reason)
        case Refused():
            return Retry(RetryAction.PARK, PARKED_SECONDS, error.reason)
        case QuotaExceeded():
            return Retry(RetryAction.PARK, PARKED_SECONDS, "QuotaExceeded")
        case Denied() if failures < FAILURES_BEFORE_EVENT:
            return Retry(RetryAction.PARK, event="SyncFailed")
        case Invalid() | Denied() | Forbidden():
            return Retry(RetryAction.PARK, PARKED_SECONDS, "SyncFailed")
        case Unauthorized():
            return Retry(RetryAction.RECONNECT, event="SyncFailed")
        case Conflict() | AlreadyExists() | NotFound() if failures == 0:
            return Retry(RetryAction.AT_ONCE)
        case TooMany():
            return Retry(RetryAction.LATER, error.retry_after)
        case NotConnected() | Unreachable(status=0):
            return Retry(RetryAction.RECONNECT)
        case SyncerError() if failures == FAILURES_BEFORE_EVENT:
            return Retry(RetryAction.BACK_OFF, event="SyncFailed")
        case SyncerError():
            return Retry(RetryAction.BACK_OFF)
        case _ if failures >= FAILURES_BEFORE_EVENT:
            # A decision depends on cached objects alone, so only a change helps.
            return Retry(RetryAction.PARK, event="SyncFailed")
        case _:
            return Retry(RetryAction.BACK_OFF)
