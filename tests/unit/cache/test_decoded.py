"""An object that was stored a moment ago isn't decoded once more for its first reader."""

import pytest
from informer_scene import A, B, Watched, obj

from syncer.api import Obj
from syncer.cache import decoded
from syncer.cache.decoded import DECODED, KEPT
from syncer.cache.parts import FEW_PARTS_BYTES
from syncer.clusters import codec


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that are decoded from stores from now on."""
    found: list[bytes] = []
    stored = codec.stored

    def counted(data: bytes) -> object:
        found.append(data)
        return stored(data)

    monkeypatch.setattr(codec, "stored", counted)
    return found


@pytest.mark.parametrize("how", ["event", "reply"])
def test_first_reader_of_a_change_gets_it_as_it_was_decoded(watched: Watched, decodes: list[bytes], how: str) -> None:
    if how == "event":
        watched.event("ADDED", obj(1, data={"k": "v"}))
    else:
        watched.wrote(obj(1, data={"k": "v"}))
    first = watched.informer.get(A)
    assert decodes == []
    second = watched.informer.get(A)
    assert len(decodes) == 1
    assert first == second == obj(1, data={"k": "v"})
    assert first is not second


def test_reader_never_gets_an_earlier_state(watched: Watched) -> None:
    watched.event("ADDED", obj(1, data={"k": "old"}))
    watched.event("MODIFIED", obj(2, data={"k": "new"}))
    assert watched.informer.get(A) == obj(2, data={"k": "new"})
    watched.event("DELETED", obj(3))
    watched.event("ADDED", obj(4, uid="u2"))
    assert watched.informer.get(A) == obj(4, uid="u2")


def test_reader_may_change_what_it_got(watched: Watched) -> None:
    watched.event("ADDED", obj(1, data={"k": "v"}))
    found = watched.informer.get(A)
    assert found
    found["data"]["k"] = "changed"
    assert watched.informer.get(A) == obj(1, data={"k": "v"})


def test_handlers_that_are_notified_later_get_what_the_watch_has_shown(watched: Watched) -> None:
    shown: list[Obj] = []
    watched.informer.add_handler(lambda key, last: shown.append(last), owner="others")
    watched.event("ADDED", obj(1))
    with watched.informer.writing(A):
        watched.event("MODIFIED", obj(2, data={"k": "v"}))
        found = watched.informer.get(A)
        assert found
        found["data"]["k"] = "changed"
    assert shown[-1] == obj(2, data={"k": "v"})


def test_large_objects_and_those_of_lists_are_not_kept(watched: Watched, decodes: list[bytes]) -> None:
    watched.listed(obj(1, B, uid="u2"), version=1)
    watched.event("ADDED", obj(2, data={"k": "x" * FEW_PARTS_BYTES}))
    watched.informer.get(A)
    watched.informer.get(B)
    assert len(decodes) == 2


def test_few_objects_are_kept(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoded, "KEPT", 1)
    for version in range(1, 5):
        watched.event("MODIFIED", obj(version))
    assert len(DECODED) <= KEPT
    assert watched.informer.get(A) == obj(4)
