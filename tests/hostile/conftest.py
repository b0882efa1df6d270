"""The scene of the hostile tenant, once for each name translator that a test is about."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_scene import TRANSLATORS, HostileScene


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `hostile` for all translators, or those of the marker."""
    if "hostile" not in metafunc.fixturenames:
        return
    chosen = metafunc.definition.get_closest_marker("translators")
    if chosen is not None and not chosen.kwargs.get("reason"):
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: translators(…) needs a reason")
    metafunc.parametrize("hostile", chosen.args if chosen else tuple(TRANSLATORS), indirect=True)


@pytest.fixture
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HostileScene]:
    """The virtual cluster of a hostile tenant, with a translator; the daemon isn't started yet."""
    scene = HostileScene(request.param, tmp_path)
    try:
        yield scene
    finally:
        scene.close()
