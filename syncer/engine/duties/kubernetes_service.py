"""The virtual Service ``default/kubernetes`` at the address that pods use.

Its API server creates it with the first address of its range, and doesn't change it afterwards
(``pkg/controlplane/controller/kubernetesservice`` of Kubernetes). In the host's range that is the
address of the host's API server. Only the tenant uses it: the Service is never copied to the host,
and no address that pods are given comes from it.
"""

import asyncio

from syncer.api.errors import ClusterError, Invalid
from syncer.api.networking import ApiServerAddress
from syncer.api.objects import Obj, Side
from syncer.clusters.client import SideClient
from syncer.engine.controllers.pair import ClusterPair, Condition
from syncer.observe.logs import get_logger
from syncer.resources.kinds import SERVICES
from syncer.resources.services import KUBERNETES

#: The name under which the Service is shown as degraded; the syncer of Services has conditions of
#: its own.
NAME = str(KUBERNETES)
#: Seconds between two checks of the cache.
LOOK_SECONDS = 2.0
#: Seconds before an address that was refused is tried again.
REFUSED_SECONDS = 60.0

log = get_logger(__name__)


class AddressRefused(Exception):
    """The virtual API server can't give ``default/kubernetes`` the address."""


def is_kept(pair: ClusterPair) -> bool:
    """Return True if the Service must have an address: pods have one, and Services are synced."""
    return bool(pair.settings.api_server.host) and "services" in pair.settings.sections


async def keep(pair: ClusterPair) -> None:
    """Keep the Service at the address.

    A refused address is tried again once the Service has changed, and after a while, as another
    Service may have released it.
    """
    address = pair.settings.api_server
    clock = asyncio.get_running_loop().time
    not_before = 0.0
    while True:
        service = None
        if "services" in pair.controllers and pair.may_run("services"):
            service = pair.informers.store(Side.VIRTUAL, SERVICES).get(KUBERNETES)
        is_refused = service is not None and _is_named(service, address) and clock() < not_before
        if service is not None and not is_refused and not _is_at(service, address):
            try:
                await set_address(pair.virtual, address)
            except AddressRefused as error:
                not_before = clock() + REFUSED_SECONDS
                _report(pair, error)
            except ClusterError as error:
                failure = "could not set the address of default/kubernetes"
                log.warning(failure, cluster=pair.name, error=str(error))
            else:
                pair.recover(NAME)
        await asyncio.sleep(LOOK_SECONDS)


async def set_address(virtual: SideClient, address: ApiServerAddress) -> None:
    """Give the existing Service the address, unless it has it already.

    A ClusterIP can only be changed by way of the type ExternalName. A process that ends between the
    two writes makes the second after its next start.

    Raises:
        AddressRefused: The virtual API server refuses it. The Service stays of type ExternalName:
            no ClusterIP is better than that of the host's API server.
        ClusterError: A request failed.
    """
    service = await virtual.get(SERVICES, KUBERNETES)
    if _is_at(service, address):
        return
    ports = [{"name": "https", "port": address.port, "protocol": "TCP"}]
    if service["spec"].get("clusterIP") != address.host and not _is_named(service, address):
        await _patch(virtual, {"type": "ExternalName", "externalName": address.host})
    spec: Obj = {"ports": ports}
    if address.is_ip:
        spec |= {"type": "ClusterIP", "clusterIP": address.host, "externalName": None}
    try:
        await _patch(virtual, spec)
    except Invalid as error:
        raise AddressRefused(str(error)) from error
    message = "default/kubernetes has the address that pods use"
    log.info(message, cluster=virtual.virtual_cluster, host=address.host)


def _is_at(service: Obj, address: ApiServerAddress) -> bool:
    """Return True if the Service has the address, and its port alone."""
    spec = service["spec"]
    ports = [port["port"] for port in spec.get("ports") or ()]
    if ports != [address.port]:
        return False
    if address.is_ip:
        return bool(spec.get("clusterIP") == address.host)
    return _is_named(service, address)


def _is_named(service: Obj, address: ApiServerAddress) -> bool:
    return bool(service["spec"].get("externalName") == address.host)


async def _patch(virtual: SideClient, spec: Obj) -> None:
    await virtual.patch(SERVICES, KUBERNETES, {"spec": spec})


def _report(pair: ClusterPair, error: AddressRefused) -> None:
    """Show on the status page that the address was refused, and log it."""
    public = "default/kubernetes can't have the address that pods use"
    why = f"{public}, {pair.settings.api_server.host}: {error}"
    if pair.degrade(NAME, Condition(why, public)):
        warning = "in pods, kubernetes.default.svc is known by /etc/hosts alone"
        log.warning(warning, cluster=pair.name, error=why)
