"""An informer of ConfigMaps with a clock to turn and a handler that records its notifications."""

import json
from typing import Any

from syncer.api import Key, Obj, Resource
from syncer.byte_budget import ByteBudget
from syncer.cache.informer import Informer
from syncer.clusters import codec

MAPS = Resource("v1", "ConfigMap", "configmaps")
A, B = Key("shop", "a"), Key("shop", "b")


def obj(version: int | str, key: Key = A, *, uid: str = "u1", **parts: Any) -> Obj:
    metadata = {"name": key.name, "namespace": key.namespace, "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **parts}


def raw(value: Obj) -> codec.Raw:
    return codec.Raw(json.dumps(value).encode())


def of_namespaces(most: int = 0) -> ByteBudget:
    """Return the half for virtual objects of a budget, divided between namespaces."""
    return ByteBudget(most // 2, parent=ByteBudget(most), divided=True)


class Watched:
    """An informer, and what its handlers hear: one of a syncer, and one of the engine."""

    def __init__(self, *, ordered: bool = True, trusted: bool = True, budget: ByteBudget | None = None) -> None:
        self.now = 0.0
        self.notified: list[tuple[Key, str]] = []
        self.engine_notified: list[Key] = []
        self.wrong: list[Key] = []
        self.informer = Informer(MAPS, trusted=trusted, clock=lambda: self.now, ordered=lambda: ordered, budget=budget)
        self.informer.add_handler(
            lambda key, last: self.notified.append((key, last["metadata"]["resourceVersion"])), owner="maps"
        )
        self.informer.add_handler(lambda key, last: self.engine_notified.append(key))

    def event(self, kind: str, value: Obj) -> None:
        self.informer.event(kind, raw(value))

    def listed(self, *values: Obj, version: int | str) -> None:
        """Have a whole list read with no watch beside it."""
        with self.informer.replacing() as page:
            page([raw(value) for value in values], str(version))

    def compared(self, version: int, *values: Obj, meanwhile: tuple[tuple[str, Obj], ...] = ()) -> None:
        """Have a whole list read beside the watch, which shows these events before its page comes."""
        with self.informer.comparing(self.wrong.append) as page:
            for kind, value in meanwhile:
                self.event(kind, value)
            page([raw(value) for value in values], str(version))

    def wrote(self, reply: Obj, *events: tuple[str, Obj]) -> bool:
        """Make a write whose reply comes after the events; gives whether it changed anything."""
        key = Key(reply["metadata"]["namespace"], reply["metadata"]["name"])
        with self.informer.writing(key) as writing:
            for kind, value in events:
                self.event(kind, value)
            return self.informer.wrote(key, writing, reply)

    def deleted(self, uid: str, *events: tuple[str, Obj]) -> None:
        """Make a deletion of A whose reply comes after the events."""
        with self.informer.writing(A) as writing:
            for kind, value in events:
                self.event(kind, value)
            self.informer.deleted(A, writing, uid)

    def version(self, key: Key = A) -> str | None:
        entry = self.informer.entry(key)
        return entry.version if entry else None

    def versions(self) -> dict[str, str]:
        """Return all versions by name."""
        return {key.name: str(self.version(key)) for key in list(self.informer.keys())}

    def heard(self) -> list[tuple[Key, str]]:
        """Return the notifications of the syncer's handler since the last call."""
        heard, self.notified[:] = list(self.notified), []
        return heard
