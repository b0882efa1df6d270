"""What all tests share: two real clusters a session, started when the first test asks for them."""

import sys
from pathlib import Path

pytest_plugins = ["syncer.testing.controlplane.fixtures"]

# Tests use the kubelet simulation of hack/, which is no part of the distribution.
sys.path.insert(0, str(Path(__file__).parents[1]))
