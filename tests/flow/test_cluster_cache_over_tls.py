"""A cache of clusters over TLS, with Secrets in a management cluster: credentials that are rotated under load."""

import asyncio
import base64
from pathlib import Path

import pytest
from harness import until

from kube_envtest import ADMIN, User
from syncer.api import Key, Obj
from syncer.clusters.client import Client
from syncer.multicluster import Cluster, ClusterCache, ClusterCacheOptions, SecretsProvider
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.in_process import ApiServer
from syncer.testing.objects import configmap

pytestmark = pytest.mark.slow

USER = User("cache", ("system:masters", "system:authenticated"))
LABEL = {"sigs.k8s.io/multicluster-runtime-kubeconfig": "true"}
EVERY, ROTATIONS = 2.0, 4


def kubeconfig_secret(kubeconfig: Path) -> Obj:
    data = {"kubeconfig": base64.b64encode(kubeconfig.read_bytes()).decode()}
    metadata = {"name": "eu", "namespace": "fleet", "labels": LABEL}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}


@pytest.mark.real_time
async def test_credentials_rotated_under_load_cost_no_list_no_watch_and_no_event(tmp_path: Path) -> None:
    management, member = ApiServer(), ApiServer(tokens={"admin-token": ADMIN, "token-0": USER})
    await member.start(tls=True)
    file = member.kubeconfig(tmp_path / "k", USER.name)
    management.put(kubeconfig_secret(file))
    home = Cluster("management", Client("management", management.transport()))
    cache = ClusterCache(
        [SecretsProvider(home, {"fleet": []}, environ={})], ClusterCacheOptions(user_agent="test"), environ={}
    )
    received: set[str] = set()

    def note(key: Key, _: Obj) -> None:
        received.add(key.name)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(home.run()), tasks.create_task(cache.run())]
        source = cache.source("test")
        assert (await source.get()).cluster == "fleet/eu"
        cache.watch("fleet/eu", "config-maps", CONFIG_MAPS, note)

        def asked() -> list[str]:
            return [one.path for one in member.requests if one.verb in ("list", "watch")]

        await until(lambda: len(asked()) == 2)  # the list, and the watch after it
        before = asked()
        names: list[str] = []
        for number in range(1, ROTATIONS + 1):
            end = asyncio.get_running_loop().time() + EVERY
            while asyncio.get_running_loop().time() < end:
                names.append(f"c{len(names)}")
                member.put(configmap(names[-1]))
                await asyncio.sleep(0.02)
            member.replace_token(USER.name, f"token-{number}")
            member.kubeconfig(file, USER.name)
            management.put(kubeconfig_secret(file))
            await asyncio.sleep(0.2)
            assert await cache.get_uncached_client("fleet/eu").get(CONFIG_MAPS, Key("shop", names[-1]))
        await until(lambda: received >= set(names))
        assert asked() == before
        assert not len(source), "it was never disconnected"
        for task in running:
            task.cancel()
    await asyncio.sleep(0.2)
    await member.stop()
