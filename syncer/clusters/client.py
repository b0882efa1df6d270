"""The API of one cluster on plain JSON: each method is one request, each refusal one :class:`ClusterError`."""

import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, Protocol
from urllib.parse import quote, urlencode

from syncer.api.objects import Key, Obj, Resource, Side, key_of
from syncer.clusters import codec, errors
from syncer.clusters.codec import Page
from syncer.clusters.errors import UNKNOWN_ORIGIN, Origin, Where
from syncer.clusters.transport import REQUEST_SECONDS, ConnectionFailed, Reply, Transport
from syncer.clusters.watching import Watch

#: The name under which the API server records our writes in ``managedFields``.
FIELD_MANAGER = "vsyncer"
#: Items a page of a list; larger pages hold up the event loop for longer.
PAGE = 500

Objs = list[Obj]
PatchKind = Literal["merge", "strategic", "json", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]

_PATCH_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_WRITE = f"?fieldManager={FIELD_MANAGER}"
_plain = re.compile(r"[A-Za-z0-9._:~-]+").fullmatch


class Observer(Protocol):
    """Hears of every request; for metrics."""

    def request(self, cluster: str, method: str, code: int, seconds: float) -> None:
        """A reply came with this status, or none did: code 0. Of a watch it is told when its head has come."""


class Cluster:
    """One API server, virtual or host.

    Every method raises a :class:`~syncer.api.errors.ClusterError`, whose class says what to do next, and has a
    deadline: ``timeout`` seconds a request.
    """

    def __init__(
        self,
        name: str,
        side: Side,
        transport: Transport,
        *,
        origin: Origin = UNKNOWN_ORIGIN,
        observer: Observer | None = None,
        timeout: float = REQUEST_SECONDS,
    ) -> None:
        self.name, self.side, self.transport = name, side, transport
        self.origin, self.observer, self.timeout = origin, observer, timeout

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Obj:
        """Read one object."""
        where = self._where("get", resource, key, subresource)
        return codec.decode((await self._call(where, "GET", _path(resource, key, subresource))).body)

    async def create(self, resource: Resource, obj: Obj, *, subresource: str = "", key: Key | None = None) -> Obj:
        """POST an object and return it as the server has it.

        With a ``subresource`` (``binding``, ``token``, ``eviction``) ``key`` names its parent, where the object's own
        metadata doesn't.
        """
        target = key or target_of(obj)
        where = self._where("create", resource, target, subresource)
        path = _path(resource, target, subresource) if subresource else resource.collection(target.namespace)
        return codec.decode((await self._call(where, "POST", path + _WRITE, codec.encode(obj))).body)

    async def replace(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        """PUT a whole object; with a ``resourceVersion`` in it only over that version."""
        where = self._where("update", resource, key_of(obj), subresource)
        path = _path(resource, key_of(obj), subresource) + _WRITE
        return codec.decode((await self._call(where, "PUT", path, codec.encode(obj))).body)

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
        """Change parts of an object; ``force`` takes fields from other managers and is for ``apply`` only."""
        where = self._where("patch", resource, key, subresource)
        path = _path(resource, key, subresource) + _WRITE + ("&force=true" if force else "")
        reply = await self._call(where, "PATCH", path, codec.encode(patch), _PATCH_TYPES[kind])
        return codec.decode(reply.body)

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
        """Delete an object, only if it still has this uid and version where they are given.

        Returns ``None`` where it is gone at once and the object where it is only marked and waits for finalizers or
        its grace period. One that isn't there is :class:`~syncer.api.errors.Missing`, one of another uid
        :class:`~syncer.api.errors.Conflict`.
        """
        where = self._where("delete", resource, key, "")
        options = _delete_options(uid, resource_version, grace, propagation)
        reply = await self._call(where, "DELETE", _path(resource, key, ""), options)
        answer = codec.decode(reply.body)
        return answer if _only_marked(answer) else None

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selector: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncIterator[Page]:
        """List page by page, items undecoded. :class:`~syncer.api.errors.Expired`: begin again."""
        where = self._where("list", resource, Key(namespace, ""), "")
        query = _query(labelSelector=selector, fieldSelector=fields, limit=limit or "")
        token = ""
        while True:
            more = f"{'&' if query else '?'}continue={quote(token, safe='')}" if token else ""
            reply = await self._call(where, "GET", resource.collection(namespace) + query + more)
            page = codec.split_list(reply.body)
            yield page
            token = page.next_token
            if not token:
                return

    async def list(self, resource: Resource, *, namespace: str = "", selector: str = "", fields: str = "") -> Objs:
        """List all objects decoded; each says its ``apiVersion`` and ``kind``, which the server leaves out."""
        found: Objs = []
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        async for page in self.list_pages(resource, namespace=namespace, selector=selector, fields=fields):
            found.extend({**named, **codec.decode(raw)} for raw in page.items)
        return found

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        resource_version: str = "",
        timeout_seconds: int | None = None,
        idle_timeout: float | None = None,
    ) -> Watch:
        """Hear of changes after a version, with bookmarks, in batches of what has arrived.

        The server ends the watch after ``timeout_seconds``; ``idle_timeout`` seconds without a byte, or a cut
        connection, are :class:`~syncer.api.errors.Unreachable`. ERROR events are handed over like the others.
        """
        where = self._where("watch", resource, Key(namespace, ""), "")
        query = _query(
            watch="1",
            allowWatchBookmarks="true",
            labelSelector=selector,
            fieldSelector=fields,
            resourceVersion=resource_version,
            timeoutSeconds=timeout_seconds or "",
        )
        start = time.perf_counter()
        return Watch(
            self.transport,
            resource.collection(namespace) + query,
            where=where,
            origin=self.origin,
            connect_timeout=self.timeout,
            idle_timeout=idle_timeout,
            observe=lambda code: self._observe("WATCH", code, start),
        )

    async def fetch(self, path: str, *, accept: str = "application/json") -> Obj:
        """GET a path that is no object: ``/version``, ``/apis``, ``/openapi/v3``."""
        where = Where(self.name, self.side, f"get {path} from")
        return codec.decode((await self._call(where, "GET", path, accept=accept)).body)

    @property
    def place(self) -> str:
        """The cluster in a message: ``virtual cluster``, with its name where that says more."""
        return Where(self.name, self.side, "").place

    async def close(self) -> None:
        """End all connections."""
        await self.transport.close()

    def _where(self, verb: str, resource: Resource, key: Key, subresource: str) -> Where:
        return Where(self.name, self.side, verb, resource, key, subresource)

    async def _call(
        self,
        where: Where,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Reply:
        start, code = time.perf_counter(), 0
        try:
            reply = await self.transport.request(
                method, path, body=body, content_type=content_type, accept=accept, timeout=self.timeout
            )
            code = reply.status
        except ConnectionFailed as failure:
            raise errors.from_failure(failure, where, self.origin) from failure
        finally:
            self._observe(method, code, start)
        if code >= 300:
            raise errors.from_reply(reply, where, self.origin)
        return reply

    def _observe(self, method: str, code: int, start: float) -> None:
        if self.observer is not None:
            self.observer.request(self.name, method, code, time.perf_counter() - start)


def _path(resource: Resource, key: Key, subresource: str) -> str:
    """The path of an object; the names of some kinds may have characters that mean something in a URL."""
    if not _plain(key.name):
        key = Key(key.namespace, quote(key.name, safe=":"))
    return resource.path(key, subresource)


def target_of(obj: Obj) -> Key:
    """Where a new object goes; its name may be left to the server."""
    metadata = obj.get("metadata") or {}
    return Key(metadata.get("namespace") or "", metadata.get("name") or metadata.get("generateName") or "")


def _query(**parameters: str | int) -> str:
    """A query string of those parameters that are not empty."""
    chosen = {name: value for name, value in parameters.items() if value != ""}
    return f"?{urlencode(chosen)}" if chosen else ""


def _delete_options(
    uid: str | None, resource_version: str | None, grace: int | None, propagation: Propagation | None
) -> bytes:
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    options: dict[str, Any] = {
        "preconditions": {name: value for name, value in preconditions.items() if value is not None} or None,
        "gracePeriodSeconds": grace,
        "propagationPolicy": propagation,
    }
    chosen = {name: value for name, value in options.items() if value is not None}
    return codec.encode({"apiVersion": "v1", "kind": "DeleteOptions", **chosen})


def _only_marked(answer: Obj) -> bool:
    """Whether the reply to a DELETE shows an object that still exists.

    Most kinds answer with a ``Status`` when the object is gone; Pods, ServiceAccounts, PersistentVolumeClaims and
    some more answer with the object even then.
    """
    metadata = answer.get("metadata") or {}
    if answer.get("kind") == "Status" or "deletionTimestamp" not in metadata:
        return False
    finalizers = metadata.get("finalizers") or (answer.get("spec") or {}).get("finalizers")
    return bool(finalizers or metadata.get("deletionGracePeriodSeconds"))
