"""Two API servers reduced to the effects of a decision: objects in memory, without sockets, event
loop or time.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from syncer.api import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Invalid,
    Key,
    NotFound,
    Obj,
    Resource,
    Side,
    key_of,
    uid_of,
)
from syncer.clusters import codec
from syncer.clusters.api_requests import PatchKind, Propagation
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, Transport
from syncer.testing.objects import uid_for
from syncer.translate.alike import same
from syncer.translate.merge_patch import merged
from syncer.translate.pointers import patched
from syncer.translate.times import written

#: Kinds without a status subresource: they are written as a whole.
WITHOUT_STATUS = frozenset(
    {"configmaps", "secrets", "serviceaccounts", "events", "endpoints", "endpointslices"},
)
#: Kinds whose status an API server keeps on creation.
_BORN_WITH_STATUS = WITHOUT_STATUS | {"nodes"}
_DEFAULT_GRACE = 30


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that was made: its verb as in RBAC, and its object."""

    side: Side
    verb: str
    resource: Resource
    key: Key
    subresource: str
    body: Obj

    def __str__(self) -> str:
        kind = f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)
        return f"{self.verb} {self.side.value} {kind} {self.key}"


class MemoryCluster(SideClient):
    """One side of a :class:`~syncer.testing.World`. Its coroutines never wait."""

    def __init__(self, side: Side, sent: list[Sent], now: Callable[[], datetime]) -> None:
        super().__init__("world", side, _Unreachable())
        self.objects: dict[Resource, dict[Key, Obj]] = {}
        self._sent = sent
        self._now = now
        self._version = 0

    # -- for the world -----------------------------------------------------------------------------

    def put(self, resource: Resource, obj: Obj) -> None:
        """Store an object as it is, with the metadata that an API server adds.

        That is without a generation; if it has one, patches of its contents raise it.
        """
        obj = copy.deepcopy(obj)
        metadata = obj["metadata"]
        before = self.find(resource, key_of(obj))
        metadata.setdefault("uid", uid_of(before) if before else uid_for(self.side.value, obj))
        metadata.setdefault("creationTimestamp", written(self._now()))
        self._keep(resource, obj)

    def find(self, resource: Resource, key: Key) -> Obj | None:
        """Return the object itself, or None."""
        return self.objects.get(resource, {}).get(key)

    def drop(self, resource: Resource, key: Key) -> None:
        """Remove an object at once, whatever its finalizers."""
        self.objects.get(resource, {}).pop(key, None)

    # -- for the engine ----------------------------------------------------------------------------

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Obj:
        """Return the object.

        Raises:
            NotFound: There is none.
        """
        return copy.deepcopy(self._there(resource, key))

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        *,
        subresource: str = "",
        key: Key | None = None,
        body: bytes | None = None,
    ) -> Obj:
        """Create an object, bind a Pod, or issue a token.

        Raises:
            AlreadyExists: The name is taken.
            Conflict: The Pod is bound already.
        """
        obj = obj if body is None else codec.decode(body)
        key = key or key_of(obj)
        self._note("create", resource, key, subresource, obj)
        if subresource == "token":
            return self._token(key, obj)
        if subresource == "binding":
            return self._bind(resource, key, obj)
        if self.find(resource, key) is not None:
            raise AlreadyExists(f"{resource} {key} already exists on the {self.side.value} side")
        self._version += 1
        metadata = {
            "uid": f"{self.side.value}-uid-{self._version}",
            "creationTimestamp": written(self._now()),
        }
        made = merged(copy.deepcopy(obj), {"metadata": metadata})
        if resource.plural not in _BORN_WITH_STATUS:
            made.pop("status", None)
        return self._keep(resource, _allocated(made, self._version))

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Obj | list[Obj],
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
        force: bool = False,
    ) -> Obj:
        """Apply a merge patch, or merge lists by the key of their items, or apply a JSON patch.

        Raises:
            NotFound: There is no such object.
            Conflict: The object has another uid.
        """
        before = self._there(resource, key)
        if isinstance(patch, list):
            sent = codec.decode(codec.encode({"operations": patch}))
            change = patched(before, sent["operations"])
            self._note("patch", resource, key, subresource, change)
            after = {**before, **_parts(change, resource, subresource)}
        else:
            change = patch
            self._note("patch", resource, key, subresource, change)
            after = merged(
                before,
                _parts(change, resource, subresource),
                by_key=kind == "strategic",
            )
        uid = change.get("metadata", {}).get("uid")
        if uid is not None and uid != uid_of(before):
            raise Conflict(
                f"{resource} {key} is another object: its uid is {uid_of(before)}, not {uid}",
            )
        _refuse_changed_immutable(before, after)
        after = _allocated(copy.deepcopy(after), self._version)
        if same(after, before):
            return copy.deepcopy(before)
        if "generation" in before["metadata"] and not same(_counted(after), _counted(before)):
            after["metadata"]["generation"] += 1
        return self._keep(resource, after)

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
        """Delete an object; one with finalizers, and a Pod on a node, is only marked as
        terminating.

        Raises:
            NotFound: There is no such object.
            Conflict: The object has another uid or version.
        """
        self._note("delete", resource, key, "", {"uid": uid, "gracePeriodSeconds": grace})
        obj = self._there(resource, key)
        if uid is not None and uid != uid_of(obj):
            raise Conflict(
                f"{resource} {key} is another object: its uid is {uid_of(obj)}, not {uid}",
            )
        seconds = _grace(resource, obj, grace)
        if not seconds and not obj["metadata"].get("finalizers"):
            self.drop(resource, key)
            return None
        mark = {"deletionTimestamp": written(self._now()), "deletionGracePeriodSeconds": seconds}
        return self._keep(resource, merged(obj, {"metadata": mark}))

    # -- inside ------------------------------------------------------------------------------------

    def _keep(self, resource: Resource, obj: Obj) -> Obj:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects.setdefault(resource, {})[key_of(obj)] = obj
        return copy.deepcopy(obj)

    def _there(self, resource: Resource, key: Key) -> Obj:
        obj = self.find(resource, key)
        if obj is None:
            raise NotFound(f"there is no {resource} {key} on the {self.side.value} side")
        return obj

    def _note(self, verb: str, resource: Resource, key: Key, subresource: str, body: Obj) -> None:
        self._sent.append(Sent(self.side, verb, resource, key, subresource, copy.deepcopy(body)))

    def _bind(self, resource: Resource, key: Key, binding: Obj) -> Obj:
        pod = self._there(resource, key)
        if (pod.get("spec") or {}).get("nodeName"):
            raise Conflict(f"pod {key} is bound already")
        self._keep(resource, merged(pod, {"spec": {"nodeName": binding["target"]["name"]}}))
        return {"kind": "Status", "status": "Success"}

    def _token(self, key: Key, request: Obj) -> Obj:
        ends = self._now() + timedelta(seconds=request["spec"]["expirationSeconds"])
        audiences = ",".join(request["spec"].get("audiences") or ())
        token = f"token of {key} for {audiences or 'the API server'}"
        return {"status": {"token": token, "expirationTimestamp": written(ends)}}


class _Unreachable(Transport):
    """The transport of a world, which has no server."""

    async def send(self, request: HttpRequest) -> Any:
        """Raise ClusterError: a world has no server."""
        why = "was sent from a World, where only objects in memory are"
        raise ClusterError(f"{request.method} {request.path} {why}")

    def stream(self, request: HttpRequest) -> Any:
        """Raise ClusterError: a world has no server."""
        raise ClusterError(
            f"{request.path} was opened from a World, where only objects in memory are",
        )

    async def close(self) -> None:
        """Do nothing."""


def _counted(obj: Obj) -> Obj:
    """Return the parts of an object whose changes its generation counts."""
    return {part: value for part, value in obj.items() if part not in ("metadata", "status")}


def _parts(patch: Obj, resource: Resource, subresource: str) -> Obj:
    """Return the effective part of a patch.

    A status changes only through its own path, and nothing else changes through that.
    """
    if resource.plural in WITHOUT_STATUS:
        return patch
    if subresource == "status":
        return {part: value for part, value in patch.items() if part == "status"}
    return {part: value for part, value in patch.items() if part != "status"}


def _grace(resource: Resource, obj: Obj, grace: int | None) -> int:
    """Return the grace period in seconds of a Pod that runs."""
    spec = obj.get("spec") or {}
    if resource.plural != "pods" or not spec.get("nodeName"):
        return 0
    own: int = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
    return own if grace is None else grace


def _refuse_changed_immutable(before: Obj, after: Obj) -> None:
    if not before.get("immutable"):
        return
    for part in ("data", "binaryData"):
        if before.get(part) != after.get(part):
            raise Invalid("the object is immutable: its data can't be changed")


def _allocated(obj: Obj, number: int) -> Obj:
    """Return the object with the addresses and ports that an API server gives to a Service."""
    spec = obj.get("spec") or {}
    if obj.get("kind") != "Service" or spec.get("type") == "ExternalName":
        return obj
    spec.setdefault("clusterIP", f"10.0.{number // 256 % 256}.{number % 256}")
    spec["clusterIPs"] = [spec["clusterIP"]]
    ports = spec.get("ports") or ()
    spec["ports"] = [{"protocol": "TCP", "targetPort": port["port"], **port} for port in ports]
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for index, port in enumerate(spec["ports"]):
            port.setdefault("nodePort", 30000 + number % 1000 + index)
    return obj
