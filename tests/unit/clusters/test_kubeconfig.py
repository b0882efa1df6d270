"""Kubeconfig files and the Pod's service account: every form of login, merging, and messages about
mistakes.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from syncer.api.errors import ConfigError
from syncer.clusters import kubeconfig
from syncer.clusters.login import ExecPlugin, Impersonation, LegacyProvider, Login, Material
from syncer.clusters.proxy import Proxy
from syncer.clusters.transport import Endpoint


def config(cluster: Mapping[str, Any], user: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1:6443", **cluster}}],
        "users": [{"name": "u", "user": dict(user or {})}],
    }


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def login(tmp_path: Path, cluster: Mapping[str, Any], user: Mapping[str, Any] | None = None) -> Login:
    return kubeconfig.read(str(write(tmp_path / "kube.yaml", config(cluster, user))), environ={})


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_server_and_nothing_else(tmp_path: Path) -> None:
    source = f"{tmp_path}/kube.yaml, context c, user u"
    assert login(tmp_path, {}) == Login(Endpoint("10.0.0.1", 6443, source=source))
    assert str(login(tmp_path, {})) == f"{source} (no credentials)"


def test_given_server_stands_for_that_of_the_kubeconfig(tmp_path: Path) -> None:
    path = str(write(tmp_path / "kube.yaml", config({"tls-server-name": "api"}, {"token": "t"})))
    found = kubeconfig.read(path, server="https://vc.shop.svc:443/k8s", environ={})
    assert (found.endpoint.url, found.endpoint.server_name, found.token) == ("https://vc.shop.svc:443/k8s", "api", "t")
    with pytest.raises(ConfigError, match="not a URL of an API server"):
        kubeconfig.read(path, server="vc.shop.svc", environ={})
    with pytest.raises(ConfigError, match="no such kubeconfig"):
        kubeconfig.read("", server="https://h", environ={"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "h"})


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://h", ("h", 443, True, "")),
        ("http://h", ("h", 80, False, "")),
        ("https://[::1]:8443/k8s/c-1/", ("::1", 8443, True, "/k8s/c-1")),
    ],
)
def test_urls_of_servers(tmp_path: Path, server: str, expected: tuple[str, int, bool, str]) -> None:
    endpoint = login(tmp_path, {"server": server}).endpoint
    assert (endpoint.host, endpoint.port, endpoint.tls, endpoint.prefix) == expected


def test_server_settings_of_a_kubeconfig(tmp_path: Path) -> None:
    found = login(
        tmp_path,
        {"certificate-authority": "pki/ca.crt", "tls-server-name": "api.internal", "proxy-url": "http://p:3128"},
    )
    assert found.ca == Material(path=tmp_path / "pki/ca.crt")
    assert found.endpoint.server_name == "api.internal"
    assert found.endpoint.proxy == Proxy("p", 3128, source=f"proxy-url in {tmp_path / 'kube.yaml'}")
    both = login(tmp_path, {"certificate-authority": "x", "certificate-authority-data": b64("PEM")})
    assert both.ca.read() == b"PEM"
    assert login(tmp_path, {"insecure-skip-tls-verify": True}).insecure


@pytest.mark.parametrize(
    ("user", "attributes", "described"),
    [
        ({"token": "t"}, {"token": "t"}, "token"),
        ({"tokenFile": "tok"}, {"token_file": Path("tok")}, "token from tok"),
        (
            {"client-certificate": "a.crt", "client-key": "/b.key"},
            {"certificate": Material(path=Path("a.crt")), "key": Material(path=Path("/b.key"))},
            "client certificate from a.crt",
        ),
        (
            {"client-certificate-data": b64("C"), "client-key-data": b64("K")},
            {"certificate": Material(data=b"C"), "key": Material(data=b"K")},
            "client certificate from inline data",
        ),
        ({"username": "n", "password": "p"}, {"username": "n", "password": "p"}, "basic auth of n"),
        (
            {"token": "t", "as": "jane", "as-groups": ["g"], "as-uid": "7", "as-user-extra": {"s": ["v"]}},
            {"impersonation": Impersonation("jane", "7", ("g",), {"s": ("v",)})},
            "token",
        ),
        (
            {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}},
            {"plugin": LegacyProvider("oidc", {"id-token": "x"})},
            "auth provider oidc",
        ),
    ],
)
def test_logins_of_every_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: dict[str, Any], attributes: dict[str, Any], described: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "kube.yaml", config({}, user))
    found = kubeconfig.read("kube.yaml", environ={})
    assert {name: getattr(found, name) for name in attributes} == attributes
    assert str(found) == f"kube.yaml, context c, user u ({described})"


def test_exec_plugin_with_everything(tmp_path: Path) -> None:
    section = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "./bin/login",
        "args": ["--port", 1],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "get it",
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    cluster = {"certificate-authority-data": b64("PEM"), "tls-server-name": "n", "extensions": extensions}
    plugin = login(tmp_path, cluster, {"exec": section}).plugin
    info = {
        "server": "https://10.0.0.1:6443",
        "tls-server-name": "n",
        "certificate-authority-data": b64("PEM"),
        "config": {"audience": "x"},
    }
    assert plugin == ExecPlugin(
        str(tmp_path / "bin/login"),
        ("--port", "1"),
        {"A": "b"},
        "client.authentication.k8s.io/v1beta1",
        "get it",
        info,
    )


def test_plugin_in_the_path_gets_the_cluster_only_on_request(tmp_path: Path) -> None:
    plugin = login(tmp_path, {}, {"exec": {"apiVersion": "v", "command": "aws", "env": None}}).plugin
    assert plugin == ExecPlugin("aws", api_version="v")


def test_another_context_and_another_file(tmp_path: Path) -> None:
    first = config({})
    first["current-context"] = ""
    second = config({"server": "https://ignored"}, {"token": "ignored"})
    second["contexts"].append({"name": "d", "context": {"cluster": "k2", "user": "u2"}})
    second["clusters"].append({"name": "k2", "cluster": {"server": "https://second", "certificate-authority": "ca"}})
    second["users"].append({"name": "u2", "user": {"tokenFile": "tok"}})
    second["current-context"] = "d"
    (tmp_path / "sub").mkdir()
    one, two = write(tmp_path / "one", first), write(tmp_path / "sub/two", second)
    environ = {"KUBECONFIG": f"{tmp_path}/missing:{one}::{two}"}
    merged = kubeconfig.read(environ=environ)
    assert (merged.endpoint.host, merged.ca.path) == ("second", tmp_path / "sub/ca")
    assert merged.token_file == tmp_path / "sub/tok"
    assert kubeconfig.read(context="c", environ=environ).endpoint.host == "10.0.0.1"
    assert kubeconfig.read(context="c", environ=environ).token == ""


def test_kubeconfig_of_the_home_directory_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube/config", config({}, {"token": "home"}))
    assert kubeconfig.read(environ={"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "h"}).token == "home"


def test_service_account_is_used_without_a_kubeconfig(tmp_path: Path) -> None:
    for name in ("token", "ca.crt"):
        write(tmp_path / name, name)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "8443", "HOME": str(tmp_path)}
    found = kubeconfig.in_cluster(environ, directory=tmp_path)
    assert found == Login(
        Endpoint("fd00::1", 8443, source="the Pod's service account"),
        ca=Material(path=tmp_path / "ca.crt"),
        token_file=tmp_path / "token",
    )
    assert found.endpoint.url == "https://[fd00::1]:8443"
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        kubeconfig.in_cluster(environ, directory=tmp_path / "none")
    with pytest.raises(ConfigError, match="not a Pod"):
        kubeconfig.in_cluster({})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "kube.yaml:2: not YAML: "),
        ("a: b\n\tc: d", "kube.yaml:2: not YAML: "),
        ("just text", "kube.yaml: not a kubeconfig: expected a mapping at the top"),
        ({"clusters": {}}, "kube.yaml: no context is named and there is no current-context. There are no contexts"),
        ({"users": {"a": 1}}, "kube.yaml: users: expected a list, found dict"),
        ({"users": [{"user": {}}]}, "kube.yaml: users[0]: expected a mapping with a name"),
        ({"users": [{"name": "x", "user": "y"}]}, "kube.yaml: users[0].user: expected a mapping, found str"),
        ({**config({}), "current-context": "x"}, "kube.yaml: there is no context 'x'. There are: c."),
        (
            {**config({}), "clusters": []},
            "there is no cluster 'k' (named by contexts[0].context). There are no clusters in it at all.",
        ),
        (
            config({"server": "10.0.0.1:6443"}),
            "clusters[0].cluster.server: not a URL of an API server: '10.0.0.1:6443'",
        ),
        (config({"server": "https://h:99999"}), "clusters[0].cluster.server: not a URL of an API server"),
        (config({"server": None}), "clusters[0].cluster.server: not a URL of an API server: ''"),
        (config({"certificate-authority-data": "%%"}), "clusters[0].cluster.certificate-authority-data: not base64"),
        (
            config({"certificate-authority": "a", "insecure-skip-tls-verify": True}),
            "clusters[0].cluster.insecure-skip-tls-verify: can't stand beside a certificate-authority",
        ),
        (config({}, {"token": 17}), "users[0].user.token: expected a string, found int"),
        (config({}, {"client-certificate": "a"}), "users[0].user.client-key: missing: a certificate needs its key"),
        (config({}, {"client-key": "a"}), "users[0].user.client-certificate: missing"),
        (config({}, {"as-groups": ["g"]}), "users[0].user.as: missing"),
        (config({}, {"as": "u", "as-groups": "g"}), "users[0].user.as-groups: expected a list, found str"),
        (config({}, {"exec": {"command": "x", "env": [{"a": "b"}]}}), "users[0].user.exec.env[0]: expected a mapping"),
        (config({}, {"exec": {"command": "x", "args": "y"}}), "users[0].user.exec.args: expected a list, found str"),
        (
            config({"certificate-authority": "none"}, {"exec": {"command": "x", "provideClusterInfo": True}}),
            "/none can't be read: No such file or directory",
        ),
        (config({}, {"exec": {"apiVersion": "v"}}), "users[0].user.exec.command: missing"),
        (config({}, {"exec": {"command": "x", "interactiveMode": "Always"}}), "users[0].user.exec.interactiveMode: "),
    ],
)
def test_mistake_is_shown_where_it_stands(tmp_path: Path, content: object, message: str) -> None:
    path = write(tmp_path / "kube.yaml", content)
    with pytest.raises(ConfigError) as caught:
        kubeconfig.read(str(path), environ={})
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path}/none: can't be read: there is no such file"):
        kubeconfig.read(f"{tmp_path}/none", environ={})
    with pytest.raises(ConfigError, match=f"{tmp_path}/.kube/config: no such kubeconfig, and this is not a Pod."):
        kubeconfig.read(environ={"HOME": str(tmp_path)})
