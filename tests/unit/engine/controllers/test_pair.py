"""A change notifies the syncers that read it; a request has its objects, and leaves no state after they are gone."""

import asyncio
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest
from engine_fakes import SETTINGS, WIDGETS, Reports, Stands, Widgets, copy_of, virtual

from syncer.api import (
    Config,
    Context,
    Decision,
    FakeSyncUp,
    Forbidden,
    Index,
    Indexes,
    Key,
    Obj,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    Syncer,
    SyncRequest,
    Watch,
    Watches,
    skip,
)
from syncer.cache.reflector import Reflector
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.engine.controllers.builder import build_pair, leave
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.stores import fan_out
from syncer.names import SingleNamespace
from syncer.resources.kinds import PODS
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.workqueue.queue import Queue

WEB = Key("shop", "web")
HOST_KEY = Key("vc-ns", "web-x-shop-x-vc")


class Notes(Queue):
    """A queue that only writes down what it is given."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0.0)
        self.noted: list[SyncRequest] = []

    def add(self, request: SyncRequest, *, after: float = 0.0, low: bool = False) -> None:
        self.noted.append(request)

    def taken(self) -> list[SyncRequest]:
        noted, self.noted = self.noted, []
        return noted


def wired(*syncers: Syncer, settings: Settings = SETTINGS) -> tuple[ClusterPair, Notes]:
    queue, server = Notes(), ApiServer(seed="none")
    made = build_pair(
        settings,
        [(syncer, Config()) for syncer in syncers],
        virtual=SideClient("vc", Side.VIRTUAL, server.transport()),
        host=SideClient("host", Side.HOST, server.transport()),
        queue=queue,
        clock=lambda: 0.0,
        utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        has_status=lambda side, resource: True,
    )
    for controller in made.controllers.values():
        controller.ready = True
    return made, queue


def show(made: ClusterPair, side: Side, obj: Obj, kind: str = "MODIFIED", resource: Resource = WIDGETS) -> None:
    obj = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    made.informers.store(side, resource).event(kind, codec.Raw(json.dumps(obj).encode()))


def request(syncer: str, key: Key = WEB, host_key: Key | None = None) -> SyncRequest:
    return SyncRequest("vc", syncer, key, host_key)


# -- what wakes a syncer ---------------------------------------------------------------------------


def test_changes_on_both_sides_lead_to_the_virtual_key() -> None:
    made, queue = wired(Widgets())
    show(made, Side.VIRTUAL, virtual())
    assert queue.taken() == [request("widgets")]
    show(made, Side.HOST, copy_of(virtual()))
    assert queue.taken() == [request("widgets")]
    show(made, Side.HOST, merged(copy_of(virtual()), {"metadata": {"resourceVersion": "9"}}), "DELETED")
    assert queue.taken() == [request("widgets")]


class Sized(Widgets):
    """Copies only what has a size."""

    def predicate(self, virtual: Obj) -> bool:
        return "size" in virtual.get("spec", {})


def test_object_that_can_have_no_copy_is_not_reconciled() -> None:
    made, queue = wired(Sized())
    show(made, Side.VIRTUAL, virtual())
    assert queue.taken() == []
    show(made, Side.VIRTUAL, virtual(metadata={"resourceVersion": "5"}, spec={"size": 1}))
    assert queue.taken() == [request("widgets")]
    show(made, Side.HOST, copy_of(virtual()))
    queue.taken()
    show(made, Side.VIRTUAL, virtual(metadata={"resourceVersion": "6"}))
    assert queue.taken() == [request("widgets")], "its copy has to go"


def test_syncer_is_not_called_before_it_is_ready() -> None:
    made, queue = wired(Widgets(), ByPod())
    for controller in made.controllers.values():
        controller.ready = False
    show(made, Side.VIRTUAL, virtual())
    show(made, Side.HOST, copy_of(virtual()))
    show(made, Side.VIRTUAL, virtual("p", uses=["a", "b"]), resource=PODS)
    assert queue.taken() == []


def test_syncer_waits_for_its_own_stores_and_for_no_other_that_cannot_be_read() -> None:
    made, _ = wired(Widgets())
    [controller] = made.controllers.values()
    notes = made.policies.pause.notes
    assert [*controller.stores, notes] == [one for one in made.lacks(controller) if one in (*controller.stores, notes)]
    unreadable = Forbidden("no", cluster="vc", side=Side.VIRTUAL, verb="list", resource=notes.resource)
    for store in (notes, controller.stores[0]):
        made.reflectors[(store.side, store.resource)] = cast("Reflector", SimpleNamespace(error=unreadable))
    assert notes not in made.lacks(controller)
    assert controller.stores[0] in made.lacks(controller)


def test_host_object_that_is_not_ours_wakes_no_request() -> None:
    made, queue = wired(Widgets())
    show(made, Side.HOST, merged(copy_of(virtual()), {"metadata": {"name": "copy-of-a-copy"}}))
    show(made, Side.HOST, merged(copy_of(virtual()), {"metadata": {"annotations": None}}))
    assert queue.taken() == []


def test_copy_with_another_name_is_requested_by_both_keys() -> None:
    made, queue = wired(Widgets())
    stray = copy_of(virtual())
    stray["metadata"] |= {"name": "old-name"}
    stray["metadata"]["annotations"] |= {SETTINGS.marks.host_name: "old-name"}
    show(made, Side.HOST, stray)
    [asked] = queue.taken()
    assert asked == request("widgets", host_key=Key("vc-ns", "old-name"))
    with pytest.raises(Refused, match=r"names\.translator") as refused:
        made.plan(asked)
    assert refused.value.reason == "NameCollision"
    show(made, Side.HOST, merged(stray, {"metadata": {"resourceVersion": "9"}}), "DELETED")
    assert made.plan(asked).decision.writes == ()
    show(made, Side.VIRTUAL, virtual())
    assert made.plan(asked).decision.writes == (), "its own request makes the copy at the right place"
    assert made.is_gone(asked)


def test_host_object_leads_to_a_request_with_both_keys() -> None:
    made, queue = wired(Reports())
    report = merged(copy_of(virtual()), {"metadata": {"name": "r1"}})
    show(made, Side.HOST, report)
    assert queue.taken() == [request("reports", Key("shop", "r1"), Key("vc-ns", "r1"))]


class ByPod(Stands, Indexes, Watches):
    """Named by Pods."""

    def indexes(self) -> Sequence[Index]:
        return [Index(Source(Side.VIRTUAL, PODS), "uses", lambda pod: pod.get("uses", ()))]

    def watches(self) -> Sequence[Watch]:
        return [Watch(Source(Side.VIRTUAL, PODS), self.named)]

    def named(self, obj: Obj, settings: Settings) -> Iterable[Key]:
        return [Key("shop", name) for name in obj.get("uses", ())]


def test_watched_object_wakes_the_keys_that_it_names() -> None:
    made, queue = wired(ByPod())
    show(made, Side.VIRTUAL, virtual("p", uses=["a", "b"]), resource=PODS)
    assert {each.key.name for each in queue.taken()} == {"a", "b"}
    assert set(made.informers.store(Side.VIRTUAL, PODS).indexer.keys("uses", "a")) == {Key("shop", "p")}


class Broken(ByPod):
    """Raises wherever it can."""

    def indexes(self) -> Sequence[Index]:
        return [Index(Source(Side.VIRTUAL, PODS), "uses", lambda pod: 1 / 0)]  # type: ignore[arg-type, return-value]

    def named(self, obj: Obj, settings: Settings) -> Iterable[Key]:
        yield Key("shop", "a")
        raise ValueError("a bug")


def test_exception_of_an_index_or_a_watch_does_not_stop_the_store() -> None:
    made, queue = wired(Broken())
    show(made, Side.VIRTUAL, virtual("p"), resource=PODS)
    assert Key("shop", "p") in made.informers.keys(Side.VIRTUAL, PODS)
    assert queue.taken() == []


def test_watched_objects_are_not_decoded_again_when_a_syncer_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    made, queue = wired(ByPod())
    for number in range(3):
        show(made, Side.VIRTUAL, virtual(f"p{number}", uses=["a", f"b{number}"]), resource=PODS)
    queue.taken()
    monkeypatch.delattr(codec, "stored")
    made.ask_all(made.controllers["stands"])
    assert queue.taken() == [request("stands", Key("shop", name)) for name in ("a", "b0", "b1", "b2")]


def test_keys_are_all_queued_when_a_syncer_begins() -> None:
    made, queue = wired(Widgets(), ByPod())
    show(made, Side.VIRTUAL, virtual("a"))
    show(made, Side.HOST, copy_of(virtual("orphan")))
    show(made, Side.VIRTUAL, virtual("p", uses=["b"]), resource=PODS)
    queue.taken()
    made.ask_all(made.controllers["widgets"])
    assert queue.taken() == [request("widgets", Key("shop", name)) for name in ("a", "orphan")]
    made.ask_all(made.controllers["stands"])
    assert queue.taken() == [request("stands", Key("shop", name)) for name in ("a", "b")]


def among_many(change: Callable[[ClusterPair], None], *syncers: Syncer) -> tuple[int, list[SyncRequest]]:
    """Make a change 50 times among 300 Widgets, while changes are told in steps.

    Return the number of requests that were queued meanwhile, and all afterwards.
    """
    made, queue = wired(*syncers)
    for number in range(300):
        show(made, Side.VIRTUAL, virtual(f"w{number}", spec={"pod": "p"}))

    async def scene() -> tuple[int, list[SyncRequest]]:
        telling = asyncio.create_task(made.fan_out.run())
        await asyncio.sleep(0)
        queue.taken()
        for _ in range(50):
            change(made)
        at_once = len(queue.noted)
        while made.fan_out:  # noqa: ASYNC110 — nothing else says so
            await asyncio.sleep(0)
        telling.cancel()
        return at_once, queue.taken()

    return asyncio.run(scene())


@pytest.mark.parametrize("namespace", [None, "shop"])
def test_pause_again_and_again_asks_many_objects_once_and_in_steps(namespace: str | None) -> None:
    at_once, asked = among_many(lambda made: made.pause_changed(namespace), Widgets())
    assert (at_once, len(asked)) == (0, 300)


def test_many_keys_are_queued_in_steps_when_a_syncer_begins() -> None:
    at_once, asked = among_many(lambda made: made.ask_all(made.controllers["widgets"]), Widgets())
    assert (at_once, len(asked)) == (0, 300)


def test_others_may_run_while_many_copies_are_passed_over_when_a_syncer_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    made, queue = wired(Widgets())
    for number in range(3 * fan_out.STEP):
        show(made, Side.VIRTUAL, virtual(f"w{number}"))
        show(made, Side.HOST, copy_of(virtual(f"w{number}")))
    queue.taken()
    steps: list[int] = []

    def notify(change: Hashable, most: int, objects: Callable[[], Iterator[object]]) -> None:
        steps.append(sum(1 for _ in objects()))

    monkeypatch.setattr(made.fan_out, "notify", notify)
    made.ask_all(made.controllers["widgets"])
    assert steps == [3 * fan_out.STEP + 3]
    assert len(queue.taken()) == 3 * fan_out.STEP


def test_pause_of_one_namespace_asks_the_objects_of_no_other() -> None:
    assert among_many(lambda made: made.pause_changed("other"), Widgets()) == (0, [])


def test_pause_of_a_syncer_asks_many_objects_once_and_in_steps() -> None:
    at_once, asked = among_many(lambda made: made.syncer_pause_changed("widgets"), Widgets())
    assert (at_once, len(asked)) == (0, 300)


class ByValue(Widgets, Indexes):
    """Reconciled when a Pod changes that it names."""

    def indexes(self) -> Sequence[Index]:
        pods = Source(Side.VIRTUAL, PODS)
        return [
            Index(Source(Side.VIRTUAL, WIDGETS), "pod", lambda widget: [widget["spec"]["pod"]]),
            Index(pods, "name", lambda pod: [pod["metadata"]["name"]], requeues="pod", when="change"),
        ]


def test_repeated_change_of_a_shared_reference_wakes_objects_once_in_steps() -> None:
    at_once, asked = among_many(lambda made: show(made, Side.VIRTUAL, virtual("p"), resource=PODS), ByValue())
    assert (at_once, len(asked)) == (0, 300)


class Others(Widgets):
    """Keeps the stores when Widgets leave."""

    name = "others"


@pytest.mark.parametrize("namespace", [None, "shop"])
def test_syncer_that_has_left_is_asked_of_nothing(namespace: str | None) -> None:
    def change(made: ClusterPair) -> None:
        if "widgets" in made.controllers:
            made.pause_changed(namespace)
            leave(made, "widgets")

    _, asked = among_many(change, Widgets(), Others())
    assert (len(asked), {each.syncer for each in asked}) == (300, {"others"})


@pytest.mark.parametrize("namespace", [None, "shop"])
def test_syncer_that_leaves_with_its_stores_raises_nothing(
    namespace: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(fan_out.log, "exception", lambda *message, **fields: raised.append(message))

    def change(made: ClusterPair) -> None:
        if made.controllers:
            made.pause_changed(namespace)
            leave(made, "widgets")

    assert (among_many(change, Widgets()), raised) == ((0, []), [])


# -- which Events are about copies -----------------------------------------------------------------


def is_about_a_copy(
    made: ClusterPair, key: Key = HOST_KEY, *, group: str = "example.org", kind: str = "Widget", uid: str = ""
) -> bool:
    return made.reconciler.view.has_copy(codec.InvolvedObject(group, kind, key, uid))


def test_event_is_about_a_copy_by_its_key_and_uid() -> None:
    made, _ = wired(Widgets())
    copy = copy_of(virtual())
    assert not is_about_a_copy(made)
    show(made, Side.HOST, copy)
    assert is_about_a_copy(made)
    assert is_about_a_copy(made, uid=copy["metadata"]["uid"])
    assert not is_about_a_copy(made, uid="that of an earlier one")
    assert not is_about_a_copy(made, Key("vc-ns", "own"))


@pytest.mark.parametrize(("group", "kept"), [("example.org", True), ("apps", False), ("", False)])
def test_event_about_a_kind_without_a_syncer_is_kept_if_the_kind_may_come(group: str, kept: bool) -> None:
    made, _ = wired(Widgets())
    assert is_about_a_copy(made, group=group, kind="Gadget") is kept


def test_event_is_about_a_copy_to_come_or_gone_by_its_name() -> None:
    made, _ = wired(Widgets())
    show(made, Side.VIRTUAL, virtual())
    assert is_about_a_copy(made, uid="any")
    assert not is_about_a_copy(made, Key("vc-ns", "web-x-shop-x-another"))


class Raising(SingleNamespace):
    """Raises where a name is to be read."""

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        raise ValueError("a bug")


def test_bug_of_a_name_translator_drops_no_event_and_reaches_no_other_cluster() -> None:
    """This is asked in the task that reads the watch for all virtual clusters."""
    names = Raising(cluster="vc", namespace="vc-ns")
    made, _ = wired(Widgets(), settings=replace(SETTINGS, names=names))
    assert is_about_a_copy(made)


# -- what a request is decided from ----------------------------------------------------------------


def test_request_is_decided_from_the_latest_state_of_both_sides() -> None:
    made, _ = wired(Widgets())
    assert made.plan(request("widgets")).decision.writes == ()
    show(made, Side.VIRTUAL, virtual(spec={"a": 1}))
    assert [write.side for write in made.plan(request("widgets")).decision.writes] == [Side.HOST]
    show(made, Side.HOST, copy_of(virtual(), status={"b": 2}))
    assert [write.side for write in made.plan(request("widgets")).decision.writes] == [Side.HOST, Side.VIRTUAL]


def test_resource_that_is_read_but_not_watched_is_named_in_the_error() -> None:
    made, _ = wired(Widgets())
    with pytest.raises(KeyError, match=r"name it in the syncer's `reads`, as Source\(Side\.HOST"):
        made.informers.get(Side.HOST, PODS, WEB)


# -- what is gone ----------------------------------------------------------------------------------


def test_request_is_gone_when_both_its_objects_are() -> None:
    made, _ = wired(Widgets())
    assert made.is_gone(request("widgets"))
    show(made, Side.VIRTUAL, virtual())
    assert not made.is_gone(request("widgets"))
    show(made, Side.HOST, copy_of(virtual()))
    show(made, Side.VIRTUAL, virtual(), "DELETED")
    assert not made.is_gone(request("widgets"))


class Unplaced(Widgets):
    """No name has a place on the host."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        raise Refused("no room for the suffix")


def test_request_without_a_host_key_is_gone_with_its_virtual_object() -> None:
    made, _ = wired(Unplaced())
    show(made, Side.HOST, merged(copy_of(virtual()), {"metadata": {"namespace": WEB.namespace, "name": WEB.name}}))
    assert made.is_gone(request("widgets"))
    assert made.plan(request("widgets")).decision.writes == ()
    show(made, Side.VIRTUAL, virtual())
    assert not made.is_gone(request("widgets"))
    with pytest.raises(Refused, match="no room"):
        made.plan(request("widgets"))


class UnplacedOrFaked(Unplaced, FakeSyncUp):
    """Stands for what has no virtual object."""

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        return skip("faked")

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return skip("faked")


def test_name_impossible_on_the_host_is_refused_to_a_faking_syncer() -> None:
    made, _ = wired(UnplacedOrFaked())
    with pytest.raises(Refused, match="no room"):
        made.plan(request("widgets"))


def test_virtual_object_is_gone_with_its_host_object_and_a_fake_with_its_need() -> None:
    made, _ = wired(Reports(), Stands())
    show(made, Side.VIRTUAL, virtual())
    assert made.is_gone(request("reports", WEB, Key("vc-ns", "r1")))
    assert not made.is_gone(request("stands"))
    assert made.is_gone(request("stands", Key("shop", "other")))


# -- what is watched -------------------------------------------------------------------------------


def test_host_is_watched_in_our_namespace_and_by_our_mark_and_the_virtual_cluster_whole() -> None:
    made, _ = wired(Widgets())
    assert selected(made, Side.HOST) == ("vc-ns", "vsyncer.dev/cluster=vc.vc-ns")
    assert selected(made, Side.VIRTUAL) == ("", "")
    made, _ = wired(Reports())
    assert selected(made, Side.HOST) == ("vc-ns", "")
    assert selected(made, Side.VIRTUAL) == ("", "vsyncer.dev/cluster=vc.vc-ns")


def selected(made: ClusterPair, side: Side) -> tuple[str, str]:
    selection = made.informers.selection(made.informers.store(side, WIDGETS))
    return selection.namespace, selection.selector


def test_store_holds_everything_as_soon_as_one_reader_wants_everything() -> None:
    made, _ = wired(Widgets())
    assert made.informers.is_marked(made.informers.store(Side.HOST, WIDGETS))
    made, _ = wired(Widgets(), Reports())
    assert not made.informers.is_marked(made.informers.store(Side.HOST, WIDGETS))
    assert selected(made, Side.HOST) == ("vc-ns", "")
    assert selected(made, Side.VIRTUAL) == ("", "")
