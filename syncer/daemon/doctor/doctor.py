"""The checks of a configuration and of everything that it needs. Nothing is written."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import NamedTuple

from syncer.api.errors import ConfigError, SyncerError
from syncer.api.objects import Obj, Side
from syncer.api.texts import shortened
from syncer.clusters.client import SideClient
from syncer.clusters.codec import DecodeError
from syncer.clusters.login import Login
from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.doctor.access import (
    AccessQuestion,
    check_rights,
    questions,
    subject_of,
    user_of,
)
from syncer.daemon.doctor.control_plane import check_control_plane
from syncer.daemon.doctor.diagnosis import (
    Diagnosis,
    DiagnosisState,
    error,
    ok,
    unknown,
    warning,
)
from syncer.daemon.doctor.host_namespaces import check_host_namespaces
from syncer.daemon.doctor.servers import check_server
from syncer.daemon.roles import clusters_of_secrets, daemon_roles, share_of
from syncer.daemon.runner import prepared
from syncer.daemon.start.connecting import connect_host, connect_virtual, login_of, login_to
from syncer.daemon.start.sides import warnings_of
from syncer.daemon.start.startup import untrusted
from syncer.observe.metrics import Metrics
from syncer.translate.times import utcnow
from syncer.version import VERSION

#: Virtual clusters that are checked at the same time.
CLUSTERS_AT_ONCE = 8

_KUBECONFIG = "Correct the kubeconfig; `syncer config validate` checks it alone."


async def examine(
    config: SyncerConfig,
    clusters: Sequence[VirtualCluster],
    *,
    chosen: str = "",
    now: Callable[[], datetime] = utcnow,
) -> list[Diagnosis]:
    """Check what the daemon needs to serve these virtual clusters, and return the results.

    Args:
        config: The configuration.
        clusters: The virtual clusters.
        chosen: The name of the only virtual cluster; ``""`` if these are all that are listed. Then
            the rights for those of Secrets are checked, too.
        now: Returns the time of this machine.
    """
    async with AsyncExitStack() as stack:
        metrics = Metrics(version=VERSION)
        served = list(clusters)
        namespaces = [cluster.secrets_namespace for cluster in clusters]
        if not chosen:
            served += clusters_of_secrets(config)
            namespaces += [each.namespace for each in config.virtual_cluster_secrets]

        found = _check_login("", Side.HOST, lambda: login_of(config.host), may_run_programs=True)
        host: SideClient | None = None
        subject = ""
        if not has_errors(found):
            host = connect_host(config, metrics, stack)
            checked = await check_server(host, "", now)
            found += checked.found
            if checked.answers:
                host = host.patient()
                subject = subject_of(await user_of(host))
                found += await _check_rights_of_daemon(
                    config, host, served, [each for each in namespaces if each], subject
                )
            else:
                host = None

        room = asyncio.Semaphore(CLUSTERS_AT_ONCE)

        async def check(cluster: VirtualCluster) -> list[Diagnosis]:
            results: list[Diagnosis] = []
            async with room, AsyncExitStack() as connections:
                try:
                    virtual = await _check_virtual(cluster, metrics, connections, now)
                    results += virtual.found
                    if host is not None:
                        results += await _check_cluster(
                            config, cluster, host, virtual.client, subject, now
                        )
                except Exception as failure:  # noqa: BLE001 — a tenant's server may answer anything
                    results.append(_unfinished(cluster.name, failure))
            return results

        for results in await asyncio.gather(*[check(cluster) for cluster in clusters]):
            found += results
        if host is not None and not chosen:
            found += await _check_secrets(config, host, subject)
        return found


def has_errors(found: Iterable[Diagnosis]) -> bool:
    """Return True if a check found what doesn't work."""
    return any(each.state is DiagnosisState.ERROR for each in found)


def _unfinished(name: str, failure: Exception) -> Diagnosis:
    """Return that the checks of a virtual cluster ended early; those of others go on."""
    message = shortened(f"they ended early: {type(failure).__name__}: {failure}")
    way_out = "See that its API server is one of Kubernetes; otherwise report this message."
    return unknown(name, "remaining checks", message, way_out)


class _Virtual(NamedTuple):
    """The results about a virtual API server, and its client, if it answers."""

    found: list[Diagnosis]
    client: SideClient | None


def _check_login(
    name: str, side: Side, read: Callable[[], Login], *, may_run_programs: bool
) -> list[Diagnosis]:
    """Check the login of a side; without a fault there is no result, as the connection has one."""
    check = f"kubeconfig of the {side} side"
    try:
        login = read()
        warnings = list(warnings_of(login, side, check, may_run_programs=may_run_programs))
    except ConfigError as failure:
        return [error(name, check, str(failure), _KUBECONFIG)]
    return [warning(name, check, each, "Mend it in the kubeconfig.") for each in warnings]


async def _check_virtual(
    cluster: VirtualCluster,
    metrics: Metrics,
    stack: AsyncExitStack,
    now: Callable[[], datetime],
) -> _Virtual:
    """Check the login to a virtual cluster, and its API server."""
    name = cluster.name
    may_run_programs = cluster.connection.may_run_programs
    try:
        client = connect_virtual(cluster, metrics, stack)
    except ConfigError as failure:
        check = f"kubeconfig of the {Side.VIRTUAL} side"
        return _Virtual([error(name, check, str(failure), _KUBECONFIG)], None)
    found = _check_login(
        name, Side.VIRTUAL, lambda: login_to(cluster), may_run_programs=may_run_programs
    )
    checked = await check_server(client, name, now)
    return _Virtual([*found, *checked.found], client.patient() if checked.answers else None)


async def _check_rights_of_daemon(
    config: SyncerConfig,
    host: SideClient,
    served: Iterable[VirtualCluster],
    secret_namespaces: Sequence[str],
    subject: str,
) -> list[Diagnosis]:
    """Check the rights that the daemon itself needs to serve these virtual clusters."""
    roles: dict[bool, list[Obj]] = {}
    for optional in (True, False):
        shares = [share_of(cluster, config, optional=optional) for cluster in served]
        roles[optional] = daemon_roles(config, shares, secret_namespaces=secret_namespaces)
    required = questions(roles[False])
    command = f"syncer rbac --side host --only daemon {subject}"
    return await check_rights(host, "", roles[True], required=set(required), command=command)


async def _check_secrets(config: SyncerConfig, host: SideClient, subject: str) -> list[Diagnosis]:
    """Check the rights for virtual clusters of Secrets, of which each is checked by its name."""
    found: list[Diagnosis] = []
    for cluster in clusters_of_secrets(config):
        share = share_of(cluster, config)
        required = _required(config, cluster, Side.HOST)
        roles = share.manifests()[Side.HOST]
        command = f"syncer rbac --side host --only cluster {subject}"
        found += await check_rights(host, cluster.name, roles, required=required, command=command)
        way_out = "Check each of them: syncer doctor --cluster NAME"
        message = f"those of Secrets in {cluster.secrets_namespace} are not checked here"
        found.append(unknown(cluster.name, "virtual clusters", message, way_out))
    return found


async def _check_cluster(
    config: SyncerConfig,
    cluster: VirtualCluster,
    host: SideClient,
    virtual: SideClient | None,
    subject: str,
    now: Callable[[], datetime],
) -> list[Diagnosis]:
    """Check what a virtual cluster needs on both sides; the host answers.

    Without ``virtual``, which doesn't, only the host is asked.
    """
    name = cluster.name
    settings = cluster.settings()
    share = share_of(cluster, config)
    subjects = {Side.HOST: subject}
    clients = {Side.HOST: host}
    if virtual is not None:
        clients[Side.VIRTUAL] = virtual
        subjects[Side.VIRTUAL] = subject_of(await user_of(virtual))

    found: list[Diagnosis] = []
    for side, client in clients.items():
        command = f"syncer rbac --side {side} --only cluster --cluster {name} {subjects[side]}"
        required = _required(config, cluster, side)
        roles = share.manifests()[side]
        found += await check_rights(client, name, roles, required=required, command=command)
    if virtual is not None:
        found += await _check_start(config, cluster)
        found += await check_control_plane(virtual, settings, now())
    command = f"syncer rbac --admission {subject} | kubectl apply -f -"
    found += await check_host_namespaces(host, settings, share, command)
    return found


def _required(config: SyncerConfig, cluster: VirtualCluster, side: Side) -> set[AccessQuestion]:
    """Return the rights on a side without which more than a convenience is missing."""
    return set(questions(share_of(cluster, config, optional=False).manifests()[side]))


async def _check_start(config: SyncerConfig, cluster: VirtualCluster) -> list[Diagnosis]:
    """Start a virtual cluster in a dry run, as a daemon does, and see which kinds it can sync."""
    name = cluster.name
    check = "start in a dry run"
    try:
        async with prepared(config, cluster, dry_run=True) as (process, pair):
            waiting = process.served[name].waiting()
            synced = sorted(pair.controllers)
            problem = await untrusted(pair.settings, login_to(cluster), process.host)
    except (SyncerError, DecodeError) as failure:
        way_out = "Do what the message says; `syncer run` ends, or waits, with the same one."
        return [error(name, check, str(failure), way_out)]

    found = [ok(name, check, f"the daemon can serve it; it syncs {', '.join(synced) or 'nothing'}")]
    for kind, reason in sorted(waiting.items()):
        way_out = "Install its CustomResourceDefinition there, or switch the kind off."
        found.append(error(name, f"kind {kind}", reason, way_out))
    if problem:
        way_out = "Add that name to the certificate of the virtual API server."
        found.append(warning(name, "API server of Pods", problem, way_out))
    return found
