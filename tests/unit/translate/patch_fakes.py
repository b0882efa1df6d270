"""A syncer's context, two objects of a key, and patches of their writes."""

import copy
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from syncer.api import Config, Context, CopiedKind, Decision, Key, Obj, Patches, Resource, Settings, Side, apply
from syncer.names import SingleNamespace
from syncer.translate.named import named
from syncer.translate.patches import Patcher

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
SECRETS = Resource("v1", "Secret", "secrets")
CLASSES = Resource("example.org/v1", "WidgetClass", "widgetclasses", namespaced=False)
SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
MARKS = {"vsyncer.dev/cluster": "vc.vc-ns", "vsyncer.dev/namespace": "shop"}
HERE = "sync.toHost.widgets.patches"


class Copies:
    """A reader of nothing but the given host copies of Secrets."""

    def __init__(self, *copies: Obj) -> None:
        self._copies = {Key("vc-ns", one["metadata"]["name"]): one for one in copies}

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        if (side, resource) != (Side.HOST, SECRETS):
            raise KeyError(resource)
        return self._copies.get(key)

    def keys(self, side: Side, resource: Resource) -> list[Key]:
        return list(self._copies)

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> list[Key]:
        return []

    def values(self, side: Side, resource: Resource, index: str, key: Key) -> list[str]:
        return []

    def resolve(self, resource: Resource, key: Key, host_key: Key, *, comes_later: bool = False) -> None:
        pass

    def used(self, resource: Resource, virtual: Obj) -> bool | None:
        return None

    def synced(self, resource: Resource) -> bool:
        return False

    def copied_by(self, group: str, kind: str) -> list[CopiedKind]:
        return []

    def is_complete(self, side: Side, resource: Resource) -> bool:
        return True

    def minor_version(self, side: Side) -> int:
        return 0

    def original(self, host_key: Key) -> Key | None:
        return None

    def leave_out(self, fields: Iterable[str]) -> None:
        pass


def context(*copies: Obj, resource: Resource = WIDGETS) -> Context:
    return Context(SETTINGS, Config(), resource, resource, Copies(*copies), datetime(2026, 1, 1, tzinfo=UTC))


def widget(spec: Obj | None = None, **parts: Any) -> Obj:
    metadata = {"name": "w", "namespace": "shop", "uid": "1", "labels": {"app": "web"}}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, "spec": spec or {}, **parts}


def host_copy(virtual: Obj) -> Obj:
    """Return the host object that a syncer writes for it."""
    return {**context().host_copy(virtual), "spec": virtual["spec"]}


def report(status: Obj) -> Obj:
    """Return the virtual object that a syncer writes for it: the status alone."""
    metadata = {"name": "w", "namespace": "shop", "uid": "1"}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, "status": status}


def patcher(*, down: Sequence[Obj] = (), up: Sequence[Obj] = ()) -> Patcher:
    patches = Patches.model_validate({"down": list(down), "up": list(up)})
    return Patcher(patches, section="toHost.widgets", find=lambda name: named(name, (WIDGETS, SECRETS, CLASSES)))


def made(
    patches: Patcher, decision: Decision, *, virtual: Obj | None = None, host: Obj | None = None, ctx: Any = None
) -> Decision:
    """Return the patched decision.

    What was given must be as it was, and the same must come of it again.
    """
    before = copy.deepcopy((decision, virtual, host))
    ctx = ctx or context()
    result = patches.apply(decision, ctx=ctx, virtual=virtual, host=host)
    assert (decision, virtual, host) == before
    assert patches.apply(decision, ctx=ctx, virtual=virtual, host=host) == result
    return result


def down(*patches: Obj, spec: Obj | None = None) -> Obj:
    """Return the host copy of a widget with this spec, after the patches."""
    virtual = widget(spec)
    [write] = made(patcher(down=patches), apply(host=host_copy(virtual)), virtual=virtual).writes
    return write.obj


def up(*patches: Obj, status: Obj, host: Obj | None = None, virtual: Obj | None = None, ctx: Any = None) -> Obj:
    """Return the report of this status, after the patches."""
    virtual = virtual or widget()
    host = host or {**host_copy(virtual), "status": status}
    [write] = made(patcher(up=patches), apply(virtual=report(status)), virtual=virtual, host=host, ctx=ctx).writes
    return write.obj
