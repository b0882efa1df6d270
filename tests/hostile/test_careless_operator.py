"""Configurations that would hand the host over are refused before anything runs."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hostile_scene import OTHER, HostileScene, eventually

from hack.bench.daemon import SYNCER

COMMAND = os.environ.get(OTHER, SYNCER)
ADMISSION = "validatingwebhookconfigurations.admissionregistration.k8s.io"


def validated(hostile: HostileScene, folder: Path, **sections: Any) -> subprocess.CompletedProcess[str]:
    """Return the result of `syncer config validate`."""
    file = folder / "careless.yaml"
    file.write_text(yaml.safe_dump(hostile.config(**sections)))
    command = [COMMAND, "config", "validate", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=600)


@pytest.mark.translators("single-namespace", reason="the configuration is refused whatever the translator")
@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"host": {"namespace": "kube-system"}}, "kube-system is a namespace of the host cluster itself"),
        ({"sync": {"custom": {"deployments.apps": {}}}}, "deployments.apps is a kind of Kubernetes itself"),
        ({"sync": {"custom": {ADMISSION: {"scope": "Cluster"}}}}, f"{ADMISSION} is a kind of Kubernetes itself"),
    ],
)
def test_validate_refuses_a_careless_configuration(
    hostile: HostileScene, tmp_path: Path, sections: Any, message: str
) -> None:
    result = validated(hostile, tmp_path, **sections)
    # 0aeb964: returncode 0, "careless.yaml is fine."
    assert result.returncode == 2, result.stdout
    assert message in result.stderr


@pytest.mark.translators("single-namespace", "per-namespace", reason="with and without a host namespace to compare")
def test_validate_and_start_refuse_one_cluster_under_two_addresses(hostile: HostileScene, tmp_path: Path) -> None:
    file = tmp_path / "host"
    other = file.read_text().replace(_server(file), _server(tmp_path / "virtual"))
    file.write_text(other.replace("127.0.0.1", "localhost"))
    result = validated(hostile, tmp_path)
    # 0aeb964: returncode 0, "careless.yaml is fine.", and the daemon copied the cluster into itself.
    assert result.returncode == 2, result.stdout
    assert "the virtual and the host cluster are the same cluster" in result.stderr
    run = [COMMAND, "run", "--once", "--config", str(tmp_path / "careless.yaml")]
    started = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)
    assert started.returncode == 2, started.stdout
    assert "the same cluster" in started.stderr


def _server(kubeconfig: Path) -> str:
    """Return the address in a kubeconfig."""
    found: str = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return found


def _changed(hostile: HostileScene, **parts: Any) -> None:
    """Change the user, or the cluster, of the virtual kubeconfig."""
    file = hostile.folder / "virtual"
    found = yaml.safe_load(file.read_text())
    found["users"][0]["user"] = parts.get("user", found["users"][0]["user"])
    found["clusters"][0]["cluster"].update(parts.get("cluster", {}))
    file.write_text(yaml.safe_dump(found))


@pytest.mark.translators("single-namespace", reason="no translator sees a kubeconfig")
def test_program_in_a_kubeconfig_is_not_run_unless_allowed(hostile: HostileScene, tmp_path: Path) -> None:
    """On 0aeb964 there is no such option, and the program runs: `assert not True`."""
    ran = tmp_path / "ran"
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [str(ran)]}
    _changed(hostile, user={"exec": {**program, "interactiveMode": "Never"}})
    hostile.start(wait=False, virtual={"allowExec": False})
    eventually(lambda: not hostile.lives or ran.exists(), "it refuses, or runs the program")
    assert not ran.exists()
    assert hostile.daemon.wait() == 2
    assert "allowExec of this virtual cluster is false" in hostile.daemon.log_text()
    result = validated(hostile, tmp_path, virtual={"allowExec": False})
    assert result.returncode == 2
    assert not ran.exists()


@pytest.mark.translators("single-namespace", reason="no translator sees a kubeconfig")
def test_token_of_the_daemons_own_pod_isnt_sent_to_the_tenant(hostile: HostileScene, tmp_path: Path) -> None:
    """On 0aeb964: returncode 0, "careless.yaml is fine."."""
    _changed(hostile, user={"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"})
    result = validated(hostile, tmp_path)
    assert result.returncode == 2, result.stdout
    assert "is the token of this Pod's own service account" in result.stderr
    hostile.start(wait=False)
    assert hostile.daemon.wait() == 2
    assert "is the token of this Pod's own service account" in hostile.daemon.log_text()
    assert hostile.tenant.requests() == []


@pytest.mark.translators("single-namespace", reason="no translator sees a kubeconfig")
@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify is set"),
        ({"server": "http://127.0.0.2:9"}, "the address begins with http://"),
    ],
    ids=["unverified", "plain"],
)
def test_operator_is_warned_of_a_connection_that_others_can_read(
    hostile: HostileScene, cluster: dict[str, Any], message: str
) -> None:
    """0aeb964 says nothing."""
    _changed(hostile, cluster=cluster)
    hostile.start(wait=False)
    eventually(lambda: message in hostile.daemon.log_text(), "the log says so")
