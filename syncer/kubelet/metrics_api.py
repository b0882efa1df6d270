"""``metrics.k8s.io`` in a virtual cluster: its API server passes requests on, in the name of their
users.

How an aggregated API server trusts the one in front of it: kubernetes.io, "Configure the
Aggregation Layer". What it
answers: ``k8s.io/metrics/pkg/apis/metrics/v1beta1``, as metrics-server does.
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
from syncer.kubelet.users import User, Users
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
    """Those who may say in whose name they ask: the ``requestheader`` settings of an API server, as
    it publishes them in :data:`CLIENT_CA`.
    """

    def __init__(self, data: Mapping[str, str]) -> None:
        #: The CA of their certificates, PEM; empty if there is none, so that nobody may.
        self.ca = data.get("requestheader-client-ca-file", "").encode()
        self._names = _listed(data, "requestheader-allowed-names")
        self._users = _listed(data, "requestheader-username-headers")
        self._groups = _listed(data, "requestheader-group-headers")
        self._uids = _listed(data, "requestheader-uid-headers")
        self._extra = _listed(data, "requestheader-extra-headers-prefix")

    def user(self, certificate: Mapping[str, Any] | None, head: MessageHead) -> User:
        """Return the user in whose name a request is sent.

        Raises:
            Refused: The sender may not say so, or doesn't.
        """
        subject = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
        names = [value for key, value in subject if key == "commonName"]
        if certificate is None or (self._names and (not names or names[-1] not in self._names)):
            raise RefusedRequest(401, "Unauthorized")
        name = next((value for header in self._users if (value := head.get(header))), "")
        if not name:
            raise RefusedRequest(401, "Unauthorized")
        groups = tuple(value for key, value in head.only(self._groups))
        uid = next((value for header in self._uids if (value := head.get(header))), "")
        extra: dict[str, list[str]] = {}
        for key, value in head.lines:
            for prefix in self._extra:
                if key.startswith(prefix):
                    extra.setdefault(unquote(key.removeprefix(prefix)).lower(), []).append(value)
        return User(name, groups, uid, extra)


class MetricsApi:
    """Answers requests that a virtual API server passes on.

    ``labels`` returns those of a virtual object of a kind.
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
        #: Whom it trusts.
        self.front = FrontProxy({})

    def trust(self, front: FrontProxy) -> None:
        """Accept the users that another front proxy names from now on."""
        self.front = front

    async def answer(
        self,
        certificate: Mapping[str, Any] | None,
        head: MessageHead,
    ) -> tuple[int, bytes]:
        """Return status and body of the answer to a request."""
        try:
            return 200, await self._answer(self.front.user(certificate, head), head)
        except RefusedRequest as refused:
            return refused.status, codec.encode(
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": refused.text,
                    "reason": _REASONS.get(refused.status, ""),
                    "code": refused.status,
                },
            )

    async def _answer(self, user: User, head: MessageHead) -> bytes:
        path, _, query = head.target.partition("?")
        if head.method != "GET":
            raise RefusedRequest(405, f"{GROUP} can only be read")
        if document := _DISCOVERY.get(path.rstrip("/")):
            return codec.encode(document)
        target = Target.of(path)
        if target is None or target.root != f"/apis/{VERSION}" or target.plural not in _KINDS or target.subresource:
            raise RefusedRequest(404, "the server could not find the requested resource")
        asked = _Asked.of(target, query)
        attributes = {
            "verb": "get" if target.key.name else "list",
            "group": GROUP,
            "version": VERSION.rpartition("/")[2],
            "resource": target.plural,
            "namespace": target.key.namespace,
            "name": target.key.name,
        }
        if not await self._users.may(
            user,
            **{name: value for name, value in attributes.items() if value},
        ):
            what = f'User "{user.name}" cannot {attributes["verb"]} resource "{target.plural}" in API group "{GROUP}"'
            raise RefusedRequest(403, f"{target.plural}.{GROUP} is forbidden: {what}")
        found = [each async for each in self._found(asked)]
        if target.key.name and not found:
            raise RefusedRequest(404, f'{target.plural}.{GROUP} "{target.key.name}" not found')
        return asked.table(found) if "as=Table" in head.get("accept") else asked.objects(found)

    async def _found(self, asked: "_Asked") -> AsyncIterator["_Figures"]:
        """Yield the figures of the objects that are asked for, by name."""
        all_of_them: Mapping[Key, PodUsage | NodeUsage]
        if asked.plural == "pods":
            all_of_them = await self._usages.pods()
        else:
            all_of_them = {Key("", name): usage for name, usage in (await self._usages.nodes()).items()}
        for number, key in enumerate(sorted(all_of_them)):
            if not asked.names(key):
                continue
            if number % STEP_OBJECTS == STEP_OBJECTS - 1:
                await asyncio.sleep(0)
            labels = self._labels(asked.plural, key)
            if matches({"matchExpressions": asked.selector}, labels):
                yield _Figures(key, labels, all_of_them[key])


@dataclass(frozen=True, slots=True)
class _Figures:
    """The figures of an object."""

    key: Key
    labels: Mapping[str, str]
    usage: PodUsage | NodeUsage

    def metadata(self) -> Obj:
        space = {"namespace": self.key.namespace} if self.key.namespace else {}
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {
            "name": self.key.name,
            **space,
            "creationTimestamp": times.written(self.usage.time),
            **labels,
        }

    def obj(self) -> Obj:
        found = {
            "metadata": self.metadata(),
            "timestamp": times.written(self.usage.time),
            "window": self.usage.window,
        }
        if isinstance(self.usage, PodUsage):
            each = [{"name": one.name, "usage": _usage(one.cpu, one.memory)} for one in self.usage.containers]
            return {**found, "containers": each}
        return {**found, "usage": _usage(self.usage.cpu, self.usage.memory)}

    def row(self) -> Obj:
        usage = _usage(self.usage.cpu, self.usage.memory)
        cells = [self.key.name, usage["cpu"], usage["memory"], self.usage.window]
        kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        return {"cells": cells, "object": {**kind, "metadata": self.metadata()}}


def _usage(cpu: int, memory: int) -> dict[str, str]:
    return {"cpu": f"{cpu}n", "memory": f"{memory // 1024}Ki"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The objects that a request is about."""

    plural: str
    key: Key
    selector: Sequence[Obj]
    fields: Sequence[tuple[str, bool, str]]

    @classmethod
    def of(cls, target: Target, query: str) -> "_Asked":
        """Return the objects that a path and query name.

        Raises:
            Refused: They can't be understood, or a watch is asked for.
        """
        try:
            given = {name: values[-1] for name, values in parse_qs(query, max_num_fields=100).items()}
        except ValueError:
            raise RefusedRequest(400, "the query can't be read") from None
        if given.get("watch", "false").lower() not in ("false", "0"):
            raise RefusedRequest(405, f"{GROUP} can't be watched")
        fields = tuple(_field(term) for term in given.get("fieldSelector", "").split(",") if term.strip())
        return cls(
            target.plural,
            target.key,
            tuple(_requirements(given.get("labelSelector", ""))),
            fields,
        )

    def names(self, key: Key) -> bool:
        """Return True if an object of this key is meant, whatever its labels."""
        if self.key.name not in ("", key.name) or self.key.namespace not in ("", key.namespace):
            return False
        own = {"metadata.name": key.name, "metadata.namespace": key.namespace}
        return all((own[field] == value) is wanted for field, wanted, value in self.fields)

    def objects(self, found: Sequence[_Figures]) -> bytes:
        """Return the object, or the list."""
        kind = _KINDS[self.plural]
        if self.key.name:
            return codec.encode({"kind": kind, "apiVersion": VERSION, **found[0].obj()})
        first = f'{{"kind":"{kind}List","apiVersion":"{VERSION}","metadata":{{}},"items":['.encode()
        return pages.bounded((codec.encode(each.obj()) for each in found), first=first, last=b"]}")

    def table(self, found: Sequence[_Figures]) -> bytes:
        """Return a ``Table`` for kubectl."""
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
        return pages.bounded((codec.encode(each.row()) for each in found), first=first, last=b"]}")


def _listed(data: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return a list in JSON; header names are compared in lower case, and names of users as they
    are.
    """
    try:
        found = json.loads(data.get(name) or "[]")
    except ValueError:
        return ()
    values = tuple(map(str, found)) if isinstance(found, list) else ()
    return values if name.endswith("-names") else tuple(map(str.lower, values))


def _field(term: str) -> tuple[str, bool, str]:
    """Return a requirement of a field selector: the field, True if it must have the value, the
    value.
    """
    found = re.fullmatch(r"\s*(metadata\.name(?:space)?)\s*(==?|!=)\s*([^\s=!]*)\s*", term)
    if found is None:
        raise RefusedRequest(
            400,
            "the field selector can only be about metadata.name and metadata.namespace",
        )
    return found[1], found[2] != "!=", found[3]


def _requirements(text: str) -> Iterator[Obj]:
    """Yield the expressions of a label selector's text."""
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
            values = [each.strip() for each in found["values"].split(",")]
            yield {
                "key": found["key"],
                "operator": "In" if found["set"] == "in" else "NotIn",
                "values": values,
            }
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
