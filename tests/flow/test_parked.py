"""Permanent failures are parked: they cost nothing, are never lost, and resume as soon as possible."""

import asyncio

import pytest
from harness import HOME, NAMESPACE, asked, built_in, crd, host_path, until, verbs, widget
from parked_scene import Gated, Maps, denied, open_to_all, refusing, warnings, without_room
from rules_scene import USER, edit
from shop_scene import copy_name, forget, many, settled, status, the_copy
from small_syncers import Widgets, copies

from kube_envtest import Rule
from syncer.api import Config, Context, Decision, Index, Indexes, Key, Obj, Refused, Side, Source, dig, key_of, wait
from syncer.api.reasons import RequestState
from syncer.daemon.pages import control as control_api
from syncer.daemon.pages.control import parked, retry, selection
from syncer.engine.controllers.retry_policy import PARKED_SECONDS
from syncer.engine.controllers.wakeups import LOOK_SECONDS
from syncer.observe.control import Control
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.objects import configmap, secret

#: Seconds within which what has become possible is done: two looks with their jitter.
SOON = 2.5 * LOOK_SECONDS


@pytest.fixture
def two() -> Gated:
    """A virtual cluster, and a host with admission."""
    return Gated()


# -- quotas ----------------------------------------------------------------------------------------


async def test_object_over_quota_is_synced_soon_after_the_quota_is_raised(two: Gated) -> None:
    async with without_room(two) as daemon:
        stands = status(daemon, "x", "maps")
        assert (stands.state, stands.error) == (RequestState.PARKED, "QuotaExceeded")
        refused, since = two.gate.refused, len(two.host.requests)
        await asyncio.sleep(120)
        assert two.gate.refused == refused
        assert verbs(two.host, since)["list"] == pytest.approx(120 / LOOK_SECONDS, rel=0.2)
        two.gate.limit(1)
        assert await until(lambda: "x" in copies(two)) < SOON
        assert daemon.status("x", "maps") is None


async def test_requests_are_retried_as_far_as_the_quota_has_room(two: Gated) -> None:
    two.gate.limit(0)
    many(two, 20)
    async with settled(two.daemon([Maps])):
        refused = two.gate.refused
        two.gate.limit(3)
        await until(lambda: len(copies(two)) == 3)
        await asyncio.sleep(120)
        assert two.gate.refused == refused
        assert len(copies(two)) == 3
        two.gate.limit(None)
        assert await until(lambda: len(copies(two)) == 20) < SOON


async def test_request_over_quota_is_retried_slowly_without_the_right_to_read_quotas(two: Gated) -> None:
    two.gate.grant("configmaps")
    async with without_room(two, user=USER):
        since = len(two.host.requests)
        await asyncio.sleep(120)
        assert verbs(two.host, since)["list"] == 1
        two.gate.limit(1)
        await until(lambda: "x" in copies(two), within=1.25 * PARKED_SECONDS)


async def test_quotas_are_not_polled_for_requests_that_are_gone(two: Gated) -> None:
    async with without_room(two):
        two.virtual.delete("configmaps", f"{NAMESPACE}/x")
        await asyncio.sleep(2 * LOOK_SECONDS)
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert verbs(two.host, since) == {}


# -- rights ----------------------------------------------------------------------------------------


async def test_right_that_is_granted_wakes_all_requests_after_one_review(two: Gated) -> None:
    two.gate.grant("configmaps", verbs=["get", "list", "watch"])
    many(two, 20)
    async with settled(two.daemon([Maps], user=USER)) as daemon:
        stands = status(daemon, "c0", "maps")
        assert (stands.state, stands.error) == (RequestState.PARKED, "Forbidden")
        assert 'resources: ["configmaps"], verbs: ["create"]' in stands.reason
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert 10 <= verbs(two.host, since)["create"] <= 15
        two.gate.grant("configmaps", name="more")
        assert await until(lambda: len(copies(two)) == 20) < SOON
        await asyncio.sleep(1)
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert verbs(two.host, since) == {}, "nobody asks any more"


# -- what the decision read ------------------------------------------------------------------------


class Needy(Maps):
    """They need the Secret of their name; its color is theirs on the host."""

    name = "needy"
    reads = (Source(Side.VIRTUAL, SECRETS),)

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        found = ctx.virtual(SECRETS, Key(NAMESPACE, virtual["metadata"]["name"]))
        if found is None and "patient" in virtual["data"]:
            return wait("there is no Secret of its name")
        if found is None and "strict" in virtual["data"]:
            raise Refused("there is no Secret of its name")
        return super().sync_down(ctx, virtual)

    def translate(self, ctx: Context[Config], virtual: Obj) -> Obj:
        found = ctx.virtual(SECRETS, Key(NAMESPACE, virtual["metadata"]["name"])) or {}
        return {**super().translate(ctx, virtual), "data": {"color": dig(found, "metadata.labels.color", "")}}


@pytest.mark.parametrize("manner", ["patient", "strict"])
async def test_missing_object_is_noticed_at_once_when_it_appears(two: Gated, manner: str) -> None:
    two.virtual.put(configmap("x", {manner: "yes"}))
    two.virtual.put(configmap("y", {manner: "yes"}))
    async with two.daemon([Needy]) as daemon:
        await asyncio.sleep(100)
        assert status(daemon, "x", "needy").state is (
            RequestState.PENDING if manner == "patient" else RequestState.PARKED
        )
        waits = {one.key.name: daemon.process.workers.wakeups.reasons(one) for one in daemon.requests("needy")}
        assert waits == {name: [f"a change of the virtual Secret shop/{name}"] for name in "xy"}
        two.virtual.put(secret("x"))
        assert await until(lambda: "x" in copies(two)) < 0.1
        assert "y" not in copies(two)


async def test_change_during_a_slow_write_is_not_overlooked(two: Gated) -> None:
    two.gate.admission, two.gate.delay = denied(), 5.0
    two.virtual.put(secret("x", metadata={"labels": {"color": "red"}}))
    two.virtual.put(configmap("x", {"any": "thing"}))
    async with two.daemon([Needy]) as daemon:
        await until(lambda: daemon.process.queue.running())
        await asyncio.sleep(1)
        edit(two, "virtual", "secrets", {"metadata": {"labels": {"color": "blue"}}})
        assert await until(lambda: "x" in copies(two)) < 6


async def test_request_that_no_longer_waits_leaves_nothing_behind(two: Gated) -> None:
    two.virtual.put(secret("other"))
    async with two.daemon([Needy]) as daemon:
        many(two, 10, {"strict": "yes"})
        await daemon.settled()
        assert len(daemon.requests("needy")) == 10
        forget(two, 10)
        await daemon.settled()
        store = daemon.process.pairs["vc"].informers.store(Side.VIRTUAL, SECRETS)
        assert store.waiters._waiting == {}
        assert daemon.process.workers.wakeups._waiting == {}
        assert list(daemon.process.statuses.troubles()) == []


# -- being parked ----------------------------------------------------------------------------------


async def test_hundred_parked_requests_rest_until_each_is_retried(
    two: Gated,
) -> None:
    two.gate.admission = denied()
    many(two, 100, {"color": "red"})
    async with settled(two.daemon([Maps])) as daemon:
        assert len(daemon.requests("maps")) == 100
        await until(lambda: two.gate.refused == 600, within=60)  # a few tries follow soon
        refused = two.gate.refused
        since = [len(server.requests) for server in (two.host, two.virtual)]
        await asyncio.sleep(0.7 * PARKED_SECONDS)
        assert two.gate.refused == refused
        assert verbs(two.host, since[0]) == {}
        others = [one for one in asked(two.virtual, since[1]) if one.resource != "events"]
        assert others == [], "only Events, of which so many are written a second"
        await asyncio.sleep(0.6 * PARKED_SECONDS)
        assert two.gate.refused == refused + 100


async def test_request_refused_by_a_stale_admission_is_retried_soon(two: Gated) -> None:
    two.gate.admission = denied(copy_name("x"))
    two.virtual.put(configmap("x"))
    async with two.daemon([Maps]):
        await until(lambda: two.gate.refused == 1)
        two.gate.admission = open_to_all
        await until(lambda: "x" in copies(two), within=5)


async def test_change_of_the_object_or_its_copy_wakes_it_at_once(two: Gated) -> None:
    two.gate.admission = denied()
    two.virtual.put(configmap("x", {"color": "blue"}))
    async with settled(two.daemon([Maps])) as daemon:
        edit(two, "virtual", "configmaps", {"data": {"color": "red"}})
        await daemon.settled()
        refused = two.gate.refused
        edit(two, "host", "configmaps", {"metadata": {"labels": {"touched": "yes"}}})
        await until(lambda: two.gate.refused == refused + 1, within=0.1)
        await asyncio.sleep(1)  # a host object is written twice a second at most
        edit(two, "virtual", "configmaps", {"data": {"color": "green"}})
        await until(lambda: the_copy(two, "configmaps", "x")["data"] == {"color": "green"}, within=0.1)


async def test_parked_requests_are_parked_again_after_a_restart(two: Gated) -> None:
    two.gate.admission = denied(copy_name("c3"))
    for number in range(6):
        two.virtual.put(configmap(f"c{number}", {"color": "red"} if number < 3 else {}))
    for _ in range(2):
        async with settled(two.daemon([Maps])) as daemon:
            parked = {one.key.name for one, status in daemon.process.statuses.troubles() if status.error}
            assert parked == {"c0", "c1", "c2", "c3"}
            assert copies(two) == {"c4", "c5"}
    two.gate.admission = open_to_all
    async with settled(two.daemon([Maps])):
        assert len(copies(two)) == 6


# -- what is told ----------------------------------------------------------------------------------


async def test_warning_speaks_of_virtual_names_alone(two: Gated) -> None:
    other, mine = host_path("other"), host_path("x")
    short, other_name = copy_name("x"), copy_name("other")
    refusal = (
        f'admission webhook "w.example.org" denied the request: {mine} ({short}) in namespace {HOME} '
        f'conflicts with "{other}", {other_name} and {HOME}/alien'
    )
    two.gate.admission = refusing(400, refusal)
    two.virtual.put(configmap("x"))
    async with two.daemon([Maps]) as daemon:
        await until(lambda: warnings(two))
        [message] = warnings(two)
        assert HOME not in message
        assert "-x-" not in message
        assert "alien" not in message
        assert 'shop/x (x) in namespace <host> conflicts with "shop/other", other and <host>' in message
        assert HOME in status(daemon, "x", "maps").reason, "the operator's log has it"


async def test_tenants_event_omits_the_rights_on_the_host(two: Gated) -> None:
    two.gate.grant("configmaps", verbs=["get", "list", "watch"])
    two.virtual.put(configmap("x"))
    async with two.daemon([Maps], user=USER):
        await until(lambda: warnings(two))
        assert warnings(two) == [
            "the syncer has no right to create configmaps on the host cluster; its operator has to grant it"
        ]


async def test_parked_list_shows_times_tries_and_wakeups_and_allows_a_retry(two: Gated) -> None:
    async with without_room(two, *built_in("secrets")) as daemon:
        await asyncio.sleep(100)
        [one] = parked(daemon.process, selection(daemon.process))
        assert (one["syncer"], one["key"], one["class"], one["tried"]) == ("maps", "shop/x", "QuotaExceeded", 1)
        assert 100 <= one["seconds"] <= 110
        assert one["since"].startswith("2026-")
        assert one["wakes"] == [
            "a change of the object or its copy",
            f"room in the quotas of namespace {HOME} on the host cluster",
        ]
        assert 0 < one["nextTry"] < 1.25 * PARKED_SECONDS
        of_kind = selection(daemon.process, kinds=["configmap"], key="shop/x")
        assert parked(daemon.process, of_kind) == [one]
        assert parked(daemon.process, selection(daemon.process, kinds=["secrets"])) == []
        with pytest.raises(Refused, match="called 'cheese'"):
            selection(daemon.process, kinds=["cheese"])
        two.gate.admission = open_to_all
        control = Control()
        control_api.add(control, daemon.process)
        assert await control.answer("GET", "/parked", {}) == (200, [one])
        assert (await control.answer("GET", "/parked", {"kind": "cheese"}))[0] == 409
        assert await control.answer("POST", "/retry", {"kind": "maps", "key": "shop/other"}) == (200, [])
        assert await control.answer("POST", "/retry", {"kind": "maps", "key": "shop/x"}) == (200, [one])
        assert await until(lambda: "x" in copies(two)) < 0.1
        assert parked(daemon.process, selection(daemon.process)) == []


class Indexed(Maps, Indexes):
    """Indexes the ConfigMaps; raises for the one called y."""

    def indexes(self) -> list[Index]:
        return [Index(Source(Side.VIRTUAL, CONFIG_MAPS), "uses", self.uses)]

    def uses(self, obj: Obj) -> list[str]:
        """Index an object."""
        if key_of(obj).name == "y":
            raise ValueError("a bug of the syncer")
        return []


async def test_retry_answers_with_the_requests_that_it_retries(two: Gated) -> None:
    two.gate.admission = denied(copy_name("x"))
    two.virtual.put(configmap("x"))
    two.virtual.put(configmap("y"))
    async with settled(two.daemon([Indexed])) as daemon:
        everything = selection(daemon.process)
        rows = parked(daemon.process, everything)
        assert [(row["key"], row["class"]) for row in rows] == [("shop/x", "Denied"), ("shop/y", "Unreadable")]
        assert [row["key"] for row in retry(daemon.process, everything)] == ["shop/x"]


# -- nothing is lost -------------------------------------------------------------------------------


class Mute(Exception):
    """An error without a usable message."""

    def __str__(self) -> str:
        raise RuntimeError


class Broken(Maps):
    """Raises, a few times, an error without a usable message."""

    name = "broken"
    left = 3

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        if Broken.left:
            Broken.left -= 1
            raise Mute
        return super().sync_down(ctx, virtual)


async def test_error_without_a_message_is_retried_like_any_other(two: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "left", 3)
    two.virtual.put(configmap("x"))
    async with two.daemon([Broken], workers=2) as daemon:
        await until(lambda: "x" in copies(two))
        assert not daemon.working.done()


class Patient(Widgets):
    """Widgets that wait for something once they are made."""

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        return super().sync_down(ctx, virtual).then(wait("there is more to come"))


@pytest.mark.parametrize("gone", [("virtual", "host"), ("virtual",)], ids=["it fails", "it succeeds"])
async def test_request_in_work_when_its_kind_goes_leaves_no_status(two: Gated, gone: tuple[str, ...]) -> None:
    for server in (two.virtual, two.host):
        server.put(crd("widgets"))
    async with settled(two.daemon([Patient])) as daemon:
        two.host.faults.add(Rule(verb="create", resource="widgets", latency=25))
        two.virtual.put(widget("w"))
        await until(lambda: daemon.process.queue.running())
        for side in gone:
            server = two.host if side == "host" else two.virtual
            server.delete("customresourcedefinitions.apiextensions.k8s.io", "widgets.example.org")
        await until(lambda: not daemon.process.pairs["vc"].controllers, within=200)
        await until(daemon.process.queue.is_idle)
        assert dict(daemon.process.statuses.count()) == {}
        assert daemon.process.workers.wakeups._waiting == {}


async def test_worker_that_is_stopped_in_the_middle_leaves_its_request_to_the_next(two: Gated) -> None:
    two.host.faults.add(Rule(verb="create", resource="configmaps", latency=60))
    two.virtual.put(configmap("x"))
    async with two.daemon([Maps]) as daemon:
        await until(lambda: daemon.process.queue.running())
        daemon.working.cancel()
        await asyncio.wait({daemon.working})
        assert [one.key.name for one in daemon.process.queue._waiting if one.key.name == "x"] == ["x"]


async def test_delay_of_a_retry_is_bounded_for_each_kind(two: Gated) -> None:
    two.gate.admission = refusing(500, "broken")
    two.virtual.put(configmap("x"))
    async with two.daemon(built_in("configmaps"), options={"configMaps": {"all": True, "maxRetryDelay": "2s"}}):
        await asyncio.sleep(60)
        refused = two.gate.refused
        await asyncio.sleep(60)
        assert 30 <= two.gate.refused - refused <= 50
