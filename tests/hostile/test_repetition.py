"""A paused Pod goes when it is deleted, and an object that changes again and again costs little."""

import asyncio
import time

import pytest
from hostile_scene import CLUSTER, COPIED, HOME, NAMESPACE, PATIENCE, HostileScene, eventually

from kube_envtest import ApiServer, Change, Logged
from syncer.api import Key, Marks, Obj, key_of
from syncer.engine.reconcile.policies.confirmation_pace import AT_ONCE, FREE, PER_SECOND
from syncer.resources.kinds import SECRETS
from syncer.testing.objects import configmap, pod, pod_mounting, secret

PAUSED = {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}}


def test_paused_pod_that_is_deleted_runs_on_no_longer(hostile: HostileScene) -> None:
    """On 0aeb964 the host pod stays for good: `not within 20 s: it is gone`."""
    made = hostile.tenant.put(pod("x", namespace=NAMESPACE))
    hostile.start()
    hostile.copied(made)
    hostile.tenant.patch("namespaces", NAMESPACE, **PAUSED)
    hostile.tenant.patch("pods", f"{NAMESPACE}/x", **PAUSED)
    hostile.quiet()
    hostile.tenant.delete("pods", f"{NAMESPACE}/x")
    eventually(lambda: hostile.copy(made) is None, "it is gone")


def test_object_that_changes_again_and_again_costs_two_writes_a_second(hostile: HostileScene) -> None:
    """On 0aeb964 each change is written: `assert 134 <= 2 * (3.02 + 2)`."""
    made = hostile.tenant.put(configmap("x", {"turn": "0"}, namespace=NAMESPACE, metadata=COPIED))
    hostile.start()
    hostile.copied(made)
    name = hostile.host_key(made).name

    def written() -> list[Logged]:
        return [each for each in hostile.asked if each.verb == "patch" and each.path.endswith(f"/{name}")]

    begun, turn = time.monotonic(), 0
    while time.monotonic() - begun < 3 or len(written()) < 4:  # it is written meanwhile, and not at the end alone
        assert time.monotonic() - begun < PATIENCE
        turn += 1
        hostile.tenant.patch("configmaps", f"{NAMESPACE}/x", data={"turn": str(turn)})
        time.sleep(0.02)
    eventually(lambda: (hostile.copy(made) or {})["data"] == {"turn": str(turn)}, "the last state arrives")
    number = len(written())
    assert number <= 2 * (time.monotonic() - begun + 2)
    hostile.serves_others()


def _marked(hostile: HostileScene, name: str) -> Obj:
    """Return a Secret as an operator of the host makes it from a template with our marks."""
    host_key, marks = hostile.names.to_host(SECRETS, Key(NAMESPACE, name)), Marks()
    virtual = secret(name, namespace=NAMESPACE, metadata={"uid": "1"})
    metadata = {
        "labels": marks.labels(f"{CLUSTER}.{HOME}", key_of(virtual)),
        "annotations": marks.annotations(SECRETS, virtual, host_key),
    }
    return secret(host_key.name, namespace=host_key.namespace, metadata=metadata)


def _make_again(hostile: HostileScene, obj: Obj) -> None:
    """Let an operator of the host make an object, and once more whenever it is deleted."""

    def follow(server: ApiServer) -> None:
        def again(change: Change) -> None:
            if change.after is None and change.obj["metadata"]["name"] == obj["metadata"]["name"]:
                asyncio.get_running_loop().call_later(0.1, server.put, obj)

        server.follow(again)
        server.put(obj)

    hostile.operator.call(follow)


def test_object_that_comes_back_after_each_deletion_is_left_alone(hostile: HostileScene) -> None:
    """On 0aeb964 it is deleted again and again, and no report mentions it: `not within 60 s: it is parked`."""
    hostile.start()
    obj = _marked(hostile, "issued")
    eventually(lambda: hostile.operator.get("namespaces", obj["metadata"]["namespace"]), "the host namespace is there")
    _make_again(hostile, obj)
    eventually(lambda: [each for each in hostile.parked() if each["key"] == f"{NAMESPACE}/issued"], "it is parked")
    hostile.quiet()
    name = obj["metadata"]["name"]
    deleted = [each for each in hostile.asked if each.verb == "delete" and each.path.endswith(f"/{name}")]
    assert 1 <= len(deleted) <= 5
    assert hostile.operator.get("secrets", str(key_of(obj))), "it is left alone"
    hostile.serves_others()


#: Pods that come at once, and the Secrets that each names and that aren't there.
GREEDY, NAMES = 30, 60


@pytest.mark.translators("single-namespace", "vcluster-compat", reason="with the others a Pod waits for each copy")
def test_live_reads_of_names_that_lead_nowhere_are_paced(hostile: HostileScene) -> None:
    """Without a pace: `assert 871 <= (620 + (50.0 * (0.61 + 1)))`. 0aeb964 doesn't ask at all."""
    hostile.start()
    begun = time.monotonic()
    for number in range(GREEDY):
        sources = [{"secret": {"name": f"s{number}-{each}"}} for each in range(NAMES)]
        volumes = [{"name": "v", "projected": {"sources": sources}}]
        hostile.tenant.put(pod(f"greedy-{number}", namespace=NAMESPACE, spec={"volumes": volumes}))
    hostile.serves_others()

    def asked() -> int:
        return len([each for each in hostile.asked if each.verb == "get" and each.resource == "secrets"])

    at_once = AT_ONCE + GREEDY * FREE
    eventually(lambda: asked() > at_once + 250, "they are asked about in turn")
    number = asked()
    assert number <= at_once + PER_SECOND * (time.monotonic() - begun + 1)
    small = hostile.tenant.put(pod_mounting("small", namespace=NAMESPACE, secret="missing"))
    hostile.copied(small)
