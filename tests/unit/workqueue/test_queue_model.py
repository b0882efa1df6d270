"""The queue against a simple model: in any order of calls nothing is lost, stuck or handed out twice."""

import asyncio
import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_envtest import virtual_time
from syncer.api import Key, SyncRequest
from syncer.workqueue.fair import QueueClosed
from syncer.workqueue.lane import LOW_SHARE
from syncer.workqueue.queue import Queue

pytestmark = pytest.mark.slow


CLUSTERS = ("one", "two")
REQUESTS = [SyncRequest(cluster, "configmaps", Key("shop", name)) for cluster in CLUSTERS for name in "ab"]

requests, seconds = st.sampled_from(REQUESTS), st.sampled_from([1.0, 5.0])
ACTIONS = st.one_of(
    st.tuples(st.just("add"), requests, st.just(0.0), st.booleans()),
    st.tuples(st.just("add"), requests, seconds, st.booleans()),
    st.tuples(st.just("get")),
    st.tuples(st.just("get")),
    st.tuples(st.just("done"), st.integers(0, 3)),
    st.tuples(st.just("cancel"), st.integers(0, 3)),
    st.tuples(st.just("done"), st.integers(0, 3)),
    st.tuples(st.just("looking"), st.integers(0, 3)),
    st.tuples(st.just("retry"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("forget"), requests),
    st.tuples(st.just("pause"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("resume"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("pass"), st.sampled_from([0.0, 0.5, 3.0])),
)


@dataclass
class Model:
    """A plain model of the queue: each request is waiting, running, due, or nowhere."""

    #: Those that wait, in their order, each with whether it is of low priority.
    waiting: dict[SyncRequest, bool] = field(default_factory=dict)
    #: Those being worked on, each with the priority of what came meanwhile.
    running: dict[SyncRequest, bool | None] = field(default_factory=dict)
    due: dict[SyncRequest, tuple[float, bool]] = field(default_factory=dict)
    failures: dict[SyncRequest, int] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    #: How many came before waiting ones of low priority, by cluster.
    before_low: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLUSTERS, 0))

    def add(self, request: SyncRequest, low: bool) -> None:
        _, due_low = self.due.pop(request, (0.0, True))
        low = low and due_low
        if request in self.running:
            self.running[request] = low and self.running[request] is not False
        elif request in self.waiting and self.waiting[request] and not low:
            del self.waiting[request]
            self.waiting[request] = False
        elif request not in self.waiting:
            self.waiting[request] = low

    def later(self, request: SyncRequest, at: float, low: bool) -> None:
        if request not in self.waiting:
            known, known_low = self.due.get(request, (at, True))
            self.due[request] = (min(at, known), low and known_low)

    def pass_until(self, now: float) -> None:
        for request, (at, low) in sorted(self.due.items(), key=lambda each: each[1][0]):
            if at <= now:
                self.add(request, low)

    def take(self, request: SyncRequest) -> None:
        """A worker was handed this request; it must be one whose turn it may be."""
        cluster = request.cluster
        assert cluster not in self.paused
        assert request not in self.running, "two workers have it"
        assert request in self.waiting, "nobody asked for it"
        low = self.waiting[request]
        of_both = {is_low: self._waiting_in(cluster, low=is_low) for is_low in (False, True)}
        assert of_both[low][0] == request, "it was another's turn"
        if low and of_both[False]:
            assert self.before_low[cluster] == LOW_SHARE - 1
        assert low or self.before_low[cluster] < LOW_SHARE - 1 or not of_both[True], "a low one waits for ever"
        self.before_low[cluster] = 0 if low else self.before_low[cluster] + bool(of_both[True])
        del self.waiting[request]
        self.running[request] = None

    def done(self, request: SyncRequest) -> None:
        again = self.running.pop(request)
        if again is not None:
            self.add(request, again)

    def may_be_taken(self) -> list[SyncRequest]:
        return [request for request in self.waiting if request.cluster not in self.paused]

    def _waiting_in(self, cluster: str, *, low: bool) -> list[SyncRequest]:
        return [one for one, is_low in self.waiting.items() if one.cluster == cluster and is_low is low]


class Play:
    """A queue, its model, and workers that take a request when told to and end it when told to."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        #: Nothing is due at the very same time as anything else: which comes first then is nobody's business.
        self.moments = itertools.count(0.001, 0.001)
        self.queue = Queue(clock=self.loop.time, spread=lambda: 0.5 + next(self.moments))
        self.model = Model()
        self.getters: list[asyncio.Task[None]] = []
        self.taken: list[SyncRequest] = []

    async def get(self) -> None:
        request, changed = await self.queue.get()
        assert changed <= self.loop.time()
        self.taken.append(request)

    async def settle(self, passed: float = 0.0) -> None:
        """Let time pass and workers take what is there; then the queue must be as the model says."""
        until = self.loop.time() + passed
        await self.collect()
        while True:
            times = [at for at, _ in self.model.due.values() if self.loop.time() <= at <= until]
            await asyncio.sleep(min([*times, until]) - self.loop.time())
            self.model.pass_until(self.loop.time())
            await self.collect()
            if not times:
                return

    async def collect(self) -> None:
        """Let those who wait take what there is."""
        for _ in range(3):
            await asyncio.sleep(0)
        for request in self.taken:
            self.model.take(request)
        self.taken.clear()
        for getter in [one for one in self.getters if one.done()]:
            self.getters.remove(getter)
            getter.result()

    def compare(self) -> None:
        queue, model = self.queue, self.model
        assert queue.depth() == len(model.waiting)
        assert set(queue.running()) == set(model.running)
        assert dict(queue.delayed()) == {request: at for request, (at, _) in model.due.items()}
        assert {one: count for one in REQUESTS if (count := queue.failures(one))} == model.failures
        assert queue.is_idle() == (not model.waiting and not model.running)
        assert not (self.getters and model.may_be_taken()), "somebody waits, and there is something"

    def running(self, which: int) -> SyncRequest:
        return list(self.model.running)[which % len(self.model.running)]

    async def act(self, action: tuple[object, ...]) -> None:
        queue, model, now = self.queue, self.model, self.loop.time()
        match action:
            case ("add", SyncRequest() as request, float(after), bool(low)):
                after += next(self.moments) if after else 0
                queue.add(request, after=after, low=low)
                model.later(request, now + after, low) if after else model.add(request, low)
            case ("get",):
                self.getters.append(asyncio.create_task(self.get()))
            case ("cancel", int(which)) if self.getters:
                getter = self.getters[which % len(self.getters)]
                if getter.cancel():
                    self.getters.remove(getter)
            case ("done", int(which)) if model.running:
                request = self.running(which)
                queue.done(request, seconds=0.01)
                model.done(request)
            case ("looking", int(which)) if model.running:
                request = self.running(which)
                queue.absorb(request)
                model.running[request] = None
            case ("retry", int(which), bool(at_once)) if model.running:
                request = self.running(which)
                delay = queue.retry(request, at_once=at_once)
                model.failures[request] = model.failures.get(request, 0) + 1
                model.add(request, low=False) if at_once else model.later(request, now + delay, low=True)
            case ("forget", SyncRequest() as request):
                queue.forget(request)
                model.failures.pop(request, None)
            case ("pause", str(cluster)):
                queue.pause(cluster)
                model.paused.add(cluster)
            case ("resume", str(cluster)):
                queue.resume(cluster)
                model.paused.discard(cluster)
            case ("pass", float(passed)):
                await self.settle(passed)

    async def finish(self) -> None:
        """Let everything be worked on that is asked for: then all is done."""
        for cluster in CLUSTERS:
            await self.act(("resume", cluster))
        for _ in range(100):
            while self.model.running:
                await self.act(("done", 0))
            if not self.model.waiting and not self.model.due:
                break
            if not self.getters:
                await self.act(("get",))
            await self.settle(1.0)
            self.compare()
        assert self.queue.is_idle()
        assert not self.queue.delayed()

    async def close(self) -> None:
        """All who wait, and those who come later, are told that there is nothing more."""
        await self.act(("get",))
        self.queue.close()
        late = asyncio.create_task(self.get())
        ends = await asyncio.gather(*self.getters, late, return_exceptions=True)
        assert all(isinstance(end, QueueClosed | asyncio.CancelledError) for end in ends)
        assert not self.taken


@settings(max_examples=200)
@given(st.lists(ACTIONS, min_size=25, max_size=60), st.booleans())
def test_queue_agrees_with_the_model(actions: list[tuple[object, ...]], hasty: bool) -> None:
    async def scenario() -> None:
        play = Play()
        for action in actions:
            await play.act(action)
            if not hasty:
                await play.settle()
                play.compare()
        await play.settle()
        await play.finish()
        await play.close()

    virtual_time.run(scenario())


@settings(max_examples=20)
@given(st.lists(ACTIONS, max_size=40))
def test_closed_queue_hands_out_nothing(actions: list[tuple[object, ...]]) -> None:
    async def scenario() -> None:
        play = Play()
        for action in actions:
            await play.act(action)
        await play.settle()
        await play.close()
        await asyncio.sleep(100)
        assert not play.taken

    virtual_time.run(scenario())
