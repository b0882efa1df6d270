"""Uninstall: remove everything that we made on both sides, or only our marks, so that nothing is
left to sync.

Marks alone tell which objects are ours, so an interrupted uninstall is finished by running it
again. The identity in the virtual cluster is deleted after everything else, and then the Lease.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from syncer.api.errors import ClusterError, Conflict, Forbidden, Missing
from syncer.api.objects import Key, Obj, Side
from syncer.clusters.client import Cluster
from syncer.config import SyncerConfig, VirtualCluster
from syncer.engine.leaderelection import identity as claim
from syncer.engine.leaderelection.leadership import leading
from syncer.engine.leaderelection.lease import LEASES
from syncer.engine.uninstall.containers import others_in
from syncer.engine.uninstall.inventory import Inventory, Item, Lister, Recognition
from syncer.engine.uninstall.sweep import Sweep


@dataclass(slots=True)
class Report:
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
    config: SyncerConfig, cluster: VirtualCluster, clusters: Mapping[Side, Cluster], *, yes: bool, keep: bool
) -> Report:
    """Plan an uninstall and, with ``yes``, carry it out.

    ``keep`` only removes our marks and keeps the objects.

    Raises:
        SyncerError: A daemon leads, or the virtual cluster was synced under another identity.
    """
    settings, known = cluster.settings(), Recognition.of(cluster)
    claimed = await claim.is_claimed(clusters[Side.VIRTUAL], settings, translator=cluster.names.translator)
    if not yes:
        return await _planned(Lister(clusters, known), keep=keep, claimed=claimed)
    async with _alone(config, clusters[Side.HOST]) as may_write:
        report = await _carried_out(Lister(clusters, known), may_write, keep=keep)
        if report.done and claimed:
            await _last(report, claim.release(clusters[Side.VIRTUAL]))
    if report.done:
        await _last(report, _drop_lease(config, clusters[Side.HOST]))
    return report


async def _last(report: Report, work: Coroutine[Any, Any, None]) -> None:
    """Run the final step. If it fails, report it as the only thing left to do by hand."""
    try:
        await work
    except ClusterError as error:
        report.problems.append(str(error))
        report.done = False


async def _planned(lister: Lister, *, keep: bool, claimed: bool) -> Report:
    found = await lister.look()
    ours = {item.uid for item in found.items}
    left = {} if keep else {item: why for item in found.items if (why := await others_in(lister, item, ours))}
    report = Report(found.items, left, list(found.problems), _remarks(found))
    if not claimed and not found.items:
        report.remarks.append(
            "no daemon of this configuration has synced this virtual cluster, or it is uninstalled already"
        )
    return report


def _remarks(found: Inventory) -> list[str]:
    doubtful = Counter(str(item.resource) for item in found.doubtful)
    return [
        *(
            f"virtual {kind}: {n} with our mark that no syncer makes; they are left alone"
            for kind, n in doubtful.items()
        ),
        *(f"not looked at: {why}" for why in found.unseen),
    ]


async def _carried_out(lister: Lister, may_write: Callable[[], bool], *, keep: bool) -> Report:
    """Carry everything out. If a step fails, the later ones are not started."""
    found, sweep = await lister.look(), Sweep(lister, may_write)
    report = Report(found.items, {}, found.problems, _remarks(found))
    if found.problems:
        report.remarks.append("nothing was written: what can't be looked at may need what would be deleted")
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


def _compare(report: Report, after: Inventory) -> None:
    """Report objects that are left and should not be."""
    report.problems += after.problems
    stays = {item.uid for item in report.left}
    again = [item for item in after.items if item.uid not in stays]
    if again:
        report.problems.append(f"{again[0]} is there again, and {len(again) - 1} more. Does a daemon run?")


@asynccontextmanager
async def _alone(config: SyncerConfig, host: Cluster) -> AsyncIterator[Callable[[], bool]]:
    """Hold the Lease; even without leader election in this configuration, if there is a Lease that
    another may hold.
    """
    if not config.leader_election.enabled and await _lease(config, host):
        election = config.leader_election.model_copy(update={"enabled": True})
        config = config.model_copy(update={"leader_election": election})
    async with leading(host, config) as lease:
        yield lambda: lease is None or lease.is_leader


async def _lease(config: SyncerConfig, host: Cluster) -> Obj | None:
    if not config.lease_namespace:
        return None
    try:
        return await host.get(LEASES, Key(config.lease_namespace, config.lease_name))
    except (Missing, Forbidden):
        return None


async def _drop_lease(config: SyncerConfig, host: Cluster) -> None:
    """Delete the Lease, unless another process has taken it since it was released."""
    lease = await _lease(config, host)
    if lease is None:
        return
    if holder := (lease.get("spec") or {}).get("holderIdentity"):
        raise Conflict(f"{holder} has taken the Lease, and syncs everything again. Stop the daemons first")
    metadata = lease["metadata"]
    await host.delete(
        LEASES,
        Key(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
    )
