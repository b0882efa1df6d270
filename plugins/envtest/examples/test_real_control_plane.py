"""A real etcd and kube-apiserver as a fixture, for tests that no imitation should be trusted with.

Skipped if ``kube_envtest.find`` finds none; it says what to set.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from kube_envtest import ControlPlane, Programs

SERVICE: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


@pytest.fixture
def core(control_plane: ControlPlane) -> Iterator[client.CoreV1Api]:
    """Return the official client of the control plane that all tests of the session share."""
    with config.new_client_from_config(str(control_plane.kubeconfig())) as api:
        yield client.CoreV1Api(api)


def test_a_service_gets_an_address(core: client.CoreV1Api) -> None:
    core.create_namespace({"metadata": {"name": "addresses"}})
    made = core.create_namespaced_service("addresses", SERVICE)
    assert made.spec.cluster_ip.startswith("10.96.")


def test_a_user_may_do_nothing_at_first(control_plane: ControlPlane, tmp_path: Path) -> None:
    kubeconfig = control_plane.kubeconfig("alice", path=tmp_path / "alice.kubeconfig")
    with config.new_client_from_config(str(kubeconfig)) as api, pytest.raises(client.ApiException) as caught:
        client.CoreV1Api(api).list_namespaced_secret("default")
    assert caught.value.status == 403


@pytest.fixture(scope="module")
def own_plane(control_plane_programs: Programs) -> Iterator[ControlPlane]:
    """Return a control plane that this module may break; with controllers, which setup-envtest lacks."""
    controllers = "*" if control_plane_programs.has("kube-controller-manager") else ""
    with ControlPlane("own", programs=control_plane_programs, controllers=controllers) as plane:
        yield plane


def test_stored_objects_survive_a_restart_of_the_api_server(own_plane: ControlPlane) -> None:
    own_plane.kubectl("create", "configmap", "kept", "--from-literal=key=value")
    own_plane.kill_apiserver()
    own_plane.restart_apiserver()
    assert own_plane.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.key}").stdout == "value"


def test_a_deleted_namespace_is_gone(own_plane: ControlPlane) -> None:
    if not own_plane.controllers:
        pytest.skip("no kube-controller-manager here, so nothing empties a namespace")
    own_plane.kubectl("create", "namespace", "short-lived")
    own_plane.kubectl("delete", "namespace", "short-lived", "--wait", "--timeout=30s")
    assert own_plane.request("GET", "/api/v1/namespaces/short-lived")[0] == 404
