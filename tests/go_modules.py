"""Sources of Go modules: Kubernetes' own in the versions that the tests' control plane is built of, and others."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

_MODULE = Path(__file__).parents[1] / "hack" / "controlplane"


def folder_of(module: str) -> Path:
    """Return the folder of a module's sources; the test is skipped where there is no Go, or Go hasn't fetched it."""
    if not shutil.which("go"):
        pytest.skip("no Go here")
    # Only what is there: a test fetches nothing.
    command = ["go", "list", "-m", "-json", module]
    offline = {**os.environ, "GOPROXY": "off"}
    listed = subprocess.run(command, cwd=_MODULE, env=offline, capture_output=True, text=True, check=False)
    found = json.loads(listed.stdout).get("Dir", "") if listed.returncode == 0 else ""
    if not found or not Path(found).is_dir():
        pytest.skip(f"Go hasn't fetched {module}")
    return Path(found)


def downloaded(module: str) -> Path:
    """Return the folder of a module's sources, downloaded if need be; the test is skipped where there is no Go.

    Args:
        module: The module with its version, such as `example.org/module@v1.2.3`.

    Raises:
        CalledProcessError: Go can't download it.
    """
    if not shutil.which("go"):
        pytest.skip("no Go here")
    command = ["go", "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=_MODULE, capture_output=True, text=True, check=True, timeout=600)
    return Path(json.loads(done.stdout)["Dir"])
