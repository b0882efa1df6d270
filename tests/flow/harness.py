"""Two API servers and the syncers' process between them, all in this process and in virtual time."""

import asyncio
import contextlib
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Protocol, cast

from sampled import config_model, registry, sync_of

from hack.side_tasks import helped_by
from kube_envtest import EPOCH, Logged, virtual_time
from syncer.api import Key, Obj, Side, Syncer
from syncer.clusters.client import SideClient
from syncer.clusters.transport import Transport
from syncer.config import SyncerConfig
from syncer.daemon.pages.status import settle
from syncer.daemon.process import Process
from syncer.daemon.served_cluster import ServedCluster
from syncer.engine.controllers.request_status import RequestStatus
from syncer.engine.reconcile.policies.contention import contention_rules
from syncer.leaderelection.lease import Lease
from syncer.observe.metrics import Metrics
from syncer.testing import ApiServer
from syncer.testing.merge import merged

CLUSTER, HOME, NAMESPACE = "vc", "vc-ns", "shop"

#: Verbs that change something.
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
#: Paths by which the daemon asks each API server whether it answers, and accepts the credentials.
PROBES = frozenset({"/readyz", "/api"})
#: Everything that there is, whether or not a Pod uses it.
ALL: Mapping[str, Any] = {"configMaps": {"all": True}, "secrets": {"all": True}}

SyncerClass = type[Syncer]


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario in virtual time, for some hours of it at most; a test that is a coroutine runs so by itself."""
    virtual_time.run(bounded(scenario()))


async def bounded(scenario: Coroutine[Any, Any, None]) -> None:
    """Await a scenario, for some hours at most.

    Raises:
        TimeoutError: It takes longer.
    """
    async with asyncio.timeout(10_000):
        await scenario


def built_in(*names: str) -> list[SyncerClass]:
    """Return the built-in syncers of these names, and those of a package given to hack/kind; all
    where none is named.
    """
    return [syncer for syncer in registry() if not names or syncer.name in names]


def host_path(name: str, cluster: str = CLUSTER, home: str = HOME) -> str:
    """Return the host key of the copy of a namespaced object of the shop, as ``namespace/name``."""
    return f"{home}/{name}-x-{NAMESPACE}-x-{cluster}"


class Reachable(Protocol):
    """An API server, or what stands between it and a daemon."""

    def transport(self, user: str) -> Transport:
        """Return the way to it, as this user."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A virtual cluster for a process to serve."""

    server: ApiServer
    cluster: str = CLUSTER
    home: str = HOME
    options: Mapping[str, Any] | None = None


class Two:
    """A virtual and a host API server; daemons can be started between them, one after the other or side by side."""

    def __init__(self, *, rbac: bool = False) -> None:
        self.virtual, self.host = ApiServer(seed="virtual"), ApiServer(seed="host", rbac=rbac)
        self.host.put(namespace(HOME))
        self.virtual.put(namespace(NAMESPACE))

    @contextlib.asynccontextmanager
    async def daemon(
        self,
        syncers: Iterable[SyncerClass] | None = None,
        *,
        options: Mapping[str, Any] = ALL,
        user: str = "admin",
        workers: int = 8,
    ) -> AsyncIterator["Daemon"]:
        """Yield a daemon with these syncers (None: all built-in ones) that runs while the block does."""
        tenants = [Tenant(self.virtual, options=options)]
        async with serving(self.host, tenants, syncers, user=user, workers=workers) as daemon:
            yield daemon

    @contextlib.asynccontextmanager
    async def candidate(self, syncers: Iterable[SyncerClass], user: str) -> AsyncIterator["Daemon"]:
        """Yield a daemon that works only while it leads, and reaches the host as this user."""

        def lease(host: SideClient) -> Lease:
            return Lease(host, key=Key(HOME, "vsyncer"), identity=user, duration=15, renew_deadline=10, retry_period=2)

        tenants = [Tenant(self.virtual, options=ALL)]
        async with serving(self.host, tenants, syncers, user=user, lease=lease) as daemon:
            yield daemon

    def leader(self) -> str:
        """Return the holder of the Lease."""
        lease = self.host.get("leases.coordination.k8s.io", f"{HOME}/vsyncer")
        return str(lease["spec"].get("holderIdentity") or "") if lease else ""

    def copy(self, plural: str, name: str) -> Obj | None:
        """Return the host copy of an object of the shop."""
        return self.host.get(plural, host_path(name))

    def original(self, plural: str, name: str) -> Obj | None:
        """Return the virtual object of this name in the shop."""
        return self.virtual.get(plural, f"{NAMESPACE}/{name}")


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process that runs."""

    process: Process
    working: "asyncio.Task[None]"

    async def settled(self, *, patience: float = 5.0) -> None:
        """Wait until both sides are in step, or nothing more will become of what isn't."""
        async with asyncio.timeout(200 + patience):
            await settle(self.process, patience=patience)

    def status(self, name: str, syncer: str = "configmaps") -> RequestStatus | None:
        """Return how the request about an object of the shop stands; None: in step."""
        found = [self.process.statuses.of(request) for request in self.requests(syncer) if request.key.name == name]
        return found[0] if found else None

    def requests(self, syncer: str) -> list[Any]:
        """Return the requests of a syncer that are not in step."""
        statuses = self.process.statuses
        return [request for request, _ in statuses.unfinished() if request.syncer == syncer]

    async def kill(self) -> None:
        """Let nothing more go out from it, as after SIGKILL; what is under way may still be done."""
        await self.process.host.close()
        for pair in self.process.pairs.values():
            await pair.virtual.close()

    def wrote(self) -> Mapping[tuple[str, str, str, str], int]:
        """Changes made, by virtual cluster, syncer, side and verb."""
        return dict(self.process.statuses.done)


def connected(daemon: Daemon, cluster: str = CLUSTER) -> ServedCluster:
    """Return a virtual cluster with connections for a kubelet's server, which relay nothing."""
    served = daemon.process.served[cluster]
    for side in (served.pair.virtual, served.pair.host):
        side.dialer = cast("Any", SimpleNamespace(endpoint=SimpleNamespace(proxy=None)))
    return served


@contextlib.asynccontextmanager
async def serving(
    host: ApiServer,
    tenants: Iterable[Tenant],
    syncers: Iterable[SyncerClass] | None = None,
    *,
    user: str = "admin",
    workers: int = 8,
    lease: Callable[[SideClient], Lease] | None = None,
) -> AsyncIterator[Daemon]:
    """One process for several virtual clusters, which works while it holds the Lease, if there is one."""
    served = [(configured(tenant, syncers), tenant.server) for tenant in tenants]
    async with between(host, served, user=user, workers=workers, lease=lease) as daemon:
        yield daemon


@contextlib.asynccontextmanager
async def between(
    host: Reachable,
    served: Iterable[tuple[SyncerConfig, Reachable]],
    *,
    user: str = "admin",
    tenant: str = "admin",
    workers: int = 8,
    lease: Callable[[SideClient], Lease] | None = None,
) -> AsyncIterator[Daemon]:
    """Yield a process with these configurations; ``user`` is who it is on the host, ``tenant`` in
    the virtual clusters.
    """
    here = SideClient("host", Side.HOST, host.transport(user))
    elected = lease(here) if lease else None
    process = Process(
        host=here,
        metrics=Metrics(version="test"),
        workers=workers,
        until=lambda cluster: elected.until if elected else math.inf,
        utcnow=utcnow,
        rng=random.Random("engine"),
    )
    for config, server in served:
        add(process, config, server, user=tenant)
    await process.prepare()
    doing = elected.lead(process.work) if elected else process.work()
    async with process.running(), helped_by(doing) as [working]:
        try:
            yield Daemon(process, working)
        finally:
            process.queue.close()


def add(process: Process, config: SyncerConfig, server: Reachable, *, user: str = "admin") -> None:
    """Let a process serve a virtual cluster."""
    cluster = config.cluster()
    process.add(
        cluster.settings(),
        [(each.syncer, each.section) for each in cluster.enabled()],
        virtual=SideClient(cluster.name, Side.VIRTUAL, server.transport(user)),
        entries=cluster.custom_entries(),
        contention=contention_rules(cluster),
    )


def configured(tenant: Tenant, syncers: Iterable[SyncerClass] | None = None) -> SyncerConfig:
    """Return the configuration for a tenant, with what the samples need besides that goes to the host."""
    model = config_model(built_in() if syncers is None else syncers)
    given = {"cluster": tenant.cluster, "host": {"namespace": tenant.home}}
    wanted = sync_of() | {"toHost": tenant.options or {}}
    return model.model_validate(merged(given, {"sync": _known(model, wanted)}))


def _known(model: type[Any], sync: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the options of those syncers that are there, by direction."""
    sections = model.model_validate({"cluster": "x", "host": {"namespace": "y"}}).model_dump(by_alias=True)["sync"]
    return {
        direction: {name: value for name, value in options.items() if name in sections.get(direction, {})}
        for direction, options in sync.items()
    }


def utcnow() -> datetime:
    """Return the servers' time: virtual, from their epoch on."""
    return datetime.fromtimestamp(EPOCH + asyncio.get_running_loop().time(), UTC)


def namespace(name: str) -> Obj:
    """Return a namespace as the servers keep it."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}}


def writes(server: ApiServer, since: int = 0, *, events: bool = False) -> list[str]:
    """Return the changing requests that a server was sent, as ``verb path``; Events are left out
    unless asked for, and so is what stores nothing.
    """
    return [
        f"{one.verb} {one.path}"
        for one in list(server.requests)[since:]
        if one.verb in WRITES and (events or one.resource != "events") and not is_question(one)
    ]


def is_question(request: Logged) -> bool:
    """Return True for a dry run, and for a review of rights."""
    return request.dry_run or request.resource.endswith("reviews")


def verbs(server: ApiServer, since: int = 0) -> Counter[str]:
    """Return how many requests of each verb a server was sent, besides probes."""
    return Counter(one.verb for one in asked(server, since))


def asked(server: ApiServer, since: int = 0) -> list[Logged]:
    """Return the requests that a server was sent, besides the probes that come every ten seconds."""
    return [one for one in list(server.requests)[since:] if one.path not in PROBES]


def admin(server: ApiServer, side: Side) -> SideClient:
    """Return a client for what people do by hand."""
    return SideClient(side.value, side, server.transport())


async def until(reached: Callable[[], object], *, within: float = 60.0) -> float:
    """Wait in virtual time until something holds; gives how many seconds it took, fails after ``within``."""
    start = asyncio.get_running_loop().time()
    while not reached():
        taken = asyncio.get_running_loop().time() - start
        assert taken < within, f"not reached within {within:g} s"
        await asyncio.sleep(0.01)
    return asyncio.get_running_loop().time() - start


def crd(plural: str) -> Obj:
    """Return the definition of a namespaced custom resource with a status of its own that takes anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
        "subresources": {"status": {}},
    }
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].capitalize()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(name: str, **parts: Any) -> Obj:
    """Return a custom object in the shop."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": metadata, **parts}
