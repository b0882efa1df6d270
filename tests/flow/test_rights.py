"""A missing right or kind degrades only what needs it, and is reported."""

import asyncio
from collections.abc import Sequence

import pytest
from harness import Two, built_in, crd, until, verbs, widget
from small_syncers import Maps, Widgets, copies

from syncer.api import Obj
from syncer.daemon.pages.status import degraded
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, secret


def role(*resources: str, verbs: Sequence[str] = ("*",), group: str = "") -> list[Obj]:
    """Rights of the daemon's user on the host."""
    name = f"r-{'-'.join(resources)}".replace("/", ".")
    rule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "daemon"}],
        },
    ]


async def test_right_that_is_missing_degrades_that_kind_only_until_it_is_given() -> None:
    two = Two(rbac=True)
    for obj in role("configmaps"):
        two.host.put(obj)
    two.virtual.put(configmap("x"))
    two.virtual.put(secret("s"))
    async with two.daemon([Maps, *built_in("secrets")], user="daemon") as daemon:
        await daemon.settled()
        assert "x" in copies(two)
        assert copies(two, "secrets") == set()
        [((_, syncer), reason)] = degraded(daemon.process).items()
        assert syncer == "secrets"
        assert 'resources: ["secrets"], verbs: ["list"]' in reason
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert verbs(two.host, since)["list"] <= 6
        for obj in role("secrets"):
            two.host.put(obj)
        await until(lambda: copies(two, "secrets"))
        assert dict(degraded(daemon.process)) == {}


async def test_missing_right_to_write_is_reported_and_queried_without_a_write() -> None:
    two = Two(rbac=True)
    for obj in [*role("configmaps", verbs=["get", "list", "watch"]), *role("secrets")]:
        two.host.put(obj)
    two.virtual.put(configmap("x"))
    two.virtual.put(secret("s"))
    async with two.daemon([Maps, *built_in("secrets")], user="daemon") as daemon:
        await until(lambda: copies(two, "secrets"))
        await asyncio.sleep(5)
        status = daemon.status("x", "maps")
        assert status
        assert 'verbs: ["create"]' in status.reason
        since = len(two.host.requests)
        await asyncio.sleep(60)
        assert [one for one in list(two.host.requests)[since:] if one.status == 403] == []
        assert verbs(two.host, since)["create"] == pytest.approx(12, abs=3), "one question for all, every 5 s"
        for obj in role("configmaps"):
            two.host.put(obj)
        assert await until(lambda: "x" in copies(two)) < 8


async def test_kind_that_does_not_exist_degrades_itself_until_it_does(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon([Widgets, Maps]) as daemon:
        await daemon.settled()
        assert "x" in copies(two)
        [((_, syncer), reason)] = degraded(daemon.process).items()
        assert syncer == "widgets"
        assert "the host cluster does not serve widgets.example.org" in reason
        for server in (two.virtual, two.host):
            server.put(crd("widgets"))
        two.virtual.put(widget("w", spec={"size": 3}))
        await until(lambda: copies(two, "widgets.example.org") == {"w"})
        assert dict(degraded(daemon.process)) == {}
        copy = two.copy("widgets.example.org", "w")
        assert copy
        assert copy["spec"] == {"size": 3}
        two.host.put(merged(copy, {"status": {"ready": True}}))
        await until(lambda: (two.original("widgets.example.org", "w") or {}).get("status") == {"ready": True})
