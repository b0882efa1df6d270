"""The official client, kubernetes-client/python, against the API server in the test's own process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch

from kube_envtest import BackgroundApiServer, Rule


def scale_up(apps: client.AppsV1Api, namespace: str, least: int) -> list[str]:
    """Set a minimum of replicas for every Deployment of a namespace; return the names of those changed.

    The code under test.
    """
    changed = []
    for deployment in apps.list_namespaced_deployment(namespace).items:
        if deployment.spec.replicas < least:
            name = deployment.metadata.name
            apps.patch_namespaced_deployment_scale(name, namespace, {"spec": {"replicas": least}})
            changed.append(name)
    return changed


def deployment(name: str, replicas: int) -> dict[str, Any]:
    """Return a Deployment in the namespace ``shop``."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }


@pytest.fixture
def api(api_server_kubeconfig: Path) -> Iterator[client.ApiClient]:
    """Return a client, logged in as the administrator of ``api_server``."""
    with config.new_client_from_config(str(api_server_kubeconfig)) as logged_in:
        yield logged_in


def test_deployments_are_scaled_up(api_server: BackgroundApiServer, api: client.ApiClient) -> None:
    api_server.put(deployment("web", replicas=1))
    api_server.put(deployment("cache", replicas=5))

    assert scale_up(client.AppsV1Api(api), "shop", least=3) == ["web"]

    web = api_server.get("deployments.apps", "shop/web")
    assert web is not None
    assert web["spec"]["replicas"] == 3


def test_an_invalid_name_is_refused_as_by_a_real_api_server(api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    with pytest.raises(client.ApiException) as caught:
        core.create_namespaced_config_map("default", {"metadata": {"name": "No_Such_Name"}})
    assert caught.value.status == 422
    assert "metadata.name: Invalid value" in caught.value.body


def test_a_watch_receives_changes(api_server: BackgroundApiServer, api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    version = core.list_namespaced_config_map("default").metadata.resource_version
    api_server.put(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"x": "1"}}
    )
    watching = watch.Watch()
    for event in watching.stream(core.list_namespaced_config_map, "default", resource_version=version):
        assert (event["type"], event["object"].data) == ("ADDED", {"x": "1"})
        watching.stop()


def test_a_server_in_trouble(api_server: BackgroundApiServer, api: client.ApiClient) -> None:
    """Faults are answered in place of the server; ``count`` says how many requests."""
    api_server.put(deployment("web", replicas=1))
    api_server.call(lambda server: server.faults.add(Rule(verb="patch", status=409, count=1)))
    apps = client.AppsV1Api(api)

    with pytest.raises(client.ApiException) as caught:
        scale_up(apps, "shop", least=3)
    assert caught.value.status == 409

    assert scale_up(apps, "shop", least=3) == ["web"]
