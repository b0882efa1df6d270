"""Runs every YAML case beside this file."""

from pathlib import Path

import pytest

from syncer.testing.cases import Case, load


@pytest.mark.parametrize("case", load(Path(__file__).parent), ids=str)
def test_case(case: Case) -> None:
    case.check()
