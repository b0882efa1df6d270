"""An object that can't be used is quarantined, and ends nothing but itself."""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from informer_scene import A, B, Watched, obj
from reflector_scene import LIFE, Scene, bookmark, line, page, running

from syncer.api import Key, Obj
from syncer.cache.informer import Informer
from syncer.cache.reflector import FIRST_WAIT, LAST_WAIT, ReflectorState
from syncer.clusters import codec

DEEP = b"[" * 5000 + b"]" * 5000


def text(value: Obj, **parts: bytes) -> bytes:
    """Return an object as text, with parts that no JSON library writes."""
    return (
        json.dumps(value).encode()[:-1] + b"".join(b',"%s":%s' % (n.encode(), part) for n, part in parts.items()) + b"}"
    )


def metadata(**parts: Any) -> bytes:
    """Return the text of A with other metadata; None drops a field."""
    found = obj(7)
    found["metadata"] = {name: value for name, value in {**found["metadata"], **parts}.items() if value != "drop"}
    return json.dumps(found).encode()


#: A, as API servers write their own kinds: it is known by the first of two names.
BEGINNING = b'{"metadata":{"name":"a","namespace":"shop","uid":"u1","resourceVersion":"7"'
#: Objects named A that can't be used.
MALFORMED = {
    "too deep": text(obj(7), data=DEEP),
    "too large a number": text(obj(7), data=b"1e999"),
    "no UTF-8": text(obj(7), data=b'"\xff"'),
    "no resourceVersion": metadata(resourceVersion="drop"),
    "resourceVersion that is a number": metadata(resourceVersion=7),
    "labels that are a list": metadata(labels=["a"]),
    "labels that are numbers": metadata(labels={"a": 1}),
    "annotations that are a text": metadata(annotations="a"),
    "owners that are none": metadata(ownerReferences=["a"]),
    "deletion that is none": metadata(deletionTimestamp=None),
    "uid that is an object": metadata(uid={}),
    "two names": BEGINNING + b',"name":"other"}}',
    "two namespaces": BEGINNING + b',"namespace":""}}',
    "two metadata": BEGINNING + b'},"metadata":%s}' % json.dumps(obj(7, B)["metadata"]).encode(),
    "another group": json.dumps({**obj(7), "apiVersion": "evil/v1"}).encode(),
}
#: Items that aren't objects of the collection.
NAMELESS = {
    "number": b"5",
    "list": b"[]",
    "null": b"null",
    "no metadata": b"{}",
    "metadata that is null": b'{"metadata":null}',
    "no name": metadata(name="drop"),
    "name that is a number": metadata(name=5),
    "name with a slash": metadata(name="a/b"),
    "no namespace": metadata(namespace="drop"),
    "namespace that is a list": metadata(namespace=["shop"]),
    "another kind": json.dumps({**obj(7), "kind": "Secret"}).encode(),
}


@pytest.fixture(params=list(MALFORMED.values()), ids=list(MALFORMED))
def malformed(request: pytest.FixtureRequest) -> codec.Raw:
    return codec.Raw(request.param)


@pytest.fixture(params=list(NAMELESS.values()), ids=list(NAMELESS))
def nameless(request: pytest.FixtureRequest) -> codec.Raw:
    return codec.Raw(request.param)


def is_quarantined(informer: Informer, key: Key = A) -> bool:
    found = informer.get(key)
    return found is not None and codec.UNREADABLE in found and "data" not in found and key in informer.quarantined


def test_malformed_object_exists_without_its_contents_until_it_is_well_formed(
    watched: Watched, informer: Informer, malformed: codec.Raw
) -> None:
    watched.listed(obj(1, B), version=5)
    informer.event("ADDED", malformed)
    assert is_quarantined(informer)
    assert watched.heard()[-1][0] == A, "its request says why"
    assert B in informer
    assert B not in informer.quarantined
    informer.event("MODIFIED", malformed)
    watched.event("MODIFIED", obj(9, data={"a": "b"}))
    assert informer.get(A) == obj(9, data={"a": "b"})
    assert not informer.quarantined
    assert informer.version == "9"


def test_malformed_object_of_a_list_exists_without_its_contents(watched: Watched, malformed: codec.Raw) -> None:
    informer = watched.informer
    watched.listed(obj(3), obj(4, B), version=5)
    with informer.replacing() as add:
        add([malformed, codec.Raw(json.dumps(obj(8, B)).encode())], "9")
    assert is_quarantined(informer)
    assert watched.version(B) == "8"
    with informer.comparing(watched.wrong.append) as add:
        add([malformed, codec.Raw(json.dumps(obj(8, B)).encode())], "10")
    assert is_quarantined(informer)
    watched.listed(obj(8, B), version=12)
    assert A not in informer
    assert not informer.quarantined


def test_malformed_object_that_is_deleted_is_gone(watched: Watched, informer: Informer, malformed: codec.Raw) -> None:
    watched.listed(version=5)
    informer.event("ADDED", malformed)
    informer.event("DELETED", malformed)
    assert A not in informer
    assert informer.saw_go(A)
    assert not informer.quarantined


def test_nameless_item_is_counted_until_the_next_list(
    watched: Watched, informer: Informer, nameless: codec.Raw
) -> None:
    watched.listed(obj(1), version=5)
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.event(kind, nameless)
    assert informer.nameless == 3
    assert watched.versions() == {"a": "1"}
    with informer.replacing() as add:
        add([nameless, codec.Raw(json.dumps(obj(1)).encode())], "9")
    assert (informer.nameless, watched.versions()) == (1, {"a": "1"})
    watched.compared(10, obj(1))
    assert informer.nameless == 0


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["a", "shop", "9", "u1"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "name", "namespace", "labels", "uid", "x"]), below, max_size=4)
    ),
    max_leaves=8,
)
_FIELDS = ["name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences", "managedFields"]


@st.composite
def _items(draw: st.DrawFn) -> bytes:
    """Text that may be an object, nearly one, or none at all."""
    value: Any = obj(draw(st.integers(0, 30)), draw(st.sampled_from([A, B])))
    for name in draw(st.lists(st.sampled_from(_FIELDS), max_size=2)):
        value["metadata"][name] = draw(_JSON)
    for name in draw(st.lists(st.sampled_from(["kind", "apiVersion", "metadata", "data"]), max_size=1)):
        value[name] = draw(_JSON)
    whole = json.dumps(draw(st.just(value) | _JSON), ensure_ascii=False).encode()
    cut = draw(st.just(None) | st.integers(0, len(whole)))
    return whole if cut is None else whole[:cut] + draw(st.binary(max_size=4)) + whole[cut:]


def _labels(value: Obj) -> Iterable[Any]:
    return [tuple(value["metadata"]["labels"]), value["data"]["x"]]  # raises for most


@given(st.lists(st.tuples(st.sampled_from(["ADDED", "MODIFIED", "DELETED", "list", "compare"]), _items()), max_size=8))
def test_informer_survives_any_answer_of_an_api_server(message: list[tuple[str, bytes]]) -> None:
    watched = Watched()
    informer = watched.informer
    informer.add_index("labels", _labels, owner="maps")
    informer.add_map_function(lambda value: value["data"]["keys"], "change", lambda keys: None, owner="maps")
    other = Key("shop", "other")
    watched.listed(obj(1, other), version=1)
    for kind, item in message:
        items = [codec.Raw(item), codec.Raw(json.dumps(obj(1, other)).encode())]
        if kind == "list":
            with informer.replacing() as add:
                add(items, "40")
        elif kind == "compare":
            with informer.comparing(watched.wrong.append) as add:
                add(items, "9" * 30)
        else:
            informer.event(kind, items[0])
        assert watched.version(other) == "1"
    for key in list(informer.keys()):
        found = informer.get(key)
        assert found is not None
        assert Key(found["metadata"].get("namespace", ""), found["metadata"]["name"]) == key
        assert (codec.UNREADABLE in found) is (key in informer.quarantined)
        codec.check({**found, "metadata": {**found["metadata"], "resourceVersion": "1"}}, key)


def test_reply_of_a_tenant_that_is_malformed_or_of_another_object_is_refused() -> None:
    watched = Watched(trusted=False)
    informer = watched.informer
    watched.listed(obj(1), version=5)
    for reply in (obj(7, B), {"metadata": {"name": "a"}}, {}, json.loads(metadata(labels=[1]))):
        with informer.writing(A) as writing, pytest.raises(codec.DecodeError):
            informer.wrote(A, writing, reply)
    assert watched.version() == "1"


# -- subscribers -----------------------------------------------------------------------------------


def test_index_keeps_the_values_of_an_object_that_it_cannot_compute_again(watched: Watched, informer: Informer) -> None:
    watched.listed(version=5)
    informer.add_index("uses", lambda value: value["uses"], owner="maps")
    watched.event("ADDED", obj(6, uses=["x"]))
    assert informer.is_certain("maps")
    wrongs: list[Obj] = [{"uses": 5}, {"uses": [{}]}, {}]
    for wrong in wrongs:
        watched.event("MODIFIED", obj(7, **wrong))
        assert set(informer.indexer.keys("uses", "x")) == {A}
        assert not informer.is_certain("maps")
        assert informer.is_certain("pods"), "it is another's index"
    watched.event("MODIFIED", obj(8, uses=["y"]))
    assert (set(informer.indexer.keys("uses", "x")), set(informer.indexer.keys("uses", "y"))) == (set(), {A})
    assert informer.is_certain("maps")
    informer.event("MODIFIED", codec.Raw(MALFORMED["too deep"]))
    assert set(informer.indexer.keys("uses", "y")) == {A}
    assert not informer.is_certain("maps")
    watched.event("DELETED", obj(9))
    assert set(informer.indexer.keys("uses", "y")) == set()
    assert informer.is_certain("maps")


def test_index_added_later_doubts_quarantined_objects(watched: Watched, informer: Informer) -> None:
    watched.listed(version=5)
    informer.event("ADDED", codec.Raw(MALFORMED["too deep"]))
    informer.add_index("uses", lambda value: ["x"], owner="maps")
    assert not informer.is_certain("maps")
    assert set(informer.indexer.keys("uses", "x")) == set()


def test_subscriber_that_raises_stops_no_other(watched: Watched, informer: Informer) -> None:
    heard: list[str] = []

    def fails(*_: Any) -> Any:
        raise RuntimeError("a bug")

    acts: list[tuple[str, Callable[..., Any]]] = [("bad", fails), ("good", lambda *_: [Key("shop", "x")])]
    for owner, act in acts:
        informer.add_index(f"{owner}/index", act, owner=owner, notify=fails)
        informer.add_map_function(act, "change", fails, owner=owner)
        informer.add_handler(act, owner=owner)
    informer.add_handler(lambda key, last: heard.append(key.name), owner="last")
    watched.event("ADDED", obj(6))
    watched.event("MODIFIED", obj(7))
    assert heard == ["a", "a"]
    assert watched.version() == "7"
    assert set(informer.indexer.keys("good/index", Key("shop", "x"))) == {A}


# -- through the reflector -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nonsense",
    [
        b"{}",
        b"5",
        b'{"type":"ADDED"}',
        b'{"type":5,"object":{}}',
        b'{"type":"FOUND","object":%s}' % json.dumps(obj(7)).encode(),
        b'{"type":"BOOKMARK","object":5}',
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":{}}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff","uid":"u","resourceVersion":"9"}}}',
        b"\xff\xfe",
    ],
)
async def test_line_of_a_watch_that_is_no_event_is_passed_over(nonsense: bytes) -> None:
    lines = [nonsense, line("MODIFIED", obj(8)), bookmark("12")]
    async with running(Scene([page("5", obj(1))], [[1.0, lines, LIFE]])) as scene:
        await asyncio.sleep(2)
        assert scene.versions() == {"a": "8"}
        assert scene.informer.nameless == 1
        assert scene.informer.version == "12"
        assert scene.reflector.state is ReflectorState.WATCHING
        assert scene.reflector.error is None


async def test_watch_that_brings_only_nonsense_comes_later_each_time() -> None:
    async with running(Scene([page("5")] * 40, [[[b"<html>"]]] * 40)) as scene:
        await asyncio.sleep(60)
        assert len([request for _, request in scene.asked if request == "watch 5"]) < 15


async def test_unexpected_exception_of_a_reflector_is_a_failure_that_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene([page("5", obj(1))] * 3)
    replacing, failures = scene.informer.replacing, iter([RuntimeError("a bug"), KeyError("b")])

    def fails() -> Any:
        for error in failures:
            raise error
        return replacing()

    monkeypatch.setattr(scene.informer, "replacing", fails)
    async with running(scene):
        await asyncio.sleep(FIRST_WAIT)
        assert "RuntimeError: a bug" in str(scene.reflector.error)
        assert scene.heard.calls == ["failed: SyncerError"]
        await asyncio.sleep(LAST_WAIT)
        assert scene.versions() == {"a": "1"}
        assert scene.reflector.error is None
