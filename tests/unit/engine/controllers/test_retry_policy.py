"""What becomes of a request that failed, and what is kept of it."""

import pytest

from syncer.api import (
    ClusterError,
    Conflict,
    Denied,
    Exists,
    Expired,
    Forbidden,
    Invalid,
    Key,
    Missing,
    NotConnected,
    QuotaExceeded,
    Refused,
    Request,
    TooMany,
    Unauthorized,
    Unreachable,
)
from syncer.engine.controllers.request_status import Ledger, State
from syncer.engine.controllers.retry_policy import (
    FAILURES_TOLD,
    PARKED_SECONDS,
    UNAUTHORIZED_SECONDS,
    Fate,
    Next,
    after,
)


@pytest.mark.parametrize(
    ("error", "failures", "becomes"),
    [
        (Refused("no"), 0, Next(Fate.PARK, PARKED_SECONDS, "SyncRefused")),
        (Refused("no", reason="NameCollision"), 3, Next(Fate.PARK, PARKED_SECONDS, "NameCollision")),
        (Invalid("no", status=422), 0, Next(Fate.PARK, PARKED_SECONDS, "SyncFailed")),
        (Denied("no", status=400), 0, Next(Fate.PARK, PARKED_SECONDS, "SyncFailed")),
        (QuotaExceeded("no", status=403), 0, Next(Fate.PARK, PARKED_SECONDS, "QuotaExceeded")),
        (Forbidden("no", status=403), 0, Next(Fate.PARK, PARKED_SECONDS, "SyncFailed")),
        (Unauthorized("no", status=401), 0, Next(Fate.LATER, UNAUTHORIZED_SECONDS, "SyncFailed")),
        (ClusterError("being terminated", status=403), 0, Next(Fate.BACK_OFF)),
        (Conflict("no", status=409), 0, Next(Fate.AT_ONCE)),
        (Exists("no", status=409), 0, Next(Fate.AT_ONCE)),
        (Missing("no", status=404), 0, Next(Fate.AT_ONCE)),
        (Conflict("no", status=409), 1, Next(Fate.BACK_OFF)),
        (TooMany("wait", retry_after=7.0, status=429), 0, Next(Fate.LATER, 7.0)),
        (NotConnected("no"), 0, Next(Fate.RECONNECT)),
        (Unreachable("no answer"), 0, Next(Fate.RECONNECT)),
        (Unreachable("broken", status=500), 0, Next(Fate.BACK_OFF)),
        (Expired("old", status=410), 0, Next(Fate.BACK_OFF)),
        (ValueError("a bug"), 0, Next(Fate.BACK_OFF)),
        (ValueError("a bug"), FAILURES_TOLD, Next(Fate.BACK_OFF, event="SyncFailed")),
        (Missing("no", status=404), FAILURES_TOLD, Next(Fate.BACK_OFF, event="SyncFailed")),
        (ValueError("a bug"), FAILURES_TOLD + 1, Next(Fate.BACK_OFF)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_class_of_the_error_says_what_comes_next(error: Exception, failures: int, becomes: Next) -> None:
    assert after(error, failures) == becomes


A, B = (Request("vc", syncer, Key("shop", "a")) for syncer in ("pods", "secrets"))


def test_a_standing_is_new_only_once() -> None:
    ledger = Ledger()
    assert ledger.note(A, State.FAILING, "why", error="Conflict")
    assert not ledger.note(A, State.FAILING, "why", error="Conflict")
    assert ledger.note(A, State.FAILING, "another reason", error="Conflict")
    ledger.in_step(A)
    assert ledger.of(A) is None
    assert ledger.note(A, State.FAILING, "another reason", error="Conflict")


def test_a_standing_says_since_when_and_how_often() -> None:
    ledger = Ledger()

    def note(state: State, reason: str, now: float) -> tuple[float, int]:
        ledger.note(A, state, reason, now=now)
        standing = ledger.of(A)
        assert standing
        return standing.since, standing.tried

    assert note(State.FAILING, "why", 10) == (10, 1)
    assert note(State.FAILING, "another reason", 20) == (10, 2)
    assert note(State.PARKED, "no", 30) == (30, 1)
    assert note(State.PARKED, "no", 40) == (30, 2)
    ledger.in_step(A)
    assert note(State.PARKED, "no", 50) == (50, 1)


def test_what_is_in_step_takes_no_room() -> None:
    ledger = Ledger()
    ledger.in_step(A)
    assert ledger.count() == {}


def test_what_is_not_in_step_is_told_apart() -> None:
    ledger = Ledger()
    ledger.note(A, State.PARKED, "refused", error="Refused")
    ledger.note(B, State.PENDING, "waits")
    assert [(request, standing.reason) for request, standing in ledger.troubles()] == [(A, "refused")]
    assert [(request, standing.reason) for request, standing in ledger.pending()] == [(B, "waits")]
    assert ledger.count() == {("pods", "parked"): 1, ("secrets", "pending"): 1}
    assert ledger.parked() == {("pods", "Refused"): 1}
    ledger.note(A, State.SKIPPED, "not wanted")
    assert list(ledger.troubles()) == []
