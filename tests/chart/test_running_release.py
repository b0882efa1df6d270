"""What the chart `virtual-cluster` reads of the host, from a real API server."""

from collections.abc import Iterator

import pytest
import yaml
from chart_rendering import Unrenderable, helm
from virtual_cluster_scene import NAME

from hack.chart_build import built
from kube_envtest import ControlPlane, Programs
from syncer.api import Obj

pytestmark = pytest.mark.controlplane

HOST_RANGE, OTHER_RANGE = "10.98.0.0/16", "10.112.0.0/12"


@pytest.fixture(scope="module")
def host(control_plane_programs: Programs) -> Iterator[ControlPlane]:
    """A host with a namespace for the release."""
    plane = ControlPlane("chart-host", programs=control_plane_programs, service_range=HOST_RANGE)
    plane.start()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert plane.request("POST", "/api/v1/namespaces", namespace)[0] == 201
    yield plane
    plane.stop()


def rendered(host: ControlPlane, values: Obj, *, release: str = "shop") -> dict[tuple[str, str], Obj]:
    """Return the objects that Helm would send to the host, by kind and name."""
    server = ["--dry-run=server", f"--kubeconfig={host.kubeconfig()}"]
    text = helm("template", release, str(built("virtual-cluster")), "--namespace=shop", *server, values=values)
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text) if each}


def stateful_set(host: ControlPlane, values: Obj, *, release: str = "shop") -> Obj:
    """Return the control plane's StatefulSet as Helm would send it to the host."""
    return rendered(host, values, release=release)["StatefulSet", f"{release}-virtual-cluster-control-plane"]


def install(host: ControlPlane, made: Obj, *, release: str = "shop") -> None:
    """Create a StatefulSet as an install leaves it."""
    made["metadata"]["annotations"] = {
        "meta.helm.sh/release-name": release,
        "meta.helm.sh/release-namespace": "shop",
    }
    status, output = host.request("POST", "/apis/apps/v1/namespaces/shop/statefulsets", made)
    assert status == 201, output


def flag_of(made: Obj, name: str) -> str:
    """Return the value of a flag that one program of a StatefulSet has."""
    flag = f"--{name}="
    [found] = [
        word.removeprefix(flag)
        for container in made["spec"]["template"]["spec"]["initContainers"]
        for word in container["command"]
        if word.startswith(flag)
    ]
    return str(found)


def service_range(made: Obj) -> str:
    """Return the range of ClusterIPs of the API server in a StatefulSet."""
    return flag_of(made, "service-cluster-ip-range")


def test_range_of_addresses_is_the_hosts_at_first_and_then_stays(host: ControlPlane) -> None:
    made = stateful_set(host, {})
    assert service_range(made) == HOST_RANGE
    running = stateful_set(host, {"apiServer": {"serviceClusterIPRange": OTHER_RANGE}})
    install(host, running)
    assert running["metadata"]["name"] == f"{NAME}-control-plane"
    assert service_range(stateful_set(host, {})) == OTHER_RANGE
    assert service_range(stateful_set(host, {"apiServer": {"serviceClusterIPRange": "10.96.0.0/12"}})) == "10.96.0.0/12"


def test_restored_data_stay_those_of_etcd_when_the_values_have_lost_the_snapshots_name(host: ControlPlane) -> None:
    def folder(values: Obj) -> str:
        return flag_of(stateful_set(host, values, release="restored"), "data-dir")

    assert folder({}) == "/var/lib/etcd/data"
    restored = stateful_set(host, {"restore": {"snapshot": "before"}}, release="restored")
    install(host, restored, release="restored")
    assert folder({}) == "/var/lib/etcd/restored-before"
    assert folder({"restore": {"snapshot": "later"}}) == "/var/lib/etcd/restored-later"
    # A restore that fails, and is given up, leaves the data as they are.
    assert folder({"restore": {"snapshot": "lost", "running": True}}) == "/var/lib/etcd/restored-before"
    # Back to the data before the restore, on purpose.
    assert folder({"etcd": {"extraArgs": {"data-dir": "/var/lib/etcd/data"}}}) == "/var/lib/etcd/data"
    config = rendered(host, {}, release="restored")["ConfigMap", "restored-virtual-cluster-syncer"]["data"]
    assert yaml.safe_load(config["syncer.yaml"])["patrol"] == {"breaker": {"percent": 0, "count": 0}}
    with pytest.raises(Unrenderable, match=r"needs restore\.snapshot"):
        rendered(host, {"restore": {"running": True}}, release="restored")
