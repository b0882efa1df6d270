"""Two clusters with objects of every kind that a daemon makes, and of every kind that isn't its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from custom_scene import (
    CERTIFICATES,
    CLUSTER_ISSUERS,
    PUBLIC,
    cert_manager,
    certificate,
    custom,
    example,
    issue,
    there,
)
from harness import (
    ALL,
    CLUSTER,
    HOME,
    NAMESPACE,
    Daemon,
    Two,
    admin,
    between,
    built_in,
    configured,
    host_path,
    until,
    writes,
)
from harness import Tenant as Served

from hack.side_tasks import helped_by
from syncer.api import Key, Side
from syncer.clusters.client import SideClient
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport
from syncer.config import SyncerConfig
from syncer.daemon.fleet.leadership import leading
from syncer.daemon.uninstall.uninstall import UninstallReport, uninstall
from syncer.engine.stores.identity import claim
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, crd, event, pod_mounting, secret, service

GADGETS = "gadgets.example.com"
LABEL = "vsyncer.dev/cluster"
IDENTITY = f"{CLUSTER}.{HOME}"
MARKED = {"metadata": {"labels": {LABEL: IDENTITY}}}
ELECTING = {"leaderElection_enabled": True}
#: Where the Leases are, and the note in the virtual cluster that says whose it is.
LEASES, NOTE = "leases.coordination.k8s.io", "kube-system/vsyncer"

#: Every kind that the scene has anything of.
PLURALS = (
    *("pods", "services", "configmaps", "secrets", "serviceaccounts", "nodes", "events", "namespaces"),
    *(LEASES, "customresourcedefinitions.apiextensions.k8s.io", "endpoints"),
    *(CERTIFICATES, CLUSTER_ISSUERS, "issuers.cert-manager.io", GADGETS),
)

#: Objects by kind and key, each with its uid and version.
Contents = Mapping[tuple[str, str], tuple[str, str]]
#: The same, of the virtual side and of the host.
Both = tuple[Contents, Contents]


def config(**options: Any) -> SyncerConfig:
    """Return the example of cert-manager, which has something in every direction; options by path,
    with ``_`` for dots. There is no DNS Service, so that Pods have no Event about that.
    """
    by_path = {path.replace("_", "."): value for path, value in options.items()}
    return example("cert-manager", **{"networking.dns.service": ""}, **by_path)


def only(two: Two, *syncers: str) -> SyncerConfig:
    """Return a configuration of a few built-in syncers, for all that there is."""
    return configured(Served(two.virtual, options=ALL), built_in(*syncers))


def contents(server: ApiServer) -> Contents:
    """Return all that a server has."""
    found = {}
    for plural in PLURALS:
        try:
            objects = server.objects(plural)
        except KeyError:
            continue
        for obj in objects:
            metadata = obj["metadata"]
            key = str(Key(metadata.get("namespace", ""), metadata["name"]))
            found[plural, key] = (metadata["uid"], metadata["resourceVersion"])
    return found


def both(two: Two) -> Both:
    """Return all that both sides have."""
    return contents(two.virtual), contents(two.host)


def tenants_own(two: Two) -> None:
    """Return objects of a tenant; some look like ours."""
    two.virtual.put(configmap("color"))
    two.virtual.put(secret("db"))
    two.virtual.put(pod_mounting("web", secret="db", configmap="color"))
    two.virtual.put(service("web"))
    two.virtual.put(certificate())
    two.virtual.put(merged(configmap("forged"), MARKED))
    two.virtual.put(merged(secret("forged"), MARKED))


def hosts_own(two: Two) -> None:
    """Return host objects that aren't ours; some look like ours."""
    two.host.put(configmap("plain", namespace=HOME))
    two.host.put(merged(configmap("labelled", namespace=HOME), MARKED))
    two.host.put(custom(CLUSTER_ISSUERS, "le", namespace="", **merged(PUBLIC, {"spec": {"acme": {}}})))
    two.host.put(merged(crd(GADGETS), PUBLIC))


def copied_again(two: Two) -> None:
    """Return objects that a host controller makes from our copies, marks included: another name, or another kind."""
    copy = there(two.host, "configmaps", host_path("color"))
    marks = {part: copy["metadata"][part] for part in ("labels", "annotations")}
    two.host.put(configmap("copy-of-copy", namespace=HOME, metadata=marks))
    two.host.put(secret(host_path("color").partition("/")[2], namespace=HOME, metadata=marks))


async def claimed(two: Two, given: SyncerConfig) -> None:
    """Leave the note in the virtual cluster, as a daemon does at its start."""
    await claim(
        admin(two.virtual, Side.VIRTUAL),
        given.cluster().settings(),
        translator=given.names.translator,
        host=admin(two.host, Side.HOST),
        copied=(),
    )


@contextlib.asynccontextmanager
async def working(two: Two, given: SyncerConfig, reached: Callable[[], object]) -> AsyncIterator[Daemon]:
    """Yield a daemon that has come to where something holds, and to rest."""
    async with between(two.host, [(given, two.virtual)]) as daemon:
        await until(reached)
        await daemon.settled()
        yield daemon


async def worked(two: Two, given: SyncerConfig, reached: Callable[[], object]) -> None:
    """Let a daemon come to where something holds, and to rest, and end."""
    async with working(two, given, reached):
        """No longer than that."""


async def run_daemon(two: Two, given: SyncerConfig) -> None:
    """Let a daemon do all its work, with the host's own controllers doing theirs."""
    await claimed(two, given)
    async with between(two.host, [(given, two.virtual)]) as daemon:
        await until(lambda: two.copy("pods", "web") and two.copy(CERTIFICATES, "db"))
        issue(two, there(two.host, CERTIFICATES, host_path("db")))
        copy = there(two.host, "pods", host_path("web"))
        two.host.put(merged(copy, {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}))
        two.host.put(event("web.1", about=there(two.host, "pods", host_path("web"))))
        await until(lambda: two.virtual.get(CLUSTER_ISSUERS, "le") and two.virtual.get("nodes", "n1"))
        await until(lambda: two.original("secrets", "db-tls") and two.original("events", "web.1"))
        await until(lambda: two.virtual.get("customresourcedefinitions.apiextensions.k8s.io", GADGETS))
        await daemon.settled()


async def another_tenants(two: Two) -> None:
    """Another virtual cluster's copies, in the same host namespace."""
    server = ApiServer(seed="another")
    server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    server.put(configmap("color"))
    given = configured(Served(server, "another", HOME, {"configMaps": {"all": True}}), built_in("configmaps"))
    async with between(two.host, [(given, server)]) as daemon:
        await until(lambda: two.host.get("configmaps", host_path("color", "another")))
        await daemon.settled()


async def synced(two: Two, given: SyncerConfig) -> Both:
    """Everything there is, and no daemon any more; gives what isn't ours, on the virtual side and on the host."""
    cert_manager(two)
    hosts_own(two)
    tenants_own(two)
    await another_tenants(two)
    names = set(contents(two.virtual)), set(contents(two.host))
    await run_daemon(two, given)
    if given.leader_election.enabled:
        async with leading(admin(two.host, Side.HOST), given, ()):
            """As the daemon did."""
    copied_again(two)
    secrets = {
        ("secrets", host_path("db-tls")),
        ("secrets", host_path("color")),
        ("configmaps", f"{HOME}/copy-of-copy"),
    }
    kept_host = names[1] | secrets | {("events", f"{HOME}/web.1")}
    virtual, host = both(two)
    return {one: virtual[one] for one in names[0]}, {one: host[one] for one in kept_host}


def clusters(two: Two, user: str = "admin") -> Mapping[Side, SideClient]:
    """Clients of both sides."""
    return {
        Side.VIRTUAL: SideClient(CLUSTER, Side.VIRTUAL, two.virtual.transport(user)),
        Side.HOST: SideClient("host", Side.HOST, two.host.transport(user)),
    }


async def planned(two: Two, given: SyncerConfig, *, keep: bool = False, user: str = "admin") -> UninstallReport:
    """Return the plan of an uninstall."""
    return await uninstall(given, given.cluster(), clusters(two, user), yes=False, keep=keep)


async def kubelet(two: Two) -> None:
    """End deleted Pods on the host after some seconds."""
    while True:
        await asyncio.sleep(3)
        for pod in two.host.objects("pods"):
            if "deletionTimestamp" in pod["metadata"]:
                two.host.delete("pods", f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")


async def uninstalled(
    two: Two, given: SyncerConfig, *, keep: bool = False, using: Mapping[Side, SideClient] | None = None
) -> UninstallReport:
    """Uninstall, with a kubelet on the host."""
    async with helped_by(kubelet(two)):
        return await uninstall(given, given.cluster(), using or clusters(two), yes=True, keep=keep)


def now(two: Two) -> tuple[int, int]:
    """Return how many requests both sides have been sent."""
    return len(two.virtual.requests), len(two.host.requests)


def sent(two: Two, since: tuple[int, int] = (0, 0)) -> tuple[list[str], list[str]]:
    """Return the changes that both sides were asked for."""
    return writes(two.virtual, since[0], events=True), writes(two.host, since[1], events=True)


def marked(server: ApiServer) -> set[tuple[str, str]]:
    """Everything with a label or an annotation of ours."""
    found = set()
    for plural, key in contents(server):
        metadata = (server.get(plural, key) or {})["metadata"]
        names = {*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})}
        if any(name.startswith("vsyncer.dev/") for name in names):
            found.add((plural, key))
    return found


class Death:
    """Comes at the write of a number, from 0, on either side; ``after`` the server has made it."""

    def __init__(self, number: int, *, after: bool) -> None:
        self.writes, self.came = 0, asyncio.Event()
        self.number, self.after = number, after

    async def end(self) -> None:
        """Never return: the dead do nothing more."""
        self.came.set()
        await asyncio.Event().wait()


class Mortal:
    """A transport whose user is killed at a write: before it goes out, or when it has been made and not answered."""

    def __init__(self, inner: Transport, death: Death) -> None:
        self._inner, self._death = inner, death

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Let a request through, unless it has come to that."""
        death, is_write = self._death, request.method != "GET"
        mine = is_write and death.writes == death.number
        death.writes += is_write
        if death.came.is_set() or (mine and not death.after):
            await death.end()
        response = await self._inner.send(request)
        if mine or death.came.is_set():
            await death.end()
        return response

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Open a watch."""
        return self._inner.stream(request)

    async def close(self) -> None:
        """End all connections."""
        await self._inner.close()


async def killed(two: Two, given: SyncerConfig, death: Death, *, keep: bool) -> bool:
    """Drain until it is killed; whether it was, and didn't end before."""
    using = {side: cluster.over(Mortal(cluster.transport, death)) for side, cluster in clusters(two).items()}
    removing = asyncio.create_task(uninstalled(two, given, keep=keep, using=using))
    dying = asyncio.create_task(death.came.wait())
    await asyncio.wait({removing, dying}, return_when=asyncio.FIRST_COMPLETED)
    was = not removing.done()
    for task in (removing, dying):
        task.cancel()
    await asyncio.wait({removing, dying})
    if not removing.cancelled():
        removing.result()
    return was
