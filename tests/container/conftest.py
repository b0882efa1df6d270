"""The image, built for the tests of this folder; where none can be, they are skipped in one loud line."""

import os
from collections.abc import Iterator

import pytest
from image_scene import Built

from hack.bench.scene import Planes, fresh_planes
from hack.container.build import TAG, build, save
from hack.container.engine import engine, why_not
from hack.realnode.archive import architecture


@pytest.fixture(scope="session")
def built() -> Iterator[Built]:
    """Return the image of this checkout."""
    if reason := why_not():
        # As root on Linux, and in continuous integration, it must be built.
        if os.environ.get("CI") == "true":
            pytest.fail(f"no image can be built here: {reason}")
        pytest.skip(f"NO IMAGE: {reason}")
    with engine() as found:
        build(found, TAG, architecture=architecture())
        yield Built(found, save(found, TAG, architecture()))


@pytest.fixture(scope="session")
def planes() -> Iterator[Planes]:
    """Return a virtual and a host control plane."""
    with fresh_planes() as found:
        yield found
