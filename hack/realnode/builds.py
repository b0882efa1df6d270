"""The programs that a node and its images need, built from Go modules once."""

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.commands import run
from hack.realnode import settings
from hack.realnode.archive import Image, write

_HERE = Path(__file__).parent
#: Where other things are that are made once; not in git.
BINARIES = _HERE / "bin"
#: Where built programs are, for all checkouts.
PROGRAMS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vsyncer" / "programs"
#: How long the go command may take, which compiles all modules the first time.
_SECONDS = 3000.0
#: Tools for charts, each with its module's folder and its package.
TOOLS = {
    "helm": ("tools", "helm.sh/helm/v4/cmd/helm"),
    "kubeconform": ("tools", "github.com/yannh/kubeconform/cmd/kubeconform"),
    "promtool": ("tools", "github.com/prometheus/prometheus/cmd/promtool"),
    "prometheus": ("tools", "github.com/prometheus/prometheus/cmd/prometheus"),
}
#: Leaves the clients of clouds out of promtool and Prometheus, which look up no targets here.
_TAGS = "remove_all_sd"


def build(folder: str, package: str = ".", *, tests: bool = False, tags: str = "") -> Path:
    """Build a Go program, unless it was built from these very sources.

    Args:
        folder: The folder beside this file with the module that the program is built in; also the
            program's name, if the package is that of the folder.
        package: The package, by default the folder's own; its last part is the program's name.
        tests: Build the tests of the package, as ``NAME.test``.
        tags: Build tags, with commas.

    Raises:
        RuntimeError: There is no Go, or the build failed.
    """
    binary = _binary_path(folder, package, tests=tests, tags=tags)
    if binary.exists():
        return binary
    if not shutil.which("go"):
        raise RuntimeError("no Go here, so no images can be built: https://go.dev/dl")
    print(
        f"node: building {binary.name}; the first time may take some minutes",
        file=sys.stderr,
        flush=True,
    )
    binary.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: a build that is cut off leaves nothing that looks like a program.
    new = binary.with_name(f"{binary.name}.{os.getpid()}.new")
    go(folder, [*_command(tests=tests, tags=tags), "-o", str(new), package])
    new.replace(binary)
    return binary


def _command(*, tests: bool, tags: str) -> list[str]:
    command = ["test", "-c", "-vet=off"] if tests else ["build", f"-tags={tags}"]
    return [*command, "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]


def _binary_path(folder: str, package: str, *, tests: bool, tags: str) -> Path:
    """Return where a program is kept: below the hash of its module, of how it is built,
    and of the machine's kind.
    """
    sources = sorted(
        path for path in (_HERE / folder).iterdir() if path.suffix in (".go", ".mod", ".sum")
    )
    how = [platform.machine(), package, *_command(tests=tests, tags=tags)]
    digest = hashlib.sha256(
        b"\0".join([*(path.read_bytes() for path in sources), *(each.encode() for each in how)])
    )
    name = folder if package == "." else package.rpartition("/")[2]
    return PROGRAMS / digest.hexdigest()[:16] / (name + (".test" if tests else ""))


def tool(name: str) -> Path:
    """Build a tool, unless it is there, and return it: one of :data:`TOOLS`.

    Raises:
        RuntimeError: There is no Go, or the build failed.
    """
    folder, package = TOOLS[name]
    return build(folder, package, tags=_TAGS)


def is_built(name: str) -> bool:
    """Return True if a tool is there, built from these sources."""
    folder, package = TOOLS[name]
    return _binary_path(folder, package, tests=False, tags=_TAGS).exists()


def metrics_server() -> Path:
    """Build metrics-server, unless it is there, and return it.

    Raises:
        RuntimeError: There is no Go, or the build failed.
    """
    return build("metrics", "sigs.k8s.io/metrics-server/cmd/metrics-server")


def write_images(path: Path) -> None:
    """Write the images that each node has: pause, CoreDNS, busybox, and the demo's web server."""
    demo = build("images")
    busybox = Path("/bin/busybox")
    listed = run([busybox, "--list"])
    listed.check_returncode()
    links = {f"bin/{name}": "busybox" for name in listed.stdout.split() if name != "busybox"}
    accounts = {"etc/passwd": "root:x:0:0:root:/:/bin/sh\n", "etc/group": "root:x:0:\n"}
    write(
        path,
        [
            Image([settings.PAUSE], ["/pause"], {"pause": demo}, user="65535:65535"),
            Image([settings.COREDNS], ["/coredns"], {"coredns": build("coredns")}),
            Image(
                ["vsyncer.dev/busybox:local"],
                ["/bin/sh"],
                {"bin/busybox": busybox, **accounts},
                links,
            ),
            Image(
                ["vsyncer.dev/web:local"],
                ["/web"],
                {"web": demo, "bin/busybox": busybox, **accounts},
                links,
            ),
        ],
    )


def go(folder: str, arguments: Sequence[str]) -> str:
    """Run the go command in the module in the folder of this name, without cgo; return its output.

    Raises:
        RuntimeError: It failed, or took too long.
    """
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = run(["nice", "go", *arguments], seconds=_SECONDS, cwd=_HERE / folder, env=environment)
    if done.returncode:
        raise RuntimeError(f"go {' '.join(arguments)} in {folder}: {done.stderr.strip()[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    for each in TOOLS:
        print(tool(each))
