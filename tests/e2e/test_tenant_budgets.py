"""A tenant's PodDisruptionBudget holds on a real node: evictions of the host heed it, as a drain makes them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from node_scene import WEB, running, until
from tenant_scene import Tenant

from hack.realnode.inside import Failed

BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
"""
NS = "-n=budget"


def copies(tenant: Tenant, kind: str) -> list[Any]:
    """Return the copies of a kind on the host, as JSON."""
    options = (f"-n={tenant.host_namespace}", "-l=vsyncer.dev/namespace=budget", "-o=json")
    found: list[Any] = json.loads(tenant.host.kubectl("get", kind, *options))["items"]
    return found


def allowed(tenant: Tenant) -> list[tuple[int, int]]:
    """Return the ``minAvailable`` of each copy of a budget, and the evictions that the host allows by it now."""
    found = copies(tenant, "poddisruptionbudgets")
    return [(one["spec"]["minAvailable"], one.get("status", {}).get("disruptionsAllowed", -1)) for one in found]


def evict(tenant: Tenant, pod: str) -> None:
    """Ask the host to evict a pod.

    Raises:
        Failed: It refuses.
    """
    metadata = {"name": pod, "namespace": tenant.host_namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{tenant.host_namespace}/pods/{pod}/eviction"
    tenant.host.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))


@contextmanager
def cordoned(tenant: Tenant) -> Iterator[None]:
    """Let the host's node take no further pod meanwhile."""
    [node] = tenant.host.kubectl("get", "nodes", "-o=name").split()
    tenant.host.kubectl("cordon", node)
    try:
        yield
    finally:
        tenant.host.kubectl("uncordon", node)


def test_host_evicts_as_many_pods_as_the_tenants_budget_allows(tenant: Tenant) -> None:
    with (
        tenant.configured(sync={"toHost": {"podDisruptionBudgets": {"enabled": True}}}),
        tenant.namespace("budget", WEB, BUDGET),
    ):
        running(tenant, "budget", "app=web", count=2)
        until("one of two pods has to stay", lambda: allowed(tenant) == [(1, 1)])
        tenant.kubectl("scale", "deployment/web", "--replicas=3", NS)
        running(tenant, "budget", "app=web", count=3)
        until("two of three pods have to", lambda: allowed(tenant) == [(2, 1)])
        first, second, _ = (pod["metadata"]["name"] for pod in copies(tenant, "pods"))
        with cordoned(tenant):
            evict(tenant, first)
            with pytest.raises(Failed, match="violate the pod's disruption budget"):
                evict(tenant, second)
        until("another pod runs in place of the first", lambda: allowed(tenant) == [(2, 1)])
        evict(tenant, second)
