"""A cluster that reads like another one and writes down what would be written instead of writing it."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from syncer.api.errors import Conflict, Exists, Missing
from syncer.api.objects import Key, Obj, Resource, is_deleting, key_of
from syncer.clusters import codec
from syncer.clusters.client import Cluster, Objs, PatchKind, Propagation, target_of

#: What uids, versions and tokens begin with that no API server has given.
MADE_UP = "dry-run"
#: Seconds that a token lives where a request doesn't say it.
TOKEN_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A request that was not sent: the RBAC verb, where to, and the object, patch or delete options."""

    verb: str
    resource: Resource
    key: Key
    content: Any
    subresource: str = ""
    patch_kind: PatchKind | None = None

    def __str__(self) -> str:
        what = f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)
        return f"{self.verb} {what} {self.key}"


class DryRun(Cluster):
    """Reads go through; every write lands in :attr:`writes`, in order, and nothing is sent.

    A write answers with the object as it would be then, with a made-up uid and resourceVersion, and a later ``get``
    shows it so; lists and watches show what is really there. What a write would be refused for is refused where that
    can be told without the server: an object that is there already, is not there, or is another one. What the server
    adds to an object (defaults, allocated addresses) is missing, and JSON patches change nothing.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(
            cluster.name,
            cluster.side,
            cluster.transport,
            origin=cluster.origin,
            observer=cluster.observer,
            timeout=cluster.timeout,
        )
        self.writes: list[PlannedWrite] = []
        self._would_be: dict[tuple[Resource, Key], Obj | None] = {}
        self._numbers = itertools.count(1)

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Obj:
        """Read one object as it is, or as it would be after the writes so far."""
        if (resource, key) not in self._would_be:
            return await super().get(resource, key, subresource=subresource)
        obj = self._would_be[resource, key]
        if obj is None:
            raise Missing(f"{self.side} cluster: {resource} {key} would be gone", **self._place("get", resource, key))
        return _copy(obj)

    async def create(self, resource: Resource, obj: Obj, *, subresource: str = "", key: Key | None = None) -> Obj:
        """Write down a POST."""
        target = key or target_of(obj)
        if subresource:
            self._note(PlannedWrite("create", resource, target, obj, subresource))
            return _answered(obj) if subresource == "token" else _copy(obj)
        if await self._is_there(resource, target):
            why = f"{self.side} cluster: create {resource} {target}: another object has the name"
            raise Exists(why, **self._place("create", resource, target))
        self._note(PlannedWrite("create", resource, target, obj))
        made = _copy(obj)
        made.setdefault("metadata", {})["uid"] = self._made_up()
        return self._keep(resource, target, made)

    async def replace(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        """Write down a PUT."""
        key = key_of(obj)
        live = await self.get(resource, key)
        self._check(live, obj, "update", resource)
        self._note(PlannedWrite("update", resource, key, obj, subresource))
        changed = {**live, subresource: _copy(obj).get(subresource)} if subresource else _copy(obj)
        changed["metadata"] = {**live["metadata"], **changed["metadata"]}
        return self._keep(resource, key, changed)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Obj | Objs,
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
        force: bool = False,
    ) -> Obj:
        """Write down a PATCH; one that changes nothing answers with the version that is there."""
        live = await self.get(resource, key)
        if isinstance(patch, dict):
            self._check(live, patch, "patch", resource)
        self._note(PlannedWrite("patch", resource, key, patch, subresource, kind))
        changed = _patched(live, _copy(patch), by_type=kind == "strategic") if isinstance(patch, dict) else live
        if changed == live:
            return live
        return self._keep(resource, key, changed)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace: int | None = None,
        propagation: Propagation | None = None,
    ) -> Obj | None:
        """Write down a DELETE; what has finalizers is only marked, all else is gone."""
        live = await self.get(resource, key)
        wanted = {"uid": uid, "resourceVersion": resource_version}
        self._check(live, {"metadata": {name: value for name, value in wanted.items() if value}}, "delete", resource)
        options = {**wanted, "grace": grace, "propagation": propagation}
        given = {name: value for name, value in options.items() if value is not None}
        self._note(PlannedWrite("delete", resource, key, given))
        if not live["metadata"].get("finalizers"):
            self._would_be[resource, key] = None
            return None
        if not is_deleting(live):
            live["metadata"] |= {"deletionTimestamp": _written(datetime.now(UTC)), "deletionGracePeriodSeconds": 0}
        return self._keep(resource, key, live)

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _is_there(self, resource: Resource, key: Key) -> bool:
        try:
            await self.get(resource, key)
        except Missing:
            return False
        return True

    def _check(self, live: Obj, said: Obj, verb: str, resource: Resource) -> None:
        """Refuse what names another uid or version than that of the object that is there."""
        for name in ("uid", "resourceVersion"):
            expected = (said.get("metadata") or {}).get(name)
            if expected and expected != live["metadata"].get(name):
                why = f"{self.side} cluster: {verb} {resource} {key_of(live)}: the object is not the one that was meant"
                raise Conflict(why, **self._place(verb, resource, key_of(live)))

    def _keep(self, resource: Resource, key: Key, obj: Obj) -> Obj:
        obj["metadata"] = {**obj["metadata"], "resourceVersion": self._made_up()}
        self._would_be[resource, key] = obj
        return _copy(obj)

    def _made_up(self) -> str:
        return f"{MADE_UP}-{next(self._numbers)}"

    def _place(self, verb: str, resource: Resource, key: Key) -> dict[str, Any]:
        return {"cluster": self.name, "side": self.side, "verb": verb, "resource": resource, "key": key}

    def _note(self, write: PlannedWrite) -> None:
        self.writes.append(write)


def _answered(request: Obj) -> Obj:
    """A TokenRequest with a token that nobody will accept."""
    seconds = (request.get("spec") or {}).get("expirationSeconds") or TOKEN_SECONDS
    ends = _written(datetime.now(UTC) + timedelta(seconds=seconds))
    return {**_copy(request), "status": {"token": MADE_UP, "expirationTimestamp": ends}}


def _written(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _patched(live: Any, patch: Any, *, by_type: bool) -> Any:
    """A merge patch (RFC 7386) over a value; ``by_type`` merges lists of conditions as a strategic one does."""
    if by_type and isinstance(patch, list) and isinstance(live, list) and all("type" in one for one in [*live, *patch]):
        return _by_type(live, patch)
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _patched(result.get(name), value, by_type=by_type)
    return result


def _by_type(live: Iterable[Obj], patch: Iterable[Obj]) -> list[Obj]:
    found = {one["type"]: one for one in live}
    for one in patch:
        found[one["type"]] = {**found.get(one["type"], {}), **one}
    return list(found.values())


def _copy(obj: Obj) -> Obj:
    return codec.decode(codec.encode(obj))
