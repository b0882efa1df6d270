"""Wherever an uninstall is interrupted, refused or failing, it reports that, and the next one finishes it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from custom_scene import CERTIFICATES, there
from harness import HOME, Tenant, Two, admin, built_in, configured, host_path, play
from rules_scene import edit, rights
from shop_scene import the_copy
from uninstall_scene import (
    ELECTING,
    LABEL,
    LEASES,
    NOTE,
    Death,
    both,
    claimed,
    clusters,
    config,
    contents,
    killed,
    marked,
    now,
    only,
    planned,
    sent,
    synced,
    uninstalled,
    worked,
    working,
)

from kube_envtest import Rule
from syncer.api import ConfigError, Key, Obj, Resource, Side
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Changes, Discovery
from syncer.daemon.fleet.leadership import leading
from syncer.daemon.uninstall.inventory import Lister, Recognition
from syncer.leaderelection.lease import AnotherLeads
from syncer.testing.objects import configmap


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_killed_uninstall_is_completed_by_the_next(keep: bool, after: bool) -> None:
    async def scenario(number: int) -> tuple[bool, object]:
        two = Two()
        given = config(**ELECTING)
        others = await synced(two, given)
        was = await killed(two, given, Death(number, after=after), keep=keep)
        if two.virtual.get("configmaps", NOTE) is None:
            assert marked(two.virtual) <= set(others[0]), "the note goes after everything else"
        report = await uninstalled(two, given, keep=keep)
        assert (report.problems, report.done) == ([], True)
        left = both(two)
        for known, found in zip(others, left, strict=True):
            assert known.items() <= found.items()
        return was, ([set(side) for side in left], marked(two.virtual), marked(two.host))

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


async def test_uninstall_is_refused_beside_a_leading_daemon_that_it_names(two: Two) -> None:
    for given in (config(**ELECTING), config()):
        async with leading(admin(two.host, Side.HOST), config(**ELECTING), ()):
            await asyncio.sleep(1)
            since = now(two)
            holder = there(two.host, LEASES, f"{HOME}/vsyncer-vc")["spec"]["holderIdentity"]
            with pytest.raises(AnotherLeads, match=holder):
                await uninstalled(two, given)
            virtual, host = sent(two, since)
            assert [line for line in (*virtual, *host) if "/leases" not in line] == [], "but for the Lease, held"


async def test_another_identity_is_refused(two: Two) -> None:
    await synced(two, config())
    since = now(two)
    with pytest.raises(ConfigError, match="was synced as"):
        await uninstalled(two, config(cluster="other"))
    assert sent(two, since) == ([], [])


async def test_failed_list_prevents_all_writes(two: Two) -> None:
    given = config()
    await synced(two, given)
    two.host.faults.add(Rule(verb="list", resource="pods", status=503))
    since = now(two)
    assert (await planned(two, given)).exit_code == 1
    report = await uninstalled(two, given)
    assert (report.exit_code, report.done) == (1, False)
    assert any("list pods" in line for line in report.problems)
    assert sent(two, since) == ([], [])


async def test_kinds_that_cannot_be_listed_are_reported_and_matter_only_if_needed() -> None:
    two = Two(rbac=True)
    given = only(two, "configmaps")
    for obj in rights("ann", "configmaps"):
        two.host.put(obj)
    report = await planned(two, given, user="ann")
    assert report.problems == []
    assert any("not checked" in line and '"secrets"' in line for line in report.remarks)
    two.host.delete("rolebindings.rbac.authorization.k8s.io", f"{HOME}/r")
    report = await planned(two, given, user="ann")
    assert [line for line in report.problems if '"configmaps"' in line]


class HalfDown(Discovery):
    """Of a cluster in which the API server that serves certificates is down."""

    async def refresh(self, *, shared: float = 0.0) -> Changes:
        found = await super().refresh(shared=shared)
        self.silent = ("cert-manager.io/v1",)
        return found


async def test_group_version_that_cannot_be_discovered_is_reported(two: Two) -> None:
    await synced(two, config())
    for given, about in ((config(), True), (configured(Tenant(two.virtual), built_in("configmaps")), False)):
        lister = Lister(clusters(two), Recognition.of(given.cluster()))
        lister.discoveries[Side.HOST] = HalfDown(lister.clusters[Side.HOST])
        found = await lister.look()
        lines = [line for line in found.problems if "cert-manager.io/v1" in line]
        assert bool(lines) == about
        assert any("cert-manager.io/v1" in line for line in (*found.problems, *found.unseen))


TROUBLES: list[Callable[[], Rule]] = [
    lambda: Rule(verb="delete", status=409, probability=0.5),
    lambda: Rule(verb="delete", status=429, count=5),
    lambda: Rule(verb="delete", status=503, count=5),
    lambda: Rule(verb="delete", reset="after", probability=0.5),
    lambda: Rule(verb="delete", reset="before", probability=0.3),
]


@pytest.mark.parametrize("trouble", range(len(TROUBLES)))
async def test_temporary_failures_are_overcome(two: Two, trouble: int) -> None:
    given = config()
    others = await synced(two, given)
    for server in (two.virtual, two.host):
        server.faults.add(TROUBLES[trouble]())
    while not (report := await uninstalled(two, given)).done:
        assert report.exit_code == 1
    assert both(two) == others


async def test_list_that_expires_is_restarted(two: Two) -> None:
    given = config()
    await synced(two, given)
    two.host.faults.add(Rule(verb="list", resource="secrets", status=410, count=2))
    assert (await planned(two, given)).problems == []


class Meddler(SideClient):
    """A user who takes our mark off an object just before it would be deleted."""

    def __init__(self, real: SideClient, meddle: Callable[[Key], None]) -> None:
        super().__init__(real.name, real.side, real.transport)
        self._meddle = meddle

    async def delete(self, resource: Resource, key: Key, **options: Any) -> Obj | None:
        self._meddle(key)
        return await super().delete(resource, key, **options)


@pytest.mark.parametrize("mark", [("labels", LABEL), ("annotations", "vsyncer.dev/host-name")])
async def test_object_that_ceases_to_be_ours_is_left_alone(two: Two, mark: tuple[str, str]) -> None:
    given = only(two, "configmaps")
    for name in ("x", "y"):
        two.virtual.put(configmap(name))
    await worked(two, given, lambda: two.copy("configmaps", "y"))

    def meddle(key: Key) -> None:
        copy = two.host.get("configmaps", key)
        if str(key) == host_path("x") and copy and mark[1] in copy["metadata"][mark[0]]:
            edit(two, "host", "configmaps", {"metadata": {mark[0]: {mark[1]: None}}})

    real = clusters(two)
    using = {**real, Side.HOST: Meddler(real[Side.HOST], meddle)}
    assert (await uninstalled(two, given, using=using)).done
    assert mark[1] not in the_copy(two, "configmaps", "x")["metadata"][mark[0]]
    assert two.copy("configmaps", "y") is None


async def test_finalizer_that_holds_an_object_is_reported_and_stops_later_steps(two: Two) -> None:
    given = config()
    _, host = await synced(two, given)
    edit(two, "host", CERTIFICATES, {"metadata": {"finalizers": ["a/b"]}}, "db")
    report = await uninstalled(two, given)
    assert report.exit_code == 1
    assert f"host Certificate {host_path('db')} is being deleted and waits for the finalizers a/b" in report.problems[0]
    assert two.copy("secrets", "db"), "its operator may need it to end"
    assert two.virtual.get("configmaps", NOTE)
    certificates = Resource("cert-manager.io/v1", "Certificate", "certificates")
    ended: Obj = {"metadata": {"finalizers": None}}
    await admin(two.host, Side.HOST).patch(certificates, Key.parse(host_path("db")), ended)
    assert (await uninstalled(two, given)).done
    assert contents(two.host) == host


async def test_daemon_that_recreates_everything_is_noticed(two: Two) -> None:
    given = only(two, "configmaps")
    two.virtual.put(configmap("x"))
    await claimed(two, given)
    async with working(two, given, lambda: two.copy("configmaps", "x")):
        report = await uninstalled(two, given)
    assert not report.done
    assert report.problems
    assert two.virtual.get("configmaps", NOTE)
