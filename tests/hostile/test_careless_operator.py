"""Configurations that would hand the host over are refused before anything runs."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hostile_scene import OTHER, HostileScene

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
    ("sections", "said"),
    [
        ({"host": {"namespace": "kube-system"}}, "kube-system is a namespace of the host cluster itself"),
        ({"sync": {"custom": {"deployments.apps": {}}}}, "deployments.apps is a kind of Kubernetes itself"),
        ({"sync": {"custom": {ADMISSION: {"scope": "Cluster"}}}}, f"{ADMISSION} is a kind of Kubernetes itself"),
    ],
)
def test_validate_refuses_a_careless_configuration(
    hostile: HostileScene, tmp_path: Path, sections: Any, said: str
) -> None:
    result = validated(hostile, tmp_path, **sections)
    # 0aeb964: returncode 0, "careless.yaml is fine."
    assert result.returncode == 2, result.stdout
    assert said in result.stderr


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
