"""The programs of examples/multicluster between two real API servers."""

import re
from pathlib import Path

import pytest
import yaml
from api import RESOURCES, Api, eventually
from programs_scene import FOLDER, example, joined

from syncer.api import Key, Obj, Resource
from syncer.testing.objects import build, pod, secret

#: A namespace on both sides.
NAMESPACE = "fleet"
README = Path(__file__).parents[2] / "README.md"
RESOURCES["Deployment"] = Resource("apps/v1", "Deployment", "deployments")


@pytest.fixture(scope="module")
def clusters(apis: tuple[Api, Api]) -> tuple[Api, Api]:
    for api in apis:
        api.make_namespace(NAMESPACE)
    return apis


@pytest.fixture
def kubeconfig(clusters: tuple[Api, Api], tmp_path: Path) -> Path:
    """A kubeconfig with the contexts eu and us."""
    files = {name: Path(api.plane.kubeconfig()) for name, api in zip(("eu", "us"), clusters, strict=True)}
    return joined(files, tmp_path / "config")


def bare(name: str) -> Obj:
    return pod(name, namespace=NAMESPACE)


def deployment(name: str, replicas: int) -> Obj:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def test_program_of_the_readme_prints_the_pods_of_real_clusters(
    clusters: tuple[Api, Api], kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    program = kubeconfig.parent / "readme.py"
    program.write_text(code)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    eu, us = clusters
    eu.create(bare("first"))
    with example(str(program), folder=kubeconfig.parent) as output:
        eventually(lambda: f"eu / {NAMESPACE} / first" in output(), "it prints a pod that was there")
        us.create(bare("second"))
        eventually(lambda: f"us / {NAMESPACE} / second" in output(), "it prints a pod that comes")
    for api, name in ((eu, "first"), (us, "second")):
        api.delete("Pod", Key(NAMESPACE, name), grace=0)


def test_helloworld_prints_the_pods_of_real_clusters(clusters: tuple[Api, Api], kubeconfig: Path) -> None:
    eu, us = clusters
    eu.create(bare("first"))
    with example("helloworld.py", "--contexts", "eu,us", folder=kubeconfig.parent, kubeconfig=kubeconfig) as output:
        eventually(lambda: f"eu / {NAMESPACE} / first" in output(), "it prints a pod that was there")
        us.create(bare("second"))
        eventually(lambda: f"us / {NAMESPACE} / second" in output(), "it prints a pod that comes")
    for api, name in ((eu, "first"), (us, "second")):
        api.delete("Pod", Key(NAMESPACE, name), grace=0)


def test_deploymentcopy_keeps_real_deployments_in_step(clusters: tuple[Api, Api], kubeconfig: Path) -> None:
    eu, us = clusters
    key = Key(NAMESPACE, "web")
    eu.create(deployment("web", 0))

    def replicas() -> int:
        copy = us.get("Deployment", key)
        return -1 if copy is None else copy["spec"]["replicas"]

    with example(
        "deploymentcopy.py", "eu", "us", "--namespace", NAMESPACE, folder=kubeconfig.parent, kubeconfig=kubeconfig
    ) as output:
        eventually(lambda: replicas() == 0, "the copy is made")
        eu.patch("Deployment", key, {"spec": {"paused": True, "replicas": 1}})
        eventually(lambda: replicas() == 1, "the copy follows")
        us.patch("Deployment", key, {"spec": {"replicas": 3}})
        eventually(lambda: replicas() == 1, "the copy is repaired")
        version = (us.get("Deployment", key) or {})["metadata"]["generation"]
        eu.delete("Deployment", key)
        eventually(lambda: replicas() == -1, "the copy goes")
        assert version == 4, output()


def test_podghost_shows_real_pods_as_custom_resources(clusters: tuple[Api, Api], kubeconfig: Path) -> None:
    eu, us = clusters
    eu.define(yaml.safe_load((FOLDER / "podghost.yaml").read_text()))
    us.create(bare("web"))

    def phases() -> list[str]:
        return [each["spec"]["phase"] for each in eu.list("PodGhost", namespace=NAMESPACE)]

    with example("podghost.py", "eu", "us", "--namespace", NAMESPACE, folder=kubeconfig.parent, kubeconfig=kubeconfig):
        eventually(lambda: phases() == ["Pending"], "the pod has a ghost")
        us.patch("Pod", Key(NAMESPACE, "web"), {"status": {"phase": "Running"}}, subresource="status")
        eventually(lambda: phases() == ["Running"], "the ghost follows")
        us.delete("Pod", Key(NAMESPACE, "web"), grace=0)
        eventually(lambda: phases() == [], "the ghost goes")


def test_remotecluster_runs_a_controller_in_a_real_cluster_that_an_object_names(
    clusters: tuple[Api, Api], kubeconfig: Path
) -> None:
    home, us = clusters
    home.define(yaml.safe_load((FOLDER / "remotecluster.yaml").read_text()))
    login = yaml.safe_dump(yaml.safe_load(Path(us.plane.kubeconfig()).read_text()))
    home.create(secret("us", {"kubeconfig": login}, namespace=NAMESPACE))
    key = Key(NAMESPACE, "us")

    def condition(name: str) -> str:
        status = (home.get("RemoteCluster", key) or {}).get("status") or {}
        return next((each["status"] for each in status.get("conditions") or [] if each["type"] == name), "")

    folder = kubeconfig.parent
    arguments = ("--namespace", NAMESPACE, "--context", "eu")
    with example("remotecluster.py", *arguments, folder=folder, kubeconfig=kubeconfig) as output:
        us.create(bare("seen"))
        spec = {"kubeConfig": {"secretRef": {"name": "us", "key": "kubeconfig"}}}
        home.create(build(RESOURCES["RemoteCluster"], "us", namespace=NAMESPACE, spec=spec))
        eventually(lambda: (condition("Installed"), condition("Ready")) == ("True", "True"), "it is ready")
        eventually(lambda: f"{NAMESPACE}/us: {NAMESPACE} / seen" in output(), "its controller runs")
        obj = home.get("RemoteCluster", key) or {}
        assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        home.delete("RemoteCluster", key)
        eventually(lambda: home.get("RemoteCluster", key) is None, "it goes")
        agent = us.get("Namespace", Key("", "remotecluster-agent"))
        assert agent is None or agent["metadata"].get("deletionTimestamp"), output()
    us.delete("Pod", Key(NAMESPACE, "seen"), grace=0)
