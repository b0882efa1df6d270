"""The printed admission policy lets the daemon's user write copies, and nothing else, on a real API server."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from api import eventually

from kube_envtest import ControlPlane, Programs

pytestmark = pytest.mark.controlplane

ENFORCE = "pod-security.kubernetes.io/enforce"
USER, MARK, IDENTITY = "syncer", "vsyncer.dev/cluster", "vc.vc-ns"
CONFIG = {
    "apiVersion": "vsyncer.dev/v1alpha1",
    "kind": "SyncerConfig",
    "cluster": "vc",
    "host": {"namespace": "vc-ns"},
    "virtual": {"kubeconfig": "virtual"},
    "leaderElection": {"enabled": True},
    "names": {"translator": "per-namespace", "namespaces": ["payments"]},
    "sync": {"toHost": {"publishedServices": {"enabled": True, "namespaces": ["published"]}}},
}
#: Rights that the daemon never asks for, but that somebody may have given it.
BROAD = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "too-broad"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}
BOUND = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "too-broad"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "too-broad"},
    "subjects": [{"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}],
}
OURS = {"labels": {MARK: IDENTITY}}


def printed(folder: Path, *options: str, config: Any = CONFIG) -> list[Any]:
    """Return what `syncer rbac` prints for the user."""
    file = folder / "syncer.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [str(Path(sys.executable).with_name("syncer")), "rbac", "--config", str(file), "--user", USER, *options]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    return list(yaml.safe_load_all(text))


def named(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


def namespace(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", **named(name, **metadata)}


def put(plane: ControlPlane, manifest: dict[str, Any]) -> None:
    """Create an object as the administrator."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    plural = manifest["kind"].lower() + "s"
    plural = plural.replace("policys", "policies")
    home = manifest["metadata"].get("namespace")
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    status, reply = plane.request("POST", f"{base}{f'/namespaces/{home}' if home else ''}/{plural}", manifest)
    assert status == 201, reply


def asks(plane: ControlPlane, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """Send a request as the daemon; return its status, and the message of the policy."""
    status, reply = plane.request(method, path, body, user=USER)
    message = str(reply.get("message", "")) if isinstance(reply, dict) else str(reply)
    return status, message.partition("denied request: ")[2]


@pytest.fixture(scope="module")
def plane(control_plane_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A host on which the policy holds, with objects of the daemon's and of others."""
    with policed(control_plane_programs, tmp_path_factory.mktemp("admission"), CONFIG) as plane:
        yield plane


@contextmanager
def policed(programs: Programs, folder: Path, config: Any) -> Iterator[ControlPlane]:
    """Run a host with the roles and the policy of a configuration."""
    with_user = ControlPlane("admission", programs=programs)
    with_user.add_user(USER)
    with with_user as plane:
        for name in ("vc-ns", "payments", "others", "published"):
            put(plane, namespace(name))
        put(plane, namespace("shop-x-vc-x-vc-ns", **OURS))
        for each in printed(folder, "--side", "host", config=config) + printed(folder, "--admission", config=config):
            put(plane, each)
        for home in ("shop-x-vc-x-vc-ns", "others"):
            for name, metadata in (("ours", OURS), ("theirs", {})):
                put(plane, {"apiVersion": "v1", "kind": "ConfigMap", **named(name, namespace=home, **metadata)})
        probe = "/api/v1/namespaces/others/configmaps?dryRun=All"
        eventually(lambda: asks(plane, "POST", probe, named("probe"))[0] != 201, "the policy comes into force")
        yield plane


CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
SERVICES = "/api/v1/namespaces/{}/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
RED = {"data": {"color": "red"}}
HEADLESS = {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}
SLICE = {"addressType": "IPv4", "endpoints": []}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", CONFIG_MAPS.format("payments"), named("a", **OURS)),
        ("POST", CONFIG_MAPS.format("shop-x-vc-x-vc-ns"), named("a", **OURS)),
        ("PATCH", CONFIG_MAPS.format("shop-x-vc-x-vc-ns") + "/ours", RED),
        ("DELETE", CONFIG_MAPS.format("shop-x-vc-x-vc-ns") + "/ours", None),
        ("POST", "/api/v1/namespaces", namespace("new-x-vc-x-vc-ns", labels=OURS["labels"] | {ENFORCE: "baseline"})),
        ("POST", "/api/v1/namespaces", namespace("new-x-vc-x-vc-ns", labels=OURS["labels"] | {ENFORCE: "restricted"})),
        ("PATCH", "/api/v1/namespaces/shop-x-vc-x-vc-ns", {"metadata": {"labels": {"team": "a"}}}),
        ("PATCH", "/api/v1/namespaces/shop-x-vc-x-vc-ns", {"metadata": {"labels": {ENFORCE: "baseline"}}}),
        ("DELETE", "/api/v1/namespaces/shop-x-vc-x-vc-ns", None),
        ("POST", SERVICES.format("published"), {**named("a", **OURS), **HEADLESS}),
        ("POST", SLICES.format("published"), {**named("a", **OURS), **SLICE}),
        ("POST", LEASES.format("vc-ns"), named("vsyncer-vc")),
    ],
)
def test_daemon_writes_its_copies(plane: ControlPlane, method: str, path: str, body: Any) -> None:
    status, why = asks(plane, method, f"{path}?dryRun=All", body)
    assert (status in (200, 201), why) == (True, "")


NOTHING = (
    "the syncer connects to nothing but pods of its tenants on the host, and neither gets tokens"
    " nor binds or evicts pods there"
)
ONLY_OURS = "the syncer writes only objects with its mark vsyncer.dev/cluster, which they had before"
NO_WEAKER = "the syncer sets no weaker Pod Security level for host namespaces than it is configured for"
ONLY_HERE = "the syncer writes only into host namespaces with its mark, or that it is configured for"


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        ("POST", "/api/v1/namespaces", namespace("new-x-vc-x-vc-ns", **OURS), NO_WEAKER),
        (
            "POST",
            "/api/v1/namespaces",
            namespace("new-x-vc-x-vc-ns", labels=OURS["labels"] | {ENFORCE: "privileged"}),
            NO_WEAKER,
        ),
        (
            "POST",
            "/api/v1/namespaces",
            namespace("new-x-vc-x-vc-ns", labels=OURS["labels"] | {ENFORCE: "baseline", f"{ENFORCE}-version": "v1.0"}),
            NO_WEAKER,
        ),
        (
            "PATCH",
            "/api/v1/namespaces/shop-x-vc-x-vc-ns",
            {"metadata": {"labels": {ENFORCE: "privileged"}}},
            NO_WEAKER,
        ),
        ("POST", CONFIG_MAPS.format("vc-ns"), named("a"), ONLY_OURS),
        ("POST", CONFIG_MAPS.format("vc-ns"), named("a", labels={MARK: "another.ns"}), ONLY_OURS),
        ("POST", CONFIG_MAPS.format("others"), named("a", **OURS), ONLY_HERE),
        ("POST", CONFIG_MAPS.format("vc-ns"), named("a", **OURS), ONLY_HERE),
        ("POST", CONFIG_MAPS.format("kube-system"), named("a", **OURS), ONLY_HERE),
        ("POST", CONFIG_MAPS.format("published"), named("a", **OURS), ONLY_HERE),
        ("POST", SERVICES.format("published"), {**named("a"), **HEADLESS}, ONLY_OURS),
        ("POST", SERVICES.format("others"), {**named("a", **OURS), **HEADLESS}, ONLY_HERE),
        ("PATCH", CONFIG_MAPS.format("others") + "/ours", RED, ONLY_HERE),
        ("PATCH", CONFIG_MAPS.format("shop-x-vc-x-vc-ns") + "/theirs", {"metadata": OURS}, ONLY_OURS),
        ("PATCH", CONFIG_MAPS.format("shop-x-vc-x-vc-ns") + "/ours", {"metadata": {"labels": {MARK: None}}}, ONLY_OURS),
        ("DELETE", CONFIG_MAPS.format("shop-x-vc-x-vc-ns") + "/theirs", None, ONLY_OURS),
        ("POST", "/api/v1/namespaces", namespace("new"), ONLY_OURS),
        ("PATCH", "/api/v1/namespaces/others", {"metadata": OURS}, ONLY_OURS),
        ("DELETE", "/api/v1/namespaces/others", None, ONLY_OURS),
        ("POST", LEASES.format("vc-ns"), named("another"), ONLY_OURS),
    ],
)
def test_daemon_writes_nothing_else_whatever_its_rights_are(
    plane: ControlPlane, method: str, path: str, body: Any, why: str
) -> None:
    _broaden(plane)
    status, expected = asks(plane, method, f"{path}?dryRun=All", body)
    assert status == 403
    assert expected == why


def test_daemon_writes_copies_without_a_namespace(plane: ControlPlane) -> None:
    _broaden(plane)
    classes, content = "/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1}
    status, why = asks(plane, "POST", classes, {**named("ours", **OURS), **content})
    assert (status, why) == (201, "")
    assert asks(plane, "DELETE", f"{classes}/ours") == (200, "")
    assert asks(plane, "POST", classes, {**named("theirs"), **content}) == (403, ONLY_OURS)


def test_daemon_connects_to_nothing_and_gets_no_host_token(plane: ControlPlane) -> None:
    _broaden(plane)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", **named("someone", namespace="shop-x-vc-x-vc-ns")}
    put(plane, account)
    pod = {"containers": [{"name": "main", "image": "i"}]}
    put(plane, {"apiVersion": "v1", "kind": "Pod", **named("web", namespace="vc-ns"), "spec": pod})
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    for metadata in (OURS, {}):
        body = {**token, "metadata": metadata}
        asked = asks(plane, "POST", "/api/v1/namespaces/shop-x-vc-x-vc-ns/serviceaccounts/someone/token", body)
        assert asked[1] == NOTHING, metadata
    asked = asks(plane, "POST", "/api/v1/namespaces/vc-ns/pods/web/exec?command=id&stdout=true")
    assert asked[1] == NOTHING
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}}
    assert asks(plane, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)[0] == 201
    assert plane.request("POST", CONFIG_MAPS.format("others"), named("free"))[0] == 201, "others are not concerned"


def test_mark_of_another_object_gives_the_daemon_no_token_and_no_pod(plane: ControlPlane) -> None:
    _broaden(plane)
    base = "/api/v1/namespaces/payments"
    put(plane, {"apiVersion": "v1", "kind": "ServiceAccount", **named("someone", namespace="payments")})
    spec = {"containers": [{"name": "main", "image": "i"}]}
    put(plane, {"apiVersion": "v1", "kind": "Pod", **named("not-ours", namespace="payments"), "spec": spec})
    account = {"annotations": {"kubernetes.io/service-account.name": "someone"}}
    token = {**named("token", **OURS, **account), "type": "kubernetes.io/service-account-token"}
    binding = {**named("not-ours", **OURS), "target": {"kind": "Node", "name": "n"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", **named("not-ours", **OURS)}
    for path, body in (
        ("secrets", token),
        ("pods/not-ours/eviction", eviction),
        ("pods/not-ours/binding", binding),
        ("bindings", binding),
    ):
        assert asks(plane, "POST", f"{base}/{path}?dryRun=All", body) == (403, NOTHING), path
    assert asks(plane, "POST", f"{base}/secrets?dryRun=All", {**named("plain", **OURS), "type": "Opaque"}) == (201, "")


def test_daemon_that_answers_as_a_kubelet_connects_to_pods_of_its_tenants_alone(
    control_plane_programs: Programs, tmp_path: Path
) -> None:
    """An allowed connection fails later: the pod has no node."""
    with policed(control_plane_programs, tmp_path, {**CONFIG, "kubelet": {"enabled": True}}) as plane:
        _broaden(plane)
        spec = {"containers": [{"name": "main", "image": "i"}]}
        for home in ("shop-x-vc-x-vc-ns", "payments", "others"):
            put(plane, {"apiVersion": "v1", "kind": "Pod", **named("web", namespace=home), "spec": spec})
        for home, subresource, expected in (
            ("shop-x-vc-x-vc-ns", "exec", ""),
            ("payments", "attach", ""),
            ("payments", "portforward", ""),
            ("payments", "proxy", NOTHING),
            ("others", "exec", NOTHING),
        ):
            path = f"/api/v1/namespaces/{home}/pods/web/{subresource}?command=id&stdout=true"
            status, why = asks(plane, "POST", path)
            assert (why, status >= 400) == (expected, True), (home, subresource)


def test_policy_of_fixed_namespaces_is_one_that_the_api_server_takes(plane: ControlPlane, tmp_path: Path) -> None:
    names = {"names": {"translator": "single-namespace"}, "leaderElection": {"enabled": False}}
    made, _ = printed(tmp_path, "--admission", config={**CONFIG, **names})
    made["metadata"]["name"] = "of-a-single-namespace"
    status, reply = plane.request("POST", f"/apis/{made['apiVersion']}/validatingadmissionpolicies?dryRun=All", made)
    assert status == 201, reply


def _broaden(plane: ControlPlane) -> None:
    """Let the user do everything that the policy doesn't forbid."""
    if plane.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/too-broad")[0] == 404:
        put(plane, BROAD)
        put(plane, BOUND)
    eventually(lambda: asks(plane, "GET", "/api/v1/nodes")[0] == 200, "the user may do everything")
