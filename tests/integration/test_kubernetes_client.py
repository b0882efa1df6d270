"""The kubernetes package on real API servers: as a plugin's client, and as a client that knows nothing of ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from api import Api
from kubernetes import client as independent
from kubernetes import config
from kubernetes.aio import client as official
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.watch import Watch
from scene import Scene

from syncer.api import Key
from syncer.testing.objects import configmap, pod_mounting

pytestmark = pytest.mark.controlplane

DEFINITION: Any = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gauges.official.example.com"},
    "spec": {
        "group": "official.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@contextmanager
def independent_client(kubeconfig: Path) -> Iterator[independent.ApiClient]:
    """Yield a client of the package's own; its ``close`` leaves the connections to the garbage collector."""
    with config.new_client_from_config(str(kubeconfig)) as client:  # type: ignore[no-untyped-call]
        try:
            yield client
        finally:
            client.rest_client.pool_manager.clear()


def test_a_plugins_client_writes_and_watches(apis: tuple[Api, Api]) -> None:
    host, name = apis[1], "by-the-official-client"

    async def main() -> None:
        client = host.cluster.kubernetes_client()
        core, definitions = official.CoreV1Api(client), official.ApiextensionsV1Api(client)
        known = await official.VersionApi(client).get_code()
        assert known.git_version == (await host.cluster.fetch("/version"))["gitVersion"]
        version = (await core.list_namespaced_config_map("default")).to_dict()["metadata"]["resource_version"]
        metadata = official.V1ObjectMeta(name=name)
        await core.create_namespaced_config_map("default", official.V1ConfigMap(metadata=metadata, data={"x": "1"}))
        await core.patch_namespaced_config_map(name, "default", {"data": {"x": "2"}})
        events = []
        async with Watch() as watch:  # type: ignore[no-untyped-call]
            stream = watch.stream(core.list_namespaced_config_map, "default", resource_version=version)
            async for event in stream:
                events.append((event["type"], event["object"].data))
                if len(events) == 2:
                    break
        assert events == [("ADDED", {"x": "1"}), ("MODIFIED", {"x": "2"})]
        await definitions.create_custom_resource_definition(DEFINITION)
        with pytest.raises(ApiException) as caught:
            await definitions.create_custom_resource_definition(DEFINITION)
        assert caught.value.status == 409
        await definitions.delete_custom_resource_definition(DEFINITION["metadata"]["name"])

    host.loop.run(main())
    with independent_client(host.plane.kubeconfig()) as client:
        found = independent.CoreV1Api(client).read_namespaced_config_map(name, "default").to_dict()
        assert found["data"] == {"x": "2"}
        assert {entry["manager"] for entry in found["metadata"]["managed_fields"]} == {"vsyncer"}


def test_an_independent_client_reads_the_daemons_copy(world: Scene, ns: str) -> None:
    world.virtual.create(configmap("seen", {"color": "blue"}, namespace=ns))
    world.virtual.create(pod_mounting("p", configmap="seen", namespace=ns))
    copy = world.copied("ConfigMap", Key(ns, "seen"))
    with independent_client(world.host.plane.kubeconfig()) as client:
        found = (
            independent.CoreV1Api(client)
            .read_namespaced_config_map(copy["metadata"]["name"], world.host_namespace)
            .to_dict()
        )
        assert (found["data"], found["metadata"]["uid"]) == ({"color": "blue"}, copy["metadata"]["uid"])
