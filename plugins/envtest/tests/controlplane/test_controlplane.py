"""The fixture that all tests on real API servers stand on."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from kube_envtest import ControlPlane, Layout, NotAvailable, Programs, StartFailed, find, start_all
from kube_envtest.controlplane.containers import k3s_command
from kube_envtest.controlplane.flags import runs
from kube_envtest.controlplane.folder import Folder, free_ports, is_orphan
from kube_envtest.controlplane.identity import write_certificates
from kube_envtest.controlplane.processes import Processes

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECONDS = 120.0

#: What a namespace needs to be deleted.
CONTROLLERS = "namespace-controller,garbage-collector-controller,serviceaccount-controller"

real = pytest.mark.controlplane


@pytest.fixture(scope="session")
def programs(control_plane_programs: Programs) -> Programs:
    return control_plane_programs


@pytest.fixture(scope="module")
def plane(programs: Programs) -> Iterator[ControlPlane]:
    with ControlPlane("own", programs=programs) as running:
        yield running


@pytest.fixture(scope="module")
def two(programs: Programs) -> Iterator[tuple[ControlPlane, ControlPlane]]:
    controllers = CONTROLLERS if programs.has("kube-controller-manager") else ""
    one, other = (ControlPlane(name, programs=programs, controllers=controllers) for name in ("one", "other"))
    start_all(one, other)
    yield one, other
    one.stop()
    other.stop()


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}}


def wait_until_gone(pids: list[int]) -> None:
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([descriptor], [], [], SECONDS)
        os.close(descriptor)
        assert ended, f"{Path(f'/proc/{pid}/cmdline').read_text()} still runs"


def wait_until_allowed(plane: ControlPlane, user: str) -> None:
    """Wait until the authorizer of the API server, which has a watch of its own, knows a new binding."""
    deadline = time.monotonic() + SECONDS
    while plane.request("GET", CONFIG_MAPS, user=user)[0] == 403:
        assert time.monotonic() < deadline, f"{user} is still refused"


@real
def test_two_clusters_run_at_a_time(two: tuple[ControlPlane, ControlPlane]) -> None:
    one, other = two
    for plane in two:
        assert "Server Version: v1." in plane.kubectl("version").stdout
        assert "default" in plane.kubectl("get", "namespaces", "-o", "name").stdout
    assert one.url != other.url
    with pytest.raises(RuntimeError, match="one is already running"):
        one.start()
    assert one.request("GET", "/readyz") == (200, "ok")


@real
def test_with_controllers_a_namespace_can_be_deleted(two: tuple[ControlPlane, ControlPlane]) -> None:
    plane, _ = two
    if not plane.controllers:
        pytest.skip(f"{plane.source} has no kube-controller-manager")
    plane.kubectl("create", "namespace", "short-lived")
    plane.kubectl("delete", "namespace", "short-lived", "--wait", f"--timeout={SECONDS:g}s")
    assert plane.request("GET", "/api/v1/namespaces/short-lived")[0] == 404


@real
def test_a_user_has_only_the_rights_of_its_role(plane: ControlPlane) -> None:
    refused = plane.kubectl("get", "configmaps", user="nobody", check=False)
    assert refused.returncode != 0
    assert 'User "nobody" cannot list resource "configmaps"' in refused.stderr
    plane.kubectl("create", "clusterrole", "reader", "--verb=get,list", "--resource=configmaps")
    plane.kubectl("create", "clusterrolebinding", "alice", "--clusterrole=reader", "--user=alice")
    wait_until_allowed(plane, "alice")
    assert plane.request("POST", CONFIG_MAPS, config_map("not-hers"), user="alice")[0] == 403


@real
def test_a_frozen_api_server_answers_after_it_is_thawed(plane: ControlPlane) -> None:
    with plane.frozen(), pytest.raises(TimeoutError):
        plane.request("GET", "/readyz", timeout=0.5)
    assert plane.request("GET", "/readyz") == (200, "ok")


@real
def test_a_killed_api_server_refuses_and_comes_back_with_its_data(plane: ControlPlane) -> None:
    plane.request("POST", CONFIG_MAPS, config_map("kept"))
    address = plane.url
    plane.kill_apiserver()
    with pytest.raises(ConnectionRefusedError):
        plane.request("GET", "/readyz")
    plane.restart_apiserver()
    assert plane.url == address
    assert plane.request("GET", f"{CONFIG_MAPS}/kept")[1]["data"] == {"key": "value"}


@real
def test_after_compaction_and_a_restart_the_past_is_gone(plane: ControlPlane) -> None:
    old = plane.request("POST", CONFIG_MAPS, config_map("old"))[1]["metadata"]["resourceVersion"]
    plane.request("POST", CONFIG_MAPS, config_map("second"))
    page = plane.request("GET", f"{CONFIG_MAPS}?limit=1")[1]["metadata"]["continue"]
    plane.request("POST", CONFIG_MAPS, config_map("newer"))
    watch = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={old}"
    assert "second" in plane.request("GET", watch)[1]

    plane.compact_etcd()
    plane.restart_apiserver()

    status, event = plane.request("GET", watch)
    assert (status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
    assert plane.request("GET", f"{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")[0] == 410
    assert plane.request("GET", f"{CONFIG_MAPS}?limit=1&continue={page}")[0] == 410


@real
def test_a_full_disk_refuses_writes_until_there_is_room_again_even_over_a_restart(plane: ControlPlane) -> None:
    plane.request("POST", CONFIG_MAPS, config_map("there"))
    plane.fill_disk()
    plane.restart_etcd()
    status, answer = plane.request("POST", CONFIG_MAPS, config_map("more"))
    assert (status, answer["message"]) == (500, "etcdserver: mvcc: database space exceeded")
    assert plane.request("GET", f"{CONFIG_MAPS}/there")[0] == 200
    plane.free_disk()
    assert plane.request("POST", CONFIG_MAPS, config_map("more"))[0] == 201


@real
def test_without_etcd_the_api_server_is_not_ready_and_with_it_it_has_its_data(plane: ControlPlane) -> None:
    plane.request("POST", CONFIG_MAPS, config_map("saved"))
    pid = plane.apiserver_pid
    plane.kill_etcd()
    assert plane.request("GET", "/readyz")[0] == 500
    plane.restart_etcd()
    assert plane.request("GET", f"{CONFIG_MAPS}/saved")[0] == 200
    assert plane.apiserver_pid == pid


@real
def test_the_kubeconfig_is_self_contained_and_private(plane: ControlPlane, tmp_path: Path) -> None:
    path = plane.kubeconfig("daemon", path=tmp_path / "config")
    assert path.stat().st_mode & 0o777 == 0o600
    command = [*plane.kubectl_command, f"--kubeconfig={path}", "auth", "whoami", "-o", "jsonpath={.status.userInfo}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert '"username":"daemon"' in done.stdout


@real
def test_a_flag_that_does_not_exist_fails_the_start_with_the_last_log_lines(programs: Programs) -> None:
    plane = ControlPlane("broken", programs=programs, apiserver_flags=["--no-such-flag"])
    with pytest.raises(StartFailed, match=r"(?s)broken: kube-apiserver ended; its log ends with:.*no-such-flag"):
        plane.start()
    assert plane.pids == {}


@real
def test_stop_leaves_neither_process_nor_file_even_when_frozen(programs: Programs) -> None:
    plane = ControlPlane(programs=programs, controllers=CONTROLLERS if programs.has("kube-controller-manager") else "")
    plane.start()
    pids, folder = list(plane.pids.values()), plane.folder
    plane.freeze()
    plane.stop()
    wait_until_gone(pids)
    assert not folder.exists()


@real
def test_the_end_of_the_thread_that_started_a_cluster_does_not_end_the_cluster(programs: Programs) -> None:
    plane = ControlPlane(programs=programs)
    starter = threading.Thread(target=plane.launch)
    starter.start()
    starter.join()
    try:
        plane.wait_ready()
    finally:
        plane.stop()


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line of a program, which is killed if it writes none in time."""
    assert process.stdout is not None
    end = threading.Timer(SECONDS, process.kill)
    end.start()
    try:
        line = process.stdout.readline()
    finally:
        end.cancel()
    assert line, f"{process.args!r}: ended without a line, or wrote none in {SECONDS:g} s"
    return line


OWNER = """
import time
from kube_envtest import ControlPlane
plane = ControlPlane()
plane.launch()
plane.freeze()
print(plane.folder, *plane.pids.values(), flush=True)
time.sleep(600)
"""


@real
@pytest.mark.skipif("ENVTEST_DOCKER" in os.environ, reason="containers are children of the docker daemon")
def test_sigkill_of_the_owner_ends_its_cluster_and_the_next_one_removes_the_files() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        name, *pids = line_of(owner).split()
        assert Path(name).is_dir()
        assert len(pids) == 2
        owner.send_signal(signal.SIGKILL)
    wait_until_gone([int(pid) for pid in pids])
    Folder().remove()
    assert not Path(name).exists()


@real
def test_the_scratch_image_runs_a_cluster() -> None:
    try:
        programs = find({**os.environ, "ENVTEST_DOCKER": "scratch"})
    except NotAvailable as reason:
        pytest.skip(str(reason))
    with ControlPlane("docker", programs=programs, controllers=CONTROLLERS) as plane:
        with plane.frozen(), pytest.raises(TimeoutError):
            plane.request("GET", "/readyz", timeout=0.5)
        plane.request("POST", CONFIG_MAPS, config_map("kept"))
        plane.restart_apiserver()
        assert plane.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.key}").stdout == "value"


def test_k3s_gets_the_settings_of_our_own_programs(tmp_path: Path) -> None:
    layout = Layout(tmp_path, 20001, 20002, "10.9.0.0/16", "*,-ttl-controller", ("--audit-log-path=/plane/audit",))
    assert k3s_command(layout)[-4:] == [
        "--service-cidr=10.9.0.0/16",
        "--kube-apiserver-arg=token-auth-file=/plane/tokens.csv",
        "--kube-apiserver-arg=audit-log-path=/plane/audit",
        "--kube-controller-manager-arg=controllers=*,-ttl-controller",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "ENVTEST_CONTROLPLANE",
            "/nowhere/controlplane",
            "ENVTEST_CONTROLPLANE=/nowhere/controlplane: no such program",
        ),
        ("KUBEBUILDER_ASSETS", "/nowhere", "KUBEBUILDER_ASSETS=/nowhere: no etcd, kube-apiserver, kubectl in this"),
        ("ENVTEST_DOCKER", "podman", "ENVTEST_DOCKER=podman: is neither k3s nor scratch"),
    ],
)
def test_a_setting_that_cannot_work_is_an_error_and_not_passed_over(variable: str, value: str, message: str) -> None:
    with pytest.raises(NotAvailable) as caught:
        find({variable: value})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_without_programs_the_error_names_the_variables_to_set() -> None:
    with pytest.raises(NotAvailable, match=r"^no real kube-apiserver here: set KUBEBUILDER_ASSETS .*[^\n]$"):
        find({})


def test_the_folder_of_setup_envtest_needs_no_controller_manager(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / name).touch(mode=0o755)
    programs = find({"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert programs.has("kube-apiserver")
    with pytest.raises(NotAvailable, match="no kube-controller-manager in KUBEBUILDER_ASSETS"):
        ControlPlane(programs=programs, controllers="*")


def test_nodes_need_a_control_plane_with_an_etcd_of_its_own(tmp_path: Path) -> None:
    class K3s(Processes):
        def has(self, name: str) -> bool:
            return name != "etcd"

    with pytest.raises(NotAvailable, match="k3s can't take nodes"):
        ControlPlane(programs=K3s("k3s", {}), node_address="192.0.2.2")


def test_certificate_has_the_names_of_a_load_balancer_in_front(tmp_path: Path) -> None:
    write_certificates(tmp_path, "10.96.0.0/16", names=["10.96.0.2", "api.example.org"])
    certificate = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ip_address("10.96.0.2") in named.get_values_for_type(x509.IPAddress)
    assert "api.example.org" in named.get_values_for_type(x509.DNSName)


def test_a_folder_in_use_is_no_orphan() -> None:
    folder = Folder()
    assert not is_orphan(folder.path)
    folder.remove()
    assert is_orphan(folder.path)


def test_ports_lie_below_those_of_outgoing_connections() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(port < lowest for port in free_ports(20))


def test_no_port_is_given_to_two() -> None:
    script = "from kube_envtest.controlplane.folder import free_ports; print(*free_ports(400), flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    others = [subprocess.Popen([sys.executable, "-c", script], **pipes) for _ in range(3)]  # type: ignore[call-overload]
    given = [int(port) for other in others for port in line_of(other).split()]
    for other in others:
        other.communicate("\n", timeout=SECONDS)
    assert len(given) == len(set(given)) == 1200


@pytest.mark.parametrize(
    ("controllers", "expected"), [("*", True), ("*,-a", False), ("a", True), ("b", False), ("", False)]
)
def test_a_list_of_controllers_enables_and_disables_by_name(controllers: str, expected: bool) -> None:
    assert runs(controllers, "a") is expected


def test_a_stopped_cluster_asks_to_be_started(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / name).touch(mode=0o755)
    plane = ControlPlane("host", programs=find({"KUBEBUILDER_ASSETS": str(tmp_path)}))
    with pytest.raises(RuntimeError, match="host is not running: call start"):
        plane.kubeconfig()
    with pytest.raises(RuntimeError, match="the API server is not running"):
        plane.freeze()
