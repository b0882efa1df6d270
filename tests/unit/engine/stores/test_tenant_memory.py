"""Caches with keys or values chosen by a tenant stay small, however many it creates and deletes."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from cachetools import LRUCache
from engine_fakes import MARKS

from syncer.api import Key, Marks, Obj, ObjectRef, Resource, Side, Verb, Write
from syncer.clusters.discovery import GONE_BYTES, OVERHEAD, Discovery
from syncer.engine.reconcile.calls import Call, Operation, _metadata_names, _read, fields_before, needed
from syncer.engine.reconcile.plan import PlannedWrite, ServerAnswer
from syncer.engine.reconcile.policies.futile import FutilePatches
from syncer.engine.stores.selections import SELECTOR_BYTES, _selector
from syncer.names import PerNamespace, SingleNamespace, Unchanged, VclusterCompat

MAPS = Resource("v1", "ConfigMap", "configmaps")
MB = 1 << 20
MANY = 20


def long(number: int) -> str:
    return f"{number}-".ljust(MB, "x")


def size(value: Any) -> int:
    """Return the bytes of a value with all that it holds."""
    if isinstance(value, Mapping):
        return sys.getsizeof(value) + sum(size(key) + size(each) for key, each in value.items())
    return sys.getsizeof(value) + (sum(map(size, value)) if isinstance(value, tuple) else 0)


@pytest.mark.parametrize("kind", [SingleNamespace, PerNamespace, Unchanged, VclusterCompat])
def test_translator_remembers_no_name_that_no_object_can_have(kind: type[Any]) -> None:
    translator = kind(cluster="vc", namespace="vc-ns")
    for number in range(MANY):
        translator.to_host(MAPS, Key("shop", long(number)))
        translator.to_host(MAPS, Key(long(number), "x"))
    translator.to_host(MAPS, Key("s" * 63, "x" * 254))
    assert translator._remembered.cache_info().currsize == 0
    usual = Key("shop", "db")
    assert translator.to_host(MAPS, usual) is translator.to_host(MAPS, usual)


@pytest.mark.parametrize("kind", [SingleNamespace, PerNamespace, Unchanged, VclusterCompat])
def test_translator_remembers_the_longest_names_up_to_a_number_of_bytes(kind: type[Any]) -> None:
    translator = kind(cluster="vc", namespace="vc-ns")
    entries = []
    for number in range(5000):
        key = Key("s" * 63, f"{number}-".ljust(253, "x"))
        entries.append(size(key) + size(translator.to_host(MAPS, key)))
    info = translator._remembered.cache_info()
    assert info.currsize == info.maxsize
    assert info.currsize * max(entries) < 6 * MB


def test_notes_and_names_of_fields_are_remembered_up_to_a_number_of_bytes() -> None:
    notes, names = [], []
    for number in range(1000):
        note = ",".join(f'"{number}-{name}":1' for name in range(120))
        text = f'{{"data":{{{note}}}}}'
        output = fields_before({"metadata": {"annotations": {MARKS.fields: text}}}, MARKS)
        assert output
        notes.append(size(text) + size(output))
        annotations = {f"{number}-{name}".ljust(317, "x"): "" for name in range(31)}
        made = {"metadata": {"name": "a", "labels": {MARKS.cluster: "vc"}, "annotations": annotations}}
        needed(Write(Side.HOST, Verb.APPLY, made), None, exact=(), marks=MARKS)
        names.append(size(tuple(annotations)) + size(dict.fromkeys(annotations, 1)) - sum(map(size, annotations)))
    remembered = 0
    for cache, entries in ((_read, notes), (_metadata_names, names)):
        info = cache.cache_info()
        assert info.currsize == info.maxsize, "each of them was remembered"
        remembered += info.currsize * max(entries)
    assert remembered < 10 * MB


def test_long_note_of_fields_is_not_remembered() -> None:
    before = _read.cache_info()
    for number in range(MANY):
        note = f'{{"data":{{"{long(number)}":1}}}}'
        assert fields_before({"metadata": {"annotations": {MARKS.fields: note}}}, MARKS)["data"]
    assert _read.cache_info() == before
    usual: Obj = {"metadata": {"annotations": {MARKS.fields: '{"data":{"a":1}}'}}}
    assert fields_before(usual, MARKS) is fields_before(usual, MARKS)


def test_names_of_many_annotations_are_not_remembered() -> None:
    before = _metadata_names.cache_info()
    for number in range(MANY):
        annotations = {f"{number}-{index}-{'x' * 200}": "" for index in range(5000)}
        labels = {MARKS.cluster: "vc"}
        made = {"metadata": {"name": "a", "namespace": "b", "labels": labels, "annotations": annotations}}
        [call] = needed(Write(Side.HOST, Verb.APPLY, made), None, exact=(), marks=MARKS)
        assert len(call.body["metadata"]["annotations"]) == 5001
    assert _metadata_names.cache_info() == before


def test_selectors_are_remembered_up_to_a_number_of_bytes() -> None:
    for number in range(MANY):
        for text in (long(number), long(number)[: MB // 10]):
            _selector(f'{{"matchLabels":{{"a":"{text}"}}}}')
    known = _selector.cache
    assert isinstance(known, LRUCache)
    assert 0 < known.currsize <= SELECTOR_BYTES < 5 * MB
    assert 4 * sum(len(text) for key in known for text in key) <= known.currsize
    assert _selector('{"a":1}') is _selector('{"a":1}')


def test_value_that_is_rewritten_is_remembered_by_its_hash() -> None:
    known = FutilePatches(Marks(), clock=lambda: 0.0)
    for number in range(MANY):
        call = Call(Operation.PATCH, {"data": {"a": long(number)}})
        ref = ObjectRef(Side.HOST, MAPS, Key("shop", str(number)))
        planned = PlannedWrite(Write(Side.HOST, Verb.APPLY, {}), ref, None, [call])
        known.answered(planned, call, ServerAnswer(call, {"data": {}}, changed=number % 2 == 0))
    assert len(known._known) == MANY
    assert max(size(value) for value in known._known.values()) < 1000


class Definitions:
    """An API server that serves other custom resources each time."""

    name, side = "", Side.VIRTUAL

    def __init__(self) -> None:
        self.looks = 0

    async def fetch(self, path: str, *, accept: str = "") -> Obj:
        kind = {"kind": "APIGroupDiscoveryList"}
        if path != "/apis":
            return {**kind, "items": []}
        self.looks += 1
        served = [
            {"resource": f"r{number}", "responseKind": {"kind": "R"}, "subresources": [{"subresource": "status"}]}
            for number in range(60)
        ]
        group = f"{self.looks}-{'x' * 200}.example.org"
        return {**kind, "items": [{"metadata": {"name": group}, "versions": [{"version": "v1", "resources": served}]}]}


def test_resources_that_are_gone_are_remembered_up_to_a_number_of_bytes() -> None:
    definitions = Definitions()
    discovery = Discovery(definitions)  # type: ignore[arg-type]

    with asyncio.Runner() as runner:
        for _ in range(4 * MANY):
            runner.run(discovery.refresh())
    gone = discovery._gone
    assert 0 < gone.currsize <= GONE_BYTES < 2 * MB
    assert sum(OVERHEAD + len("".join(key)) for key in gone) <= gone.currsize
    latest = Resource(f"{definitions.looks - 1}-{'x' * 200}.example.org/v1", "R", "r1")
    assert discovery.served(latest) is None
    assert discovery.has_status(latest)
