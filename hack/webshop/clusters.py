"""The demo's two clusters: on a real node, or real API servers if available,
else in-process ones.
"""

import asyncio
import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hack.planes import HOST_CONTROLLERS, VIRTUAL_CONTROLLERS, environment, find_programs
from hack.realnode import inside, outside, tenant
from hack.realnode.node_site import NodeSite
from hack.webshop.waiting import Failed, in_thread, say
from kube_envtest import ControlPlane, NotAvailable, Programs, StartFailed, start_all
from kube_envtest.controlplane.programs import CONTROLLER_MANAGER
from kube_envtest.controlplane.sources import binary
from syncer.api import Side

if TYPE_CHECKING:
    from kube_envtest import ApiServer

Name = TypeVar("Name")

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "hack" / "controlplane" / "build"

#: The user that the daemon logs in as.
DAEMON = "daemon"

#: Writes the kubeconfig of a user for a side to a path.
WriteKubeconfig = Callable[[Side, str, Path], Path]

#: Settings for real clusters; if one is set, nothing is built instead.
_CHOSEN = ("ENVTEST_DOCKER", "KUBEBUILDER_ASSETS", "ENVTEST_CONTROLPLANE")


@dataclass(frozen=True)
class Clusters:
    """Two running clusters."""

    #: Of an administrator.
    kubeconfigs: Mapping[Side, Path]
    #: Of a user without rights.
    daemon_kubeconfigs: Mapping[Side, Path]
    #: The command line of kubectl; empty if there is none.
    kubectl: tuple[str, ...]
    #: True if a controller creates Pods of a Deployment in the virtual cluster.
    deployments: bool
    #: The time that they took to start.
    seconds: float
    #: The node on which containers run; None where a simulation plays kubelet.
    node: NodeSite | None = None
    #: Manifests of the host's objects in front of the virtual API server.
    front: str = ""


@asynccontextmanager
async def started(folder: Path, *, embedded: bool, node: bool = False) -> AsyncIterator[Clusters]:
    """Run two clusters while the block runs, with their kubeconfigs in the folder.

    Raises:
        Failed: They don't start.
    """
    programs: Programs | str = "because of --embedded" if embedded else await usable_programs()
    begun = time.monotonic()
    site = NodeSite.beside() if node else None
    front = ""
    async with AsyncExitStack() as stack:
        if site is not None:
            say(
                "1. A real node as the host cluster, and a second control plane in its network as "
                "the virtual cluster."
            )
            virtual = await _on_node(site, stack)
            write = _kubeconfigs(site, virtual)
            deployments = True
            front = tenant.front(site, virtual.url)
        elif isinstance(programs, str):
            say(
                f"1. Two clusters in this process, {programs}. "
                "Nothing makes Pods of Deployments in them."
            )
            write = await _embedded(stack)
            deployments = False
        else:
            say(f"1. Two real clusters, etcd and kube-apiserver from {short(programs.source)}.")
            write = await _real(programs, stack)
            deployments = programs.has(CONTROLLER_MANAGER)
        real = None if isinstance(programs, str) else programs
        kubeconfigs = {side: write(side, "admin", folder / f"{side}.kubeconfig") for side in Side}
        of_daemon = {
            side: write(side, DAEMON, folder / f"{side}-{DAEMON}.kubeconfig") for side in Side
        }
        yield Clusters(
            kubeconfigs,
            of_daemon,
            kubectl(real),
            deployments,
            time.monotonic() - begun,
            site,
            front,
        )


async def usable_programs() -> Programs | str:
    """Return the programs of real clusters, or why there are none."""
    try:
        return find_programs()
    except NotAvailable as missing:
        if any(os.environ.get(name) for name in _CHOSEN):
            return f"as there is nothing to start real ones with ({missing})"
    if not shutil.which("go"):
        without_go = "no Go for hack/controlplane/build to build one with"
        return f"as there is no kube-apiserver here, and {without_go}"
    say(
        "There is no kube-apiserver here yet. This builds one, once; "
        "hack/demo --embedded does without."
    )
    if await _build():
        return find_programs()
    return "as hack/controlplane/build failed, see above"


async def _build() -> bool:
    process = await asyncio.create_subprocess_exec(BUILD)
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _real(programs: Programs, stack: AsyncExitStack) -> WriteKubeconfig:
    virtual_controllers = ""
    host_controllers = ""
    if programs.has(CONTROLLER_MANAGER):
        virtual_controllers = VIRTUAL_CONTROLLERS
        host_controllers = HOST_CONTROLLERS
    virtual = ControlPlane("virtual", programs=programs, controllers=virtual_controllers)
    host = ControlPlane("host", programs=programs, controllers=host_controllers)
    planes = {Side.VIRTUAL: virtual, Side.HOST: host}
    await run_planes(planes.values(), stack)
    return lambda side, user, path: planes[side].kubeconfig(user, path=path)


async def run_planes(planes: Iterable[ControlPlane], stack: AsyncExitStack) -> None:
    """Start control planes, which are stopped with the stack.

    Raises:
        Failed: They don't start.
    """
    started_together = list(planes)
    for plane in started_together:
        stack.callback(plane.stop)
    try:
        await in_thread(lambda: start_all(*started_together))
    except StartFailed as failure:
        raise Failed(f"{failure}\nhack/demo --embedded does without real clusters") from failure


async def _on_node(site: NodeSite, stack: AsyncExitStack) -> ControlPlane:
    await stack.enter_async_context(real_node(site))
    try:
        virtual = tenant.control_plane(site)
        stack.callback(virtual.stop)
        await in_thread(virtual.start)
    except (inside.Failed, StartFailed, RuntimeError) as failure:
        raise Failed(f"{failure}\nThe logs of a node that failed: {site.failed}") from failure
    return virtual


@asynccontextmanager
async def real_node(site: NodeSite) -> AsyncIterator[None]:
    """Run a node while the block runs; nothing of it is left.

    Raises:
        Failed: It doesn't start, or another demo of this checkout has it.
    """
    with alone():
        try:
            try:
                await in_thread(lambda: outside.down(site))  # of a demo that was killed
                await in_thread(lambda: outside.up(site))
            except (inside.Failed, RuntimeError) as failure:
                raise Failed(
                    f"{failure}\nThe logs of a node that failed: {site.failed}"
                ) from failure
            yield
        finally:
            await in_thread(lambda: outside.down(site))


def _kubeconfigs(site: NodeSite, virtual: ControlPlane) -> WriteKubeconfig:
    def write(side: Side, user: str, path: Path) -> Path:
        if side is Side.VIRTUAL:
            return virtual.kubeconfig(user, path=path)
        return Path(shutil.copy(site.folder / f"{user}.kubeconfig", path))

    return write


@contextmanager
def alone() -> Iterator[None]:
    """Keep other demos of this checkout from the node while the block runs.

    Raises:
        Failed: Another one has it.
    """
    lock = os.open(Path(__file__).parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as taken:
        raise Failed(
            "another hack/demo --node of this checkout is running: end it first"
        ) from taken
    finally:
        os.close(lock)


async def _embedded(stack: AsyncExitStack) -> WriteKubeconfig:
    servers = await embedded_servers(Side, stack)
    return lambda side, user, path: servers[side].kubeconfig(path, user)


async def embedded_servers(
    names: Iterable[Name], stack: AsyncExitStack
) -> "Mapping[Name, ApiServer]":
    """Start an API server of each name in this process, which is stopped with the stack."""
    from kube_envtest import ApiServer, User  # imported late: real clusters start sooner without it

    users = {"admin-token": User("admin", ("system:masters",)), "daemon-token": User(DAEMON)}
    servers = {name: ApiServer(tokens=users, rbac=True) for name in names}
    for server in servers.values():
        await server.start(tls=True)
        stack.push_async_callback(server.stop)
    return servers


def kubectl(programs: Programs | None) -> tuple[str, ...]:
    """Return the command line of kubectl: the clusters' own, else our binary's, else the user's."""
    if programs is not None and programs.kubectl:
        return programs.kubectl
    try:
        return (str(binary(environment())), "kubectl")
    except NotAvailable:
        found = shutil.which("kubectl")
        return (found,) if found else ()


def short(source: str) -> str:
    """Return a path as it is below the checkout, if it is there."""
    path = Path(source)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else source
