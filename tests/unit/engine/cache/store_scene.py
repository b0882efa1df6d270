"""A store of ConfigMaps with a clock to turn and somebody who listens."""

import json
from typing import Any

from syncer.api import Key, Obj, Resource, Side
from syncer.clusters import codec
from syncer.engine.cache.store import Store

MAPS = Resource("v1", "ConfigMap", "configmaps")
A, B = Key("shop", "a"), Key("shop", "b")


def obj(version: int | str, key: Key = A, *, uid: str = "u1", **parts: Any) -> Obj:
    metadata = {"name": key.name, "namespace": key.namespace, "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **parts}


def raw(value: Obj) -> codec.Raw:
    return codec.Raw(json.dumps(value).encode())


class Watched:
    """A store with a clock to turn and somebody who listens."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[tuple[Key, str]] = []
        self.store = Store(Side.HOST, MAPS, clock=lambda: self.now)
        self.store.add_listener(lambda key, last: self.told.append((key, last["metadata"]["resourceVersion"])))

    def event(self, kind: str, value: Obj) -> None:
        self.store.event(kind, raw(value))

    def listed(self, *values: Obj, version: int) -> None:
        with self.store.replacing() as page:
            page([raw(value) for value in values], str(version))

    def version(self, key: Key = A) -> str | None:
        entry = self.store.entry(key)
        return entry.version if entry else None

    def heard(self) -> list[tuple[Key, str]]:
        heard, self.told[:] = list(self.told), []
        return heard


def write(watched: Watched, reply: Obj, *events: tuple[str, Obj]) -> bool:
    """A write of ours whose reply comes after the events."""
    key = Key(reply["metadata"]["namespace"], reply["metadata"]["name"])
    with watched.store.writing(key) as writing:
        for kind, value in events:
            watched.event(kind, value)
        return watched.store.wrote(key, writing, reply)


def remove(watched: Watched, uid: str = "u1", *events: tuple[str, Obj]) -> None:
    """A delete of ours whose reply comes after the events."""
    with watched.store.writing(A) as writing:
        for kind, value in events:
            watched.event(kind, value)
        watched.store.deleted(A, writing, uid)
