"""The client of an API server, on plain JSON: each method makes a request; a failure is a
:class:`ClusterError`.
"""

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

from syncer.api.objects import Key, Obj, Resource, Side, key_of
from syncer.clusters import api_requests, codec, errors
from syncer.clusters.api_requests import PatchKind, Propagation
from syncer.clusters.codec import Page
from syncer.clusters.errors import UNKNOWN_ORIGIN, Origin, Where
from syncer.clusters.transport import REQUEST_SECONDS, ConnectionFailed, HttpRequest, HttpResponse, Transport
from syncer.clusters.watching import Watch

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient

#: Items in a page of a list; larger pages block the event loop for longer.
PAGE = 500

Objs = list[Obj]


class Observer(Protocol):
    """Receives every request, for metrics."""

    def request(self, method: str, code: int, seconds: float) -> None:
        """Count a request by the status of its response, 0 if there was none.

        A watch is counted when its head has arrived.
        """


class Cluster:
    """A client of an API server, virtual or host.

    Every method raises a :class:`~syncer.api.errors.ClusterError`, whose class says what to do
    next. ``timeout`` is the deadline of a request, in seconds.
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

    @property
    def virtual_cluster(self) -> str:
        """The name of the virtual cluster; ``""`` for the host, which all virtual clusters share."""
        return self.name if self.side is Side.VIRTUAL else ""

    def over(self, transport: Transport) -> "Cluster":
        """Return a client of the same cluster with another transport, such as a wrapper of its own."""
        return Cluster(
            self.name, self.side, transport, origin=self.origin, observer=self.observer, timeout=self.timeout
        )

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Obj:
        """Read an object."""
        request = api_requests.get(resource, key, subresource, timeout=self.timeout)
        return codec.decode((await self._send(request, "get", resource, key, subresource)).body)

    async def create(self, resource: Resource, obj: Obj, *, subresource: str = "", key: Key | None = None) -> Obj:
        """Create an object (POST), and return it as the server stored it, mostly without
        ``managedFields``.

        With a ``subresource`` (``binding``, ``token``, ``eviction``), ``key`` is the parent object,
        if the metadata of ``obj`` doesn't name it.
        """
        target = key or target_of(obj)
        request = api_requests.create(resource, target, obj, subresource, timeout=self.timeout)
        return codec.lean((await self._send(request, "create", resource, target, subresource)).body)

    async def replace(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        """Replace an object (PUT); with a ``resourceVersion`` in it only that version."""
        request = api_requests.replace(resource, obj, subresource, timeout=self.timeout)
        return codec.decode((await self._send(request, "update", resource, key_of(obj), subresource)).body)

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
        """Patch an object, and return it, mostly without ``managedFields``.

        ``force`` takes fields from other managers, for ``apply`` only.
        """
        request = api_requests.patch(resource, key, patch, subresource, kind=kind, force=force, timeout=self.timeout)
        return codec.lean((await self._send(request, "patch", resource, key, subresource)).body)

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
        """Delete an object, with uid and version as preconditions if given.

        Returns None if it is gone at once, and the object if it is only marked and waits for
        finalizers or its grace period.

        Raises:
            Missing: There is no such object.
            Conflict: The object has another uid or version.
        """
        request = api_requests.delete(
            resource,
            key,
            uid=uid,
            resource_version=resource_version,
            grace=grace,
            propagation=propagation,
            timeout=self.timeout,
        )
        answer = codec.lean((await self._send(request, "delete", resource, key)).body)
        return answer if _only_marked(answer) else None

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selector: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncIterator[Page]:
        """Yield the pages of a list, with undecoded items.

        Raises:
            Expired: The list took too long; begin again.
        """
        token = ""
        while True:
            request = api_requests.list_page(
                resource,
                namespace=namespace,
                selector=selector,
                fields=fields,
                limit=limit,
                token=token,
                timeout=self.timeout,
            )
            page = codec.split_list((await self._send(request, "list", resource, Key(namespace, ""))).body)
            yield page
            token = page.next_token
            if not token:
                return

    async def list(self, resource: Resource, *, namespace: str = "", selector: str = "", fields: str = "") -> Objs:
        """List all objects, decoded, with their ``apiVersion`` and ``kind``, which the server leaves out."""
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
        """Watch changes from a version on, with bookmarks, in batches of the events that have arrived.

        The server ends the watch after ``timeout_seconds``. ``idle_timeout`` seconds without a
        byte, or a lost connection, raise :class:`~syncer.api.errors.Unreachable`. ERROR events are
        returned like others.
        """
        request = api_requests.watch(
            resource,
            namespace=namespace,
            selector=selector,
            fields=fields,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            idle_timeout=idle_timeout,
            timeout=self.timeout,
        )
        start = time.perf_counter()
        return Watch(
            self.transport,
            request,
            where=Where(self.name, self.side, "watch", resource, Key(namespace, "")),
            origin=self.origin,
            observe=lambda code: self._observe("WATCH", code, start),
        )

    async def fetch(self, path: str, *, accept: str = "application/json") -> Obj:
        """GET a path other than an object's: ``/version``, ``/apis``, ``/openapi/v3``."""
        request = HttpRequest("GET", path, accept=accept, timeout=self.timeout)
        return codec.decode((await self._send(request, f"get {path} from")).body)

    def kubernetes_client(self) -> "ApiClient":
        """Return a new ``kubernetes.aio.client.ApiClient`` that sends its requests through this
        client's transport.

        A plugin creates one and keeps it; closing this client closes it. The first call imports the
        package.
        """
        from syncer.clusters import official

        return official.api_client(self.transport, address=self.origin.address or "cluster")

    @property
    def place(self) -> str:
        """The cluster in messages: ``virtual cluster``, with its name if that adds something."""
        return Where(self.name, self.side, "").place

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def _send(
        self,
        request: HttpRequest,
        verb: str,
        resource: Resource | None = None,
        key: Key | None = None,
        subresource: str = "",
    ) -> HttpResponse:
        """Send a request; the other parameters are for the error message."""
        start, code = time.perf_counter(), 0
        try:
            response = await self.transport.send(request)
            code = response.status
        except ConnectionFailed as failure:
            where = Where(self.name, self.side, verb, resource, key, subresource)
            raise errors.from_failure(failure, where, self.origin) from failure
        finally:
            self._observe(request.method, code, start)
        if code >= 300:
            where = Where(self.name, self.side, verb, resource, key, subresource)
            raise errors.from_response(response, where, self.origin)
        return response

    def _observe(self, method: str, code: int, start: float) -> None:
        if self.observer is not None:
            self.observer.request(method, code, time.perf_counter() - start)


def target_of(obj: Obj) -> Key:
    """Return the key of a new object; the name may be left to the server."""
    metadata = obj.get("metadata") or {}
    return Key(metadata.get("namespace") or "", metadata.get("name") or metadata.get("generateName") or "")


def _only_marked(answer: Obj) -> bool:
    """Return True if the response to a DELETE shows an object that still exists.

    Most kinds answer with a ``Status`` when the object is gone; Pods, ServiceAccounts,
    PersistentVolumeClaims and some more answer with the object even then.
    """
    metadata = answer.get("metadata") or {}
    if answer.get("kind") == "Status" or "deletionTimestamp" not in metadata:
        return False
    finalizers = metadata.get("finalizers") or (answer.get("spec") or {}).get("finalizers")
    return bool(finalizers or metadata.get("deletionGracePeriodSeconds"))
