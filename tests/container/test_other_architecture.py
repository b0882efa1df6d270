"""The image for another architecture: its packages are locked, and its programs run here while it is built."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.container.build import LOCKS, programs
from hack.container.emulator import emulated
from hack.container.lock import BUILD, PROGRAMS, RUNTIME
from hack.realnode import debian, outside
from hack.realnode.archive import architecture
from hack.realnode.inside import wait

OTHER = {"amd64": "arm64", "arm64": "amd64"}[architecture()]
#: Of glibc 2.28 and newer, as both bases are.
TRIPLES = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}


# Debian's Python and the Dockerfile's.
@pytest.mark.parametrize("python", ["3.13", "3.14"])
def test_locks_have_wheels_with_hashes_for_the_other_architecture(python: str, tmp_path: Path) -> None:
    command = [str(programs(PROGRAMS) / "uv"), "pip", "install", "--quiet", "--no-cache", f"--target={tmp_path}"]
    command += [f"--python-version={python}", f"--python-platform={TRIPLES[OTHER]}"]
    command += ["--require-hashes", "--only-binary=:all:", f"-r{LOCKS / RUNTIME}", f"-r{LOCKS / BUILD}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert not done.returncode, done.stderr
    name = f"*.cpython-{python.replace('.', '')}-{TRIPLES[OTHER].partition('-')[0]}-linux-gnu.so"
    assert [path.name for path in tmp_path.rglob(name)], "no package has a compiled module"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can register an emulator")
def test_programs_of_the_other_architecture_run_until_the_last_block_ends() -> None:
    def runs() -> bool:
        return not subprocess.run(["arch-test", OTHER], capture_output=True, check=False, timeout=600).returncode

    outside.install(debian.FOREIGN)
    before = runs()
    with emulated(OTHER):
        with emulated(OTHER):
            assert runs()
        assert runs()
    # The kernel removes the last mount a moment after its process.
    wait("the end of the emulator", lambda: runs() == before)
