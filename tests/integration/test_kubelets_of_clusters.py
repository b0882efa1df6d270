"""The kubelets of two virtual clusters of one daemon, on real API servers: what one tenant's API server may do is
refused by the other's.
"""

import http.client
import json
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from api import PATIENCE, Api, Loop, eventually
from scene import OWN_ADDRESSES, Scene

from hack.bench.daemon import Process
from hack.kubelet import Kubelet
from hack.ports import free_port
from kube_envtest import ControlPlane
from syncer.api import Key, dig
from syncer.testing.objects import configmap, pod, serviceaccount

NODE = "shared"


@pytest.fixture
def daemon(scene: Scene, second: Api, loop: Loop) -> Iterator[Process]:
    """A daemon with the kubelet's server for two virtual clusters, which have the same first port."""
    playing = loop.start(Kubelet(scene.host.cluster, scene.host_namespace, node=NODE).run())
    given = scene.config(sync=OWN_ADDRESSES)
    for short in ("cluster", "virtual"):
        del given[short]
    given["host"] = {"kubeconfig": given["host"]["kubeconfig"]}
    clusters = [
        {"name": name, "hostNamespace": scene.host_namespace, "kubeconfig": str(plane.kubeconfig("admin"))}
        for name, plane in ((scene.name, scene.virtual.plane), ("second", second.plane))
    ]
    certificate = second.plane.certificate("of-kubelets", user="kubelets", addresses=["127.0.0.1"])
    kubelet = {
        "enabled": True,
        "address": "127.0.0.1",
        "listen": "127.0.0.1",
        "ports": 20,
        "certificate": str(certificate),
        "key": str(certificate.with_suffix(".key")),
        "metrics": False,
    }
    made = scene.daemon({**given, "virtualClusters": clusters, "kubelet": kubelet})
    kubelet["firstPort"] = free_port()  # beyond the ports that the daemon has drawn for itself
    made.start()
    yield made
    loop.end(playing)


def port_of(api: Api) -> int | None:
    """Return the port of the shared node's kubelet in a virtual cluster."""
    node = api.get("Node", Key("", NODE))
    found = dig(node or {}, "status.daemonEndpoints.kubeletEndpoint.Port")
    return int(found) if found else None


def asked(plane: ControlPlane, certificate: Path | None, port: int, path: str, token: str = "") -> int:
    """Return the status of a request to a kubelet; 0 if it doesn't trust the client's certificate."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    if certificate:
        trusting.load_cert_chain(certificate, certificate.with_suffix(".key"))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status
    except (ssl.SSLError, ConnectionResetError):
        return 0
    finally:
        connection.close()


def test_api_server_of_one_tenant_reaches_no_pod_of_another(scene: Scene, second: Api, daemon: Process) -> None:
    apis, space = (scene.virtual, second), f"kubelets-{scene.name}"
    for api in apis:
        api.make_namespace(space)
    # What controllers of a control plane make, of which the second has none.
    for needed in (serviceaccount("default", namespace=space), configmap("kube-root-ca.crt", namespace=space)):
        second.plane.kubectl("apply", "-f", "-", stdin=json.dumps(needed))
    for api in apis:
        api.create(pod("web", namespace=space))
    ports = [eventually(partial(port_of, api), "the node has a port") for api in apis]
    assert ports[0] != ports[1]
    paths = ("/pods", f"/containerLogs/{space}/web/app", f"/exec/{space}/web/app?command=id")
    planes = [api.plane for api in apis]
    clients = [each.certificate("of-api-server", user="api-server", group="system:masters") for each in planes]
    for own, other in ((0, 1), (1, 0)):
        assert asked(planes[own], clients[own], ports[own], "/pods") == 200
        for path in paths:
            assert asked(planes[own], clients[own], ports[own], path) not in (0, 401, 403), path
            assert asked(planes[own], clients[own], ports[other], path) in (0, 401), path
            assert asked(planes[own], None, ports[other], path, planes[own].token("daemon")) == 401, path
    status, text = daemon.readyz()
    assert status == 200
    assert "kubelet" not in text, text
