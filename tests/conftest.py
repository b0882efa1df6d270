"""What all tests share: the control planes that this checkout has built, and what lies in hack/."""

import os
import sys
from pathlib import Path

# Tests use the kubelet simulation of hack/, which is no part of the distribution.
sys.path.insert(0, str(Path(__file__).parents[1]))

from hack.planes import environment

os.environ.update(environment())
