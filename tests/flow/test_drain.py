"""A drain takes all that is ours, and nothing else, from both sides; wherever it is cut short, the next one ends it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from crd_scene import CRDS
from custom_scene import CERTIFICATES, CLUSTER_ISSUERS, define, definition, there
from drain_scene import (
    ELECTING,
    GADGETS,
    IDENTITY,
    LABEL,
    MARKED,
    Death,
    clusters,
    config,
    contents,
    drained,
    killed,
    marked,
    synced,
)
from harness import (
    ALL,
    CLUSTER,
    HOME,
    NAMESPACE,
    Tenant,
    Two,
    admin,
    between,
    built_in,
    configured,
    namespace,
    place,
    play,
    until,
    writes,
)

from syncer.api import ConfigError, Key, Obj, Resource, Side, annotations_of, labels_of
from syncer.clusters.client import Cluster
from syncer.clusters.discovery import Changes, Discovery
from syncer.config import SyncerConfig, config_with
from syncer.flow.draining.drain import Report, drain
from syncer.flow.draining.inventory import Lister, Recognition
from syncer.flow.leading.claim import claim, is_claimed
from syncer.flow.leading.leadership import leading
from syncer.flow.leading.lease import AnotherLeads
from syncer.names import PerNamespace
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.apiserver import Rule
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, service

LEASES = "leases.coordination.k8s.io"
NOTE = "kube-system/vsyncer"
GADGET: Obj = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "mine", "namespace": NAMESPACE}}


async def planned(two: Two, given: SyncerConfig, *, keep: bool = False, user: str = "admin") -> Report:
    return await drain(given, clusters(two, user), yes=False, keep=keep)


def sent(two: Two, since: tuple[int, int] = (0, 0)) -> tuple[list[str], list[str]]:
    """The changes that both sides were asked for."""
    return writes(two.virtual, since[0], events=True), writes(two.host, since[1], events=True)


def now(two: Two) -> tuple[int, int]:
    return len(two.virtual.requests), len(two.host.requests)


def quiet(lines: tuple[list[str], list[str]]) -> list[str]:
    """Without the Lease, which is held meanwhile."""
    return [line for side in lines for line in side if "/leases" not in line]


# -- what goes, and what doesn't ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("elects", [True, False])
def test_all_that_is_ours_goes_and_nothing_else_is_touched(two: Two, elects: bool) -> None:
    async def scenario() -> None:
        given = config(**(ELECTING if elects else {}))
        virtual, host = await synced(two, given)
        assert two.virtual.get("configmaps", NOTE)
        report = await drained(two, given)
        assert (report.problems, report.left, report.done, report.exit_code) == ([], {}, True, 0)
        assert contents(two.virtual) == virtual
        assert contents(two.host) == host
        again = await drained(two, given)
        assert (again.items, again.problems) == ([], [])
        assert contents(two.host) == host

    play(scenario)


def test_a_plan_says_what_would_go_and_writes_nothing(two: Two) -> None:
    async def scenario() -> None:
        given = config(**ELECTING)
        virtual, host = await synced(two, given)
        before = (set(contents(two.virtual)) - set(virtual), set(contents(two.host)) - set(host))
        since = now(two)
        report = await planned(two, given)
        assert sent(two, since) == ([], [])
        assert not report.done
        for side, found in zip((Side.VIRTUAL, Side.HOST), before, strict=True):
            named = {(str(item.resource), str(item.key)) for item in report.items if item.side is side}
            assert named == {(kind, key) for kind, key in found if kind != LEASES and key != NOTE}
        doubtful = [line for line in report.remarks if "with our mark that no syncer makes" in line]
        assert len(doubtful) == 2, "what the tenant has forged"

    play(scenario)


def test_kept_objects_stay_as_they_are_without_our_marks(two: Two) -> None:
    async def scenario() -> None:
        given = config(**ELECTING)
        virtual, host = await synced(two, given)
        before = {"virtual": set(contents(two.virtual)), "host": set(contents(two.host))}
        contents_of = {
            plural: (two.copy(plural, name) or {}).get("data") for plural, name in (("configmaps", "color"),)
        }
        report = await drained(two, given, keep=True)
        assert (report.problems, report.done) == ([], True)
        assert set(contents(two.virtual)) == before["virtual"] - {("configmaps", NOTE)}
        assert set(contents(two.host)) == before["host"] - {(LEASES, f"{HOME}/vsyncer-{CLUSTER}")}
        for key, known in virtual.items():
            assert contents(two.virtual)[key] == known
        for key, known in host.items():
            assert contents(two.host)[key] == known
        assert (two.copy("configmaps", "color") or {})["data"] == contents_of["configmaps"]
        ours = (marked(two.virtual) - set(virtual)) | (marked(two.host) - set(host))
        assert ours == {("pods", place("web")), ("services", place("web"))}
        copy = there(two.host, "pods", place("web"))
        assert {name for name in annotations_of(copy) if name.startswith("vsyncer.dev/")} == set()
        selector = there(two.host, "services", place("web"))["spec"]["selector"]
        ours_in = {name: value for name, value in selector.items() if name.startswith("vsyncer.dev/")}
        assert len(ours_in) == 2
        assert ours_in.items() <= labels_of(copy).items(), "the Service goes on selecting it"
        assert list((await planned(two, given)).items) == []

    play(scenario)


def test_what_was_made_by_syncers_that_are_off_by_now_goes_too(two: Two) -> None:
    async def scenario() -> None:
        virtual, host = await synced(two, config())
        off = {
            f"sync_{path}_enabled": False
            for path in ("toHost_services", "toHost_pods", "fake_nodes", "fromHost_events")
        }
        less = config(**off)
        custom = {name: entry for name, entry in less.sync.custom.items() if name == CLUSTER_ISSUERS}
        less = less.model_copy(update={"sync": less.sync.model_copy(update={"custom": custom})})
        report = await drained(two, less)
        assert report.problems == []
        assert contents(two.virtual) == virtual
        assert contents(two.host) == host

    play(scenario)


def test_what_is_paused_goes_as_well(two: Two) -> None:
    async def scenario() -> None:
        given = configured(Tenant(two.virtual, options=ALL), built_in("configmaps"))
        paused = {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}}
        two.virtual.put(configmap("x"))
        async with between(two.host, [(given, two.virtual)]) as daemon:
            await until(lambda: two.copy("configmaps", "x"))
            two.virtual.put(merged(there(two.virtual, "configmaps", f"{NAMESPACE}/x"), paused))
            await daemon.settled()
        assert (await drained(two, given)).done
        assert two.copy("configmaps", "x") is None
        assert two.original("configmaps", "x")

    play(scenario)


# -- what would take others with it ------------------------------------------------------------------------------------


def test_a_crd_that_the_tenant_has_objects_of_stays_until_they_are_gone(two: Two) -> None:
    async def scenario() -> None:
        given = config()
        virtual, _ = await synced(two, given)
        two.virtual.put(GADGET)
        [(item, why)] = (await planned(two, given)).left.items()
        assert (str(item.key), why) == (GADGETS, f"there is the Gadget {NAMESPACE}/mine, which is not ours")
        report = await drained(two, given)
        assert (report.done, [str(item.key) for item in report.left]) == (True, [GADGETS])
        assert set(contents(two.virtual)) == {*virtual, (CRDS, GADGETS), (GADGETS, f"{NAMESPACE}/mine")}
        two.virtual.delete(GADGETS, f"{NAMESPACE}/mine")
        assert (await drained(two, given)).left == {}
        assert contents(two.virtual) == virtual

    play(scenario)


@pytest.mark.parametrize("status", [503, 403])
def test_a_crd_whose_objects_cant_be_seen_stays(two: Two, status: int) -> None:
    async def scenario() -> None:
        given = config()
        await synced(two, given)
        two.virtual.faults.add(Rule(verb="list", path="/apis/example.com/v1/gadgets", status=status))
        report = await drained(two, given)
        assert report.exit_code == (1 if status == 503 else 0)
        assert [str(item.key) for item in report.left] == ([] if status == 503 else [GADGETS])
        assert two.virtual.get(CRDS, GADGETS)

    play(scenario)


def test_a_tenants_crd_stays_on_the_host_while_others_have_objects_of_it(two: Two) -> None:
    async def scenario() -> None:
        define(two)
        two.virtual.put(definition(GADGETS))
        section = {"toHost": {"customResourceDefinitions": {"enabled": True, "names": [GADGETS]}}}
        given = per(section=section)
        async with between(two.host, [(given, two.virtual)]) as daemon:
            await until(lambda: two.host.get(CRDS, GADGETS))
            await daemon.settled()
        two.host.put(GADGET)
        report = await drained(two, given)
        assert [str(item) for item in report.left] == [f"host CustomResourceDefinition {GADGETS}"]
        assert two.host.get(GADGETS, f"{NAMESPACE}/mine")
        two.host.delete(GADGETS, f"{NAMESPACE}/mine")
        assert (await drained(two, given)).left == {}
        assert two.host.get(CRDS, GADGETS) is None
        assert two.virtual.get(CRDS, GADGETS), "it is the tenant's"

    play(scenario)


def per(*, section: Obj | None = None) -> SyncerConfig:
    """A configuration in which each virtual namespace has a host namespace of its own."""
    model = config_with([*built_in()], translator=PerNamespace)
    return model.model_validate({"cluster": CLUSTER, "host": {"namespace": HOME}, "sync": section or {"toHost": ALL}})


@pytest.mark.parametrize("foreign", [True, False])
def test_a_host_namespace_goes_last_and_only_if_nothing_of_others_is_in_it(two: Two, foreign: bool) -> None:
    async def scenario() -> None:
        given = per()
        home = str(given.translator().to_host(CONFIG_MAPS, Key(NAMESPACE, "x")).namespace)
        two.virtual.put(configmap("x"))
        two.virtual.put(pod("web"))
        async with between(two.host, [(given, two.virtual)]) as daemon:
            await until(lambda: two.host.get("pods", f"{home}/web"))
            await daemon.settled()
        if foreign:
            two.host.put(configmap("operators", namespace=home))
        since = len(two.host.requests)
        report = await drained(two, given)
        assert report.problems == []
        deletes = [line for line in writes(two.host, since) if line.startswith("delete ")]
        assert "/pods/" in deletes[0]
        if not foreign:
            assert (report.left, two.host.get("namespaces", home)) == ({}, None)
            names = [line for line in deletes if "/v1/namespaces/" in line and line.count("/") == 4]
            assert deletes[-len(names) :] == names
            return
        assert [str(item.key) for item in report.left] == [home]
        assert "the ConfigMap operators, which is not ours" in next(iter(report.left.values()))
        assert [one["metadata"]["name"] for one in two.host.objects("configmaps", home)] == [
            "kube-root-ca.crt",
            "operators",
        ]

    play(scenario)


# -- in which order ----------------------------------------------------------------------------------------------------


def test_pods_are_gone_before_what_they_mount(two: Two) -> None:
    async def scenario() -> None:
        given = config()
        await synced(two, given)
        since = len(two.host.requests)
        pods_at: list[float] = []

        async def watch() -> None:
            while two.copy("pods", "web"):  # noqa: ASYNC110 — the server's own state
                await asyncio.sleep(0.1)
            pods_at.append(max(one.at for one in two.host.requests))

        watching = asyncio.create_task(watch())
        await drained(two, given)
        await watching
        others = [one for one in list(two.host.requests)[since:] if one.verb == "delete" and one.resource != "pods"]
        assert pods_at[0] <= min(one.at for one in others)
        kinds = [one.resource for one in others if one.user != "system:apiserver"]
        assert kinds.index("certificates") < kinds.index("secrets")

    play(scenario)


def test_our_notes_are_taken_off_a_tenants_objects_before_any_copy_goes(two: Two) -> None:
    """By them a daemon would take the copies for deleted by the host, and might delete the tenant's objects."""

    async def scenario() -> None:
        given = config()
        await synced(two, given)
        noted = {"metadata": {"annotations": {"vsyncer.dev/copied": "some-uid"}}}
        two.virtual.put(merged(there(two.virtual, "configmaps", f"{NAMESPACE}/color"), noted))
        two.virtual.faults.add(Rule(verb="patch", resource="configmaps", status=500))
        since = now(two)
        assert (await drained(two, given)).exit_code == 1
        assert [line for line in sent(two, since)[1] if line.startswith("delete")] == []
        two.virtual.faults.clear()
        assert (await drained(two, given)).done
        assert annotations_of(there(two.virtual, "configmaps", f"{NAMESPACE}/color")) == {}

    play(scenario)


# -- cut short, refused, in trouble ------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_the_next_one_ends_it(keep: bool, after: bool) -> None:
    async def scenario(number: int) -> tuple[bool, object]:
        two = Two()
        given = config(**ELECTING)
        virtual, host = await synced(two, given)
        was = await killed(two, given, Death(number, after=after), keep=keep)
        if two.virtual.get("configmaps", NOTE) is None:
            assert marked(two.virtual) <= set(virtual), "the note goes after everything else"
        report = await drained(two, given, keep=keep)
        assert (report.problems, report.done) == ([], True)
        for known, server in ((virtual, two.virtual), (host, two.host)):
            assert known.items() <= contents(server).items()
        return was, (set(contents(two.virtual)), set(contents(two.host)), marked(two.virtual), marked(two.host))

    ends, number = [], 0
    while True:
        found: list[tuple[bool, object]] = []

        async def once(number: int = number, found: list[tuple[bool, object]] = found) -> None:
            found.append(await scenario(number))

        play(once)
        ends.append(found[0][1])
        if not found[0][0]:
            break
        number += 1
    assert number > 15, "there was something to be killed at"
    assert all(end == ends[-1] for end in ends)


def test_it_refuses_beside_a_daemon_that_leads_and_says_who(two: Two) -> None:
    async def scenario() -> None:
        for given in (config(**ELECTING), config()):
            async with leading(admin(two.host, Side.HOST), config(**ELECTING)):
                await asyncio.sleep(1)
                since = now(two)
                with pytest.raises(
                    AnotherLeads, match=there(two.host, LEASES, f"{HOME}/vsyncer-vc")["spec"]["holderIdentity"]
                ):
                    await drained(two, given)
                assert quiet(sent(two, since)) == []

    play(scenario)


def test_another_identity_is_refused(two: Two) -> None:
    async def scenario() -> None:
        await synced(two, config())
        since = now(two)
        with pytest.raises(ConfigError, match="was synced as"):
            await drained(two, config(cluster="other"))
        assert sent(two, since) == ([], [])

    play(scenario)


def test_where_a_list_fails_nothing_is_written(two: Two) -> None:
    async def scenario() -> None:
        given = config()
        await synced(two, given)
        two.host.faults.add(Rule(verb="list", resource="pods", status=503))
        since = now(two)
        assert (await planned(two, given)).exit_code == 1
        report = await drained(two, given)
        assert (report.exit_code, report.done) == (1, False)
        assert any("list pods" in line for line in report.problems)
        assert sent(two, since) == ([], [])

    play(scenario)


def test_what_there_is_no_right_to_see_is_said_and_matters_only_where_it_is_needed() -> None:
    async def scenario() -> None:
        two = Two(rbac=True)
        given = configured(Tenant(two.virtual, options=ALL), built_in("configmaps"))
        rbac = "rbac.authorization.k8s.io"
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
        role = {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": {"name": "r", "namespace": HOME},
            "rules": rules,
        }
        binding = {**role, "kind": "RoleBinding", "subjects": [{"apiGroup": rbac, "kind": "User", "name": "ann"}]}
        two.host.put(role)
        two.host.put({**binding, "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "r"}, "rules": None})
        report = await planned(two, given, user="ann")
        assert report.problems == []
        assert any("not looked at" in line and '"secrets"' in line for line in report.remarks)
        two.host.delete(f"rolebindings.{rbac}", f"{HOME}/r")
        report = await planned(two, given, user="ann")
        assert [line for line in report.problems if '"configmaps"' in line]

    play(scenario)


class HalfDown(Discovery):
    """Of a cluster in which the API server that serves certificates is down."""

    async def refresh(self) -> Changes:
        found = await super().refresh()
        self.silent = ("cert-manager.io/v1",)
        return found


def test_what_an_api_server_cant_say_that_it_serves_is_said_too(two: Two) -> None:
    async def scenario() -> None:
        await synced(two, config())
        for given, about in ((config(), True), (configured(Tenant(two.virtual), built_in("configmaps")), False)):
            lister = Lister(clusters(two), Recognition.of(given))
            lister.discoveries[Side.HOST] = HalfDown(lister.clusters[Side.HOST])
            found = await lister.look()
            said = [line for line in found.problems if "cert-manager.io/v1" in line]
            assert bool(said) == about
            assert any("cert-manager.io/v1" in line for line in (*found.problems, *found.unseen))

    play(scenario)


TROUBLES: list[Callable[[], Rule]] = [
    lambda: Rule(verb="delete", status=409, probability=0.5),
    lambda: Rule(verb="delete", status=429, count=5),
    lambda: Rule(verb="delete", status=503, count=5),
    lambda: Rule(verb="delete", reset="after", probability=0.5),
    lambda: Rule(verb="delete", reset="before", probability=0.3),
]


@pytest.mark.parametrize("trouble", range(len(TROUBLES)))
def test_passing_trouble_is_overcome(two: Two, trouble: int) -> None:
    async def scenario() -> None:
        given = config()
        virtual, host = await synced(two, given)
        for server in (two.virtual, two.host):
            server.faults.add(TROUBLES[trouble]())
        while not (report := await drained(two, given)).done:
            assert report.exit_code == 1
        assert contents(two.virtual) == virtual
        assert contents(two.host) == host

    play(scenario)


def test_a_list_that_gets_too_old_is_begun_anew(two: Two) -> None:
    async def scenario() -> None:
        given = config()
        await synced(two, given)
        two.host.faults.add(Rule(verb="list", resource="secrets", status=410, count=2))
        assert (await planned(two, given)).problems == []

    play(scenario)


class Meddler(Cluster):
    """Somebody who takes our mark off an object just before it would be deleted."""

    def __init__(self, real: Cluster, meddle: Callable[[Key], None]) -> None:
        super().__init__(real.name, real.side, real.transport)
        self._meddle = meddle

    async def delete(self, resource: Resource, key: Key, **options: Any) -> Obj | None:
        self._meddle(key)
        return await super().delete(resource, key, **options)


@pytest.mark.parametrize("mark", [("labels", LABEL), ("annotations", "vsyncer.dev/host-name")])
def test_what_ceases_to_be_ours_meanwhile_is_left_alone(two: Two, mark: tuple[str, str]) -> None:
    async def scenario() -> None:
        given = configured(Tenant(two.virtual, options=ALL), built_in("configmaps"))
        for name in ("x", "y"):
            two.virtual.put(configmap(name))
        async with between(two.host, [(given, two.virtual)]) as daemon:
            await until(lambda: two.copy("configmaps", "y"))
            await daemon.settled()

        def meddle(key: Key) -> None:
            copy = two.host.get("configmaps", key)
            if str(key) == place("x") and copy and mark[1] in copy["metadata"][mark[0]]:
                two.host.put(merged(copy, {"metadata": {mark[0]: {mark[1]: None}}}))

        real = clusters(two)
        using = {**real, Side.HOST: Meddler(real[Side.HOST], meddle)}
        assert (await drained(two, given, using=using)).done
        assert mark[1] not in there(two.host, "configmaps", place("x"))["metadata"][mark[0]]
        assert two.copy("configmaps", "y") is None

    play(scenario)


def test_what_a_finalizer_holds_is_said_and_nothing_after_it_is_begun(two: Two) -> None:
    async def scenario() -> None:
        given = config()
        _, host = await synced(two, given)
        two.host.put(merged(there(two.host, CERTIFICATES, place("db")), {"metadata": {"finalizers": ["a/b"]}}))
        report = await drained(two, given)
        assert report.exit_code == 1
        assert f"host Certificate {place('db')} is being deleted and waits for the finalizers a/b" in report.problems[0]
        assert two.copy("secrets", "db"), "its operator may need it to end"
        assert two.virtual.get("configmaps", NOTE)
        certificates = Resource("cert-manager.io/v1", "Certificate", "certificates")
        ended: Obj = {"metadata": {"finalizers": None}}
        await admin(two.host, Side.HOST).patch(certificates, Key.parse(place("db")), ended)
        assert (await drained(two, given)).done
        assert contents(two.host) == host

    play(scenario)


def test_a_daemon_that_makes_it_all_again_is_noticed(two: Two) -> None:
    async def scenario() -> None:
        given = configured(Tenant(two.virtual, options=ALL), built_in("configmaps"))
        two.virtual.put(configmap("x"))
        await claim(
            admin(two.virtual, Side.VIRTUAL),
            given.settings(),
            translator=given.names.translator,
            host=admin(two.host, Side.HOST),
            copied=(),
        )
        async with between(two.host, [(given, two.virtual)]) as daemon:
            await until(lambda: two.copy("configmaps", "x"))
            await daemon.settled()
            report = await drained(two, given)
        assert not report.done
        assert report.problems
        assert two.virtual.get("configmaps", NOTE)

    play(scenario)


# -- afterwards --------------------------------------------------------------------------------------------------------


def test_afterwards_the_virtual_cluster_can_be_synced_under_another_name(two: Two) -> None:
    async def scenario() -> None:
        await synced(two, config())
        other = config(cluster="other")
        with pytest.raises(ConfigError):
            await is_claimed(admin(two.virtual, Side.VIRTUAL), other.settings(), translator="single-namespace")
        await drained(two, config())
        await claim(
            admin(two.virtual, Side.VIRTUAL),
            other.settings(),
            translator="single-namespace",
            host=admin(two.host, Side.HOST),
            copied=(),
        )
        async with between(two.host, [(other, two.virtual)]) as daemon:
            await until(lambda: two.host.get("services", place("web", "other")))
            await daemon.settled()
            assert list(daemon.engine.ledger.troubles()) == []

    play(scenario)


def test_kept_copies_are_left_alone_by_the_next_daemon(two: Two) -> None:
    async def scenario() -> None:
        given = configured(Tenant(two.virtual, options=ALL), built_in("configmaps", "services"))
        two.virtual.put(configmap("x"))
        two.virtual.put(service("x"))
        async with between(two.host, [(given, two.virtual)]) as daemon:
            await until(lambda: two.copy("configmaps", "x") and two.copy("services", "x"))
            await daemon.settled()
        await drained(two, given, keep=True)
        before = contents(two.host)
        async with between(two.host, [(given, two.virtual)]) as daemon:
            await daemon.settled()
            two.virtual.delete("configmaps", f"{NAMESPACE}/x")
            two.virtual.delete("services", f"{NAMESPACE}/x")
            await daemon.settled()
        assert before.items() <= contents(two.host).items()

    play(scenario)


def test_the_scene_has_what_only_looks_like_ours(two: Two) -> None:
    async def scenario() -> None:
        virtual, host = await synced(two, config())
        assert labels_of(there(two.host, "configmaps", f"{HOME}/copy-of-copy"))[LABEL] == IDENTITY
        assert {("configmaps", f"{HOME}/copy-of-copy"), ("configmaps", place("color", "another"))} <= set(host)
        assert ("secrets", f"{NAMESPACE}/forged") in virtual
        assert (
            MARKED["metadata"]["labels"].items()
            <= labels_of(there(two.virtual, "secrets", f"{NAMESPACE}/forged")).items()
        )
        assert namespace(NAMESPACE)["metadata"]["name"] in {key for kind, key in virtual if kind == "namespaces"}

    play(scenario)
