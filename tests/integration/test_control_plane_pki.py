"""A real control plane starts with what `syncer pki` has made on a real host, and goes on after a renewal."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from api import Loop
from control_plane_scene import Host, Plane, running

from kube_envtest import ControlPlane
from syncer.api import Resource, Side
from syncer.api.networking import ApiServerAddress
from syncer.clusters.connection import connect, first_contact, read_login
from syncer.daemon.start.api_server import certificate_problem
from syncer.pki.layout import ADMINS, MASTERS

#: Connections of a client that has been closed may be collected before TLS has ended them.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
SELF_REVIEWS = Resource("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)


@pytest.fixture
def host(planes: tuple[ControlPlane, ControlPlane], request: pytest.FixtureRequest) -> Iterator[Host]:
    """A namespace of its own on the host."""
    made = Host(planes[0], f"pki-{os.urandom(3).hex()}")
    yield made
    made.plane.kubectl("delete", "namespace", made.namespace, "--wait=false")


def test_control_plane_starts_with_the_files_and_takes_renewed_ones_while_it_runs(
    host: Host, tmp_path: Path, loop: Loop
) -> None:
    host.grant()
    assert host.pki().returncode == 0
    assert [(each["kind"], each["name"]) for each in host.owners("api-pki")] == [("Service", "api")]
    with running(Plane(tmp_path, host)) as plane:
        plane.until(lambda: plane.works("first"))
        assert _groups(plane.kubectl("auth", "whoami", "-o", "yaml", kubeconfig=plane.super_admin))[0] == MASTERS
        assert _groups(plane.kubectl("auth", "whoami", "-o", "yaml"))[0] == ADMINS
        assert "cannot get" in plane.kubectl("get", "namespace", "first", check=False).stderr
        bound = ("create", "clusterrolebinding", "admins", "--clusterrole=cluster-admin", f"--group={ADMINS}")
        plane.kubectl(*bound, kubeconfig=plane.super_admin)
        plane.until(lambda: plane.kubectl("get", "namespace", "first", check=False).returncode == 0)
        _token_is_accepted(plane)
        _daemon_connects(loop, plane)

        old = tmp_path / "old"
        old.write_bytes(plane.admin.read_bytes())
        _remove_keys(host)
        host.change("api-pki", {"data": {"ca.crt": None}})
        renewed = host.pki()
        assert (renewed.returncode, renewed.stdout.count("renewed")) == (0, 15), renewed
        before = {port: plane.shown(port).serial_number for port in (plane.port, plane.etcd_port, plane.peer_port)}
        plane.write_files()
        plane.until(lambda: all(plane.shown(port).serial_number != serial for port, serial in before.items()))
        plane.until(lambda: plane.works("second"))
        _daemon_connects(loop, plane)
        assert plane.kubectl("get", "namespace", "second", kubeconfig=old).returncode == 0
        assert "renewed" not in host.pki().stdout


def test_commands_at_once_agree_on_real_api_servers(host: Host) -> None:
    begun = [subprocess.Popen(host.command(user="admin"), stderr=subprocess.PIPE) for _ in range(3)]
    assert [each.communicate(timeout=60)[1] for each in begun] == [b""] * 3
    ca = host.files("api-pki")["ca.crt"]
    assert (host.files("api-kubeconfig")["ca.crt"], host.files("api-daemon")["ca.crt"]) == (ca, ca)
    assert {line.split()[2] for line in host.pki(user="admin").stdout.splitlines()[1:]} == {"kept"}


def test_command_without_rights_names_the_missing_rule(host: Host) -> None:
    done = host.pki()
    assert done.returncode == 1
    assert 'Missing RBAC rule for alice: {apiGroups: [""], resources: ["services"], verbs: ["get"]}' in done.stderr


def _groups(whoami: subprocess.CompletedProcess[str]) -> list[str]:
    return list(yaml.safe_load(whoami.stdout)["status"]["userInfo"]["groups"])


def _token_is_accepted(plane: Plane) -> None:
    """Use a token that the API server signs, in a kubeconfig without a certificate."""
    token = plane.kubectl("-n", "first", "create", "token", "default").stdout.strip()
    document = yaml.safe_load(plane.admin.read_text())
    document["users"][0]["user"] = {"token": token}
    kubeconfig = plane.folder / "of-a-token"
    kubeconfig.write_text(yaml.safe_dump(document))
    assert "system:serviceaccounts:first" in _groups(
        plane.kubectl("auth", "whoami", "-o", "yaml", kubeconfig=kubeconfig)
    )


def _daemon_connects(loop: Loop, plane: Plane) -> None:
    async def scenario() -> None:
        virtual = connect(plane.daemon, side=Side.VIRTUAL, environ={})
        try:
            assert (await first_contact(virtual)).text.startswith("v1.")
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            user = (await virtual.create(SELF_REVIEWS, review))["status"]["userInfo"]
            assert (user["username"], user["groups"]) == ("vsyncer", ["vsyncer:daemons", "system:authenticated"])
        finally:
            await virtual.close()
        login = read_login(plane.daemon, {})
        assert await certificate_problem(ApiServerAddress("127.0.0.1", plane.port), login) == ""

    loop.run(scenario())


def _remove_keys(host: Host) -> None:
    """Remove the key of each certificate that is to be renewed."""
    for secret in ("api-pki", "api-kubeconfig", "api-daemon"):
        keys = [name for name in host.files(secret) if name.endswith(".key") and not name.endswith("ca.key")]
        host.change(secret, {"data": {name: None for name in keys if name != "sa.key"}})
