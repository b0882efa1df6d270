"""A node, run from inside its namespaces: control plane, containerd, kubelet, kube-proxy, the
enforcer of NetworkPolicies, CoreDNS, metrics-server.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from hack import commands
from hack.planes import find_programs
from hack.realnode import builds, policies, settings
from hack.realnode.node_site import NodeSite
from kube_envtest import ControlPlane

START_SECONDS = 180.0
#: Seconds until a program that ended is started again, as a real node's init does.
RESTART_SECONDS = 1.0
#: Folders of the machine that containers, kubelet and CNI plugins write to: the node has its own.
OWN_FOLDERS = ("/var/lib", "/var/log")
#: Users with a kubeconfig in the node's folder; the second has no rights but those that a role
#: gives it.
USERS = ("admin", "daemon")
#: Settings of a network namespace for a node: packets pass from pod to pod, also across the bridge
#: through kube-proxy's rules.
NETWORK_SETTINGS = {"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"}


class Failed(Exception):
    """The node can't run."""


def main() -> None:
    """Run the node of a place until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    site = NodeSite(sys.argv[1])
    own_mounts(site)
    network(site)
    with ExitStack() as stack:
        plane = stack.enter_context(
            ControlPlane(
                "host",
                programs=find_programs(),
                controllers="*",
                scheduler=True,
                service_range=settings.SERVICE_RANGE,
                node_address=site.addresses[1],
            )
        )
        for user in USERS:
            plane.kubeconfig(user, path=site.folder / f"{user}.kubeconfig")
        node = Node(site, plane)
        node.start()
        site.state.write_text(
            json.dumps({"kubeconfig": str(site.folder / "admin.kubeconfig"), "url": plane.url})
        )
        while True:
            time.sleep(RESTART_SECONDS)
            node.restart_ended()


def own_mounts(site: NodeSite) -> None:
    """Give the node folders of its own in place of the machine's, in its mount namespace alone."""
    run("mount", "--make-rshared", "/")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for path in OWN_FOLDERS:
        own = site.folder / path.rpartition("/")[2]
        own.mkdir(exist_ok=True)
        run("mount", "--bind", str(own), path)


def network(site: NodeSite) -> None:
    """Set up the node's end of the cable, which the machine has laid."""
    run("ip", "link", "set", "lo", "up")
    wait("the cable", lambda: has_link("eth0"))
    run("ip", "address", "add", f"{site.addresses[1]}/30", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    for name, value in NETWORK_SETTINGS.items():
        path = Path("/proc/sys") / name
        if path.exists():
            path.write_text(value)


def has_link(name: str) -> bool:
    """Return True if the network interface exists; /sys may show those of another namespace."""
    return commands.run(["ip", "link", "show", name]).returncode == 0


def has_table(name: str) -> bool:
    """Return True if nftables has the table."""
    return commands.run(["nft", "list", "table", *name.split()]).returncode == 0


class Node:
    """The programs of a node beside a running control plane."""

    def __init__(self, site: NodeSite, plane: ControlPlane) -> None:
        self._site = site
        self._plane = plane
        self._folder = plane.folder
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, Sequence[str]] = {}

    def start(self) -> None:
        """Start all programs, and wait until pods can run and names are resolved.

        Raises:
            Failed: One ended, or wasn't ready in time.
        """
        binary = Path(self._plane.kubectl_command[0])
        self._containerd()
        self._kubelet(binary)
        self._kube_proxy(binary)
        self._enforcer()
        self._metrics_server()
        self._plane.kubectl("apply", "-f", "-", stdin=settings.dns())
        self._wait(
            "the node",
            lambda: (
                "True"
                in self._get(
                    "node", settings.NODE, "{.status.conditions[?(@.type=='Ready')].status}"
                )
            ),
        )
        self._wait(
            "CoreDNS",
            lambda: (
                self._get("-n=kube-system", "deployment", "coredns", "{.status.readyReplicas}")
                == "1"
            ),
        )

        self._wait("the enforcer of NetworkPolicies", lambda: has_table(policies.TABLE))
        self._wait(
            "metrics-server",
            lambda: (
                "True"
                in self._get("apiservice", settings.METRICS_API, "{.status.conditions[*].status}")
            ),
        )

    def restart_ended(self) -> None:
        """Start the programs again that have ended."""
        for name, command in self._commands.items():
            if (status := self._programs[name].poll()) is not None:
                print(
                    f"{name} ended with status {status}; it is started again",
                    file=sys.stderr,
                    flush=True,
                )
                self._spawn(name, *command)

    def _get(self, *arguments: str) -> str:
        *what, path = arguments
        return self._plane.kubectl("get", *what, "-o", f"jsonpath={path}", check=False).stdout

    def _containerd(self) -> None:
        networks = self._folder / "networks"
        networks.mkdir()
        (networks / "pods.conflist").write_text(settings.network())
        config = self._folder / "containerd.toml"
        config.write_text(settings.containerd(networks))
        self._spawn("containerd", "containerd", f"--config={config}")
        self._wait("containerd", Path(settings.CRI_SOCKET).exists)
        for archive in sorted((self._site.folder / "images").glob("*.tar")):
            load(archive)

    def _kubelet(self, binary: Path) -> None:
        address = self._site.addresses[1]
        self._plane.certificate(
            "kubelet-server", user=settings.NODE, addresses=[settings.NODE, address, "127.0.0.1"]
        )
        self._plane.certificate(
            "kubelet", user=f"system:node:{settings.NODE}", group="system:nodes"
        )
        (self._folder / "resolv.conf").write_text("search .\n")
        config = self._folder / "kubelet.yaml"
        config.write_text(settings.kubelet(self._folder, self._site.cgroup))
        self._spawn(
            "kubelet",
            str(binary),
            "kubelet",
            f"--config={config}",
            f"--kubeconfig={self._plane.certificate_kubeconfig('kubelet')}",
            f"--hostname-override={settings.NODE}",
            f"--node-ip={address}",
        )

    def _kube_proxy(self, binary: Path) -> None:
        self._plane.certificate("kube-proxy", user="system:kube-proxy")
        config = self._folder / "kube-proxy.yaml"
        config.write_text(settings.kube_proxy(self._plane.certificate_kubeconfig("kube-proxy")))
        self._spawn(
            "kube-proxy",
            str(binary),
            "kube-proxy",
            f"--config={config}",
            f"--hostname-override={settings.NODE}",
        )

    def _enforcer(self) -> None:
        """Start the network of a cluster, which none of Kubernetes' own programs provides."""
        kubeconfig = self._site.folder / "admin.kubeconfig"
        self._spawn("enforcer", sys.executable, "-m", "hack.realnode.enforcer", str(kubeconfig))

    def _metrics_server(self) -> None:
        """Start metrics-server beside the kubelet; as a pod it would be the same."""
        name = "metrics-server.kube-system.svc"
        address = self._site.addresses[1]
        self._plane.certificate("metrics-server-serving", user=name, addresses=[name])
        self._plane.certificate(
            "metrics-server", user="system:metrics-server", group="system:masters"
        )
        kubeconfig = self._plane.certificate_kubeconfig("metrics-server")
        self._spawn(
            "metrics-server",
            str(builds.metrics_server()),
            *(
                f"--{kind}kubeconfig={kubeconfig}"
                for kind in ("", "authentication-", "authorization-")
            ),
            f"--secure-port={settings.METRICS_PORT}",
            f"--tls-cert-file={self._folder / 'metrics-server-serving.crt'}",
            f"--tls-private-key-file={self._folder / 'metrics-server-serving.key'}",
            f"--kubelet-certificate-authority={self._folder / 'ca.crt'}",
            "--kubelet-preferred-address-types=InternalIP",
            "--metric-resolution=15s",
        )
        ca = (self._folder / "ca.crt").read_text()
        self._plane.kubectl("apply", "-f", "-", stdin=settings.metrics(address, ca))

    def _spawn(self, name: str, *command: str) -> None:
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._programs[name] = process
        self._commands[name] = command
        self._site.pid_file(name).write_text(str(process.pid))

    def _log(self, name: str) -> Path:
        return self._site.folder / f"{name}.log"

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        def checked() -> bool:
            for name, program in self._programs.items():
                if program.poll() is not None:
                    tail = "\n".join(self._log(name).read_text(errors="replace").splitlines()[-12:])
                    raise Failed(f"{name} ended; its log ends with:\n{tail}")
            return is_so()

        wait(what, checked)


def load(archive: Path) -> None:
    """Import the images of an archive into containerd."""
    run(
        "ctr",
        f"--address={settings.CRI_SOCKET}",
        "-n",
        "k8s.io",
        "images",
        "import",
        "--no-unpack",
        str(archive),
    )


def wait(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until it is so.

    Raises:
        Failed: It wasn't in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise Failed(f"{what} isn't ready after {START_SECONDS:g} s")
        time.sleep(0.2)


def run(*command: str) -> str:
    """Run a command; return its output.

    Raises:
        Failed: It failed.
        Hung: It took too long.
    """
    done = commands.run(command, env={**os.environ, "LC_ALL": "C"})
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    try:
        main()
    except (Failed, commands.Hung) as error:
        sys.exit(str(error))
