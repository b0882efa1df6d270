"""The programs under ``examples/multicluster``, run as a user does, and a kubeconfig for them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.webshop.contexts import joined as joined

#: Seconds, after which a program that doesn't end is given up.
PATIENCE = 120.0
FOLDER = Path(__file__).parents[1] / "examples" / "multicluster"


@contextmanager
def example(name: str, *arguments: str, folder: Path, kubeconfig: Path | None = None) -> Iterator[Callable[[], str]]:
    """Run a program of the examples; yield what returns its output, which is written to a folder."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        command = [sys.executable, str(FOLDER / name), *arguments]
        command += ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield log.read_text
            assert process.poll() is None, log.read_text()
        finally:
            process.terminate()
            process.wait(PATIENCE)
