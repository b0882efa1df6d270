"""A paused Pod goes when it is deleted, and an object that changes again and again costs little."""

import time

from hostile_scene import COPIED, NAMESPACE, PATIENCE, HostileScene, eventually

from kube_envtest import Logged
from syncer.testing.objects import configmap, pod

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
