"""What all tests share: the control planes that this checkout has built, and what lies in hack/."""

import os
import sys
from pathlib import Path

from hypothesis import settings

# Tests use the kubelet simulation of hack/, which is no part of the distribution.
sys.path.insert(0, str(Path(__file__).parents[1]))

from hack.planes import environment

os.environ.update(environment())

# For hack/check --fast; tests that name a number of examples keep it.
settings.register_profile("fast", max_examples=10)
