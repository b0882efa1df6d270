"""The programs of examples/multicluster, as processes beside two API servers."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml
from programs_scene import FOLDER, example, joined

from kube_envtest import BackgroundApiServer
from syncer.api import Key, Obj, Resource
from syncer.clusters.connection import ConnectionSettings, client
from syncer.resources.kinds import NAMESPACES
from syncer.testing.objects import build, configmap, pod, resource_of, secret

WEB = Key("shop", "web")
REMOTE_CLUSTERS = Resource("examples.vsyncer.dev/v1", "RemoteCluster", "remoteclusters")
AGENT = Key("", "remotecluster-agent")
PATIENCE = 60.0


@pytest.fixture
def eu() -> Iterator[BackgroundApiServer]:
    with BackgroundApiServer() as server:
        yield server


@pytest.fixture
def us() -> Iterator[BackgroundApiServer]:
    with BackgroundApiServer() as server:
        yield server


@pytest.fixture
def kubeconfig(eu: BackgroundApiServer, us: BackgroundApiServer, tmp_path: Path) -> Path:
    """A kubeconfig with both, by context."""
    files = {name: server.kubeconfig(tmp_path / name) for name, server in (("eu", eu), ("us", us))}
    return joined(files, tmp_path / "config")


def eventually(holds: Callable[[], object], message: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, message()
        time.sleep(0.05)


def deployment(name: str, replicas: int = 1) -> Obj:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    kind = resource_of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop"}})
    return build(kind, name, spec=spec)


def test_helloworld_prints_the_pods_of_two_clusters(
    eu: BackgroundApiServer, us: BackgroundApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    eu.put(pod("first"))
    arguments = ("--contexts", "eu,us")
    with example("helloworld.py", *arguments, kubeconfig=kubeconfig, folder=tmp_path) as message:
        eventually(lambda: "eu / shop / first" in message(), message)
        us.put(pod("second"))
        eventually(lambda: "us / shop / second" in message(), message)
    assert message().count("first") == 1


def test_deploymentcopy_keeps_copies_in_step_and_leaves_others_alone(
    eu: BackgroundApiServer, us: BackgroundApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    eu.put(deployment("web"))
    eu.put(deployment("taken", 3))
    us.put(deployment("taken", 1))
    arguments = ("eu", "us", "--namespace", "shop")

    def replicas() -> object:
        copy = us.get("deployments.apps", WEB)
        return copy and copy["spec"]["replicas"]

    with example("deploymentcopy.py", *arguments, kubeconfig=kubeconfig, folder=tmp_path) as message:
        eventually(lambda: replicas() == 1, message)
        eu.put(deployment("web", 2))
        eventually(lambda: replicas() == 2, message)
        copy = us.get("deployments.apps", WEB)
        assert copy is not None
        us.put({**copy, "spec": {**copy["spec"], "replicas": 9}})
        eventually(lambda: replicas() == 2, message)
        us.delete("deployments.apps", WEB)
        eventually(lambda: replicas() == 2, message)
        eu.delete("deployments.apps", WEB)
        eventually(lambda: replicas() is None, message)
        assert "is not a copy" in message()
        taken = us.get("deployments.apps", Key("shop", "taken"))
        assert taken is not None
        assert taken["spec"]["replicas"] == 1


def test_configmapcollect_copies_labelled_ones_and_deletes_those_gone_meanwhile(
    eu: BackgroundApiServer, us: BackgroundApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    arguments = ("eu", "eu,us", "--namespace", "collected")
    label = {"labels": {"collect": "yes"}}

    def copies() -> dict[str, str]:
        found = [each for each in eu.objects("configmaps") if each["metadata"]["namespace"] == "collected"]
        return {each["metadata"]["name"]: each["data"]["k"] for each in found if "k" in each.get("data", {})}

    eu.put(build(NAMESPACES, "collected"))
    for server, value in ((eu, "1"), (us, "2")):
        server.put(configmap("one", {"k": value}, metadata=label))
        server.put(configmap("other", {"k": value}))
    with example("configmapcollect.py", *arguments, kubeconfig=kubeconfig, folder=tmp_path) as message:
        eventually(lambda: copies() == {"eu-shop-one": "1", "us-shop-one": "2"}, message)
        us.put(configmap("one", {"k": "3"}, metadata=label))
        eventually(lambda: copies()["us-shop-one"] == "3", message)
        eu.delete("configmaps", Key("collected", "us-shop-one"))
        eventually(lambda: copies().get("us-shop-one") == "3", message)
        eventually(lambda: [each["reason"] for each in us.objects("events")] == ["Collected"], message)
    us.delete("configmaps", Key("shop", "one"))
    eu.put(configmap("one", {"k": "1"}))
    with example("configmapcollect.py", *arguments, kubeconfig=kubeconfig, folder=tmp_path) as message:
        eventually(lambda: copies() == {}, message)


def test_podghost_shows_the_pods_of_clusters_in_one_of_them(
    eu: BackgroundApiServer, us: BackgroundApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    eu.put(yaml.safe_load((FOLDER / "podghost.yaml").read_text()))
    eu.put(pod("web"))
    us.put(pod("web"))

    def ghosts() -> list[tuple[str, str, str]]:
        found = [each["spec"] for each in eu.objects("podghosts.examples.vsyncer.dev")]
        return sorted((spec["cluster"], spec["pod"], spec["phase"]) for spec in found)

    arguments = ("eu", "eu", "us", "--namespace", "shop")
    with example("podghost.py", *arguments, kubeconfig=kubeconfig, folder=tmp_path) as message:
        eventually(lambda: ghosts() == [("eu", "web", "Pending"), ("us", "web", "Pending")], message)
        us.put(pod("web", status={"phase": "Running"}))
        eventually(lambda: ghosts()[1:] == [("us", "web", "Running")], message)
        ghost = next(each for each in eu.objects("podghosts.examples.vsyncer.dev") if each["spec"]["cluster"] == "us")
        eu.delete("podghosts.examples.vsyncer.dev", Key("shop", ghost["metadata"]["name"]))
        eventually(lambda: len(ghosts()) == 2, message)
        us.delete("pods", WEB)
        eventually(lambda: ghosts() == [("eu", "web", "Pending")], message)


def test_fleet_follows_the_kubeconfigs_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "clusters"
    folder.mkdir()

    def join(name: str, server: BackgroundApiServer) -> None:
        server.kubeconfig(tmp_path / name).rename(folder / f"{name}.kubeconfig")

    with BackgroundApiServer(tls=True) as eu, BackgroundApiServer(tls=True) as us:
        eu.put(pod("first"))
        us.put(pod("second", status={"phase": "Running"}))
        join("eu", eu)
        with example("fleet.py", "--folder", str(folder), folder=tmp_path) as message:
            eventually(lambda: "eu connected" in message() and "eu / shop / first: Pending" in message(), message)
            join("us", us)
            eventually(lambda: "us / shop / second: Running" in message(), message)
            (folder / "eu.kubeconfig").unlink()
            eventually(lambda: "eu disconnected" in message(), message)
            us.delete("pods", Key("shop", "second"))
            eventually(lambda: "us / shop / second: gone" in message(), message)


def test_remotecluster_runs_a_controller_in_each_cluster_that_an_object_names(tmp_path: Path) -> None:
    key, resource = Key("fleet", "eu"), "remoteclusters.examples.vsyncer.dev"

    def condition(name: str) -> tuple[str, str]:
        obj = home.get(resource, key) or {}
        found = (obj.get("status") or {}).get("conditions") or []
        return next(((each["status"], each["reason"]) for each in found if each["type"] == name), ("", ""))

    def run() -> AbstractContextManager[Callable[[], str]]:
        arguments = ("--namespace", "fleet")
        return example("remotecluster.py", *arguments, folder=tmp_path, kubeconfig=config)

    async def delete() -> None:
        connection = client(ConnectionSettings(str(config)), name="home", environ={})
        try:
            await connection.delete(REMOTE_CLUSTERS, key)
        finally:
            await connection.close()

    with BackgroundApiServer() as home, BackgroundApiServer(tls=True) as eu:
        config = home.kubeconfig(tmp_path / "home")
        login = secret("eu", {"kubeconfig": eu.kubeconfig(tmp_path / "eu").read_text()}, namespace="fleet")
        home.put(yaml.safe_load((FOLDER / "remotecluster.yaml").read_text()))
        eu.put(pod("first"))
        spec = {"kubeConfig": {"secretRef": {"name": "eu", "key": "kubeconfig"}}}
        home.put(build(REMOTE_CLUSTERS, "eu", namespace="fleet", spec=spec))
        with run() as message:
            eventually(lambda: condition("Ready") == ("False", "KubeconfigMissing"), message)
            assert condition("Installed") == ("", "")
            home.put(login)
            eventually(lambda: condition("Ready") == ("True", "Running"), message)
            assert condition("Installed") == ("True", "Installed")
            eventually(lambda: "fleet/eu: shop / first" in message(), message)
            obj = home.get(resource, key) or {}
            assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
            assert obj["metadata"]["finalizers"] == ["vsyncer.dev/remote-cluster"]
            assert eu.get("namespaces", AGENT)
            home.put(secret("eu", {"kubeconfig": "{}"}, namespace="fleet"))
            eventually(lambda: condition("Ready") == ("False", "Unparsable"), message)
            home.put(login)
            eventually(lambda: condition("Ready") == ("True", "Running"), message)
        eu.put(pod("second"))
        with run() as message:
            eventually(lambda: "fleet/eu: shop / second" in message(), message)
            asyncio.run(delete())
            eventually(lambda: home.get(resource, key) is None, message)
            assert eu.get("namespaces", AGENT) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_programs_end_well_on_a_signal(
    number: signal.Signals, eu: BackgroundApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    eu.put(pod("first"))
    command = [sys.executable, str(FOLDER / "helloworld.py"), "--contexts", "eu", "--kubeconfig", str(kubeconfig)]
    log = tmp_path / "log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as program:
        eventually(lambda: "eu / shop / first" in log.read_text(), log.read_text)
        program.send_signal(number)
        assert program.wait(PATIENCE) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
