"""The client of an API server, on plain JSON.

Each method makes a request; if that fails, it raises a :class:`ClusterError`.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from syncer.api.errors import ClusterError, Invalid
from syncer.api.objects import Key, Obj, Resource, Side, key_of
from syncer.clusters import api_requests, codec, errors
from syncer.clusters.api_requests import PatchKind, Propagation
from syncer.clusters.codec import Page
from syncer.clusters.dialer import Dialer
from syncer.clusters.errors import UNKNOWN_ORIGIN, ClusterOrigin, FailedRequest
from syncer.clusters.patient import Patient
from syncer.clusters.transport import (
    LARGEST_REPLY,
    REQUEST_SECONDS,
    ConnectionFailed,
    HttpRequest,
    HttpResponse,
    ReplyTooLarge,
    Transport,
)
from syncer.clusters.watching import WatchStream
from syncer.steps import STEP_BYTES, next_turn

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient

#: Items in a page of a list; larger pages block the event loop for longer.
PAGE = 500
#: Largest page of several objects that is read, in bytes: 500 Pods with their ``managedFields``
#: take half of it.
LARGEST_PAGE = 8 << 20
#: Most pages of a list without an object. API servers send none but as the last.
_MOST_EMPTY = 10
#: Most fields, items and brackets of a document of a cluster that isn't a tenant's.
_MOST_FETCHED = 1_200_000
#: The factor by which a page becomes smaller if it is too large, and larger again if there is room.
_STEP = 4

Objs = list[Obj]


class Observer(Protocol):
    """Receives every request, for metrics."""

    def request(self, method: str, code: int, seconds: float) -> None:
        """Count a request by the status of its response, 0 if there was none.

        A watch is counted when its head has arrived.
        """


class Client:
    """A client of an API server.

    If a request fails, a method raises a :class:`~syncer.api.errors.ClusterError`; the class of the
    error decides the next step. ``timeout`` is the deadline of a request, in seconds.
    """

    #: Its side; None if the cluster is neither a virtual one nor the host.
    side: Side | None = None

    def __init__(
        self,
        name: str,
        transport: Transport,
        *,
        origin: ClusterOrigin = UNKNOWN_ORIGIN,
        observer: Observer | None = None,
        timeout: float = REQUEST_SECONDS,
        dialer: Dialer | None = None,
        field_manager: str = api_requests.FIELD_MANAGER,
    ) -> None:
        self.name = name
        self.transport = transport
        self.origin = origin
        self.observer = observer
        self.timeout = timeout
        self._write = api_requests.write_query(field_manager)
        #: Opens connections for other protocols; None if the transport has no network.
        self.dialer = dialer

    @property
    def virtual_cluster(self) -> str:
        """The name of the cluster in log lines; ``""`` for the host."""
        return "" if self.side is Side.HOST else self.name

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Obj:
        """Read an object."""
        request = api_requests.get(resource, key, subresource, timeout=self.timeout)
        return codec.decode((await self._send(request, "get", resource, key, subresource)).body)

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        *,
        subresource: str = "",
        key: Key | None = None,
        body: bytes | None = None,
    ) -> Obj:
        """Create an object (POST), and return it as the server stored it.

        It is mostly without ``managedFields``. ``key`` and ``body`` are the object's key and JSON,
        if the caller has them. With a ``subresource`` (``binding``, ``token``, ``eviction``),
        ``key`` is the parent object, if the metadata of ``obj`` doesn't name it.
        """
        target = key or target_of(obj)
        request = api_requests.create(
            resource,
            target,
            obj,
            subresource,
            timeout=self.timeout,
            body=body,
            query=self._write,
        )
        response = await self._send(request, "create", resource, target, subresource)
        del request, body  # large ones must not stay while the response is decoded
        return codec.lean(response.body)

    async def try_create(self, resource: Resource, obj: Obj) -> Obj:
        """Return an object as it would be created; nothing is stored."""
        target = target_of(obj)
        request = api_requests.create(
            resource,
            target,
            obj,
            dry_run=True,
            timeout=self.timeout,
            query=self._write,
        )
        return codec.decode((await self._send(request, "create", resource, target)).body)

    async def replace(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        """Replace an object (PUT); if it has a ``resourceVersion``, only that version."""
        request = api_requests.replace(
            resource,
            obj,
            subresource,
            timeout=self.timeout,
            query=self._write,
        )
        return codec.decode(
            (await self._send(request, "update", resource, key_of(obj), subresource)).body,
        )

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

        ``force`` takes fields from other managers; it is for ``apply`` only.
        """
        request = api_requests.patch(
            resource,
            key,
            patch,
            subresource,
            kind=kind,
            force=force,
            timeout=self.timeout,
            query=self._write,
        )
        response = await self._send(request, "patch", resource, key, subresource)
        del request
        return codec.lean(response.body)

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
        """Delete an object; ``uid`` and ``resource_version`` are preconditions.

        Return None if the object is deleted at once, else the object, which is only marked and
        waits for finalizers or the end of its grace period.

        Raises:
            NotFound: There is no such object.
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
        if not _only_marked(answer):
            return None
        return answer

    async def list_pages(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        limit: int = PAGE,
    ) -> AsyncIterator[Page]:
        """Yield the pages of a list, with undecoded items.

        A page that is too large to be read, or is malformed and too large to be cut up, is
        requested again with fewer objects. A single object that is too large is yielded without its
        contents (:data:`~syncer.clusters.codec.UNREADABLE`). A large page is yielded in several
        parts.

        Raises:
            Expired: The list took too long; begin again.
            DecodeError: The response is malformed, or the list never ends.
        """
        token = ""
        most = limit
        empty = 0
        while True:
            largest = LARGEST_PAGE if limit > 1 else LARGEST_REPLY
            request = api_requests.list_page(
                resource,
                namespace=namespace,
                selector=selector,
                fields=fields,
                limit=limit,
                token=token,
                timeout=self.timeout,
                most=largest,
            )
            body = b""
            try:
                body = (await self._send(request, "list", resource, Key(namespace, ""))).body
                page = codec.split_list(body)
            except (Invalid, codec.DecodeError) as error:
                if not isinstance(error.__cause__, ReplyTooLarge) and len(body) <= codec.MOST_CUT:
                    raise
                if limit > 1:
                    limit = max(limit // _STEP, 1)
                    continue
                if body:
                    page = await codec.cut_list_in_steps(body)
                else:
                    page = await self._without_contents(request, resource)
            else:
                if limit < most and len(body) * _STEP * 2 < LARGEST_PAGE:
                    limit = min(limit * _STEP, most)
            empty += not page.items
            if page.next_token and (empty > _MOST_EMPTY or page.next_token == token):
                raise codec.DecodeError(f"the list never ends: {empty} of its pages were empty")
            size = len(body)
            body = b""  # it isn't kept while the parts wait for their turns
            if size > STEP_BYTES:
                parts = codec.parts(page, STEP_BYTES)
                # No loop over the parts, so that each of them is freed early.
                while (part := next(parts, None)) is not None:
                    await next_turn()
                    yield part
                await next_turn()
                page = page._replace(items=[])
            yield page
            token = page.next_token
            if not token:
                return

    async def _without_contents(self, request: HttpRequest, resource: Resource) -> Page:
        """Return a page of a single object that is too large to be read."""
        request = replace(request, accept=api_requests.METADATA_ONLY)
        page = codec.split_list((await self._send(request, "list", resource)).body)
        why = f"it takes more than {LARGEST_REPLY >> 20} MiB"
        named = {"apiVersion": resource.api_version, "kind": resource.kind, codec.UNREADABLE: why}
        items = []
        for raw in page.items:
            obj = {**named, "metadata": codec.decode(raw)["metadata"]}
            items.append(codec.Raw(codec.encode(obj)))
        return page._replace(items=items)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
    ) -> Objs:
        """List all objects, decoded, with the ``apiVersion`` and ``kind`` that the server omits."""
        found: Objs = []
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        async for page in self.list_pages(
            resource,
            namespace=namespace,
            selector=selector,
            fields=fields,
        ):
            found.extend({**named, **codec.decode(raw)} for raw in page.items)
        return found

    async def first(self, resource: Resource, limit: int) -> Page:
        """Return the metadata of the first objects of a resource, by namespace and name."""
        request = api_requests.list_page(
            resource,
            limit=limit,
            timeout=self.timeout,
            most=LARGEST_PAGE,
            accept=api_requests.METADATA_ONLY,
        )
        return codec.split_list((await self._send(request, "list", resource)).body)

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
        metadata_only: bool = False,
    ) -> WatchStream:
        """Watch changes from a version on, with bookmarks.

        The stream yields batches of the events that have arrived. The server ends the watch after
        ``timeout_seconds``. ``idle_timeout`` seconds without a byte, or a lost connection, raise
        :class:`~syncer.api.errors.Unreachable`. ERROR events are returned like others.
        """
        accept = api_requests.METADATA_OF_ONE if metadata_only else "application/json"
        request = api_requests.watch(
            resource,
            namespace=namespace,
            selector=selector,
            fields=fields,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            idle_timeout=idle_timeout,
            timeout=self.timeout,
            accept=accept,
        )
        start = time.perf_counter()

        def observe(code: int) -> None:
            self._observe("WATCH", code, start)

        return WatchStream(
            self.transport,
            request,
            where=FailedRequest(self.name, self.side, "watch", resource, Key(namespace, "")),
            origin=self.origin,
            observe=observe,
        )

    async def fetch(self, path: str, *, accept: str = "application/json") -> Obj:
        """GET a path other than an object's: ``/version``, ``/apis``, ``/openapi/v3``.

        Raises:
            DecodeError: The response is no JSON object.
        """
        request = HttpRequest("GET", path, accept=accept, timeout=self.timeout)
        # Discovery of thousands of kinds is large; a tenant's is bounded as an object is.
        most = codec.MOST_PARTS if self.side is Side.VIRTUAL else _MOST_FETCHED
        response = await self._send(request, f"get {path} from")
        found = codec.decode(response.body, most=most)
        if not isinstance(found, dict):
            raise codec.DecodeError(f"{path} is no JSON object")
        return found

    async def date(self) -> datetime | None:
        """Return the server's time in full seconds, by the header ``Date``; None without one."""
        request = HttpRequest("GET", "/version", timeout=self.timeout)
        response = await self._send(request, "get /version from")
        return errors.date_of(response.headers.get("date", ""))

    def error_of(self, event: codec.WatchEvent, resource: Resource) -> ClusterError:
        """Return the error in an ``ERROR`` event of a watch of a resource."""
        where = FailedRequest(self.name, self.side, "watch", resource)
        return errors.from_status(codec.decode(event.object), where, self.origin)

    def kubernetes_client(self) -> "ApiClient":
        """Return a new ``kubernetes.aio.client.ApiClient`` over this client's transport.

        A plugin creates one and keeps it; closing this client closes it. The first call imports the
        package.
        """
        from syncer.clusters import official

        return official.api_client(self.transport, address=self.origin.address or "cluster")

    @property
    def title(self) -> str:
        """The cluster in messages, such as ``virtual cluster a``."""
        return FailedRequest(self.name, self.side, "").title

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
        start = time.perf_counter()
        code = 0
        try:
            response = await self.transport.send(request)
            code = response.status
        except ConnectionFailed as failure:
            where = FailedRequest(self.name, self.side, verb, resource, key, subresource)
            raise errors.from_failure(failure, where, self.origin) from failure
        finally:
            self._observe(request.method, code, start)
        if code >= 300:
            where = FailedRequest(self.name, self.side, verb, resource, key, subresource)
            raise errors.from_response(response, where, self.origin)
        return response

    def _observe(self, method: str, code: int, start: float) -> None:
        if self.observer is not None:
            self.observer.request(method, code, time.perf_counter() - start)


class SideClient(Client):
    """A client of a virtual cluster or of the host."""

    side: Side

    def __init__(
        self,
        name: str,
        side: Side,
        transport: Transport,
        *,
        origin: ClusterOrigin = UNKNOWN_ORIGIN,
        observer: Observer | None = None,
        timeout: float = REQUEST_SECONDS,
        dialer: Dialer | None = None,
    ) -> None:
        super().__init__(
            name,
            transport,
            origin=origin,
            observer=observer,
            timeout=timeout,
            dialer=dialer,
        )
        self.side = side

    def patient(self) -> "SideClient":
        """Return a client of the same cluster that retries when the API server asks to wait."""
        return self.over(Patient(self.transport))

    def over(self, transport: Transport) -> "SideClient":
        """Return a client of the same cluster with another transport, such as a wrapper."""
        return SideClient(
            self.name,
            self.side,
            transport,
            origin=self.origin,
            observer=self.observer,
            timeout=self.timeout,
            dialer=self.dialer,
        )


def target_of(obj: Obj) -> Key:
    """Return the key of a new object; the name may be left to the server."""
    metadata = obj.get("metadata") or {}
    return Key(
        metadata.get("namespace") or "",
        metadata.get("name") or metadata.get("generateName") or "",
    )


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
