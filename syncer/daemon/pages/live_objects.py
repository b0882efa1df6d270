"""What only the live objects of both sides show: their writers, their end, and the host's Events.

The caches don't keep it.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from syncer.api.errors import ClusterError
from syncer.api.objects import Json, Key, Obj, ObjectRef, Resource, Side, SyncRequest, uid_of
from syncer.api.paths import dig
from syncer.api.texts import shortened
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.clusters.client import SideClient
from syncer.clusters.codec import DecodeError, decode
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.managed_fields import writers
from syncer.resources.kinds import EVENTS, NAMESPACES

#: Events of the host about a copy that are shown.
MOST_EVENTS = 5
#: Events of the host about a copy that the latest are taken from.
MOST_LISTED = 500
#: Finalizers and conditions of an object that are shown.
MOST_SHOWN = 20


class LiveObject(NamedTuple):
    """An object as its API server has it now."""

    ref: ObjectRef
    obj: Obj


async def live_objects(
    pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> list[LiveObject]:
    """Return the two objects of a request; one that isn't there or can't be read is left out."""
    syncer = controller.syncer
    reads = []
    if controller.has(Side.VIRTUAL, request.key):
        reads.append(_read(pair.virtual, syncer.resource, request.key))
    host_key = controller.host_key_of(request)
    if controller.has(Side.HOST, host_key):
        reads.append(_read(pair.host, syncer.host_resource, host_key))
    return [each for each in await asyncio.gather(*reads) if each is not None]


async def missed_home(
    pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> list[LiveObject]:
    """Return the host's Namespace if a virtual object has no copy in it, and it can be read."""
    host_key = controller.host_key_of(request)
    if not (controller.direction.makes_copies and host_key.namespace):
        return []
    if controller.has(Side.HOST, host_key) or not controller.has(Side.VIRTUAL, request.key):
        return []
    found = await _read(pair.host, NAMESPACES, Key("", host_key.namespace))
    return [] if found is None else [found]


async def _read(client: SideClient, resource: Resource, key: Key) -> LiveObject | None:
    try:
        obj = await client.get(resource, key)
    except (ClusterError, DecodeError):
        return None
    return LiveObject(ObjectRef(client.side, resource, key), obj)


def managers_of(found: Iterable[LiveObject]) -> list[dict[str, Any]]:
    """Return who wrote each object and when, the latest first, ours among them."""
    rows: list[dict[str, Any]] = []
    for ref, obj in found:
        for manager in writers(obj):
            row = {
                "side": ref.side.value,
                "manager": manager.name,
                "time": manager.time,
                "subresource": manager.subresource,
                "ours": manager.name == FIELD_MANAGER,
            }
            rows.append(row)
    return rows


def last_write(managers: Iterable[Mapping[str, Any]]) -> dict[str, str] | None:
    """Return the side and the time of our latest write, which may be an earlier daemon's."""
    latest: dict[str, str] | None = None
    for each in managers:
        if each["ours"] and (latest is None or each["time"] > latest["time"]):
            latest = {"side": each["side"], "time": each["time"]}
    return latest


def endings(found: Iterable[LiveObject]) -> list[dict[str, Any]]:
    """Return those of the objects that are being deleted, with their finalizers and conditions.

    A virtual cluster's API server may answer anything.
    """
    rows: list[dict[str, Any]] = []
    for ref, obj in found:
        time = dig(obj, "metadata.deletionTimestamp")
        if not time:
            continue
        conditions: list[str] = []
        if ref.resource == NAMESPACES:
            conditions = _conditions(obj)
        row = {
            "object": str(ref),
            "time": shortened(str(time)),
            "finalizers": _texts(dig(obj, "metadata.finalizers")),
            "conditions": conditions,
        }
        rows.append(row)
    return rows


def _conditions(namespace: Obj) -> list[str]:
    """Return the API server's reasons why a deleted Namespace is still there."""
    found = dig(namespace, "status.conditions")
    if not isinstance(found, list):
        return []
    held = [each for each in found if isinstance(each, dict) and each.get("status") == "True"]
    return _texts([each.get("message") for each in held])


def _texts(given: Json) -> list[str]:
    """Return the texts in a list, without further ones."""
    if not isinstance(given, list):
        return []
    return [shortened(each) for each in given[:MOST_SHOWN] if isinstance(each, str)]


async def host_events(pair: ClusterPair, found: Iterable[LiveObject]) -> list[dict[str, Any]]:
    """Return the latest Events of the host about a namespaced copy, the latest first.

    None are read unless Events are synced, as the right to list them comes with that.
    """
    if not any(each.syncer.host_resource == EVENTS for each in pair.controllers.values()):
        return []
    rows: list[dict[str, Any]] = []
    for ref, obj in found:
        namespace = ref.key.namespace
        if ref.side is Side.HOST and namespace:
            listed = await _events_about(pair.host, namespace, uid_of(obj))
            rows += [_event_row(each) for each in listed]
    rows.sort(key=itemgetter("time"), reverse=True)
    return rows[:MOST_EVENTS]


async def _events_about(host: SideClient, namespace: str, uid: str) -> Sequence[Obj]:
    fields = f"involvedObject.uid={uid}"
    pages = host.list_pages(EVENTS, namespace=namespace, fields=fields, limit=MOST_LISTED)
    try:
        async for page in pages:
            return [decode(raw) for raw in page.items]
    except (ClusterError, DecodeError):
        pass
    return ()


def _event_row(event: Obj) -> dict[str, Any]:
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return {
        "type": event.get("type") or "",
        "reason": event.get("reason") or "",
        "message": shortened(event.get("message") or ""),
        "count": series.get("count") or event.get("count") or 1,
        "time": last or event["metadata"]["creationTimestamp"],
    }
