"""``metrics.k8s.io`` of a virtual cluster, registered while the host has it, served by the daemon.

An APIService leads to a Service and its EndpointSlice, and these to the daemon (kubernetes.io,
"Configure the Aggregation Layer"). They bear our mark; an APIService without it belongs to the
tenant, and is left alone.
"""

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NoReturn

from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Key, Obj, Resource, Side, labels_of
from syncer.daemon.served_cluster import ServedCluster
from syncer.kubelet import certificates, http, pages
from syncer.kubelet.certificates import Serving
from syncer.kubelet.client import ClientConnection
from syncer.kubelet.http import MessageHead
from syncer.kubelet.listener import Bounds, KubeletPort, listen
from syncer.kubelet.metrics_api import GROUP, VERSION, FrontProxy, MetricsApi
from syncer.kubelet.usage import Usages
from syncer.observe.logs import get_logger
from syncer.resources.endpointslices import MANAGED_BY, SERVICE_NAME
from syncer.resources.kinds import API_SERVICES, ENDPOINT_SLICES, NODES, PODS, SERVICES
from syncer.resources.metrics_api import API_SERVICE, OBJECTS, SERVICE
from syncer.translate.alike import covers

#: Seconds between two checks of both clusters.
LOOK_SECONDS = 60.0
#: The same until the virtual API server reaches the daemon.
SOON_SECONDS = 5.0
#: The name for the clients of this API among those of Pods' namespaces: that of clients of a node.
CLIENTS = ""
_KINDS = {"pods": PODS, "nodes": NODES}

log = get_logger(__name__)


class MetricsServer:
    """The server of the API in a virtual cluster."""

    def __init__(
        self,
        served: ServedCluster,
        usages: Usages,
        bounds: Bounds,
        report: Callable[[str, str], None],
    ) -> None:
        """Create a server that isn't served yet.

        Args:
            served: The virtual cluster.
            usages: The figures.
            bounds: The limits of connections, which the kubelet's server shares.
            report: Gets why the API doesn't work, in words for any reader and in detail; ``""`` if
                it works.
        """
        self._served = served
        self._pair = served.pair
        self._usages = usages
        self._bounds = bounds
        self._report = report
        self._api = MetricsApi(served.pair.virtual, usages, self._labels)
        self._listener: KubeletPort | None = None
        self._serving: Serving | None = None
        self._tls: ssl.SSLContext | None = None
        self._trusted = b""

    async def keep(self, address: str, host: str, ports: range) -> NoReturn:
        """Serve at an address while the host has the API, until cancelled.

        Args:
            address: The address at which the virtual API server reaches the daemon.
            host: The address to listen on; ``""`` for all of the machine.
            ports: The ports, of which the last free one is taken.
        """
        while True:
            may_wait = False
            try:
                may_wait = await self._register(address, host, ports)
            except (ClusterError, OSError) as error:
                self._report(f"{GROUP} is not served: {type(error).__name__}", str(error))
            seconds = LOOK_SECONDS if may_wait else SOON_SECONDS
            await asyncio.sleep(seconds)

    def close(self) -> None:
        """Accept no more requests."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _register(self, address: str, host: str, ports: range) -> bool:
        """Register ``metrics.k8s.io`` while the host has it.

        Return True if the next check may wait.

        Raises:
            ClusterError: A request failed.
            OSError: The certificate of the API server can't be used, or no port is free.
        """
        if not await self._usages.is_served():
            self._report("", "")
            await self._withdraw()
            return True
        if await self._is_the_tenants():
            self._report("", "")
            return True

        self._api.trust(FrontProxy(await certificates.authentication(self._pair.virtual)))
        if not self._api.front.ca:
            self._report(
                f"{GROUP} is not served: the virtual API server has no front proxy "
                "(--requestheader-client-ca-file, --proxy-client-cert-file)",
                "",
            )
            return True
        if not self._served.may_write():
            return False

        serving = self._renewed()
        if self._listener is None:
            self._listener = self._listening(host, ports)
        for resource, obj in self._objects(address, self._listener.port, serving.certificate):
            await self._put(resource, obj)
        return await self._is_reached()

    # -- serving -----------------------------------------------------------------------------------

    def _renewed(self) -> Serving:
        """Return the certificate.

        The virtual API server trusts it by the APIService's ``caBundle`` alone.
        """
        if self._serving is None or datetime.now(UTC) >= self._serving.renew_at:
            self._serving = certificates.self_signed([f"{SERVICE.name}.{SERVICE.namespace}.svc"])
            self._tls = None
        ca = self._api.front.ca
        if self._tls is None or self._trusted != ca:
            try:
                self._tls = certificates.context(self._serving, ca)
            except ssl.SSLError as error:
                why = "the CA of the virtual API server's front proxy can't be used"
                raise OSError(f"{why}: {error}") from error
            self._trusted = ca
        return self._serving

    def _listening(self, host: str, ports: range) -> KubeletPort:
        for port in reversed(ports):
            with suppress(OSError):
                return KubeletPort(listen(host, port), self._answer, self._context, self._bounds)
        raise OSError(f"none of the ports {ports.start} to {ports.stop - 1} is free")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            raise RuntimeError("no port is open before there is a certificate")
        return self._tls

    async def _answer(self, client: ClientConnection, head: MessageHead) -> None:
        self._bounds.trust(client, CLIENTS)
        try:
            status, body = await self._api.answer(client.certificate, head)
            await self._bounds.send(client, http.reply(status, body, pages.JSON), CLIENTS)
        finally:
            self._bounds.answered(client, CLIENTS)

    def _labels(self, plural: str, key: Key) -> Mapping[str, str]:
        """Return the labels of a virtual Pod or Node; none if it isn't cached."""
        informers = self._pair.informers
        resource = _KINDS[plural]
        if not informers.has(Side.VIRTUAL, resource):
            return {}
        found = informers.store(Side.VIRTUAL, resource).outline(key)
        return labels_of(found) if found else {}

    # -- registration ------------------------------------------------------------------------------

    def _objects(self, address: str, port: int, ca: bytes) -> Iterator[tuple[Resource, Obj]]:
        """Yield the objects that lead the virtual API server here."""
        settings = self._pair.settings
        labels = {settings.marks.cluster: settings.identity}
        metadata = {"name": SERVICE.name, "namespace": SERVICE.namespace, "labels": labels}
        ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
        yield SERVICES, {"metadata": metadata, "spec": {"ports": ports}}
        of_service = {SERVICE_NAME: SERVICE.name, MANAGED_BY: "vsyncer"}
        yield (
            ENDPOINT_SLICES,
            {
                "metadata": {**metadata, "labels": {**labels, **of_service}},
                "addressType": _address_type(address),
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            },
        )
        group, _, version = VERSION.partition("/")
        yield (
            API_SERVICES,
            {
                "metadata": {"name": API_SERVICE.name, "labels": labels},
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": {"name": SERVICE.name, "namespace": SERVICE.namespace, "port": 443},
                    "caBundle": base64.b64encode(ca).decode(),
                },
            },
        )

    async def _put(self, resource: Resource, obj: Obj) -> None:
        """Create or correct an object, unless one of its name belongs to the tenant.

        Raises:
            OSError: It does.
            ClusterError: A request failed.
        """
        key = Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        virtual = self._pair.virtual
        try:
            found = await virtual.get(resource, key)
        except NotFound:
            await virtual.create(
                resource,
                {"apiVersion": resource.api_version, "kind": resource.kind, **obj},
            )
            return
        if not self._is_ours(found):
            raise OSError(f"the virtual {resource.kind} {key} is the tenant's own")
        if not covers(obj, found):
            await virtual.patch(resource, key, obj)

    async def _withdraw(self) -> None:
        """Remove our objects: an APIService without a server would hold up deleted namespaces."""
        if not self._served.may_write():
            return
        for resource, key in OBJECTS:
            with suppress(NotFound):
                if self._is_ours(await self._pair.virtual.get(resource, key)):
                    await self._pair.virtual.delete(resource, key)

    async def _is_the_tenants(self) -> bool:
        """Return True if the tenant's own APIService serves the API."""
        try:
            return not self._is_ours(await self._pair.virtual.get(API_SERVICES, API_SERVICE))
        except NotFound:
            return False

    def _is_ours(self, obj: Obj) -> bool:
        settings = self._pair.settings
        return settings.marks.is_from_here(obj, cluster=settings.identity)

    async def _is_reached(self) -> bool:
        """Return True if the virtual API server reaches the daemon; report why not."""
        found = await self._pair.virtual.get(API_SERVICES, API_SERVICE)
        conditions = (found.get("status") or {}).get("conditions") or ()
        available: Obj = next((each for each in conditions if each.get("type") == "Available"), {})
        if available.get("status") == "True":
            self._report("", "")
            return True
        if available.get("status") == "False":
            why = f"the virtual API server can't reach {GROUP} here"
            why = f"{why}: does it have --enable-aggregator-routing=true?"
            self._report(why, str(available.get("message")))
        return False


def _address_type(address: str) -> str:
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return "FQDN"
