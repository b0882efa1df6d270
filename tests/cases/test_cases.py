"""Runs every YAML case beside this file, and those of a package given to hack/kind."""

import pytest
from sampled import CASES, registry

from syncer.testing.cases import Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check(registry())
