"""Events on virtual objects: few, counted, and never in the way."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hack.side_tasks import helped_by
from kube_envtest import virtual_time
from syncer.api import AlreadyExists, Forbidden, Key, NotFound, Obj, Resource
from syncer.observe import logs
from syncer.observe.events import (
    BURST,
    CLUSTER_BURST,
    CLUSTER_RATE,
    MOST_BYTES,
    NOTE_BYTES,
    REFILL,
    EventRecorder,
    note_about,
)

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
        if key in self.events:
            raise AlreadyExists("the event is there")
        self.events[key] = obj
        return obj

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        await self._enter()
        if key not in self.events:
            raise NotFound("the event is gone")
        self.events[key] |= patch
        return self.events[key]

    async def try_create(self, resource: Resource, obj: Obj) -> Obj:
        raise AssertionError("events are not tried")

    def kubernetes_client(self) -> Any:
        raise AssertionError("events are written by our own client")

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
        async with helped_by(recorder.run()) as [running]:
            await scene(recorder, api)
            await recorder.flush()
            assert not running.done()
        return api

    return virtual_time.run(main())


def test_event_names_the_object_and_the_occurrence() -> None:
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


def test_event_that_happens_again_is_counted_up() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for _ in range(3):
            recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")
            await asyncio.sleep(60)

    api = play(scene)
    [event] = api.events.values()
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2026-01-31T12:00:00Z"
    assert event["lastTimestamp"] == "2026-01-31T12:02:00Z"


def test_event_that_is_to_be_written_once_is_not_counted_and_takes_no_second_request() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for _ in range(2 * BURST):
            recorder.record(PODS, pod(), "NoNamespace", "there is no namespace cellar", once=True)
            await asyncio.sleep(60)
        recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")

    api = play(scene)
    assert [(event["reason"], event["count"]) for event in api.events.values()] == [
        ("NoNamespace", 1),
        ("SyncFailed", 1),
    ]
    assert api.calls == 2


def test_event_that_is_to_be_written_once_counts_once_if_it_came_often_before_the_write() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for _ in range(5):
            recorder.record(PODS, pod(), "NoNamespace", "there is no namespace cellar", once=True)

    [event] = play(scene).events.values()
    assert event["count"] == 1


def test_event_that_another_process_has_written_once_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.record(PODS, pod(), "NoNamespace", "there is no namespace cellar", once=True)
        await recorder.flush()
        second = EventRecorder(api, cluster="shop", clock=asyncio.get_running_loop().time)
        async with helped_by(second.run()):
            for message in ("there is no namespace cellar", "there is no namespace attic"):
                second.record(PODS, pod(), "NoNamespace", message, once=True)
            await second.flush()

    api = play(scene)
    assert sorted(event["message"].split()[-1] for event in api.events.values()) == ["attic", "cellar"]
    assert {event["count"] for event in api.events.values()} == {1}
    assert "could not be written" not in capsys.readouterr().err


def test_events_that_come_faster_than_they_are_written_are_one_write() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for _ in range(5):
            recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")

    api = play(scene)
    [event] = api.events.values()
    assert (event["count"], api.calls) == (5, 1)


def test_event_with_other_words_or_object_is_another_event() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")
        recorder.warning(PODS, pod(), "SyncFailed", "no such namespace")
        recorder.record(PODS, pod(), "SyncFailed", "quota exceeded", level="Normal")
        recorder.warning(PODS, pod("db"), "SyncFailed", "quota exceeded")

    assert len(play(scene).events) == 4


def test_event_that_the_api_server_has_forgotten_is_created_again() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")
        await recorder.flush()
        api.events.clear()
        recorder.warning(PODS, pod(), "SyncFailed", "quota exceeded")

    [event] = play(scene).events.values()
    assert event["count"] == 1


def test_events_of_an_object_are_a_burst_and_then_one_in_a_while() -> None:
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


def kept(recorder: EventRecorder) -> tuple[int, int]:
    """Bytes of what waits, and of the series."""
    return sum(note.size for note in recorder._waiting), sum(note.size for note in recorder._series)


def test_waiting_events_are_bounded_in_bytes() -> None:
    many = MOST_BYTES // 1000

    async def scene(recorder: EventRecorder, api: Api) -> None:
        for number in range(many):
            recorder.warning(PODS, pod(f"web-{number}"), "SyncFailed", "x" * 1024)
        assert MOST_BYTES - NOTE_BYTES < kept(recorder)[0] <= MOST_BYTES
        recorder.warning(PODS, pod("web-0"), "SyncFailed", "x" * 1024)  # is there already
        waiting = len(recorder._waiting)
        await recorder.flush()
        assert len(api.events) == waiting < many
        assert next(iter(api.events.values()))["count"] == 2
        recorder.warning(PODS, pod("another"), "SyncFailed", "there is room again")
        await recorder.flush()
        assert len(api.events) == waiting + 1

    play(scene)


def test_series_are_bounded_in_bytes_and_the_oldest_is_forgotten() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for number in range(MOST_BYTES // 1000):
            recorder.warning(PODS, pod(f"web-{number}"), "SyncFailed", "x" * 1024)
            await recorder.flush()
        assert kept(recorder)[1] <= MOST_BYTES
        written = len(api.events)
        recorder.warning(PODS, pod(f"web-{number}"), "SyncFailed", "x" * 1024)
        await recorder.flush()
        assert len(api.events) == written
        recorder.warning(PODS, pod("web-0"), "SyncFailed", "x" * 1024)
        await recorder.flush()
        assert len(api.events) == written + 1

    play(scene)


@pytest.mark.parametrize("part", ["name", "namespace", "uid"])
def test_event_about_an_object_that_no_api_server_would_accept_is_dropped(part: str) -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.warning(PODS, {"metadata": {**pod()["metadata"], part: "x" * 100_000}}, "SyncFailed", "no")
        assert kept(recorder) == (0, 0)

    assert play(scene).calls == 0


def test_events_of_a_virtual_cluster_are_a_burst_and_then_few_a_second() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        for number in range(CLUSTER_BURST + 50):
            recorder.warning(PODS, pod(f"web-{number}"), "SyncFailed", "quota exceeded")
        await asyncio.sleep(0.01)
        assert CLUSTER_BURST <= len(api.events) <= CLUSTER_BURST + 1
        await asyncio.sleep(2.0)
        assert len(api.events) == pytest.approx(CLUSTER_BURST + 2 * CLUSTER_RATE, abs=1)
        await recorder.flush()
        assert asyncio.get_running_loop().time() == pytest.approx(50 / CLUSTER_RATE, abs=0.2)

    assert len(play(scene).events) == CLUSTER_BURST + 50


@pytest.mark.parametrize("broken", [Forbidden("may not create events"), ValueError("no JSON"), RecursionError(), None])
def test_event_that_cannot_be_written_is_logged_once_and_not_raised(broken: Exception | None) -> None:
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


def test_event_about_an_object_without_namespace_is_in_default() -> None:
    async def scene(recorder: EventRecorder, api: Api) -> None:
        recorder.record(NODES, {"metadata": {"name": "n" * 253}}, "Seen", "it is there", level="Normal")

    [(key, event)] = play(scene).events.items()
    assert key.namespace == "default"
    assert len(key.name) <= 253
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n" * 253}


def test_message_is_cut_to_the_bytes_that_the_api_server_accepts() -> None:
    message = note_about(PODS, pod(), "Normal", "Seen", "ä" * 2000).message
    assert len(message.encode()) <= 1024
    assert message.endswith("ä…")
