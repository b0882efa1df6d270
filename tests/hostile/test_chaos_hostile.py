"""A short turn of `hack/chaos --hostile` with each name translator finds nothing.

Memory, latency and the steps of the loop are for the command itself, on a machine that does nothing else.
"""

from pathlib import Path

import pytest
from hostile_chaos.attacks import ATTACKS
from hostile_chaos.run import Plan, play
from hostile_scene import TRANSLATORS

#: Enough to make each attack once.
SECONDS = 20.0
#: The faults that a short turn can find.
KINDS = frozenset(
    (
        "process",
        "daemon",
        "canary",
        "namespace",
        "size",
        "marks",
        "references",
        "foreign",
        "policies",
        "annotations",
        "paused",
        "halted",
        "privileges",
        "malformed",
        "tokens",
        "templates",
        "remade",
        "issuers",
        "operators",
        "addresses",
        "nodes",
        "careless",
        "hammered",
        "notes",
        "squatted",
        "hostnames",
        "relay",
        "ports",
        "slices",
        "fleet",
        "freezes",
        "classes",
        "events",
        "escapes",
        "orphan",
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("translator", TRANSLATORS)
def test_attacks_of_a_hostile_tenant_harm_nothing(translator: str, tmp_path: Path) -> None:
    turn = play(Plan(translator, "smoke", SECONDS), tmp_path)
    assert set(turn.executed) == set(ATTACKS)
    found = [(each.kind, each.fault, first.example) for each, first in turn.violations.items()]
    assert [each for each in found if each[0] in KINDS] == []
