"""The pytest plugin of the package: registered in the entry-point group ``pytest11``, so the fixture is just there."""

import pytest

import syncer.testing


@pytest.fixture
def world() -> "syncer.testing.World":
    """Return a virtual cluster ``vc`` and its host namespace ``vc-ns``, empty, with all built-
    in syncers as configured by
    default. A syncer of a plugin joins when it is first asked: ``world.decide(MySyncer, "shop/db")``.
    """
    return syncer.testing.World()
