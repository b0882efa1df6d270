"""The kubelet of the virtual Nodes: its ports and certificate, and both in the Nodes' status."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

from syncer.api.errors import ClusterError, ConfigError, Problem
from syncer.api.objects import Key, Obj, Resource, Side, annotations_of, key_of, uid_of
from syncer.api.paths import dig
from syncer.byte_budget import ByteBudget
from syncer.clusters.transport import Endpoint
from syncer.config.options import Kubelet
from syncer.daemon.kubelet.metrics_api import MetricsServer
from syncer.daemon.served_cluster import ServedCluster
from syncer.engine.apply.preconditions import holds_copies
from syncer.engine.controllers.pair import Condition
from syncer.engine.stores.informers import SideInformer
from syncer.kubelet import certificates
from syncer.kubelet.cadvisor import HostKubelets, Own
from syncer.kubelet.certificates import NotSigned, Serving
from syncer.kubelet.listener import Bounds, connections
from syncer.kubelet.pods import HostedPod
from syncer.kubelet.ports import PortsInUse, choose, port_of
from syncer.kubelet.server import KubeletServer
from syncer.kubelet.usage import Copied, Usages
from syncer.observe.logs import get_logger
from syncer.resources.kinds import NODES, PODS
from syncer.resources.pods import record

#: The name under which it is degraded.
NAME = "kubelet"
#: Seconds between two checks of the Nodes, if none changes.
LOOK_SECONDS = 10.0
#: Seconds between two checks of the certificates.
CERTIFICATE_SECONDS = 60.0
#: Seconds after a change of a Node until the next check.
PAUSE_SECONDS = 0.2
#: Most Nodes without a port that get an event.
MOST_EVENTS = 20
#: The index of the Nodes that we made, by their :class:`_Node`, and that of our host pods by their
#: node.
INDEX = "kubelet"
#: Seconds between two checks whether the Nodes are cached yet.
START_SECONDS = 0.5
#: Seconds after which a failed step is repeated.
AGAIN_SECONDS = 5.0
#: Seconds after which a request for a certificate that was not signed is repeated.
SIGN_AGAIN_SECONDS = 600.0
#: Seconds for which a port of another process isn't tried again.
TAKEN_SECONDS = 60.0

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Node:
    """The parts of a Node that we made which the server needs."""

    name: str
    uid: str
    #: The port in its status.
    port: int | None
    #: True if the addresses in its status are ours.
    is_here: bool


class NodeServer:
    """The kubelet's server of a virtual cluster."""

    def __init__(
        self,
        served: ServedCluster,
        section: Kubelet,
        in_use: PortsInUse,
        bounds: Bounds,
    ) -> None:
        """``in_use`` are the ports of all virtual clusters of the process."""
        pair = served.pair
        self._served = served
        self._pair = pair
        self._section = section
        self._in_use = in_use
        self._ports = range(section.first_port, section.first_port + section.ports)
        #: The ports that are served, by Node.
        self._serving: dict[str, int] = {}
        #: When a port was found to be another process's.
        self._taken: dict[int, float] = {}
        self._changed = asyncio.Event()
        self._store: SideInformer | None = None
        self._host_pods: SideInformer | None = None
        self._address = section.address
        self._certificate: Serving | None = None
        #: When a certificate is requested again, on the loop's clock.
        self._sign_at = 0.0
        self._made_from: tuple[object, ...] = ()
        self._tls: ssl.SSLContext | None = None
        #: The conditions of the server, by the part that they are about.
        self._conditions: dict[str, Condition] = {}
        #: The parts with a condition that no event reports yet, as there was no Node.
        self._unreported: set[str] = set()
        figures = Usages(pair.settings, pair.host, self._copied, partial(self._report, "metrics"))
        usages = figures if section.metrics else None
        kubelets = None
        if section.cadvisor:
            kubelets = HostKubelets(pair.host, self._copies, partial(self._report, "cadvisor"))
        self._server = KubeletServer(
            pair.settings,
            pair.virtual,
            pair.host,
            tls=self._context,
            to_virtual_text=self._for_tenant,
            pods_of=self._pods_of,
            holds_copies=partial(holds_copies, pair.host, pair.policies.homes),
            usages=usages,
            kubelets=kubelets,
            bounds=bounds,
        )
        self._metrics = MetricsServer(served, figures, bounds, partial(self._report, "metrics API"))

    async def run(self) -> NoReturn:
        """Serve until cancelled. An error ends all connections, and the server restarts."""
        while True:
            try:
                await self._serve()
            except Exception as error:
                log.exception("the kubelet's server failed; restarting", cluster=self._pair.name)
                cause = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
                self._report(
                    "start",
                    f"the server failed; restarting: {type(cause).__name__}",
                    str(cause),
                )
            finally:
                self._server.close()
                self._metrics.close()
                for name in list(self._serving):
                    self._give_back(name)
            await asyncio.sleep(AGAIN_SECONDS)

    async def lead(self) -> None:
        """Check the Nodes at once, as this process now leads the virtual cluster, and may write."""
        self._changed.set()

    async def _serve(self) -> NoReturn:
        await self._ready()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_certificates())
            tasks.create_task(self._server.close_idle())
            if self._section.metrics:
                metrics = self._metrics.keep(self._address, self._section.listen, self._ports)
                tasks.create_task(metrics)
            while True:
                await self._follow()

    # -- certificates ------------------------------------------------------------------------------

    async def _ready(self) -> None:
        """Find out the address and get the certificates, however often that takes."""
        while True:
            try:
                self._address = self._address or await own_address(self._endpoint())
                await self._renew()
                break
            except (ClusterError, OSError) as error:
                self._report(
                    "start",
                    f"the server can't start yet: {type(error).__name__}",
                    str(error),
                )
                await asyncio.sleep(AGAIN_SECONDS)
        self._report("start", "")

    async def _keep_certificates(self) -> NoReturn:
        while True:
            await asyncio.sleep(CERTIFICATE_SECONDS)
            try:
                await self._renew()
            except (ClusterError, OSError) as error:
                log.warning(
                    "the certificates of the kubelet's server could not be renewed",
                    error=str(error),
                )

    async def _renew(self) -> None:
        """Renew certificates that have changed or will soon expire."""
        ca = await certificates.client_ca(self._pair.virtual)
        if not ca:
            warning = "the virtual cluster has no CA for clients (--client-ca-file)"
            warning = f"{warning}: its API server needs a token"
            log.warning(warning, cluster=self._pair.name)
        serving = await self._current()
        made_from = (serving.certificate, serving.key, ca)
        if made_from != self._made_from:
            try:
                self._tls = certificates.context(serving, ca)
            except ssl.SSLError as error:
                why = "the certificate, its key or the CA of clients can't be used"
                raise OSError(f"{why}: {error}") from error
            self._made_from = made_from
        self._certificate = serving

    async def _current(self) -> Serving:
        """Return the serving certificate: from files, the last one, or a new one."""
        if self._section.certificate:
            try:
                return certificates.from_files(
                    Path(self._section.certificate),
                    Path(self._section.key),
                )
            except ValueError as error:
                why = f"kubelet.certificate {self._section.certificate}: {error}"
                raise OSError(why) from error
        now = datetime.now(UTC)
        clock = asyncio.get_running_loop().time
        last = self._certificate
        if last is not None and now >= last.ends_at:
            last = None
        if last is not None:
            is_fresh = last.is_signed and now < last.renew_at
            if is_fresh or clock() < self._sign_at:
                return last
        try:
            # Each replica has a certificate of its own, a standby, too.
            made = await certificates.signed(self._served.connection.cluster, [self._address])
        except (NotSigned, ClusterError) as error:
            self._sign_at = clock() + SIGN_AGAIN_SECONDS
            last = last or certificates.self_signed([self._address])
            if last.is_signed:
                why = f"the certificate expires on {last.ends_at:%Y-%m-%d}"
                why = f"{why}, and the virtual cluster signs no other one"
            else:
                why = (
                    "the certificate can't be verified, as the virtual cluster signs none: anyone"
                    " between the virtual API server and the daemon could read logs and commands"
                )
            self._report("certificate", why, str(error))
            return last
        self._report("certificate", "")
        message = (
            "the kubelet's server has a certificate of the virtual cluster. The virtual API server "
            "verifies it only with --kubelet-certificate-authority"
        )
        log.info(message, cluster=self._pair.name, address=self._address)
        return made

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            raise RuntimeError("no port is open before there is a certificate")
        return self._tls

    def _endpoint(self) -> Endpoint:
        dialer = self._pair.virtual.dialer
        if dialer is None:
            raise OSError("the client of the virtual cluster uses no network")
        return dialer.endpoint

    # -- nodes -------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Serve the Nodes as they are now, then wait until one changes."""
        self._changed.clear()
        await self._subscribe()
        try:
            await self._update()
        except ClusterError as error:
            log.warning("can't write a Node's address", cluster=self._pair.name, error=str(error))
            await asyncio.sleep(AGAIN_SECONDS)
            return
        filled = _is_filled(self._store) and _is_filled(self._host_pods)
        seconds = LOOK_SECONDS if filled else START_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        if filled:
            await asyncio.sleep(PAUSE_SECONDS)  # however fast a tenant changes Nodes

    async def _subscribe(self) -> None:
        def notify(nodes: object) -> None:
            self._changed.set()

        self._store = await self._indexed(self._store, Side.VIRTUAL, NODES, self._parts_of, notify)
        self._host_pods = await self._indexed(
            self._host_pods,
            Side.HOST,
            PODS,
            self._node_of,
            self._notify_of_pods,
        )

    async def _indexed(
        self,
        before: SideInformer | None,
        side: Side,
        resource: Resource,
        values: Callable[[Obj], Iterable[Hashable]],
        notify: Callable[[Iterable[Any]], None],
    ) -> SideInformer | None:
        """Return the store of a resource, with our index; None if there is none.

        It may be another one than before.
        """
        informers = self._pair.informers
        store = informers.store(side, resource) if informers.has(side, resource) else None
        if store is not before and store is not None:
            # Unlike a handler, an index is also notified of the objects that we make.
            store.add_index(INDEX, values, notify=notify)
            await store.newcomers.catch_up()
        return store

    def _parts_of(self, node: Obj) -> tuple[_Node, ...]:
        """Return the parts of a Node that the server needs, if we made the Node."""
        settings = self._pair.settings
        if not settings.marks.is_from_here(node, cluster=settings.identity):
            return ()
        is_here = dig(node, "status.addresses") == addresses_of(self._address)
        return (_Node(key_of(node).name, uid_of(node), port_of(node), is_here),)

    def _node_of(self, pod: Obj) -> tuple[str, ...]:
        """Return the name of the host node that a pod runs on, if the pod is the copy of a Pod."""
        settings = self._pair.settings
        node = dig(pod, "spec.nodeName")
        if node and settings.marks.is_ours(pod, cluster=settings.identity, resource=PODS):
            return (node,)
        return ()

    def _notify_of_pods(self, nodes: Iterable[str]) -> None:
        """Have the Nodes checked if a node got its first host pod of ours, or lost the last one."""
        store = self._host_pods
        for name in nodes:
            if store is None or name not in self._serving or not store.indexer.keys(INDEX, name):
                self._changed.set()

    def _nodes(self) -> dict[str, _Node]:
        """Return the Nodes that we made, and on which a host pod of ours runs.

        The mark alone says nothing: a tenant can write it on any Node. They come from indexes: a
        change of one Node has no other Node read.
        """
        if not (_is_filled(self._store) and _is_filled(self._host_pods)):
            return {}
        used = self._host_pods.indexer.values(INDEX)
        return {node.name: node for node in self._store.indexer.values(INDEX) if node.name in used}

    # -- Pods --------------------------------------------------------------------------------------

    def _copied(self, host: Key) -> Copied | None:
        """Return a host pod that is the copy of a virtual Pod; None for a pod of others."""
        informers = self._pair.informers
        settings = self._pair.settings
        marks = settings.marks
        if not (informers.has(Side.HOST, PODS) and informers.has(Side.VIRTUAL, PODS)):
            return None
        copy = informers.store(Side.HOST, PODS).get(host)
        if copy is None or not marks.is_ours(copy, cluster=settings.identity, resource=PODS):
            return None
        key = marks.virtual_key(copy)
        if not key:
            return None
        virtual = informers.store(Side.VIRTUAL, PODS).outline(key)
        if virtual is None or annotations_of(copy).get(marks.uid) != uid_of(virtual):
            return None
        return Copied(key, uid_of(virtual), copy, record.recorded(marks, copy).names)

    def _copies(self, node: str) -> dict[Key, Own]:
        """Return the tenant's Pods on a node of the host by the host keys of their copies."""
        found: dict[Key, Own] = {}
        if _is_filled(self._host_pods):
            for host_key in self._host_pods.indexer.keys(INDEX, node):
                copied = self._copied(host_key)
                if copied is not None:
                    found[host_key] = Own(copied.key, copied.containers)
        return found

    def _pods_of(self, node: str) -> Iterator[bytes]:
        """Yield the virtual Pods of a node, encoded."""
        if self._pair.informers.has(Side.VIRTUAL, PODS):
            store = self._pair.informers.store(Side.VIRTUAL, PODS)
            for key in sorted(store.indexer.keys("node", node)):
                if entry := store.entry(key):
                    yield entry.raw

    async def _update(self) -> None:
        if not (_is_filled(self._store) and _is_filled(self._host_pods)):
            return
        nodes = self._nodes()
        self._report_conditions(nodes)
        for name in [name for name in self._serving if name not in nodes]:
            self._server.leave(name)
            self._give_back(name)
        now = asyncio.get_running_loop().time()
        for port, since in list(self._taken.items()):
            if now >= since + TAKEN_SECONDS:
                del self._taken[port]
        wanted = {name: node.port for name, node in nodes.items()}
        siblings = self._ports_of_siblings()
        most = self._in_use.share(self._ports, siblings)
        chosen = choose(wanted, self._serving, self._ports, {*self._taken, *siblings}, most=most)
        for name, port in chosen.items():
            if name not in self._serving and (wanted[name] == port or self._served.may_write()):
                self._listen(name, port)
        for name, port in self._serving.items():
            await self._show(nodes[name], port)
        self._report_ports(nodes, chosen)

    def _listen(self, node: str, port: int) -> None:
        try:
            self._server.listen(node, self._section.listen, port)
        except OSError as error:
            self._taken[port] = asyncio.get_running_loop().time()
            self._changed.set()  # another port will do
            log.warning(
                "a port of the kubelet's server is taken",
                port=port,
                node=node,
                error=str(error),
            )
        else:
            self._serving[node] = port
            self._in_use.take(self._section.listen, port)

    def _give_back(self, node: str) -> None:
        self._in_use.give_back(self._section.listen, self._serving.pop(node))

    def _ports_of_siblings(self) -> set[int]:
        """Return the ports of other virtual clusters.

        By default they have the same ones to choose from.
        """
        return self._in_use.at(self._section.listen).difference(self._serving.values())

    async def _show(self, node: _Node, port: int) -> None:
        """Write address and port into a Node's status, unless they are there."""
        if not self._served.may_write() or (node.port == port and node.is_here):
            return
        addresses = addresses_of(self._address)
        shown = {
            "status": {
                "addresses": addresses,
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            }
        }
        await self._pair.virtual.patch(NODES, Key("", node.name), shown, subresource="status")

    def _report_ports(self, nodes: Mapping[str, _Node], chosen: Mapping[str, int]) -> None:
        """Report Nodes for which there is no port, and ports that other processes have."""
        left = sorted(set(nodes) - set(chosen))
        why = ""
        if left:
            why = f"no port is left for {len(left)} nodes: kubelet.ports is {len(self._ports)}"
            if self._in_use.shared:
                why += ", and a quarter of what others leave of it stays free for them"
        elif self._taken:
            why = f"ports that others have: {', '.join(map(str, sorted(self._taken)))}"
        if left and ("ports" not in self._conditions or self._conditions["ports"].public != why):
            for name in left[:MOST_EVENTS]:
                self._warn(
                    nodes[name],
                    "the kubelet of this Node has no port: logs and exec don't work for its Pods",
                )
        self._report("ports", why)

    # -- conditions --------------------------------------------------------------------------------

    def _report(self, part: str, why: str, details: str = "") -> None:
        """Set the condition of a part; ``""`` ends it.

        The health page shows the condition without the details.
        """
        known = self._conditions.get(part)
        if (known.public if known else "") == why:
            return
        if why:
            message = f"{why}: {details}" if details else why
            self._conditions[part] = Condition(message, why)
            log.warning(
                "the kubelet's server is degraded",
                cluster=self._pair.name,
                why=why,
                details=details,
            )
            self._unreported.add(part)
            self._report_conditions(self._nodes())
        else:
            self._conditions.pop(part, None)
            self._unreported.discard(part)
        if self._conditions:
            message = "; ".join(each.message for each in self._conditions.values())
            public = "; ".join(each.public for each in self._conditions.values())
            self._pair.degrade(NAME, Condition(message, public))
        else:
            self._pair.recover(NAME)

    def _report_conditions(self, nodes: Mapping[str, _Node]) -> None:
        """Report conditions in events of a Node, once there is one."""
        node = next(iter(nodes.values()), None)
        if node is None:
            return
        for part in sorted(self._unreported):
            self._warn(node, self._conditions[part].public)
        self._unreported.clear()

    def _warn(self, node: _Node, why: str) -> None:
        about = {"metadata": {"name": node.name, "uid": node.uid}}
        self._served.events.warning(NODES, about, "KubeletServer", why)

    def _for_tenant(self, pod: HostedPod, text: str) -> str:
        """Return a text about a host pod with the virtual names for those of the host."""
        virtual = pod.virtual
        known = {str(pod.key): str(virtual), pod.key.name: virtual.name, pod.uid: pod.virtual_uid}
        return self._pair.host_names(PODS, known, namespace=virtual.namespace).virtual(text)


@asynccontextmanager
async def answering(
    served: ServedCluster, section: Kubelet, in_use: PortsInUse, memory: ByteBudget
) -> AsyncIterator[None]:
    """Answer as the kubelet of a virtual cluster's Nodes while the block runs.

    ``in_use`` are ports of others, too, and ``memory`` is for the connections, divided between
    namespaces.

    Raises:
        ConfigError: The virtual cluster is reached through a proxy, and no address is given.
    """
    dialer = served.pair.virtual.dialer
    if dialer is not None and dialer.endpoint.proxy is not None and not section.address:
        why = "is required, as the virtual cluster is reached through a proxy"
        hint = "Write where its API server reaches the daemon."
        raise ConfigError(Problem(why, path="kubelet.address", hint=hint))
    server = NodeServer(served, section, in_use, Bounds(memory, most=connections()))
    served.add_duty(server.lead)
    task = asyncio.create_task(server.run())
    try:
        yield
    finally:
        served.remove_duty(server.lead)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _is_filled(store: SideInformer | None) -> TypeGuard[SideInformer]:
    """Return True if a store has all objects, each with its values in our index."""
    return store is not None and store.synced and not store.newcomers


def addresses_of(address: str) -> list[Obj]:
    """Return the addresses of a Node whose kubelet is reached at an IP address or a DNS name.

    A name of the host's node isn't among them: an API server tries it first by default, and it
    leads nowhere.
    """
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return [{"type": "InternalDNS", "address": address}]
    return [{"type": "InternalIP", "address": address}]


async def own_address(endpoint: Endpoint) -> str:
    """Return the address that our connections to an API server come from.

    Raises:
        OSError: There is no route to it.
    """
    loop = asyncio.get_running_loop()
    # A datagram socket that is connected sends nothing.
    transport, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=(endpoint.host, endpoint.port)
    )
    try:
        return str(transport.get_extra_info("sockname")[0])
    finally:
        transport.close()
