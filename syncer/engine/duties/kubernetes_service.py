"""The virtual Service ``default/kubernetes`` at the address that pods use.

Its API server creates it with the first address of its range, and doesn't change it afterwards
(``pkg/controlplane/controller/kubernetesservice`` of Kubernetes). In the host's range that is the
address of the host's API server. It is only what the tenant sees: the Service is never copied to the
host, and no address that pods are given comes from it.
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

#: The name under which the Service is shown as degraded; the syncer of Services has conditions of its own.
NAME = str(KUBERNETES)
#: Seconds between two checks of the cache, and before an address that was refused is tried again.
LOOK_SECONDS, REFUSED_SECONDS = 2.0, 60.0

log = get_logger(__name__)


class AddressRefused(Exception):
    """The virtual API server can't give ``default/kubernetes`` the address."""


def is_kept(pair: ClusterPair) -> bool:
    """Return True if the Service is to have an address: pods have one, and Services are synced."""
    return bool(pair.settings.api_server.host) and "services" in pair.settings.sections


async def keep(pair: ClusterPair) -> None:
    """Keep the Service at the address.

    A refused address is tried again once the Service has changed, and after a while, as another Service may have
    released it.
    """
    address = pair.settings.api_server
    clock = asyncio.get_running_loop().time
    not_before = 0.0
    while True:
        service = _cached(pair)
        is_refused = service is not None and _is_named(service, address) and clock() < not_before
        if service is not None and not is_refused and not _is_at(service, address):
            try:
                await set_address(pair.virtual, address)
            except AddressRefused as error:
                not_before = clock() + REFUSED_SECONDS
                _report(pair, error)
            except ClusterError as error:
                log.warning("could not set the address of default/kubernetes", cluster=pair.name, error=str(error))
            else:
                pair.recover(NAME)
        await asyncio.sleep(LOOK_SECONDS)


def _cached(pair: ClusterPair) -> Obj | None:
    """Return the Service from the cache; None while there is none, or it is to be left alone."""
    if "services" not in pair.controllers or not pair.may_run("services"):
        return None
    return pair.informers.store(Side.VIRTUAL, SERVICES).get(KUBERNETES)


async def set_address(virtual: SideClient, address: ApiServerAddress) -> None:
    """Give the existing Service the address, unless it has it already.

    A ClusterIP can only be changed by way of the type ExternalName. A process that ends between the two
    writes does the second after its next start.

    Raises:
        AddressRefused: The virtual API server refuses it. The Service stays of type ExternalName: no
            ClusterIP is better than that of the host's API server.
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
    log.info("default/kubernetes has the address that pods use", cluster=virtual.virtual_cluster, host=address.host)


def _is_at(service: Obj, address: ApiServerAddress) -> bool:
    """Return True if the Service has the address, and its port alone."""
    spec = service["spec"]
    has_address = spec.get("clusterIP") == address.host if address.is_ip else _is_named(service, address)
    return has_address and [port["port"] for port in spec.get("ports") or ()] == [address.port]


def _is_named(service: Obj, address: ApiServerAddress) -> bool:
    return bool(service["spec"].get("externalName") == address.host)


async def _patch(virtual: SideClient, spec: Obj) -> None:
    await virtual.patch(SERVICES, KUBERNETES, {"spec": spec})


def _report(pair: ClusterPair, error: AddressRefused) -> None:
    """Show on the status page that the address was refused, and log it."""
    what = "default/kubernetes can't have the address that pods use"
    why = f"{what}, {pair.settings.api_server.host}: {error}"
    if pair.degrade(NAME, Condition(why, what)):
        log.warning("in pods, kubernetes.default.svc is known by /etc/hosts alone", cluster=pair.name, error=why)
