"""A daemon whose virtual clusters are named by Secrets of the host, on real API servers, with no more rights than
`syncer rbac` prints.
"""

import base64
import subprocess
from pathlib import Path
from typing import Any

import yaml
from api import eventually
from scene import OWN_ADDRESSES, Scene

from hack.bench.daemon import Process
from syncer.api import Key, Obj
from syncer.engine.stores import identity as claim
from syncer.testing.objects import configmap

LABEL = "vsyncer.dev/virtual-cluster"


def in_secret(name: str, namespace: str, config: bytes, /, **annotations: str) -> Obj:
    """Return a Secret with a kubeconfig."""
    named = {f"{LABEL}-{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": namespace, "labels": {LABEL: ""}, "annotations": named}
    data = {"config": base64.b64encode(config).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def clusters(daemon: Process) -> dict[str, str]:
    """Return the answer of `syncer clusters`: the state and the reason, by name."""
    command = [*daemon.command, "clusters", "--config", str(daemon.file), "-o", "yaml"]
    found = yaml.safe_load(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)
    return {each["cluster"]: f"{each['state']} {each['reason']}" for each in found}


def of_secrets(scene: Scene, user: str, **more: Any) -> dict[str, Any]:
    """Return a configuration with Secrets, in a namespace that is made, and nothing else."""
    scene.host.make_namespace(f"team-{scene.name}")
    return {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "virtualClusterSecrets": [{"namespace": f"team-{scene.name}", "hostNamespaces": [scene.host_namespace]}],
        "host": {"kubeconfig": str(scene.host.plane.kubeconfig(user))},
        "networking": {"apiServer": {"host": "10.97.0.1"}},
        "sync": dict(OWN_ADDRESSES, toHost={**OWN_ADDRESSES["toHost"], "configMaps": {"all": True}}),
        "log": {"level": "info", "format": "json"},
        **more,
    }


def test_virtual_cluster_of_a_secret_is_served_with_the_rights_that_are_printed(scene: Scene) -> None:
    host, team = scene.host, f"team-{scene.name}"
    tokens, admin = (Path(scene.virtual.plane.kubeconfig(user)).read_bytes() for user in ("daemon", "admin"))
    daemon = scene.daemon(of_secrets(scene, "daemon"))
    scene.grant(daemon, "daemon")
    daemon.start()
    assert clusters(daemon) == {}

    space = scene.namespace()
    scene.virtual.create(configmap("x", namespace=space))
    host.create(in_secret("kubeconfig", team, tokens, name=scene.name))
    scene.copied("ConfigMap", Key(space, "x"))
    host.create(in_secret("thief", team, tokens, name=scene.name, host_namespace="kube-system"))
    program = yaml.safe_load(tokens)
    program["users"][0]["user"] = {"exec": {"command": "id", "apiVersion": "client.authentication.k8s.io/v1"}}
    host.create(in_secret("program", team, yaml.safe_dump(program).encode()))
    proxied = yaml.safe_load(tokens)
    proxied["clusters"][0]["cluster"]["proxy-url"] = "http://user:pass@169.254.169.254:80"
    host.create(in_secret("proxied", team, yaml.safe_dump(proxied).encode()))
    eventually(lambda: len(clusters(daemon)) == 4, "the bad ones are refused")
    found = clusters(daemon)
    assert found[scene.name].startswith("served")
    assert "host namespace 'kube-system' is not assigned" in found[f"{team}/thief"]
    assert "exec and auth-provider run programs here" in found[f"{team}/program"]
    assert "proxy-url connects to any address" in found[f"{team}/proxied"]
    assert f"[!]secrets/{team} degraded: Refused: 3" in daemon.readyz()[1]

    renewed = {"data": {"config": base64.b64encode(admin).decode()}}
    host.patch("Secret", Key(team, "kubeconfig"), renewed)
    scene.virtual.create(configmap("later", namespace=space))
    scene.copied("ConfigMap", Key(space, "later"))
    assert clusters(daemon)[scene.name].startswith("served")
    assert "another server or program" not in daemon.log.read_text()

    host.delete("Secret", Key(team, "kubeconfig"))
    eventually(lambda: scene.name not in clusters(daemon), "it has left")
    scene.virtual.create(configmap("late", namespace=space))
    host.create(in_secret("again", team, admin, name=scene.name))
    scene.copied("ConfigMap", Key(space, "late"))


def test_commands_without_the_daemon_find_the_virtual_cluster_by_its_secret(scene: Scene) -> None:
    team, space = f"team-{scene.name}", scene.namespace()
    election = {"enabled": True, "namespace": scene.host_namespace, "name": f"fleet-{scene.name}"}
    config = of_secrets(scene, "admin", leaderElection=election)
    daemon = scene.start(config)
    scene.host.create(
        in_secret("kubeconfig", team, Path(scene.virtual.plane.kubeconfig("admin")).read_bytes(), name=scene.name)
    )
    key = Key(space, "x")
    scene.virtual.create(configmap("x", namespace=space))
    scene.copied("ConfigMap", key)
    daemon.stop()

    host_key = scene.host_key("ConfigMap", key)
    command = [*daemon.command, "names", "to-host", "--config", str(daemon.file), "--cluster", scene.name]
    named = subprocess.run([*command, "configmaps", str(key)], capture_output=True, text=True, check=True, timeout=600)
    assert named.stdout == f"{host_key}\n"
    scene.host.delete("ConfigMap", host_key)
    patrolled = daemon.run("patrol", "--once", "configmaps", "--cluster", scene.name)
    assert patrolled.returncode == 0, patrolled
    assert scene.copy("ConfigMap", key)

    unknown = daemon.run("uninstall", "--cluster", "zoo")
    assert unknown.returncode == 2
    assert f"there are: {scene.name}." in unknown.stderr
    nobody = {"kubeconfig": str(scene.host.plane.kubeconfig("nobody"))}
    refused = scene.daemon({**config, "host": nobody}).run("uninstall", "--cluster", scene.name)
    assert refused.returncode == 1
    assert f"the Secrets in {team} can't be listed" in refused.stderr

    done = daemon.run("uninstall", "--yes", "--cluster", scene.name, seconds=120)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "done"), done
    assert scene.copy("ConfigMap", key) is None
    assert scene.virtual.get("ConfigMap", claim.NOTE_KEY) is None
