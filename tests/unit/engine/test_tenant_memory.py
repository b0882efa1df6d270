"""Caches with keys or values chosen by a tenant stay small, however many it creates and deletes."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from engine_fakes import MARKS

from syncer.api import Key, Obj, Resource, Side, Verb, Write
from syncer.clusters.discovery import Discovery
from syncer.engine.cache.references import _selector
from syncer.engine.reconcile.calls import Call, Operation, needed, said_before
from syncer.engine.reconcile.plan import Place
from syncer.engine.reconcile.policies.futile import FutilePatches
from syncer.names import PerNamespace, SingleNamespace, Unchanged, VclusterCompat

pytestmark = pytest.mark.slow

MAPS = Resource("v1", "ConfigMap", "configmaps")
MB = 1 << 20
MANY = 20


def growth(act: Callable[[int], object]) -> int:
    """Return the bytes that are left after ``act`` was called many times."""
    act(-1)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(MANY):
            act(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def long(number: int) -> str:
    return f"{number}-".ljust(MB, "x")


@pytest.mark.parametrize("kind", [SingleNamespace, PerNamespace, Unchanged, VclusterCompat])
def test_translator_remembers_no_name_that_no_object_can_have(kind: type[Any]) -> None:
    translator = kind(cluster="vc", namespace="vc-ns")
    assert growth(lambda number: translator.to_host(MAPS, Key("shop", long(number)))) < MB
    assert growth(lambda number: translator.to_host(MAPS, Key(long(number), "x"))) < MB
    usual = Key("shop", "db")
    assert translator.to_host(MAPS, usual) is translator.to_host(MAPS, usual)


@pytest.mark.parametrize("kind", [SingleNamespace, PerNamespace, Unchanged, VclusterCompat])
def test_translator_remembers_the_longest_names_up_to_a_number_of_bytes(kind: type[Any]) -> None:
    translator = kind(cluster="vc", namespace="vc-ns")

    def act(number: int) -> None:
        for each in range(1000):
            translator.to_host(MAPS, Key("s" * 63, f"{number}-{each}-".ljust(253, "x")))

    assert growth(act) < 6 * MB


def test_notes_and_names_of_fields_are_remembered_up_to_a_number_of_bytes() -> None:
    def act(number: int) -> None:
        for each in range(100):
            note = ",".join(f'"{number}-{each}-{name}":1' for name in range(120))
            assert said_before({"metadata": {"annotations": {MARKS.fields: f'{{"data":{{{note}}}}}'}}}, MARKS)
            annotations = {f"{number}-{each}-{name}".ljust(317, "x"): "" for name in range(31)}
            made = {"metadata": {"name": "a", "labels": {MARKS.cluster: "vc"}, "annotations": annotations}}
            needed(Write(Side.HOST, Verb.APPLY, made), None, exact=(), marks=MARKS)

    assert growth(act) < 10 * MB


def test_long_note_of_fields_is_not_remembered() -> None:
    def act(number: int) -> None:
        note = f'{{"data":{{"{long(number)}":1}}}}'
        assert said_before({"metadata": {"annotations": {MARKS.fields: note}}}, MARKS)["data"]

    assert growth(act) < MB
    usual: Obj = {"metadata": {"annotations": {MARKS.fields: '{"data":{"a":1}}'}}}
    assert said_before(usual, MARKS) is said_before(usual, MARKS)


def test_names_of_many_annotations_are_not_remembered() -> None:
    def act(number: int) -> None:
        annotations = {f"{number}-{place}-{'x' * 200}": "" for place in range(5000)}
        labels = {MARKS.cluster: "vc"}
        made = {"metadata": {"name": "a", "namespace": "b", "labels": labels, "annotations": annotations}}
        [call] = needed(Write(Side.HOST, Verb.APPLY, made), None, exact=(), marks=MARKS)
        assert len(call.body["metadata"]["annotations"]) == 5001

    assert growth(act) < MB


def test_selectors_are_remembered_up_to_a_number_of_bytes() -> None:
    assert growth(lambda number: _selector(f'{{"matchLabels":{{"a":"{long(number)}"}}}}')) < 5 * MB
    assert _selector('{"a":1}') is _selector('{"a":1}')


def test_patch_that_changed_nothing_is_remembered_by_its_hash() -> None:
    known = FutilePatches()

    def act(number: int) -> None:
        call = Call(Operation.PATCH, {"data": {"a": long(number)}})
        known.note(Place(Side.HOST, MAPS, Key("shop", str(number))), call, "1")

    assert growth(act) < MB


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

        def act(_: int) -> None:
            for _ in range(4):
                runner.run(discovery.refresh())

        assert growth(act) < 2 * MB
    latest = Resource(f"{definitions.looks - 1}-{'x' * 200}.example.org/v1", "R", "r1")
    assert discovery.served(latest) is None
    assert discovery.has_status(latest)
