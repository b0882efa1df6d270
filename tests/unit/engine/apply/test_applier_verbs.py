"""Decisions with a verb of their own: binding, conditions, merges into subresources, tokens."""

import base64
from dataclasses import replace
from typing import Any

import pytest
from applier_bench import SETTINGS, Bench, copy, ours

from kube_envtest import Rule
from syncer.api import (
    Decision,
    NotFound,
    Obj,
    Side,
    SyncerError,
    Token,
    annotations_of,
    apply,
    bind,
    merge,
    set_conditions,
)
from syncer.resources.kinds import PODS
from syncer.testing.merge import merged
from syncer.testing.objects import pod


async def test_pod_is_bound_through_its_subresource() -> None:
    bench = Bench()
    there = bench.see(Side.VIRTUAL, PODS, bench.virtual.put(pod("web")))
    decision = bind(virtual=there, node="n1")
    [write] = decision.writes
    bound = Decision((type(write)(write.side, write.verb, write.obj, resource=PODS, node=write.node),))
    assert await bench.apply(bound) == ["create virtual shop/pods/web/binding"]
    assert (bench.virtual.get("pods", "shop/web") or {})["spec"]["nodeName"] == "n1"
    assert await bench.apply(bound) == [], "it is bound, though the watch doesn't show it yet"


async def test_conditions_leave_newer_ones_of_others_alone() -> None:
    bench = Bench()
    there = bench.see(Side.HOST, PODS, bench.host.put(ours(pod("web", namespace="vc-ns"))))
    ready = {"type": "Ready", "status": "True"}
    bench.host.put(merged(there, {"status": {"conditions": [ready]}}))
    gate = {"type": "example.org/gate", "status": "True"}
    [write] = set_conditions(host={**there, "status": {"conditions": [gate]}}).writes
    decision = Decision((type(write)(write.side, write.verb, write.obj, resource=PODS),))
    assert await bench.apply(decision) == ["patch host vc-ns/pods/web/status"]
    conditions = (bench.host.get("pods", "vc-ns/web") or {})["status"]["conditions"]
    assert {(one["type"], one["status"]) for one in conditions} == {("Ready", "True"), ("example.org/gate", "True")}


def debugging(there: Obj, **fields: Any) -> Decision:
    """Return the decision to add an ephemeral container to a Pod."""
    container = {"name": "debug", "image": "i", **fields}
    host = {**there, "spec": {"ephemeralContainers": [container]}}
    [write] = merge(host=host, subresource="ephemeralcontainers").writes
    return Decision((replace(write, resource=PODS),))


async def test_merge_goes_through_its_subresource_and_leaves_the_rest_alone() -> None:
    bench = Bench()
    there = bench.see(Side.HOST, PODS, bench.host.put(ours(pod("web", namespace="vc-ns"))))
    assert await bench.apply(debugging(there)) == ["patch host vc-ns/pods/web/ephemeralcontainers"]
    spec = (bench.host.get("pods", "vc-ns/web") or {})["spec"]
    assert [one["name"] for one in spec["ephemeralContainers"]] == ["debug"]
    assert [one["name"] for one in spec["containers"]] == ["app"]
    assert await bench.apply(debugging(there)) == [], "the response is in the store"


async def test_merge_that_is_refused_holds_up_no_other_write() -> None:
    bench = Bench()
    there = bench.see(Side.HOST, PODS, bench.host.put(ours(pod("web", namespace="vc-ns"))))
    refused = debugging(there, targetContainerName="nowhere").then(apply(host=copy()))
    path = "patch host vc-ns/pods/web/ephemeralcontainers"
    assert await bench.apply(refused) == [path, "create host vc-ns/configmaps"]
    [error] = bench.refusals
    assert 'targetContainerName: Not found: "nowhere"' in str(error)
    [postponed] = bench.postponements
    assert "pods/ephemeralcontainers is refused" in postponed.reason


@pytest.mark.parametrize("status", [500, 503, 409])
async def test_merge_that_fails_otherwise_fails_its_request(status: int) -> None:
    bench = Bench()
    there = bench.see(Side.HOST, PODS, bench.host.put(ours(pod("web", namespace="vc-ns"))))
    bench.host.faults.add(Rule(verb="patch", status=status))
    with pytest.raises(SyncerError):
        await bench.apply(debugging(there))
    assert bench.refusals == []


async def test_merge_into_a_subresource_that_the_host_lacks_is_refused_with_the_reason() -> None:
    bench = Bench()
    there = bench.see(Side.HOST, PODS, bench.host.put(ours(pod("web", namespace="vc-ns"))))
    [write] = debugging(there).writes
    await bench.apply(Decision((replace(write, subresource="resizing"),)))
    [error] = bench.refusals
    assert str(error) == "the host doesn't serve pods/resizing; a newer version of Kubernetes may"
    bench.host.delete("pods", "vc-ns/web")
    with pytest.raises(NotFound):
        await bench.apply(debugging(there))


async def test_tokens_are_asked_for_and_put_into_the_object() -> None:
    bench = Bench()
    tokens = (Token("a", "default", "shop", 600, ("x",)), Token("b", "default", "shop", 3600))
    wanted = ours({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t", "namespace": "vc-ns"}})
    assert await bench.apply(apply(host=wanted, tokens=tokens)) == [
        "create host vc-ns/configmaps",
        *["create virtual shop/serviceaccounts/default/token"] * 2,
    ]
    made = bench.host.get("configmaps", "vc-ns/t")
    assert made
    assert set(made["data"]) == {"a", "b"}
    assert all(base64.b64decode(value).count(b".") == 2 for value in made["data"].values())
    assert annotations_of(made)[SETTINGS.marks.token_expires] == "2026-01-01T00:10:00Z"

    bench.host.requests.clear()
    await bench.apply(apply(host=wanted, tokens=tokens))
    renewed = bench.host.get("configmaps", "vc-ns/t")
    assert renewed
    assert renewed["data"].keys() == made["data"].keys()
