"""Values that look like the same number, nulls and empty values go to the other side, and a patrol finds where they
differ.
"""

import asyncio
import functools
import json
import math
import random
from typing import Any

import pytest
from custom_scene import there
from harness import CLUSTER, NAMESPACE, Daemon, Two, add, crd, host_path, until, utcnow, widget, writes
from rules_scene import WIDGETS, Guarded, configured, edit, on, running

from syncer.api import Obj, Side
from syncer.cli.patrol import lines
from syncer.clusters.client import SideClient
from syncer.config import SyncerConfig
from syncer.daemon.patrol_once import scan_once
from syncer.daemon.process import Process
from syncer.observe.metrics import Metrics
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, ingress, node, pod, service, serviceaccount

SYNC: Obj = {
    "toHost": {"configMaps": {"all": True}, "networkPolicies": {"enabled": True}, "ingresses": {"enabled": True}},
    "fromHost": {"nodes": {"enabled": True, "metadata": {"labels": {"allow": ["*", "rack"]}}}},
    "custom": {WIDGETS: {}},
}
KINDS = ("services", "pods", "serviceaccounts", "configmaps", "ingresses", "networkpolicies", "host-nodes")


def policy(**labels: str) -> Obj:
    spec = {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress"]}
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return {**head, "metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec}


#: By resource: an object, what is changed about it, and where.
LIMIT, TIMEOUT = "example.org/limit", "nginx.ingress.kubernetes.io/proxy-read-timeout"
OBJECTS: dict[str, tuple[Obj, Obj]] = {
    "services": (
        service(
            "x",
            metadata={"labels": {"version": "1"}, "annotations": {LIMIT: "1000m"}},
            spec={"selector": {"app": "web", "version": "1", "slot": "02"}},
        ),
        {
            "metadata": {"labels": {"version": "1.0"}, "annotations": {LIMIT: "1"}},
            "spec": {"selector": {"app": "web", "version": "1.0", "slot": "2"}},
        },
    ),
    "pods": (
        pod("x", metadata={"labels": {"version": "1", "build": "0100"}}),
        {"metadata": {"labels": {"version": "1.0", "build": "100"}}},
    ),
    "networkpolicies.networking.k8s.io": (
        policy(version="1"),
        {"spec": {"podSelector": {"matchLabels": {"version": "1.0"}}}},
    ),
    "configmaps": (
        configmap(
            "x",
            {"code": "007", "limit": "1000m"},
            metadata={"labels": {"ver": "010"}, "annotations": {LIMIT: "007"}},
        ),
        {"metadata": {"labels": {"ver": "10"}, "annotations": {LIMIT: "7"}}, "data": {"code": "7", "limit": "1"}},
    ),
    "ingresses.networking.k8s.io": (
        ingress("x", service="x", metadata={"annotations": {TIMEOUT: "010"}}),
        {"metadata": {"annotations": {TIMEOUT: "10"}}},
    ),
    WIDGETS: (
        widget("x", spec={"chart": "007", "limit": "1000m", "replicas": "3", "tag": 1, "on": True, "list": [1, "01"]}),
        {"spec": {"chart": "7", "limit": "1", "replicas": 3, "tag": "1.0", "on": 1, "list": [True, "1"]}},
    ),
}


def text_of(obj: Obj, like: Obj) -> str:
    """Return those parts of an object that another has, as JSON, in which True isn't 1."""

    def among(value: Any, wanted: Any) -> Any:
        if not isinstance(wanted, dict):
            return value
        return {name: among(value.get(name), below) for name, below in sorted(wanted.items())}

    return json.dumps(among(obj, like))


def copy_of(two: Two, plural: str) -> Obj:
    return there(two.host, plural, host_path("x"))


def are_copied(two: Two, change: bool) -> bool:
    """Return True if all copies are as the originals, before the change or after."""
    for plural, (original, changed) in OBJECTS.items():
        copy = two.copy(plural, "x")
        now = merged(original, changed) if change else original
        if copy is None or text_of(copy, changed) != text_of(now, changed):
            return False
    return True


def policy_selects(two: Two) -> dict[str, str]:
    """Return the fields of the policy's copy about the version that it selects."""
    labels: dict[str, str] = copy_of(two, "networkpolicies.networking.k8s.io")["spec"]["podSelector"]["matchLabels"]
    return labels


def with_all() -> Guarded:
    two = Guarded()
    two.virtual.put(serviceaccount("default"))
    for original, _ in OBJECTS.values():
        two.virtual.put(original)
    two.host.put(node("n1", metadata={"labels": {"rack": "01"}}))
    return two


def rack(two: Two) -> str | None:
    shown = two.virtual.get("nodes", "n1")
    return shown["metadata"]["labels"].get("rack") if shown else None


async def patrolled_once(two: Guarded, config: SyncerConfig) -> dict[str, Any]:
    """Return the report of a scan by a command while another process leads, so that nothing is repaired."""
    host = SideClient("host", Side.HOST, two.host.transport())
    process = Process(
        host=host,
        metrics=Metrics(version="test"),
        until=lambda cluster: -math.inf,
        utcnow=utcnow,
        rng=random.Random(1),
    )
    add(process, config, two.virtual)
    await process.prepare()
    report = await scan_once(
        process, process.pairs[CLUSTER], kinds=(), confirm=False, hands_off=lambda: "another daemon leads"
    )
    assert isinstance(report, dict)
    return report


async def test_value_that_looks_like_the_same_number_goes_to_the_other_side() -> None:
    two = with_all()
    async with running(two, configured(SYNC, *KINDS)) as daemon:
        await until(lambda: are_copied(two, change=False) and rack(two) == "01")
        await daemon.settled()
        for plural, (_, changed) in OBJECTS.items():
            edit(two, "virtual", plural, changed)
        two.host.put(merged(there(two.host, "nodes", "n1"), {"metadata": {"labels": {"rack": "1"}}}))
        await until(lambda: are_copied(two, change=True) and rack(two) == "1", within=5)
        await daemon.settled()
        labels = copy_of(two, "pods")["metadata"]["labels"]
        assert policy_selects(two).items() <= labels.items(), "the policy still holds the Pod"
        assert not list(daemon.process.statuses.troubles())
        await nothing_more_is_written(two)


async def nothing_more_is_written(two: Two) -> None:
    since = len(two.virtual.requests), len(two.host.requests)
    await asyncio.sleep(500)
    assert writes(two.virtual, since[0]) + writes(two.host, since[1]) == []


async def test_patrol_finds_copies_that_look_like_the_same_number() -> None:
    two = with_all()
    config = configured(SYNC, *KINDS)
    async with running(two, config) as daemon:
        await until(lambda: are_copied(two, change=False) and rack(two) == "01")
        await daemon.settled()
    for plural, (_, changed) in OBJECTS.items():
        if plural != "networkpolicies.networking.k8s.io":
            two.host.put(merged(copy_of(two, plural), changed))
    two.virtual.put(merged(there(two.virtual, "nodes", "n1"), {"metadata": {"labels": {"rack": "1"}}}))
    report = await patrolled_once(two, config)
    found = "\n".join(lines(report, diff=True))
    for line in (
        'metadata.labels.version: "1" -> "1.0"',
        'spec.selector.slot: "02" -> "2"',
        'metadata.labels.build: "0100" -> "100"',
        'metadata.labels.ver: "010" -> "10"',
        'data.code: "007" -> "7"',
        'metadata.annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"]: "010" -> "10"',
        'spec.chart: "007" -> "7"',
        'spec.replicas: "3" -> 3',
        'spec.tag: 1 -> "1.0"',
        "spec.on: true -> 1",
        'metadata.labels.rack: "01" -> "1"',
    ):
        assert line in found


# -- null and empty values -------------------------------------------------------------------------

#: One spec after another.
HISTORY: tuple[Obj, ...] = (
    {"values": {"limits": {"cpu": "5", "memory": "64Mi"}, "list": [{"a": 1}]}},
    {
        "values": {
            "limits": {"cpu": None, "memory": "64Mi"},
            "quota": None,
            "list": [{"a": None}, None],
            "e": {},
            "l": [],
        }
    },
    {"values": {"limits": {"cpu": None}, "quota": {"a": None, "b": 1}, "list": [{}, None], "l": None}},
    {"values": {"limits": None, "quota": {"b": None}, "list": [], "e": {"x": None}}, "other": None},
    {"values": {}, "other": {}},
    {"values": None},
    {},
)


def both_have(two: Two, part: str, value: Any) -> bool:
    sides = (two.virtual.get(WIDGETS, f"{NAMESPACE}/x"), two.copy(WIDGETS, "x"))
    wanted = json.dumps(value, sort_keys=True)
    return all(side is not None and json.dumps(side.get(part), sort_keys=True) == wanted for side in sides)


def give(two: Two, side: str, part: str, value: Any) -> None:
    """A user gives a part of the widget another value, with all its nulls."""
    server = two.virtual if side == "virtual" else two.host
    server.put({**on(two, side, WIDGETS), part: value})


def futile(daemon: Daemon) -> float:
    """Return how many writes changed nothing."""
    registry = daemon.process.metrics.registry
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    return sum(sample.value for sample in samples if sample.name == "syncer_futile_writes_total")


@pytest.mark.parametrize("authority", [{}, {"spec": "both"}], ids=["virtual", "both"])
async def test_copy_has_the_nulls_and_the_empty_values_of_its_original_after_each_change(authority: Obj) -> None:
    two = Guarded()
    two.virtual.put(widget("x", spec=HISTORY[0]))
    config = configured({"custom": {WIDGETS: {"authority": authority} if authority else {}}})
    async with running(two, config) as daemon:
        for spec in (*HISTORY, *reversed(HISTORY)):
            give(two, "virtual", "spec", spec)
            await until(functools.partial(both_have, two, "spec", spec), within=5)
            await daemon.settled()
            assert both_have(two, "spec", spec)
        assert futile(daemon) == 0
        await nothing_more_is_written(two)


async def test_nulls_come_up_too_and_a_patrol_finds_one_that_is_missing() -> None:
    two = Guarded()
    two.virtual.put(widget("x", spec=HISTORY[1]))
    config = configured({"custom": {WIDGETS: {}}})
    async with running(two, config) as daemon:
        await until(lambda: both_have(two, "spec", HISTORY[1]))
        for status in HISTORY:
            give(two, "host", "status", status)
            await until(functools.partial(both_have, two, "status", status), within=5)
            await daemon.settled()
        assert futile(daemon) == 0
    give(two, "host", "spec", HISTORY[0])
    found = "\n".join(lines(await patrolled_once(two, config), diff=True))
    assert 'spec.values.limits.cpu: null -> "5"' in found
    assert "spec.values.quota: null -> (absent)" in found


async def test_null_that_the_host_drops_is_written_once() -> None:
    two = Guarded()
    definition = crd("widgets")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] = {"size": {"type": "integer"}, "more": {"type": "integer"}}
    two.host.put(merged(there(two.host, "customresourcedefinitions.apiextensions.k8s.io", WIDGETS), definition))
    two.virtual.put(widget("x", spec={"size": None, "free": None}))
    async with running(two, configured({"custom": {WIDGETS: {}}})) as daemon:
        await until(lambda: two.copy(WIDGETS, "x"))
        await daemon.settled()
        assert copy_of(two, WIDGETS)["spec"] == {"free": None}
        give(two, "virtual", "spec", {"size": None, "free": None, "more": None, "b": 1})
        await until(lambda: copy_of(two, WIDGETS)["spec"] == {"free": None, "b": 1})
        await daemon.settled()
        since = len(two.host.requests)
        for number in range(5):
            give(two, "host", "status", {"seen": number})
            await daemon.settled()
        assert writes(two.host, since) == []
        assert futile(daemon) == 0
        give(two, "virtual", "spec", {"size": 3, "free": None})
        await until(lambda: copy_of(two, WIDGETS)["spec"] == {"free": None, "size": 3})
