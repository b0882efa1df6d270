"""Nothing of a tenant's is put into a namespace that the host has for itself."""

import pytest
from hostile_scene import FOREIGN, HostileScene, eventually

from syncer.api import Obj
from syncer.testing.objects import configmap, namespace, pod

COPIED = {"annotations": {"vsyncer.dev/force-sync": "true"}}


def _in(hostile: HostileScene, name: str) -> list[Obj]:
    """Return the objects of a tenant in a host namespace."""
    there = [("pods", "thief"), ("configmaps", "thief"), ("serviceaccounts", "default-x-vc")]
    return [obj for kind, each in there if (obj := hostile.operator.get(kind, f"{name}/{each}"))]


@pytest.mark.parametrize("name", ["kube-system", "default", FOREIGN])
def test_namespace_of_the_hosts_is_no_tenants(hostile: HostileScene, name: str) -> None:
    before = hostile.operator.get("namespaces", name)
    hostile.start()
    hostile.tenant.put(namespace(name))
    hostile.tenant.put(configmap("thief", namespace=name, metadata=COPIED))
    hostile.tenant.put(pod("thief", namespace=name))
    hostile.serves_others()
    hostile.quiet()
    # 0aeb964 has put the Pod there, with the translator `unchanged`.
    assert _in(hostile, name) == []
    assert hostile.operator.get("namespaces", name) == before


@pytest.mark.parametrize("name", ["kube-system", "default", FOREIGN])
def test_end_of_a_pod_reads_no_namespace_of_the_hosts(hostile: HostileScene, name: str) -> None:
    hostile.start()
    hostile.tenant.put(namespace(name))
    hostile.tenant.put(pod("thief", namespace=name, status={"phase": "Running"}))
    eventually(lambda: hostile.tenant.get("pods", f"{name}/thief") is None, "the Pod, which runs nowhere, has ended")
    # A Pod that has started and has no copy is deleted if the live host has none, either. 0aeb964 looks here for it.
    assert [each.path for each in hostile.asked if each.path.startswith(f"/api/v1/namespaces/{name}/")] == []
