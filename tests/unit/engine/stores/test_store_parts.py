"""Parts of a host's collection with stores of their own."""

import pytest

from syncer.api import Key, Side, Source
from syncer.api.sources import SourcePart
from syncer.clusters import codec
from syncer.engine.stores.informers import Informers, SideInformer
from syncer.resources.kinds import SECRETS

NAMES = (Key("infra", "db"), Key("shared", "db"))
SOURCE = Source(Side.HOST, SECRETS, namespaces=("shared",), names=NAMES)


def seen(store: SideInformer, key: Key) -> None:
    """A watch shows an object."""
    metadata = {"namespace": key.namespace, "name": key.name, "uid": str(key), "resourceVersion": "1"}
    store.event("ADDED", codec.Raw(codec.encode({"kind": "Secret", "metadata": metadata})))


@pytest.fixture
def informers() -> Informers:
    found = Informers(clock=lambda: 0.0)
    found.want(Source(Side.HOST, SECRETS, marked=True), owner="copies")
    for part in SOURCE.parts:
        found.want(SOURCE, owner="listed", part=part)
    return found


def test_name_in_a_namespace_that_is_a_part_has_no_part_of_its_own() -> None:
    assert SOURCE.parts == (SourcePart("shared"), SourcePart("infra", "db"))
    assert [part.fields for part in SOURCE.parts] == ["", "metadata.name=db"]


def test_object_of_a_part_is_read_from_its_store(informers: Informers) -> None:
    of_infra = informers.at(Side.HOST, SECRETS, Key("infra", "db"))
    assert of_infra.part == SourcePart("infra", "db")
    assert informers.at(Side.HOST, SECRETS, Key("shared", "any")).part == SourcePart("shared")
    for key in (Key("infra", "other"), Key("vc-ns", "db")):
        assert informers.at(Side.HOST, SECRETS, key) is informers.store(Side.HOST, SECRETS)
    seen(of_infra, Key("infra", "db"))
    assert informers.get(Side.HOST, SECRETS, Key("infra", "db"))
    assert set(informers.keys(Side.HOST, SECRETS)) == {Key("infra", "db")}


def test_copy_in_a_listed_namespace_is_read_from_the_store_of_copies(informers: Informers) -> None:
    copies = informers.store(Side.HOST, SECRETS)
    seen(copies, Key("shared", "copy"))
    assert informers.at(Side.HOST, SECRETS, Key("shared", "copy")) is copies


def test_parts_go_with_their_last_owner(informers: Informers) -> None:
    informers.want(SOURCE, owner="another", part=SourcePart("infra", "db"))
    assert len(informers.parts(Side.HOST, SECRETS, "listed")) == 2
    assert informers.leave("listed") == [(Side.HOST, SECRETS, SourcePart("shared"))]
    assert informers.leave("another") == [(Side.HOST, SECRETS, SourcePart("infra", "db"))]
    assert informers.at(Side.HOST, SECRETS, Key("infra", "db")) is informers.store(Side.HOST, SECRETS)


def test_store_of_a_part_is_not_marked_where_that_of_copies_is(informers: Informers) -> None:
    assert informers.is_marked(informers.store(Side.HOST, SECRETS))
    assert not any(informers.is_marked(store) for store in informers.parts(Side.HOST, SECRETS, "listed"))
