"""The address of the virtual API server for pods: given, from a host Service, or from the virtual kubeconfig."""

import asyncio
import dataclasses
import socket
from typing import Any

import pytest

from syncer.api import Config, ConfigError, Forbidden, Key, Networking, NotFound, Obj, Resource, Settings
from syncer.clusters.login import Login
from syncer.clusters.proxy import Proxy
from syncer.clusters.transport import Endpoint
from syncer.daemon.start import api_server
from syncer.names import SingleNamespace

#: The names that can be looked up here.
NAMES = {"api": "10.96.0.7", "api.vc.svc": "10.96.0.8", "shop.example.org": "192.0.2.1", "me.example.org": "127.0.1.1"}


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    async def looked_up(_: object, host: str, *args: object, **kwargs: object) -> list[Any]:
        if host not in NAMES and not host[0].isdigit():
            raise OSError("Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (NAMES.get(host, host), 0))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", looked_up)


class Host:
    """A host with one Service, or an error instead."""

    def __init__(self, spec: Obj | Exception) -> None:
        self.spec = spec

    async def get(self, resource: Resource, key: Key) -> Obj:
        """Return the Service, or raise the error."""
        assert (resource.plural, str(key)) == ("services", "infra/api")
        if isinstance(self.spec, Exception):
            raise self.spec
        return {"spec": self.spec}


def settings(*syncers: str, **api: Any) -> Settings:
    """Return settings with this ``networking.apiServer``; pods are synced unless syncers are given."""
    names = SingleNamespace(cluster="shop", namespace="vc")
    networking = Networking.model_validate({"apiServer": api})
    sections = {name: Config() for name in syncers or ("pods",)}
    return Settings("shop", "vc", names, networking=networking, sections=sections)


def found(given: Settings, host: str = "127.0.0.1", *, spec: Obj | Exception | None = None, **endpoint: Any) -> str:
    """Return the address for a virtual kubeconfig with this server."""
    login = Login(Endpoint(host, 6443, **endpoint))
    made = asyncio.run(api_server.find(given, login, Host(spec or {})))  # type: ignore[arg-type]
    return f"{made.host} {made.port}"


def refused(given: Settings, host: str = "127.0.0.1", *, spec: Obj | Exception | None = None, **endpoint: Any) -> str:
    """Return the error for a virtual kubeconfig with this server."""
    with pytest.raises(ConfigError) as error:
        found(given, host, spec=spec, **endpoint)
    return str(error.value)


def test_address_in_the_configuration_wins() -> None:
    assert found(settings(host="api.example", port=8443), "192.0.2.1") == "api.example 8443"


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("shop.example.org", "shop.example.org"),
        ("api.vc.svc", "10.96.0.8"),
        ("api", "10.96.0.7"),
    ],
)
def test_address_in_the_kubeconfig_is_used_and_names_of_the_hosts_dns_are_looked_up(server: str, address: str) -> None:
    assert found(settings(), server) == f"{address} 6443"


@pytest.mark.parametrize(
    ("server", "more", "why"),
    [
        ("127.0.0.1", {}, "one of the daemon's own machine"),
        ("::1", {}, "one of the daemon's own machine"),
        ("0.0.0.0", {}, "one of the daemon's own machine"),
        ("169.254.0.9", {}, "one of the daemon's own machine"),
        ("localhost", {}, "one of the daemon's own machine"),
        ("me.example.org", {}, "is 127.0.1.1, one of the daemon's own machine"),
        ("nobody.example.org", {}, "can't be looked up (Name or service not known)"),
        ("192.0.2.7", {"tls": False}, "is not https"),
        ("192.0.2.7", {"prefix": "/k8s/clusters/c-1"}, "has a path"),
        ("192.0.2.7", {"proxy": Proxy("proxy.example", 3128)}, "is reached through a proxy"),
    ],
)
def test_unreachable_address_is_refused_with_the_option_to_set(server: str, more: dict[str, Any], why: str) -> None:
    output = refused(settings(), server, **more)
    assert output.startswith("networking.apiServer of virtual cluster shop: is required, as pods are synced")
    assert why in output
    assert "Set networking.apiServer.service" in output


def test_address_is_not_needed_without_pods() -> None:
    login = Login(Endpoint("127.0.0.1", 6443))
    api_server.check(settings("configmaps"), login)
    api_server.check(settings(service="infra/api"), login)
    with pytest.raises(ConfigError):
        api_server.check(settings(), login)


@pytest.mark.parametrize(
    ("ports", "port"),
    [([{"port": 443}], 443), ([{"name": "metrics", "port": 9}, {"name": "https", "port": 6443}], 6443)],
)
def test_address_of_the_host_service_is_used_with_its_https_port(ports: list[Obj], port: int) -> None:
    spec = {"clusterIP": "10.96.0.9", "ports": ports}
    assert found(settings(service="infra/api"), "192.0.2.1", spec=spec) == f"10.96.0.9 {port}"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (NotFound("no"), "the host has no Service infra/api. Create it"),
        (Forbidden("no"), "may not read the Service infra/api. Apply what `syncer rbac --side host` prints"),
        ({"clusterIP": "None", "ports": [{"port": 443}]}, "has no address of its own"),
        ({"clusterIP": "10.96.0.9"}, "has no address of its own"),
        ({"type": "ExternalName", "externalName": "x", "ports": [{"port": 443}]}, "has no address of its own"),
    ],
)
def test_host_service_without_an_address_is_refused(spec: Obj | Exception, why: str) -> None:
    output = refused(settings(service="infra/api"), spec=spec)
    assert output.startswith("networking.apiServer.service of virtual cluster shop: ")
    assert why in output


def test_host_and_service_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="give either host or service"):
        settings(host="192.0.2.1", service="infra/api")


def test_certificate_is_not_looked_at_where_the_daemon_itself_connects_or_trusts_anything() -> None:
    def problem(login: Login) -> str:
        address = asyncio.run(api_server.find(settings(), Login(Endpoint("192.0.2.1", 6443)), Host({})))  # type: ignore[arg-type]
        return asyncio.run(api_server.certificate_problem(address, login))

    own = Login(Endpoint("192.0.2.1", 6443))
    assert problem(own) == ""
    assert problem(dataclasses.replace(own, insecure=True, endpoint=Endpoint("192.0.2.9", 1))) == ""
