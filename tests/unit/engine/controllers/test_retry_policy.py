"""The action after a failure, and the status that is kept of it."""

import pytest

from syncer.api import (
    AlreadyExists,
    Conflict,
    Denied,
    Expired,
    Forbidden,
    Invalid,
    Key,
    NamespaceTerminating,
    NotConnected,
    NotFound,
    QuotaExceeded,
    Refused,
    SyncRequest,
    TooMany,
    Unauthorized,
    Unreachable,
)
from syncer.api.reasons import (
    AWAITED_BY_SYNCER,
    SKIPPED_BY_SYNCER,
    SYNC_REFUSED,
    SYNCER_RAISED,
    RequestState,
    StateReason,
)
from syncer.engine.controllers.request_status import RequestStatuses
from syncer.engine.controllers.retry_policy import (
    FAILURES_BEFORE_EVENT,
    LOST_SECONDS,
    PARKED_SECONDS,
    Retry,
    RetryAction,
    retry_for,
)
from syncer.engine.stores.identity import IdentityLost


@pytest.mark.parametrize(
    ("error", "failures", "becomes"),
    [
        (IdentityLost("no", reason="IdentityLost"), 0, Retry(RetryAction.PARK, LOST_SECONDS, "IdentityLost")),
        (Refused("no"), 0, Retry(RetryAction.PARK, PARKED_SECONDS, "SyncRefused")),
        (Refused("no", reason="NameCollision"), 3, Retry(RetryAction.PARK, PARKED_SECONDS, "NameCollision")),
        (Invalid("no", status=422), 0, Retry(RetryAction.PARK, PARKED_SECONDS, "SyncFailed")),
        (Denied("no", status=400), 0, Retry(RetryAction.PARK, event="SyncFailed")),
        (Denied("no", status=400), FAILURES_BEFORE_EVENT - 1, Retry(RetryAction.PARK, event="SyncFailed")),
        (Denied("no", status=400), FAILURES_BEFORE_EVENT, Retry(RetryAction.PARK, PARKED_SECONDS, "SyncFailed")),
        (QuotaExceeded("no", status=403), 0, Retry(RetryAction.PARK, PARKED_SECONDS, "QuotaExceeded")),
        (Forbidden("no", status=403), 0, Retry(RetryAction.PARK, PARKED_SECONDS, "SyncFailed")),
        (Unauthorized("no", status=401), 0, Retry(RetryAction.RECONNECT, event="SyncFailed")),
        (NamespaceTerminating("being terminated", status=403), 0, Retry(RetryAction.BACK_OFF)),
        (Conflict("no", status=409), 0, Retry(RetryAction.AT_ONCE)),
        (AlreadyExists("no", status=409), 0, Retry(RetryAction.AT_ONCE)),
        (NotFound("no", status=404), 0, Retry(RetryAction.AT_ONCE)),
        (Conflict("no", status=409), 1, Retry(RetryAction.BACK_OFF)),
        (TooMany("wait", retry_after=7.0, status=429), 0, Retry(RetryAction.LATER, 7.0)),
        (NotConnected("no"), 0, Retry(RetryAction.RECONNECT)),
        (Unreachable("no answer"), 0, Retry(RetryAction.RECONNECT)),
        (Unreachable("broken", status=500), 0, Retry(RetryAction.BACK_OFF)),
        (Expired("old", status=410), 0, Retry(RetryAction.BACK_OFF)),
        (ValueError("a bug"), 0, Retry(RetryAction.BACK_OFF)),
        (ValueError("a bug"), FAILURES_BEFORE_EVENT - 1, Retry(RetryAction.BACK_OFF)),
        (ValueError("a bug"), FAILURES_BEFORE_EVENT, Retry(RetryAction.PARK, event="SyncFailed")),
        (NotFound("no", status=404), FAILURES_BEFORE_EVENT, Retry(RetryAction.BACK_OFF, event="SyncFailed")),
        (NotFound("no", status=404), FAILURES_BEFORE_EVENT + 1, Retry(RetryAction.BACK_OFF)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_class_of_an_error_decides_the_next_step(error: Exception, failures: int, becomes: Retry) -> None:
    assert retry_for(error, failures) == becomes


A, B = (SyncRequest("vc", syncer, Key("shop", "a")) for syncer in ("pods", "secrets"))


def test_standing_is_new_only_once() -> None:
    statuses = RequestStatuses()
    assert statuses.note(A, RequestState.FAILING, SYNCER_RAISED("why"), error="Conflict")
    assert not statuses.note(A, RequestState.FAILING, SYNCER_RAISED("why"), error="Conflict")
    assert statuses.note(A, RequestState.FAILING, SYNCER_RAISED("another reason"), error="Conflict")
    statuses.in_step(A)
    assert statuses.of(A) is None
    assert statuses.note(A, RequestState.FAILING, SYNCER_RAISED("another reason"), error="Conflict")


def test_standing_says_since_when_and_how_often() -> None:
    statuses = RequestStatuses()

    def note(state: RequestState, reason: StateReason, now: float) -> tuple[float, int]:
        statuses.note(A, state, reason, now=now)
        status = statuses.of(A)
        assert status
        return status.since, status.tried

    assert note(RequestState.FAILING, SYNCER_RAISED("why"), 10) == (10, 1)
    assert note(RequestState.FAILING, SYNCER_RAISED("another reason"), 20) == (10, 2)
    assert note(RequestState.PARKED, SYNC_REFUSED("no"), 30) == (30, 1)
    assert note(RequestState.PARKED, SYNC_REFUSED("no"), 40) == (30, 2)
    statuses.in_step(A)
    assert note(RequestState.PARKED, SYNC_REFUSED("no"), 50) == (50, 1)


def test_request_in_step_takes_no_memory() -> None:
    statuses = RequestStatuses()
    statuses.in_step(A)
    assert statuses.count() == {}


def test_requests_that_are_not_in_step_are_distinguished_by_state() -> None:
    statuses = RequestStatuses()
    statuses.note(A, RequestState.PARKED, SYNCER_RAISED("refused"), error="Refused")
    statuses.note(B, RequestState.PENDING, AWAITED_BY_SYNCER("waits"))
    assert [(request, status.reason) for request, status in statuses.troubles()] == [(A, "refused")]
    assert [(request, status.reason) for request, status in statuses.pending()] == [(B, "waits")]
    assert statuses.count() == {("vc", "pods", "parked"): 1, ("vc", "secrets", "pending"): 1}
    assert statuses.parked() == {("vc", "pods", "Refused"): 1}
    statuses.note(A, RequestState.SKIPPED, SKIPPED_BY_SYNCER("not wanted"))
    assert list(statuses.troubles()) == []
