"""A failed request has a reason by the class of its error."""

import pytest
from worker_bench import A, Bench, play

from syncer.api.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Denied,
    Expired,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NoCredentials,
    NotConnected,
    NotFound,
    QuotaExceeded,
    Refused,
    ServerFailed,
    TooMany,
    Unauthorized,
    Unreachable,
    WebhookFailed,
)
from syncer.api.objects import Side
from syncer.api.reasons import RequestState
from syncer.engine.controllers.failure_reasons import failure_reason


class OwnError(Invalid):
    """An error of a plugin, which says more than one of ours."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(NotFound("n"), "NotFound", marks=pytest.mark.reason("NotFound")),
        pytest.param(AlreadyExists("n"), "AlreadyExists", marks=pytest.mark.reason("AlreadyExists")),
        pytest.param(Conflict("n"), "Conflict", marks=pytest.mark.reason("Conflict")),
        pytest.param(Invalid("n", side=Side.HOST), "Invalid", marks=pytest.mark.reason("Invalid")),
        pytest.param(Denied("n", side=Side.HOST), "Denied", marks=pytest.mark.reason("Denied")),
        pytest.param(QuotaExceeded("n"), "QuotaExceeded", marks=pytest.mark.reason("QuotaExceeded")),
        pytest.param(Forbidden("n"), "Forbidden", marks=pytest.mark.reason("Forbidden")),
        pytest.param(TooMany("n", retry_after=1.0), "TooMany", marks=pytest.mark.reason("TooMany")),
        pytest.param(NotConnected("n"), "NotConnected", marks=pytest.mark.reason("NotConnected")),
        pytest.param(Unauthorized("n"), "Unauthorized", marks=pytest.mark.reason("Unauthorized")),
        pytest.param(Unreachable("n"), "Unreachable", marks=pytest.mark.reason("Unreachable")),
        pytest.param(NoCredentials("n"), "NoCredentials", marks=pytest.mark.reason("NoCredentials")),
        pytest.param(ServerFailed("n", status=500), "ServerFailed", marks=pytest.mark.reason("ServerFailed")),
        pytest.param(WebhookFailed("n", status=500), "WebhookFailed", marks=pytest.mark.reason("WebhookFailed")),
        (NamespaceTerminating("n", status=403), "NamespaceTerminating"),
        pytest.param(Expired("n"), "Expired", marks=pytest.mark.reason("Expired")),
        pytest.param(ClusterError("n"), "UnexpectedAnswer", marks=pytest.mark.reason("UnexpectedAnswer")),
        pytest.param(ValueError("n"), "SyncerRaised", marks=pytest.mark.reason("SyncerRaised")),
        pytest.param(Refused("n"), "SyncRefused", marks=pytest.mark.reason("SyncRefused")),
    ],
)
def test_error_of_an_attempt_gives_its_reason(error: Exception, code: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(error)
        await bench.work()
        status = bench.statuses.of(A)
        assert status is not None
        assert status.state in (RequestState.FAILING, RequestState.PARKED)
        assert status.reason.code.name == code
        assert status.error == type(error).__name__

    play(scenario)


def test_error_that_says_more_has_the_reason_of_its_parent() -> None:
    assert failure_reason(OwnError("n"), "n").code.name == "Invalid"
    assert failure_reason(ClusterError("n", status=302), "n").code.name == "UnexpectedAnswer"


def test_refusal_of_a_plugin_keeps_its_own_word() -> None:
    code = failure_reason(Refused("n", reason="TooTall"), "n").code
    assert code.name == "TooTall"
    assert failure_reason(Refused("m", reason="TooTall"), "m").code is code


def test_word_of_a_plugin_that_is_no_refusal_of_ours_stands_for_its_text() -> None:
    assert str(failure_reason(Refused("why", reason="Paused"), "why")) == "why"
