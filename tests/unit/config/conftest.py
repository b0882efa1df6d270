"""Plugins to configure."""

import pytest
from config_fakes import FakePlugins


@pytest.fixture
def plugins() -> FakePlugins:
    return FakePlugins()
