"""Settings of all tests: the control planes that this checkout has built, and the import of hack/."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# Tests use the kubelet simulation of hack/, which is no part of the distribution.
sys.path.insert(0, str(Path(__file__).parents[1]))

from hack.planes import environment

os.environ.update(environment())

# A busy machine takes its time: how long an example takes is no finding.
settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# For hack/check --fast; tests that name a number of examples keep it.
settings.register_profile("fast", settings.get_profile("patient"), max_examples=10)
