"""Rendezvous hashing: it assigns the shards of a fleet to replicas.

Each pair of a shard and a member has a weight, and the member with the highest one takes the shard
(Thaler and Ravishankar, "Using name-based mappings to increase hit rates"). So a member that leaves
moves its own shards alone, and one that joins takes shards, but moves none between others. All
replicas compute the same from the same members.
"""

from collections.abc import Iterable
from hashlib import sha256


def shard_of(cluster: str, shards: int) -> int:
    """Return the shard of a virtual cluster, by its name."""
    return _hash(cluster) % shards


def ranked(shard: int, members: Iterable[str]) -> list[str]:
    """Return the members in the order in which they take a shard."""

    def weight(member: str) -> tuple[int, str]:
        return _hash(f"{shard}/{member}"), member

    return sorted(members, key=weight, reverse=True)


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8])
