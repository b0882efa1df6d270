"""What is kept of a request that isn't in step."""

import sys
import tracemalloc
from collections.abc import Callable

import pytest

from syncer.api.decision import Decision, skip, wait
from syncer.api.objects import Key, SyncRequest
from syncer.api.reasons import (
    INVALID,
    NO_COPY_YET,
    NOT_SELECTED,
    UNUSED,
    RequestState,
    StateReason,
)
from syncer.api.texts import LONGEST_MESSAGE
from syncer.engine.controllers.request_status import FORGOTTEN, MOST_TEXT, RequestStatuses, decided_status
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
    statuses.note(copy, RequestState.PARKED, INVALID("no"))
    statuses.note(copy._replace(host_key=None), RequestState.PENDING, NO_COPY_YET("Secret", "a"))
    assert len(statuses.count()) == 2
    statuses.drop("vc", "pods")
    assert not statuses.count()
    assert statuses.of(copy) is None
    assert not vars(statuses)["_texts"]


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
