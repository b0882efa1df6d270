"""Read the Service and the Secrets, and write the Secrets as planned, beside other processes that do the same."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from syncer.api.errors import Conflict, Exists, Missing, SyncerError
from syncer.api.objects import Key, Obj, Resource
from syncer.clusters.client import Cluster
from syncer.pki.layout import Wanted, address_of
from syncer.pki.plan import Outcome, Plan, plan
from syncer.resources.kinds import SECRETS, SERVICES

#: Each conflict means that another process has written a Secret. A further one has nothing left to write.
ATTEMPTS = 10
#: Seconds between two looks whether the load balancer has an address.
LOOK_SECONDS = 2.0


class NoService(SyncerError):
    """The Service in front of the virtual API server isn't there."""


@dataclass(slots=True)
class Report:
    """What was done."""

    outcomes: list[Outcome] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: True if the load balancer had no address in time.
    is_awaited: bool = False

    def add(self, outcomes: list[Outcome]) -> None:
        """Add what became of the files of a Secret. What was made before, stays so."""
        before = {(each.secret, each.file): each for each in self.outcomes}
        known = [before.get((each.secret, each.file), each) if each.action == "kept" else each for each in outcomes]
        secrets = {each.secret for each in outcomes}
        self.outcomes = [*(each for each in self.outcomes if each.secret not in secrets), *known]


async def complete(
    host: Cluster, wanted: Wanted, *, wait: float = 0.0, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Report:
    """Complete the Secrets.

    With ``wait``, wait that many seconds at most for the address of a load balancer, and add it. All is there
    for the control plane to start meanwhile.

    Raises:
        Damaged: A Secret can't be used; nothing was written.
        NoService: There is no such Service.
        ClusterError: A request failed.
    """
    report, loop = Report(), asyncio.get_running_loop()
    until = loop.time() + wait
    done = await _written(host, wanted, clock, report)
    while done.address.is_awaited and loop.time() < until:
        await asyncio.sleep(LOOK_SECONDS)
        if not address_of(await _service(host, wanted)).is_awaited:
            done = await _written(host, wanted, clock, report)
    report.warnings, report.is_awaited = done.warnings, done.address.is_awaited
    return report


async def _written(host: Cluster, wanted: Wanted, clock: Callable[[], datetime], report: Report) -> Plan:
    """Write what is planned; plan anew after a conflict.

    Another process may be doing the same. The Secret with the CAs is written first: who comes second finds
    it there, and makes all else with these CAs.
    """
    for attempt in range(1, ATTEMPTS + 1):
        planned = plan(wanted, await _service(host, wanted), await _secrets(host, wanted), clock())
        try:
            for step in planned.steps:
                if step.write is not None:
                    await _write(host, step.write)
                report.add(step.outcomes)
        except (Exists, Conflict):
            if attempt == ATTEMPTS:
                raise
        else:
            break
    return planned


async def _write(host: Cluster, secret: Obj) -> None:
    if "resourceVersion" in secret["metadata"]:
        await host.replace(SECRETS, secret)
    else:
        await host.create(SECRETS, secret)


async def _service(host: Cluster, wanted: Wanted) -> Obj:
    key = Key(wanted.namespace, wanted.service)
    found = await _get(host, SERVICES, key)
    if found is None:
        raise NoService(f"there is no Service {key}. Create it first: the certificates bear its address.")
    return found


async def _secrets(host: Cluster, wanted: Wanted) -> dict[str, Obj]:
    found = {name: await _get(host, SECRETS, Key(wanted.namespace, name)) for name in wanted.secrets}
    return {name: secret for name, secret in found.items() if secret is not None}


async def _get(host: Cluster, resource: Resource, key: Key) -> Obj | None:
    try:
        return await host.get(resource, key)
    except Missing:
        return None
