"""The replicas of a fleet: each renews a member Lease, and reads those of the others."""

import asyncio
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncer.api import LONGEST_LABEL, ClusterError, Conflict, Key, NotFound, Obj
from syncer.clusters.client import SideClient
from syncer.leaderelection.lease import LEASES, reason
from syncer.observe.logs import get_logger
from syncer.translate.times import written_in_micros

#: The label of all Leases of a fleet; its value is the name of the fleet, or the end of a long one.
LABEL = "vsyncer.dev/fleet"
#: The annotation of a member Lease with the number of shards.
SHARDS = "vsyncer.dev/shards"
#: The annotation with the shards for which the caches are filled.
READY = "vsyncer.dev/ready"
#: The annotation with the virtual clusters for which the replica writes nothing, each with the
#: holder of its uninstall's Lease.
AWAY = "vsyncer.dev/away-from"
#: A member Lease that isn't renewed is deleted after so many times its duration.
COLLECT_AFTER = 20

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Member:
    """A replica, as it was at a time by our own clock."""

    identity: str
    #: The number of shards that it is configured with.
    shards: int
    #: The shards for which its caches are filled.
    ready: frozenset[int]
    #: The answers to uninstalls, see :func:`.uninstalls.answer`.
    away: frozenset[str]
    #: The resourceVersion of its Lease.
    version: str
    #: Seconds after which it is dead if its Lease doesn't change.
    duration: float
    #: The time of the last change of its Lease, by our own clock.
    at: float

    @classmethod
    def of(cls, lease: Obj, *, at: float) -> "Member":
        """Parse a member Lease."""
        metadata = lease["metadata"]
        annotations = metadata.get("annotations") or {}
        spec = lease.get("spec") or {}
        ready = (annotations.get(READY) or "").split(",")
        away = (annotations.get(AWAY) or "").split(",")
        return cls(
            identity=spec.get("holderIdentity") or "",
            shards=int(annotations.get(SHARDS) or 0),
            ready=frozenset(int(shard) for shard in ready if shard),
            away=frozenset(each for each in away if each),
            version=metadata["resourceVersion"],
            duration=float(spec.get("leaseDurationSeconds") or 0),
            at=at,
        )


def member_prefix(fleet: str) -> str:
    """Return the beginning of the names of a fleet's member Leases."""
    return f"{fleet}-member-"


def labels_of_fleet(name: str) -> Mapping[str, str]:
    """Return the labels of all Leases of a fleet."""
    return {LABEL: name[-LONGEST_LABEL:].lstrip("-.")}


async def leases_of(client: SideClient, fleet: Key) -> list[Obj]:
    """Return all Leases of a fleet.

    Raises:
        ClusterError: The request failed.
    """
    selector = ",".join(f"{key}={value}" for key, value in labels_of_fleet(fleet.name).items())
    return await client.list(LEASES, namespace=fleet.namespace, selector=selector)


class Members:
    """The live replicas of a fleet.

    ``fleet`` is the namespace and name of the fleet's Leases, ``duration`` is in seconds. As with
    every Lease, a member is dead when *this* process has seen no change of its Lease for its
    duration; no clocks are compared.
    """

    def __init__(
        self,
        client: SideClient,
        *,
        fleet: Key,
        identity: str,
        shards: int,
        duration: float,
        clock: Callable[[], float],
        utcnow: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._fleet = fleet
        self._identity = identity
        self._shards = shards
        self._duration = duration
        self._clock = clock
        self._utcnow = utcnow
        self._prefix = member_prefix(fleet.name)
        self._key = Key(fleet.namespace, self._prefix + identity.rpartition("_")[2])
        self._known: dict[str, Member] = {}
        #: True once the own Lease is there and the others' have been read.
        self.is_known = False

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all Leases of the fleet."""
        return labels_of_fleet(self._fleet.name)

    def live(self) -> dict[str, Member]:
        """Return the live members by identity. This replica is always one."""
        now = self._clock()
        live: dict[str, Member] = {}
        for member in self._known.values():
            if now < member.at + member.duration:
                live[member.identity] = member
        live[self._identity] = Member(
            identity=self._identity,
            shards=self._shards,
            ready=frozenset(),
            away=frozenset(),
            version="",
            duration=math.inf,
            at=now,
        )
        return live

    def rest(self) -> float:
        """Return the seconds until another member is dead if it isn't renewed.

        It is infinite if there is no other.
        """
        now = self._clock()
        rest = math.inf
        for member in self._known.values():
            left = member.at + member.duration - now
            if member.identity != self._identity and left > 0:
                rest = min(rest, left)
        return rest

    async def look(self, ready: Collection[int], away: Collection[str]) -> list[Obj]:
        """Renew the own Lease, read all, and return those of shards and uninstalls.

        Raises:
            ClusterError: A request failed.
        """
        await self._renew(ready, away)
        leases = await leases_of(self._client, self._fleet)
        now = self._clock()
        members: set[str] = set()
        others: list[Obj] = []
        for lease in leases:
            name = lease["metadata"]["name"]
            if not name.startswith(self._prefix):
                others.append(lease)
                continue
            members.add(name)
            known = self._known.get(name)
            # Only a change of a Lease is a sign of life.
            if known is None or known.version != lease["metadata"]["resourceVersion"]:
                self._known[name] = Member.of(lease, at=now)
        for name in self._known.keys() - members:
            del self._known[name]
        self.is_known = True
        return others

    async def _renew(self, ready: Collection[int], away: Collection[str]) -> None:
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._duration),
            "renewTime": written_in_micros(self._utcnow()),
        }
        annotations = {
            SHARDS: str(self._shards),
            READY: ",".join(str(shard) for shard in sorted(ready)),
            AWAY: ",".join(sorted(away)),
        }
        metadata: Obj = {"labels": dict(self.labels), "annotations": annotations}
        try:
            await self._client.patch(LEASES, self._key, {"metadata": metadata, "spec": spec})
        except NotFound:
            lease = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {
                    "name": self._key.name,
                    "namespace": self._key.namespace,
                    **metadata,
                },
                "spec": spec,
            }
            await self._client.create(LEASES, lease)

    async def collect(self) -> None:
        """Delete the Leases of members that died long ago."""
        now = self._clock()
        for name, member in list(self._known.items()):
            if member.identity == self._identity:
                continue
            if now <= member.at + COLLECT_AFTER * max(member.duration, 1.0):
                continue
            key = Key(self._fleet.namespace, name)
            try:
                await self._client.delete(LEASES, key, resource_version=member.version)
            except (NotFound, Conflict):
                continue

    async def leave(self) -> None:
        """Delete the own Lease, so that the others need not wait for its end."""
        try:
            async with asyncio.timeout(self._duration / 3):
                await self._client.delete(LEASES, self._key)
        except (ClusterError, TimeoutError) as error:
            log.warning(
                "can't delete the member Lease; it expires by itself",
                lease=self._key,
                error=reason(error),
            )
