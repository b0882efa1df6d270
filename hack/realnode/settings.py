"""The configuration files of a node's programs."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

NODE = "node1"
POD_RANGE = "10.244.0.0/24"
SERVICE_RANGE = "10.96.0.0/16"
DNS_ADDRESS = "10.96.0.10"
DNS_DOMAIN = "cluster.local"
PAUSE = "registry.k8s.io/pause:3.10.2"
COREDNS = "registry.k8s.io/coredns/coredns:local"
CRI_SOCKET = "/run/containerd/containerd.sock"
#: The port on the node of metrics-server.
METRICS_PORT = 4443
METRICS_API = "v1beta1.metrics.k8s.io"
#: Where Debian's containernetworking-plugins are.
CNI_PROGRAMS = "/usr/lib/cni"


def kubelet(folder: Path, cgroup: str) -> str:
    """Return the KubeletConfiguration of a node that neither evicts nor limits itself: the machine
    is shared with others, and its disk may be full.
    """
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup,
            "failCgroupV1": False,
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            "evictionHard": {
                "nodefs.available": "0%",
                "nodefs.inodesFree": "0%",
                "imagefs.available": "0%",
                "memory.available": "1Mi",
            },
            "imageGCHighThresholdPercent": 100,
            "oomScoreAdj": 0,
            "containerRuntimeEndpoint": f"unix://{CRI_SOCKET}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(folder / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(folder / "kubelet-server.crt"),
            "tlsPrivateKeyFile": str(folder / "kubelet-server.key"),
            "clusterDNS": [DNS_ADDRESS],
            "clusterDomain": DNS_DOMAIN,
            "resolvConf": str(folder / "resolv.conf"),
            "volumePluginDir": str(folder / "volume-plugins"),
            "syncFrequency": "10s",
            "serializeImagePulls": False,
            "registryPullQPS": 0,
            "eventRecordQPS": 0,
        }
    )


def kube_proxy(kubeconfig: Path) -> str:
    """Return the KubeProxyConfiguration; nothing of the machine's connection tracking is
    changed.
    """
    return yaml.safe_dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "clusterCIDR": POD_RANGE,
            "oomScoreAdj": 0,
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        }
    )


def containerd(networks: Path) -> str:
    """Return containerd's configuration.

    ``restrict_oom_score_adj``: without CAP_SYS_RESOURCE a sandbox would fail otherwise.
    """
    return f"""\
version = 2
oom_score = 0
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PROGRAMS}"
    conf_dir = "{networks}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
    # The same under the name that Kubernetes' tests of RuntimeClasses use.
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.test-handler]
      runtime_type = "io.containerd.runc.v2"
"""


def network() -> str:
    """Return the pods' network: a bridge, addresses of the node's range, host ports."""
    bridge: dict[str, Any] = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": POD_RANGE}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": plugins})


def dns() -> str:
    """Return the objects of CoreDNS. It knows the cluster's names alone, as no other server is
    within reach.
    """
    here = {"name": "coredns", "namespace": "kube-system"}
    labels = {"k8s-app": "kube-dns"}
    ports = [{"name": name, "port": 53, "protocol": name.upper()} for name in ("udp", "tcp")]
    template = {"metadata": {"labels": labels}, "spec": _dns_pod()}
    return yaml.safe_dump_all(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
            *_dns_rights(here),
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": here,
                "data": {"Corefile": _COREFILE},
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {**here, "name": "kube-dns", "labels": labels},
                "spec": {"clusterIP": DNS_ADDRESS, "selector": labels, "ports": ports},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": here,
                "spec": {"selector": {"matchLabels": labels}, "template": template},
            },
        ]
    )


def metrics(address: str, ca: str) -> str:
    """Return the objects that lead the API server to metrics-server on the node.

    Args:
        address: The node's address.
        ca: The CA of metrics-server's certificate, PEM.
    """
    here = {"name": "metrics-server", "namespace": "kube-system"}
    ports = [{"name": "https", "port": METRICS_PORT}]
    return yaml.safe_dump_all(
        [
            {"apiVersion": "v1", "kind": "Service", "metadata": here, "spec": {"ports": ports}},
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {**here, "labels": {"kubernetes.io/service-name": here["name"]}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [address]}],
                "ports": ports,
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": METRICS_API},
                "spec": {
                    "group": "metrics.k8s.io",
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": {**here, "port": METRICS_PORT},
                    "caBundle": base64.b64encode(ca.encode()).decode(),
                },
            },
        ]
    )


_COREFILE = f"""\
.:53 {{
    errors
    health
    ready
    kubernetes {DNS_DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        ttl 5
    }}
    cache 5
    loadbalance
}}
"""


def _dns_rights(account: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the ClusterRole of CoreDNS and its binding."""
    rbac = "rbac.authorization.k8s.io"
    role = {"name": "system:coredns"}
    watched = [
        {"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]}
        for group, resources in (
            ("", ["services", "pods", "namespaces"]),
            ("discovery.k8s.io", ["endpointslices"]),
        )
    ]
    binding = {
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", **role},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    return [
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": role, "rules": watched},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": role, **binding},
    ]


def _dns_pod() -> dict[str, Any]:
    container = {
        "name": "coredns",
        "image": COREDNS,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
    }
    return {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
