"""A store keeps bytes without managedFields, and gives private copies."""

import sys
from typing import Any

from informer_scene import MAPS, A, B, obj

from syncer.api import Obj
from syncer.byte_budget import ByteBudget
from syncer.cache.entry import Entry
from syncer.cache.store import Store


def test_store_keeps_no_managed_fields_and_fills_in_the_kind() -> None:
    store, listed = Store(MAPS, ByteBudget()), obj(1, data={"color": "blue"})
    del listed["apiVersion"], listed["kind"]
    listed["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    kept = store.keep(A, listed)
    assert kept == store.get(A) == obj(1, data={"color": "blue"})


def test_store_gives_a_private_copy() -> None:
    store = Store(MAPS, ByteBudget())
    store.keep(A, obj(1, data={"color": "blue"}))
    read = store.get(A)
    assert read
    read["data"]["color"] = "red"
    assert store.get(A) == obj(1, data={"color": "blue"})


def test_store_knows_version_and_uid_of_an_entry() -> None:
    store = Store(MAPS, ByteBudget())
    store.keep(A, obj(1, uid="u7"))
    entry = store.entry(A)
    assert isinstance(entry, Entry)
    assert (entry.version, entry.uid) == ("1", "u7")
    assert (store.entry(B), store.get(B)) == (None, None)


def test_store_drops_an_object_and_gives_it_as_it_last_was() -> None:
    store = Store(MAPS, ByteBudget())
    store.keep(A, obj(1))
    store.keep(B, obj(2, B))
    assert (list(store.keys()), len(store), A in store) == ([A, B], 2, True)
    assert store.drop(A) == obj(1)
    assert store.drop(A) is None
    assert (list(store.keys()), len(store), A in store) == ([B], 1, False)


def test_outline_is_a_private_copy_of_the_metadata_alone() -> None:
    store, whole = Store(MAPS, ByteBudget()), obj(1, data={"color": "blue"})
    store.keep(A, whole)
    first = store.outline(A)
    assert first == {"metadata": whole["metadata"]}
    first["metadata"].clear()
    assert store.outline(A) == {"metadata": whole["metadata"]}
    assert store.outline(B) is None


def test_outline_is_read_from_deeper_calls_than_the_object_was_kept_from() -> None:
    def down(levels: int) -> Obj | None:
        return down(levels - 1) if levels else store.outline(A)

    store = Store(MAPS, ByteBudget())
    nested: Any = "x"
    for _ in range(sys.getrecursionlimit() // 2):
        nested = {"a": nested}
    store.keep(A, obj(1, data=nested))
    assert (down(sys.getrecursionlimit() // 2 - 40) or {})["metadata"]["name"] == A.name
