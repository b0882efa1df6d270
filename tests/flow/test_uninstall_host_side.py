"""Nothing that a tenant does in a virtual cluster keeps the host side from being uninstalled."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from custom_scene import CERTIFICATES, there
from harness import CLUSTER, HOME, Two, admin, host_path, play, utcnow
from rules_scene import edit
from shop_scene import the_copy, the_original
from uninstall_scene import (
    ELECTING,
    LEASES,
    MARKED,
    NOTE,
    both,
    clusters,
    config,
    contents,
    kubelet,
    marked,
    now,
    only,
    planned,
    sent,
    synced,
    uninstalled,
    worked,
)

from hack.side_tasks import helped_by
from kube_envtest import Rule
from syncer.api import Key, Obj, Resource, Side, SyncerError, annotations_of, key_of
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Changes, Discovery
from syncer.config import ConnectionSection, SyncerConfig
from syncer.daemon.start import connecting
from syncer.daemon.uninstall import inventory
from syncer.daemon.uninstall.uninstall import Later, UninstallReport, uninstall
from syncer.resources.kinds import NODES, PODS
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, pod

Trick = Callable[[Two], object]


class Undiscoverable(Discovery):
    """Discovery of a virtual cluster with an APIService of a group of ours that leads nowhere."""

    async def refresh(self, *, shared: float = 0.0) -> Changes:
        """Discover, but for that group."""
        found = await super().refresh(shared=shared)
        if self.cluster.side is Side.VIRTUAL:
            self.silent = ("cert-manager.io/v1",)
        return found


def nameless(body: bytes) -> bytes:
    """Return a list whose objects have no names."""
    return body.replace(b'"name":', b'"nome":')


def node_with_finalizer(two: Two) -> None:
    """Put a Node with our mark, and a finalizer that nothing ends."""
    two.virtual.put(merged(build(NODES, "held", metadata={"finalizers": ["tenant.example.com/held"]}), MARKED))
    edited = two.virtual.objects("nodes")
    assert any("finalizers" in node["metadata"] for node in edited)


#: What a tenant may do, each of which keeps an uninstall of both sides from its end.
TRICKS: Mapping[str, Trick] = {
    "no answer": lambda two: two.virtual.faults.add(Rule(reset="before")),
    "never an answer": lambda two: two.virtual.faults.add(Rule(latency=1e6)),
    "errors": lambda two: two.virtual.faults.add(Rule(status=500)),
    "writes refused": lambda two: two.virtual.faults.add(Rule(verb="[pd]*", status=500)),
    "lists refused": lambda two: two.virtual.faults.add(Rule(verb="list", status=403)),
    "malformed answers": lambda two: two.virtual.faults.add(Rule(verb="list", rewrite=nameless)),
    "claim edited": lambda two: two.virtual.put(
        configmap("vsyncer", namespace="kube-system", data={"identity": "another", "translator": "", "marks": ""})
    ),
    "node held": node_with_finalizer,
    "group undiscoverable": lambda two: None,  # by the discovery above
}


def later(two: Two) -> Later:
    """Return a function that connects to the virtual cluster."""

    @asynccontextmanager
    async def connected() -> AsyncIterator[Mapping[Side, SideClient]]:
        yield clusters(two)

    return connected


async def host_side(two: Two, given: SyncerConfig, *, keep: bool = False, then: Later | None = None) -> UninstallReport:
    """Uninstall the host side, with a kubelet there."""
    host = {Side.HOST: clusters(two)[Side.HOST]}
    async with helped_by(kubelet(two)):
        return await uninstall(given, given.cluster(), host, yes=True, keep=keep, later=then)


@pytest.fixture(params=TRICKS)
def trick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Trick:
    name: str = request.param
    if name == "group undiscoverable":
        monkeypatch.setattr(inventory, "Discovery", Undiscoverable)
    return TRICKS[name]


async def test_host_side_alone_leaves_no_copy_and_asks_nothing_of_the_virtual_cluster(two: Two, trick: Trick) -> None:
    given = config(**ELECTING)
    _, host = await synced(two, given)
    trick(two)
    virtual, since = contents(two.virtual), now(two)
    report = await host_side(two, given)
    assert (report.problems, report.done, report.exit_code) == ([], True, 0)
    assert contents(two.host) == host
    assert len(two.virtual.requests) == since[0]
    assert contents(two.virtual) == virtual


async def test_host_side_first_ends_well_whatever_the_tenant_does(two: Two, trick: Trick) -> None:
    given = config(**ELECTING)
    _, host = await synced(two, given)
    trick(two)
    begun = asyncio.get_running_loop().time()
    report = await host_side(two, given, then=later(two))
    assert (report.problems, report.done, report.exit_code) == ([], True, 0)
    assert any("the virtual side is not finished" in line for line in report.remarks)
    assert contents(two.host) == host
    assert asyncio.get_running_loop().time() - begun < 150


@pytest.mark.parametrize("name", TRICKS)
async def test_trick_prevents_the_end_of_an_uninstall_of_both_sides(
    two: Two, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the tests above would prove nothing."""
    given = config(**ELECTING)
    await synced(two, given)
    if name == "group undiscoverable":
        monkeypatch.setattr(inventory, "Discovery", Undiscoverable)
    TRICKS[name](two)
    report = None
    try:
        async with asyncio.timeout(200):
            report = await uninstalled(two, given)
    except (SyncerError, TimeoutError):
        return
    assert not report.done


@pytest.mark.parametrize("keep", [False, True])
def test_host_side_first_leaves_both_sides_as_an_uninstall_of_both_does(keep: bool) -> None:
    ends = []

    async def scenario(*, first: bool) -> None:
        two, given = Two(), config(**ELECTING)
        await synced(two, given)
        edit(two, "virtual", "configmaps", {"metadata": {"annotations": {"vsyncer.dev/copied": "some-uid"}}}, "color")
        if first:
            report = await host_side(two, given, keep=keep, then=later(two))
        else:
            report = await uninstalled(two, given, keep=keep)
        assert (report.problems, report.done) == ([], True)
        assert annotations_of(the_original(two, "configmaps", "color")) == {}
        assert two.virtual.get("configmaps", NOTE) is None
        ends.append(([set(side) for side in both(two)], marked(two.virtual), marked(two.host)))

    play(lambda: scenario(first=True))
    play(lambda: scenario(first=False))
    assert ends[0] == ends[1]


async def test_host_side_that_fails_keeps_the_virtual_side_and_the_lease(two: Two) -> None:
    given = config(**ELECTING)
    await synced(two, given)
    edit(two, "host", CERTIFICATES, {"metadata": {"finalizers": ["a/b"]}}, "db")
    since = now(two)
    report = await host_side(two, given, then=later(two))
    assert (report.exit_code, report.done) == (1, False)
    assert "waits for the finalizers a/b" in report.problems[0]
    assert len(two.virtual.requests) == since[0]
    assert there(two.host, LEASES, f"{HOME}/vsyncer-{CLUSTER}")


async def test_virtual_kubeconfig_is_not_read_for_the_host_side_alone(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(given: ConnectionSection, side: Side, *_: object) -> SideClient:
        assert side is Side.HOST
        return admin(two.host, side)

    monkeypatch.setattr(connecting, "_connect", connect)
    given = config()
    async with connecting.connected(given, None) as found:
        assert list(found) == [Side.HOST]


async def test_virtual_kubeconfig_that_is_missing_is_a_remark_of_the_host_side_first(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = connecting._connect

    def connect(given: ConnectionSection, side: Side, *rest: Any) -> SideClient:
        return admin(two.host, side) if side is Side.HOST else real(given, side, *rest)

    monkeypatch.setattr(connecting, "_connect", connect)
    given = config(**ELECTING)
    _, host = await synced(two, given)
    begun = asyncio.get_running_loop().time()
    report = await host_side(two, given, then=partial(connecting.connected, given, given.cluster()))
    assert (report.problems, report.done, report.exit_code) == ([], True, 0)
    missing = given.cluster().connection.kubeconfig
    assert any("the virtual side is not finished" in line and missing in line for line in report.remarks)
    assert contents(two.host) == host
    assert asyncio.get_running_loop().time() - begun < 60


async def test_plan_of_the_host_side_names_its_objects_alone_and_writes_nothing(two: Two) -> None:
    given = config()
    await synced(two, given)
    everything, since = await planned(two, given), now(two)
    host = {Side.HOST: clusters(two)[Side.HOST]}
    report = await uninstall(given, given.cluster(), host, yes=False, keep=False)
    assert set(report.items) == {item for item in everything.items if item.side is Side.HOST}
    assert sent(two, since) == ([], [])
    assert len(two.virtual.requests) == since[0]


# -- Pods that won't end -----------------------------------------------------------------------------


async def exact_kubelet(two: Two) -> None:
    """End deleted Pods when their grace period is over, and not before: they ignore a TERM."""
    while True:
        await asyncio.sleep(1)
        for copy in two.host.objects("pods"):
            ends = copy["metadata"].get("deletionTimestamp")
            if ends and datetime.fromisoformat(ends) <= utcnow():
                two.host.delete("pods", f"{copy['metadata']['namespace']}/{copy['metadata']['name']}")


@pytest.mark.parametrize(
    ("own", "being_deleted", "sent_grace"), [(10**9, False, 60), (10**9, True, 60), (61, False, 60), (30, False, None)]
)
async def test_pod_that_would_take_years_to_end_is_gone_within_two_minutes(
    two: Two, own: int, being_deleted: bool, sent_grace: int | None
) -> None:
    given = only(two, "pods")
    two.virtual.put(merged(pod("web"), {"spec": {"terminationGracePeriodSeconds": own}}))
    await worked(two, given, lambda: two.copy("pods", "web"))
    copy = the_copy(two, "pods", "web")
    two.host.put(merged(copy, {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}))
    host = clusters(two)[Side.HOST]
    if being_deleted:
        await host.delete(PODS, key_of(copy))
        assert there(two.host, "pods", host_path("web"))["metadata"]["deletionGracePeriodSeconds"] == own
    graces: list[int | None] = []

    class Noting(SideClient):
        async def delete(self, resource: Resource, key: Key, **options: Any) -> Obj | None:
            if resource.plural == "pods":
                graces.append(options.get("grace"))
            return await super().delete(resource, key, **options)

    begun = asyncio.get_running_loop().time()
    noting = {Side.HOST: Noting(host.name, host.side, host.transport)}
    async with helped_by(exact_kubelet(two)):
        report = await uninstall(given, given.cluster(), noting, yes=True, keep=False)
    assert (report.problems, report.done) == ([], True)
    assert asyncio.get_running_loop().time() - begun < 120
    assert two.copy("pods", "web") is None
    assert graces == [sent_grace]


async def test_pod_that_never_ends_is_waited_for_two_minutes_at_most(two: Two) -> None:
    given = only(two, "pods")
    two.virtual.put(merged(pod("web"), {"spec": {"terminationGracePeriodSeconds": 10**9}}))
    await worked(two, given, lambda: two.copy("pods", "web"))
    two.host.put(merged(the_copy(two, "pods", "web"), {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}))
    begun = asyncio.get_running_loop().time()
    report = await uninstall(given, given.cluster(), clusters(two), yes=True, keep=False)
    assert [line for line in report.problems if "is not gone yet" in line]
    assert 60 < asyncio.get_running_loop().time() - begun < 130
