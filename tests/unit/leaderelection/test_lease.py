"""Leader election: one leads, never two, whatever the API server and the clocks do."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncer.api import AlreadyExists, ConfigError, Conflict, Key, NotFound, Obj, Resource, Unreachable
from syncer.leaderelection import lease as lease_module
from syncer.leaderelection.lease import AnotherLeads, Lease, LeaseLost

KEY = Key("vc-shop", "vsyncer")


class Api:
    """One Lease, kept as an API server keeps it."""

    def __init__(self) -> None:
        self.lease: Obj | None = None
        self.writes = 0
        self.before_patch: Callable[[], object] | None = None

    async def get(self, resource: Resource, key: Key) -> Obj:
        if self.lease is None:
            raise NotFound("no such lease")
        return self.lease

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        if self.lease is not None:
            raise AlreadyExists("the lease exists")
        return self.keep(obj)

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        if self.before_patch:
            act, self.before_patch = self.before_patch, None
            act()
        if self.lease is None:
            raise NotFound("no such lease")
        if patch["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("the lease has changed")
        return self.keep({"metadata": {}, "spec": self.lease["spec"] | patch["spec"]})

    def keep(self, obj: Obj) -> Obj:
        self.writes += 1
        metadata = obj["metadata"] | {"resourceVersion": str(self.writes)}
        self.lease = {"metadata": metadata, "spec": obj["spec"]}
        return self.lease

    @property
    def spec(self) -> Obj:
        assert self.lease
        spec: Obj = self.lease["spec"]
        return spec


class Line:
    """One daemon's way to the API server: it can break, hang, or hang only after the write has been made."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.state = "up"

    async def _call(self, call: Coroutine[Any, Any, Obj]) -> Obj:
        if self.state == "reply lost":
            await call
        elif self.state == "up":
            return await call
        call.close()
        if self.state == "down":
            raise Unreachable("connection refused")
        return await asyncio.Future()

    def kubernetes_client(self) -> Any:
        raise AssertionError("a lease is kept by our own client")

    async def get(self, resource: Resource, key: Key) -> Obj:
        return await self._call(self.api.get(resource, key))

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        return await self._call(self.api.create(resource, obj))

    async def try_create(self, resource: Resource, obj: Obj) -> Obj:
        raise AssertionError("nothing is tried")

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        return await self._call(self.api.patch(resource, key, patch))

    async def list(self, resource: Resource, *, namespace: str = "", selector: str = "") -> Sequence[Obj]:
        raise AssertionError("nothing is listed")

    async def delete(self, resource: Resource, key: Key, *, uid: str | None = None) -> Obj | None:
        raise AssertionError("nothing is deleted")


class Daemon:
    """A contender: its line, its wall clock, and its terms as ``[begin, end]`` in loop time."""

    busy: "list[Daemon]"

    def __init__(self, api: Api, name: str, busy: "list[Daemon]", *, skew: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self.line, self.name, self.busy, self.drain = Line(api), name, busy, 0.0
        self.jump = 0.0
        self.terms: list[list[float]] = []
        self.lease = Lease(
            self.line,
            key=KEY,
            identity=name,
            clock=lambda: loop.time() + self.jump,
            random=lambda: 0.5,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=skew + loop.time()),
        )
        self.task = asyncio.create_task(self.lease.lead(self.work))

    async def work(self) -> None:
        loop = asyncio.get_running_loop()
        assert not self.busy, f"{self.name} and {self.busy[0].name} lead at the same time"
        self.busy.append(self)
        self.terms.append([loop.time()])
        try:
            await asyncio.Future()
        finally:
            await asyncio.sleep(self.drain)
            self.busy.remove(self)
            self.terms[-1].append(loop.time())

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


@contextlib.asynccontextmanager
async def contenders(*, skew: float = 0.0) -> AsyncIterator[tuple[Api, Daemon, Daemon]]:
    """Two contenders, the first a moment ahead; ``skew``: how far the second one's wall clock is off."""
    api, busy = Api(), list[Daemon]()
    first = Daemon(api, "first", busy)
    await asyncio.sleep(0.1)
    second = Daemon(api, "second", busy, skew=skew)
    await asyncio.sleep(5)
    assert first.lease.is_leader
    assert not second.lease.is_leader
    yield api, first, second
    for daemon in (first, second):
        if daemon.task.done() and not daemon.task.cancelled():
            await daemon.task
        await daemon.stop()


async def test_lease_records_holder_and_time_of_acquisition() -> None:
    async with contenders() as (api, _, second):
        assert api.spec["holderIdentity"] == "first"
        assert api.spec["leaseDurationSeconds"] == 15
        assert api.spec["leaseTransitions"] == 0
        assert api.spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        assert api.spec["renewTime"] == "2026-01-01T00:00:04.000000Z"
        assert second.lease.holder == "first"


async def test_leader_that_is_well_leads_on_with_one_write_in_a_retry_period() -> None:
    async with contenders() as (api, _, second):
        before = api.writes
        await asyncio.sleep(3600)
        assert api.writes - before == 1800
        assert second.terms == []


@pytest.mark.parametrize("state", ["down", "hanging", "reply lost"])
async def test_leader_cut_off_ends_its_term_before_another_begins_and_takes_part_again(state: str) -> None:
    async with contenders() as (api, first, second):
        first.line.state = state
        cut = asyncio.get_running_loop().time()
        await asyncio.sleep(40)
        assert first.terms[0][1] - cut <= 10
        assert second.lease.is_leader
        assert second.terms[0][0] - first.terms[0][1] >= 5 - 0.2
        first.line.state, second.line.state = "up", "down"
        await asyncio.sleep(40)
        assert first.lease.is_leader
        assert api.spec["leaseTransitions"] == 2


@pytest.mark.parametrize("seed", range(20))
async def test_no_two_leaders_on_a_faulty_network(seed: int) -> None:
    chance = random.Random(seed)
    async with contenders() as (_, first, second):
        for _ in range(200):
            daemon = chance.choice([first, second])
            daemon.line.state = chance.choice(["up", "up", "down", "hanging", "reply lost"])
            await asyncio.sleep(chance.uniform(0, 12))
        first.line.state = second.line.state = "up"
        await asyncio.sleep(30)
        assert first.lease.is_leader != second.lease.is_leader


async def test_leader_rides_out_a_failure_shorter_than_its_deadline() -> None:
    async with contenders() as (_, first, _):
        first.line.state = "hanging"
        await asyncio.sleep(7)
        first.line.state = "up"
        await asyncio.sleep(60)
        assert len(first.terms) == 1
        assert first.lease.is_leader


@pytest.mark.parametrize("skew", [-86400.0, 86400.0])
async def test_wall_clocks_of_others_do_not_matter(skew: float) -> None:
    async with contenders(skew=skew) as (_, first, second):
        await asyncio.sleep(60)
        assert second.terms == []
        died = asyncio.get_running_loop().time()
        first.line.state = "down"
        await asyncio.sleep(30)
        assert 10 <= second.terms[0][0] - died <= 15 + 2 * 2.2


async def test_leader_that_stops_gives_the_lease_up_and_the_next_begins_soon() -> None:
    async with contenders() as (api, first, second):
        await first.stop()
        assert api.spec["holderIdentity"] == ""
        assert api.spec["leaseDurationSeconds"] == 1
        assert not first.lease.is_leader
        await asyncio.sleep(2 * 2.2)
        assert second.lease.is_leader
        assert api.spec["leaseTransitions"] == 1


async def test_lease_is_kept_while_the_work_winds_down() -> None:
    async with contenders() as (api, first, second):
        first.drain = 60
        await first.stop()
        assert first.terms[0][1] - first.terms[0][0] >= 60
        assert second.terms == []
        assert api.spec["holderIdentity"] == ""


async def test_stopping_twice_does_not_wait_and_leaves_the_lease_to_run_out() -> None:
    async with contenders() as (api, first, second):
        first.drain = 9
        first.task.cancel()
        await asyncio.sleep(1)
        before = asyncio.get_running_loop().time()
        await first.stop()
        assert asyncio.get_running_loop().time() == before
        assert api.spec["holderIdentity"] == "first"
        await asyncio.sleep(40)
        assert second.lease.is_leader


async def test_stopped_process_that_wakes_up_does_not_think_that_it_leads() -> None:
    async with contenders() as (_, first, _):
        first.jump = 30
        assert not first.lease.is_leader
        await asyncio.sleep(3)
        assert len(first.terms[0]) == 2, "the work of the old term has ended"


async def test_other_holder_of_the_lease_ends_the_term_at_the_next_renewal() -> None:
    async with contenders() as (api, first, _):
        api.keep({"metadata": {}, "spec": api.spec | {"holderIdentity": "a person"}})
        await asyncio.sleep(2)
        assert not first.lease.is_leader
        assert len(first.terms[0]) == 2
        assert first.lease.holder == "a person"


async def test_change_by_others_that_leaves_us_the_holder_does_not_end_the_term() -> None:
    async with contenders() as (api, first, _):
        for _ in range(10):
            api.keep({"metadata": {"labels": {"touched": "yes"}}, "spec": api.spec})
            await asyncio.sleep(2)
        assert len(first.terms) == 1
        assert first.lease.is_leader


async def test_deleted_lease_is_recreated_by_its_leader() -> None:
    async with contenders() as (api, first, second):
        await second.stop()
        api.lease = None
        await asyncio.sleep(2)
        assert api.spec["holderIdentity"] == "first"
        assert len(first.terms) == 1


async def test_slower_candidate_knows_the_new_holder() -> None:
    async with contenders() as (api, first, second):
        await first.stop()
        taken = api.spec | {"holderIdentity": "third", "leaseDurationSeconds": 15}
        api.before_patch = lambda: api.keep({"metadata": {}, "spec": taken})
        await asyncio.sleep(5)
        assert second.terms == []
        assert second.lease.holder == "third"


async def test_work_that_ends_by_itself_ends_the_leading_and_its_error_is_raised() -> None:
    api = Api()
    lease = Lease(api, key=KEY, identity="only")  # type: ignore[arg-type]

    async def done() -> None:
        assert lease.is_leader

    async def broken() -> None:
        raise RuntimeError("broken")

    await lease.lead(done)
    assert api.spec["holderIdentity"] == ""
    with pytest.raises(RuntimeError, match="broken"):
        await lease.lead(broken)
    assert api.spec["holderIdentity"] == ""


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_cannot_work_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match=r"leaderElection: .*do not fit together"):
        Lease(
            Api(),  # type: ignore[arg-type]
            key=KEY,
            identity="x",
            duration=times[0],
            renew_deadline=times[1],
            retry_period=times[2],
            clock=lambda: 0.0,
        )


# -- held for a time -------------------------------------------------------------------------------


def command(api: Api, line: Line | None = None) -> Lease:
    loop = asyncio.get_running_loop()
    return Lease(line or Line(api), key=KEY, identity="command", clock=loop.time, random=lambda: 0.5)


async def test_command_holds_the_lease_while_it_works_then_releases_it() -> None:
    api = Api()
    async with command(api).holding():
        await asyncio.sleep(600)
        assert api.spec["holderIdentity"] == "command"
    assert api.spec["holderIdentity"] == ""


async def test_failed_or_cancelled_command_releases_the_lease_and_keeps_its_error() -> None:
    api = Api()
    for error in (ZeroDivisionError, TimeoutError, asyncio.CancelledError):
        with pytest.raises(error):
            async with command(api).holding():
                raise error
        assert api.spec["holderIdentity"] == ""


async def test_command_is_refused_once_the_holder_renews() -> None:
    async with contenders() as (api, first, _):
        begun = asyncio.get_running_loop().time()
        with pytest.raises(AnotherLeads, match="first leads") as raised:
            async with command(api).holding():
                raise AssertionError
        assert raised.value.holder == "first"
        assert asyncio.get_running_loop().time() - begun <= 4
        assert first.lease.is_leader


async def test_lease_of_a_dead_daemon_is_waited_for() -> None:
    api, loop = Api(), asyncio.get_running_loop()
    api.keep({"metadata": {}, "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15}})
    async with command(api).holding():
        assert 15 <= loop.time() <= 17
    assert api.spec["leaseTransitions"] == 1


async def test_command_that_cant_reach_the_lease_does_not_begin() -> None:
    api = Api()
    line = Line(api)
    line.state = "hanging"
    with pytest.raises(AnotherLeads, match="the leader is unknown"):
        async with command(api, line).holding():
            raise AssertionError
    assert asyncio.get_running_loop().time() < 30


@pytest.mark.parametrize("why", ["taken", "cut off"])
async def test_command_that_loses_the_lease_is_ended(why: str) -> None:
    api, ended = Api(), ""
    line = Line(api)
    with pytest.raises(LeaseLost, match="was lost"):
        async with command(api, line).holding():
            if why == "taken":
                api.keep({"metadata": {}, "spec": api.spec | {"holderIdentity": "thief"}})
            else:
                line.state = "down"
            try:
                await asyncio.sleep(600)
            finally:
                ended = f"{asyncio.get_running_loop().time():g}"
    assert float(ended) <= 10
    assert api.spec["holderIdentity"] == ("thief" if why == "taken" else "command")


@pytest.mark.parametrize(
    ("other", "is_stranger"),
    [
        pytest.param("plane/syncer-59bfb5c9fd-q7xvz_1234abcd", False, id="replica"),
        pytest.param("plane/syncer-6c4d8b7f99-2hk4p_1234abcd", False, id="replica of another revision"),
        pytest.param("plane/other-syncer-59bfb5c9fd-q7xvz_1234abcd", True, id="another release"),
        pytest.param("other/syncer-59bfb5c9fd-q7xvz_1234abcd", True, id="a release of the same name elsewhere"),
    ],
)
async def test_standby_logs_the_holder_and_recognizes_replicas(
    monkeypatch: pytest.MonkeyPatch, other: str, is_stranger: bool
) -> None:
    logged: list[tuple[str, object]] = []
    monkeypatch.setattr(lease_module.log, "info", lambda message, **keys: logged.append((message, keys.get("holder"))))
    api, busy = Api(), list[Daemon]()
    first = Daemon(api, other, busy)
    await asyncio.sleep(0.1)
    second = Daemon(api, "plane/syncer-59bfb5c9fd-b8m2d_5678abcd", busy)
    await asyncio.sleep(30)
    assert first.lease.is_leader
    assert (first.lease.stranger, second.lease.stranger) == ("", other if is_stranger else "")
    assert [each for each in logged if each[0] == "standing by"] == [("standing by", other)]
    for each in (second, first):
        await each.stop()
