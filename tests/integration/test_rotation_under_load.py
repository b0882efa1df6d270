"""Every login of a daemon changes every two seconds while objects are written, on real API servers.

The host's is a token file, one virtual cluster's an inline token in a Secret, another's the files of a client
certificate. Each token is of a ServiceAccount and bound to a Secret; an API server refuses it some ten seconds after
that is deleted, as it remembers tokens for so long.
"""

import re
import time
from functools import partial
from pathlib import Path

import yaml
from api import Api, eventually
from scene import OWN_ADDRESSES, Scene
from test_clusters_of_secrets import clusters, in_secret

from hack.bench.daemon import Process
from kube_envtest import ControlPlane
from syncer.api import Key, Obj
from syncer.testing.objects import configmap

#: Seconds between two rotations, and how many there are.
EVERY, ROTATIONS = 2.0, 7
#: Seconds for which an API server remembers a token that it has accepted, and some more.
REMEMBERED = 15.0


class Account:
    """A ServiceAccount that may do everything, and has one token at a time."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane, self.name, self._number = plane, name, 0
        self._ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
        self._ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)

    def token(self) -> str:
        """Return a new token."""
        self._number += 1
        bound = self._ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": self._secret()}})
        to = {"apiVersion": "v1", "kind": "Secret", "name": self._secret(), "uid": bound["metadata"]["uid"]}
        url = f"/api/v1/namespaces/default/serviceaccounts/{self.name}/token"
        return str(self._ask("POST", url, {"spec": {"boundObjectRef": to}})["status"]["token"])

    def revoke(self) -> None:
        """Let the token before the latest be refused."""
        if self._number > 1:
            self._ask("DELETE", f"/api/v1/namespaces/default/secrets/{self.name}-{self._number - 1}", None)

    def close(self) -> None:
        """Take all rights away."""
        self._ask("DELETE", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{self.name}", None)
        self._ask("DELETE", f"/api/v1/namespaces/default/serviceaccounts/{self.name}", None)

    def _secret(self) -> str:
        return f"{self.name}-{self._number}"

    def _ask(self, method: str, path: str, body: Obj | None) -> Obj:
        status, answer = self.plane.request(method, path, body)
        assert status < 300, answer
        return dict(answer)


def is_refused(account: Account, token: str) -> bool:
    """Return True if a token is refused by the API server."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = account.plane.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)[1]
    return not dict(answer)["status"].get("authenticated")


class Logins:
    """The three logins of a daemon, and what they were before."""

    def __init__(self, scene: Scene, second: ControlPlane, team: str) -> None:
        self._scene, self._second, self._team = scene, second, team
        self.host, self.virtual = (Account(api.plane, f"rotating-{scene.name}") for api in (scene.host, scene.virtual))
        self._file, self._number = scene.folder / "token", 0
        self.used: list[tuple[Account, str]] = []
        self._write(self._file, self._token(self.host).encode())
        self._certificate()
        self.kubeconfigs = {
            "host": self._kubeconfig(scene.host.plane, {"tokenFile": str(self._file)}),
            "second": self._kubeconfig(
                second, {f"client-{name}": str(scene.folder / name) for name in ("certificate", "key")}
            ),
        }
        scene.host.create(in_secret("kubeconfig", team, self._inline(), name=scene.name))

    def rotate(self) -> None:
        """Replace all three, and revoke the former tokens."""
        self._write(self._file, self._token(self.host).encode())
        self._certificate()
        self._scene.host.patch(
            "Secret", Key(self._team, "kubeconfig"), {"stringData": {"config": self._inline().decode()}}
        )
        for account in (self.host, self.virtual):
            account.revoke()

    def _token(self, account: Account) -> str:
        token = account.token()
        self.used.append((account, token))
        return token

    def _inline(self) -> bytes:
        file = self._kubeconfig(self._scene.virtual.plane, {"token": self._token(self.virtual)}, whole=True)
        return file.read_bytes()

    def _certificate(self) -> None:
        self._number += 1
        made = self._second.certificate(f"rotating-{self._number}", user="daemon", group="system:masters")
        for name, path in (("certificate", made), ("key", made.with_suffix(".key"))):
            self._write(self._scene.folder / name, path.read_bytes())

    def _write(self, path: Path, content: bytes) -> None:
        whole = path.with_suffix(".new")
        whole.write_bytes(content)
        whole.rename(path)

    def _kubeconfig(self, plane: ControlPlane, user: Obj, *, whole: bool = False) -> Path:
        document = yaml.safe_load(plane.kubeconfig("admin").read_text())
        document["users"][0]["user"] = user
        path = self._scene.folder / f"{plane.name}{'-whole' if whole else ''}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path


#: Requests of lists and watches of ConfigMaps and Secrets, as an API server counts them; gets and creates aren't.
_LISTS = re.compile(
    r'^apiserver_request_total\{.*resource="(configmaps|secrets)".*verb="LIST"[^}]*\} (\d+)', re.MULTILINE
)


#: An object of which an Event in the virtual cluster says that nothing enforces it.
POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: any}
spec: {podSelector: {}}
"""


def has_event(api: Api, space: str) -> bool:
    """Return True if a virtual cluster has an Event of the daemon's."""
    found = api.plane.request("GET", f"/api/v1/namespaces/{space}/events")[1]
    return any(each.get("reportingComponent") == "vsyncer" for each in dict(found)["items"])


def lists(daemon: Process, *apis: Api) -> list[float]:
    """Return how often a daemon has restarted a watch, and how often each API server was asked for a list."""
    counted = [_LISTS.findall(api.plane.kubectl("get", "--raw", "/metrics").stdout) for api in apis]
    return [daemon.requests("syncer_watch_restarts_total"), *(sum(int(n) for _, n in found) for found in counted)]


def test_logins_that_change_under_load_cost_no_list_and_no_event(scene: Scene, second: Api) -> None:
    team, names = f"team-{scene.name}", {scene.name: scene.virtual, "second": second}
    scene.host.make_namespace(team)
    logins = Logins(scene, second.plane, team)
    entry = {"name": "second", "hostNamespace": scene.host_namespace, "kubeconfig": str(logins.kubeconfigs["second"])}
    daemon = scene.daemon(
        {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "virtualClusters": [entry],
            "virtualClusterSecrets": [{"namespace": team, "hostNamespaces": [scene.host_namespace]}],
            "host": {"kubeconfig": str(logins.kubeconfigs["host"])},
            "networking": {"apiServer": {"host": "10.97.0.1"}},
            "sync": dict(OWN_ADDRESSES, toHost={**OWN_ADDRESSES["toHost"], "configMaps": {"all": True}}),
            "log": {"level": "info", "format": "json"},
        }
    )
    daemon.start()
    space = f"load-{scene.name}"
    for api in names.values():
        api.make_namespace(space)

    def is_copied(cluster: str, name: str) -> bool:
        return scene.host.get("ConfigMap", Key(scene.host_namespace, f"{name}-x-{space}-x-{cluster}")) is not None

    def write(name: str) -> None:
        for api in names.values():
            api.create(configmap(name, namespace=space))

    write("first")
    for cluster in names:
        eventually(partial(is_copied, cluster, "first"), f"{cluster} is served")
    apis, written = (scene.host, *names.values()), list[str]()
    before = lists(daemon, *apis)
    assert before[0] == 0
    assert all(before[1:])
    for _ in range(ROTATIONS):
        end = time.monotonic() + EVERY
        while time.monotonic() < end:
            written.append(f"c{len(written)}")
            write(written[-1])
            time.sleep(0.05)
        logins.rotate()
    old = [each for each in logins.used if each not in (*logins.used[-2:],)]
    eventually(lambda: all(is_refused(*each) for each in old), "all former tokens are refused", seconds=REMEMBERED)
    write("last")
    for cluster in names:
        eventually(partial(is_copied, cluster, "last"), f"{cluster} is served with the host's last login")
    for cluster, api in names.items():
        api.plane.kubectl("-n", space, "create", "-f", "-", stdin=POLICY)
        eventually(partial(has_event, api, space), f"{cluster} is written to with its last login")
    lost = [f"{cluster} {name}" for cluster in names for name in written if not is_copied(cluster, name)]
    assert lost == []
    assert lists(daemon, *apis) == before
    assert all(state.startswith("served") for state in clusters(daemon).values())
    assert "another server or program" not in daemon.log.read_text()
    for account in (logins.host, logins.virtual):
        account.close()
