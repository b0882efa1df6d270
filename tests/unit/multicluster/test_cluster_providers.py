"""Where clusters come from: contexts, folders, functions, and Secrets whose writers aren't trusted."""

import asyncio
import base64
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pki_scene
import pytest
import yaml
from fleet_scene import Site, eventually, running

from kube_envtest import Rule
from syncer.api import Key, Obj
from syncer.clusters.login import ExecPlugin, Login, Material
from syncer.multicluster import (
    CallableProvider,
    CannotConnect,
    ClusterApiProvider,
    ContextsProvider,
    FolderProvider,
    ProvidedCluster,
    Reason,
    SecretsProvider,
    parsed,
)
from syncer.multicluster.logins import LARGEST, MOST_PARTS, of_files
from syncer.testing.objects import crd, crd_version, secret

CA = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").decode()
SERVER = {"server": "https://10.0.0.1:6443", "certificate-authority-data": CA}
LABELS = {"labels": {"sigs.k8s.io/multicluster-runtime-kubeconfig": "true"}}


def config(
    user: Mapping[str, Any] | None = None, cluster: Mapping[str, Any] | None = None, contexts: tuple[str, ...] = ("c",)
) -> str:
    return yaml.safe_dump(
        {
            "current-context": contexts[0],
            "contexts": [{"name": name, "context": {"cluster": "k", "user": "u"}} for name in contexts],
            "clusters": [{"name": "k", "cluster": {**SERVER, **(cluster or {})}}],
            "users": [{"name": "u", "user": user or {"token": "t"}}],
        }
    )


class RecordedFleet:
    """A fleet that records what a provider puts and removes."""

    def __init__(self) -> None:
        self.members: dict[str, ProvidedCluster] = {}
        self.puts: list[str] = []

    def put(self, name: str, member: ProvidedCluster) -> None:
        self.members[name] = member
        self.puts.append(name)

    def remove(self, name: str) -> None:
        self.members.pop(name, None)


# -- kubeconfigs of others -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}}, {}, "run programs"),
        ({"auth-provider": {"name": "gcp"}}, {}, "run programs"),
        ({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}, {}, "names a file"),
        ({"client-certificate": "a.crt", "client-key-data": CA}, {}, "names a file"),
        ({"client-certificate-data": CA, "client-key": "a.key"}, {}, "names a file"),
        ({}, {"certificate-authority-data": "", "certificate-authority": "/etc/shadow"}, "names a file"),
        ({}, {"certificate-authority-data": "", "insecure-skip-tls-verify": True}, "lets anybody be the server"),
        ({}, {"server": "http://10.0.0.1"}, "without TLS"),
        ({}, {"proxy-url": "http://user:pass@169.254.169.254:80"}, "proxy-url connects to any address"),
        ({}, {"proxy-url": "https://10.0.0.1"}, "proxy-url connects to any address"),
    ],
)
def test_kubeconfig_of_others_gets_no_program_or_file_of_ours(
    user: Mapping[str, Any], cluster: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(CannotConnect, match=message) as caught:
        parsed(config(user, cluster).encode(), source="Secret a/b", environ={})
    assert caught.value.reason is Reason.REFUSED
    assert "Secret a/b" in str(caught.value)


def test_kubeconfig_of_others_is_reached_through_the_proxy_of_the_environment() -> None:
    found = parsed(config().encode(), source="x", environ={"HTTPS_PROXY": "http://p:3128"}).endpoint.proxy
    assert found
    assert (found.host, found.source) == ("p", "HTTPS_PROXY")


@pytest.mark.parametrize("trusted", [True, False])
def test_kubeconfig_file_names_a_proxy_if_it_is_trusted(tmp_path: Path, trusted: bool) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(config({}, {"proxy-url": "http://p:3128"}))
    if trusted:
        found = of_files([file], context="", environ={}, trusted=True).endpoint.proxy
        assert found
        assert found.host == "p"
        return
    with pytest.raises(CannotConnect, match="proxy-url connects to any address") as caught:
        of_files([file], context="", environ={}, trusted=False)
    assert caught.value.reason is Reason.REFUSED


@pytest.mark.parametrize("data", [b"", b"[]", b"a: {", b"\xff\xfe\x00", b"clusters: 1"])
def test_malformed_kubeconfig_of_others_is_reported(data: bytes) -> None:
    with pytest.raises(CannotConnect) as caught:
        parsed(data, source="Secret a/b", environ={})
    assert caught.value.reason is Reason.UNPARSABLE


def test_kubeconfig_of_others_may_have_a_token_or_a_certificate() -> None:
    assert parsed(config().encode(), source="x", environ={}).token == "t"
    pair = {"client-certificate-data": CA, "client-key-data": CA}
    assert parsed(config(pair).encode(), source="x", environ={}).certificate


@pytest.mark.parametrize("name", ["../ca.crt", "./x/ca.crt", "/ca.crt", "x/../ca.crt", "ca"])
def test_kubeconfig_of_others_may_name_the_files_beside_it_alone(name: str) -> None:
    def read(file: str) -> Login:
        text = config({}, {"certificate-authority-data": "", "certificate-authority": file})
        return parsed(text.encode(), source="Secret a/b", environ={}, files={"ca.crt": b"PEM"})

    assert read("ca.crt").ca == Material(b"PEM")
    with pytest.raises(CannotConnect, match="names a file"):
        read(name)


def test_secret_for_the_daemon_of_a_virtual_control_plane_is_used_and_stays_labelled() -> None:
    made: dict[str, Obj] = {}
    pki_scene.run(made)
    secret = made["api-daemon"]
    found = pki_scene.files(secret)
    login = parsed(found["config"], source="Secret shop/api-daemon", environ={}, files=found)
    assert login.endpoint.authority == "api.shop.svc:443"
    assert (login.ca.data, login.certificate.data, login.key.data) == (
        found["ca.crt"],
        found["tls.crt"],
        found["tls.key"],
    )
    mine = {"labels": {**secret["metadata"]["labels"], "fleet": ""}, "annotations": {"a": "b"}}
    secret["metadata"].update(mine)
    pki_scene.run(made, now=pki_scene.NOW + timedelta(days=300))
    assert pki_scene.files(made["api-daemon"]) != found
    assert {part: made["api-daemon"]["metadata"][part] for part in mine} == mine


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: " + b"x" * LARGEST, "and may have"),
        (b"a: &a [x]\nb: *a\n", "aliases in it are not read"),
        (b"[" * 30, "too many parts"),
        (b"- x\n" * MOST_PARTS, "too many parts"),
    ],
)
def test_kubeconfig_of_others_costs_little(text: bytes, message: str) -> None:
    with pytest.raises(CannotConnect, match=message) as caught:
        parsed(text, source="Secret a/b", environ={})
    assert caught.value.reason is Reason.UNPARSABLE


# -- files ----------------------------------------------------------------------------------------------------


async def watching(provider: Any, fleet: RecordedFleet) -> "asyncio.Task[None]":
    task = asyncio.create_task(provider.run(fleet))
    await asyncio.sleep(0.1)
    return task


async def test_contexts_of_a_kubeconfig_are_clusters(tmp_path: Path) -> None:
    file = tmp_path / "k"
    file.write_text(config(contexts=("eu", "us")))
    fleet, chosen = RecordedFleet(), RecordedFleet()
    every = await watching(ContextsProvider(str(file), environ={}), fleet)
    some = await watching(ContextsProvider(str(file), contexts=["us"], environ={}), chosen)
    assert (sorted(fleet.members), list(chosen.members)) == (["eu", "us"], ["us"])
    assert (await fleet.members["eu"].read()).token == "t"
    file.write_text(config({"token": "new-one"}, contexts=("eu",)))
    await asyncio.sleep(11)
    assert list(fleet.members) == ["eu"]
    assert (await fleet.members["eu"].read()).token == "new-one"
    with pytest.raises(CannotConnect, match="no context 'us'"):
        await chosen.members["us"].read()
    file.unlink()
    await asyncio.sleep(11)
    assert list(fleet.members) == ["eu"], "while it can't be read, they stay"
    every.cancel()
    some.cancel()


async def test_folder_has_a_cluster_for_each_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "eu.kubeconfig").write_text(config())
    (tmp_path / "notes.txt").write_text("")
    fleet = RecordedFleet()
    task = await watching(FolderProvider(tmp_path, environ={}), fleet)
    assert list(fleet.members) == ["eu"]
    member = fleet.members["eu"]
    (tmp_path / "us.kubeconfig").write_text("a: {")
    await asyncio.sleep(11)
    assert fleet.puts == ["eu", "us"], "an unchanged file is put once"
    with pytest.raises(CannotConnect) as caught:
        await fleet.members["us"].read()
    assert caught.value.reason is Reason.UNPARSABLE
    (tmp_path / "eu.kubeconfig").unlink()
    with pytest.raises(CannotConnect) as caught:
        await member.read()
    assert caught.value.reason is Reason.KUBECONFIG_MISSING
    await asyncio.sleep(11)
    assert list(fleet.members) == ["us"]
    task.cancel()


@pytest.mark.parametrize("kind", ["folder", "contexts"])
async def test_own_files_may_run_programs_and_name_files_and_those_of_others_may_not(tmp_path: Path, kind: str) -> None:
    def provider(**options: Any) -> Any:
        if kind == "folder":
            return FolderProvider(tmp_path, environ={}, **options)
        return ContextsProvider(str(tmp_path / "c.kubeconfig"), environ={}, **options)

    async def login(**options: Any) -> Login:
        fleet = RecordedFleet()
        task = await watching(provider(**options), fleet)
        task.cancel()
        return await fleet.members["c"].read()

    file = tmp_path / "c.kubeconfig"
    program = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "token", "interactiveMode": "Never"}
    }
    file.write_text(config(program, {"certificate-authority-data": "", "certificate-authority": "ca.crt"}))
    found = await login()
    assert isinstance(found.plugin, ExecPlugin)
    assert found.ca.path == tmp_path / "ca.crt"
    with pytest.raises(CannotConnect, match="run programs") as caught:
        await login(trusted=False)
    assert caught.value.reason is Reason.REFUSED
    file.write_text(config())
    assert (await login(trusted=False)).token == "t"


async def test_files_of_others_cost_little(tmp_path: Path) -> None:
    file = tmp_path / "c.kubeconfig"
    file.write_text(config())
    fleet = RecordedFleet()
    task = await watching(ContextsProvider(str(file), trusted=False, environ={}), fleet)
    file.write_text(config() + "a: &a [x]\nb: *a\n")
    with pytest.raises(CannotConnect, match="aliases in it are not read"):
        await fleet.members["c"].read()
    await asyncio.sleep(11)
    assert fleet.puts == ["c"], "while it can't be read, it stays"
    task.cancel()


async def test_function_provides_clusters_and_may_fail() -> None:
    found: dict[str, ProvidedCluster] = {"a": ProvidedCluster(read=unread)}
    fails = False

    async def members() -> Mapping[str, ProvidedCluster]:
        if fails:
            raise OSError("away")
        return dict(found)

    fleet = RecordedFleet()
    task = await watching(CallableProvider(members, interval=1.0), fleet)
    fails = True
    found.clear()
    await asyncio.sleep(5)
    assert list(fleet.members) == ["a"]
    fails = False
    found["b"] = ProvidedCluster(read=unread)
    await asyncio.sleep(1.1)
    assert list(fleet.members) == ["b"]
    task.cancel()


async def test_function_that_never_returns_is_asked_again_after_its_time_and_the_clusters_stay() -> None:
    fleet, asked = RecordedFleet(), 0

    async def members() -> Mapping[str, ProvidedCluster]:
        nonlocal asked
        asked += 1
        if asked == 2:
            await asyncio.Event().wait()
        return {"a": ProvidedCluster(read=unread)} if asked < 3 else {"b": ProvidedCluster(read=unread)}

    task = await watching(CallableProvider(members, interval=1.0, timeout=30.0), fleet)
    await asyncio.sleep(30.5)
    assert list(fleet.members) == ["a"]
    await asyncio.sleep(2)
    assert list(fleet.members) == ["b"]
    task.cancel()


@pytest.mark.real_time
async def test_function_that_is_not_async_is_asked_in_a_thread() -> None:
    threads: list[threading.Thread] = []

    def members() -> Mapping[str, ProvidedCluster]:
        threads.append(threading.current_thread())
        return {"a": ProvidedCluster(read=unread)}

    fleet = RecordedFleet()
    task = await watching(CallableProvider(members), fleet)
    await eventually(lambda: fleet.members)
    assert list(fleet.members) == ["a"]
    assert threading.main_thread() not in threads
    task.cancel()


async def unread() -> Login:
    raise AssertionError


# -- Secrets --------------------------------------------------------------------------------------------------


def kubeconfig_secret(
    name: str, *, namespace: str = "fleet", key: str = "kubeconfig", token: str = "t", **m: Any
) -> Obj:
    return secret(name, {key: config({"token": token})}, namespace=namespace, metadata=m or LABELS)


async def test_labelled_secrets_of_listed_namespaces_are_clusters_and_lead_to_namespaces_of_theirs() -> None:
    site, fleet = Site("management"), RecordedFleet()
    site.server.put(kubeconfig_secret("eu"))
    site.server.put(kubeconfig_secret("plain", labels={"app": "web"}))
    site.server.put(kubeconfig_secret("stranger", namespace="tenant"))
    provider = SecretsProvider(site.cluster, {"fleet": ["host-a"], "other": ["host-b"]}, environ={})
    async with running(site):
        task = await watching(provider, fleet)
        await eventually(lambda: fleet.members)
        site.server.put(kubeconfig_secret("us", namespace="other"))
        await eventually(lambda: len(fleet.members) == 2)
        assert {name: set(each.namespaces) for name, each in fleet.members.items()} == {
            "fleet/eu": {"host-a"},
            "other/us": {"host-b"},
        }
        assert fleet.members["fleet/eu"].labels == LABELS["labels"]
        assert (await fleet.members["fleet/eu"].read()).token == "t"
        paths = {
            one.path for one in site.server.requests if one.verb in ("list", "watch") and one.resource == "secrets"
        }
        assert paths == {"/api/v1/namespaces/fleet/secrets", "/api/v1/namespaces/other/secrets"}
        former = fleet.members["fleet/eu"].version
        site.server.put(kubeconfig_secret("eu", token="new"))
        await eventually(lambda: fleet.members["fleet/eu"].version != former)
        assert (await fleet.members["fleet/eu"].read()).token == "new"
        former = fleet.members["fleet/eu"].version
        beside = kubeconfig_secret("eu", token="new")
        site.server.put({**beside, "data": {**beside["data"], "ca.crt": CA}})
        await eventually(lambda: fleet.members["fleet/eu"].version != former)
        site.server.delete("secrets", Key("fleet", "eu"))
        await eventually(lambda: list(fleet.members) == ["other/us"])
        task.cancel()


def put_nothing(server: Any) -> None:
    server.delete("secrets", Key("fleet", "eu"))


def put_no_key(server: Any) -> None:
    server.put(secret("eu", {"other": "x"}, namespace="fleet", metadata=LABELS))


def put_nonsense(server: Any) -> None:
    server.put(secret("eu", {"kubeconfig": "a: {"}, namespace="fleet", metadata=LABELS))


def put_program(server: Any) -> None:
    text = config({"exec": {"command": "sh"}})
    server.put(secret("eu", {"kubeconfig": text}, namespace="fleet", metadata=LABELS))


def break_reads(server: Any) -> None:
    server.faults.add(Rule(verb="get", resource="secrets", status=503))


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (put_nothing, Reason.KUBECONFIG_MISSING),
        (put_no_key, Reason.KEY_MISSING),
        (put_nonsense, Reason.UNPARSABLE),
        (put_program, Reason.REFUSED),
        (break_reads, Reason.UNREADABLE),
    ],
)
async def test_problems_of_a_kubeconfig_secret_have_reasons_of_their_own(
    happens: Callable[[Any], None], reason: Reason
) -> None:
    site, fleet = Site("management"), RecordedFleet()
    site.server.put(kubeconfig_secret("eu"))
    async with running(site):
        task = await watching(SecretsProvider(site.cluster, {"fleet": []}, environ={}), fleet)
        await eventually(lambda: fleet.members)
        member = fleet.members["fleet/eu"]
        happens(site.server)
        with pytest.raises(CannotConnect, match="Secret fleet/eu of management") as caught:
            await member.read()
        assert caught.value.reason is reason
        task.cancel()


def cluster(name: str, **status: Any) -> Obj:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": "fleet", "labels": {"watched": "yes"}},
        "spec": {},
        "status": status,
    }


@pytest.mark.parametrize(
    "provisioned", [{"infrastructureReady": True}, {"initialization": {"infrastructureProvisioned": True}}]
)
async def test_clusters_of_cluster_api_have_their_kubeconfig_in_a_secret_of_theirs(
    provisioned: Mapping[str, Any],
) -> None:
    site, fleet = Site("management"), RecordedFleet()
    site.server.put(crd("clusters.cluster.x-k8s.io", [crd_version("v1beta2", storage=True)]))
    site.server.put(cluster("eu"))
    provider = ClusterApiProvider(site.cluster, {"fleet": ["host-a"]}, environ={})
    async with running(site):
        task = await watching(provider, fleet)
        await eventually(lambda: fleet.members)
        assert not fleet.members["fleet/eu"].ready
        assert fleet.members["fleet/eu"].labels == {"watched": "yes"}
        assert fleet.members["fleet/eu"].namespaces == {"host-a"}
        with pytest.raises(CannotConnect) as caught:
            await fleet.members["fleet/eu"].read()
        assert caught.value.reason is Reason.KUBECONFIG_MISSING
        labels = {"cluster.x-k8s.io/cluster-name": "eu"}
        site.server.put(kubeconfig_secret("eu-kubeconfig", key="value", labels=labels))
        site.server.put(kubeconfig_secret("eu-other", key="value", labels=labels))
        site.server.put(cluster("eu", **provisioned))
        await eventually(lambda: fleet.members["fleet/eu"].ready and fleet.members["fleet/eu"].version)
        assert (await fleet.members["fleet/eu"].read()).token == "t"
        former = fleet.members["fleet/eu"].version
        site.server.put(kubeconfig_secret("eu-kubeconfig", key="value", token="new", labels=labels))
        await eventually(lambda: fleet.members["fleet/eu"].version != former)
        assert list(fleet.members) == ["fleet/eu"]
        site.server.delete("clusters.cluster.x-k8s.io", Key("fleet", "eu"))
        await eventually(lambda: not fleet.members)
        task.cancel()


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_cluster_api_is_found_in_the_version_that_is_served_also_if_it_comes_later(version: str) -> None:
    site, fleet = Site("management"), RecordedFleet()
    provider = ClusterApiProvider(site.cluster, {"fleet": ["host-a"]}, environ={})
    async with running(site):
        task = asyncio.create_task(provider.run(fleet))
        await asyncio.sleep(300)
        site.server.put(crd("clusters.cluster.x-k8s.io", [crd_version(version, storage=True)]))
        site.server.put(cluster("eu") | {"apiVersion": f"cluster.x-k8s.io/{version}"})
        await eventually(lambda: "fleet/eu" in fleet.members)
        task.cancel()
