"""A gate holds back a single syncer's requests, and loses none."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest import virtual_time
from syncer.api import Key, SyncRequest
from syncer.workqueue.queue import Queue


def request(name: str, syncer: str = "pods") -> SyncRequest:
    return SyncRequest("vc", syncer, Key("shop", name))


A, B, C, D = (request(name) for name in "abcd")
OTHERS = [request(name, "secrets") for name in "ab"]


def queue(**limits: float) -> Queue:
    made = Queue(clock=now, spread=lambda: 0.5)
    made.limit("vc", "pods", **limits)  # type: ignore[arg-type]
    return made


def now() -> float:
    return asyncio.get_running_loop().time()


async def taken(which: Queue) -> list[SyncRequest]:
    """Return all requests that are handed out without waiting; each is left running."""
    found = []
    while True:
        try:
            async with asyncio.timeout(0):
                found.append((await which.get())[0])
        except TimeoutError:
            return found


async def test_concurrency_limits_the_running_requests_of_one_syncer() -> None:
    waiting = queue(concurrency=2)
    for each in (A, B, C, *OTHERS, D):
        waiting.add(each)
    assert await taken(waiting) == [A, B, *OTHERS]
    assert waiting.depth() == 2
    assert waiting.depths() == {"vc": 2}
    waiting.done(B)
    assert await taken(waiting) == [C]
    waiting.add(C)
    waiting.done(C)
    assert await taken(waiting) == [D], "what is added again comes after what waits"
    waiting.done(A)
    assert await taken(waiting) == [C]


async def test_low_priority_comes_after_the_rest_also_before_a_gate() -> None:
    waiting = queue(concurrency=1)
    waiting.add(A)
    waiting.add(B, low=True)
    waiting.add(C, low=True)
    waiting.add(D)
    waiting.add(C)
    order = []
    while found := await taken(waiting):
        order += found
        waiting.done(found[0])
    assert order == [A, D, C, B]


async def test_writes_are_paid_back_by_waiting() -> None:
    waiting, start = queue(writes_per_second=2.0), now()
    times: dict[str, float] = {}
    for name in map(str, range(6)):
        waiting.add(request(name))
    while len(times) < 6:
        found, _ = await waiting.get()
        times[found.key.name] = now() - start
        waiting.done(found, writes=1)
    assert list(times.values()) == pytest.approx([0, 0, 0.5, 1.0, 1.5, 2.0])


async def test_requests_without_writes_cost_nothing_and_others_never_wait() -> None:
    waiting, start = queue(writes_per_second=0.5), now()
    for each in (A, B, C, *OTHERS):
        waiting.add(each)
    assert await taken(waiting) == [A, *OTHERS]
    waiting.done(A)
    assert await taken(waiting) == [B], "A has given its token back"
    waiting.done(B, writes=5)
    assert await taken(waiting) == []
    assert (await waiting.get())[0] == C
    assert now() - start == pytest.approx(10)


async def test_gate_that_is_taken_away_lets_all_in() -> None:
    waiting = queue(concurrency=1)
    for each in (A, B, C):
        waiting.add(each)
    assert await taken(waiting) == [A]
    waiting.drop("vc", "pods")
    assert await taken(waiting) == [B, C]
    waiting.limit("vc", "pods", concurrency=1)
    waiting.add(D)
    waiting.done(A)
    waiting.done(B)
    assert await taken(waiting) == [], "one of before is still worked on"
    waiting.done(C)
    assert await taken(waiting) == [D]


@given(
    concurrency=st.integers(1, 3),
    rate=st.sampled_from([0.0, 1.0, 5.0]),
    actions=st.lists(st.one_of(st.tuples(st.integers(0, 5), st.booleans()), st.integers(0, 3)), max_size=40),
)
def test_gate_loses_no_request_and_keeps_its_limits(
    concurrency: int, rate: float, actions: list[tuple[int, bool] | int]
) -> None:
    async def scenario() -> None:
        waiting = queue(concurrency=concurrency, writes_per_second=rate)
        running: list[SyncRequest] = []
        unseen: set[SyncRequest] = set()

        async def take() -> None:
            found = await taken(waiting)
            running.extend(found)
            unseen.difference_update(found)
            of_syncer = [one for one in running if one.syncer == "pods"]
            assert len(of_syncer) == len(set(of_syncer)) <= concurrency

        for action in actions:
            if isinstance(action, tuple):
                one = request(str(action[0]), "pods" if action[0] else "secrets")
                waiting.add(one, low=action[1])
                unseen.add(one)
            elif running:
                waiting.done(running.pop(action % len(running)), writes=action)
            await take()
        for _ in range(len(actions) + 10):
            if running:
                waiting.done(running.pop(), writes=1)
            await asyncio.sleep(5)
            await take()
        assert unseen == set()
        assert waiting.is_idle()

    virtual_time.run(scenario())
