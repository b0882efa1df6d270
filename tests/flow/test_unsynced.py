"""A Pod that needs an object that isn't synced waits, its owner reads why, and it goes when a syncer begins."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest
from harness import NAMESPACE, Daemon, Two, built_in, until

from hack.side_tasks import helped_by
from syncer.api import Config, Initialize, Live, Mirror, Obj
from syncer.api.reasons import RequestState
from syncer.daemon.notices import AGAIN_SECONDS, MOST, Notices
from syncer.resources.kinds import NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS
from syncer.testing.objects import build, pod

CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "db"}}


class Claims(Mirror[Config], Initialize):
    """Copies PersistentVolumeClaims, from when it can."""

    name = "claims"
    resource = PERSISTENT_VOLUME_CLAIMS
    down = ("spec",)
    able: ClassVar[bool] = False

    async def init(self, live: Live) -> None:
        if not self.able:
            raise RuntimeError("not yet")


@pytest.fixture(autouse=True)
def _unable() -> None:
    Claims.able = False


def claim() -> Obj:
    metadata = {"name": "db", "namespace": NAMESPACE}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def events_about(two: Two, name: str) -> list[Obj]:
    found = two.virtual.objects("events", NAMESPACE)
    return [each for each in found if (each["involvedObject"]["name"], each["reason"]) == (name, "NotSynced")]


async def test_pod_with_an_unsynced_claim_waits_with_an_event_until_a_syncer_begins(two: Two) -> None:
    two.virtual.put(claim())
    two.virtual.put(pod("web", spec={"volumes": [CLAIM]}))
    two.virtual.put(pod("other"))
    async with two.daemon([*built_in("pods", "serviceaccounts"), Claims]) as daemon:
        await until(lambda: two.copy("pods", "other") and events_about(two, "web"))
        stands = daemon.status("web", "pods")
        assert stands is not None
        assert (stands.state, two.copy("pods", "web")) == (RequestState.PARKED, None)
        [event] = events_about(two, "web")
        assert "spec.volumes[0]: needs the PersistentVolumeClaim db" in event["message"]
        assert "enables a syncer of persistentvolumeclaims" in event["message"]
        await asyncio.sleep(600)
        assert [each["count"] for each in events_about(two, "web")] == [1], "one event, however long it waits"
        Claims.able = True
        daemon.process.served["vc"].discovery_loop.soon()
        assert await until(lambda: two.copy("pods", "web")) < 3, "sooner than by the timer"
        volume = (two.copy("pods", "web") or {})["spec"]["volumes"][0]
        assert volume["persistentVolumeClaim"]["claimName"] == f"db-x-{NAMESPACE}-x-vc"


# -- objects that only the host could enforce ------------------------------------------------------

SHORT = ("pods", "serviceaccounts")


@contextlib.asynccontextmanager
async def noticing(daemon: Daemon) -> AsyncIterator[None]:
    notices = Notices(
        daemon.process.pairs["vc"],
        daemon.process.served["vc"].discovery,
        daemon.process.served["vc"].events,
        clock=asyncio.get_running_loop().time,
    )
    async with helped_by(notices.run()):
        yield


def policy(name: str, **metadata: Any) -> Obj:
    return build(NETWORK_POLICIES, name, metadata=metadata, spec={"podSelector": {}})


def asked(two: Two, since: int = 0) -> list[str]:
    """Return what the virtual API server was asked about NetworkPolicies."""
    return [one.verb for one in list(two.virtual.requests)[since:] if one.resource.startswith("networkpolicies")]


def not_synced_count(two: Two) -> int:
    return sum(each["reason"] == "NotSynced" for each in two.virtual.objects("events", NAMESPACE))


async def test_object_that_only_the_host_could_enforce_gets_one_event(two: Two) -> None:
    two.virtual.put(policy("walls"))
    two.virtual.put(claim())
    async with two.daemon(built_in(*SHORT)) as daemon, noticing(daemon):
        await until(lambda: events_about(two, "walls") and events_about(two, "db"))
        [event] = events_about(two, "walls")
        assert event["involvedObject"]["kind"] == "NetworkPolicy"
        walls = two.original(str(NETWORK_POLICIES), "walls") or {}
        assert event["involvedObject"]["uid"] == walls["metadata"]["uid"]
        assert "not synced to where Pods run" in event["message"]
        two.virtual.put(policy("later"))
        assert await until(lambda: events_about(two, "later")) < 1, "a watch shows it"
        two.virtual.put(policy("later", labels={"tier": "front"}))
        await asyncio.sleep(3600)
        assert [each["count"] for each in (*events_about(two, "walls"), *events_about(two, "later"))] == [1, 1]


async def test_kind_that_is_not_enforced_is_asked_for_once_and_watched_then(two: Two) -> None:
    async with two.daemon(built_in(*SHORT)) as daemon, noticing(daemon):
        await until(lambda: asked(two) == ["list", "watch"])
        two.virtual.put(policy("walls"))
        await until(lambda: events_about(two, "walls"))
        await asyncio.sleep(3600)
        assert asked(two)[:2] == ["list", "watch"]
        assert set(asked(two)[2:]) == {"watch"}, "a watch goes on where the last one ended"
        assert len(asked(two)) <= 2 + 3600 / 300


async def test_thousands_of_objects_get_few_events_and_take_little_memory(two: Two) -> None:
    for number in range(500):
        two.virtual.put(policy(f"p{number:04}"))
    async with two.daemon(built_in(*SHORT)) as daemon, noticing(daemon):
        await until(lambda: not_synced_count(two) == MOST)
        for number in range(500, 3000):
            two.virtual.put(policy(f"p{number:04}"))
        await asyncio.sleep(60)
        assert not_synced_count(two) <= MOST + 3
        assert two.virtual.objects("events", NAMESPACE) != []


async def test_kind_with_a_syncer_causes_no_event(two: Two) -> None:
    Claims.able = True
    two.virtual.put(claim())
    async with two.daemon([*built_in(*SHORT), Claims]) as daemon, noticing(daemon):
        await asyncio.sleep(600)
        assert events_about(two, "db") == []


async def test_watch_that_expires_begins_with_a_list_again(two: Two) -> None:
    async with two.daemon(built_in(*SHORT)) as daemon, noticing(daemon):
        await until(lambda: asked(two) == ["list", "watch"])
        two.virtual.expire_watches()
        two.virtual.put(policy("walls"))
        await until(lambda: events_about(two, "walls"), within=3 * AGAIN_SECONDS)
