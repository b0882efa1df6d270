"""kubectl logs, exec, attach, port-forward and cp work through a virtual cluster, on a real node."""

import contextlib
import os
import re
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chart_scene import NAMESPACE
from node_scene import WEB, running, until
from tenant_scene import Tenant, credentials

#: The port of the only node's kubelet.
PORT = 20250


@pytest.fixture(scope="module")
def pod(tenant: Tenant) -> Iterator[str]:
    """Return the name of a running pod in the virtual namespace ``logs``."""
    with tenant.namespace("logs", WEB):
        name = running(tenant, "logs", "app=web")[0]
        tenant.kubectl(
            "wait", "node", "--all", f"--for=jsonpath={{.status.daemonEndpoints.kubeletEndpoint.Port}}={PORT}"
        )
        yield name


def test_exec_runs_a_command_and_passes_its_input_and_exit_status(tenant: Tenant, pod: str) -> None:
    assert tenant.kubectl("exec", "-n=logs", pod, "--", "hostname") == f"{pod}\n"
    assert tenant.kubectl("exec", "-i", "-n=logs", pod, "--", "cat", stdin="hi") == "hi"
    failed = subprocess.run(
        tenant.command("exec", "-n=logs", pod, "--", "sh", "-c", "exit 7"),
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert failed.returncode == 7


def test_logs_are_those_of_the_container_by_line_and_by_time(tenant: Tenant, pod: str) -> None:
    tenant.kubectl("exec", "-n=logs", pod, "--", "wget", "-qO-", "http://127.0.0.1:8080/hello")
    assert "GET /hello\n" in tenant.kubectl("logs", "-n=logs", pod)
    assert tenant.kubectl("logs", "-n=logs", pod, "--tail=1") == "GET /hello\n"
    assert re.match(
        r"\d{4}-\d\d-\d\dT\S+ GET /hello", tenant.kubectl("logs", "-n=logs", pod, "--timestamps", "--tail=1")
    )
    assert tenant.kubectl("logs", "-n=logs", pod, "--since-time=2999-01-01T00:00:00Z") == ""


@pytest.mark.parametrize("command", [["logs", "-f", "--tail=0"], ["attach"]], ids=" ".join)
def test_output_of_a_container_is_followed(tenant: Tenant, pod: str, command: list[str]) -> None:
    with subprocess.Popen(tenant.command(*command, "-n=logs", pod), stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        os.set_blocking(following.stdout.fileno(), False)
        chunks = []

        def arrived() -> bool:
            tenant.exec("logs", pod, "wget", "-qO-", "http://127.0.0.1:8080/followed")
            assert following.stdout is not None
            chunks.append(following.stdout.read() or b"")
            return b"GET /followed\n" in b"".join(chunks)

        try:
            until("the container's output arrives", arrived)
            assert following.poll() is None
        finally:
            following.kill()


def test_refusal_has_no_name_of_the_host(tenant: Tenant, pod: str) -> None:
    failed = subprocess.run(
        tenant.command("logs", "--previous", "-n=logs", pod), capture_output=True, text=True, check=False, timeout=600
    )
    assert f'container "web" in pod "{pod}" not found' in failed.stderr
    assert "-x-" not in failed.stderr


def test_files_are_copied_both_ways_unchanged(tenant: Tenant, pod: str, tmp_path: Path) -> None:
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.write_bytes(os.urandom(3 << 20))
    tenant.kubectl("cp", "-n=logs", str(sent), f"{pod}:/tmp/file")
    tenant.kubectl("cp", "-n=logs", f"{pod}:/tmp/file", str(received))
    assert received.read_bytes() == sent.read_bytes()


def test_port_is_forwarded(tenant: Tenant, pod: str) -> None:
    with tenant.forwarded("logs", pod) as url:
        for _ in range(3):
            with urllib.request.urlopen(url, timeout=20) as reply:
                assert reply.read().decode() == f"good morning from {pod}\n"


def test_port_stays_and_commands_work_after_the_end_of_the_daemon(tenant: Tenant, pod: str) -> None:
    def ports() -> str:
        return tenant.kubectl("get", "nodes", "-o=jsonpath={.items[*].status.daemonEndpoints}")

    before = ports()
    tenant.kill("syncer")
    until("the daemon answers as the kubelet after a restart", tenant.runs_commands)
    tenant.restart()
    assert tenant.exec("logs", pod, "hostname") == f"{pod}\n"
    assert ports() == before
    [daemon] = tenant.daemons()
    assert tenant.kubelet_address == tenant.own("get", "pod", daemon, "-o=jsonpath={.status.podIP}")


def test_client_without_a_certificate_or_of_another_cluster_is_refused(tenant: Tenant, pod: str) -> None:
    """The host's admin is unknown in the virtual cluster; a token of the tenant is known, but has no rights."""
    ca = str(credentials(tenant.kubeconfig, tenant.folder / "tenant").ca)
    trusting = ssl.create_default_context(cafile=ca)
    assert asked(tenant, trusting, f"/containerLogs/logs/{pod}/web").startswith(b"HTTP/1.1 401")
    token = f"Authorization: Bearer {tenant.kubectl('create', 'token', 'default', '-n=logs').strip()}"
    assert asked(tenant, trusting, f"/containerLogs/logs/{pod}/web", token).startswith(b"HTTP/1.1 403")
    other = ssl.create_default_context(cafile=ca)
    other.load_cert_chain(*credentials(tenant.host.kubeconfig, tenant.folder / "host")[1:])
    answer = b""
    with contextlib.suppress(ssl.SSLError, ConnectionError):  # or the connection just ends
        answer = asked(tenant, other, f"/containerLogs/logs/{pod}/web")
    assert answer == b""


def test_admin_reaches_no_pod_of_the_host(tenant: Tenant, pod: str) -> None:
    """The names of copies are no names of Pods."""
    files = credentials(tenant.kubeconfig, tenant.folder / "tenant")
    admin = ssl.create_default_context(cafile=str(files.ca))
    admin.load_cert_chain(files.certificate, files.key)
    assert b"200 OK" in asked(tenant, admin, f"/containerLogs/logs/{pod}/web")
    copy = tenant.copies("logs", "pods")[0].partition("/")[2]
    dns = (
        tenant.host.kubectl("get", "pods", "-n=kube-system", "-l=k8s-app=kube-dns", "-o=name").strip().partition("/")[2]
    )
    for path in (
        f"/containerLogs/{tenant.host_namespace}/{copy}/web",
        f"/containerLogs/kube-system/{dns}/coredns",
        f"/containerLogs/logs/../kube-system/{dns}/coredns",
        f"/containerLogs/logs%2F..%2Fkube-system/{dns}/coredns",
    ):
        assert asked(tenant, admin, path).split()[1] in (b"400", b"404"), path


def asked(tenant: Tenant, tls: ssl.SSLContext, path: str, *headers: str) -> bytes:
    """Send a request to the node's kubelet; return all of the answer."""
    address, [daemon] = tenant.kubelet_address, tenant.daemons()
    with tenant.host.forwarded(NAMESPACE, daemon, PORT) as url:
        near = urlsplit(url)
        with (
            socket.create_connection((near.hostname, near.port), timeout=20) as plain,
            tls.wrap_socket(plain, server_hostname=address) as connection,
        ):
            connection.sendall("\r\n".join((f"GET {path} HTTP/1.1", "Host: node", *headers, "", "")).encode())
            found = b""
            while data := connection.recv(1 << 16):
                found += data
            return found
