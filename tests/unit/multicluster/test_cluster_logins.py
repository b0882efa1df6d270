"""Changed logins of connected clusters, in virtual time: what is wrong with them is shown, and looked at again."""

import asyncio
from collections.abc import Callable

import pytest
from cache_scene import CacheScene, now, until
from fleet_scene import PODS

from syncer.api import Key
from syncer.clusters.login import Login
from syncer.multicluster import CannotConnect, ProvidedCluster, Reason, State


class Logins:
    """Logins of cluster ``a`` as a provider reads them, each unreadable so many times."""

    def __init__(self, scene: CacheScene) -> None:
        self.scene, self.token = scene, "good"
        self.error: Callable[[], Exception] | None = None
        self.read_at: list[float] = []

    async def read(self) -> Login:
        self.read_at.append(now())
        if self.error is not None:
            raise self.error()
        return self.scene["a"].login(self.token)

    def change(self, token: str) -> None:
        self.token = token
        self.scene["a"].tokens = {"good", token}
        self.scene.static.put("a", ProvidedCluster(read=self.read, version=token))


def refused() -> CannotConnect:
    return CannotConnect(Reason.REFUSED, "exec runs programs here")


@pytest.mark.parametrize(
    ("error", "reason"), [(lambda: OSError("the management cluster is away"), Reason.UNREADABLE), (refused, "Refused")]
)
async def test_changed_login_that_is_unusable_is_shown_and_looked_at_again_while_the_former_is_used(
    error: Callable[[], Exception], reason: Reason
) -> None:
    scene = CacheScene("a", probe_interval=100.0)
    logins = Logins(scene)
    async with scene.running() as cache:
        assert cache.get_status("a").login_error is None
        await until(1)
        logins.error = error
        logins.change("new")
        await until(25)
        assert logins.read_at == [1.0, 11.0, 21.0]
        status = cache.get_status("a")
        assert status.state is State.CONNECTED
        assert status.login_error is not None
        assert status.login_error.reason == reason
        assert str(error()) in str(status.login_error)
        assert await cache.get_client("a").get(PODS, Key("shop", "x")) is None
        assert cache.get_connection("a").token == "good"
        logins.error = None
        await until(32)
        assert cache.get_connection("a").token == "new"
        assert cache.get_status("a").login_error is None
        assert logins.read_at == [1.0, 11.0, 21.0, 31.0]
        await until(95)
        assert len(logins.read_at) == 4
        assert scene["a"].at("/") == [0.0], "it was never disconnected"


async def test_news_are_looked_at_at_once_also_after_an_unusable_login() -> None:
    scene = CacheScene("a")
    logins = Logins(scene)
    async with scene.running() as cache:
        logins.error = refused
        logins.change("bad")
        await asyncio.sleep(1)
        logins.error = None
        logins.change("new")
        await asyncio.sleep(0.1)
        assert cache.get_connection("a").token == "new"
        assert len(logins.read_at) == 2


async def test_login_without_its_files_costs_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = CacheScene("a")
    logins = Logins(scene)

    def renews(self: Login, former: Login) -> bool:
        raise FileNotFoundError("ca.crt")

    async with scene.running() as cache:
        with monkeypatch.context() as patched:
            patched.setattr(Login, "renews", renews)
            logins.change("new")
            await asyncio.sleep(1)
            status = cache.get_status("a")
            assert status.state is State.CONNECTED
            assert "ca.crt" in str(status.login_error)
        await asyncio.sleep(10)
        assert cache.get_connection("a").token == "new"


async def test_unusable_login_of_a_cluster_that_is_lost_is_the_reason_why() -> None:
    scene = CacheScene("a")
    logins = Logins(scene)
    async with scene.running() as cache:
        logins.error = refused
        logins.change("bad")
        await asyncio.sleep(1)
        scene["a"].tokens = set()
        await until(10.5)
        status = cache.get_status("a")
        assert (status.state, status.reason, status.login_error) == (State.DISCONNECTED, Reason.REFUSED, None)
