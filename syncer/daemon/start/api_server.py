"""The address at which a virtual cluster's pods reach its API server.

The kubelet sets ``KUBERNETES_SERVICE_HOST`` to the host's API server in every container that
doesn't set it itself, so pods without this address would talk to the host, with the tenant's token.
"""

import asyncio
import ipaddress
import socket

from syncer.api.context import Settings
from syncer.api.errors import ConfigError, Forbidden, NotFound, Problem
from syncer.api.networking import ApiServerAddress
from syncer.api.objects import Key, Obj
from syncer.clusters.client import SideClient
from syncer.clusters.diagnose import why_not_for
from syncer.clusters.login import Login
from syncer.clusters.transport import Endpoint
from syncer.resources.kinds import SERVICES
from syncer.resources.service_addresses import HEADLESS

_SET = "Set networking.apiServer.service to the host Service in front of the virtual API server, or"
_HINT = f"{_SET} networking.apiServer.host to an address of it that pods on the host reach."


def is_needed(settings: Settings) -> bool:
    """Return True if pods are synced, which need the address."""
    return "pods" in settings.sections


def check(settings: Settings, login: Login) -> None:
    """Check before a start that the address is given, or follows from the virtual kubeconfig.

    Raises:
        ConfigError: It is neither, and pods are synced.
    """
    given = settings.networking.api_server
    if not is_needed(settings) or given.host or given.service:
        return
    if why := _why_not(login.endpoint):
        raise _required(settings, why)


async def find(settings: Settings, login: Login, host: SideClient) -> ApiServerAddress:
    """Return the address that pods are to use: as configured, or from the virtual kubeconfig.

    Raises:
        ConfigError: There is none that pods can reach.
        ClusterError: A request failed.
    """
    given = settings.networking.api_server
    if given.host:
        return ApiServerAddress(given.host, given.port)
    if given.service:
        return await _of_service(settings, Key.parse(given.service), host)
    check(settings, login)
    return await _from_kubeconfig(settings, login.endpoint)


async def certificate_problem(address: ApiServerAddress, login: Login) -> str:
    """Return why clients in pods don't trust the server at the address; ``""`` if they do, or if
    that can't be checked.
    """
    endpoint = login.endpoint
    if login.insecure or not endpoint.tls:
        return ""
    if (address.host, address.port, "") == (endpoint.host, endpoint.port, endpoint.server_name):
        return ""  # the daemon itself has connected there
    return await why_not_for(login, address.host, address.port)


def _why_not(endpoint: Endpoint) -> str:
    """Return why pods can't use the address of a virtual kubeconfig; ``""`` if they can.

    The address alone is checked.
    """
    if not endpoint.tls:
        return "is not https, which clients in pods require"
    if endpoint.prefix:
        return "has a path, which clients in pods can't use"
    if endpoint.proxy:
        return "is reached through a proxy, so perhaps not by pods"
    host = endpoint.host
    if host == "localhost" or host.endswith(".localhost") or _is_of_machine(host):
        return "is one of the daemon's own machine, which pods don't reach"
    return ""


def _is_of_machine(host: str) -> bool:
    """Return True for an IP address that means another server on each machine."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified or ip.is_link_local


async def _from_kubeconfig(settings: Settings, endpoint: Endpoint) -> ApiServerAddress:
    """Return the address of a virtual kubeconfig.

    A name of the host's own DNS is looked up, as pods ask the DNS server of the virtual cluster.

    Raises:
        ConfigError: Its name can't be looked up, or is one of the daemon's own machine.
    """
    try:
        ip = await _looked_up(endpoint.host)
    except OSError as error:
        raise _required(settings, f"can't be looked up ({error})") from error
    if _is_of_machine(ip):
        why = f"is {ip}, one of the daemon's own machine, which pods don't reach"
        raise _required(settings, why)
    if _is_of_host_dns(endpoint.host):
        return ApiServerAddress(ip, endpoint.port)
    return ApiServerAddress(endpoint.host, endpoint.port)


async def _looked_up(host: str) -> str:
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return str(found[0][4][0])


def _is_of_host_dns(name: str) -> bool:
    """Return True for the name of a host Service, as ``api``, ``api.ns.svc``, or a longer one."""
    labels = name.split(".")
    return len(labels) == 1 or labels[2:3] == ["svc"]


async def _of_service(settings: Settings, key: Key, host: SideClient) -> ApiServerAddress:
    """Return the address of the host Service in front of the virtual API server.

    Raises:
        ConfigError: It isn't there, can't be read, or has no address.
        ClusterError: A request failed.
    """
    path = f"networking.apiServer.service of virtual cluster {settings.cluster}"
    try:
        spec: Obj = (await host.get(SERVICES, key)).get("spec") or {}
    except NotFound as error:
        why = f"the host has no Service {key}."
        hint = "Create it, or correct the name."
        raise ConfigError(Problem(why, path=path, hint=hint)) from error
    except Forbidden as error:
        why = f"the daemon may not read the Service {key}."
        hint = "Apply what `syncer rbac --side host` prints."
        raise ConfigError(Problem(why, path=path, hint=hint)) from error
    address = spec.get("clusterIP")
    ports = spec.get("ports") or []
    if not address or address == HEADLESS or not ports:
        why = f"the Service {key} has no address of its own."
        hint = "It must be one with a ClusterIP and a port."
        raise ConfigError(Problem(why, path=path, hint=hint))
    port = next((each for each in ports if each.get("name") == "https"), ports[0])
    return ApiServerAddress(str(address), int(port["port"]))


def _required(settings: Settings, why: str) -> ConfigError:
    path = f"networking.apiServer of virtual cluster {settings.cluster}"
    reason = f"is required, as pods are synced: the address in the virtual kubeconfig {why}."
    return ConfigError(Problem(reason, path=path, hint=_HINT))
