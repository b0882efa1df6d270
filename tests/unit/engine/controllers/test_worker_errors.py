"""An error decides the outcome of a request, its delay, the event for the tenant and the line of the log."""

from typing import Any

import pytest
from worker_bench import PARKED, SLOWLY, A, Bench, RecordedEvent, play

from kube_envtest import Rule
from syncer.api import (
    AlreadyExists,
    Conflict,
    Decision,
    Denied,
    Expired,
    Forbidden,
    Invalid,
    Key,
    MissingRight,
    NotConnected,
    NotFound,
    Obj,
    QuotaExceeded,
    Refused,
    Side,
    SyncRequest,
    TooLarge,
    TooMany,
    Unauthorized,
    Unreachable,
)
from syncer.api.reasons import RequestState
from syncer.api.texts import LONGEST_MESSAGE
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap

RIGHT = MissingRight("create", "", "configmaps", "vc-ns")
HERE: Any = {"side": Side.HOST, "key": Key("vc-ns", "x")}
FAILING = RequestState.FAILING


@pytest.mark.parametrize(
    ("error", "failures", "state", "back", "event", "lost"),
    [
        # what will not pass by itself waits for a change, or for the slow timer
        pytest.param(Refused("no"), 0, PARKED, SLOWLY, "SyncRefused", False, id="refused"),
        pytest.param(Refused("no", reason="Odd"), 0, PARKED, SLOWLY, "Odd", False, id="refused with a reason"),
        pytest.param(Refused("no"), 9, PARKED, SLOWLY, "SyncRefused", False, id="refused after failures"),
        pytest.param(QuotaExceeded("no", **HERE), 0, PARKED, SLOWLY, "QuotaExceeded", False, id="quota exceeded"),
        pytest.param(Invalid("no", **HERE), 0, PARKED, SLOWLY, "SyncFailed", False, id="invalid"),
        pytest.param(Denied("no", **HERE), 0, PARKED, 0.05, "SyncFailed", False, id="denied"),
        pytest.param(Denied("no", **HERE), 5, PARKED, SLOWLY, "SyncFailed", False, id="denied again"),
        pytest.param(Forbidden("no", right=RIGHT, **HERE), 0, PARKED, SLOWLY, "SyncFailed", False, id="forbidden"),
        pytest.param(TooLarge("no"), 0, PARKED, None, "TooLarge", False, id="too large"),
        pytest.param(Invalid("no", status=413, **HERE), 0, PARKED, None, "TooLarge", False, id="too large there"),
        pytest.param(
            RecursionError(),
            0,
            PARKED,
            SLOWLY,
            "Unreadable",
            False,
            id="too deep",
            marks=pytest.mark.reason("Unreadable"),
        ),
        # a stale cache: at once, but only the first time
        pytest.param(Conflict("no", **HERE), 0, FAILING, 0.0, "", False, id="conflict"),
        pytest.param(AlreadyExists("no", **HERE), 0, FAILING, 0.0, "", False, id="exists"),
        pytest.param(NotFound("no", **HERE), 0, FAILING, 0.0, "", False, id="missing"),
        pytest.param(Conflict("no", **HERE), 1, FAILING, 0.1, "", False, id="conflict again"),
        # a server that says when
        pytest.param(TooMany("no", retry_after=7, **HERE), 0, FAILING, 7.0, "", False, id="too many"),
        pytest.param(TooMany("no", retry_after=7, **HERE), 20, FAILING, 48.0, "", False, id="too many, as ever"),
        pytest.param(Unauthorized("no", **HERE), 0, FAILING, 0.05, "SyncFailed", True, id="unauthorized"),
        # no answer: the connection is probed
        pytest.param(NotConnected("no", **HERE), 0, FAILING, 0.05, "", True, id="not connected"),
        pytest.param(NotConnected("no"), 0, FAILING, 0.05, "", False, id="not connected, nobody knows where"),
        pytest.param(Unreachable("no", status=0, **HERE), 0, FAILING, 0.05, "", True, id="no answer"),
        pytest.param(Unreachable("no", status=503, **HERE), 0, FAILING, 0.05, "", False, id="an answer that is 503"),
        # all else: later and later, and the tenant hears of it when it goes on for long
        pytest.param(Expired("no", **HERE), 0, FAILING, 0.05, "", False, id="expired"),
        pytest.param(ValueError("no"), 0, FAILING, 0.05, "", False, id="bug"),
        pytest.param(ValueError("no"), 3, FAILING, 0.4, "", False, id="bug, the fourth time"),
        pytest.param(ValueError("no"), 5, PARKED, 1.6, "SyncFailed", False, id="bug, the sixth time"),
        pytest.param(ValueError("no"), 6, PARKED, 3.2, "SyncFailed", False, id="bug, the seventh time"),
        pytest.param(ValueError("no"), 30, PARKED, 48.0, "SyncFailed", False, id="bug, for ever"),
    ],
)
def test_error_decides_state_delay_event_and_probe(
    error: Exception, failures: int, state: RequestState, back: float | None, event: str, lost: bool
) -> None:
    async def scenario(bench: Bench) -> None:
        for _ in range(failures):
            bench.queue.retry(A)
        bench.does(error)
        assert await bench.work() == 0
        status = bench.statuses.of(A)
        assert status
        assert (status.state, bench.comes_back()) == (state, back)
        assert [recorded.reason for recorded in bench.events] == ([event] if event else [])
        assert bench.losses == ([(Side.HOST, error)] if lost else [])

    play(scenario)


def test_error_of_the_api_server_is_judged_as_one_of_the_syncer() -> None:
    async def scenario(bench: Bench) -> None:
        bench.host.faults.add(Rule(verb="create", status=429, retry_after=9))
        await bench.work()
        status = bench.statuses.of(A)
        assert status
        assert (status.state, status.error, bench.comes_back()) == (FAILING, "TooMany", 9.0)

    play(scenario)


@pytest.mark.parametrize(
    ("longest", "back"), [pytest.param("60s", 48.0, id="default"), pytest.param("2s", 1.6, id="shorter")]
)
def test_max_retry_delay_bounds_the_delay(longest: str, back: float) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(ValueError("no"))
        for _ in range(20):
            await bench.work()
        assert bench.comes_back() == back

    play(scenario, max_retry_delay=longest)


@pytest.mark.parametrize(
    ("errors", "events"),
    [
        pytest.param(["no", "no", "no"], ["no"], id="the same"),
        pytest.param(["no", "nor this", "no"], ["no", "nor this", "no"], id="others"),
    ],
)
def test_refusal_is_sent_once_until_it_changes(errors: list[str], events: list[str]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(*map(Refused, errors))
        for _ in errors:
            await bench.work()
        assert [recorded.message for recorded in bench.events] == events

    play(scenario)


def test_event_is_about_the_object_that_the_refusal_names() -> None:
    async def scenario(bench: Bench) -> None:
        other = configmap("other")
        bench.does(Refused("no", about=other))
        await bench.work()
        assert bench.events == [RecordedEvent("SyncRefused", "no", other)]

    play(scenario)


def test_event_names_no_right_and_no_address_of_the_host() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Forbidden("grant configmaps to 10.1.2.3", verb="create", resource=CONFIG_MAPS, **HERE))
        await bench.work()
        [recorded] = bench.events
        assert "10.1.2.3" not in recorded.message
        assert bench.status() == (PARKED, "grant configmaps to 10.1.2.3"), "the operator reads all of it"

    play(scenario)


def test_traceback_is_logged_once_for_each_bug(capsys: pytest.CaptureFixture[str]) -> None:
    def one(virtual: Obj, host: Obj | None) -> Decision:
        raise ValueError("one bug")

    def two(virtual: Obj, host: Obj | None) -> Decision:
        raise ValueError("another bug")

    async def scenario(bench: Bench) -> None:
        output = []
        for name, act in (("a", one), ("b", one), ("a", two), ("b", two)):
            bench.does(act)
            await bench.work(SyncRequest("vc", "maps", Key("shop", name)))
            lines = capsys.readouterr().err
            output.append((lines.count("a syncer raised"), lines.count("Traceback")))
        assert output == [(1, 1), (1, 0), (1, 1), (1, 0)]

    play(scenario)


def test_traceback_is_for_bugs_and_not_for_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Refused("no"), Unreachable("no", status=500))
        await bench.work()
        await bench.work()
        lines = capsys.readouterr().err
        assert ("parked" in lines, "failed, will try again" in lines, "Traceback" in lines) == (True, True, False)

    play(scenario)


def test_failure_that_cannot_be_reported_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(bench: Bench) -> None:
        def deaf(*about: Any, **more: Any) -> bool:
            raise RuntimeError("no memory")

        monkeypatch.setattr(bench.statuses, "note", deaf)
        bench.does(ValueError("no"))
        await bench.work()
        assert bench.comes_back() == 0.05

    play(scenario)


def test_long_message_of_an_error_is_kept_in_part() -> None:
    async def scenario(bench: Bench) -> None:
        bench.does(Invalid("no " * 1_000_000, **HERE))
        await bench.work()
        [recorded] = bench.events
        assert len(recorded.message) <= LONGEST_MESSAGE
        assert bench.status() == (RequestState.PARKED, recorded.message)

    play(scenario)
