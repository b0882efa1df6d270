"""In a checkout of vsyncer the control plane that is built there is used, unless another is named."""

import os
from pathlib import Path

BINARY = Path(__file__).parents[2] / "hack" / "controlplane" / "bin" / "controlplane"

if BINARY.exists():
    os.environ.setdefault("ENVTEST_CONTROLPLANE", str(BINARY))
