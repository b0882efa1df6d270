"""One daemon for several virtual clusters, on real API servers."""

import subprocess

import yaml
from api import Api, eventually
from scene import OWN_ADDRESSES, Scene

from hack.bench.daemon import Process
from hack.ports import free_port
from syncer.api import Key, Obj
from syncer.testing.objects import configmap


def clusters(daemon: Process, file: str) -> dict[str, Obj]:
    """Return the answer of `syncer clusters`, by name."""
    command = [*daemon.command, "clusters", "--config", file, "-o", "yaml"]
    found = yaml.safe_load(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)
    return {each["cluster"]: each for each in found}


def test_clusters_join_and_leave_beside_one_that_does_not_answer(scene: Scene, second: Api) -> None:
    host, space = scene.host, f"fleet-{scene.name}"
    kubeconfigs = {scene.name: scene.virtual.plane.kubeconfig("admin"), "second": second.plane.kubeconfig("admin")}
    dead = scene.folder / "dead.kubeconfig"
    content = yaml.safe_load(kubeconfigs["second"].read_text())
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    dead.write_text(yaml.safe_dump(content))

    def entry(name: str, home: str, kubeconfig: object) -> Obj:
        return {"name": name, "hostNamespace": home, "kubeconfig": str(kubeconfig)}

    given = scene.config(sync=dict(OWN_ADDRESSES, toHost={**OWN_ADDRESSES["toHost"], "configMaps": {"all": True}}))
    for short in ("cluster", "virtual"):
        del given[short]
    given["host"] = {"kubeconfig": given["host"]["kubeconfig"]}
    both = [entry(scene.name, scene.host_namespace, kubeconfigs[scene.name]), entry("dead", "dead", dead)]
    daemon = scene.start({**given, "virtualClusters": both})
    for api in (scene.virtual, second):
        api.make_namespace(space)
        api.create(configmap("x", namespace=space))
    scene.copied("ConfigMap", Key(space, "x"))
    found = clusters(daemon, str(daemon.file))
    assert {name: each["state"] for name, each in found.items()} == {scene.name: "served", "dead": "starting"}

    daemon.config["virtualClusters"] = [*both, entry("second", scene.host_namespace, kubeconfigs["second"])]
    daemon.write()
    copy = Key(scene.host_namespace, f"x-x-{space}-x-second")
    eventually(lambda: host.get("ConfigMap", copy), "the copy of a virtual cluster that has joined")
    assert clusters(daemon, str(daemon.file))["second"]["state"] == "served"

    daemon.config["virtualClusters"] = [each for each in daemon.config["virtualClusters"] if each["name"] != "second"]
    daemon.write()
    eventually(lambda: "second" not in clusters(daemon, str(daemon.file)), "it has left")
    second.create(configmap("late", namespace=space))
    scene.virtual.create(configmap("late", namespace=space))
    scene.copied("ConfigMap", Key(space, "late"))
    assert host.get("ConfigMap", copy) is not None
    assert host.get("ConfigMap", Key(scene.host_namespace, f"late-x-{space}-x-second")) is None
