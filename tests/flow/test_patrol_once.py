"""A scan by a command: from fresh lists, repaired at once unless another process leads; then only
reported.
"""

import contextlib
import math
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from commands_scene import commands
from harness import ALL, CLUSTER, HOME, NAMESPACE, Tenant, Two, add, configured, host_path, until, utcnow, writes
from rules_scene import edit
from shop_scene import copy_name, forget, many, settled, the_copy

from kube_envtest import Rule
from syncer.api import Refused, Side
from syncer.cli.patrol import is_left, lines
from syncer.clusters.client import SideClient
from syncer.daemon.patrol_once import scan_once
from syncer.daemon.process import Process
from syncer.observe.metrics import Metrics
from syncer.testing.objects import configmap, pod, secret, serviceaccount


async def once(two: Two, *kinds: str, confirm: bool = False, leader: str = "", **patrol: Any) -> dict[str, Any]:
    """Return the report of the command; ``leader`` is the holder of the Lease, if any."""
    host = SideClient("host", Side.HOST, two.host.transport())
    may_write_until = -math.inf if leader else math.inf
    process = Process(
        host=host,
        metrics=Metrics(version="test"),
        until=lambda cluster: may_write_until,
        utcnow=utcnow,
        rng=random.Random(1),
    )
    config = configured(Tenant(two.virtual, options=ALL))
    options = type(config.patrol).model_validate(patrol)
    add(process, config.model_copy(update={"patrol": options}), two.virtual)
    await process.prepare()
    why = f"{leader} leads" if leader else None
    return await scan_once(process, process.pairs[CLUSTER], kinds=kinds, confirm=confirm, hands_off=lambda: why)


@contextlib.asynccontextmanager
async def drifted(two: Two) -> AsyncIterator[None]:
    """Both sides were in step, and then, with no daemon, users edited, deleted and left copies."""
    for obj in (configmap("edited", {"color": "blue"}), configmap("deleted"), configmap("left"), secret("s")):
        two.virtual.put(obj)
    two.virtual.put(pod("web"))
    async with two.daemon() as daemon:
        await daemon.settled()
        await until(lambda: two.copy("pods", "web"))
    edit(two, "host", "configmaps", {"data": {"color": "red"}}, "edited")
    two.host.delete("configmaps", host_path("deleted"))
    two.virtual.delete("configmaps", f"{NAMESPACE}/left")
    yield


def found(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((one["of"], one["class"], one["outcome"]) for kind in report["kinds"] for one in kind["found"])


async def test_drift_is_all_repaired_and_the_next_scan_finds_none(two: Two) -> None:
    async with drifted(two):
        report = await once(two)
        assert found(report) == [
            ("shop/deleted", "missing", "repaired"),
            ("shop/edited", "field", "repaired"),
            ("shop/left", "orphan", "repaired"),
        ]
        assert not is_left(report)
        assert [line for line in lines(report, diff=True) if "data.color" in line][1].startswith(
            '    data.color: "blue" -> "red"'
        )
        assert the_copy(two, "configmaps", "edited")["data"] == {"color": "blue"}
        assert two.copy("configmaps", "deleted")
        assert two.copy("configmaps", "left") is None
        assert found(await once(two)) == []


async def test_scan_writes_only_drifted_objects(two: Two) -> None:
    async with drifted(two):
        since = len(two.host.requests), len(two.virtual.requests)
        await once(two)
        assert len(writes(two.host, since[0])) == 3
        assert writes(two.virtual, since[1]) == []


async def test_scan_only_reports_while_another_leads(two: Two) -> None:
    async with drifted(two):
        since = len(two.host.requests), len(two.virtual.requests)
        report = await once(two, leader="pod-7")
        assert {outcome for _, _, outcome in found(report)} == {"reported"}
        assert is_left(report)
        assert "nothing was written: pod-7 leads" in list(lines(report, diff=False))
        assert writes(two.host, since[0]) == []
        assert writes(two.virtual, since[1]) == []


async def test_policies_hold_for_the_command(two: Two) -> None:
    async with drifted(two):
        report = await once(two, drift={"missing": "report", "orphan": "ignore"})
        assert found(report) == [
            ("shop/deleted", "missing", "reported"),
            ("shop/edited", "field", "repaired"),
            ("shop/left", "orphan", "ignored"),
        ]
        assert two.copy("configmaps", "deleted") is None
        assert two.copy("configmaps", "left")


async def test_kinds_can_be_chosen_and_an_unknown_one_is_an_error(two: Two) -> None:
    async with drifted(two):
        assert found(await once(two, "secrets", "Pod")) == []
        with pytest.raises(Refused, match="nothing that is synced is called 'gizmos'"):
            await once(two, "gizmos")
        assert len(found(await once(two, "ConfigMap"))) == 3


@pytest.mark.real_time
@pytest.mark.parametrize("command", [("patrol", "--once", "gizmos"), ("explain", "--once", "gizmos", "shop/x")])
async def test_command_with_an_unknown_kind_ends_with_a_line_that_names_those_there_are(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    async with commands(tmp_path) as scene:
        ended = await scene.run(*command)
        assert ended.status
        [line] = ended.error.splitlines()
        assert line.startswith("syncer: nothing that is synced is called 'gizmos'; there are ")
        assert "configmaps" in line


async def test_drift_that_waits_for_another_kind_is_repaired_in_the_same_run(two: Two) -> None:
    two.virtual.put(serviceaccount("runner"))
    two.virtual.put(pod("web", spec={"serviceAccountName": "runner"}))
    async with settled(two.daemon()):
        """Until both have copies."""
    two.host.delete("pods", host_path("web"))
    two.host.delete("serviceaccounts", host_path("runner"))
    report = await once(two)
    assert ("shop/runner", "missing", "repaired") in found(report)
    assert not is_left(report)
    for _ in range(2):
        report = await once(two)
    assert two.copy("pods", "web")
    assert found(report) == []


async def test_stopped_deletions_are_reported_and_can_be_confirmed(two: Two) -> None:
    many(two, 10)
    async with settled(two.daemon()):
        """Until all have copies."""
    forget(two, 10)
    report = await once(two, breaker={"count": 5})
    assert {outcome for _, _, outcome in found(report)} == {"held"}
    assert is_left(report)
    assert any("syncer patrol --confirm" in line for line in lines(report, diff=False))
    assert two.copy("configmaps", "c3")
    report = await once(two, confirm=True, breaker={"count": 5})
    assert {outcome for _, _, outcome in found(report)} == {"repaired"}
    assert not is_left(report)
    assert two.copy("configmaps", "c3") is None


async def test_findings_beyond_the_limit_are_counted_and_failures_kept(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncer.engine.patrol.patroller.KEPT", 3)
    many(two, 5)
    two.virtual.put(configmap("x"))
    two.host.put(configmap(copy_name("x"), namespace=HOME))
    report = await once(two, "configmaps")
    assert ("shop/x", "missing", "failed") in found(report)
    assert len(found(report)) == 3
    assert is_left(report)
    assert any("drifted of" in line and "1 failed" in line for line in lines(report, diff=False))
    assert sum(report["kinds"][0]["omitted"].values()) >= 3


async def test_kind_that_cant_be_listed_is_not_waited_for_for_ever(two: Two) -> None:
    async with drifted(two):
        two.host.faults.add(Rule(verb="list", resource="services", status=500))
        report = await once(two)
        assert ("shop/edited", "field", "repaired") in found(report)
        unseen = [kind["syncer"] for kind in report["kinds"] if kind["problem"]]
        assert "services" in unseen
        assert "configmaps" not in unseen
        assert is_left(report)


async def test_refused_object_is_left_with_the_reason(two: Two) -> None:
    two.host.put(configmap(copy_name("x"), namespace=HOME))
    two.virtual.put(configmap("x"))
    report = await once(two, "configmaps")
    assert found(report) == [("shop/x", "missing", "failed")]
    assert is_left(report)
    assert any("not ours" in line for line in lines(report, diff=False))
