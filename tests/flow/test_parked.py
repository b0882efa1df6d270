"""What won't pass by itself is parked: it costs nothing, is never lost, and goes on as soon as it can."""

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from harness import HOME, NAMESPACE, Two, built_in, crd, namespace, place, play, until, verbs, widget
from small_syncers import Widgets, copies

from syncer.api import Config, Context, Decision, Key, Mirror, Obj, Refused, Side, Source, dig, skip, wait
from syncer.clusters.transport import Reply, Stream, Transport
from syncer.flow.asking import answers
from syncer.flow.asking.parked import listed
from syncer.flow.queueing.ledger import State
from syncer.flow.queueing.outcomes import PARKED_SECONDS
from syncer.flow.queueing.waking import LOOK_SECONDS
from syncer.observe.control import Control
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.apiserver import ApiServer, Rule
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, secret

#: Seconds within which what has become possible is done: two looks with their jitter.
SOON = 2.5 * LOOK_SECONDS

#: What admission says to a request: its method, path and body; None lets it pass.
Admission = Callable[[str, str, Any], tuple[int, str] | None]


class Maps(Mirror[Config]):
    """ConfigMaps, but for those that every namespace has."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        if virtual["metadata"]["name"] == "kube-root-ca.crt":
            return skip("every namespace has one")
        return super().sync_down(ctx, virtual)


class Gate:
    """A transport with an admission of the test's own before the server."""

    def __init__(self, inner: Transport, server: "Guarded") -> None:
        self._inner, self._server = inner, server

    async def request(self, method: str, path: str, *, body: bytes | None = None, **options: Any) -> Reply:
        said = self._server.admission(method, path.partition("?")[0], json.loads(body) if body else None)
        if said is None:
            return await self._inner.request(method, path, body=body, **options)
        await asyncio.sleep(self._server.delay)
        self._server.refused += 1
        status = {"kind": "Status", "code": said[0], "reason": "Forbidden", "message": said[1]}
        return Reply(said[0], {}, json.dumps(status).encode())

    def stream(self, path: str, **options: Any) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(path, **options)

    async def close(self) -> None:
        await self._inner.close()


class Guarded(ApiServer):
    """A host whose admission is the test's."""

    def __init__(self) -> None:
        super().__init__(seed="host", rbac=True)
        self.put(namespace(HOME))
        self.admission: Admission = lambda method, path, body: None
        self.refused, self.delay = 0, 0.0

    def transport(self, user: Any = "admin") -> Any:
        return Gate(super().transport(user), self)

    def limit(self, hard: int | None) -> None:
        """Let there be so many ConfigMaps, and the quota say so."""
        if hard is None:
            self.delete("resourcequotas", f"{HOME}/small")
            self.admission = lambda method, path, body: None
            return
        numbers = {"hard": {"count/configmaps": str(hard)}, "used": {"count/configmaps": str(self.used())}}
        metadata = {"name": "small", "namespace": HOME}
        self.put({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": numbers})
        self.admission = self._quota

    def used(self) -> int:
        return sum(copy["metadata"]["name"] != "kube-root-ca.crt" for copy in self.objects("configmaps", HOME))

    def _quota(self, method: str, path: str, body: Any) -> tuple[int, str] | None:
        quota = self.get("resourcequotas", f"{HOME}/small") or {}
        hard, used = (int(quota["status"][part]["count/configmaps"]) for part in ("hard", "used"))
        if method != "POST" or not path.endswith("/configmaps"):
            return None
        if used < hard:
            self.put(merged(quota, {"status": {"used": {"count/configmaps": str(used + 1)}}}))
            return None
        return 403, (
            f'configmaps "{body["metadata"]["name"]}" is forbidden: exceeded quota: small, requested: '
            f"count/configmaps=1, used: count/configmaps={used}, limited: count/configmaps={hard}"
        )


@pytest.fixture
def two() -> Two:
    """A virtual cluster, and a host with admission."""
    made = Two()
    made.host = Guarded()
    return made


def host(two: Two) -> Guarded:
    assert isinstance(two.host, Guarded)
    return two.host


def told(two: Two, name: str = "x") -> list[str]:
    """The messages of the warnings about an object of the shop."""
    events = two.virtual.objects("events", NAMESPACE)
    return [each["message"] for each in events if each["involvedObject"]["name"] == name]


def denied(*names: str) -> Admission:
    """A webhook that refuses objects whose data says so, or of these names on the host."""

    def admission(method: str, path: str, body: Any) -> tuple[int, str] | None:
        bad = method in ("POST", "PATCH") and ((body or {}).get("data") or {}).get("color") == "red"
        if bad or (method == "POST" and body["metadata"]["name"] in names):
            return 403, 'admission webhook "colors.example.org" denied the request: not in this town'
        return None

    return admission


# -- quotas ------------------------------------------------------------------------------------------------------------


def test_what_a_quota_has_no_room_for_is_synced_soon_after_it_is_raised_and_not_tried_before(two: Two) -> None:
    async def scenario() -> None:
        host(two).limit(0)
        two.virtual.put(configmap("x"))
        async with two.daemon([Maps]) as daemon:
            await daemon.settled()
            standing = daemon.standing("x", "maps")
            assert standing
            assert (standing.state, standing.error) == (State.PARKED, "QuotaExceeded")
            refused, seen = host(two).refused, len(two.host.requests)
            await asyncio.sleep(120)
            assert host(two).refused == refused
            assert verbs(two.host, seen)["list"] == pytest.approx(120 / LOOK_SECONDS, rel=0.2)
            host(two).limit(1)
            assert await until(lambda: "x" in copies(two)) < SOON
            assert daemon.standing("x", "maps") is None

    play(scenario)


def test_as_many_are_tried_as_there_is_room_for(two: Two) -> None:
    async def scenario() -> None:
        host(two).limit(0)
        for number in range(20):
            two.virtual.put(configmap(f"c{number}"))
        async with two.daemon([Maps]) as daemon:
            await daemon.settled()
            refused = host(two).refused
            host(two).limit(3)
            await until(lambda: len(copies(two)) == 3)
            await asyncio.sleep(120)
            assert host(two).refused == refused
            assert len(copies(two)) == 3
            host(two).limit(None)
            assert await until(lambda: len(copies(two)) == 20) < SOON

    play(scenario)


def test_without_the_right_to_see_quotas_it_is_tried_slowly(two: Two) -> None:
    async def scenario() -> None:
        for obj in rights("configmaps"):
            two.host.put(obj)
        host(two).limit(0)
        two.virtual.put(configmap("x"))
        async with two.daemon([Maps], user="daemon") as daemon:
            await daemon.settled()
            seen = len(two.host.requests)
            await asyncio.sleep(120)
            assert verbs(two.host, seen)["list"] == 1
            host(two).limit(1)
            await until(lambda: "x" in copies(two), within=1.25 * PARKED_SECONDS)

    play(scenario)


def test_nobody_looks_at_quotas_for_what_is_gone(two: Two) -> None:
    async def scenario() -> None:
        host(two).limit(0)
        two.virtual.put(configmap("x"))
        async with two.daemon([Maps]) as daemon:
            await daemon.settled()
            two.virtual.delete("configmaps", f"{NAMESPACE}/x")
            await asyncio.sleep(2 * LOOK_SECONDS)
            seen = len(two.host.requests)
            await asyncio.sleep(60)
            assert verbs(two.host, seen) == {}

    play(scenario)


# -- rights ------------------------------------------------------------------------------------------------------------


def rights(*resources: str, verbs: Iterable[str] = ("*",), name: str = "r") -> list[Obj]:
    """Rights of the daemon's user in its namespace on the host."""
    rbac = "rbac.authorization.k8s.io"
    metadata = {"name": name, "namespace": HOME}
    rule = {"apiGroups": [""], "resources": list(resources), "verbs": list(verbs)}
    subject = {"apiGroup": rbac, "kind": "User", "name": "daemon"}
    reference = {"apiGroup": rbac, "kind": "Role", "name": name}
    return [
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        },
    ]


def test_what_lacks_a_right_is_synced_soon_after_it_is_given_and_one_question_is_asked_for_all(two: Two) -> None:
    async def scenario() -> None:
        for obj in rights("configmaps", verbs=["get", "list", "watch"]):
            two.host.put(obj)
        for number in range(20):
            two.virtual.put(configmap(f"c{number}"))
        async with two.daemon([Maps], user="daemon") as daemon:
            await daemon.settled()
            standing = daemon.standing("c0", "maps")
            assert standing
            assert (standing.state, standing.error) == (State.PARKED, "Forbidden")
            assert 'resources: ["configmaps"], verbs: ["create"]' in standing.reason
            seen = len(two.host.requests)
            await asyncio.sleep(60)
            assert 10 <= verbs(two.host, seen)["create"] <= 15
            for obj in rights("configmaps", name="more"):
                two.host.put(obj)
            assert await until(lambda: len(copies(two)) == 20) < SOON
            await asyncio.sleep(1)
            seen = len(two.host.requests)
            await asyncio.sleep(60)
            assert verbs(two.host, seen) == {}, "nobody asks any more"

    play(scenario)


# -- what the decision read --------------------------------------------------------------------------------------------


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
def test_what_was_missing_is_seen_at_once_when_it_appears(two: Two, manner: str) -> None:
    async def scenario() -> None:
        two.virtual.put(configmap("x", {manner: "yes"}))
        two.virtual.put(configmap("y", {manner: "yes"}))
        async with two.daemon([Needy]) as daemon:
            await asyncio.sleep(100)
            standing = daemon.standing("x", "needy")
            assert standing
            assert standing.state is (State.PENDING if manner == "patient" else State.PARKED)
            waits = {one.key.name: daemon.engine.workers.waking.reasons(one) for one in daemon.requests("needy")}
            assert waits == {name: [f"a change of the virtual Secret shop/{name}"] for name in "xy"}
            two.virtual.put(secret("x"))
            assert await until(lambda: "x" in copies(two)) < 0.1
            assert "y" not in copies(two)

    play(scenario)


def test_what_changes_while_the_host_thinks_about_it_is_not_overlooked(two: Two) -> None:
    async def scenario() -> None:
        host(two).admission, host(two).delay = denied(), 5.0
        original = two.virtual.put(merged(secret("x"), {"metadata": {"labels": {"color": "red"}}}))
        two.virtual.put(configmap("x", {"any": "thing"}))
        async with two.daemon([Needy]) as daemon:
            await until(lambda: daemon.engine.queue.running())
            await asyncio.sleep(1)
            two.virtual.put(merged(original, {"metadata": {"labels": {"color": "blue"}}}))
            assert await until(lambda: "x" in copies(two)) < 6

    play(scenario)


def test_what_no_longer_waits_leaves_nothing_behind(two: Two) -> None:
    async def scenario() -> None:
        two.virtual.put(secret("other"))
        async with two.daemon([Needy]) as daemon:
            for number in range(10):
                two.virtual.put(configmap(f"c{number}", {"strict": "yes"}))
            await daemon.settled()
            assert len(daemon.requests("needy")) == 10
            for number in range(10):
                two.virtual.delete("configmaps", f"{NAMESPACE}/c{number}")
            await daemon.settled()
            store = daemon.engine.links["vc"].caches.store(Side.VIRTUAL, SECRETS)
            assert store._waiting == {}
            assert daemon.engine.workers.waking._waiting == {}
            assert list(daemon.engine.ledger.troubles()) == []

    play(scenario)


# -- being parked ------------------------------------------------------------------------------------------------------


def test_a_thousand_parked_ones_cause_no_requests_while_nothing_changes_and_each_is_tried_again_in_the_end(
    two: Two,
) -> None:
    async def scenario() -> None:
        host(two).admission = denied()
        for number in range(1000):
            two.virtual.put(configmap(f"c{number}", {"color": "red"}))
        async with two.daemon([Maps]) as daemon:
            await daemon.settled()
            assert len(daemon.requests("maps")) == 1000
            refused = host(two).refused
            seen = [len(server.requests) for server in (two.host, two.virtual)]
            await asyncio.sleep(0.7 * PARKED_SECONDS)
            assert host(two).refused == refused
            assert [verbs(two.host, seen[0]), verbs(two.virtual, seen[1])] == [{}, {}]
            await asyncio.sleep(0.6 * PARKED_SECONDS)
            assert host(two).refused == refused + 1000

    play(scenario)


def test_a_change_of_the_object_or_its_copy_wakes_it_at_once(two: Two) -> None:
    async def scenario() -> None:
        host(two).admission = denied()
        original = two.virtual.put(configmap("x", {"color": "blue"}))
        async with two.daemon([Maps]) as daemon:
            await daemon.settled()
            original = two.virtual.put(merged(original, {"data": {"color": "red"}}))
            await daemon.settled()
            copy, refused = two.copy("configmaps", "x"), host(two).refused
            assert copy
            two.host.put(merged(copy, {"metadata": {"labels": {"touched": "yes"}}}))
            await until(lambda: host(two).refused == refused + 1, within=0.1)
            two.virtual.put(merged(original, {"data": {"color": "green"}}))
            await until(lambda: (two.copy("configmaps", "x") or {})["data"] == {"color": "green"}, within=0.1)

    play(scenario)


def test_after_a_restart_they_are_parked_again_and_none_is_lost(two: Two) -> None:
    async def scenario() -> None:
        host(two).admission = denied(place("c3").partition("/")[2])
        for number in range(6):
            two.virtual.put(configmap(f"c{number}", {"color": "red"} if number < 3 else {}))
        for _ in range(2):
            async with two.daemon([Maps]) as daemon:
                await daemon.settled()
                parked = {one.key.name for one, standing in daemon.engine.ledger.troubles() if standing.error}
                assert parked == {"c0", "c1", "c2", "c3"}
                assert copies(two) == {"c4", "c5"}
        host(two).admission = lambda method, path, body: None
        async with two.daemon([Maps]) as daemon:
            await daemon.settled()
            assert len(copies(two)) == 6

    play(scenario)


# -- what is told ------------------------------------------------------------------------------------------------------


def test_the_warning_speaks_of_virtual_names_alone(two: Two) -> None:
    async def scenario() -> None:
        other, mine = place("other"), place("x")
        short, whose = (full.partition("/")[2] for full in (mine, other))
        said = (
            f'admission webhook "w.example.org" denied the request: {mine} ({short}) in namespace {HOME} '
            f'conflicts with "{other}", {whose} and {HOME}/alien'
        )
        host(two).admission = lambda method, path, body: (400, said) if method == "POST" else None
        two.virtual.put(configmap("x"))
        async with two.daemon([Maps]) as daemon:
            await until(lambda: told(two))
            [message] = told(two)
            assert HOME not in message
            assert "-x-" not in message
            assert 'shop/x (x) in namespace <host> conflicts with "shop/other", other and <host>/alien' in message
            assert HOME in (daemon.standing("x", "maps") or pytest.fail("not parked")).reason, (
                "the operator's log has it"
            )

    play(scenario)


def test_the_tenant_is_told_nothing_of_the_rights_on_the_host(two: Two) -> None:
    async def scenario() -> None:
        for obj in rights("configmaps", verbs=["get", "list", "watch"]):
            two.host.put(obj)
        two.virtual.put(configmap("x"))
        async with two.daemon([Maps], user="daemon"):
            await until(lambda: told(two))
            assert told(two) == [
                "the syncer has no right to create configmaps on the host cluster; its operator has to grant it"
            ]

    play(scenario)


def test_the_list_says_since_when_how_often_and_what_wakes_it_and_can_be_tried_again(two: Two) -> None:
    async def scenario() -> None:
        host(two).limit(0)
        two.virtual.put(configmap("x"))
        async with two.daemon([Maps, *built_in("secrets")]) as daemon:
            await daemon.settled()
            await asyncio.sleep(100)
            [one] = listed(daemon.engine)
            assert (one["syncer"], one["key"], one["class"], one["tried"]) == ("maps", "shop/x", "QuotaExceeded", 1)
            assert 100 <= one["seconds"] <= 110
            assert one["since"].startswith("2026-")
            assert one["wakes"] == [
                "a change of the object or its copy",
                f"room in the quotas of namespace {HOME} on the host cluster",
            ]
            assert 0 < one["nextTry"] < 1.25 * PARKED_SECONDS
            assert listed(daemon.engine, kind="configmap", key="shop/x") == [one]
            assert listed(daemon.engine, kind="secrets") == []
            with pytest.raises(Refused, match="called 'cheese'"):
                listed(daemon.engine, kind="cheese")
            host(two).admission = lambda method, path, body: None
            control = Control()
            answers.add(control, daemon.engine)
            assert await control.answer("GET", "/parked", {}) == (200, [one])
            assert (await control.answer("GET", "/parked", {"kind": "cheese"}))[0] == 409
            assert await control.answer("POST", "/retry", {"kind": "maps", "key": "shop/other"}) == (200, [])
            assert await control.answer("POST", "/retry", {"kind": "maps", "key": "shop/x"}) == (200, [one])
            assert await until(lambda: "x" in copies(two)) < 0.1
            assert listed(daemon.engine) == []

    play(scenario)


# -- nothing is lost ---------------------------------------------------------------------------------------------------


class Mute(Exception):
    """An error that can't say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


class Broken(Maps):
    """Raises, a few times, what can't be told of."""

    name = "broken"
    left = 3

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        if Broken.left:
            Broken.left -= 1
            raise Mute
        return super().sync_down(ctx, virtual)


def test_an_error_that_can_not_be_told_of_is_tried_again_like_any_other(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(Broken, "left", 3)
        two.virtual.put(configmap("x"))
        async with two.daemon([Broken], workers=2) as daemon:
            await until(lambda: "x" in copies(two))
            assert not daemon.working.done()

    play(scenario)


class Patient(Widgets):
    """Widgets that wait for something once they are made."""

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        return super().sync_down(ctx, virtual).then(wait("there is more to come"))


@pytest.mark.parametrize("gone", [("virtual", "host"), ("virtual",)], ids=["it fails", "it succeeds"])
def test_what_is_under_way_when_its_kind_goes_leaves_no_standing(two: Two, gone: tuple[str, ...]) -> None:
    async def scenario() -> None:
        for server in (two.virtual, two.host):
            server.put(crd("widgets"))
        async with two.daemon([Patient]) as daemon:
            await daemon.settled()
            two.host.faults.add(Rule(verb="create", resource="widgets", latency=25))
            two.virtual.put(widget("w"))
            await until(lambda: daemon.engine.queue.running())
            for side in gone:
                server = two.host if side == "host" else two.virtual
                server.delete("customresourcedefinitions.apiextensions.k8s.io", "widgets.example.org")
            await until(lambda: not daemon.engine.links["vc"].parts, within=200)
            await until(daemon.engine.queue.is_idle)
            assert dict(daemon.engine.ledger.count()) == {}
            assert daemon.engine.workers.waking._waiting == {}

    play(scenario)


def test_a_worker_that_is_stopped_in_the_middle_leaves_its_request_to_the_next(two: Two) -> None:
    async def scenario() -> None:
        two.host.faults.add(Rule(verb="create", resource="configmaps", latency=60))
        two.virtual.put(configmap("x"))
        async with two.daemon([Maps]) as daemon:
            await until(lambda: daemon.engine.queue.running())
            daemon.working.cancel()
            await asyncio.wait({daemon.working})
            assert [one.key.name for one in daemon.engine.queue._waiting if one.key.name == "x"] == ["x"]

    play(scenario)


def test_the_delay_of_a_retry_is_bounded_for_each_kind(two: Two) -> None:
    async def scenario() -> None:
        host(two).admission = lambda method, path, body: (500, "broken") if method == "POST" else None
        two.virtual.put(configmap("x"))
        async with two.daemon(built_in("configmaps"), options={"configMaps": {"all": True, "maxRetryDelay": "2s"}}):
            await asyncio.sleep(60)
            refused = host(two).refused
            await asyncio.sleep(60)
            assert 30 <= host(two).refused - refused <= 50

    play(scenario)
