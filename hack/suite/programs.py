"""The programs of the suite, and what its images are made of; all is built once,
without an image registry.
"""

import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hack.commands import run
from hack.planes import BINARY
from hack.realnode import builds, debian, outside
from hack.realnode.inside import Failed

#: Debian's packages that building busybox takes, and a program or file of each.
PACKAGES = {
    "musl-tools": "musl-gcc",
    "gcc": "gcc",
    "make": "make",
    "bzip2": "bzip2",
    "linux-libc-dev": "/usr/include/linux/types.h",
    "debian-archive-keyring": debian.KEYS,
}
#: The release whose source of busybox is that of the tests' image.
_BUSYBOX_SUITE = "trixie"
#: The version of busybox there.
_BUSYBOX_VERSION = "1.37.0"
#: What the original images have from Alpine's packages, and nginx.
_BASE_PACKAGES = (
    "bash",
    "bind9-dnsutils",
    "curl",
    "hostname",
    "iperf",
    "iproute2",
    "netcat-openbsd",
    "nginx-light",
)
_MODULE = "conformance"
_KUBERNETES = "k8s.io/kubernetes"


def suite() -> Path:
    """Return ``e2e.test``. The first build takes about 9 minutes of a core."""
    return builds.build(_MODULE, f"{_KUBERNETES}/test/e2e", tests=True)


def ginkgo() -> Path:
    """Return Ginkgo's command, which runs a suite in several processes."""
    return builds.build(_MODULE, "github.com/onsi/ginkgo/v2/ginkgo")


def agnhost() -> Path:
    """Return the program of most of the tests' containers.

    The first build takes about 5 minutes of a core.
    """
    return builds.build(_MODULE, f"{_KUBERNETES}/test/images/agnhost")


def sample_apiserver() -> Path:
    """Return the API server that the test of the aggregation layer runs."""
    return builds.build(_MODULE, "k8s.io/sample-apiserver")


def nonewprivs() -> Path:
    """Return the program that prints its effective user."""
    return builds.build(_MODULE, f"{_KUBERNETES}/test/images/nonewprivs")


def kubectl() -> Path:
    """Return kubectl, as a program of this name."""
    path = builds.BINARIES / "kubectl"
    if not path.is_symlink():
        builds.BINARIES.mkdir(exist_ok=True)
        path.symlink_to(BINARY)
    return path


def sources() -> Path:
    """Return the folder of the tests' images in Kubernetes' sources.

    Raises:
        RuntimeError: There is no Go, or it can't load the module.
    """
    command = ["list", "-m", "-f", "{{.Dir}}", _KUBERNETES]
    return Path(builds.go(_MODULE, command).strip()) / "test" / "images"


def busybox() -> Path:
    """Return a static busybox, built with musl from the sources in Debian.

    Debian's own binary of the same version differs: it lacks commands, and is built with glibc.

    Raises:
        Failed: The sources can't be had, or the build failed.
    """
    binary = builds.BINARIES / f"busybox-{_BUSYBOX_VERSION}"
    if binary.exists():
        return binary
    outside.install(PACKAGES)
    _log(f"building busybox {_BUSYBOX_VERSION}, about a minute")
    with tempfile.TemporaryDirectory(prefix="vsyncer-busybox-") as name:
        folder = Path(name)
        _fetch_source("busybox", _BUSYBOX_SUITE, folder)
        _run(
            ["tar", "-xf", str(next(folder.glob(f"busybox_{_BUSYBOX_VERSION}.orig.tar.*")))], folder
        )
        tree = folder / f"busybox-{_BUSYBOX_VERSION}"
        _run(["make", "defconfig"], tree)
        config = (tree / ".config").read_text()
        config = config.replace("# CONFIG_STATIC is not set", "CONFIG_STATIC=y")
        # It needs constants that newer kernels' headers lack.
        config = config.replace("CONFIG_TC=y", "# CONFIG_TC is not set")
        (tree / ".config").write_text(config)
        headers = f"/usr/include/{os.uname().machine}-linux-gnu"
        _run(
            [
                "nice",
                "make",
                f"-j{os.cpu_count()}",
                f"CC=musl-gcc -idirafter /usr/include -idirafter {headers}",
            ],
            tree,
        )
        builds.BINARIES.mkdir(exist_ok=True)
        shutil.copy(tree / "busybox", binary)
    return binary


def base() -> Path:
    """Return the tar of a small Debian with what the tests call in their containers.

    Raises:
        Failed: It can't be made.
    """
    return debian.root("base", _BASE_PACKAGES)


def commands(shell: Path) -> list[str]:
    """Return the names of a busybox' commands."""
    return _run([str(shell), "--list"]).split()


def file_in(tar: Path, path: str) -> str:
    """Return a text file in the tar of a root file system."""
    with tarfile.open(tar) as opened:
        found = opened.extractfile(f"./{path}")
        if found is None:
            raise Failed(f"{tar}: {path} is no file")
        return found.read().decode()


def _fetch_source(package: str, suite: str, into: Path) -> None:
    """Fetch a source package of Debian with an apt of its own:
    the machine's sources stay as they are.
    """
    for name in ("lists/partial", "cache/archives/partial", "state"):
        (into / name).mkdir(parents=True)
    listed = into / "sources.list"
    listed.write_text(
        f"deb-src [signed-by={debian.KEYS}] http://deb.debian.org/debian {suite} main\n"
    )
    options = {
        "Dir::Etc::sourcelist": listed,
        "Dir::Etc::sourceparts": "-",
        "Dir::State": into / "state",
        "Dir::State::lists": into / "lists",
        "Dir::Cache": into / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-q", *(f"-o={name}={value}" for name, value in options.items())]
    _run([*apt, "update"], into)
    _run([*apt, "source", "--download-only", package], into)


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    done = run(command, cwd=folder)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _log(text: str) -> None:
    print(f"conformance: {text}", file=sys.stderr, flush=True)
