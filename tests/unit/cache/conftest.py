"""The informer of most tests here."""

import pytest
from informer_scene import Watched

from syncer.cache.informer import Informer


@pytest.fixture
def watched() -> Watched:
    """An informer beside an API server that promises the order of versions."""
    return Watched()


@pytest.fixture
def informer(watched: Watched) -> Informer:
    return watched.informer


@pytest.fixture(params=[True, False], ids=["ordered", "unordered"])
def either(request: pytest.FixtureRequest) -> Watched:
    """An informer whose versions can be compared, and one whose can't."""
    return Watched(ordered=request.param)
