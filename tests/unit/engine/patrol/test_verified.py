"""The requests of a patrol, and those that are skipped until one of their versions changes."""

from collections.abc import Iterable
from typing import Any

import pytest

from syncer.api import Key, Obj, Side
from syncer.engine.patrol.verified import VerifiedPairs
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, event, host_copy, node, pod
from syncer.testing.world import World

ALL: dict[str, Any] = {"sync": {"toHost": {"configMaps": {"all": True}}}}


class Patrolled:
    """The pairs of one syncer in a world."""

    def __init__(self, syncer: str, virtual: Iterable[Obj] = (), host: Iterable[Obj] = ()) -> None:
        self.world = World(config=ALL).given(virtual=list(virtual), host=list(host))
        self.verified = VerifiedPairs(self.world.pair, self.world.pair.controllers[syncer])

    def look(self, *, everything: bool = False, right: bool = True) -> tuple[list[str], int]:
        """Return the requests to look at, which are found right, and how many are passed over."""
        found = list(self.verified.changed(everything=everything))
        requests = [request for request in found if request is not None]
        for request in requests if right else ():
            self.verified.add(request)
        shown = sorted(f"{one.key} {one.host_key or ''}".strip() for one in requests)
        return shown, self.verified.unchanged


def copies(*names: str) -> list[Obj]:
    return [host_copy(configmap(name)) for name in names]


def test_pair_is_looked_at_again_when_either_version_changes() -> None:
    found = Patrolled("configmaps", [configmap("a"), configmap("b")], copies("a", "b"))
    assert found.look() == (["shop/a", "shop/b"], 0)
    assert found.look() == ([], 2)
    found.world.given(virtual=[configmap("a", {"new": "1"})])
    assert found.look() == (["shop/a"], 1)
    found.world.given(host=[merged(copies("b")[0], {"data": {"new": "1"}})])
    assert found.look() == (["shop/b"], 1)
    assert found.look(everything=True) == (["shop/a", "shop/b"], 0)


def test_others_may_run_after_each_object_of_either_side() -> None:
    names = [f"n{number}" for number in range(20)]
    found = Patrolled("configmaps", [configmap(name) for name in names], copies(*names))
    found.look()
    assert list(found.verified.changed(everything=False)) == [None] * 40
    assert found.verified.unchanged == 20


def test_pair_that_was_not_in_step_is_never_skipped() -> None:
    found = Patrolled("configmaps", [configmap("a")])
    for _ in range(2):
        assert found.look(right=False) == (["shop/a"], 0)


def test_orphan_is_found_by_its_copy_and_a_stray_copy_by_its_key() -> None:
    stray = merged(copies("a")[0], {"metadata": {"name": "elsewhere"}})
    mark = {"metadata": {"annotations": {"vsyncer.dev/host-name": "elsewhere"}}}
    found = Patrolled("configmaps", [configmap("a")], [*copies("a", "gone"), merged(stray, mark)])
    assert found.look() == (["shop/a", "shop/a vc-ns/elsewhere", "shop/gone"], 0)
    assert found.look() == ([], 3)
    found.world.given(host=[merged(copies("gone")[0], {"data": {"new": "1"}})])
    assert found.look() == (["shop/gone"], 2)
    found.world.given(virtual=[configmap("gone")])
    assert found.look()[0] == ["shop/gone"]


def test_object_that_does_not_concern_the_syncer_is_counted_nowhere() -> None:
    tokens = merged(copies("a")[0], {"metadata": {"annotations": {"vsyncer.dev/virtual-kind": "Other"}}})
    found = Patrolled("configmaps", [], [tokens])
    for _ in range(2):
        assert found.look() == ([], 0)


def test_host_object_is_found_from_the_host() -> None:
    web = host_copy(pod("web"))
    copied_event = event("web-x-shop-x-vc.1", about=web)
    found = Patrolled("events", [pod("web")], [web, copied_event])
    assert found.look() == (["shop/web.1 vc-ns/web-x-shop-x-vc.1"], 0)
    assert found.look() == ([], 1)
    found.world.given(host=[merged(copied_event, {"count": 7})])
    assert found.look() == (["shop/web.1 vc-ns/web-x-shop-x-vc.1"], 0)
    ours = {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}}
    found.world.given(virtual=[event("web.1", about=pod("web"), metadata=ours)])
    assert found.look() == (["shop/web.1 vc-ns/web-x-shop-x-vc.1"], 0)


@pytest.mark.parametrize("there", [False, True])
def test_fake_is_found_where_an_object_names_it(there: bool) -> None:
    stand_in = [node("n1", metadata={"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}})] if there else []
    found = Patrolled("nodes", stand_in, [host_copy(pod("web"), spec={"nodeName": "n1"})])
    assert found.look() == (["n1"], 0)
    assert found.look() == ([], 1)
    if there:
        found.world.pair.informers.store(Side.VIRTUAL, found.verified.controller.syncer.resource).gone_live(
            Key("", "n1")
        )
        assert found.look() == (["n1"], 0), "it was right while it was there"
