"""The memory of the process, divided between its virtual clusters."""

import pytest

from syncer.byte_budget import ByteBudget
from syncer.daemon.fleet import fleet_memory
from syncer.daemon.fleet.fleet_memory import DEFAULT_BYTES, ClusterMemory


@pytest.mark.parametrize(("limit", "most"), [(0, DEFAULT_BYTES), (64 << 20, 16 << 20)])
def test_connections_have_a_bound_with_and_without_a_limit_of_the_container(
    monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    monkeypatch.setattr(fleet_memory, "memory_limit", lambda: limit)
    memory = ClusterMemory(ByteBudget(), 0)
    assert memory.connections.most == most
