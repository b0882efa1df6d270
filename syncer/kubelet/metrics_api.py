"""``metrics.k8s.io`` in a virtual cluster: its API server passes requests on, with their users.

An aggregated API server trusts the one in front of it as described at kubernetes.io, "Configure
the Aggregation Layer". The answers are those of metrics-server
(``k8s.io/metrics/pkg/apis/metrics/v1beta1``).
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

from syncer.api.objects import Key, Obj
from syncer.api.selectors import matches
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.paths import Target
from syncer.kubelet import pages
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.http import MessageHead
from syncer.kubelet.usage import NodeUsage, PodUsage, Usages
from syncer.kubelet.users import User, Users, subject_values
from syncer.resources.kinds import POD_METRICS
from syncer.steps import STEP_OBJECTS
from syncer.translate import times

VERSION = POD_METRICS.api_version
GROUP = POD_METRICS.group
#: The columns of a table, as metrics-server names them.
_COLUMNS = ("Name", "cpu", "memory", "Window")

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "RequestEntityTooLarge",
    500: "InternalError",
    503: "ServiceUnavailable",
}
_KINDS = {"pods": "PodMetrics", "nodes": "NodeMetrics"}
_requirement = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<none>[^\s=!,()]+)"
    r"|(?P<key>[^\s=!,()]+)\s*(?:(?P<equals>==?|!=)\s*(?P<value>[^\s=!,()]*)"
    r"|\s(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)",
).match


class FrontProxy:
    """The API server in front: it is trusted to name the users of the requests that it passes on.

    ``data`` has its ``requestheader`` settings, as it publishes them in the ConfigMap
    :data:`.certificates.CLIENT_CA`.
    """

    def __init__(self, data: Mapping[str, str]) -> None:
        #: The CA of its certificates, PEM; empty if there is none, so that no client is trusted.
        self.ca = data.get("requestheader-client-ca-file", "").encode()
        self._names = _listed(data, "requestheader-allowed-names")
        self._users = _listed(data, "requestheader-username-headers")
        self._groups = _listed(data, "requestheader-group-headers")
        self._uids = _listed(data, "requestheader-uid-headers")
        self._extra = _listed(data, "requestheader-extra-headers-prefix")

    def user(self, certificate: Mapping[str, Any] | None, head: MessageHead) -> User:
        """Return the user of a request.

        Raises:
            RefusedRequest: The sender isn't trusted, or names no user.
        """
        if certificate is None:
            raise RefusedRequest(401, "Unauthorized")
        if self._names:
            common_names = subject_values(certificate, "commonName")
            if not common_names or common_names[-1] not in self._names:
                raise RefusedRequest(401, "Unauthorized")

        name = _first_value(head, self._users)
        if not name:
            raise RefusedRequest(401, "Unauthorized")

        groups = tuple(value for _, value in head.only(self._groups))
        uid = _first_value(head, self._uids)
        extra: dict[str, list[str]] = {}
        for header, value in head.lines:
            for prefix in self._extra:
                if header.startswith(prefix):
                    key = unquote(header.removeprefix(prefix)).lower()
                    extra.setdefault(key, []).append(value)
        return User(name, groups, uid, extra)


def _first_value(head: MessageHead, headers: Sequence[str]) -> str:
    """Return the value of the first of these headers that has one, or ``""``."""
    for header in headers:
        value = head.get(header)
        if value:
            return value
    return ""


class MetricsApi:
    """Answers requests that a virtual API server passes on.

    ``labels`` returns the labels of a virtual object, given the plural of its kind and its key.
    """

    def __init__(
        self,
        virtual: SideClient,
        usages: Usages,
        labels: Callable[[str, Key], Mapping[str, str]],
    ) -> None:
        self._users = Users(virtual)
        self._usages = usages
        self._labels = labels
        #: The trusted API server.
        self.front = FrontProxy({})

    def trust(self, front: FrontProxy) -> None:
        """Trust another front proxy from now on."""
        self.front = front

    async def answer(
        self,
        certificate: Mapping[str, Any] | None,
        head: MessageHead,
    ) -> tuple[int, bytes]:
        """Return the HTTP status and the body of the answer to a request."""
        try:
            user = self.front.user(certificate, head)
            return 200, await self._answer(user, head)
        except RefusedRequest as refused:
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": refused.text,
                "reason": _REASONS.get(refused.status, ""),
                "code": refused.status,
            }
            return refused.status, codec.encode(status)

    async def _answer(self, user: User, head: MessageHead) -> bytes:
        path, _, query = head.target.partition("?")
        if head.method != "GET":
            raise RefusedRequest(405, f"{GROUP} can only be read")
        if document := _DISCOVERY.get(path.rstrip("/")):
            return codec.encode(document)

        target = Target.of(path)
        if (
            target is None
            or target.root != f"/apis/{VERSION}"
            or target.plural not in _KINDS
            or target.subresource
        ):
            raise RefusedRequest(404, "the server could not find the requested resource")
        asked = _AskedObjects.of(target, query)
        await self._authorize(user, target)

        found = [figures async for figures in self._find(asked)]
        if target.key.name and not found:
            raise RefusedRequest(404, f'{target.plural}.{GROUP} "{target.key.name}" not found')
        if "as=Table" in head.get("accept"):
            return asked.table(found)
        return asked.objects(found)

    async def _authorize(self, user: User, target: Target) -> None:
        """Check that a user may read the objects of a path.

        Raises:
            RefusedRequest: The user may not.
        """
        verb = "get" if target.key.name else "list"
        attributes = {
            "verb": verb,
            "group": GROUP,
            "version": VERSION.rpartition("/")[2],
            "resource": target.plural,
            "namespace": target.key.namespace,
            "name": target.key.name,
        }
        given = {name: value for name, value in attributes.items() if value}
        if not await self._users.may(user, **given):
            raise RefusedRequest(
                403,
                f'{target.plural}.{GROUP} is forbidden: User "{user.name}" cannot {verb} '
                f'resource "{target.plural}" in API group "{GROUP}"',
            )

    async def _find(self, asked: "_AskedObjects") -> AsyncIterator["_Figures"]:
        """Yield the figures of the requested objects, sorted by key."""
        usages: Mapping[Key, PodUsage | NodeUsage]
        if asked.plural == "pods":
            usages = await self._usages.pods()
        else:
            nodes = await self._usages.nodes()
            usages = {Key("", name): usage for name, usage in nodes.items()}

        for number, key in enumerate(sorted(usages)):
            if not asked.names(key):
                continue
            if number % STEP_OBJECTS == STEP_OBJECTS - 1:
                await asyncio.sleep(0)
            labels = self._labels(asked.plural, key)
            if matches({"matchExpressions": asked.selector}, labels):
                yield _Figures(key, labels, usages[key])


@dataclass(frozen=True, slots=True)
class _Figures:
    """The figures of an object."""

    key: Key
    labels: Mapping[str, str]
    usage: PodUsage | NodeUsage

    def metadata(self) -> Obj:
        metadata: Obj = {"name": self.key.name}
        if self.key.namespace:
            metadata["namespace"] = self.key.namespace
        metadata["creationTimestamp"] = times.written(self.usage.time)
        if self.labels:
            metadata["labels"] = dict(self.labels)
        return metadata

    def obj(self) -> Obj:
        """Return a ``PodMetrics`` or ``NodeMetrics``, without its type."""
        obj: Obj = {
            "metadata": self.metadata(),
            "timestamp": times.written(self.usage.time),
            "window": self.usage.window,
        }
        if isinstance(self.usage, PodUsage):
            obj["containers"] = [
                {"name": container.name, "usage": _usage(container.cpu, container.memory)}
                for container in self.usage.containers
            ]
        else:
            obj["usage"] = _usage(self.usage.cpu, self.usage.memory)
        return obj

    def row(self) -> Obj:
        """Return the row of a ``Table``."""
        usage = _usage(self.usage.cpu, self.usage.memory)
        return {
            "cells": [self.key.name, usage["cpu"], usage["memory"], self.usage.window],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": self.metadata(),
            },
        }


def _usage(cpu: int, memory: int) -> dict[str, str]:
    return {"cpu": f"{cpu}n", "memory": f"{memory // 1024}Ki"}


@dataclass(frozen=True, slots=True)
class _AskedObjects:
    """The objects that a request asks for.

    ``selector`` has the expressions of a label selector, ``fields`` the requirements of a field
    selector, see :func:`_field`.
    """

    plural: str
    key: Key
    selector: Sequence[Obj]
    fields: Sequence[tuple[str, bool, str]]

    @classmethod
    def of(cls, target: Target, query: str) -> "_AskedObjects":
        """Parse a path and its query.

        Raises:
            RefusedRequest: The query can't be parsed, or asks for a watch.
        """
        try:
            values = parse_qs(query, max_num_fields=100)
        except ValueError:
            raise RefusedRequest(400, "the query can't be read") from None
        given = {name: of_name[-1] for name, of_name in values.items()}
        if given.get("watch", "false").lower() not in ("false", "0"):
            raise RefusedRequest(405, f"{GROUP} can't be watched")

        terms = given.get("fieldSelector", "").split(",")
        fields = tuple(_field(term) for term in terms if term.strip())
        selector = tuple(_requirements(given.get("labelSelector", "")))
        return cls(target.plural, target.key, selector, fields)

    def names(self, key: Key) -> bool:
        """Return True if the path and the field selector match a key."""
        if self.key.name not in ("", key.name):
            return False
        if self.key.namespace not in ("", key.namespace):
            return False
        own = {"metadata.name": key.name, "metadata.namespace": key.namespace}
        return all((own[field] == value) is wanted for field, wanted, value in self.fields)

    def objects(self, found: Sequence[_Figures]) -> bytes:
        """Return the object if the path names one, else the list.

        Raises:
            RefusedRequest: The list would be too large.
        """
        kind = _KINDS[self.plural]
        if self.key.name:
            return codec.encode({"kind": kind, "apiVersion": VERSION, **found[0].obj()})

        first = f'{{"kind":"{kind}List","apiVersion":"{VERSION}","metadata":{{}},"items":['
        items = (codec.encode(figures.obj()) for figures in found)
        return pages.bounded(items, first=first.encode(), last=b"]}")

    def table(self, found: Sequence[_Figures]) -> bytes:
        """Return a ``Table`` for kubectl.

        Raises:
            RefusedRequest: The table would be too large.
        """
        columns = [
            {
                "name": name,
                "type": "string",
                "format": "name" * (name == "Name"),
                "description": "",
                "priority": 0,
            }
            for name in _COLUMNS
        ]
        head = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {},
            "columnDefinitions": columns,
        }
        first = codec.encode(head)[:-1] + b',"rows":['
        rows = (codec.encode(figures.row()) for figures in found)
        return pages.bounded(rows, first=first, last=b"]}")


def _listed(data: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return a list in JSON. Names of headers become lower case; names of users don't."""
    try:
        found = json.loads(data.get(name) or "[]")
    except ValueError:
        return ()
    if not isinstance(found, list):
        return ()
    if name.endswith("-names"):
        return tuple(map(str, found))
    return tuple(str(value).lower() for value in found)


def _field(term: str) -> tuple[str, bool, str]:
    """Parse a requirement of a field selector.

    Return the field, True if it must have the value, and the value.

    Raises:
        RefusedRequest: The requirement isn't about a supported field.
    """
    found = re.fullmatch(r"\s*(metadata\.name(?:space)?)\s*(==?|!=)\s*([^\s=!]*)\s*", term)
    if found is None:
        raise RefusedRequest(
            400,
            "the field selector can only be about metadata.name and metadata.namespace",
        )
    return found[1], found[2] != "!=", found[3]


def _requirements(text: str) -> Iterator[Obj]:
    """Parse a label selector, and yield its ``matchExpressions``.

    Raises:
        RefusedRequest: The text is no selector.
    """
    at = 0
    while at < len(text):
        found = _requirement(text, at)
        if found is None:
            raise RefusedRequest(400, "the label selector can't be read")
        at = found.end()
        if found["absent"]:
            yield {"key": found["none"], "operator": "DoesNotExist"}
        elif found["equals"]:
            operator = "NotIn" if found["equals"] == "!=" else "In"
            yield {"key": found["key"], "operator": operator, "values": [found["value"]]}
        elif found["set"]:
            operator = "In" if found["set"] == "in" else "NotIn"
            values = [each.strip() for each in found["values"].split(",")]
            yield {"key": found["key"], "operator": operator, "values": values}
        else:
            yield {"key": found["key"], "operator": "Exists"}


_GROUP_VERSION = {"groupVersion": VERSION, "version": VERSION.rpartition("/")[2]}
_API_GROUP: Obj = {"name": GROUP, "versions": [_GROUP_VERSION], "preferredVersion": _GROUP_VERSION}
#: The documents of discovery, by path.
_DISCOVERY: Mapping[str, Obj] = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_API_GROUP]},
    f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_API_GROUP},
    f"/apis/{VERSION}": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": VERSION,
        "resources": [
            {
                "name": plural,
                "singularName": "",
                "namespaced": plural == "pods",
                "kind": kind,
                "verbs": ["get", "list"],
            }
            for plural, kind in _KINDS.items()
        ],
    },
}
