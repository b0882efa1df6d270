"""The programs of the chart's control plane start with its flags and files, and the access that it gives is as said."""

import base64
import json
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from chart_rendering import CHARTS, rendered
from control_plane_scene import SECONDS, Host, Plane, running
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from kube_envtest import ControlPlane, Programs

pytestmark = [pytest.mark.controlplane, pytest.mark.slow]

NAMES = ("shop.example.com", "api.example.com", "gateway.example.com", "192.0.2.9")
VALUES: Mapping[str, Any] = {
    "fullnameOverride": "api",
    "ingress": {"enabled": True, "host": NAMES[0]},
    "gateway": {"enabled": True, "host": NAMES[2], "port": 8443, "parentRefs": [{"name": "edge"}]},
    "kubeconfig": {"server": f"https://{NAMES[1]}"},
}
AUDIT = {"rules": [{"level": "Metadata", "resources": [{"group": "", "resources": ["namespaces"]}]}]}
#: As in the chart's README.
MAPPINGS = {
    "username": {"claim": "email", "prefix": "oidc:"},
    "groups": {"claim": "groups", "prefix": "oidc:"},
}


class Issuer:
    """An identity provider: it answers for its configuration and its key, and signs tokens."""

    def __init__(self, port: int, authority: trustme.CA) -> None:
        self.url, self.authority = f"https://localhost:{port}", authority.cert_pem.bytes().decode()
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @classmethod
    @contextmanager
    def running(cls) -> Iterator["Issuer"]:
        """An identity provider that answers."""
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
            server.socket = context.wrap_socket(server.socket, server_side=True)
            issuer = cls(server.server_port, authority)

            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    content = json.dumps(issuer.keys() if self.path == "/keys" else issuer.configuration()).encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.end_headers()
                    self.wfile.write(content)

                def log_message(self, *_: Any) -> None:
                    """Say nothing."""

            server.RequestHandlerClass = Handler
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield issuer
            server.shutdown()
            thread.join()

    def configuration(self) -> dict[str, Any]:
        """Return the configuration, as OpenID Connect Discovery has it."""
        algorithms = {"id_token_signing_alg_values_supported": ["RS256"]}
        discovery = {"response_types_supported": ["id_token"], "subject_types_supported": ["public"]}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **algorithms, **discovery}

    def keys(self) -> dict[str, Any]:
        """Return the public key."""
        numbers = self._key.public_key().public_numbers()
        parts = {"n": numbers.n.to_bytes(256), "e": numbers.e.to_bytes(3)}
        encoded = {name: _base64(part) for name, part in parts.items()}
        return {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", **encoded}]}

    def token(self, **claims: Any) -> str:
        """Return a token that is good for ten minutes."""
        now = int(time.time())
        all_claims = {"iss": self.url, "sub": "1", "aud": "kubernetes", "iat": now, "exp": now + 600, **claims}
        head, body = ({"alg": "RS256", "kid": "1", "typ": "JWT"}, all_claims)
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, body))
        return f"{signed}.{_base64(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class ChartPlane(Plane):
    """The programs of the chart's StatefulSet. Only addresses, ports and folders are those of this test."""

    def __init__(self, folder: Path, host: Host, issuer: Issuer) -> None:
        self.issuer = issuer
        super().__init__(folder, host)
        client, peer = f"https://localhost:{self.etcd_port}", f"https://localhost:{self.peer_port}"
        here = {"unsafe-no-fsync": True, "listen-metrics-urls": "", "initial-cluster": f"api-control-plane-0={peer}"}
        here |= {"listen-client-urls": f"https://127.0.0.1:{self.etcd_port}", "advertise-client-urls": client}
        here |= {"listen-peer-urls": f"https://127.0.0.1:{self.peer_port}", "initial-advertise-peer-urls": peer}
        api_server = {"etcd-servers": client, "bind-address": "127.0.0.1", "secure-port": self.port}
        api_server |= {"advertise-address": "127.0.0.1", "endpoint-reconciler-type": "none"}
        api_server |= {"request-timeout": "30m"}  # for so long it would wait at its end for clients
        provider = {"url": issuer.url, "audiences": ["kubernetes"], "certificateAuthority": issuer.authority}
        authentication = {"jwt": [{"issuer": provider, "claimMappings": MAPPINGS}]}
        self.objects = {
            (each["kind"], each["metadata"]["name"]): each
            for each in rendered(
                CHARTS / "virtual-cluster",
                {
                    **VALUES,
                    "etcd": {"extraArgs": here},
                    "apiServer": {
                        "extraArgs": api_server,
                        "authentication": authentication,
                        "audit": {"policy": AUDIT},
                        "names": [NAMES[3]],
                    },
                    "controllerManager": {"extraArgs": {"secure-port": 0}},
                },
                release=host.namespace,
            )
        }
        settings = folder / "settings"
        settings.mkdir()
        for name, text in self.objects["ConfigMap", "api-control-plane"]["data"].items():
            (settings / name).write_text(text)

    @property
    def manifests(self) -> dict[str, str]:
        """The objects of the virtual cluster, by file."""
        data: dict[str, str] = self.objects["ConfigMap", "api-manifests"]["data"]
        return data

    def kubectl(
        self, *arguments: str, kubeconfig: Path | None = None, check: bool = True, stdin: str | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run kubectl as Plane's does, but at this machine's address whatever the kubeconfig says."""
        here = f"--server=https://localhost:{self.port}"
        return super().kubectl(here, *arguments, kubeconfig=kubeconfig, check=check, stdin=stdin)

    def apply(self, file: str) -> None:
        """Apply a file of the manifests, as their Job does."""
        command = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        self.kubectl(*command, kubeconfig=self.super_admin, stdin=self.manifests[file])

    def log(self, program: str) -> str:
        """Return the output of a program."""
        return (self.folder / f"{program}.log").read_text()

    def groups_of(self, token: str) -> list[str]:
        """Return the groups of a token's user; none if the token isn't accepted."""
        kubeconfig = self.folder / "of-a-token"
        document = yaml.safe_load(self.super_admin.read_text())
        document["users"][0]["user"] = {"token": token}
        kubeconfig.write_text(yaml.safe_dump(document))
        output = self.kubectl("auth", "whoami", "-o=yaml", kubeconfig=kubeconfig, check=False)
        return list(yaml.safe_load(output.stdout)["status"]["userInfo"]["groups"]) if output.returncode == 0 else []

    def _etcd(self) -> list[str]:
        return [flag for flag in self._flags("etcd") if flag != "--listen-metrics-urls="]

    def _api_server(self) -> list[str]:
        return self._flags("kube-apiserver")

    def _controller_manager(self) -> list[str]:
        return self._flags("kube-controller-manager")

    def _flags(self, program: str) -> list[str]:
        spec = self.objects["StatefulSet", "api-control-plane"]["spec"]["template"]["spec"]
        [command] = [
            each["command"] for each in (*spec["initContainers"], *spec["containers"]) if each["name"] == program
        ]
        here = {
            "/pki/": f"{self.folder / 'api-pki'}/",
            "/settings/": f"{self.folder / 'settings'}/",
            "/var/lib/etcd/data": str(self.folder / "etcd"),
            "$(POD_NAME)": "api-control-plane-0",
        }
        flags = command[1:]
        for there, path in here.items():
            flags = [flag.replace(there, path) for flag in flags]
        return list(flags)


@pytest.fixture(scope="module")
def plane(control_plane_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChartPlane]:
    """The control plane of a release, with the certificates that the chart's Job makes."""
    outside = ControlPlane("chart-runs", programs=control_plane_programs)
    outside.start()
    try:
        host = Host(outside, "shop")
        made = rendered(CHARTS / "virtual-cluster", {**VALUES, "apiServer": {"names": [NAMES[3]]}}, release="shop")
        [job] = [each for each in made if each["kind"] == "Job" and each["metadata"]["name"].startswith("api-pki-")]
        [container] = job["spec"]["template"]["spec"]["containers"]
        done = host.pki(*container["args"][1:], user="admin")
        assert done.returncode == 0, done.stderr
        with Issuer.running() as issuer, running(found := ChartPlane(tmp_path_factory.mktemp("release"), host, issuer)):
            found.until(lambda: found.works("first"))
            yield found
    finally:
        outside.stop()


def test_certificate_has_the_names_of_every_way_to_the_api_server(plane: ChartPlane) -> None:
    context = ssl.create_default_context(cafile=str(plane.folder / "api-pki" / "ca.crt"))
    for name in (*NAMES, "api.shop.svc", "kubernetes.default.svc.cluster.local"):
        with (
            socket.create_connection(("127.0.0.1", plane.port), timeout=SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=name) as wrapped,
        ):
            assert wrapped.version() == "TLSv1.3", name
    [cluster] = yaml.safe_load(plane.admin.read_text())["clusters"]
    assert cluster["cluster"]["server"] == f"https://{NAMES[1]}"


def test_tenant_may_do_everything_by_a_binding_that_can_be_taken_away_and_comes_back(plane: ChartPlane) -> None:
    def may() -> bool:
        return plane.kubectl("auth", "can-i", "*", "*", "--all-namespaces", check=False).stdout == "yes\n"

    assert not may()
    plane.apply("05-access.yaml")
    plane.until(may)
    plane.kubectl("delete", "clusterrolebinding", "vsyncer-tenant-admins")
    plane.until(lambda: not may())
    assert "cannot create" in plane.kubectl("create", "namespace", "second", check=False).stderr
    plane.apply("05-access.yaml")
    plane.until(may)


def test_api_server_has_only_needed_rights_at_kubelets(plane: ChartPlane) -> None:
    plane.apply("05-access.yaml")
    document = yaml.safe_load(plane.super_admin.read_text())
    pki = plane.folder / "api-pki"
    client = {"client-certificate": str(pki / "apiserver-kubelet-client.crt")}
    document["users"][0]["user"] = {**client, "client-key": str(pki / "apiserver-kubelet-client.key")}
    kubeconfig = plane.folder / "of-the-kubelet-client"
    kubeconfig.write_text(yaml.safe_dump(document))

    def may(*question: str) -> bool:
        return plane.kubectl("auth", "can-i", *question, kubeconfig=kubeconfig, check=False).stdout == "yes\n"

    needed = (("get", "proxy"), ("create", "proxy"), ("get", "log"), ("get", "metrics"))
    plane.until(lambda: all(may(verb, "nodes", f"--subresource={part}") for verb, part in needed))
    assert not any(may(verb, kind) for verb, kind in (("get", "secrets"), ("create", "pods"), ("delete", "nodes")))


def test_audit_log_is_in_the_output_of_the_api_server(plane: ChartPlane) -> None:
    plane.apply("05-access.yaml")
    plane.until(lambda: plane.kubectl("create", "namespace", "audited", check=False).returncode == 0)
    events = [
        json.loads(line) for line in plane.log("kube-apiserver").splitlines() if line.startswith('{"kind":"Event"')
    ]
    users = {event["user"]["username"] for event in events if event["objectRef"].get("name") == "audited"}
    assert "kubernetes-admin" in users
    assert {event["objectRef"]["resource"] for event in events} == {"namespaces"}


def test_user_of_an_identity_provider_logs_in_only_with_credentials(plane: ChartPlane) -> None:
    claims = {"email": "jane@example.com", "groups": ["developers"]}
    plane.until(lambda: plane.groups_of(plane.issuer.token(**claims)) == ["oidc:developers", "system:authenticated"])
    assert plane.groups_of(plane.issuer.token(**claims, aud="another")) == []
    context = ssl.create_default_context(cafile=str(plane.folder / "api-pki" / "ca.crt"))
    statuses = {path: status_of(f"https://localhost:{plane.port}{path}", context) for path in ("/readyz", "/version")}
    assert statuses == {"/readyz": 200, "/version": 401}


def test_api_server_ends_within_seconds_though_clients_watch(plane: ChartPlane) -> None:
    """The last test of the module, as the API server is not started again."""
    pki = plane.folder / "api-kubeconfig"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "tls.crt", pki / "tls.key")
    plane.apply("05-access.yaml")
    # By HTTP/1.1, as the daemon does.
    url = f"https://localhost:{plane.port}/api/v1/namespaces?watch=1"
    with urllib.request.urlopen(url, context=context, timeout=SECONDS) as watch:
        assert json.loads(watch.readline())["type"] == "ADDED"
        assert plane.ends("kube-apiserver"), "it waits for its clients"


def status_of(url: str, context: ssl.SSLContext) -> int:
    try:
        with urllib.request.urlopen(url, context=context, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
