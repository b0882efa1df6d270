"""Events on virtual objects: few, counted, and never in the way."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_envtest import virtual_time
from syncer.api import Forbidden, Key, Missing, Obj, Resource
from syncer.observe import logs
from syncer.observe.events import BURST, REFILL, WAITING, EventRecorder, note_about, virtual_names

PODS = Resource("v1", "Pod", "pods")
NODES = Resource("v1", "Node", "nodes", namespaced=False)
START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def pod(name: str = "web") -> Obj:
    return {"metadata": {"namespace": "shop", "name": name, "uid": f"uid-{name}"}, "spec": {"secret": "content"}}


class Api:
    """Keeps events as an API server does; ``broken`` is raised at every call."""

    def __init__(self) -> None:
        self.events: dict[Key, Obj] = {}
        self.calls = 0
        self.broken: Exception | None = None
        self.hanging = False

    async def _enter(self) -> None:
        self.calls += 1
        if self.hanging:
            await asyncio.Event().wait()
        if self.broken:
            raise self.broken

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        await self._enter()
        key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
        assert key not in self.events
        self.events[key] = obj
        return obj

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        await self._enter()
        if key not in self.events:
            raise Missing("the event is gone")
        self.events[key] |= patch
        return self.events[key]

    async def get(self, resource: Resource, key: Key) -> Obj:
        raise AssertionError("events are not read")

    async def list(self, resource: Resource, *, namespace: str = "", selector: str = "") -> Sequence[Obj]:
        raise AssertionError("events are not read")

    async def delete(self, resource: Resource, key: Key, *, uid: str | None = None) -> Obj | None:
        raise AssertionError("events are not deleted")


def play(scene: Callable[[EventRecorder, Api], Awaitable[Any]]) -> Api:
    """Run a scene with a running recorder, in virtual time."""

    async def main() -> Api:
        api, loop = Api(), asyncio.get_running_loop()
        recorder = EventRecorder(
            api, cluster="shop", clock=loop.time, utcnow=lambda: START + timedelta(seconds=loop.time())
        )
        task = asyncio.create_task(recorder.run())
        await scene(recorder, api)
        await recorder.flush()
        assert not task.done()
        task.cancel()
        return api

    return virtual_time.run(main())


def test_an_event_says_what_happened_to_which_object() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.warning(PODS, pod(), "SyncRefused", "hostPath is not allowed")

    [event] = play(scene).events.values()
    assert event["metadata"]["namespace"] == "shop"
    assert event["metadata"]["name"].startswith("web.")
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "uid-web"}
    assert event["involvedObject"] == about
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "SyncRefused", 1)
    assert event["message"] == "hostPath is not allowed"
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-31T12:00:00Z"
    assert event["source"] == {"component": "vsyncer"}
    assert "content" not in str(event)


def test_the_same_again_is_counted_up_in_the_same_event() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for _ in range(3):
            recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")
            await asyncio.sleep(60)

    api = play(scene)
    [event] = api.events.values()
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2026-01-31T12:00:00Z"
    assert event["lastTimestamp"] == "2026-01-31T12:02:00Z"


def test_what_comes_faster_than_it_can_be_written_is_one_write() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for _ in range(5):
            recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")

    api = play(scene)
    [event] = api.events.values()
    assert (event["count"], api.calls) == (5, 1)


def test_other_words_or_another_object_are_another_event() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")
        recorder.warning(PODS, pod(), "SyncFailed", "no such namespace")
        recorder.normal(PODS, pod(), "SyncFailed", "quota exceeded")
        recorder.warning(PODS, pod("db"), "SyncFailed", "quota exceeded")

    assert len(play(scene).events) == 4


def test_an_event_that_the_api_server_has_forgotten_is_made_anew() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")
        await recorder.flush()
        api.events.clear()
        recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")

    [event] = play(scene).events.values()
    assert event["count"] == 1


def test_one_object_gets_a_burst_and_then_one_event_in_a_while() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for number in range(2 * BURST):
            recorder.warning(PODS, pod(), "SyncFailed", f"try {number}")
        recorder.warning(PODS, pod("db"), "SyncFailed", "another object")
        await recorder.flush()
        assert len(api.events) == BURST + 1
        await asyncio.sleep(REFILL)
        recorder.warning(PODS, pod(), "SyncFailed", "later")
        recorder.warning(PODS, pod(), "SyncFailed", "later still")

    assert len(play(scene).events) == BURST + 2


def test_what_waits_is_bounded() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for number in range(WAITING + 50):
            recorder.warning(PODS, pod(f"web-{number}"), "SyncFailed", "quota exceeded")

    assert len(play(scene).events) == WAITING


@pytest.mark.parametrize("broken", [Forbidden("may not create events"), None])
def test_an_event_that_cannot_be_written_is_logged_once_and_not_raised(broken: Exception | None) -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream=stream)

    async def scene(recorder: EventRecorder, api: Api) -> None:
        api.broken, api.hanging = broken, broken is None
        recorder.warning(PODS, pod(), "SyncFailed", "one")
        recorder.warning(PODS, pod(), "SyncFailed", "two")
        await recorder.flush()
        assert stream.getvalue().count("an event could not be written") == 1
        assert '"cluster": "shop"' in stream.getvalue()
        api.broken, api.hanging = None, False
        recorder.warning(PODS, pod(), "SyncFailed", "three")
        await recorder.flush()
        api.broken, api.hanging = broken, broken is None
        recorder.warning(PODS, pod(), "SyncFailed", "four")
        await recorder.flush()
        assert stream.getvalue().count("an event could not be written") == 2

    try:
        assert len(play(scene).events) == 1
    finally:
        logs.configure()


def test_an_object_without_namespace_has_its_events_in_default() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.normal(NODES, {"metadata": {"name": "n" * 253}}, "Seen", "it is there")

    [(key, event)] = play(scene).events.items()
    assert key.namespace == "default"
    assert len(key.name) <= 253
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n" * 253}


def test_messages_speak_of_virtual_names() -> None:
    names = {"db-x-shop-x-vc": "db", "db-x-shop-x-vc-2": "other", "node.a": "n1"}
    message = 'secrets "db-x-shop-x-vc" not found; db-x-shop-x-vc-2, old-db-x-shop-x-vc on node.a. Or node.a.b'
    assert virtual_names(message, names) == 'secrets "db" not found; other, old-db-x-shop-x-vc on n1. Or node.a.b'


def test_a_long_message_fits_what_the_api_server_accepts() -> None:
    message = note_about(PODS, pod(), "Normal", "Seen", "ä" * 2000).message
    assert len(message.encode()) <= 1024
    assert message.endswith("ä…")
