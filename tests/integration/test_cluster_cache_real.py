"""A cache of clusters on real API servers: one that freezes, tokens that are revoked, and certificates that change."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml
from api import Api
from test_rotation_under_load import Account, is_refused

from hack.side_tasks import helped_by
from kube_envtest import ControlPlane
from syncer.api import Key, Obj
from syncer.clusters import kubeconfig
from syncer.clusters.login import Login
from syncer.clusters.transport import HttpRequest
from syncer.multicluster import ClusterCache, ClusterCacheOptions, ClusterEvent, Happening, Reason, StaticProvider
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap

#: Seconds, after which a wait is given up.
PATIENCE = 120.0
#: Probes that find out soon what these tests do.
OPTIONS = ClusterCacheOptions(
    user_agent="cluster-cache-test", probe_interval=0.2, probe_timeout=2.0, probe_threshold=3, max_retry_delay=1.0
)


def login_of(plane: ControlPlane, folder: Path, user: Obj) -> Login:
    """Return a login to a cluster, as from a kubeconfig with everything in it."""
    document = yaml.safe_load(plane.kubeconfig().read_text())
    document["users"][0]["user"] = user
    file = folder / f"{plane.name}.kubeconfig"
    file.write_text(yaml.safe_dump(document))
    return kubeconfig.read(str(file), environ={})


def admin(plane: ControlPlane, folder: Path) -> Login:
    return login_of(plane, folder, yaml.safe_load(plane.kubeconfig().read_text())["users"][0]["user"])


@asynccontextmanager
async def running(provider: StaticProvider) -> AsyncIterator[ClusterCache]:
    cache = ClusterCache([provider], OPTIONS, environ={})
    try:
        async with helped_by(cache.run()), asyncio.timeout(PATIENCE):
            yield cache
    finally:
        await asyncio.sleep(0.2)  # connections are closed in TLS first


async def until(look: Callable[[], bool]) -> None:
    """Wait until something is so; the timeout is that of the whole test."""
    while not look():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.02)


class Names:
    """The names that a watch has shown, and those whose objects are there."""

    def __init__(self) -> None:
        self.received = list[str]()

    def __call__(self, key: Key, _: Obj) -> None:
        self.received.append(key.name)


@pytest.fixture(scope="module")
def space(apis: tuple[Api, Api]) -> str:
    for api in apis:
        api.make_namespace("cluster-cache")
    return "cluster-cache"


def test_frozen_api_server_is_disconnected_alone_and_its_sticky_watch_comes_back(
    apis: tuple[Api, Api], space: str, tmp_path: Path
) -> None:
    frozen, other = apis

    async def main() -> None:
        provider = StaticProvider({"frozen": admin(frozen.plane, tmp_path), "other": admin(other.plane, tmp_path)})
        async with running(provider) as cache:
            source, names = cache.source("test"), Names()
            assert {(await source.get()).cluster for _ in range(2)} == {"frozen", "other"}
            cache.watch("frozen", "config-maps", CONFIG_MAPS, names, namespace=space, sticky=True)
            await asyncio.to_thread(frozen.create, configmap("before", namespace=space))
            await until(lambda: "before" in names.received)
            with frozen.plane.frozen():
                assert await source.get() == ClusterEvent("frozen", Happening.DISCONNECTED)
                assert cache.get_status("frozen").reason is Reason.UNREACHABLE
                reader = cache.get_uncached_client("other")
                assert await reader.list(CONFIG_MAPS, namespace=space) is not None
                health = cache.get_health("other")
                await until(lambda: cache.get_health("other") != health)
                assert cache.get_health("other").failures == 0
            await asyncio.to_thread(frozen.create, configmap("after", namespace=space))
            await asyncio.to_thread(frozen.delete, "ConfigMap", Key(space, "before"))
            assert await source.get() == ClusterEvent("frozen", Happening.CONNECTED)
            await until(lambda: "after" in names.received and names.received.count("before") > 1)
            assert not len(source), "the other cluster was never disconnected"

    asyncio.run(main())
    frozen.delete("ConfigMap", Key(space, "after"))


def test_revoked_token_disconnects_at_once_and_a_new_one_connects(
    apis: tuple[Api, Api], space: str, tmp_path: Path
) -> None:
    api, _ = apis
    account = Account(api.plane, "cluster-cache-revoked")
    first = account.token()

    async def main() -> None:
        provider = StaticProvider({"a": login_of(api.plane, tmp_path, {"token": first})})
        async with running(provider) as cache:
            source, names = cache.source("test"), Names()
            assert await source.get() == ClusterEvent("a", Happening.CONNECTED)
            cache.watch("a", "config-maps", CONFIG_MAPS, names, namespace=space, sticky=True)
            second = await asyncio.to_thread(account.token)
            await asyncio.to_thread(account.revoke)
            assert await source.get() == ClusterEvent("a", Happening.DISCONNECTED)
            assert await asyncio.to_thread(is_refused, account, first)
            await until(lambda: cache.get_status("a").reason is Reason.UNAUTHORIZED)
            await asyncio.to_thread(api.create, configmap("meanwhile", namespace=space))
            provider.put("a", login_of(api.plane, tmp_path, {"token": second}))
            assert await source.get() == ClusterEvent("a", Happening.CONNECTED)
            await until(lambda: "meanwhile" in names.received)

    asyncio.run(main())
    api.delete("ConfigMap", Key(space, "meanwhile"))
    account.close()


def test_credentials_that_change_under_load_cost_no_list_and_no_event(
    apis: tuple[Api, Api], space: str, tmp_path: Path
) -> None:
    """A token and a client certificate, each replaced again and again; former tokens are revoked."""
    by_token, by_certificate = apis
    account = Account(by_token.plane, "cluster-cache-rotated")

    def certificate(number: int) -> Login:
        made = by_certificate.plane.certificate(f"cache-{number}", user=f"cache-{number}", group="system:masters")
        files = {"client-certificate": str(made), "client-key": str(made.with_suffix(".key"))}
        inline = {f"{name}-data": _encoded(Path(path)) for name, path in files.items()}
        return login_of(by_certificate.plane, tmp_path, inline)

    async def who(cache: ClusterCache) -> str:
        review = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        reply = await cache.get_uncached_client("b").transport.send(HttpRequest("POST", path, body=review))
        return str(yaml.safe_load(reply.body)["status"]["userInfo"]["username"])

    async def main() -> None:
        provider = StaticProvider(
            {"a": login_of(by_token.plane, tmp_path, {"token": account.token()}), "b": certificate(0)}
        )
        async with running(provider) as cache:
            source, names = cache.source("test"), {"a": Names(), "b": Names()}
            assert {(await source.get()).cluster for _ in range(2)} == {"a", "b"}
            for name, received in names.items():
                cache.watch(name, "config-maps", CONFIG_MAPS, received, namespace=space)
            assert await who(cache) == "cache-0"
            lists = await asyncio.to_thread(_lists, *apis)
            made = list[str]()
            for number in range(1, 5):
                for _ in range(20):
                    made.append(f"rotated-{len(made)}")
                    for api in apis:
                        await asyncio.to_thread(api.create, configmap(made[-1], namespace=space))
                provider.put("a", login_of(by_token.plane, tmp_path, {"token": await asyncio.to_thread(account.token)}))
                provider.put("b", certificate(number))
                await asyncio.to_thread(account.revoke)
                while await who(cache) != f"cache-{number}":  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0.02)
            await until(lambda: all(set(made) <= set(each.received) for each in names.values()))
            assert all(each.received.count(name) == 1 for each in names.values() for name in made)
            assert await asyncio.to_thread(_lists, *apis) == lists
            assert not len(source), "neither was disconnected"
            for name in made:
                for api in apis:
                    await asyncio.to_thread(partial(api.delete, "ConfigMap", Key(space, name)))

    asyncio.run(main())
    account.close()


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


#: Requests for lists and watches of ConfigMaps, as an API server counts them.
_LISTS = re.compile(r'^apiserver_request_total\{.*resource="configmaps".*verb="LIST"[^}]*\} (\d+)', re.MULTILINE)


def _lists(*apis: Api) -> list[int]:
    counted = [_LISTS.findall(api.plane.kubectl("get", "--raw", "/metrics").stdout) for api in apis]
    return [sum(int(number) for number in found) for found in counted]
