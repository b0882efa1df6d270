"""Who reaches whom with the chart's NetworkPolicies, as a network sees it that enforces them."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from chart_scene import RELEASE, WORKLOADS, Chart
from network_scene import INTERNET, METADATA, WEB_PORT, Answer, call_webhooks, connect, servers_on_the_node
from node_scene import WEB, Reached, running, until

from hack.chart_build import built
from hack.realnode import charts
from hack.realnode.settings import POD_RANGE

#: Another tenant's namespace on the host, one of the host's own, and that of its monitoring.
NEIGHBOUR, HOST, MONITORING = "vc-neighbour", "apps", "monitoring"
#: The node's address that pods have as their gateway: a private one.
GATEWAY = POD_RANGE.replace("0/24", "1")
ETCD, PEER, ETCD_METRICS, CONTROLLER_METRICS, API = 2379, 2380, 2381, 10257, 6443
METRICS, HEALTH = 8080, 8081
WEB_SERVER = 8080
KUBELET = 10250


@dataclass(frozen=True)
class Client:
    """A pod from which connections are made."""

    cluster: Reached
    namespace: str
    pod: str

    def meets(self, targets: Collection[str]) -> Mapping[str, str]:
        """Return the answers that its connections to addresses meet, each ``HOST:PORT``."""
        return connect(self.cluster, self.namespace, self.pod, targets)


@dataclass(frozen=True)
class Scene:
    """The tenant's pods and control plane, and their neighbours on the host."""

    chart: Chart
    tenant: Client
    neighbour: Client
    host: Client
    monitoring: Client
    #: The address of the tenant's other pod, and those of the others' other pods.
    tenant_pod: str
    neighbour_pod: str
    host_pod: str
    plane: str
    daemon: str
    #: The daemon's port as the kubelet of virtual nodes.
    kubelet: int
    #: Where the host's API server is, on the node's public address, and its port.
    host_api: str
    host_api_port: int

    @property
    def private(self) -> list[str]:
        """The addresses that only the host's own pods may reach."""
        return [
            f"{self.host_pod}:{WEB_SERVER}",
            f"{METADATA}:{WEB_PORT}",
            f"{GATEWAY}:{self.host_api_port}",
            f"{GATEWAY}:{KUBELET}",
        ]

    @property
    def plane_ports(self) -> list[str]:
        """All addresses of the control plane's pod but the API server's."""
        return [f"{self.plane}:{port}" for port in (ETCD, PEER, ETCD_METRICS, CONTROLLER_METRICS)]

    @property
    def daemon_ports(self) -> list[str]:
        """All addresses of the daemon's pod."""
        return [f"{self.daemon}:{port}" for port in (METRICS, HEALTH, self.kubelet)]


@pytest.fixture(scope="module")
def scene(chart: Chart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Return the release with another tenant beside it, whose policies are those of the chart, too."""
    host = chart.host
    rendered = chart.helm(
        "template",
        "neighbour",
        str(built("virtual-cluster")),
        f"--set=workloads.namespace={NEIGHBOUR}",
        "--show-only=templates/workloads.yaml",
    )
    policies = [obj for obj in yaml.safe_load_all(rendered) if obj["kind"] == "NetworkPolicy"]
    assert [policy["metadata"]["namespace"] for policy in policies] == [NEIGHBOUR] * 3
    with ExitStack() as stack:
        stack.enter_context(servers_on_the_node(host, str(tmp_path_factory.mktemp("served"))))
        stack.enter_context(host.namespace(NEIGHBOUR, yaml.safe_dump_all(policies), WEB))
        stack.enter_context(host.namespace(HOST, WEB))
        stack.enter_context(host.namespace(MONITORING, WEB))
        clients, addresses = {}, {}
        for namespace in (NEIGHBOUR, HOST, MONITORING):
            first, second = running(host, namespace, "app=web", 2)
            clients[namespace], addresses[namespace] = Client(host, namespace, first), address(host, namespace, second)
        first, second = running(chart, "shop", "app=web", 2)
        parts = {part: address_of_part(chart, part) for part in ("control-plane", "syncer")}
        node = json.loads(chart.kubectl("get", "node", "-o=json"))["items"][0]
        url = urlsplit(host.kubectl("config", "view", "-o=jsonpath={.clusters[0].cluster.server}"))
        assert url.port
        yield Scene(
            chart,
            Client(chart, "shop", first),
            clients[NEIGHBOUR],
            clients[HOST],
            clients[MONITORING],
            tenant_pod=address(host, WORKLOADS, chart.copy("shop", second)),
            neighbour_pod=addresses[NEIGHBOUR],
            host_pod=addresses[HOST],
            plane=parts["control-plane"],
            daemon=parts["syncer"],
            kubelet=node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"],
            host_api=f"{host.site.addresses[1]}:{url.port}",
            host_api_port=url.port,
        )


def address(cluster: Reached, namespace: str, pod: str) -> str:
    """Return the address of a pod."""
    return cluster.kubectl("get", "pod", pod, "-n", namespace, "-o=jsonpath={.status.podIP}")


def address_of_part(chart: Chart, part: str) -> str:
    """Return the address of the pod of a part of the release."""
    found: list[str] = []

    def is_one() -> bool:
        """Return True if no pod of an earlier release is left."""
        nonlocal found
        selector = f"-l=vsyncer.dev/part={part}"
        found = chart.own("get", "pods", selector, "-o=jsonpath={.items[*].status.podIP}").split()
        return len(found) == 1

    until(f"a single pod is the {part}", is_one)
    return found[0]


def all_are(answer: Answer, targets: Collection[str]) -> Mapping[str, str]:
    """Return the same answer for all addresses."""
    return dict.fromkeys(targets, answer)


def test_policies_leave_the_tenant_their_own_pods_names_services_api_server_and_the_internet(scene: Scene) -> None:
    chart, tenant = scene.chart, scene.tenant
    answer = chart.exec("shop", tenant.pod, "wget", "-qO-", "http://web.shop.svc.cluster.local/")
    assert answer.startswith("good morning from web-")
    reached = chart.exec("shop", tenant.pod, "/web", "api", "/api/v1/namespaces/shop/pods")
    assert reached.startswith(("200", "403")), reached
    assert "GET /" in chart.kubectl("logs", "-n=shop", "-l=app=web")
    targets = [f"{scene.tenant_pod}:{WEB_SERVER}", f"{scene.plane}:{API}", f"{INTERNET}:{WEB_PORT}"]
    name_server = f"{scene.host_pod}:53"  # Nothing listens there, but the packet arrives.
    assert tenant.meets([*targets, name_server]) == {**all_are(Answer.OPEN, targets), name_server: Answer.REFUSED}


def test_policies_keep_the_tenants_pods_from_others_and_from_the_hosts_control_plane_and_node(scene: Scene) -> None:
    others = [f"{scene.neighbour_pod}:{WEB_SERVER}", *scene.plane_ports, *scene.daemon_ports, *scene.private]
    assert scene.tenant.meets(others) == all_are(Answer.SILENT, others)
    # It is all there to be reached, where it may be.
    assert scene.host.meets(scene.private) == all_are(Answer.OPEN, scene.private)
    assert scene.neighbour.meets([f"{scene.neighbour_pod}:{WEB_SERVER}"]) == {
        f"{scene.neighbour_pod}:{WEB_SERVER}": Answer.OPEN
    }


@pytest.mark.parametrize("who", ["neighbour", "host"])
def test_policies_open_the_api_server_alone_to_pods_of_others(scene: Scene, who: str) -> None:
    client: Client = getattr(scene, who)
    closed, open_ = (
        [f"{scene.tenant_pod}:{WEB_SERVER}", *scene.plane_ports, *scene.daemon_ports],
        f"{scene.plane}:{API}",
    )
    # By the neighbour's own policy it isn't reached at all.
    answer = Answer.OPEN if who == "host" else Answer.SILENT
    assert client.meets([*closed, open_]) == {**all_are(Answer.SILENT, closed), open_: answer}


def test_policies_open_metrics_alone_to_the_hosts_monitoring(scene: Scene) -> None:
    metrics = [f"{scene.plane}:{ETCD_METRICS}", f"{scene.plane}:{CONTROLLER_METRICS}", f"{scene.daemon}:{METRICS}"]
    closed = [
        f"{scene.plane}:{ETCD}",
        f"{scene.daemon}:{HEALTH}",
        f"{scene.daemon}:{scene.kubelet}",
        f"{scene.tenant_pod}:{WEB_SERVER}",
    ]
    assert scene.monitoring.meets([*metrics, *closed]) == {
        **all_are(Answer.OPEN, metrics),
        **all_are(Answer.SILENT, closed),
    }


def test_policies_confine_webhook_calls_of_the_virtual_api_server(scene: Scene) -> None:
    own = [f"{scene.tenant_pod}:{WEB_SERVER}", f"{INTERNET}:{WEB_PORT}"]
    others = [
        f"{scene.neighbour_pod}:{WEB_SERVER}",
        f"{scene.daemon}:{METRICS}",
        f"{scene.daemon}:{HEALTH}",
        *scene.private,
    ]
    assert call_webhooks(scene.chart, [*own, *others]) == {
        **all_are(Answer.OPEN, own),
        **all_are(Answer.SILENT, others),
    }


def test_policies_close_a_public_address_of_the_host_once_the_values_except_it(scene: Scene, tmp_path: Path) -> None:
    targets = [scene.host_api, f"{INTERNET}:{WEB_PORT}"]
    assert scene.tenant.meets(targets) == all_are(Answer.OPEN, targets)
    values = charts.values()
    for section in (values["networkPolicy"], values["workloads"]["networkPolicy"]):
        section["egress"][0]["to"][0]["ipBlock"]["except"].append(f"{scene.host_api.partition(':')[0]}/32")
    egress = {"networkPolicy": {"egress": values["networkPolicy"]["egress"]}}
    file = tmp_path / "values.yaml"
    file.write_text(json.dumps({**egress, "workloads": egress}))
    chart = scene.chart
    command = ("upgrade", RELEASE, str(built("virtual-cluster")), "--reset-then-reuse-values")
    chart.helm(*command, f"--values={file}")
    try:
        closed = {scene.host_api: Answer.SILENT, f"{INTERNET}:{WEB_PORT}": Answer.OPEN}
        until("the host's API server is closed to pods", lambda: scene.tenant.meets(targets) == closed)
        assert call_webhooks(chart, targets) == closed
    finally:
        chart.helm("rollback", RELEASE)
