"""Read the Service and the Secrets, and write the Secrets as planned.

Other processes may do the same at the same time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from syncer.api.errors import AlreadyExists, Conflict, NotFound, SyncerError
from syncer.api.objects import Key, Obj, Resource
from syncer.clusters.client import SideClient
from syncer.pki.layout import PkiSettings, address_of
from syncer.pki.plan import FileOutcome, SecretsPlan, plan
from syncer.resources.kinds import SECRETS, SERVICES
from syncer.translate.times import utcnow

#: Each conflict means that another process has written a Secret. After so many, nothing is left to
#: write.
ATTEMPTS = 10
#: Seconds between two checks whether the load balancer has an address.
LOOK_SECONDS = 2.0


class NoService(SyncerError):
    """The Service in front of the virtual API server isn't there."""


@dataclass(slots=True)
class StoreReport:
    """The results for all files."""

    outcomes: list[FileOutcome] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: True if the load balancer had no address in time.
    is_awaited: bool = False

    def add(self, outcomes: list[FileOutcome]) -> None:
        """Add the results for the files of a Secret.

        A file that was made before and is kept now stays one that was made.
        """
        before = {(each.secret, each.file): each for each in self.outcomes}
        secrets = {each.secret for each in outcomes}
        self.outcomes = [each for each in self.outcomes if each.secret not in secrets]
        for each in outcomes:
            if each.action == "kept":
                self.outcomes.append(before.get((each.secret, each.file), each))
            else:
                self.outcomes.append(each)


async def complete(
    host: SideClient,
    wanted: PkiSettings,
    *,
    wait: float = 0.0,
    clock: Callable[[], datetime] = utcnow,
) -> StoreReport:
    """Complete the Secrets.

    With ``wait``, wait that many seconds at most for the address of a load balancer, and add it.
    The control plane can start meanwhile: all its files are there.

    Raises:
        Damaged: A Secret can't be used; nothing was written.
        NoService: There is no such Service.
        ClusterError: A request failed.
    """
    report = StoreReport()
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    done = await _written(host, wanted, clock, report)
    while done.address.is_awaited and loop.time() < until:
        await asyncio.sleep(LOOK_SECONDS)
        service = await _service(host, wanted)
        if not address_of(service).is_awaited:
            done = await _written(host, wanted, clock, report)
    report.warnings = done.warnings
    report.is_awaited = done.address.is_awaited
    return report


async def _written(
    host: SideClient,
    wanted: PkiSettings,
    clock: Callable[[], datetime],
    report: StoreReport,
) -> SecretsPlan:
    """Write the planned Secrets; after a conflict, plan again.

    Another process may be doing the same. The Secret with the CAs is written first: the second
    process finds it there, and makes all other files with these CAs.
    """
    for attempt in range(1, ATTEMPTS + 1):
        service = await _service(host, wanted)
        secrets: dict[str, Obj] = {}
        for name in wanted.secrets:
            secret = await _get(host, SECRETS, Key(wanted.namespace, name))
            if secret is not None:
                secrets[name] = secret
        planned = plan(wanted, service, secrets, clock())

        try:
            for step in planned.steps:
                write = step.write
                if write is None:
                    pass
                elif "resourceVersion" in write["metadata"]:
                    await host.replace(SECRETS, write)
                else:
                    await host.create(SECRETS, write)
                report.add(step.outcomes)
        except (AlreadyExists, Conflict):
            if attempt == ATTEMPTS:
                raise
        else:
            break
    return planned


async def _service(host: SideClient, wanted: PkiSettings) -> Obj:
    key = Key(wanted.namespace, wanted.service)
    found = await _get(host, SERVICES, key)
    if found is None:
        way_out = "Create it first: the certificates bear its address."
        raise NoService(f"there is no Service {key}. {way_out}")
    return found


async def _get(host: SideClient, resource: Resource, key: Key) -> Obj | None:
    try:
        return await host.get(resource, key)
    except NotFound:
        return None
