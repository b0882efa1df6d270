"""Uninstall: remove everything that we made on both sides, or only our marks, so that nothing is
left to sync.

Marks alone tell which objects are ours, so an interrupted uninstall is finished by running it
again. The identity in the virtual cluster is deleted after everything else, and then the Lease.

All that is on the virtual side is the tenant's to change, and can be made to fail. So the host side
can be removed alone, or first, where the virtual cluster is to go anyway.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from syncer.api.errors import ClusterError, Conflict, Forbidden, NotFound, SyncerError
from syncer.api.objects import Key, Obj, Side
from syncer.clusters.client import SideClient
from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.fleet.leadership import alone_with
from syncer.daemon.uninstall.containers import others_in
from syncer.daemon.uninstall.inventory import Inventory, Item, Lister, Recognition
from syncer.daemon.uninstall.sweep import Sweep
from syncer.engine.stores import identity as claim
from syncer.leaderelection.lease import LEASES
from syncer.leaderelection.uninstalls import uninstall_name

#: Seconds that the virtual side may take where it is only tried.
TRIED_SECONDS = 60.0

#: Connects to the virtual cluster alone, or to both.
Later = Callable[[], AbstractAsyncContextManager[Mapping[Side, SideClient]]]


@dataclass(slots=True)
class UninstallReport:
    """The plan or the result of an uninstall."""

    items: Sequence[Item] = ()
    #: Our objects that stay, each with the reason.
    left: Mapping[Item, str] = field(default_factory=dict)
    #: Failures: objects that could not be removed, or kinds that had to be listed and could not.
    problems: list[str] = field(default_factory=list)
    #: Further remarks.
    remarks: list[str] = field(default_factory=list)
    #: True if the plan was carried out.
    done: bool = False

    @property
    def exit_code(self) -> int:
        """0 if everything is, or would be, removed."""
        return 1 if self.problems else 0


async def uninstall(
    config: SyncerConfig,
    cluster: VirtualCluster,
    clusters: Mapping[Side, SideClient],
    *,
    yes: bool,
    keep: bool,
    later: Later | None = None,
) -> UninstallReport:
    """Plan an uninstall and, with ``yes``, carry it out.

    ``keep`` only removes our marks and keeps the objects. ``clusters`` may have the host alone:
    then no request goes to the virtual cluster, and what the tenant has done to it changes
    nothing. With ``later``, its side is tried when that of the host is removed, for a minute at
    most; a failure of that is a remark.

    Raises:
        SyncerError: A daemon leads, or the virtual cluster was synced under another identity.
    """
    known = Recognition.of(cluster)
    claimed = await _is_claimed(cluster, clusters)
    if not yes:
        return await _planned(Lister(clusters, known), keep=keep, claimed=claimed)
    async with _alone(config, clusters[Side.HOST], cluster.name) as may_write:
        report = await _carried_out(Lister(clusters, known), may_write, keep=keep)
        if report.done and claimed:
            await _last(report, claim.release(clusters[Side.VIRTUAL]))
        if report.done and later:
            await _try_virtual(report, cluster, later, may_write, keep=keep)
    if report.done:
        await _last(report, _drop_lease(config, clusters[Side.HOST], cluster.name))
    return report


async def _is_claimed(cluster: VirtualCluster, clusters: Mapping[Side, SideClient]) -> bool:
    """Return True if the virtual cluster is connected, and bears our identity."""
    virtual = clusters.get(Side.VIRTUAL)
    if virtual is None:
        return False
    return await claim.is_claimed(virtual, cluster.settings(), translator=cluster.names.translator)


async def _try_virtual(
    report: UninstallReport,
    cluster: VirtualCluster,
    later: Later,
    may_write: Callable[[], bool],
    *,
    keep: bool,
) -> None:
    """Remove the virtual side as far as it can be, and report failures as remarks."""
    try:
        async with asyncio.timeout(TRIED_SECONDS), later() as clusters:
            virtual = {Side.VIRTUAL: clusters[Side.VIRTUAL]}
            claimed = await _is_claimed(cluster, virtual)
            then = await _carried_out(
                Lister(virtual, Recognition.of(cluster)),
                may_write,
                keep=keep,
            )
            if then.done and claimed:
                await claim.release(virtual[Side.VIRTUAL])
    except TimeoutError:
        remark = f"the virtual side is not finished: it took more than {TRIED_SECONDS:g} s"
        report.remarks.append(remark)
        return
    except Exception as error:  # noqa: BLE001 — a tenant's API server may answer anything
        why = f"its answers can't be understood ({type(error).__name__})"
        if isinstance(error, SyncerError):
            why = str(error)
        report.remarks.append(f"the virtual side is not finished: {why}")
        return
    report.items = [*report.items, *then.items]
    report.left = {**report.left, **then.left}
    report.remarks += then.remarks
    report.remarks += [f"the virtual side is not finished: {line}" for line in then.problems]


async def _last(report: UninstallReport, work: Coroutine[Any, Any, None]) -> None:
    """Run the final step. If it fails, report it as the only thing left to do by hand."""
    try:
        await work
    except ClusterError as error:
        report.problems.append(str(error))
        report.done = False


async def _planned(lister: Lister, *, keep: bool, claimed: bool) -> UninstallReport:
    found = await lister.look()
    left: dict[Item, str] = {}
    if not keep:
        ours = {item.uid for item in found.items}
        for item in found.items:
            if why := await others_in(lister, item, ours):
                left[item] = why
    report = UninstallReport(found.items, left, list(found.problems), _remarks(found))
    if Side.VIRTUAL in lister.clusters and not claimed and not found.items:
        remark = "no daemon of this configuration has synced this virtual cluster"
        report.remarks.append(f"{remark}, or it is uninstalled already")
    return report


def _remarks(found: Inventory) -> list[str]:
    doubtful = Counter(str(item.resource) for item in found.doubtful)
    remarks = [
        f"virtual {kind}: {number} with our mark that no syncer makes; they are left alone"
        for kind, number in doubtful.items()
    ]
    remarks += [f"not checked: {why}" for why in found.unseen]
    return remarks


async def _carried_out(
    lister: Lister,
    may_write: Callable[[], bool],
    *,
    keep: bool,
) -> UninstallReport:
    """Carry everything out. If a step fails, the later ones are not started."""
    found = await lister.look()
    sweep = Sweep(lister, may_write)
    report = UninstallReport(found.items, {}, found.problems, _remarks(found))
    if found.problems:
        remark = "objects that can't be listed may need those that would be deleted"
        report.remarks.append(f"nothing was written: {remark}")
        return report
    await sweep.forget(found.noted)
    if keep and not sweep.problems:
        await sweep.strip(found.items)
    elif not sweep.problems:
        report.left = await sweep.delete(found.items)
    report.problems += sweep.problems
    if not report.problems:
        _compare(report, await lister.look())
    report.done = not report.problems
    return report


def _compare(report: UninstallReport, after: Inventory) -> None:
    """Report objects that are left and should not be."""
    report.problems += after.problems
    left = {item.uid for item in report.left}
    again = [item for item in after.items if item.uid not in left]
    if again:
        problem = f"{again[0]} is there again, and {len(again) - 1} more. Does a daemon run?"
        report.problems.append(problem)


@asynccontextmanager
async def _alone(
    config: SyncerConfig,
    host: SideClient,
    name: str,
) -> AsyncIterator[Callable[[], bool]]:
    """Hold the Lease of a virtual cluster.

    Do so even without leader election in this configuration, if another may hold a Lease.
    """
    if not config.leader_election.enabled and await _lease(config, host, config.lease_name):
        election = config.leader_election.model_copy(update={"enabled": True})
        config = config.model_copy(update={"leader_election": election})
    clock = asyncio.get_running_loop().time
    async with alone_with(host, config, name) as until:
        yield lambda: until is None or clock() < until()


async def _lease(config: SyncerConfig, host: SideClient, name: str) -> Obj | None:
    if not config.lease_namespace:
        return None
    try:
        return await host.get(LEASES, Key(config.lease_namespace, name))
    except (NotFound, Forbidden):
        return None


async def _drop_lease(config: SyncerConfig, host: SideClient, cluster: str) -> None:
    """Delete the Lease that was held, unless another process has taken it since it was released.
    One of a shard stays: it is for other virtual clusters, too.
    """
    is_shared = config.leader_election.shards > 1
    name = uninstall_name(config.lease_name, cluster) if is_shared else config.lease_name
    lease = await _lease(config, host, name)
    if lease is None:
        return
    holder = (lease.get("spec") or {}).get("holderIdentity")
    if holder:
        why = f"{holder} has taken the Lease, and syncs everything again"
        raise Conflict(f"{why}. Stop the daemons first")
    metadata = lease["metadata"]
    await host.delete(
        LEASES,
        Key(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
    )
