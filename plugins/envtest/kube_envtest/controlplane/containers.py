"""Control-plane programs in Docker containers: K3s, or an image built FROM scratch with our own binary.

Both need the docker daemon of this machine: they share files with it, and `scratch` also shares the
network. Containers outlive a killed test; the next test that starts a container removes them.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import socket
import tarfile
from pathlib import Path
from typing import Any

import yaml
from docker.errors import DockerException, ImageNotFound  # type: ignore[import-untyped]
from testcontainers.community.k3s import K3SContainer
from testcontainers.core.config import ConnectionMode, testcontainers_config
from testcontainers.core.docker_client import DockerClient, get_docker_host

from kube_envtest.controlplane import flags
from kube_envtest.controlplane.errors import NotAvailable, StartFailed
from kube_envtest.controlplane.folder import is_orphan
from kube_envtest.controlplane.processes import LOG_LINES
from kube_envtest.controlplane.programs import APISERVER, CONTROLLER_MANAGER, SCHEDULER, Layout, Program

FOLDER_LABEL = "kube-envtest.folder"
BINARY_LABEL = "kube-envtest.binary"
DEFAULT_HOST = "unix:///var/run/docker.sock"
IMAGE = "kube-envtest:local"
DOCKERFILE = b'FROM scratch\nCOPY controlplane /controlplane\nENTRYPOINT ["/controlplane"]\n'


class Container:
    """A container, as a program."""

    def __init__(self, name: str, container: Any) -> None:
        self.name = name
        self._container = container

    @property
    def pid(self) -> int:
        """The process id on this machine."""
        self._container.reload()
        return int(self._container.attrs["State"]["Pid"])

    def alive(self) -> bool:
        """Return True if it runs or is frozen."""
        self._container.reload()
        return self._container.status in ("created", "running", "paused")

    def freeze(self) -> None:
        """Freeze the container's cgroup."""
        self._container.pause()

    def thaw(self) -> None:
        """Thaw the container's cgroup."""
        self._container.unpause()

    def kill(self) -> None:
        """Kill its processes; the container stays until `clean`."""
        self._container.reload()
        if self._container.status == "paused":
            self._container.unpause()  # dockerd before 26 refuses to kill a paused container
        if self.alive():
            self._container.kill()
        self._container.wait()

    def last_lines(self) -> str:
        """Return the end of its log."""
        return str(self._container.logs(tail=LOG_LINES).decode(errors="replace"))


class Scratch:
    """Each program in a container of our own image, on the machine's network, with the plane's
    folder mounted.
    """

    def __init__(self, client: DockerClient, binary: Path) -> None:
        self.source = f"Docker image {IMAGE}"
        self.kubectl: tuple[str, ...] = (str(binary), "kubectl")
        self._binary = str(binary)
        self._client = client

    def has(self, name: str) -> bool:
        """Return True: the binary has all programs."""
        return name in flags.ARGUMENTS

    def tool(self, name: str) -> tuple[str, ...]:
        """Return the command line of the binary's `etcdctl` or `etcdutl`."""
        return self._binary, name

    def start(self, name: str, layout: Layout) -> Program:
        """Start the program in a container."""
        folder = str(layout.folder)
        container = self._client.run(
            IMAGE,
            [name, *flags.ARGUMENTS[name](layout)],
            detach=True,
            network="host",
            user=f"{os.getuid()}:{os.getgid()}",
            volumes={folder: {"bind": folder, "mode": "rw"}},
            labels={FOLDER_LABEL: folder},
        )
        return Container(name, container)

    def clean(self, layout: Layout) -> None:
        """Remove the plane's containers."""
        remove_containers(self._client, layout.folder)


class K3s:
    """A single container with a whole control plane and a node; it has SQLite instead of etcd, and
    its own certificates.
    """

    def __init__(self, client: DockerClient) -> None:
        self.source = "K3s in Docker"
        kubectl = shutil.which("kubectl")
        self.kubectl: tuple[str, ...] = (kubectl,) if kubectl else ()
        self._client = client

    def has(self, name: str) -> bool:
        """Return True for all programs but etcd: they are in the one container."""
        return name in (APISERVER, CONTROLLER_MANAGER, SCHEDULER)

    def tool(self, name: str) -> tuple[str, ...]:
        """Return nothing: k3s has no etcd."""
        return ()

    def start(self, name: str, layout: Layout) -> Program | None:
        """Start the container, or restart a killed one; all programs start with it."""
        if name != APISERVER:
            return None
        for container in find_containers(self._client, layout.folder):
            container.start()
            return Container(name, container)
        try:
            return Container(name, _start_k3s(layout))
        except (DockerException, TimeoutError) as error:
            raise StartFailed(f"K3s: {error} (where images can't be pulled: ENVTEST_DOCKER=scratch)") from error

    def clean(self, layout: Layout) -> None:
        """Remove the plane's container."""
        remove_containers(self._client, layout.folder)


def _start_k3s(layout: Layout) -> Any:
    # The daemon is on this machine; in a container, testcontainers guesses otherwise, and asks too
    # early for a K3s.
    testcontainers_config.tc_host_override = "127.0.0.1"
    testcontainers_config.connection_mode_override = ConnectionMode.docker_host
    container = K3SContainer()
    container.with_bind_ports(K3SContainer.KUBE_SECURE_PORT, layout.port)
    container.with_volume_mapping(str(layout.folder), "/plane", "ro")
    container.with_kwargs(privileged=True, labels={FOLDER_LABEL: str(layout.folder)})
    container.with_command(k3s_command(layout))
    container.start()
    _take_credentials(container.config_yaml(), layout.folder)
    return container.get_wrapped_container()


def k3s_command(layout: Layout) -> list[str]:
    """Return the `k3s server` command line of a layout."""
    apiserver = ["token-auth-file=/plane/tokens.csv", *(flag.lstrip("-") for flag in layout.apiserver_flags)]
    command = ["server", "--disable=traefik", "--tls-san=127.0.0.1", f"--service-cidr={layout.service_range}"]
    command += [f"--kube-apiserver-arg={argument}" for argument in apiserver]
    if layout.controllers:
        command.append(f"--kube-controller-manager-arg=controllers={layout.controllers}")
    return command


def _take_credentials(kubeconfig: str, folder: Path) -> None:
    """Replace our own certificates by those of K3s."""
    document = yaml.safe_load(kubeconfig)
    cluster = document["clusters"][0]["cluster"]
    user = document["users"][0]["user"]
    for name, encoded in {
        "ca.crt": cluster["certificate-authority-data"],
        "admin.crt": user["client-certificate-data"],
        "admin.key": user["client-key-data"],
    }.items():
        (folder / name).write_bytes(base64.b64decode(encoded))


def k3s() -> K3s:
    """Return K3s in containers.

    Raises:
        NotAvailable: No docker daemon answers.
    """
    return K3s(_connect())


def scratch(binary: Path) -> Scratch:
    """Return our binary in containers. Builds the image, unless it was built from this very file.

    Raises:
        NotAvailable: No docker daemon answers, or it can't build the image.
    """
    client = _connect()
    try:
        _build(client, binary)
    except DockerException as error:
        raise NotAvailable(f"ENVTEST_DOCKER=scratch: can't build the image: {error}") from error
    return Scratch(client, binary)


def _connect() -> DockerClient:
    _check_socket(get_docker_host() or DEFAULT_HOST)
    try:
        client = DockerClient()
        client.client.ping()
    except DockerException as error:
        raise NotAvailable(f"ENVTEST_DOCKER is set, but no docker daemon answers: {error}") from error
    remove_orphans(client)
    return client


def _check_socket(host: str) -> None:
    """Check the socket first: the SDK's error for a missing one is long, and the SDK doesn't close
    its own.
    """
    if not host.startswith("unix://"):
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(host.removeprefix("unix://"))
        except OSError as error:
            raise NotAvailable(f"ENVTEST_DOCKER: no docker daemon on {host}: {error.strerror}") from error


def _build(client: DockerClient, binary: Path) -> None:
    status = binary.stat()
    stamp = f"{status.st_size}-{status.st_mtime_ns}"
    try:
        if client.client.images.get(IMAGE).labels.get(BINARY_LABEL) == stamp:
            return
    except ImageNotFound:
        pass
    client.client.images.build(
        fileobj=_build_context(binary), custom_context=True, tag=IMAGE, labels={BINARY_LABEL: stamp}, rm=True
    )


def _build_context(binary: Path) -> io.BytesIO:
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        archive.add(binary, "controlplane")
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(DOCKERFILE)
        archive.addfile(entry, io.BytesIO(DOCKERFILE))
    context.seek(0)
    return context


def find_containers(client: DockerClient, folder: Path) -> list[Any]:
    """Return the containers, running or not, of the plane with this folder."""
    return list(client.client.containers.list(all=True, filters={"label": f"{FOLDER_LABEL}={folder}"}))


def remove_containers(client: DockerClient, folder: Path) -> None:
    """Remove the containers of the plane with this folder."""
    for container in find_containers(client, folder):
        container.remove(force=True, v=True)


def remove_orphans(client: DockerClient) -> None:
    """Remove the containers of planes whose process was killed."""
    for container in client.client.containers.list(all=True, filters={"label": FOLDER_LABEL}):
        if is_orphan(Path(container.labels[FOLDER_LABEL])):
            container.remove(force=True, v=True)
