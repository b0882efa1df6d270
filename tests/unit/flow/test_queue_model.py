"""Whatever is added, delayed, paused and cancelled, in any order: every change is looked at, by one worker."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from syncer.api import Key, Request
from syncer.flow.queue import Queue
from syncer.testing import clock

CLUSTERS = ("one", "two")
REQUESTS = [Request(cluster, "configmaps", Key("shop", name)) for cluster in CLUSTERS for name in "ab"]

ACTIONS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(REQUESTS)),
    st.tuples(st.just("later"), st.sampled_from(REQUESTS), st.sampled_from([1, 5])),
    st.tuples(st.just("get")),
    st.tuples(st.just("cancel"), st.integers(0, 3)),
    st.tuples(st.just("done"), st.integers(0, 3)),
    st.tuples(st.just("retry"), st.integers(0, 3)),
    st.tuples(st.just("pause"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("resume"), st.sampled_from(CLUSTERS)),
    st.tuples(st.just("pass"), st.sampled_from([0.0, 0.5, 3.0])),
)


class Workers:
    """Workers that take a request when told to and end it when told to."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.queue = Queue(clock=self.loop.time, spread=lambda: 0.5)
        self.getters: list[asyncio.Task[tuple[Request, float]]] = []
        self.running: list[Request] = []
        #: The latest time by which a worker must have been told of a change, by request.
        self.owed: dict[Request, float] = {}
        self.paused: set[str] = set()

    def owe(self, request: Request, after: float = 0.0) -> None:
        due = self.loop.time() + after
        self.owed[request] = min(self.owed.get(request, due), due)

    async def collect(self) -> None:
        for getter in [one for one in self.getters if one.done()]:
            self.getters.remove(getter)
            request, changed = getter.result()
            assert request not in self.running, "two workers have it"
            assert changed <= self.loop.time()
            assert request in self.owed, "nobody asked for it"
            if self.owed[request] <= self.loop.time():
                del self.owed[request]
            self.running.append(request)

    async def act(self, action: tuple[object, ...]) -> None:
        await self.collect()
        match action:
            case ("add", Request() as request):
                self.queue.add(request)
                self.owe(request)
            case ("later", Request() as request, int(after)):
                self.queue.add(request, after=after)
                self.owe(request, after)
            case ("get",):
                self.getters.append(asyncio.create_task(self.queue.get()))
            case ("cancel", int(which)) if self.getters:
                getter = self.getters[which % len(self.getters)]
                if getter.cancel():
                    self.getters.remove(getter)
            case ("done", int(which)) if self.running:
                self.queue.done(self.running.pop(which % len(self.running)), seconds=0.01)
            case ("retry", int(which)) if self.running:
                request = self.running[which % len(self.running)]
                self.owe(request, self.queue.retry(request))
            case ("pause", str(cluster)):
                self.queue.pause(cluster)
            case ("resume", str(cluster)):
                self.queue.resume(cluster)
            case ("pass", float(seconds)):
                await asyncio.sleep(seconds)

    async def finish(self) -> None:
        """Let everything be worked on that is owed."""
        for cluster in CLUSTERS:
            self.queue.resume(cluster)
        for _ in range(200):
            while self.running:
                self.queue.done(self.running.pop())
            if not self.owed:
                return
            if not self.getters:
                self.getters.append(asyncio.create_task(self.queue.get()))
            await asyncio.sleep(0.5)
            await self.collect()
        raise AssertionError(f"never looked at: {self.owed}")


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=40), st.booleans())
def test_every_change_is_looked_at_by_one_worker_at_a_time(actions: list[tuple[object, ...]], hasty: bool) -> None:
    async def scenario() -> None:
        workers = Workers()
        for action in actions:
            await workers.act(action)
            if not hasty:
                await asyncio.sleep(0)
                await workers.collect()
        await workers.finish()
        for getter in workers.getters:
            getter.cancel()
        await asyncio.gather(*workers.getters, return_exceptions=True)

    clock.run(scenario())
