"""The store that most tests here look at."""

import pytest
from store_scene import Watched

from syncer.engine.cache.store import Store


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def store(watched: Watched) -> Store:
    return watched.store
