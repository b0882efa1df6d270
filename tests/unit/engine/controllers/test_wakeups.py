"""Requests that wait for a quota or a right are woken when it is available, in order and not before."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from syncer.api import (
    Forbidden,
    Key,
    MissingRight,
    NotFound,
    Obj,
    ObjectRef,
    QuotaExceeded,
    Refused,
    Resource,
    Side,
    SyncRequest,
    Unreachable,
)
from syncer.cache.handlers import Waiters
from syncer.engine.controllers.wakeups import LOOK_SECONDS, NAMES_AT_ONCE, Wakeups
from syncer.engine.reconcile.controller import Read
from syncer.resources.kinds import CONFIG_MAPS, SELF_ACCESS_REVIEWS
from syncer.workqueue.queue import Queue

A, B, C = (SyncRequest("vc", "pods", Key("shop", name)) for name in "abc")
RIGHT = MissingRight("patch", "apps", "deployments/status", "home")


@dataclass(eq=False)
class Server:
    """The host as far as it is asked."""

    side: Side = Side.HOST
    virtual_cluster: str = ""
    quotas: list[Obj] = field(default_factory=list)
    allowed: bool = False
    error: Exception | None = None
    gone: set[str] = field(default_factory=set)
    asked: list[Any] = field(default_factory=list)

    async def list(self, resource: Resource, *, namespace: str = "") -> Sequence[Obj]:
        self.asked.append(namespace)
        if self.error:
            raise self.error
        return self.quotas

    async def get(self, resource: Resource, key: Key) -> Obj:
        self.asked.append(key.name)
        if self.error:
            raise self.error
        if key.name in self.gone:
            raise NotFound("no")
        return {}

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        assert resource == SELF_ACCESS_REVIEWS
        self.asked.append(obj["spec"]["resourceAttributes"])
        if self.error:
            raise self.error
        return {"status": {"allowed": self.allowed}}


@dataclass
class ClusterPair:
    """A pair with servers alone."""

    host: Server = field(default_factory=Server)
    name: str = "vc"

    @property
    def virtual(self) -> Server:
        raise AssertionError


class Scene:
    """A running waking with its queue and its server."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.queue = Queue(clock=self.loop.time, spread=lambda: 0.5)
        self.wakeups, self.pair = Wakeups(self.queue), ClusterPair()
        self.task = asyncio.create_task(self.wakeups.run())

    @property
    def server(self) -> Server:
        return self.pair.host

    def park(self, request: SyncRequest, error: Exception, pair: ClusterPair | None = None) -> None:
        self.queue.add(request, after=300, low=True)
        self.wakeups.park(pair or self.pair, request, (), error)  # type: ignore[arg-type]

    async def woken(self, seconds: float = LOOK_SECONDS + 0.1) -> list[str]:
        """Return the names of those that are in the queue after so many seconds."""
        await asyncio.sleep(seconds)
        found = []
        while self.queue.depth():
            request, _ = await self.queue.get()
            self.queue.done(request)
            found.append(request.key.name)
        return found


def no_room(quota: str = "q", **requested: str) -> QuotaExceeded:
    return QuotaExceeded("no", quota=quota, requested=requested, side=Side.HOST, key=Key("home", "x"))


def taken(name: str) -> Refused:
    return Refused("no", in_the_way=ObjectRef(Side.HOST, CONFIG_MAPS, Key("home", name)))


def quota(name: str = "q", *, hard: Mapping[str, str], used: Mapping[str, str]) -> Obj:
    return {"metadata": {"name": name}, "status": {"hard": dict(hard), "used": dict(used)}}


@contextlib.asynccontextmanager
async def waking() -> AsyncIterator[Scene]:
    """Yield a running waking, which no fault may end."""
    scene = Scene()
    yield scene
    assert not scene.task.done()


@pytest.mark.parametrize(
    ("hard", "used", "woken"),
    [
        ({"cpu": "2"}, {"cpu": "2"}, []),
        ({"cpu": "2"}, {"cpu": "1500m"}, ["a"]),
        ({"cpu": "2"}, {"cpu": "1"}, ["a", "b"]),
        ({"cpu": "2"}, {}, ["a", "b", "c"]),
        ({"cpu": "2", "memory": "1Gi"}, {"cpu": "0", "memory": "900Mi"}, ["a"]),
        ({}, {}, ["a", "b", "c"]),
    ],
)
async def test_requests_that_fit_a_quota_are_woken_in_order(
    hard: Mapping[str, str], used: Mapping[str, str], woken: list[str]
) -> None:
    async with waking() as scene:
        for request in (A, B, C):
            scene.park(request, no_room(cpu="500m", memory="100Mi"))
        scene.server.quotas = [quota(hard=hard, used=used)]
        assert await scene.woken() == woken
        assert scene.server.asked == ["home"]


async def test_request_is_woken_when_its_quota_is_gone_but_not_for_another() -> None:
    async with waking() as scene:
        scene.park(A, no_room("gone", pods="1"))
        scene.park(B, no_room("q", pods="1"))
        scene.server.quotas = [quota(hard={"pods": "1"}, used={"pods": "1"})]
        assert await scene.woken() == ["a"]


async def test_refusal_without_named_needs_waits_for_the_slow_timer() -> None:
    async with waking() as scene:
        scene.park(A, no_room("q"))
        scene.server.quotas = [quota(hard={"pods": "9"}, used={"pods": "1"})]
        assert await scene.woken(60) == []
        assert list(scene.queue.delayed()) == [A]


async def test_right_is_polled_by_one_request() -> None:
    async with waking() as scene:
        error = Forbidden("no", right=RIGHT, side=Side.HOST)
        for request in (A, B):
            scene.park(request, error)
        assert await scene.woken() == []
        names = {"verb": "patch", "group": "apps", "resource": "deployments", "subresource": "status"}
        assert scene.server.asked == [{**names, "namespace": "home"}]
        scene.server.allowed = True
        assert await scene.woken() == ["a", "b"]
        asked = len(scene.server.asked)
        assert await scene.woken(100) == []
        assert len(scene.server.asked) == asked
        assert not scene.wakeups._wanted.is_set()


async def test_quota_is_polled_again_after_a_failure_but_not_without_the_right() -> None:
    async with waking() as scene:
        scene.server.error = Unreachable("no answer")
        scene.park(A, no_room(pods="1"))
        await scene.woken(3 * LOOK_SECONDS + 0.1)
        assert len(scene.server.asked) == 3
        scene.server.error = Forbidden("no right to list quotas")
        await scene.woken(100)
        assert len(scene.server.asked) == 4
        assert scene.wakeups.reasons(A) == [], "it is the slow timer that wakes it"


async def test_server_that_answers_nonsense_ends_nothing() -> None:
    async with waking() as scene:
        scene.park(A, no_room(pods="1"))
        scene.server.quotas = [{"metadata": {}}]
        await scene.woken()
        scene.server.quotas = []
        assert await scene.woken() == ["a"]


async def test_parked_request_keeps_nothing_of_the_attempt_that_failed() -> None:
    async with waking() as scene:

        def attempt() -> "weakref.ref[Server]":
            plan = Server()
            try:
                raise no_room(pods="1")
            except QuotaExceeded as error:
                scene.park(A, error)
            return weakref.ref(plan)

        plan = attempt()
        gc.collect()
        assert plan() is None
        assert await scene.woken() == ["a"]


async def test_forgotten_request_is_not_woken() -> None:
    async with waking() as scene:
        for request in (A, B, C):
            scene.park(request, no_room(pods="1"))
        scene.wakeups.forget(A)
        scene.wakeups.drop("vc", "secrets")
        assert await scene.woken() == ["b", "c"]
        scene.park(C, no_room(pods="1"))
        scene.wakeups.drop("vc", "pods")
        assert await scene.woken() == []
        assert scene.wakeups._waiting == {}


@dataclass
class Store:
    """An object that changes."""

    waiters: Waiters = field(default_factory=Waiters)

    def entry(self, key: Key) -> None:
        """Return that there is none."""


async def test_change_that_wakes_many_parked_requests_does_not_hold_up_others() -> None:
    async with waking() as scene:
        store, shared = Store(), Key("shop", "shared")
        reads: Any = (Read(store, shared, None),)  # type: ignore[arg-type]
        for number in range(500):
            request = SyncRequest("vc", "pods", Key("shop", f"stuck{number}"))
            scene.queue.add(request, after=300, low=True)
            scene.wakeups.park(scene.pair, request, reads, Refused("no"))  # type: ignore[arg-type]
        scene.wakeups.wait(B, reads)
        store.waiters.notify(shared)
        scene.queue.add(SyncRequest("vc", "pods", Key("bank", "fresh")))
        order = await scene.woken(0)
        assert len(order) == 502
        assert order.index("b") < 10, "it only waits for what it names, which may be there now"
        assert order.index("fresh") < 10


async def test_request_that_waits_for_many_objects_is_woken_by_one_function() -> None:
    async with waking() as scene:
        store = Store()
        reads: Any = [Read(store, Key("shop", f"s{number}"), None) for number in range(256)]  # type: ignore[arg-type]
        scene.wakeups.wait(A, reads)
        wakes = {id(wake) for waiting in store.waiters._waiting.values() for wake in waiting.values()}
        assert (len(store.waiters._waiting), len(wakes)) == (256, 1)


async def test_name_is_looked_up_until_it_is_free() -> None:
    async with waking() as scene:
        scene.park(A, taken("x"))
        scene.park(B, taken("y"))
        assert scene.wakeups.reasons(A) == ["the deletion of the ConfigMap home/x on the host cluster"]
        assert await scene.woken() == []
        scene.server.gone.add("x")
        assert await scene.woken() == ["a"]
        assert scene.server.asked == ["x", "y", "x", "y"]


async def test_many_names_of_a_virtual_cluster_are_looked_up_in_turn_and_hold_up_no_other() -> None:
    async with waking() as scene:
        other = ClusterPair(name="other")
        for number in range(3 * NAMES_AT_ONCE):
            scene.park(SyncRequest("vc", "maps", Key("shop", f"x{number}")), taken(f"x{number}"))
        scene.park(A, taken("mine"), other)
        for _ in range(3):
            assert await scene.woken() == []
        assert scene.server.asked == [f"x{number}" for number in range(3 * NAMES_AT_ONCE)]
        assert other.host.asked == ["mine"] * 3


async def test_name_that_may_not_be_read_is_left_to_the_slow_timer() -> None:
    async with waking() as scene:
        scene.server.error = Forbidden("no", side=Side.HOST)
        scene.park(A, taken("x"))
        assert await scene.woken(60) == []
        assert (scene.server.asked, scene.wakeups.reasons(A)) == (["x"], [])
