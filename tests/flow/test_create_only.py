"""Fields that count when a copy is made, and never again: ``create_only``."""

import asyncio

from harness import CLUSTER, HOME, Daemon, Two, between, crd, host_path, until, widget, writes
from patrol_scene import outcomes, scanned
from sampled import config_model
from small_syncers import WIDGETS

from syncer.api import Config, Mirror, Obj
from syncer.config import SyncerConfig
from syncer.testing.merge import merged


class Widgets(Mirror[Config]):
    """A kind whose seed and zone the host takes once; it may move them later on."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    create_only = ("spec.seed", "spec.place.zone")
    exact = ("spec.place",)


MADE = {"size": 1, "seed": "a", "place": {"zone": "z1", "rack": "r1"}}


def configured() -> SyncerConfig:
    given = {"cluster": CLUSTER, "host": {"namespace": HOME}, "sync": {"toHost": {"widgets": {}}}}
    given["patrol"] = {"interval": "10h", "fresh": "10h"}
    return config_model([Widgets]).model_validate(given)


def defined(two: Two) -> None:
    for server in (two.virtual, two.host):
        server.put(crd("widgets"))


def spec_on_host(two: Two) -> Obj:
    copy = two.copy("widgets.example.org", "w")
    assert copy
    spec: Obj = copy["spec"]
    return spec


async def made(two: Two, daemon: Daemon) -> None:
    two.virtual.put(widget("w", spec=MADE))
    await until(lambda: two.copy("widgets.example.org", "w"))
    await daemon.settled()
    assert spec_on_host(two) == MADE


def edit(two: Two, side: str, spec: Obj) -> None:
    server, key = (two.host, host_path("w")) if side == "host" else (two.virtual, "shop/w")
    found = server.get("widgets.example.org", key)
    assert found
    server.put(merged(found, {"spec": spec}))


async def test_create_only_field_is_sent_once_and_a_later_change_stays_behind(two: Two) -> None:
    defined(two)
    async with between(two.host, [(configured(), two.virtual)]) as daemon:
        await made(two, daemon)
        edit(two, "virtual", {"size": 2, "seed": "b", "place": {"zone": "z2"}})
        await daemon.settled()
        assert spec_on_host(two) == {"size": 2, "seed": "a", "place": {"zone": "z1", "rack": "r1"}}
        since = len(two.host.requests)
        edit(two, "virtual", {"seed": None, "place": {"zone": None}})
        await daemon.settled()
        assert writes(two.host, since) == [], "what was sent once isn't taken back"
        two.host.delete("widgets.example.org", host_path("w"))
        await until(lambda: two.copy("widgets.example.org", "w"))
        assert spec_on_host(two) == {"size": 2, "place": {"rack": "r1"}}, "a new copy is made as things are now"


async def test_create_only_field_that_the_host_changes_is_no_drift(two: Two) -> None:
    defined(two)
    async with between(two.host, [(configured(), two.virtual)]) as daemon:
        await made(two, daemon)
        since = len(two.host.requests)
        edit(two, "host", {"seed": "moved", "place": {"zone": None}})
        await daemon.settled()
        assert outcomes(await scanned(daemon, "widgets")) == []
        assert writes(two.host, since) == []
        edit(two, "host", {"place": {"rack": "r9", "shelf": "1"}})
        await daemon.settled()
        assert spec_on_host(two) == {"size": 1, "seed": "moved", "place": {"rack": "r1"}}, "what is beside it is"
    async with between(two.host, [(configured(), two.virtual)]) as daemon:
        await daemon.settled()
        await asyncio.sleep(60)
        assert daemon.wrote() == {}
