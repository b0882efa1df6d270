"""Tests of the charts, with the tools that they take; without these they are skipped, except with ``CI=true``."""

import os

import pytest

from hack.realnode import builds


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    """Skip the tests if the tools have never been built."""
    missing = [name for name in builds.TOOLS if not builds.is_built(name)]
    if missing and os.environ.get("CI") != "true":
        pytest.skip(f"{' and '.join(missing)} not built: python -m hack.realnode.builds")
