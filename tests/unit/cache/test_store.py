"""A store keeps bytes without managedFields, and gives private copies."""

import sys
from typing import Any

import pytest
from informer_scene import MAPS, A, B, obj

from syncer.api import Obj
from syncer.byte_budget import ByteBudget
from syncer.cache.entry import Entry
from syncer.cache.store import Store
from syncer.clusters import codec


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


@pytest.mark.parametrize("color", ["blue", '"blue"', "light\\blue", "line\nbreak"])
def test_text_that_an_object_was_decoded_from_is_stored_as_it_is(color: str) -> None:
    store = Store(MAPS, ByteBudget())
    text = codec.encode(obj(1, data={"color": color}))
    store.keep(A, codec.decode(text), text)
    entry = store.entry(A)
    assert entry is not None
    assert entry.packed is text


@pytest.mark.parametrize(
    "text",
    [
        codec.encode(obj(1) | {"metadata": obj(1)["metadata"] | {"managedFields": [{"manager": "kubectl"}]}}),
        codec.encode(obj(1) | {"metadata": obj(1)["metadata"] | {"managedFields": None}}),
        codec.encode({name: value for name, value in obj(1).items() if name not in ("apiVersion", "kind")}),
        codec.encode(obj(1, data={"<": "blue"})).replace(b"<", b"\\u003c"),
    ],
    ids=["managed fields", "no managed fields", "item of a list", "escaped"],
)
def test_text_of_an_object_is_not_stored_if_encoding_it_gives_another_one(text: bytes) -> None:
    store = Store(MAPS, ByteBudget())
    kept = store.keep(A, codec.decode(text), text)
    entry = store.entry(A)
    assert entry is not None
    assert entry.packed == codec.encode(kept)
    assert len(entry.packed) != len(text)


def test_outline_of_a_text_that_names_a_field_twice_is_that_of_the_object() -> None:
    store = Store(MAPS, ByteBudget())
    earlier = codec.encode(obj(1, B))
    text = earlier[:-1] + b"," + codec.encode({"metadata": obj(2)["metadata"]})[1:]
    store.keep(A, codec.decode(text), text)
    assert store.outline(A) == {"metadata": obj(2)["metadata"]}
    assert store.get(A) == obj(2)
