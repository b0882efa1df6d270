"""Reflectors of many clusters share a watch, and each gets what a watch of its own would give it."""

import asyncio
from urllib.parse import unquote

import pytest
from reflector_scene import play
from shared_scene import HOME, MARK, host, soon

from kube_envtest import Rule
from syncer.api import Key, Obj
from syncer.api.errors import Forbidden
from syncer.cache import shared
from syncer.clusters import codec
from syncer.steps import STEP_BYTES

both = pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])


def selectors(paths: list[str]) -> list[str]:
    """Return the label selectors of watches."""
    return [part.removeprefix("labelSelector=") for path in paths for part in unquote(path).split("&") if MARK in part]


@both
async def test_each_gets_its_own_objects_through_one_watch(ordered: bool) -> None:
    async with host(ordered=ordered) as scene:
        scene.put("a1", "a")
        scene.put("b1", "b")
        scene.put("x1", "x")
        scene.put("none", None)
        members = [scene.join("a"), scene.join("b")]
        await soon()
        scene.put("a2", "a")
        scene.put("b1", "b", color="red")
        scene.put("x2", "x")
        scene.put("none2", None)
        await soon()
        assert [member.names() for member in members] == [{"a1", "a2"}, {"b1"}]
        assert len(scene.way.open) == 1
        alone = scene.join("a", shared=False)
        await soon()
        assert members[0].objects() == alone.objects()


async def test_silence_of_a_watch_ends_with_an_event_that_is_taken_at_once() -> None:
    loop = asyncio.get_running_loop()
    async with host() as scene:
        reflector = scene.join("a").reflector
        await soon()
        scene.put("a1", "a")
        await asyncio.sleep(1)
        assert reflector.silence(loop.time()) <= 1


async def test_api_server_selects_the_objects_of_an_only_cluster() -> None:
    async with host() as scene:
        first = scene.join("a")
        await soon()
        assert selectors(scene.way.open) == [f"{MARK}=a"]
        second = scene.join("b")
        await soon()
        assert selectors(scene.way.open) == [MARK]
        scene.put("b1", "b")
        await first.leave()
        await asyncio.sleep(1000)  # the watch has ended in its time
        assert selectors(scene.way.open) == [f"{MARK}=b"]
        scene.put("b2", "b")
        await soon()
        assert second.names() == {"b1", "b2"}


@both
async def test_unmarked_source_is_one_watch_for_all(ordered: bool) -> None:
    async with host(ordered=ordered) as scene:
        scene.put("a1", "a")
        members = [scene.join(None) for _ in range(3)]
        await soon()
        members.append(scene.join(None))
        await soon()
        scene.put("none", None)
        scene.delete("a1")
        await soon()
        assert [member.names() for member in members] == [{"none", "kube-root-ca.crt"}] * 4
        assert len(scene.way.open) == 1


@both
@pytest.mark.parametrize("mark", ["b", "x", None], ids=["another's", "an unknown cluster's", "none"])
async def test_object_that_loses_its_mark_is_deleted(ordered: bool, mark: str | None) -> None:
    async with host(ordered=ordered) as scene:
        scene.put("one", "a")
        old, new = scene.join("a"), scene.join("b")
        await soon()
        uid = scene.put("one", mark, color="red")["metadata"]["uid"]
        await soon()
        assert old.informer.saw_go(Key(HOME, "one"), uid)
        assert new.names() == ({"one"} if mark == "b" else set())
        scene.put("one", "a")
        await soon()
        assert (old.names(), new.names()) == ({"one"}, set())


@both
async def test_cluster_that_came_later_sees_its_object_go(ordered: bool) -> None:
    """The object was known as nobody's before."""
    async with host(ordered=ordered) as scene:
        for name in ("a", "c"):
            scene.join(name)
        await soon()
        scene.put("one", "b")
        await soon()
        late = scene.join("b")
        await soon()
        assert late.names() == {"one"}
        scene.put("one", "unknown")
        await soon()
        assert late.names() == set()


@both
async def test_object_that_comes_and_goes_at_once_leaves_nothing(ordered: bool) -> None:
    """The store doesn't know it yet when the shared watch shows that it is another's."""
    async with host(ordered=ordered) as scene:
        old, new = scene.join("a"), scene.join("b")
        await soon()
        for _ in range(3):
            scene.put("one", "a")
            scene.put("one", "b")
        await soon()
        assert (old.names(), new.names()) == (set(), {"one"})


@both
async def test_cluster_that_joins_misses_nothing(ordered: bool) -> None:
    """Objects change while its list is under way, and between the list and its watch."""
    async with host(ordered=ordered) as scene:
        first = scene.join("a")
        scene.put("b1", "b")
        scene.put("b2", "b")
        await soon()
        scene.way.gate.clear()
        late = scene.join("b")
        await asyncio.sleep(1)
        scene.put("b1", "b", color="red")
        scene.delete("b2")
        scene.put("b3", "b")
        scene.put("b4", "b")
        scene.put("b4", "a")
        scene.put("a1", "a")
        scene.way.gate.set()
        await asyncio.sleep(0)
        scene.put("b1", "b", color="blue")
        await soon()
        alone = scene.join("b", shared=False)
        await soon()
        assert late.objects() == alone.objects()
        assert late.names() == {"b1", "b3"}
        assert first.names() == {"a1", "b4"}


async def test_many_that_begin_together_list_once_each() -> None:
    async with host() as scene:
        members = [scene.join(f"c{number}") for number in range(20)]
        for number in range(20):
            scene.put(f"m{number}", f"c{number}")
        await soon()
        assert [member.names() for member in members] == [{f"m{number}"} for number in range(20)]
        assert (scene.way.lists, scene.way.most) == (20, 1)
        assert scene.way.opened <= 2


async def test_list_of_the_first_is_awaited_by_the_others() -> None:
    """Otherwise the list of another could be older than the watch that begins with the first."""
    async with host() as scene:
        scene.way.gate.clear()
        members = [scene.join(name) for name in ("a", "b", "c")]
        await asyncio.sleep(1)
        assert scene.way.lists == 1
        await members[0].leave()
        await asyncio.sleep(1)
        assert scene.way.lists == 2, "the next one is the first now"
        scene.way.gate.set()
        await soon()
        assert scene.way.lists == 3
        assert [member.heard.calls for member in members] == [[], ["synced", "watching"], ["synced", "watching"]]


async def test_error_of_the_first_list_is_that_of_all_who_await_it() -> None:
    async with host() as scene:
        scene.server.faults.add(Rule(resource="configmaps", status=403))
        scene.way.gate.clear()
        members = [scene.join(name) for name in ("a", "b", "c")]
        await asyncio.sleep(1)
        scene.way.gate.set()
        await asyncio.sleep(1)
        assert scene.way.lists == 1
        assert [member.heard.calls for member in members] == [["failed: Forbidden"]] * 3


async def test_watch_resumes_after_the_latest_event_of_any_cluster() -> None:
    async with host() as scene:
        first, second = scene.join("a"), scene.join("b")
        await soon()
        version = scene.put("x1", "unknown")["metadata"]["resourceVersion"]
        await asyncio.sleep(0.1)
        scene.server.cut_watches()
        await soon()
        assert f"resourceVersion={version}&" in f"{scene.way.open[0]}&"
        assert (first.names(), second.names()) == (set(), set())


async def test_widened_watch_survives_the_error_with_which_the_former_one_ends() -> None:
    async with host() as scene:
        first = scene.join("a")
        await soon()
        scene.way.breaks = True
        second = scene.join("b")
        await soon()
        scene.way.breaks = False
        assert [member.reflector.restarts for member in (first, second)] == [1, 1]
        scene.put("a1", "a")
        scene.put("b1", "b")
        await soon()
        assert (first.names(), second.names(), len(scene.way.open)) == ({"a1"}, {"b1"}, 1)


async def test_no_call_waits_for_a_cluster_with_a_failed_list() -> None:
    async with host() as scene:
        first = scene.join("a")
        await soon()
        rule = scene.server.faults.add(Rule(resource="configmaps", verb="list", status=403))
        second = scene.join("b")
        await asyncio.sleep(1)
        scene.put("b1", "b")
        scene.put("b2", "b")
        await asyncio.sleep(1)
        assert [seat._size for watch in scene.watches._watches.values() for seat in watch._all()] == [0, 0]
        scene.server.faults.remove(rule)
        second.reflector.hurry()
        await soon()
        assert (first.names(), second.names()) == (set(), {"b1", "b2"})


async def test_leaving_ends_no_other_watch() -> None:
    async with host() as scene:
        first, second = scene.join("a"), scene.join("b")
        await soon()
        opened = scene.way.opened
        await first.leave()
        scene.put("a1", "a")
        scene.put("b1", "b")
        await soon()
        assert (second.names(), first.names(), scene.way.opened) == ({"b1"}, set(), opened)
        await second.leave()
        assert scene.way.open == []
        again = scene.join("a")
        await soon()
        assert again.names() == {"a1"}


@both
@pytest.mark.parametrize("trouble", ["cut", "compact", "restart"])
async def test_after_trouble_each_has_its_own_objects(ordered: bool, trouble: str) -> None:
    async with host(ordered=ordered) as scene:
        for name in ("a", "b"):
            scene.put(f"{name}1", name)
        members = [scene.join("a"), scene.join("b")]
        await soon()
        lists = scene.way.lists
        if trouble == "cut":
            scene.server.cut_watches()
        else:
            scene.server.restart(down=5)
        scene.put("a2", "a")
        scene.delete("b1")
        scene.put("b2", "b")
        if trouble == "compact":
            scene.server.compact()
        await soon()
        assert [member.names() for member in members] == [{"a1", "a2"}, {"b2"}]
        assert scene.way.lists - lists == (2 if trouble == "compact" else 0)
        assert len(scene.way.open) == 1


async def test_error_is_everybodys() -> None:
    async with host() as scene:
        members = [scene.join("a"), scene.join("b"), scene.join("c")]
        rule = scene.server.faults.add(Rule(resource="configmaps", status=403))
        await soon()
        assert all(isinstance(member.reflector.error, Forbidden) for member in members)
        assert all(member.heard.calls[0] == "failed: Forbidden" for member in members)
        scene.server.faults.remove(rule)
        for member in members:
            member.reflector.hurry()
        await soon()
        assert [member.reflector.error for member in members] == [None] * 3
        assert all(member.heard.calls[-3:] == ["working", "synced", "watching"] for member in members)


async def test_handler_that_raises_is_its_own_clusters() -> None:
    async with host() as scene:
        first, second = scene.join("a"), scene.join("b")

        def broken(key: Key, last: Obj) -> None:
            raise ValueError("broken")

        first.informer.add_handler(broken)
        await soon()
        opened = scene.way.opened
        scene.put("a1", "a")
        scene.put("b1", "b")
        await soon()
        assert (first.names(), second.names(), scene.way.opened) == ({"a1"}, {"b1"}, opened)


@both
@pytest.mark.parametrize("at", [1, 2], ids=["waits for the reflector", "is taken at once"])
async def test_bug_in_one_clusters_reflector_ends_no_other_watch(
    monkeypatch: pytest.MonkeyPatch, ordered: bool, at: int
) -> None:
    """It loses no object of its own cluster either."""
    async with host(ordered=ordered) as scene:
        first, second = scene.join("a"), scene.join("b")
        await soon()
        opened, event, calls = scene.way.opened, first.informer.event, []

        def raises_once(kind: str, value: codec.Raw) -> None:
            calls.append(kind)
            if len(calls) == at:
                raise RuntimeError("a bug")
            event(kind, value)

        monkeypatch.setattr(first.informer, "event", raises_once)
        for number in range(at):
            scene.put(f"a{number}", "a")
            await asyncio.sleep(1)
        scene.put("b1", "b")
        await soon()
        assert (first.names(), second.names()) == ({"a0", "a1"} if at == 2 else {"a0"}, {"b1"})
        assert scene.way.opened == opened
        scene.put("a9", "a")
        await soon()
        assert "a9" in first.names()


async def test_only_wanted_events_are_kept_and_those_that_are_kept_already() -> None:
    async with host() as scene:
        wanted = {"a"}
        scene.put_event("listed", "a")
        scene.put_event("listed-of-other", "b")
        member = scene.join_events(lambda about: about.key.name in wanted)
        await soon()
        scene.put_event("watched", "a")
        scene.put_event("watched-of-other", "b")
        await soon()
        assert member.names() == {"listed", "watched"}
        wanted.clear()
        scene.put_event("watched", "a", count=2)
        scene.server.delete("events", f"{HOME}/listed")
        await soon()
        [kept] = member.objects().values()
        assert kept
        assert kept["count"] == 2


async def test_list_beside_the_watch_calls_no_store_wrong_for_an_event_that_was_not_wanted() -> None:
    async with host() as scene:
        wanted = {"a"}
        member = scene.join_events(lambda about: about.key.name in wanted)
        await soon()
        scene.put_event("of-other", "b")
        scene.put_event("of-a", "a")
        await soon()
        wanted.add("b")
        wrong: list[Key] = []
        assert await member.reflector.relist(wrong.append)
        assert (wrong, member.names()) == ([], {"of-a"})


async def test_cluster_with_too_much_waiting_lists_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MOST_WAITING", 2000)
    async with host() as scene:
        first = scene.join("a")
        await soon()
        scene.way.gate.clear()
        second = scene.join("b")
        await asyncio.sleep(1)
        for number in range(20):
            scene.put("b1", "b", number=str(number))
        await asyncio.sleep(1)
        seats = [seat for watch in scene.watches._watches.values() for seat in watch._all()]
        assert all(seat._size <= 2000 for seat in seats)
        scene.way.gate.set()
        await soon()
        scene.put("b2", "b")
        await soon()
        assert (first.names(), second.names()) == (set(), {"b1", "b2"})


async def test_relist_of_one_cluster_leaves_the_watch_open() -> None:
    async with host() as scene:
        scene.put("a1", "a")
        first, second = scene.join("a"), scene.join("b")
        await soon()
        opened, wrong = scene.way.opened, list[Key]()
        first.informer.drop(Key(HOME, "a1"))
        assert await first.reflector.relist(wrong.append)
        assert (wrong, first.names(), scene.way.opened) == ([Key(HOME, "a1")], {"a1"}, opened)
        scene.put("a2", "a")
        scene.put("b2", "b")
        await soon()
        assert (first.names(), second.names(), scene.way.opened) == ({"a1", "a2"}, {"b2"}, opened)


async def test_relist_without_ordered_versions_leaves_the_others_watch_open() -> None:
    async with host(ordered=False) as scene:
        first, second = scene.join("a"), scene.join("b")
        await soon()
        opened = scene.way.opened
        assert await first.reflector.relist(lambda key: None)
        scene.put("a2", "a")
        scene.put("b2", "b")
        await soon()
        assert (first.names(), second.names(), scene.way.opened) == ({"a2"}, {"b2"}, opened)


async def test_watch_ends_where_no_server_has_been_after_etcd_was_restored() -> None:
    """Everybody lists again, once one reflector has listed an older state than the watch has shown."""
    async with host() as scene:
        scene.put("a1", "a")
        kept = scene.server.snapshot()
        members = [scene.join("a"), scene.join("b")]
        for number in range(20):
            scene.put("b1", "b", number=str(number))
        await soon()
        scene.server.restore(kept)
        await soon()
        scene.put("a2", "a")
        scene.put("b2", "b")
        await soon()
        assert [member.names() for member in members] == [{"a1", "a2"}, {"b2"}]


def test_large_events_are_read_as_fast_as_they_are_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[int] = []
    add = shared.Seat.add

    def added(seat: shared.Seat, event: codec.WatchEvent, lost: shared.Lost | None = None) -> None:
        add(seat, event, lost)
        waiting.append(seat._size)

    monkeypatch.setattr(shared.Seat, "add", added)

    async def scenario() -> None:
        async with host() as scene:
            member = scene.join("a")
            await soon()
            for number in range(40):
                scene.put(f"a{number}", "a", text="x" * STEP_BYTES)
            await soon()
            assert len(member.names()) == 40

    play(scenario)
    assert max(waiting) < shared.ENOUGH_WAITING + 2 * STEP_BYTES
