"""The sieve stands on the harness of the flow tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "flow"))

from harness import Two


@pytest.fixture
def two() -> Two:
    """A virtual and a host API server without rights to mind."""
    return Two()
