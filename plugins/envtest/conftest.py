"""In a checkout of vsyncer, use the control plane that is built there, unless another is configured."""

import os
from pathlib import Path

BINARY = Path(__file__).parents[2] / "hack" / "controlplane" / "bin" / "controlplane"

if BINARY.exists():
    os.environ.setdefault("ENVTEST_CONTROLPLANE", str(BINARY))
