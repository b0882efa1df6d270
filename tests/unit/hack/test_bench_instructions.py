"""Instructions of two installations are read from callgrind's profiles, and their figures become ratios."""

from hack.bench.instructions import COUNTS, counts, ratios

PROFILE = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
desc: Trigger: dump
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim

fl=(1) ???
fn=(1) 0x0000000000019b10
0 3 1 1 1

summary: 415 120 68 10 4 1 75 282 254 592 47 113 50
totals: 416 121 69 11 5 2 76 283 255 593 48 114 51
"""


def test_counts_add_up_the_events_of_a_profile() -> None:
    assert counts(PROFILE) == {"instructions": 415, "l1_misses": 15, "mispredicted_branches": 97}


def test_ratios_are_of_each_phase_and_of_all_together() -> None:
    def figures(phase: str, count: int) -> dict[str, object]:
        return {"phase": phase, **{f"{name}_per_object": count for name in COUNTS}}

    found = ratios(
        this=[figures("create", 1), figures("delete", 3)],
        other=[figures("create", 2), figures("delete", 2)],
    )
    assert [found[phase]["instructions"] for phase in ("create", "delete", "all")] == [0.5, 1.5, 1.0]
    assert found["all"].keys() == COUNTS.keys()
