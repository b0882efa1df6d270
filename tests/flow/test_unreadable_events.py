"""An Event that the tenant's API server has lied about is synced again when it can be read."""

import asyncio

from harness import HOME, NAMESPACE, Two, until
from odd_objects import OldServer, replaced

from syncer.api import Obj
from syncer.daemon.pages.control import parked, selection
from syncer.testing.objects import configmap, event, namespace

EVENT_PATH = f"{NAMESPACE}/repeated"


def repeated_event(count: int) -> Obj:
    about = configmap(f"x-x-{NAMESPACE}-x-vc", namespace=HOME)
    about["metadata"].pop("uid", None)
    return event("repeated", about=about, count=count)


async def test_event_that_can_be_read_again_is_synced_at_once(two: Two) -> None:
    two.virtual = server = OldServer(seed="virtual")
    for each in (namespace(NAMESPACE), configmap("x")):
        server.put(each)
    async with two.daemon() as daemon:
        two.host.put(repeated_event(1))
        await until(lambda: (server.get("events", EVENT_PATH) or {}).get("count") == 1)
        whole = server.get("events", EVENT_PATH)
        assert whole is not None
        server.plant(replaced(whole, ("metadata", "labels", "a"), 7))
        await daemon.settled()
        two.host.put(repeated_event(2))
        await asyncio.sleep(5)
        await until(lambda: [row["key"] for row in parked(daemon.process, selection(daemon.process))] == [EVENT_PATH])
        server.put(whole)
        assert await until(lambda: (server.get("events", EVENT_PATH) or {}).get("count") == 2) < 1
        assert parked(daemon.process, selection(daemon.process)) == []
