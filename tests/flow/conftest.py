"""Every flow test has two API servers of its own."""

import pytest
from harness import Two


@pytest.fixture
def two() -> Two:
    """A virtual and a host API server without rights to mind."""
    return Two()
