"""The pytest plugin of the package, registered in the entry-point group ``pytest11``, so that the
fixture needs no import.
"""

import pytest

import syncer.testing


@pytest.fixture
def world() -> "syncer.testing.World":
    """Return a world with the virtual cluster ``vc``, the host namespace ``vc-ns`` and all built-in
    syncers with defaults.

    A plugin's syncer is added when it is first used: ``world.decide(MySyncer, "shop/db")``.
    """
    return syncer.testing.World()
