"""Several virtual clusters through one process onto one host: no tenant's load or trouble is another's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from harness import ALL, Daemon, Tenant, built_in, host_path, namespace, serving, until, writes

from kube_envtest import Rule
from syncer.api import labels_of
from syncer.testing import ApiServer
from syncer.testing.objects import configmap, secret
from syncer.workqueue.retries import RETRIES_AT_ONCE, RETRIES_PER_SECOND

NAMES = ("loud", "calm")


class Tenants:
    """A host and two virtual clusters, each with a host namespace of its own."""

    def __init__(self) -> None:
        self.host = ApiServer(seed="host")
        self.servers = {name: ApiServer(seed=name) for name in NAMES}
        for name in NAMES:
            self.host.put(namespace(f"vc-{name}"))
            self.servers[name].put(namespace("shop"))

    @contextlib.asynccontextmanager
    async def daemon(self, *, workers: int = 4) -> AsyncIterator[Daemon]:
        tenants = [Tenant(server, name, f"vc-{name}", ALL) for name, server in self.servers.items()]
        async with serving(self.host, tenants, built_in("configmaps", "secrets"), workers=workers) as daemon:
            yield daemon

    def copies(self, tenant: str) -> int:
        """Return how many of the shop's ConfigMaps of a tenant are on the host."""
        tail = f"-x-shop-x-{tenant}"
        return sum(copy["metadata"]["name"].endswith(tail) for copy in self.host.objects("configmaps", f"vc-{tenant}"))

    def has(self, tenant: str, name: str) -> bool:
        return self.host.get("configmaps", host_path(name, tenant, f"vc-{tenant}")) is not None


@pytest.fixture
def tenants() -> Tenants:
    return Tenants()


async def test_objects_of_each_tenant_go_to_its_own_namespace(tenants: Tenants) -> None:
    for name, server in tenants.servers.items():
        server.put(configmap("same", {"of": name}))
        server.put(secret("same"))
    async with tenants.daemon() as daemon:
        await daemon.settled()
        for name in NAMES:
            copy = tenants.host.get("configmaps", host_path("same", name, f"vc-{name}"))
            assert copy
            assert copy["data"] == {"of": name}
            assert labels_of(copy)["vsyncer.dev/cluster"] == f"{name}.vc-{name}"
        tenants.servers["loud"].delete("configmaps", "shop/same")
        await daemon.settled()
        assert not tenants.has("loud", "same")
        assert tenants.has("calm", "same")


async def test_tenant_that_floods_the_daemon_delays_itself(tenants: Tenants) -> None:
    async with tenants.daemon() as daemon:
        await daemon.settled()
        tenants.host.faults.add(Rule(verb="create", resource="configmaps", latency=0.1))
        for number in range(300):
            tenants.servers["loud"].put(configmap(f"c{number}"))
        await asyncio.sleep(1)
        for number in range(10):
            tenants.servers["calm"].put(configmap(f"c{number}"))
        taken = await until(lambda: all(tenants.has("calm", f"c{number}") for number in range(10)))
        assert taken < 1, "ten creates of 0.1 s with half of four workers"
        assert tenants.copies("loud") < 100
        await until(lambda: tenants.copies("loud") == 300)


async def test_hanging_api_server_of_a_tenant_takes_no_worker_from_the_others(tenants: Tenants) -> None:
    async with tenants.daemon() as daemon:
        await daemon.settled()
        tenants.servers["loud"].restart(down=120)
        await asyncio.sleep(2)
        tenants.servers["calm"].put(configmap("x"))
        assert await until(lambda: tenants.has("calm", "x")) < 1
        tenants.servers["loud"].put(configmap("x"))
        await asyncio.sleep(60)
        assert not tenants.has("loud", "x")
        await until(lambda: tenants.has("loud", "x"), within=80)


async def test_returning_host_gets_the_waiting_writes_of_all_tenants(tenants: Tenants) -> None:
    async with tenants.daemon() as daemon:
        await daemon.settled()
        tenants.host.restart(down=30)
        for server in tenants.servers.values():
            server.put(configmap("x"))
        since = len(tenants.host.requests)
        await until(lambda: all(tenants.has(name, "x") for name in NAMES))
        await daemon.settled()
        assert len(writes(tenants.host, since)) == len(NAMES)


async def test_tenant_with_slow_requests_leaves_workers_to_the_others(tenants: Tenants) -> None:
    async with tenants.daemon(workers=32) as daemon:
        await daemon.settled()
        tenants.host.faults.add(Rule(verb="create", path="*/vc-loud/*", latency=2.0))
        for number in range(200):
            tenants.servers["loud"].put(configmap(f"c{number}"))
        await asyncio.sleep(1)
        for number in range(16):
            tenants.servers["calm"].put(configmap(f"c{number}"))
        assert await until(lambda: all(tenants.has("calm", f"c{number}") for number in range(16))) < 0.1
        await until(lambda: tenants.copies("loud") == 200)


async def test_tenant_with_only_failing_objects_is_retried_at_a_bounded_rate(tenants: Tenants) -> None:
    async with tenants.daemon(workers=32) as daemon:
        await daemon.settled()
        broken = tenants.host.faults.add(Rule(verb="create", path="*/vc-loud/*", resource="configmaps", status=500))
        for number in range(900):
            tenants.servers["loud"].put(configmap(f"c{number}"))
        await asyncio.sleep(30)
        assert broken.hits <= 900 + RETRIES_AT_ONCE + 30 * RETRIES_PER_SECOND
        tenants.servers["calm"].put(configmap("x"))
        assert await until(lambda: tenants.has("calm", "x")) < 0.1
        tenants.host.faults.remove(broken)
        await until(lambda: tenants.copies("loud") == 900)
