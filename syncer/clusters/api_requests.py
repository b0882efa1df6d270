"""Build requests of the Kubernetes API as values. Nothing is sent here.

See https://kubernetes.io/docs/reference/using-api/api-concepts/ .
"""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

from syncer.api.objects import Key, Obj, Resource, key_of
from syncer.clusters.bodies import encoded
from syncer.clusters.paths import object_path
from syncer.clusters.transport import LARGEST_REPLY, REQUEST_SECONDS, HttpRequest

#: The field manager of our writes in ``managedFields``.
FIELD_MANAGER = "vsyncer"

PatchKind = Literal["merge", "strategic", "json", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]

PATCH_TYPES: Mapping[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
#: Requests a list with the metadata of its objects only; every API server supports this.
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#: The same for an object, as in the events of a watch.
METADATA_OF_ONE = METADATA_ONLY.replace("List;", ";")
#: The parameter of a write that stores nothing.
DRY_RUN = "&dryRun=All"
#: POSTs to these API groups are questions, and store nothing.
_QUESTIONS = ("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")


def is_read(request: HttpRequest) -> bool:
    """Return True for a read, or a question whether something is allowed."""
    return request.method == "GET" or request.path.startswith(_QUESTIONS)


def is_dry_run(request: HttpRequest) -> bool:
    """Return True for a write that stores nothing."""
    return request.path.endswith(DRY_RUN)


def write_query(field_manager: str) -> str:
    """Return the query of a write by a field manager."""
    return f"?fieldManager={quote(field_manager, safe='')}"


#: The query of our own writes.
WRITE = write_query(FIELD_MANAGER)


def get(
    resource: Resource,
    key: Key,
    subresource: str = "",
    *,
    timeout: float = REQUEST_SECONDS,
) -> HttpRequest:
    """Return the request to read an object."""
    return HttpRequest("GET", object_path(resource, key, subresource), timeout=timeout)


def create(
    resource: Resource,
    key: Key,
    obj: Obj,
    subresource: str = "",
    *,
    dry_run: bool = False,
    timeout: float = REQUEST_SECONDS,
    body: bytes | None = None,
    query: str = WRITE,
) -> HttpRequest:
    """Return the request to create an object.

    With a ``subresource`` (``binding``, ``token``, ``eviction``), it is created for the object
    ``key``. With ``dry_run`` nothing is stored. ``body`` is the object's JSON by :func:`encoded`,
    if the caller has it; ``query`` is made by :func:`write_query`.
    """
    path = resource.collection(key.namespace)
    if subresource:
        path = object_path(resource, key, subresource)
    path += query
    if dry_run:
        path += DRY_RUN
    return HttpRequest("POST", path, body or encoded(obj), timeout=timeout)


def replace(
    resource: Resource,
    obj: Obj,
    subresource: str = "",
    *,
    timeout: float = REQUEST_SECONDS,
    query: str = WRITE,
) -> HttpRequest:
    """Return the request to replace an object; if it has a resourceVersion, only that version."""
    path = object_path(resource, key_of(obj), subresource) + query
    return HttpRequest("PUT", path, encoded(obj), timeout=timeout)


def patch(
    resource: Resource,
    key: Key,
    change: Obj | list[Obj],
    subresource: str = "",
    *,
    kind: PatchKind = "merge",
    force: bool = False,
    timeout: float = REQUEST_SECONDS,
    query: str = WRITE,
) -> HttpRequest:
    """Return the request to patch an object.

    ``force`` takes fields from other managers; it is for ``apply`` only.
    """
    path = object_path(resource, key, subresource) + query
    if force:
        path += "&force=true"
    return HttpRequest("PATCH", path, encoded(change), PATCH_TYPES[kind], timeout=timeout)


def delete(
    resource: Resource,
    key: Key,
    *,
    uid: str | None = None,
    resource_version: str | None = None,
    grace: int | None = None,
    propagation: Propagation | None = None,
    timeout: float = REQUEST_SECONDS,
) -> HttpRequest:
    """Return the request to delete an object.

    ``uid`` and ``resource_version`` are preconditions. ``grace`` is in seconds.
    """
    preconditions: dict[str, str] = {}
    if uid is not None:
        preconditions["uid"] = uid
    if resource_version is not None:
        preconditions["resourceVersion"] = resource_version

    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions:
        options["preconditions"] = preconditions
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation is not None:
        options["propagationPolicy"] = propagation
    body = encoded(options)
    return HttpRequest("DELETE", object_path(resource, key), body, timeout=timeout)


def list_page(
    resource: Resource,
    *,
    namespace: str = "",
    selector: str = "",
    fields: str = "",
    limit: int = 0,
    token: str = "",
    timeout: float = REQUEST_SECONDS,
    most: int = LARGEST_REPLY,
    accept: str = "application/json",
) -> HttpRequest:
    """Return the request for a page of a list: the first one, or the one at ``token``.

    ``limit`` is the number of objects, 0 for all. ``most`` is the size of the largest response that
    is read, in bytes.
    """
    query = _query(
        labelSelector=selector,
        fieldSelector=fields,
        limit=limit or "",
        **{"continue": token},
    )
    path = resource.collection(namespace) + query
    return HttpRequest("GET", path, accept=accept, timeout=timeout, most=most)


def watch(
    resource: Resource,
    *,
    namespace: str = "",
    selector: str = "",
    fields: str = "",
    resource_version: str = "",
    timeout_seconds: int | None = None,
    idle_timeout: float | None = None,
    timeout: float = REQUEST_SECONDS,
    accept: str = "application/json",
) -> HttpRequest:
    """Return the request for a watch from a version on, with bookmarks.

    The server ends the watch after ``timeout_seconds``.
    """
    query = _query(
        watch="1",
        allowWatchBookmarks="true",
        labelSelector=selector,
        fieldSelector=fields,
        resourceVersion=resource_version,
        timeoutSeconds=timeout_seconds or "",
    )
    path = resource.collection(namespace) + query
    return HttpRequest("GET", path, accept=accept, timeout=timeout, idle_timeout=idle_timeout)


def _query(**parameters: str | int) -> str:
    """Return a query string of the non-empty parameters."""
    chosen = {name: value for name, value in parameters.items() if value != ""}
    if not chosen:
        return ""
    return f"?{urlencode(chosen)}"
