"""The reason of an error: a code by its class, with its message."""

from functools import lru_cache

from syncer.api.errors import ClusterError, Refused
from syncer.api.reasons import (
    CODES,
    SYNCER_RAISED,
    UNEXPECTED_ANSWER,
    ReasonCode,
    RequestState,
    StateReason,
)
from syncer.remembered import REMEMBERED


def failure_reason(error: Exception, message: str) -> StateReason:
    """Return the reason of an error.

    Args:
        error: The error.
        message: Its text for the operator.
    """
    if isinstance(error, Refused):
        return refusal_code(error.reason)(message)
    if isinstance(error, ClusterError):
        for parent in type(error).__mro__:
            code = CODES.get(parent.__name__)
            if code is not None:
                return code(message)
        return UNEXPECTED_ANSWER(message)
    return SYNCER_RAISED(message)


@lru_cache(maxsize=REMEMBERED)
def refusal_code(word: str) -> ReasonCode:
    """Return the code of a refusal by the word of its Event, which may be a plugin's."""
    known = CODES.get(word)
    if known is not None and known.is_text:
        return known
    return ReasonCode(word, RequestState.PARKED, "{0}", is_text=True)
