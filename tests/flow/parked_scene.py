"""A host with an admission and a quota controlled by the test, so that writes are refused, and room
is made again.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from harness import HOME, NAMESPACE, Daemon, SyncerClass, Two, namespace
from rules_scene import USER, rights
from shop_scene import settled
from small_syncers import Maps as AllMaps

from syncer.api import Config, Context, Decision, Obj, skip
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap

#: What admission says to a request: its method, path and body; None lets it pass.
Admission = Callable[[str, str, Any], tuple[int, str] | None]


class Maps(AllMaps):
    """ConfigMaps, but for those that every namespace has."""

    def sync_down(self, ctx: Context[Config], virtual: Obj) -> Decision:
        if virtual["metadata"]["name"] == "kube-root-ca.crt":
            return skip("every namespace has one")
        return super().sync_down(ctx, virtual)


class Gate:
    """A transport with an admission of the test's own before the server."""

    def __init__(self, inner: Transport, server: "GatedServer") -> None:
        self._inner, self._server = inner, server

    async def send(self, request: HttpRequest) -> HttpResponse:
        body = json.loads(request.body) if request.body else None
        refusal = self._server.admission(request.method, request.path.partition("?")[0], body)
        if refusal is None:
            return await self._inner.send(request)
        await asyncio.sleep(self._server.delay)
        self._server.refused += 1
        status = {"kind": "Status", "code": refusal[0], "reason": "Forbidden", "message": refusal[1]}
        return HttpResponse(refusal[0], {}, json.dumps(status).encode())

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


class GatedServer(ApiServer):
    """A host with an admission by the test."""

    def __init__(self) -> None:
        super().__init__(seed="host", rbac=True)
        self.put(namespace(HOME))
        self.admission: Admission = open_to_all
        self.refused, self.delay = 0, 0.0

    def transport(self, user: Any = "admin") -> Any:
        return Gate(super().transport(user), self)

    def grant(self, *resources: str, verbs: Iterable[str] = ("*",), name: str = "r") -> None:
        """Give the daemon's user rights in its namespace."""
        for obj in rights(USER, *resources, verbs=verbs, name=name):
            self.put(obj)

    def limit(self, hard: int | None) -> None:
        """Let there be so many ConfigMaps, and the quota say so."""
        if hard is None:
            self.delete("resourcequotas", f"{HOME}/small")
            self.admission = open_to_all
            return
        numbers = {"hard": {"count/configmaps": str(hard)}, "used": {"count/configmaps": str(self.used())}}
        metadata = {"name": "small", "namespace": HOME}
        self.put({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": numbers})
        self.admission = self._quota

    def used(self) -> int:
        """Return how many ConfigMaps there are that count."""
        return sum(copy["metadata"]["name"] != "kube-root-ca.crt" for copy in self.objects("configmaps", HOME))

    def _quota(self, method: str, path: str, body: Any) -> tuple[int, str] | None:
        quota = self.get("resourcequotas", f"{HOME}/small") or {}
        hard, used = (int(quota["status"][part]["count/configmaps"]) for part in ("hard", "used"))
        if method != "POST" or not path.endswith("/configmaps"):
            return None
        if used < hard:
            self.put(merged(quota, {"status": {"used": {"count/configmaps": str(used + 1)}}}))
            return None
        return 403, (
            f'configmaps "{body["metadata"]["name"]}" is forbidden: exceeded quota: small, requested: '
            f"count/configmaps=1, used: count/configmaps={used}, limited: count/configmaps={hard}"
        )


class Gated(Two):
    """A virtual cluster, and a host with admission."""

    def __init__(self) -> None:
        super().__init__()
        self.host = self.gate = GatedServer()


def open_to_all(method: str, path: str, body: Any) -> None:
    """Let every request pass (an admission)."""


def refusing(code: int, refusal: str) -> Admission:
    """Return an admission that lets nothing be made."""
    return lambda method, path, body: (code, refusal) if method == "POST" else None


def denied(*names: str) -> Admission:
    """Return a webhook that refuses objects whose data says so, or of these names on the host."""

    def admission(method: str, path: str, body: Any) -> tuple[int, str] | None:
        bad = method in ("POST", "PATCH") and ((body or {}).get("data") or {}).get("color") == "red"
        if bad or (method == "POST" and body["metadata"]["name"] in names):
            return 403, 'admission webhook "colors.example.org" denied the request: not in this town'
        return None

    return admission


def warnings(two: Two, name: str = "x") -> list[str]:
    """Return the messages of the warnings about an object of the shop."""
    events = two.virtual.objects("events", NAMESPACE)
    return [each["message"] for each in events if each["involvedObject"]["name"] == name]


@contextlib.asynccontextmanager
async def without_room(two: Gated, *others: SyncerClass, user: str = "admin") -> AsyncIterator[Daemon]:
    """Yield a daemon that has found no room in the quota for ConfigMap x, and rests."""
    two.gate.limit(0)
    two.virtual.put(configmap("x"))
    async with settled(two.daemon([Maps, *others], user=user)) as daemon:
        yield daemon
