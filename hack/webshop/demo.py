"""The demo, from its first to its last step."""

import asyncio
import itertools
import math
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.kubelet import Kubelet
from hack.realnode.tenant import HOST_NAMESPACE
from hack.side_tasks import helped_by
from hack.webshop import databases, table
from hack.webshop import samples as shop
from hack.webshop.chart import Release, installed
from hack.webshop.clusters import DAEMON, ROOT, Clusters, started
from hack.webshop.daemon import Daemon, make
from hack.webshop.samples import Samples
from hack.webshop.state import Row, read, rows
from hack.webshop.visit import Visit
from hack.webshop.waiting import Failed, in_thread, say
from syncer.api import ClusterError, Resource, Side
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.resources.kinds import NAMESPACES

#: Seconds between two rounds of reads.
GLANCE = 0.2


@dataclass(frozen=True)
class Demo:
    """A run: the folder of its files, whether it ends when everything has arrived, and its timeout
    in seconds.
    """

    folder: Path
    once: bool
    embedded: bool
    timeout: float
    #: True to run the Pods on a real node.
    node: bool = False
    #: True to start the clusters alone, for a configuration of the user's.
    clusters_only: bool = False
    #: True to install the chart on the node, in place of a control plane and a daemon beside it.
    chart: bool = False

    async def run(self) -> None:
        """Start everything, apply the samples, and show the state until cancelled.

        Raises:
            Failed: It can't go on.
        """
        if self.chart:
            await self._through_the_chart()
            return
        async with AsyncExitStack() as stack:
            clusters = await stack.enter_async_context(
                started(self.folder, embedded=self.embedded, node=self.node)
            )
            say(f"   They took {clusters.seconds:.1f} s to start.")
            virtual, host = await stack.enter_async_context(_connected(clusters))
            await _make_host_namespace(host)
            await stack.enter_async_context(_simulation(host, pods=clusters.node is None))
            say(*_simulated(clusters))
            if self.clusters_only:
                say(*_blank_sheet(clusters))
                await asyncio.Event().wait()
            visit = Visit(clusters, self.folder)
            if clusters.node is not None:
                await visit.apply(Side.HOST, clusters.front)
            daemon = await self._daemon(clusters, {Side.VIRTUAL: virtual, Side.HOST: host}, stack)
            await daemon.ready(self.timeout)
            await self._begun(daemon.log, virtual)
            if clusters.node is not None:
                await visit.name_server()
                say("   CoreDNS runs in the virtual cluster, as a pod of the tenant's.")
            await self._shop(clusters, visit, (virtual, host), daemon)

    async def _through_the_chart(self) -> None:
        async with installed(self.folder) as (release, clusters):
            async with _connected(clusters) as (virtual, host), _simulation(host, pods=False):
                say(*_simulated(clusters))
                await self._begun(release.log, virtual)
                await self._shop(clusters, Visit(clusters, self.folder), (virtual, host), release)
                say("", f"6. helm test {release.name} --namespace={release.namespace} --logs")
                await release.test()
            say("", f"7. helm uninstall {release.name} --namespace={release.namespace}")
            await release.uninstall()

    async def _shop(
        self,
        clusters: Clusters,
        visit: Visit,
        sides: tuple[SideClient, SideClient],
        daemon: Daemon | Release,
    ) -> None:
        """Apply the web shop, visit it where its containers are real,
        and show what becomes of it.
        """
        samples = Samples(deployments=clusters.deployments)
        begun = time.monotonic()
        await self._apply(clusters, samples, sides[0])
        steps = itertools.count(4)
        if clusters.node is not None:
            say("", f"{next(steps)}. A visitor, in real containers:")
            await self._visit(visit)
        if not self.once:
            say(*_hints(clusters))
        say("", f"{next(steps)}. What the daemon {'has done' if self.once else 'does'}:", "")
        await self._follow(*sides, samples, daemon)
        say(
            "",
            f"All has arrived, {time.monotonic() - begun:.1f} s after kubectl began to apply it.",
        )

    async def _visit(self, visit: Visit) -> None:
        async for command, output in visit.run():
            say(f"   $ {command}", *_indented(output))

    async def _daemon(
        self, clusters: Clusters, admins: Mapping[Side, SideClient], stack: AsyncExitStack
    ) -> Daemon:
        daemon = make(clusters, self.folder)
        daemon.write()
        for side, objects in daemon.rights(DAEMON).items():
            for obj in objects:
                await admins[side].create(_rbac(obj["kind"]), obj)
        stack.push_async_callback(in_thread, daemon.stop)
        daemon.spawn()
        say(
            "",
            f"2. The daemon: syncer --config {daemon.file}",
            *_indented(daemon.file.read_text().splitlines()),
        )
        say(
            f"   It is the user {DAEMON!r}, who may do what `syncer rbac --user {DAEMON}` prints, "
            "and nothing else."
        )
        return daemon

    async def _begun(self, log: Path | str, virtual: SideClient) -> None:
        """Wait until tenants can use the host's services."""
        try:
            async with asyncio.timeout(self.timeout):
                await databases.served(virtual)
        except TimeoutError as late:
            reason = f"the virtual cluster has no {databases.NAME} after {self.timeout:g} s"
            raise Failed(f"{reason}; the daemon's log: {log}") from late

    async def _apply(self, clusters: Clusters, samples: Samples, virtual: SideClient) -> None:
        command = " ".join(_short(part) for part in shop.command(clusters, samples))
        files = " ".join(_short(file) for file in samples.files)
        applied = command or f"{files} (there is no kubectl)"
        say("", f"3. The web shop, in the virtual cluster: {applied}")
        say(*_indented(await shop.apply(clusters, samples, virtual, self.folder)))

    async def _follow(
        self, virtual: SideClient, host: SideClient, samples: Samples, daemon: Daemon | Release
    ) -> None:
        """Show the state repeatedly; the samples' objects are required only until all
        of them are there.
        """
        wanted: Samples | None = samples
        screen = table.screen()
        found = list[Row]()
        deadline = time.monotonic() + (self.timeout if self.once else math.inf)
        try:
            while True:
                daemon.check()
                found = await _look(virtual, host, wanted) or found
                screen.show(found)
                if found and all(row.good for row in found):
                    wanted = None
                if self.once and wanted is None:
                    return
                if time.monotonic() > deadline:
                    raise Failed(missing(found, self.timeout, daemon.log))
                await asyncio.sleep(GLANCE)
        finally:
            screen.end(found)


def _rbac(kind: str) -> Resource:
    plural = f"{kind.lower()}s"
    namespaced = not kind.startswith("Cluster")
    return Resource("rbac.authorization.k8s.io/v1", kind, plural, namespaced)


async def _look(virtual: SideClient, host: SideClient, wanted: Samples | None) -> list[Row]:
    """Return the rows; none while a cluster can't be reached."""
    try:
        return rows(await read(virtual, host, HOST_NAMESPACE), wanted)
    except ClusterError:
        return []


def missing(found: Iterable[Row], seconds: float, log: Path | str) -> str:
    """Return the message about objects that have not arrived when the seconds are over."""
    bad = [
        f"  {row.kind} {row.virtual} {row.arrow} {row.host}: {row.status}"
        for row in found
        if not row.good
    ]
    lines = [f"not all has arrived within {seconds:g} s:", *bad, f"The daemon's log: {log}"]
    return "\n".join(lines)


@asynccontextmanager
async def _connected(clusters: Clusters) -> AsyncIterator[tuple[SideClient, SideClient]]:
    """Yield clients of both clusters, virtual and host."""
    virtual, host = (
        connect(ConnectionSettings(str(clusters.kubeconfigs[side])), side=side, environ={})
        for side in (Side.VIRTUAL, Side.HOST)
    )
    try:
        yield virtual, host
    finally:
        await virtual.close()
        await host.close()


async def _make_host_namespace(host: SideClient) -> None:
    """Create the namespace for the copies."""
    await host.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOST_NAMESPACE}}
    )


@asynccontextmanager
async def _simulation(host: SideClient, *, pods: bool) -> AsyncIterator[None]:
    """Play the operator of Databases, and scheduler and kubelet if asked to,
    while the block runs.
    """
    playing = [databases.Operator(host, HOST_NAMESPACE).run()]
    if pods:
        playing.append(Kubelet(host, HOST_NAMESPACE, events=True).run())
    async with helped_by(*playing):
        yield


def _simulated(clusters: Clusters) -> Sequence[str]:
    """Return the lines that tell what isn't real."""
    crd = f"it makes Databases. Their CRD {databases.NAME} is labelled as public."
    if clusters.node is not None:
        return (f"   In the host cluster a simulation plays an operator: {crd}",)
    return (
        "   In the host cluster a simulation plays scheduler and kubelet: no container really",
        f"   runs. Another one plays an operator: {crd}",
    )


def _blank_sheet(clusters: Clusters) -> Sequence[str]:
    """Return the beginning of a configuration for the clusters."""
    return (
        "",
        "2. No daemon. For a configuration of your own, in another terminal,",
        "   .venv/bin/syncer --config FILE:",
        "   apiVersion: vsyncer.dev/v1alpha1",
        "   kind: SyncerConfig",
        "   cluster: shop",
        f"   virtual: {{kubeconfig: {clusters.kubeconfigs[Side.VIRTUAL]}}}",
        f"   host: {{kubeconfig: {clusters.kubeconfigs[Side.HOST]}, namespace: {HOST_NAMESPACE}}}",
        "   networking: {apiServer: {host: 10.96.0.1}}",
        "Ctrl-C here ends it all and cleans up.",
    )


def _hints(clusters: Clusters) -> Sequence[str]:
    """Return hints for using two running clusters."""
    kubectl = "kubectl"
    if not shutil.which(kubectl):
        kubectl = " ".join(map(_short, clusters.kubectl)) or kubectl
    virtual, host = (
        f"{kubectl} --kubeconfig {clusters.kubeconfigs[side]}" for side in (Side.VIRTUAL, Side.HOST)
    )
    change = "delete pod web-1"
    if clusters.deployments:
        change = "scale deployment web --replicas=4"
    return (
        "",
        "To play with, in another terminal:",
        f"   {virtual} get pods,services,configmaps,databases -n shop -o wide",
        f"   {host} get pods,services,configmaps,databases -n {HOST_NAMESPACE} -o wide",
        f"   {virtual} edit configmap web-config -n shop",
        f"   {virtual} {change} -n shop",
        "Ctrl-C here ends it all and cleans up.",
    )


def _short(path: str | Path) -> str:
    """Return a path relative to the repository."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def _indented(lines: Iterable[str]) -> Sequence[str]:
    return [f"   | {line}" for line in lines]
