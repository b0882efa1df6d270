"""Settings of all tests: the control planes that this checkout has built, and the import of hack/."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Tests use the kubelet simulation of hack/, which is no part of the distribution.
sys.path.insert(0, str(Path(__file__).parents[1]))

from hack.gate.recorder.gate_recorder import load_profile, watch_for_deaths
from hack.planes import environment

os.environ.update(environment())

load_profile()
# For hack/check --fast; tests that name a number of examples keep it.
settings.register_profile("fast", settings.get_profile("gate"), max_examples=10)
# For hack/explore: other examples in each run.
settings.register_profile("explore", settings.get_profile("gate"), derandomize=False)


def pytest_configure(config: pytest.Config) -> None:
    """Look for tasks that die unseen, in a run without the gate, too."""
    watch_for_deaths(config)
