"""hack/explore tries something else with each seed, by commands that are there."""

from pathlib import Path

import pytest

from hack import explore
from hack.gate.stages import TOP


def test_each_try_is_repeated_by_its_seed() -> None:
    assert [str(each) for each in explore.turn(7)] == [str(each) for each in explore.turn(7)]
    both = zip(explore.turn(7), explore.turn(8), strict=True)
    assert [one.name for one, other in both if str(one) == str(other)] == []


@pytest.mark.parametrize("each", list(explore.turn(7)), ids=lambda each: each.name)
def test_try_runs_a_program_about_files_that_are_there(each: explore.Try) -> None:
    program, *arguments = each.command
    assert (TOP / program).exists()
    paths = [Path(TOP, argument) for argument in arguments if "/" in argument and not argument.startswith("-")]
    assert [path for path in paths if not path.exists()] == []
