"""What is kept of a request that isn't in step."""

import random
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest

from syncer.api.decision import Decision, skip, wait
from syncer.api.objects import Key, SyncRequest
from syncer.api.reasons import (
    CLASS_NOT_LISTED,
    INVALID,
    NO_COPY_YET,
    NOT_SELECTED,
    PAUSED,
    UNUSED,
    RequestState,
    StateReason,
)
from syncer.api.texts import LONGEST_MESSAGE
from syncer.engine.controllers.request_status import (
    FORGOTTEN,
    MOST_ERRORS,
    MOST_TEXT,
    LastError,
    RequestStatuses,
    decided_status,
)
from syncer.engine.reconcile.controller import LONGEST_NAMED

MANY = 20_000
#: Bytes of a request that isn't in step, without its key, which the cache has as well.
MOST_BYTES = 200


def _keys() -> list[Key]:
    return [Key("shop", f"object-{number}") for number in range(MANY)]


def _taken(state: RequestState, reason: Callable[[Key], StateReason]) -> float:
    """Return the bytes that each of many requests takes."""
    keys = _keys()
    statuses = RequestStatuses()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number, key in enumerate(keys):
            statuses.note(SyncRequest("vc", "pods", key), state, reason(key), now=number / 7)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / MANY


def test_skipped_request_takes_little_memory() -> None:
    assert _taken(RequestState.SKIPPED, lambda _: NOT_SELECTED("toHost.pods")) < MOST_BYTES
    assert _taken(RequestState.SKIPPED, lambda _: UNUSED("Secret", "set all")) < MOST_BYTES


def test_waiting_request_takes_little_memory_with_a_name_of_its_own() -> None:
    shared = sys.getsizeof(("Secret", Key("shop", "a")))
    taken = _taken(RequestState.PENDING, lambda key: NO_COPY_YET("Secret", key))
    assert taken < MOST_BYTES + shared


def test_texts_of_an_api_server_take_no_more_than_their_limit() -> None:
    taken = _taken(RequestState.PARKED, lambda key: INVALID(f"{key}: " + 4000 * "x"))
    assert taken * MANY < MANY * MOST_BYTES + 2 * MOST_TEXT


def test_code_stays_when_the_text_of_a_refusal_is_forgotten() -> None:
    statuses = RequestStatuses()
    for key in _keys()[:100]:
        statuses.note(SyncRequest("vc", "pods", key), RequestState.PARKED, INVALID(4000 * "x"))
    first = statuses.of(SyncRequest("vc", "pods", Key("shop", "object-0")))
    last = statuses.of(SyncRequest("vc", "pods", Key("shop", "object-99")))
    assert first is not None
    assert last is not None
    assert (first.reason.code, first.reason) == (INVALID, FORGOTTEN)
    assert last.reason == 4000 * "x"


def test_forgotten_text_is_no_news_when_it_comes_again() -> None:
    statuses = RequestStatuses()
    request = SyncRequest("vc", "pods", Key("shop", "a"))
    assert statuses.note(request, RequestState.PARKED, INVALID("too long"))
    for key in _keys()[:100]:
        statuses.note(SyncRequest("vc", "pods", key), RequestState.PARKED, INVALID(4000 * "x"))
    assert not statuses.note(request, RequestState.PARKED, INVALID("too long"))
    assert statuses.note(request, RequestState.PARKED, INVALID("too short"))


def test_texts_of_a_cluster_never_push_out_those_of_another() -> None:
    statuses = RequestStatuses()
    request = SyncRequest("quiet", "pods", Key("shop", "a"))
    statuses.note(request, RequestState.PARKED, INVALID("too long"))
    for key in _keys()[:200]:
        statuses.note(SyncRequest("loud", "pods", key), RequestState.PARKED, INVALID(4000 * "x"))
    status = statuses.of(request)
    assert status is not None
    assert status.reason == "too long"


def test_stopped_syncer_leaves_nothing_behind() -> None:
    statuses = RequestStatuses()
    copy = SyncRequest("vc", "pods", Key("shop", "a"), Key("host", "a"))
    statuses.note(copy, RequestState.PARKED, INVALID("no"), error="Invalid")
    statuses.note(copy._replace(host_key=None), RequestState.PENDING, NO_COPY_YET("Secret", "a"))
    assert len(statuses.count()) == 2
    statuses.drop("vc", "pods")
    assert not statuses.count()
    assert statuses.of(copy) is None
    assert not vars(statuses)["_texts"]
    assert not vars(statuses)["_errors"]


def test_last_error_is_kept_when_the_request_is_in_step_again() -> None:
    statuses = RequestStatuses()
    request = SyncRequest("vc", "pods", Key("shop", "a"))
    statuses.note(request, RequestState.FAILING, INVALID("first"), error="Invalid", now=1.0)
    statuses.note(request, RequestState.PARKED, INVALID("second"), error="Invalid", now=2.0)
    statuses.note(request, RequestState.PENDING, NO_COPY_YET("Secret", "a"), now=3.0)
    statuses.in_step(request)
    assert statuses.last_error(request) == LastError("Invalid", "second", 2.0)
    assert statuses.last_error(request._replace(cluster="other")) is None


def test_last_errors_are_kept_of_a_few_requests_of_each_virtual_cluster() -> None:
    statuses = RequestStatuses()
    quiet = SyncRequest("quiet", "pods", Key("shop", "a"))
    requests = [SyncRequest("loud", "pods", key) for key in _keys()[: MOST_ERRORS + 1]]
    for request in (quiet, *requests):
        statuses.note(request, RequestState.FAILING, INVALID("no"), error="Invalid")
        statuses.in_step(request)
    assert statuses.last_error(quiet) is not None
    assert statuses.last_error(requests[0]) is None
    assert all(statuses.last_error(request) for request in requests[1:])


def test_text_that_was_forgotten_with_all_others_ends_in_step() -> None:
    statuses = RequestStatuses()
    request = SyncRequest("vc", "pods", Key("shop", "a"))
    statuses.note(request, RequestState.PARKED, INVALID("no"))
    for key in _keys()[:200]:
        statuses.note(SyncRequest("vc", "secrets", key), RequestState.PARKED, INVALID(4000 * "x"))
    statuses.drop("vc", "secrets")
    statuses.in_step(request)
    assert statuses.of(request) is None


def test_empty_text_is_shown_as_it_is() -> None:
    statuses = RequestStatuses()
    request = SyncRequest("vc", "pods", Key("shop", "a"))
    statuses.note(request, RequestState.PARKED, INVALID(""))
    status = statuses.of(request)
    assert status is not None
    assert status.reason == ""


def test_reasons_are_counted_by_their_codes() -> None:
    statuses = RequestStatuses()
    for key in _keys()[:3]:
        request = SyncRequest("vc", "pods", key)
        statuses.note(request, RequestState.SKIPPED, NOT_SELECTED("toHost.pods"))
    assert statuses.count_reasons() == {("vc", "pods", "skipped", "NotSelected"): 3}


@pytest.mark.parametrize("decide", [skip, wait])
def test_long_text_of_a_syncer_is_cut_before_it_is_kept(decide: Callable[[str], Decision]) -> None:
    decided = decided_status(decide("word " * 10_000))
    assert decided is not None
    assert len(decided[1]) <= LONGEST_MESSAGE + 1


def test_long_argument_of_a_reason_is_cut_before_it_is_kept() -> None:
    decided = decided_status(wait(NO_COPY_YET("Secret", "x" * 10_000)))
    assert decided is not None
    assert decided[1].code is NO_COPY_YET
    assert decided[1].args == ("Secret", "x" * LONGEST_NAMED)


def test_short_arguments_of_a_reason_stay_as_they_are() -> None:
    key = Key("shop", "a")
    decided = decided_status(wait(NO_COPY_YET("Secret", key)))
    assert decided is not None
    assert decided[1].args == ("Secret", key)


def test_numbers_are_those_of_the_requests_that_are_kept() -> None:
    """They are counted at each change, as a look at each of 100,000 requests would hold up the event loop."""
    statuses = RequestStatuses()
    rng = random.Random(1)
    errors = ("", "NameTaken")
    for _ in range(3000):
        request = SyncRequest("vc", rng.choice(("pods", "secrets")), Key("shop", f"o{rng.randrange(20)}"))
        match rng.randrange(40):
            case 0:
                statuses.drop("vc", request.syncer)
            case each if each < 15:
                statuses.in_step(request)
            case _:
                reason = rng.choice((UNUSED("Secret", "all"), INVALID(f"text {rng.randrange(3)}")))
                state = rng.choice(list(RequestState))
                statuses.note(request, state, reason, error=rng.choice(errors))
        kept = Counter[tuple[str, ...]]()
        reasons = Counter[tuple[str, ...]]()
        parked = Counter[tuple[str, ...]]()
        for syncer in ("pods", "secrets"):
            for request, state in statuses.of_syncer("vc", syncer):
                status = statuses.of(request)
                assert status is not None
                kept["vc", syncer, state.value] += 1
                reasons["vc", syncer, state.value, status.reason.code.name] += 1
                if state is RequestState.PARKED:
                    parked["vc", syncer, status.error] += 1
        assert statuses.count() == kept
        assert statuses.count_reasons() == reasons
        assert statuses.parked() == parked


# -- long waits --------------------------------------------------------------------------------------------------


def _waits(statuses: RequestStatuses, now: float) -> list[str]:
    """Return the names of the objects of Pods that have waited for 30 s, and record that owners were notified."""
    found = []
    for request, _ in list(statuses.long_waits("vc", ["pods"], before=now - 30)):
        found.append(request.key.name)
        statuses.notified(request, "uid")
    return found


def _note(statuses: RequestStatuses, reason: StateReason, *, now: float, uid: str = "uid", name: str = "a") -> None:
    request = SyncRequest("vc", "pods", Key("shop", name))
    assert reason.code.state is not None
    statuses.note(request, reason.code.state, reason, uid=uid, now=now)


def test_long_wait_is_named_once_until_its_reason_or_its_object_is_another() -> None:
    statuses = RequestStatuses()
    _note(statuses, NO_COPY_YET("Secret", "s"), now=0)
    assert _waits(statuses, now=29) == []
    assert _waits(statuses, now=30) == ["a"]
    _note(statuses, NO_COPY_YET("Secret", "s"), now=31)
    assert _waits(statuses, now=99) == []
    _note(statuses, NO_COPY_YET("Secret", "other"), now=100)
    assert _waits(statuses, now=100) == ["a"]
    _note(statuses, NO_COPY_YET("Secret", "other"), now=101, uid="later")
    assert _waits(statuses, now=101) == ["a"]


def test_wait_that_ended_begins_again() -> None:
    statuses = RequestStatuses()
    _note(statuses, NO_COPY_YET("Secret", "s"), now=0)
    statuses.in_step(SyncRequest("vc", "pods", Key("shop", "a")))
    assert _waits(statuses, now=30) == []
    _note(statuses, NO_COPY_YET("Secret", "s"), now=40)
    assert _waits(statuses, now=69) == []
    assert _waits(statuses, now=70) == ["a"]


def test_only_waits_and_pauses_without_an_event_of_their_own_are_long_waits() -> None:
    statuses = RequestStatuses()
    _note(statuses, NOT_SELECTED("toHost.pods"), now=0, name="skipped")
    statuses.note(SyncRequest("vc", "pods", Key("shop", "failing")), RequestState.FAILING, INVALID("no"))
    _note(statuses, CLASS_NOT_LISTED("StorageClass", "gold"), now=0, name="warned")
    _note(statuses, PAUSED("mark", "virtual", "Pod", "shop/paused"), now=0, name="paused")
    assert _waits(statuses, now=99) == ["paused"]


def test_waits_of_another_cluster_or_of_a_stopped_syncer_are_not_named() -> None:
    statuses = RequestStatuses()
    _note(statuses, NO_COPY_YET("Secret", "s"), now=0)
    assert list(statuses.long_waits("other", ["pods"], before=99)) == []
    assert list(statuses.long_waits("vc", ["secrets"], before=99)) == []
    _note(statuses, NO_COPY_YET("Secret", "s"), now=0, name="b")
    statuses.drop("vc", "pods")
    assert _waits(statuses, now=99) == []


def test_waits_beyond_those_that_are_taken_are_named_later() -> None:
    statuses = RequestStatuses()
    for name in "abc":
        _note(statuses, NO_COPY_YET("Secret", "s"), now=0, name=name)
    [(request, _)] = islice(statuses.long_waits("vc", ["pods"], before=30), 1)
    statuses.notified(request, "uid")
    assert _waits(statuses, now=60) == ["b", "c"]
