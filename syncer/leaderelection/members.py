"""The replicas of a fleet: each has a member Lease that it renews, and reads those of the others."""

import asyncio
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncer.api import LONGEST_LABEL, ClusterError, Conflict, Key, Missing, Obj
from syncer.clusters.client import Cluster
from syncer.leaderelection.lease import LEASES
from syncer.observe.logs import get_logger
from syncer.translate.times import written_in_micros

#: The label of all Leases of a fleet; its value is the name of the fleet, or the end of a long one.
LABEL = "vsyncer.dev/fleet"
#: The annotations of a member Lease: the number of shards, and the shards whose caches are filled.
SHARDS, READY = "vsyncer.dev/shards", "vsyncer.dev/ready"
#: The annotation with the virtual clusters for which the replica writes nothing, each with who uninstalls it.
AWAY = "vsyncer.dev/away-from"
#: A member Lease that nobody renews is deleted after so many times its duration.
COLLECT_AFTER = 20

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Member:
    """A replica, as it was seen at a time by our own clock."""

    identity: str
    shards: int
    ready: frozenset[int]
    away: frozenset[str]
    version: str
    duration: float
    at: float

    @classmethod
    def of(cls, lease: Obj, *, at: float) -> "Member":
        """Parse a member Lease."""
        metadata, spec = lease["metadata"], lease.get("spec") or {}
        said = metadata.get("annotations") or {}
        return cls(
            spec.get("holderIdentity") or "",
            int(said.get(SHARDS) or 0),
            frozenset(map(int, filter(None, (said.get(READY) or "").split(",")))),
            frozenset(filter(None, (said.get(AWAY) or "").split(","))),
            metadata["resourceVersion"],
            float(spec.get("leaseDurationSeconds") or 0),
            at,
        )


def member_prefix(fleet: str) -> str:
    """Return how the names of the member Leases of a fleet begin."""
    return f"{fleet}-member-"


def labels_of_fleet(name: str) -> Mapping[str, str]:
    """Return the labels of all Leases of a fleet."""
    return {LABEL: name[-LONGEST_LABEL:].lstrip("-.")}


async def leases_of(client: Cluster, fleet: Key) -> list[Obj]:
    """Return all Leases of a fleet.

    Raises:
        ClusterError: The request failed.
    """
    selector = ",".join(f"{key}={value}" for key, value in labels_of_fleet(fleet.name).items())
    return await client.list(LEASES, namespace=fleet.namespace, selector=selector)


class Members:
    """The live replicas of a fleet.

    ``fleet`` is the namespace and name of the fleet's Leases, ``duration`` is in seconds. As with every Lease, a member
    is dead when *this* process has seen no change of its Lease for its duration; no clocks are compared.
    """

    def __init__(
        self,
        client: Cluster,
        *,
        fleet: Key,
        identity: str,
        shards: int,
        duration: float,
        clock: Callable[[], float],
        utcnow: Callable[[], datetime],
    ) -> None:
        self._client, self._fleet, self._identity, self._shards = client, fleet, identity, shards
        self._duration, self._clock, self._utcnow = duration, clock, utcnow
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
        found = {each.identity: each for each in self._known.values() if now < each.at + each.duration}
        own = Member(self._identity, self._shards, frozenset(), frozenset(), "", math.inf, now)
        return {**found, self._identity: own}

    def rest(self) -> float:
        """Return the seconds until a member is dead if it isn't renewed; infinity if there is no other."""
        now = self._clock()
        ends = (each.at + each.duration - now for each in self._known.values() if each.identity != self._identity)
        return min((left for left in ends if left > 0), default=math.inf)

    async def look(self, ready: Collection[int], away: Collection[str]) -> list[Obj]:
        """Renew the own Lease, read all, and return those of shards and uninstalls.

        Raises:
            ClusterError: A request failed.
        """
        await self._renew(ready, away)
        leases = await leases_of(self._client, self._fleet)
        members = {lease["metadata"]["name"]: lease for lease in leases if self._is_member(lease)}
        now = self._clock()
        for name, lease in members.items():
            known = self._known.get(name)
            if known is None or known.version != lease["metadata"]["resourceVersion"]:
                self._known[name] = Member.of(lease, at=now)
        for name in self._known.keys() - members.keys():
            del self._known[name]
        self.is_known = True
        return [lease for lease in leases if not self._is_member(lease)]

    def _is_member(self, lease: Obj) -> bool:
        return str(lease["metadata"]["name"]).startswith(self._prefix)

    async def _renew(self, ready: Collection[int], away: Collection[str]) -> None:
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._duration),
            "renewTime": written_in_micros(self._utcnow()),
        }
        said = {SHARDS: str(self._shards), READY: ",".join(map(str, sorted(ready))), AWAY: ",".join(sorted(away))}
        metadata: Obj = {"labels": dict(self.labels), "annotations": said}
        try:
            await self._client.patch(LEASES, self._key, {"metadata": metadata, "spec": spec})
        except Missing:
            named = {"name": self._key.name, "namespace": self._key.namespace, **metadata}
            lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": named, "spec": spec}
            await self._client.create(LEASES, lease)

    async def collect(self) -> None:
        """Delete the Leases of members that died long ago."""
        for name, member in list(self._long_dead()):
            try:
                await self._client.delete(LEASES, Key(self._fleet.namespace, name), resource_version=member.version)
            except (Missing, Conflict):
                continue

    def _long_dead(self) -> Iterator[tuple[str, Member]]:
        now = self._clock()
        for name, member in self._known.items():
            if member.identity != self._identity and now > member.at + COLLECT_AFTER * max(member.duration, 1.0):
                yield name, member

    async def leave(self) -> None:
        """Delete the own Lease, so that the others need not wait for its end."""
        try:
            async with asyncio.timeout(self._duration / 3):
                await self._client.delete(LEASES, self._key)
        except (ClusterError, TimeoutError) as error:
            log.warning("the member Lease could not be deleted, it will run out", lease=self._key, error=str(error))
