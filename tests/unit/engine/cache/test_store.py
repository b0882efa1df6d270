"""A store keeps bytes without managedFields, and gives private copies."""

from informer_scene import MAPS, A, B, obj

from syncer.engine.cache.store import Entry, Store


def test_store_keeps_no_managed_fields_and_fills_in_the_kind() -> None:
    store, listed = Store(MAPS), obj(1, data={"color": "blue"})
    del listed["apiVersion"], listed["kind"]
    listed["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    kept = store.keep(A, listed)
    assert kept == store.get(A) == obj(1, data={"color": "blue"})


def test_store_gives_a_private_copy() -> None:
    store = Store(MAPS)
    store.keep(A, obj(1, data={"color": "blue"}))
    read = store.get(A)
    assert read
    read["data"]["color"] = "red"
    assert store.get(A) == obj(1, data={"color": "blue"})


def test_store_knows_version_and_uid_of_an_entry() -> None:
    store = Store(MAPS)
    store.keep(A, obj(1, uid="u7"))
    entry = store.entry(A)
    assert isinstance(entry, Entry)
    assert (entry.version, entry.uid) == ("1", "u7")
    assert (store.entry(B), store.get(B)) == (None, None)


def test_store_drops_an_object_and_gives_it_as_it_last_was() -> None:
    store = Store(MAPS)
    store.keep(A, obj(1))
    store.keep(B, obj(2, B))
    assert (list(store.keys()), len(store), A in store) == ([A, B], 2, True)
    assert store.drop(A) == obj(1)
    assert store.drop(A) is None
    assert (list(store.keys()), len(store), A in store) == ([B], 1, False)
