"""Discovery: the resources that an API server serves, with their verbs and subresources.

Aggregated discovery (two requests, Kubernetes 1.26 and later) is used or, if the server doesn't
support that, a document for each group and version
(https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api).
"""

import asyncio
import contextlib
import difflib
import hashlib
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from cachetools import LRUCache

from syncer.api.errors import ClusterError, Forbidden, NotFound, Unreachable
from syncer.api.objects import LONGEST_NAME, Obj, Resource
from syncer.clusters import codec
from syncer.clusters.client import Client

_AGGREGATED = ",".join(
    [
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    ],
)


@dataclass(frozen=True, slots=True)
class Served:
    """A resource in a served version."""

    resource: Resource
    verbs: frozenset[str]
    subresources: frozenset[str] = frozenset()
    singular: str = ""
    short_names: tuple[str, ...] = ()

    def is_called(self, name: str) -> bool:
        """Return True if a name is the plural, singular, short name or kind of this resource."""
        resource = self.resource
        return name in (resource.plural, resource.kind, self.singular, *self.short_names)


def _size(served: Served) -> int:
    """Return the maximum memory of an entry, in bytes."""
    resource = served.resource
    texts = (resource.api_version, resource.kind, resource.plural, served.singular)
    names = (*served.verbs, *served.subresources, *served.short_names)
    return OVERHEAD + sum(map(sys.getsizeof, (*texts, *names)))


class ServerVersion(NamedTuple):
    """The version of an API server."""

    #: As the server writes it, such as ``v1.36.3``; ``""`` if it doesn't say.
    text: str = ""
    #: The minor version of Kubernetes 1; 0 if it is unknown.
    minor: int = 0


class Changes(NamedTuple):
    """The differences between two discoveries."""

    added: tuple[Resource, ...] = ()
    removed: tuple[Resource, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


#: Memory for the resources of a cluster that are no longer served, in bytes: a tenant may define
#: and delete any number of them.
GONE_BYTES = 1 << 20
#: Memory for an entry besides its texts, in bytes.
OVERHEAD = 1000

#: The first minor version of Kubernetes 1 that guarantees ordered resourceVersions (KEP-5504).
ORDERED_SINCE = 35

#: The kind of an aggregated document.
_LIST = "APIGroupDiscoveryList"
#: Raised when a malformed document is parsed.
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, codec.DecodeError)
#: Characters that a part of a URL's path can't have.
_FORBIDDEN = frozenset("/%?# ")


class _Resources(list[Served]):
    """The resources of a version; it must not be changed."""

    __slots__ = ("__weakref__",)


#: What clusters have answered about a version, by its digest, while any of them serves that. Most
#: virtual clusters serve the same, which is read once, and is in memory once.
_answers: WeakValueDictionary[bytes, _Resources] = WeakValueDictionary()

#: ``apiVersion`` → its resources; None if they are unknown at present: an aggregated API server is
#: down, or doesn't answer with a list of resources.
_Found = dict[str, list[Served] | None]


class Discovery:
    """The resources of a cluster as of the last :meth:`refresh`; empty before the first."""

    def __init__(self, cluster: Client) -> None:
        self.cluster = cluster
        self._versions: dict[str, list[Served]] = {}
        self._by_resource: dict[tuple[str, str], Served] = {}
        #: Resources that are no longer served, in their last form.
        self._gone: LRUCache[tuple[str, str], Served] = LRUCache(GONE_BYTES, getsizeof=_size)
        self._lock = asyncio.Lock()
        #: The number of the last discovery, and of the last one that succeeded.
        self._last = 0
        self._last_good = 0
        #: When the last successful discovery began, on the loop's clock.
        self._begun = -math.inf
        #: Group versions with unknown resources at the last discovery: their API server is down.
        self.silent: tuple[str, ...] = ()
        #: The minor version of the server's Kubernetes 1, as of the first discovery; 0 if unknown.
        #: Whoever knows it before may set it, which saves a request.
        self.minor = 0

    @property
    def orders_versions(self) -> bool:
        """True if the server guarantees ordered resourceVersions."""
        return self.minor >= ORDERED_SINCE

    async def refresh(self, *, shared: float = 0.0) -> Changes:
        """Discover the resources again, and return the changes.

        This happens at the start, when a CustomResourceDefinition or APIService has changed, and at
        intervals. Calls during a running discovery share one further discovery; the first of them
        gets its changes. A discovery that began within the last ``shared`` seconds isn't repeated.

        Raises:
            ClusterError: Discovery failed; the previous result is kept.
        """
        before = self._last
        async with self._lock:
            begun = asyncio.get_running_loop().time()
            if self._last_good > before:
                return Changes()
            if shared and begun - self._begun <= shared:
                return Changes()

            self._last += 1
            number = self._last
            found = await _discover(self.cluster)
            if not self._last_good and not self.minor:  # no request each time for an upgrade
                self.minor = await minor_version(self.cluster)
            self._last_good = number
            self._begun = begun
            return self._replace(found)

    def find(self, name: str) -> Resource:
        """Return the resource with a name.

        Without a version in the name, it is the one that the server prefers.

        A name is like ``configmaps``, ``ConfigMap``, ``certificates.cert-manager.io`` or
        ``certificates.cert-manager.io/v1``; without a group, the core group has precedence.

        Raises:
            NotFound: There is no such resource; the message has similar names.
        """
        plain, _, version = name.partition("/")
        plural, _, group = plain.partition(".")
        for served in self._in_order():
            resource = served.resource
            if group not in ("", resource.group) or version not in ("", resource.version):
                continue
            if served.is_called(plural):
                return resource
        raise self._missing(name)

    def served(self, resource: Resource) -> Served | None:
        """Return the details of a resource in its version; None if the server doesn't serve it."""
        return self._by_resource.get((resource.api_version, resource.plural))

    def verbs(self, resource: Resource) -> frozenset[str]:
        """Return the verbs of a resource; empty if the server doesn't serve it."""
        served = self.served(resource)
        if served is None:
            return frozenset()
        return served.verbs

    def has_status(self, resource: Resource) -> bool:
        """Return True if the status is a subresource, which is written by separate requests."""
        return self.has_subresource(resource, "status")

    def has_subresource(self, resource: Resource, name: str) -> bool:
        """Return True if a resource has a subresource, such as ``status`` or ``scale``.

        For a resource that isn't served now, the answer is about the time when it was served last:
        a starting API server serves custom resources last.
        """
        key = (resource.api_version, resource.plural)
        served = self._by_resource.get(key) or self._gone.get(key)
        return served is not None and name in served.subresources

    def resources(self) -> list[Resource]:
        """Return every resource in every version, preferred versions first, as the server does."""
        return [served.resource for served in self._in_order()]

    def _in_order(self) -> Iterator[Served]:
        for versions in self._versions.values():
            yield from versions

    def _replace(self, found: _Found) -> Changes:
        """Replace the known resources; those of versions that are unknown at present stay."""
        versions: dict[str, list[Served]] = {}
        silent = []
        for version, resources in found.items():
            if resources is None:
                silent.append(version)
                resources = self._versions.get(version, [])
            versions[version] = resources
        self.silent = tuple(silent)
        self._versions = versions

        before = self._by_resource
        after: dict[tuple[str, str], Served] = {}
        for served in self._in_order():
            after[served.resource.api_version, served.resource.plural] = served
        self._by_resource = after

        for key, served in before.items():
            if key not in after:
                with contextlib.suppress(ValueError):  # a single entry may exceed the limit
                    self._gone[key] = served
        return Changes(
            added=tuple(after[key].resource for key in after if key not in before),
            removed=tuple(before[key].resource for key in before if key not in after),
        )

    def _missing(self, name: str) -> NotFound:
        known = {str(resource) for resource in self.resources()}
        similar = difflib.get_close_matches(name.partition("/")[0], known, n=3, cutoff=0.85)
        hint = "Is its CustomResourceDefinition installed?"
        if similar:
            hint = f"Did you mean {' or '.join(similar)}?"
        return NotFound(
            f"{self.cluster.title}: there is no resource {name}. {hint}",
            cluster=self.cluster.name,
            side=self.cluster.side,
        )


async def _discover(cluster: Client) -> _Found:
    try:
        documents = await asyncio.gather(
            cluster.fetch("/api", accept=_AGGREGATED),
            cluster.fetch("/apis", accept=_AGGREGATED),
        )
        found: _Found = {}
        for document in documents:
            if document.get("kind") == _LIST:
                found |= _aggregated(document)
            else:
                found |= await _one_by_one(cluster, document)
    except _MALFORMED as error:
        message = f"{cluster.title}: the list of its resources can't be read: {error}"
        raise Unreachable(message, cluster=cluster.name, side=cluster.side) from error
    return found


async def orders_versions(cluster: Client) -> bool:
    """Return True if a server guarantees ordered resourceVersions."""
    return await minor_version(cluster) >= ORDERED_SINCE


async def minor_version(cluster: Client) -> int:
    """Return the minor version of a server of Kubernetes 1; 0 if it is unknown."""
    try:
        version = await cluster.fetch("/version")
    except (Forbidden, NotFound):
        return 0
    return version_of(version).minor


def version_of(document: Obj) -> ServerVersion:
    """Return the version in a server's answer. Some providers write the minor one like ``35+``."""
    text = str(document.get("gitVersion", ""))
    major = re.findall(r"^[0-9]{1,4}", str(document.get("major")))
    minor = re.findall(r"^[0-9]{1,4}", str(document.get("minor")))
    if major != ["1"] or not minor:
        return ServerVersion(text)
    return ServerVersion(text, int(minor[0]))


def _aggregated(document: Obj) -> _Found:
    found: _Found = {}
    for group in _entries(document, "items"):
        with contextlib.suppress(*_MALFORMED):  # a group without a valid name is left out
            name = _text((group.get("metadata") or {}).get("name"))
            for version in _entries(group, "versions"):
                api_version = _name(version["version"])
                if name:
                    api_version = f"{_name(name)}/{api_version}"
                found[api_version] = _aggregated_version(api_version, version)
    return found


def _aggregated_version(api_version: str, version: Obj) -> list[Served] | None:
    """Return the resources of a version; None if they can't be read, or aren't known at present."""
    try:
        digest = hashlib.sha256(codec.encode((api_version, version))).digest()
        known = _answers.get(digest)
        if known is None:
            entries = _entries(version, "resources")
            known = _Resources([_served_by_aggregated(api_version, entry) for entry in entries])
            _answers[digest] = known
    except (*_MALFORMED, RecursionError):
        return None
    if version.get("freshness") == "Stale" and not known:
        return None
    return known


def _served_by_aggregated(api_version: str, entry: Obj) -> Served:
    kind = _text((entry.get("responseKind") or {}).get("kind"))
    resource = Resource(
        api_version,
        kind,
        _name(entry["resource"]),
        entry.get("scope") == "Namespaced",
    )
    return Served(
        resource,
        frozenset(_texts(entry, "verbs")),
        frozenset(_text(sub["subresource"]) for sub in _entries(entry, "subresources")),
        _text(entry.get("singularResource")),
        tuple(_texts(entry, "shortNames")),
    )


async def _one_by_one(cluster: Client, document: Obj) -> _Found:
    """Request the resources of each version in ``APIVersions`` or ``APIGroupList``.

    The preferred version of each group comes first.
    """
    names = [(_name(version), f"/api/{version}") for version in _texts(document, "versions")]
    for group in _entries(document, "groups"):
        with contextlib.suppress(*_MALFORMED):
            preferred = (group.get("preferredVersion") or {}).get("groupVersion")
            versions = _entries(group, "versions")
            listed = [_group_version(version["groupVersion"]) for version in versions]
            listed.sort(key=lambda version: version != preferred)
            names.extend((version, f"/apis/{version}") for version in listed)
    documents = await asyncio.gather(
        *(_resource_list(cluster, version, path) for version, path in names),
    )
    return {version: found for (version, _), found in zip(names, documents, strict=True)}


async def _resource_list(cluster: Client, api_version: str, path: str) -> list[Served] | None:
    """Return the resources of a version.

    None if the aggregated API server doesn't answer, or not with a list of resources.
    """
    try:
        return _served_by_list(api_version, await cluster.fetch(path))
    except ClusterError as error:
        if error.status in (404, 503):
            return None
        raise
    except _MALFORMED:
        return None


def _served_by_list(api_version: str, document: Obj) -> list[Served]:
    entries = _entries(document, "resources")
    subresources: dict[str, set[str]] = {}
    for entry in entries:
        plural, _, sub = _text(entry["name"]).partition("/")
        subresources.setdefault(_name(plural), set()).update({sub} - {""})
    return [
        Served(
            Resource(
                api_version,
                _text(entry["kind"]),
                entry["name"],
                bool(entry.get("namespaced")),
            ),
            frozenset(_texts(entry, "verbs")),
            frozenset(subresources[entry["name"]]),
            _text(entry.get("singularName")),
            tuple(_texts(entry, "shortNames")),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]


# An aggregated API server may answer anything, so these functions check the types.


def _entries(holder: Obj, field: str) -> list[Any]:
    found = holder.get(field) or []
    if not isinstance(found, list):
        raise TypeError(f"{field} is no list")
    return found


def _texts(holder: Obj, field: str) -> list[str]:
    return [_text(each) for each in _entries(holder, field)]


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"it has a {type(value).__name__} where a text belongs")
    if len(value) > LONGEST_NAME:  # the text is kept for as long as the resource is served
        raise ValueError(f"it has a text of {len(value)} characters")
    return value


def _name(value: object) -> str:
    """Return a text that may be a part of a URL's path; names of metrics have many characters."""
    name = _text(value)
    if name in ("", ".", "..") or not name.isprintable() or not _FORBIDDEN.isdisjoint(name):
        raise ValueError("it has a name that a URL can't have")
    return name


def _group_version(value: object) -> str:
    group, _, version = _text(value).partition("/")
    return f"{_name(group)}/{_name(version)}"
