"""A virtual cluster beside a node: its control plane runs in the node's network,
where pods reach it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from hack.planes import SCHEDULED_CONTROLLERS, VIRTUAL_CONTROLLERS, environment
from hack.realnode import outside, settings
from hack.realnode.node_site import NodeSite
from kube_envtest import ControlPlane
from kube_envtest.controlplane.processes import Processes
from kube_envtest.controlplane.programs import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER
from kube_envtest.controlplane.sources import binary

ROOT = Path(__file__).resolve().parents[2]
#: The namespace of the host that the copies are in.
HOST_NAMESPACE = "vc-shop"
#: The host Service in front of the virtual API server.
API_SERVICE = f"{HOST_NAMESPACE}/api"
#: Its address, in the lower part of the range, of which API servers give none of their own accord.
API_ADDRESS = "10.96.0.2"


def control_plane(site: NodeSite, *, scheduler: bool = False) -> ControlPlane:
    """Return a virtual control plane, not yet started. Its range of Service addresses is the
    host's. ``scheduler``: with a kube-scheduler of its own.

    Raises:
        Failed: No node runs.
    """
    path = str(binary(environment()))
    apart = {
        name: (*outside.enter_network(site), path, name)
        for name in (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER)
    }
    return ControlPlane(
        "virtual",
        programs=Processes(
            f"{path}, in the node's network", {**apart, "kubectl": (path, "kubectl")}
        ),
        controllers=SCHEDULED_CONTROLLERS if scheduler else VIRTUAL_CONTROLLERS,
        scheduler=scheduler,
        service_range=settings.SERVICE_RANGE,
        node_address=site.addresses[1],
        names=[API_ADDRESS],
    )


def front(site: NodeSite, url: str) -> str:
    """Return the host Service in front of the virtual API server at this URL, as manifests. It has
    no selector, as that server is no pod.
    """
    namespace, _, name = API_SERVICE.partition("/")
    metadata = {"name": name, "namespace": namespace}
    port = urlsplit(url).port
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "clusterIP": API_ADDRESS,
            "ports": [{"name": "https", "port": 443, "targetPort": port}],
        },
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [site.addresses[1]]}],
        "ports": [{"name": "https", "port": port}],
    }
    return yaml.safe_dump_all([service, endpoints])


def name_server() -> str:
    """Return the objects of examples/coredns.yaml with the image that the node has. No other DNS
    server is within reach.
    """
    found = list(yaml.safe_load_all((ROOT / "examples" / "coredns.yaml").read_text()))
    by_kind = {obj["kind"]: obj for obj in found}
    data = by_kind["ConfigMap"]["data"]
    data["Corefile"] = (
        data["Corefile"].replace("    forward . /etc/resolv.conf\n", "").replace("30", "5")
    )
    [container] = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    container |= {"image": settings.COREDNS, "imagePullPolicy": "Never"}
    return yaml.safe_dump_all(found)


#: The sections of the daemon's configuration by which the daemon serves logs and exec, and pods
#: reach their virtual API server.
SECTIONS: Mapping[str, Any] = {
    "kubelet": {"enabled": True},
    "networking": {"apiServer": {"service": API_SERVICE}},
}
#: Those by which a scheduler of the virtual cluster's own places its Pods.
SCHEDULED: Mapping[str, Any] = {
    "sync": {
        "toHost": {"pods": {"scheduler": "virtual"}},
        "fromHost": {"nodes": {"enabled": True}, "storageClasses": {"enabled": True}},
        "fake": {"persistentVolumes": {"nodeAffinity": True}},
    },
}
