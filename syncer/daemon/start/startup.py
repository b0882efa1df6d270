"""The start of a virtual cluster: the checks before anything is cached or written."""

import asyncio
from functools import partial

from syncer.api.context import Settings
from syncer.api.errors import ClusterError, ConfigError, Forbidden
from syncer.byte_budget import ByteBudget
from syncer.clusters.client import SideClient
from syncer.clusters.login import Login
from syncer.config import VirtualCluster
from syncer.daemon.process import Process
from syncer.daemon.served_cluster import ServedCluster
from syncer.daemon.start import api_server
from syncer.daemon.start.connecting import START_SECONDS, login_to
from syncer.daemon.start.sides import must_differ, namespace_problem
from syncer.directions import direction_of
from syncer.engine.controllers.pair import ClusterPair, Condition
from syncer.engine.reconcile.policies.contention import contention_rules
from syncer.engine.stores.identity import claim, must_be_claimed
from syncer.observe.logs import get_logger

#: Seconds between two checks of a missing host namespace, or a missing right.
AGAIN_SECONDS = 2.0

log = get_logger(__name__)


def add(
    process: Process,
    cluster: VirtualCluster,
    virtual: SideClient,
    *,
    budget: ByteBudget | None = None,
    work: ByteBudget | None = None,
) -> ServedCluster:
    """Add a virtual cluster to a process as it is configured.

    The limits of its memory are as in :meth:`.Process.add`.
    """
    return process.add(
        cluster.settings(),
        [(enabled.syncer, enabled.section) for enabled in cluster.enabled()],
        virtual=virtual,
        entries=cluster.custom_entries(),
        contention=contention_rules(cluster),
        weight=cluster.weight,
        budget=budget,
        work=work,
    )


async def prepare(served: ServedCluster, cluster: VirtualCluster, *, waits: bool = False) -> None:
    """Prepare a virtual cluster before its caches: reach it, check its identity, run discovery.

    The host has answered.

    With ``waits``, it waits for a missing host namespace, and for the right to store the identity:
    an operator may grant the daemon's rights last. No identity is stored before the host namespace
    is there, as its name may be misspelt.

    Raises:
        SyncerError: The cluster can't be reached or is not ours, its host namespace is missing, or
            a right.
    """
    pair = served.pair
    served.wait_for("the virtual cluster has given no answer yet")
    await served.connection.reach(START_SECONDS)
    served.wait_for("")
    virtual = pair.virtual.patient()
    host = served.host_at_start.patient()
    await must_differ(virtual, host, pair.settings)
    if await _has_waited(served, host, waits=waits):
        await must_differ(virtual, host, pair.settings)
    if api_server.is_needed(pair.settings):
        found = await api_server.find(pair.settings, login_to(cluster), host)
        pair.settings.api_server.put(found.host, found.port)
    await _claim(served, cluster, waits=waits)
    await served.prepare()


async def check_certificate(pair: ClusterPair, cluster: VirtualCluster) -> None:
    """Report if clients in pods don't trust the virtual API server at the address that they get."""
    address = pair.settings.api_server
    if not address.host:
        return
    log.info("pods reach their API server", cluster=pair.name, host=address.host, port=address.port)
    if problem := await api_server.certificate_problem(address, login_to(cluster)):
        pair.degrade("pods", Condition(problem, "clients in pods don't trust their API server"))
        log.warning(
            "clients in pods don't trust their API server",
            cluster=pair.name,
            error=problem,
        )


async def untrusted(settings: Settings, login: Login, host: SideClient) -> str:
    """Return why clients in pods don't trust their API server; ``""`` if they do, or there are no
    pods.

    Raises:
        ConfigError: It has no address that pods can reach.
    """
    if not api_server.is_needed(settings):
        return ""
    try:
        return await api_server.certificate_problem(
            await api_server.find(settings, login, host),
            login,
        )
    except ClusterError as error:
        return f"the address of its API server can't be read: {error}"


async def _has_waited(served: ServedCluster, host: SideClient, *, waits: bool) -> bool:
    """Wait for the host namespace. Return True if it wasn't there at once.

    Raises:
        ConfigError: It isn't there, and is not to be waited for.
    """
    waited = False
    while problem := await namespace_problem(host, served.pair.settings):
        if not waits:
            raise ConfigError(problem)
        if not waited:
            log.warning("waiting for the host namespace", cluster=served.name, error=str(problem))
        waited = True
        served.wait_for("the host namespace isn't there, or the daemon may not read it")
        await asyncio.sleep(AGAIN_SECONDS)
    served.wait_for("")
    return waited


async def _claim(served: ServedCluster, cluster: VirtualCluster, *, waits: bool) -> None:
    """Store or compare the identity of a virtual cluster.

    A process that doesn't lead stores it, too: all store the same.

    Raises:
        Forbidden: A right is missing, and is not to be waited for.
        ConfigError: The stored identity differs.
    """
    syncers = [enabled.syncer for enabled in cluster.enabled()]
    copied = [syncer for syncer in syncers if direction_of(syncer).goes_down]
    translator = cluster.names.translator
    pair = served.pair
    virtual = served.connection.cluster.patient()
    while True:
        try:
            await claim(
                virtual,
                pair.settings,
                translator=translator,
                host=pair.host.patient(),
                copied=copied,
            )
        except Forbidden as error:
            if not waits:
                raise
            if not served.wait_for("a right that the start needs is missing"):
                log.warning("waiting for a right", cluster=pair.name, error=str(error))
            await asyncio.sleep(AGAIN_SECONDS)
        else:
            served.wait_for("")
            pair.applier.claim.check = partial(
                must_be_claimed,
                pair.virtual,
                pair.settings,
                translator=translator,
            )
            return
