"""An object that there is no room for is known without its contents until there is, and ends nothing but itself."""

from typing import Any

import pytest
from informer_scene import A, B, Watched, obj, of_namespaces

from syncer.api import Obj
from syncer.byte_budget import ByteBudget
from syncer.clusters import codec

#: The most bytes of virtual objects and copies: one of 3 kB fits, with two small ones.
MOST = 16_000
LARGE: dict[str, Any] = {"data": {"k": "x" * 3_000}}


@pytest.fixture
def shares() -> ByteBudget:
    return of_namespaces(MOST)


@pytest.fixture
def watched(shares: ByteBudget) -> Watched:
    made = Watched(budget=shares)
    made.listed(obj(1, B, **LARGE), version=5)
    return made


def annotated(version: int, size: int, **parts: Any) -> Obj:
    made = obj(version, **parts)
    made["metadata"] |= {"labels": {"color": "blue"}, "annotations": {"vsyncer.dev/paused": "x" * size}}
    return made


def is_left_out(watched: Watched) -> bool:
    found = watched.informer.get(A)
    assert found is not None
    assert (codec.UNREADABLE in found) is (A in watched.informer.left_out) is (A in watched.informer.quarantined)
    return codec.UNREADABLE in found


def test_object_that_there_is_no_room_for_exists_without_its_contents(watched: Watched) -> None:
    watched.event("ADDED", annotated(6, 10, **LARGE))
    assert is_left_out(watched)
    assert watched.heard()[-1] == (A, "6")
    found = watched.informer.get(A)
    assert found is not None
    assert "data" not in found
    assert found["metadata"] == annotated(6, 10)["metadata"]
    assert "no room for its" in found[codec.UNREADABLE]
    assert watched.informer.get(B) == obj(1, B, **LARGE)


def test_object_of_another_namespace_has_room(watched: Watched) -> None:
    watched.event("ADDED", obj(6, A._replace(namespace="bank"), data={"k": "x" * 400}))
    assert not watched.informer.left_out


def test_large_labels_and_annotations_go_with_the_contents(watched: Watched, shares: ByteBudget) -> None:
    used = shares.used
    watched.event("ADDED", annotated(6, 3_000))
    assert is_left_out(watched)
    found = watched.informer.get(A)
    assert found is not None
    assert found["metadata"].keys() == obj(6)["metadata"].keys()
    assert shares.used < used + 1_500


def test_object_that_grows_is_left_out_until_it_is_small_again(watched: Watched) -> None:
    watched.event("ADDED", obj(6, data={"k": "x"}))
    assert not is_left_out(watched)
    watched.event("MODIFIED", obj(7, **LARGE))
    assert is_left_out(watched)
    watched.event("MODIFIED", obj(8, data={"k": "y"}))
    assert not is_left_out(watched)
    assert watched.informer.get(A) == obj(8, data={"k": "y"})


def test_object_that_is_left_out_and_deleted_is_gone(watched: Watched, shares: ByteBudget) -> None:
    used = shares.used
    watched.event("ADDED", obj(6, **LARGE))
    watched.event("DELETED", obj(7, **LARGE))
    assert A not in watched.informer
    assert watched.informer.saw_go(A)
    assert not watched.informer.left_out
    assert not watched.informer.quarantined
    assert shares.used == used


def test_response_to_an_own_write_without_room_notifies(watched: Watched) -> None:
    watched.event("ADDED", obj(6, data={"k": "x"}))
    watched.heard()
    assert watched.wrote(obj(7, **LARGE))
    assert is_left_out(watched)
    assert watched.heard() == [(A, "7")]


def test_object_is_let_in_as_it_was_read_once_there_is_room(watched: Watched) -> None:
    watched.event("ADDED", obj(6, **LARGE))
    watched.informer.let_in(A, obj(6, **LARGE))
    assert is_left_out(watched), "there is no room still"
    watched.event("DELETED", obj(7, B))
    watched.heard()
    watched.informer.let_in(A, obj(6, **LARGE))
    assert not is_left_out(watched)
    assert watched.informer.get(A) == obj(6, **LARGE)
    assert watched.heard() == [(A, "6")]


def test_object_that_was_read_is_not_let_in_if_it_has_changed_since(watched: Watched) -> None:
    watched.event("ADDED", obj(6, **LARGE))
    watched.event("DELETED", obj(7, B))
    watched.informer.let_in(A, obj(5, **LARGE))
    assert is_left_out(watched)
    watched.event("MODIFIED", obj(8, data={"k": "y"}))
    watched.informer.let_in(A, obj(8, **LARGE))
    assert watched.informer.get(A) == obj(8, data={"k": "y"})
    watched.event("DELETED", obj(9))
    watched.informer.let_in(A, obj(8, **LARGE))
    assert A not in watched.informer


def test_malformed_object_is_not_let_in(watched: Watched) -> None:
    watched.event("ADDED", obj(6, **LARGE))
    with pytest.raises(codec.DecodeError):
        watched.informer.let_in(A, {"metadata": {"name": "a"}})
    assert is_left_out(watched)
