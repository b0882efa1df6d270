"""Rendezvous hashing: replicas that come and go move their own shards alone."""

import itertools
from collections import Counter

import pytest

from syncer.leaderelection.rendezvous import ranked, shard_of

MEMBERS = [f"fleet-{number}_{number:08x}" for number in range(5)]


def firsts(members: list[str], shards: int = 64) -> dict[int, str]:
    return {shard: ranked(shard, members)[0] for shard in range(shards)}


@pytest.mark.parametrize("leaver", MEMBERS)
def test_member_that_leaves_moves_its_own_shards_alone_and_each_to_its_second(leaver: str) -> None:
    before, after = firsts(MEMBERS), firsts([each for each in MEMBERS if each != leaver])
    moved = {shard for shard in before if before[shard] != after[shard]}
    assert moved == {shard for shard, first in before.items() if first == leaver}
    assert {shard: after[shard] for shard in moved} == {shard: ranked(shard, MEMBERS)[1] for shard in moved}


def test_order_of_the_members_that_are_given_does_not_matter() -> None:
    assert len({tuple(ranked(7, order)) for order in itertools.permutations(MEMBERS)}) == 1


def test_shards_and_virtual_clusters_are_spread() -> None:
    assert min(Counter(firsts(MEMBERS, 1000).values()).values()) > 150
    assert min(Counter(shard_of(f"team-{number}", 16) for number in range(1600)).values()) > 60


def test_shard_of_a_virtual_cluster_is_the_same_in_each_release() -> None:
    assert [shard_of(name, 16) for name in ("bank", "pets", "shop")] == [6, 1, 13]
