"""A node from outside: its start, its end, and interventions while it runs."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from hack.commands import SECONDS, run
from hack.realnode import builds
from hack.realnode.inside import Failed, wait
from hack.realnode.node_site import ROOT, NodeSite

#: Debian's packages, and a program or file of each.
PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "iptables",
    "nftables": "nft",
    "iproute2": "ip",
    "busybox-static": "/bin/busybox",
}
#: Seconds to wait for another apt-get.
_LOCK_SECONDS = 300
#: Seconds to wait for an installation.
_INSTALL_SECONDS = 1200.0
#: Settings of the whole machine that a kubelet changes.
KUBELET_SETTINGS = (
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def why_not() -> str:
    """Return why no node can run here; empty if one can."""
    if sys.platform != "linux":
        return "a node needs Linux"
    if os.geteuid() != 0:
        return "a node needs root: kubelet and containerd make mounts, networks and control groups"
    if not shutil.which("go"):
        return "a node needs Go, to build kubelet and CoreDNS: https://go.dev/dl"
    if not shutil.which("apt-get") and missing_packages():
        return f"no {', '.join(missing_packages())} here, and no apt-get to install them"
    return ""


def missing_packages(packages: Mapping[str, str] = PACKAGES) -> list[str]:
    """Return the packages of Debian that are missing."""
    return [
        name
        for name, program in packages.items()
        if not shutil.which(program) and not Path(program).exists()
    ]


def up(site: NodeSite) -> dict[str, str]:
    """Start the node, and wait until pods can run. Return its kubeconfig and URL; nothing is done
    if it runs.

    Raises:
        Failed: It can't start. Nothing but its logs is left.
    """
    if (found := site.ready()) and pid_of(site):
        return found
    if reason := why_not():
        raise Failed(reason)
    down(site)
    install()
    try:
        (site.folder / "images").mkdir(parents=True)
        save_settings(site)
        builds.write_images(site.folder / "images" / "base.tar")
        builds.metrics_server()
        site.make_cgroups()
        spawn(site)
        wait("the network namespace", lambda: is_apart(site))
        lay_cable(site)

        def is_ready() -> bool:
            check_alive(site)
            return site.ready() is not None

        wait("the node", is_ready)
    except BaseException:
        keep_logs(site)
        down(site)
        raise
    return site.ready() or {}


def keep_logs(site: NodeSite) -> None:
    """Copy the logs of a node that failed to a folder beside its own."""
    shutil.rmtree(site.failed, ignore_errors=True)
    site.failed.mkdir()
    for file in site.folder.glob("*.log"):
        shutil.copy(file, site.failed)


def down(site: NodeSite) -> None:
    """End the node, and remove its remains; does nothing where there is none.

    The end of the first process of its namespaces ends all others, and with them go mounts, rules
    and links.
    """
    if pid := pid_of(site):
        first = first_of(pid)
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while (lives(pid) or (first and lives(first))) and time.monotonic() < deadline:
            time.sleep(0.05)
    # The kernel does it, too, but some time later.
    run(["ip", "link", "delete", site.link])
    if site.folder.exists():
        restore_settings(site)
        site.remove()


def load(site: NodeSite, archives: Sequence[Path]) -> None:
    """Import image archives, as ``docker save`` writes them, compressed or not, into the running
    node.

    Raises:
        Failed: No node runs, or an archive is none.
    """
    for archive in archives:
        if not archive.is_file():
            raise Failed(f"{archive}: no such file")
        plain = [
            "gzip",
            "--decompress",
            "--force",
            "--stdout",
            str(archive),
        ]  # --force: one that isn't compressed as it is
        with subprocess.Popen(plain, stdout=subprocess.PIPE) as read:
            command = [
                "ctr",
                "--address=/run/containerd/containerd.sock",
                "-n",
                "k8s.io",
                "images",
                "import",
                "-",
            ]
            inside(site, command, read.stdout, seconds=SECONDS)


def inside(
    site: NodeSite,
    command: Sequence[str],
    stdin: IO[bytes] | None = None,
    *,
    seconds: float | None = None,
) -> None:
    """Run a command in the namespaces of the node.

    Args:
        site: The node's.
        command: The command.
        stdin: Its input, by default this process's.
        seconds: How long it may take; by default as long as it likes.

    Raises:
        Failed: No node runs, or the command failed or took too long.
    """
    try:
        done = subprocess.run(enter(site, command), stdin=stdin, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise Failed(
            f"{' '.join(command)}: not done after {seconds:g} s, see above for its output"
        ) from late
    if done.returncode:
        raise Failed(f"{' '.join(command)} ended with status {done.returncode}")


def enter(site: NodeSite, command: Sequence[str]) -> list[str]:
    """Return the command, to be run in the node's namespaces.

    Raises:
        Failed: No node runs.
    """
    return [
        "nsenter",
        f"--target={_first(site)}",
        "--net",
        "--mount",
        "--pid",
        "--ipc",
        "--",
        *command,
    ]


def enter_files(site: NodeSite, command: Sequence[str]) -> list[str]:
    """Return the command, to be run with the node's network and files; it keeps its process id.

    Raises:
        Failed: No node runs.
    """
    target = f"--target={_first(site)}"
    return ["/usr/bin/nsenter", target, "--net", "--mount", "--", *command]


def enter_network(site: NodeSite) -> list[str]:
    """Return the beginning of a command that is to run in the node's network alone, with the
    machine's files and processes; it keeps its process id.

    Raises:
        Failed: No node runs.
    """
    return ["/usr/bin/nsenter", f"--net=/proc/{_first(site)}/ns/net", "--"]


def _first(site: NodeSite) -> int:
    pid = pid_of(site)
    first = first_of(pid) if pid else None
    if first is None:
        raise Failed("no node runs: hack/node up")
    return first


def install(packages: Mapping[str, str] = PACKAGES) -> None:
    """Install the missing packages of Debian.

    Raises:
        Failed: apt-get failed.
        Hung: It took too long.
    """
    missing = missing_packages(packages)
    if not missing:
        return
    print(f"node: installing {', '.join(missing)}", file=sys.stderr, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", f"-oDPkg::Lock::Timeout={_LOCK_SECONDS}", "-oAcquire::Retries=3"]
    for command in (
        ["dpkg", "--configure", "-a"],  # an installation that was cut off hinders all later ones
        [*apt, "update"],
        [*apt, "install", "-y", "--no-install-recommends", *missing],
    ):
        done = run(command, seconds=_INSTALL_SECONDS, stdin=subprocess.DEVNULL, env=environment)
        if done.returncode and "install" in command:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip()[-1000:]}")


def spawn(site: NodeSite) -> None:
    """Start the node in namespaces of its own, apart from this process, and wait until it has
    begun.

    Raises:
        Failed: It ended.
    """
    apart = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--ipc",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    command = [*apart, sys.executable, "-m", "hack.realnode.first", site.name]
    # The shell notes its own process id, which is that of the command.
    noted = [
        "sh",
        "-c",
        'echo $$ >"$1"; shift; exec "$@"',
        "node",
        str(site.folder / "pid"),
        *command,
    ]
    temporary = site.folder / "tmp"  # of the control plane, which goes with the node's other files
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with (site.folder / "node.log").open("ab") as log:
        subprocess.run(
            ["setsid", "--fork", *noted],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
            timeout=SECONDS,
        )
    wait("the first process", lambda: has_begun(site))


def has_begun(site: NodeSite) -> bool:
    """Return True once the shell has become the node's command, also if that has ended since."""
    try:
        pid = int((site.folder / "pid").read_text())
    except (FileNotFoundError, ValueError):
        return False
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return command != b"" and not command.startswith(b"sh\0")  # in the middle of it, there is none


def check_alive(site: NodeSite) -> None:
    """Check that the node has not ended.

    Raises:
        Failed: It has.
    """
    if pid_of(site) is None:
        raise Failed(
            f"the node ended:\n{(site.folder / 'node.log').read_text(errors='replace')[-2000:]}"
        )


def is_apart(site: NodeSite) -> bool:
    """Return True if the node has its network namespace.

    Raises:
        Failed: The node ended.
    """
    check_alive(site)
    first = first_of(pid_of(site) or 0)
    try:
        return (
            first is not None
            and Path(f"/proc/{first}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
        )
    except FileNotFoundError:
        return False


def lay_cable(site: NodeSite) -> None:
    """Connect the machine and the node.

    Raises:
        Failed: The addresses or the interface are in use.
    """
    for command in (
        f"ip link add {site.link} type veth peer name eth0 netns {first_of(pid_of(site) or 0)}",
        f"ip address add {site.addresses[0]}/30 dev {site.link}",
        f"ip link set {site.link} up",
    ):
        done = run(command.split())
        if done.returncode:
            raise Failed(f"{command}: {done.stderr.strip()}")


def pid_of(site: NodeSite) -> int | None:
    """Return the process of the running node; None if there is none."""
    try:
        pid = int((site.folder / "pid").read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    return pid if site.name.encode() in command.split(b"\0") else None


def first_of(pid: int) -> int | None:
    """Return the first process of the namespaces, as the machine numbers it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(children[0]) if children else None


def lives(pid: int) -> bool:
    """Return True if the process has not ended; one that waits for its parent has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def save_settings(site: NodeSite) -> None:
    """Save the settings of the machine that the kubelet changes."""
    saved = site.folder / "sysctl"
    saved.mkdir()
    for name in KUBELET_SETTINGS:
        with contextlib.suppress(OSError):
            (saved / name.replace("/", ".")).write_text((Path("/proc/sys") / name).read_text())


def restore_settings(site: NodeSite) -> None:
    """Restore the settings of the machine that the kubelet has changed."""
    for name in KUBELET_SETTINGS:
        saved = site.folder / "sysctl" / name.replace("/", ".")
        path = Path("/proc/sys") / name
        with contextlib.suppress(OSError):
            if saved.read_text() != path.read_text():
                path.write_text(saved.read_text())
