"""Paused objects stay as they are on both sides; the message says which mark to remove; then
syncing resumes at once.
"""

import asyncio
from typing import ClassVar

import pytest
from custom_scene import CLUSTER_ISSUERS, PUBLIC, cert_manager, custom, example, running, there
from harness import (
    ALL,
    CLUSTER,
    NAMESPACE,
    Daemon,
    Tenant,
    Two,
    between,
    built_in,
    configured,
    host_path,
    until,
    writes,
)
from sampled import MADE, define, to_host
from small_syncers import Maps

from kube_envtest import Rule
from syncer.api import Live, Obj, OwnController, Side, annotations_of
from syncer.daemon.pages import control as control_api
from syncer.daemon.pages.status import degraded
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, secret, service

PAUSED = "vsyncer.dev/paused"
MAPS = built_in("configmaps")
SOME = built_in("configmaps", "services")
OPTIONS = to_host()
TIER = {"metadata": {"labels": {"tier": "gold"}}}

#: An object of each kind that begins on the virtual side, and the syncers.
KINDS = {"pods": pod("x"), **{sample.plural: sample.object("x") for sample in MADE.values()}}
SYNCERS = {"pods": "pods", **{sample.plural: sample.name for sample in MADE.values()}}


def annotate(server: ApiServer, plural: str, key: str, value: str | None = "true") -> Obj:
    """Annotate an object as ``kubectl annotate`` does; ``value`` None removes the annotation."""
    return server.put(merged(there(server, plural, key), {"metadata": {"annotations": {PAUSED: value}}}))


def pause_cluster(two: Two, value: str | None = "true") -> None:
    if two.virtual.get("configmaps", "kube-system/vsyncer") is None:
        two.virtual.put(configmap("vsyncer", {"identity": "vc.vc-ns"}, namespace="kube-system"))
    annotate(two.virtual, "configmaps", "kube-system/vsyncer", value)


def mark(two: Two, plural: str, name: str = "x") -> str | None:
    """Return the mark on a copy that must be there."""
    return annotations_of(there(two.host, plural, host_path(name))).get(PAUSED)


def change(two: Two, plural: str, name: str = "x") -> None:
    """Change an object as its tenant."""
    two.virtual.put(merged(there(two.virtual, plural, f"{NAMESPACE}/{name}"), TIER))


def changed(two: Two, plural: str, name: str = "x") -> bool:
    copy = two.copy(plural, name)
    return bool(copy) and (copy or {})["metadata"]["labels"].get("tier") == "gold"


def reason(daemon: Daemon, name: str = "x", syncer: str = "configmaps") -> str:
    status = daemon.status(name, syncer)
    assert status, "it stands as if all was well"
    assert status.state == "paused"
    return status.reason


# -- one object ------------------------------------------------------------------------------------


@pytest.mark.parametrize("plural", KINDS)
async def test_paused_object_is_left_alone_until_it_no_longer_is(two: Two, plural: str) -> None:
    define(two.virtual, two.host)
    two.virtual.put(KINDS[plural])
    async with two.daemon(options=OPTIONS) as daemon:
        await until(lambda: two.copy(plural, "x"))
        await daemon.settled()
        since = len(two.host.requests), len(two.virtual.requests)
        annotate(two.virtual, plural, f"{NAMESPACE}/x")
        await daemon.settled()
        change(two, plural)
        two.host.put(merged(there(two.host, plural, host_path("x")), {"metadata": {"labels": {"edited": "yes"}}}))
        await daemon.settled()
        patches = [line for line in writes(two.host, since[0]) if line.endswith("/x-x-shop-x-vc")]
        assert patches == []
        assert writes(two.virtual, since[1]) == []
        assert not changed(two, plural)
        text = reason(daemon, "x", SYNCERS[plural])
        assert PAUSED in text
        assert f"the virtual {KINDS[plural]['kind']} {NAMESPACE}/x" in text
        annotate(two.virtual, plural, f"{NAMESPACE}/x", None)
        assert await until(lambda: changed(two, plural)) < 1
        await daemon.settled()
        assert daemon.status("x", SYNCERS[plural]) is None


@pytest.mark.parametrize("plural", KINDS)
@pytest.mark.parametrize("restarted", [False, True])
async def test_deletion_by_a_tenant_goes_through_whatever_the_tenant_has_paused(
    two: Two, plural: str, restarted: bool
) -> None:
    """A Pod would run on for ever, and nothing in the virtual cluster would show it."""
    define(two.virtual, two.host)
    two.virtual.put(KINDS[plural])
    async with two.daemon(options=OPTIONS) as daemon:
        await until(lambda: two.copy(plural, "x"))
        annotate(two.virtual, plural, f"{NAMESPACE}/x")
        annotate(two.virtual, "namespaces", NAMESPACE)
        pause_cluster(two)
        await daemon.settled()
        assert two.copy(plural, "x")
        if not restarted:
            two.virtual.delete(plural, f"{NAMESPACE}/x")
            assert await until(lambda: two.copy(plural, "x") is None) < 1
    if restarted:
        two.virtual.delete(plural, f"{NAMESPACE}/x")
        async with two.daemon(options=OPTIONS):
            await until(lambda: two.copy(plural, "x") is None)


@pytest.mark.parametrize("plural", ["configmaps", "pods"])
async def test_copy_of_an_earlier_object_goes_although_the_later_is_paused(two: Two, plural: str) -> None:
    define(two.virtual, two.host)
    two.virtual.put(KINDS[plural])
    async with two.daemon(options=OPTIONS) as daemon:
        await until(lambda: two.copy(plural, "x"))
        await daemon.settled()
        daemon.process.queue.pause(CLUSTER)
        two.virtual.delete(plural, f"{NAMESPACE}/x")
        two.virtual.put(merged(KINDS[plural], {"metadata": {"annotations": {PAUSED: "true"}}}))
        await asyncio.sleep(1)
        daemon.process.queue.resume(CLUSTER)
        await until(lambda: two.copy(plural, "x") is None)
        await daemon.settled()
        assert two.copy(plural, "x") is None
        assert "/x to go on" in reason(daemon, "x", plural)


async def test_mark_on_the_copy_pauses_both_sides_and_is_not_taken_away(two: Two) -> None:
    two.virtual.put(service("x", spec={"type": "LoadBalancer"}))
    async with two.daemon(built_in("services")) as daemon:
        await until(lambda: two.copy("services", "x"))
        await daemon.settled()
        annotate(two.host, "services", host_path("x"))
        since = len(two.host.requests), len(two.virtual.requests)
        change(two, "services")
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "10.9.8.7"}]}}}
        two.host.put(merged(there(two.host, "services", host_path("x")), status))
        await daemon.settled()
        assert f"from the host Service {host_path('x')}" in reason(daemon, "x", "services")
        annotate(two.virtual, "services", f"{NAMESPACE}/x")
        await daemon.settled()
        two.virtual.delete("services", f"{NAMESPACE}/x")
        await daemon.settled()
        assert (writes(two.host, since[0]), writes(two.virtual, since[1])) == ([], [])
        assert mark(two, "services") == "true"
        [kept] = control_api.parked(daemon.process, control_api.selection(daemon.process))
        assert (kept["class"], kept["key"]) == ("Paused", f"{NAMESPACE}/x")
        assert f"remove the annotation {PAUSED} from the host Service {host_path('x')}" in kept["reason"]
        assert control_api.retry(daemon.process, control_api.selection(daemon.process)) == []
        assert "keeps: 1" in degraded(daemon.process)[CLUSTER, "services"]
        annotate(two.host, "services", host_path("x"), None)
        assert await until(lambda: two.copy("services", "x") is None) < 1
        await daemon.settled()
        assert control_api.parked(daemon.process, control_api.selection(daemon.process)) == []
        assert degraded(daemon.process) == {}


async def test_object_paused_from_the_start_gets_no_copy_and_its_mark_stays(two: Two) -> None:
    two.virtual.put(configmap("x", metadata={"annotations": {PAUSED: "true"}}))
    two.virtual.put(configmap("y", metadata={"annotations": {PAUSED: "false", "team": "a"}}))
    async with two.daemon(MAPS) as daemon:
        await until(lambda: two.copy("configmaps", "y"))
        await daemon.settled()
        assert two.copy("configmaps", "x") is None
        notes = annotations_of(there(two.host, "configmaps", host_path("y")))
        assert PAUSED not in notes
        assert notes["team"] == "a"
        annotate(two.virtual, "configmaps", f"{NAMESPACE}/x", None)
        assert await until(lambda: two.copy("configmaps", "x")) < 1


# -- a namespace -----------------------------------------------------------------------------------


async def test_paused_namespace_is_left_alone_and_no_other(two: Two) -> None:
    two.virtual.put(configmap("x"))
    two.virtual.put(configmap("gone"))
    async with two.daemon(MAPS) as daemon:
        await until(lambda: two.copy("configmaps", "x"))
        await daemon.settled()
        annotate(two.virtual, "namespaces", NAMESPACE)
        await daemon.settled()
        since = len(two.host.requests)
        change(two, "configmaps")
        two.virtual.delete("configmaps", f"{NAMESPACE}/gone")
        two.virtual.put(configmap("new"))
        two.virtual.put(configmap("brief"))
        await until(lambda: daemon.status("brief"))
        two.virtual.delete("configmaps", f"{NAMESPACE}/brief")
        two.virtual.put(configmap("other", namespace="yard"))
        await until(lambda: two.host.get("configmaps", f"{host_path('other').replace('-shop-', '-yard-')}"))
        await daemon.settled()
        assert len(writes(two.host, since)) == 2, "the deletion, and that of the other namespace"
        assert two.copy("configmaps", "gone") is None
        assert daemon.status("brief") is None, "there is nothing of it any more"
        for name in ("x", "new"):
            assert f"remove the annotation {PAUSED} from the virtual Namespace {NAMESPACE}" in reason(daemon, name)
        annotate(two.virtual, "namespaces", NAMESPACE, None)
        assert await until(lambda: changed(two, "configmaps") and two.copy("configmaps", "new")) < 1


# -- the virtual cluster ---------------------------------------------------------------------------


class Controls(Maps, OwnController):
    """Says whether its controller runs."""

    name = "controls"
    running: ClassVar[list[str]] = []

    async def register(self, live: Live) -> None:
        self.running.append(live.cluster)
        try:
            await asyncio.Event().wait()
        finally:
            self.running.remove(live.cluster)


def run_on(two: Two, node: str) -> None:
    """Run a Pod as the host's scheduler and kubelet do."""
    running = {"spec": {"nodeName": node}, "status": {"phase": "Running"}}
    two.host.put(merged(there(two.host, "pods", host_path("x")), running))


@pytest.mark.parametrize("restarted", [False, True])
async def test_paused_virtual_cluster_is_left_alone_on_both_sides(two: Two, restarted: bool) -> None:
    async def left_alone(two: Two, daemon: Daemon) -> None:
        since = len(two.host.requests), len(two.virtual.requests)
        change(two, "configmaps")
        two.virtual.delete("configmaps", f"{NAMESPACE}/gone")
        run_on(two, "n1")
        await daemon.settled()
        [deletion] = writes(two.host, since[0], events=True)
        assert deletion.endswith(host_path("gone").rpartition("/")[2])
        assert writes(two.virtual, since[1], events=True) == []
        for name, syncer in (("x", "configmaps"), ("x", "pods"), ("n1", "nodes")):
            assert f"{PAUSED} from the virtual ConfigMap kube-system/vsyncer" in reason(daemon, name, syncer)
        pause_cluster(two, None)
        await until(
            lambda: two.virtual.get("nodes", "n1") and (two.original("pods", "x") or {})["spec"].get("nodeName")
        )
        await until(lambda: changed(two, "configmaps"))
        await daemon.settled()
        assert daemon.requests("pods") == daemon.requests("configmaps") == []

    two.virtual.put(pod("x"))
    two.virtual.put(configmap("x"))
    two.virtual.put(configmap("gone"))
    async with two.daemon() as daemon:
        await until(lambda: two.copy("pods", "x") and two.copy("configmaps", "gone"))
        await daemon.settled()
        pause_cluster(two)
        await daemon.settled()
        if not restarted:
            await left_alone(two, daemon)
    if restarted:
        async with two.daemon() as daemon:
            await left_alone(two, daemon)


async def test_note_of_that_name_elsewhere_pauses_nothing(two: Two) -> None:
    two.virtual.put(configmap("vsyncer", namespace="yard", metadata={"annotations": {PAUSED: "true"}}))
    two.virtual.put(configmap("x"))
    async with two.daemon(MAPS):
        assert await until(lambda: two.copy("configmaps", "x")) < 1


async def test_own_controller_stands_still_while_the_virtual_cluster_is_paused(two: Two) -> None:
    Controls.running.clear()
    pause_cluster(two)
    two.virtual.faults.add(Rule(verb="list", resource="configmaps", status=503, count=2))
    async with two.daemon([Controls]) as daemon:
        assert Controls.running == []
        await daemon.settled()
        assert Controls.running == [], "it is paused from the start"
        pause_cluster(two, None)
        assert await until(lambda: Controls.running == [CLUSTER]) < 1
        pause_cluster(two)
        assert await until(lambda: Controls.running == []) < 1
        pause_cluster(two, None)
        assert await until(lambda: Controls.running == [CLUSTER]) < 1
    assert Controls.running == []


class Lingers(Maps, OwnController):
    """Its controller takes ten seconds to end, and may fail then."""

    fails: ClassVar[bool] = False
    runs: ClassVar[list[str]] = []

    async def register(self, live: Live) -> None:
        self.runs.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(10)
            self.runs.append("ended")
            if self.fails:
                raise ValueError("the lock could not be released")


@pytest.mark.parametrize("fails", [False, True], ids=["ends", "fails as it ends"])
async def test_own_controller_that_takes_long_to_end_is_awaited_and_never_runs_twice(
    two: Two, fails: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lingers, "fails", fails)
    monkeypatch.setattr(Lingers, "runs", [])
    async with two.daemon([Lingers]) as daemon:
        await until(lambda: Lingers.runs)
        pause_cluster(two)
        await asyncio.sleep(5)
        pause_cluster(two, None)
        await asyncio.sleep(4)
        assert Lingers.runs == ["begun"], "it hasn't ended yet"
        await asyncio.sleep(4)
        assert Lingers.runs == ["begun", "ended", "begun"]
        pause_cluster(two)
        await asyncio.sleep(60)
        assert Lingers.runs == ["begun", "ended"] * 2, "a paused one isn't run again"
        pause_cluster(two, None)
        await daemon.settled()
        pause_cluster(two)
        await daemon.settled()
    assert Lingers.runs == ["begun", "ended"] * 3, "the daemon's end awaits the one that was paused before"
    logged = capsys.readouterr().err
    assert logged.count("raised an exception while it was stopped") == (3 if fails else 0)


# -- one syncer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarted", [False, True])
async def test_syncer_that_is_paused_is_left_alone_and_no_other(two: Two, restarted: bool) -> None:
    async def left_alone(two: Two, daemon: Daemon) -> None:
        since = len(two.host.requests)
        for plural in ("configmaps", "services"):
            change(two, plural)
            two.virtual.delete(plural, f"{NAMESPACE}/gone")
        two.virtual.put(configmap("new"))
        await until(lambda: changed(two, "services") and two.copy("services", "gone") is None)
        await daemon.settled()
        [deletion] = [line for line in writes(two.host, since) if "configmaps" in line]
        assert deletion.endswith(host_path("gone").rpartition("/")[2])
        for name in ("x", "new"):
            expected = f"take configmaps out of the annotation {PAUSED} of the virtual ConfigMap kube-system/vsyncer"
            assert expected in reason(daemon, name)
        pause_cluster(two, "services")
        assert await until(lambda: changed(two, "configmaps") and two.copy("configmaps", "new")) < 1
        pause_cluster(two, None)

    for name in ("x", "gone"):
        two.virtual.put(configmap(name))
        two.virtual.put(service(name))
    async with two.daemon(SOME) as daemon:
        await until(lambda: two.copy("configmaps", "gone") and two.copy("services", "gone"))
        await daemon.settled()
        pause_cluster(two, "configmaps, nothing-of-this-name")
        await daemon.settled()
        if not restarted:
            await left_alone(two, daemon)
    if restarted:
        async with two.daemon(SOME) as daemon:
            await left_alone(two, daemon)


async def test_own_controller_of_a_paused_syncer_stands_still(two: Two) -> None:
    Controls.running.clear()
    pause_cluster(two, "controls")
    async with two.daemon([Controls]) as daemon:
        await daemon.settled()
        assert Controls.running == []
        pause_cluster(two, "services")
        assert await until(lambda: Controls.running == [CLUSTER]) < 1
        pause_cluster(two, "services,controls")
        assert await until(lambda: Controls.running == []) < 1
        pause_cluster(two, None)
        assert await until(lambda: Controls.running == [CLUSTER]) < 1


async def test_patroller_leaves_a_paused_syncer_alone(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon(SOME) as daemon:
        await until(lambda: two.copy("configmaps", "x"))
        pause_cluster(two, "configmaps")
        await daemon.settled()
        two.host.put(merged(there(two.host, "configmaps", host_path("x")), {"data": {"color": "theirs"}}))
        [patroller] = daemon.process.patrollers()
        for scan in await patroller.scan_all():
            assert (scan.findings, scan.problem) == ([], "")
        assert (two.copy("configmaps", "x") or {})["data"] == {"color": "theirs"}


# -- what begins on the host, and nodes ------------------------------------------------------------


async def test_stand_in_for_a_node_is_left_alone_while_it_is_paused(two: Two) -> None:
    two.virtual.put(pod("x"))
    async with two.daemon() as daemon:
        await until(lambda: two.copy("pods", "x"))
        run_on(two, "n1")
        await until(lambda: two.virtual.get("nodes", "n1"))
        await daemon.settled()
        annotate(two.virtual, "nodes", "n1")
        two.virtual.delete("pods", f"{NAMESPACE}/x")
        two.host.delete("pods", host_path("x"))
        await daemon.settled()
        assert two.virtual.get("nodes", "n1")
        assert "from the virtual Node n1" in reason(daemon, "n1", "nodes")
        annotate(two.virtual, "nodes", "n1", None)
        assert await until(lambda: two.virtual.get("nodes", "n1") is None) < 1


@pytest.mark.parametrize("side", list(Side))
async def test_host_object_is_left_alone_while_either_object_is_paused(two: Two, side: Side) -> None:
    cert_manager(two)
    server = two.host if side is Side.HOST else two.virtual
    two.host.put(custom(CLUSTER_ISSUERS, "le", namespace="", **merged(PUBLIC, {"spec": {"acme": {}}})))
    async with running(two, example("cert-manager")) as daemon:
        await until(lambda: two.virtual.get(CLUSTER_ISSUERS, "le"))
        annotate(server, CLUSTER_ISSUERS, "le")
        await daemon.settled()
        two.host.put(merged(there(two.host, CLUSTER_ISSUERS, "le"), TIER))
        await daemon.settled()
        assert f"from the {side} ClusterIssuer le" in reason(daemon, "le", CLUSTER_ISSUERS)
        assert "tier" not in there(two.virtual, CLUSTER_ISSUERS, "le")["metadata"]["labels"]
        annotate(server, CLUSTER_ISSUERS, "le", None)
        assert await until(lambda: "tier" in there(two.virtual, CLUSTER_ISSUERS, "le")["metadata"]["labels"]) < 1


# -- rights ----------------------------------------------------------------------------------------


async def test_marks_on_objects_alone_count_without_the_right_to_read_namespaces(two: Two) -> None:
    two.virtual = ApiServer(seed="virtual", rbac=True)
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}
    rbac = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [rule]}
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": "r"}
    subjects = [{"apiGroup": rbac, "kind": "User", "name": "daemon"}]
    two.virtual.put(role)
    two.virtual.put({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects, "rules": None})
    two.virtual.put(secret("x"))
    two.virtual.put(secret("held", metadata={"annotations": {PAUSED: "true"}}))
    config = configured(Tenant(two.virtual, options=ALL), built_in("secrets"))
    async with between(two.host, [(config, two.virtual)], tenant="daemon") as daemon:
        await until(lambda: two.copy("secrets", "x"))
        await daemon.settled()
        assert two.copy("secrets", "held") is None
        assert f"the virtual Secret {NAMESPACE}/held" in reason(daemon, "held", "secrets")


async def test_note_is_watched_in_its_namespace_only_where_nothing_else_needs_more(two: Two) -> None:
    async with two.daemon(built_in("secrets")) as daemon:
        await daemon.settled()
    paths = {one.path for one in two.virtual.requests if one.resource == "configmaps"}
    assert paths == {"/api/v1/namespaces/kube-system/configmaps"}
