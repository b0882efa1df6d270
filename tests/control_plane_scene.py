"""A virtual control plane of real programs, with what `syncer pki` has made on a real host."""

import base64
import gc
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from cryptography import x509

from hack.planes import VIRTUAL_CONTROLLERS, environment
from kube_envtest import ControlPlane
from kube_envtest.controlplane.folder import free_ports
from kube_envtest.controlplane.processes import Process, spawn
from syncer.cli.app import app
from syncer.clusters.connection import ConnectionSettings

SECONDS = 120.0


class Host:
    """A namespace of the host with the Service of a virtual API server, and the user that runs the command."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        plane.kubectl("create", "namespace", namespace)
        plane.kubectl("-n", namespace, "create", "service", "clusterip", "api", "--tcp=443:6443")

    def grant(self) -> None:
        """Give the user `alice` the rights that the command asks for."""
        role = CliRunner().invoke(app, ["pki", "--namespace", self.namespace, "--service", "api", "--rbac"])
        self.plane.kubectl("apply", "-f", "-", stdin=role.stdout)
        self.plane.kubectl("-n", self.namespace, "create", "rolebinding", "pki", "--role=api-pki", "--user=alice")

    def command(self, *, user: str = "alice") -> list[str]:
        """Return the command line of a user."""
        kubeconfig = str(self.plane.kubeconfig(user))
        options = ["--namespace", self.namespace, "--service", "api", "--host-kubeconfig", kubeconfig]
        return [sys.executable, "-m", "syncer", "pki", *options]

    def pki(self, *arguments: str, user: str = "alice") -> "subprocess.CompletedProcess[str]":
        """Run the command as a user."""
        command = [*self.command(user=user), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    def files(self, secret: str) -> dict[str, bytes]:
        """Return the files of a Secret."""
        data = self._get("secret", secret)["data"]
        return {name: base64.b64decode(content) for name, content in data.items()}

    def change(self, secret: str, patch: Mapping[str, Any]) -> None:
        """Patch a Secret."""
        text = yaml.safe_dump(dict(patch))
        self.plane.kubectl("-n", self.namespace, "patch", "secret", secret, "--type=merge", "-p", text)

    def owners(self, secret: str) -> list[Any]:
        """Return the owners of a Secret."""
        return list(self._get("secret", secret)["metadata"].get("ownerReferences", []))

    def _get(self, kind: str, name: str) -> Any:
        return yaml.safe_load(self.plane.kubectl("-n", self.namespace, "get", kind, name, "-o", "yaml").stdout)


class Plane:
    """etcd, kube-apiserver and kube-controller-manager, each with the files of `api-pki` and nothing else."""

    def __init__(self, folder: Path, host: Host) -> None:
        self.folder, self.host = folder, host
        self.port, self.etcd_port, self.peer_port = free_ports(3)
        self._running: list[Process] = []
        self.write_files()

    def write_files(self) -> None:
        """Write the files, as a kubelet does that mounts the Secrets; only the ports are those of this test."""
        for secret in ("api-pki", "api-daemon", "api-kubeconfig"):
            (self.folder / secret).mkdir(exist_ok=True)
            for name, content in self.host.files(secret).items():
                service = b"api." + self._svc
                servers = {"controller-manager.conf": b"localhost:6443", "config": service, "super-admin.conf": service}
                server = servers.get(name, b"")
                mine = content.replace(server, b"localhost:%d" % self.port) if server else content
                fresh = self.folder / secret / f".{name}"
                fresh.write_bytes(mine)
                fresh.rename(self.folder / secret / name)

    @property
    def _svc(self) -> bytes:
        return f"{self.host.namespace}.svc".encode()

    @property
    def admin(self) -> Path:
        """The kubeconfig of the tenant's administrator."""
        return self.folder / "api-kubeconfig" / "config"

    @property
    def super_admin(self) -> Path:
        """The kubeconfig for an emergency."""
        return self.folder / "api-pki" / "super-admin.conf"

    @property
    def daemon(self) -> ConnectionSettings:
        """The settings with which the daemon connects."""
        return ConnectionSettings(str(self.folder / "api-daemon" / "config"))

    def kubectl(
        self, *arguments: str, kubeconfig: Path | None = None, check: bool = True, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl with the tenant's kubeconfig, or another one."""
        command = [*self.host.plane.kubectl_command, "--kubeconfig", str(kubeconfig or self.admin), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SECONDS, check=check)

    def start(self) -> None:
        """Start all three; each is ready once the next one works."""
        self._spawn("etcd", *self._etcd())
        self._spawn("kube-apiserver", *self._api_server())
        self.until(lambda: self._asked("get", "--raw", "/readyz").stdout == "ok")
        self._spawn("kube-controller-manager", *self._controller_manager())

    def stop(self) -> None:
        """Stop all, etcd last."""
        for each in reversed(self._running):
            each.kill()

    def ends(self, program: str) -> bool:
        """Send a program SIGTERM; return True if it ends."""
        [found] = [each for each in self._running if each.name == program]
        os.kill(found.pid, signal.SIGTERM)
        deadline = time.monotonic() + SECONDS
        while found.alive() and time.monotonic() < deadline:
            time.sleep(0.1)
        return not found.alive()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        deadline = time.monotonic() + SECONDS
        while not holds():
            ended = [each for each in self._running if not each.alive()]
            assert not ended, f"{ended[0].name} ended:\n{ended[0].last_lines()}"
            assert time.monotonic() < deadline, "\n".join(each.last_lines() for each in self._running)
            time.sleep(0.2)

    def works(self, namespace: str) -> bool:
        """Return True once the controllers have acted on a new namespace: all certificates are in use then."""
        self._asked("create", "namespace", namespace)
        return self._asked("-n", namespace, "get", "serviceaccount", "default").returncode == 0

    def shown(self, port: int) -> x509.Certificate:
        """Return the certificate that a server shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
            context.wrap_socket(plain) as wrapped,
        ):
            return x509.load_der_x509_certificate(wrapped.getpeercert(binary_form=True) or b"")

    def _etcd(self) -> list[str]:
        pki, peer = self.folder / "api-pki", f"https://localhost:{self.peer_port}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls=https://127.0.0.1:{self.etcd_port}",
            f"--advertise-client-urls=https://localhost:{self.etcd_port}",
            f"--listen-peer-urls=https://127.0.0.1:{self.peer_port}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            f"--cert-file={pki / 'etcd-server.crt'}",
            f"--key-file={pki / 'etcd-server.key'}",
            "--client-cert-auth",
            f"--trusted-ca-file={pki / 'etcd-ca.crt'}",
            f"--peer-cert-file={pki / 'etcd-peer.crt'}",
            f"--peer-key-file={pki / 'etcd-peer.key'}",
            "--peer-client-cert-auth",
            f"--peer-trusted-ca-file={pki / 'etcd-ca.crt'}",
        ]

    def _api_server(self) -> list[str]:
        pki = self.folder / "api-pki"
        return [
            f"--etcd-servers=https://localhost:{self.etcd_port}",
            f"--etcd-cafile={pki / 'etcd-ca.crt'}",
            f"--etcd-certfile={pki / 'apiserver-etcd-client.crt'}",
            f"--etcd-keyfile={pki / 'apiserver-etcd-client.key'}",
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self.port}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            "--authorization-mode=Node,RBAC",
            f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
            f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
            f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
            f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki / 'sa.pub'}",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            "--service-cluster-ip-range=10.98.0.0/16",
        ]

    def _controller_manager(self) -> list[str]:
        pki = self.folder / "api-pki"
        return [
            f"--kubeconfig={pki / 'controller-manager.conf'}",
            f"--controllers={VIRTUAL_CONTROLLERS}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            f"--service-account-private-key-file={pki / 'sa.key'}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _asked(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.kubectl(*arguments, kubeconfig=self.super_admin, check=False)

    def _spawn(self, name: str, *flags: str) -> None:
        log = self.folder / f"{name}.log"
        command = [environment()["ENVTEST_CONTROLPLANE"], name, *flags]
        self._running.append(Process(name, spawn(command, log, self.folder), log))


@contextmanager
def running(plane: Plane) -> Iterator[Plane]:
    """A control plane that runs."""
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
        gc.collect()
