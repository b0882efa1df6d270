"""Values that look like the same number go to the other side, and a patrol finds where they differ."""

import asyncio
import json
import math
import random
from typing import Any

from custom_scene import there
from harness import CLUSTER, NAMESPACE, Two, add, place, play, until, utcnow, widget, writes
from rules_scene import WIDGETS, Guarded, configured, edit, running

from syncer.api import Obj, Side
from syncer.cli.patrol import lines
from syncer.clusters.client import Cluster
from syncer.config import SyncerConfig
from syncer.engine.engine import Engine
from syncer.engine.patrol_once import scan_once
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
LIMIT, WEIGHT = "example.org/limit", "nginx.ingress.kubernetes.io/canary-weight"
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
        ingress("x", service="x", metadata={"annotations": {WEIGHT: "010"}}),
        {"metadata": {"annotations": {WEIGHT: "10"}}},
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
    return there(two.host, plural, place("x"))


def are_copied(two: Two, change: bool) -> bool:
    """Return True if all copies are as the originals, before the change or after."""
    for plural, (original, changed) in OBJECTS.items():
        copy = two.copy(plural, "x")
        now = merged(original, changed) if change else original
        if copy is None or text_of(copy, changed) != text_of(now, changed):
            return False
    return True


def policy_selects(two: Two) -> dict[str, str]:
    """Return what the policy's copy says of the version that it selects."""
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
    host = Cluster("host", Side.HOST, two.host.transport())
    engine = Engine(host=host, metrics=Metrics(version="test"), utcnow=utcnow, rng=random.Random(1))
    add(engine, config, two.virtual)
    engine.until = lambda cluster: -math.inf
    await engine.prepare()
    report = await scan_once(
        engine, engine.pairs[CLUSTER], kinds=(), confirm=False, hands_off=lambda: "another daemon leads"
    )
    assert isinstance(report, dict)
    return report


def test_value_that_looks_like_the_same_number_goes_to_the_other_side() -> None:
    async def scenario() -> None:
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
            assert not list(daemon.engine.statuses.troubles())
            await nothing_more_is_written(two)

    play(scenario)


async def nothing_more_is_written(two: Two) -> None:
    seen = len(two.virtual.requests), len(two.host.requests)
    await asyncio.sleep(500)
    assert writes(two.virtual, seen[0]) + writes(two.host, seen[1]) == []


def test_patrol_finds_copies_that_look_like_the_same_number() -> None:
    async def scenario() -> None:
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
            'metadata.annotations["nginx.ingress.kubernetes.io/canary-weight"]: "010" -> "10"',
            'spec.chart: "007" -> "7"',
            'spec.replicas: "3" -> 3',
            'spec.tag: 1 -> "1.0"',
            "spec.on: true -> 1",
            'metadata.labels.rack: "01" -> "1"',
        ):
            assert line in found

    play(scenario)
