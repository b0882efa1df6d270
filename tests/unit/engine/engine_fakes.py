"""Small syncers and objects for the unit tests of the engine."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from syncer.api import (
    Config,
    Context,
    Decision,
    FakeSyncUp,
    Key,
    Mirror,
    Obj,
    Pair,
    Resource,
    Settings,
    Side,
    Sync,
    SyncDown,
    Syncer,
    SyncFromHost,
    SyncRequest,
    SyncUp,
    apply,
    delete,
    skip,
)
from syncer.api.context import CopiedKind
from syncer.directions import direction_of
from syncer.engine.reconcile.controller import BoundSyncer, View
from syncer.engine.reconcile.plan import Observed
from syncer.engine.stores.fan_out import FanOut
from syncer.engine.stores.informers import Informers
from syncer.engine.stores.references import References
from syncer.names import SingleNamespace
from syncer.testing.merge import merged

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
MARKS = SETTINGS.marks
KEY = Key("shop", "web")
HOST_KEY = SETTINGS.names.to_host(WIDGETS, KEY)


class Widgets(Mirror[Config]):
    """Down and up."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up = ("status",)


class DownOnly(Syncer[Config], SyncDown):
    """Never looks at the copy."""

    name = "down"
    resource = WIDGETS

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        return apply(host=ctx.host_copy(virtual), reason="sync_down")


class UpToo(Widgets, SyncUp):
    """Wants to say itself what becomes of an orphan."""

    name = "uptoo"

    def sync_up(self, ctx: Context, host: Obj) -> Decision:
        return delete(host=host, reason="sync_up")


class Reports(Syncer[Config], SyncFromHost):
    """Begins on the host."""

    name = "reports"
    resource = WIDGETS

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        return Key("shop", host["metadata"]["name"])

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        return apply(virtual=ctx.virtual_copy(host, Key("shop", host["metadata"]["name"])), reason="sync_from_host")


class KeptReports(Reports, Sync):
    """Begins on the host and is kept equal."""

    name = "keptreports"

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        return skip("sync")


class Stands(Syncer[Config], FakeSyncUp):
    """Stands for what exists nowhere."""

    name = "stands"
    resource = WIDGETS

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        return skip(f"fake_sync_up {key}")

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return skip("fake_sync")


class Reader:
    """Reads nothing."""

    def resolve(self, *key: Any, **how: Any) -> None:
        pass

    def get(self, *key: Any) -> Obj | None:
        return None

    def keys(self, *key: Any) -> list[Key]:
        return []

    def indexed(self, *key: Any) -> list[Key]:
        return []

    def values(self, *key: Any) -> list[str]:
        return []

    def used(self, *key: Any) -> bool | None:
        return None

    def synced(self, resource: Resource) -> bool:
        return False

    def copied_by(self, *kind: str) -> list[CopiedKind]:
        return []

    def is_complete(self, side: Side, resource: Resource) -> bool:
        return True

    def minor_version(self, side: Side) -> int:
        return 0

    def original(self, key: Key) -> Key | None:
        return None

    def leave_out(self, fields: Iterable[str]) -> None:
        pass


def context(syncer: Syncer) -> Context:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Context(SETTINGS, Config(), syncer.resource, syncer.host_resource, Reader(), now, syncer.host_key)


def observed(
    request: SyncRequest, *, virtual: Obj | None = None, host: Obj | None = None, syncer: Syncer | None = None
) -> Observed:
    """Return a request with its two objects, in a pair whose stores are empty."""
    made = syncer or Widgets()
    informers = Informers(clock=lambda: 0.0)
    view = View(SETTINGS, informers, References(informers, FanOut()), lambda: datetime(2026, 1, 1, tzinfo=UTC), {})
    controller = BoundSyncer(made, Config(), view, None, False, direction_of(made), ())
    host_key = request.host_key or made.host_key(SETTINGS, request.key)
    return Observed(controller, request, context(made), virtual, host, host_key)


def virtual(name: str = "web", uid: str = "v1", **parts: Any) -> Obj:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": "3"}
    return merged({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata}, parts)


def copy_of(original: Obj, uid: str = "h1", **parts: Any) -> Obj:
    """Return the host copy as it stands there."""
    copy = context(Widgets()).host_copy(original)
    return merged(copy, {"metadata": {"uid": uid, "resourceVersion": "4"}, **parts})


def deleting(obj: Obj) -> Obj:
    return merged(obj, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
