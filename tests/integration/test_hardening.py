"""The page on hardening is applied as it is, and the host bounds the daemon by the printed FlowSchema."""

import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from api import PATIENCE, eventually

from kube_envtest import ControlPlane, Programs
from syncer.api import Obj
from syncer.api.metadata_defaults import FAMILIES
from syncer.rights.flow_schema import flow_schemas
from syncer.rights.rbac import Subject

pytestmark = pytest.mark.controlplane

PAGE = (Path(__file__).parents[2] / "docs" / "hardening.md").read_text()
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


def collection(obj: Obj) -> str:
    """Return the path that an object is posted to."""
    if obj["kind"] in PATHS:
        return PATHS[obj["kind"]]
    group = obj["apiVersion"] if "/" in obj["apiVersion"] else ""
    plural = {"NetworkPolicy": "networkpolicies"}.get(obj["kind"], f"{obj['kind'].lower()}s")
    return f"{f'/apis/{group}' if group else '/api/v1'}/namespaces/{obj['metadata']['namespace']}/{plural}"


@pytest.fixture(scope="module")
def plane(control_plane_programs: Programs) -> Iterator[ControlPlane]:
    """A control plane with the daemon's user, who has no rights."""
    made = ControlPlane("hardened", programs=control_plane_programs)
    made.add_user("daemon")
    made.start()
    yield made
    made.stop()


def created(plane: ControlPlane, obj: Obj) -> Obj:
    """Create an object, and return it."""
    status, found = plane.request("POST", collection(obj), obj)
    assert status == 201, (obj["kind"], found)
    result: Obj = found
    return result


def test_page_is_applied_as_it_is(plane: ControlPlane) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    objects = [obj for block in blocks for obj in yaml.safe_load_all(block)]
    for obj in objects:
        created(plane, obj)
    kinds = {obj["kind"] for obj in objects}
    assert {"ResourceQuota", "LimitRange", "NetworkPolicy", "ValidatingAdmissionPolicy"} <= kinds


@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_policy_of_the_page_refuses_metadata_that_replicators_read(plane: ControlPlane, part: str) -> None:
    [family] = [family for family in FAMILIES if family.title == "Replicators"]
    path, deadline = "/api/v1/namespaces/vc-shop/configmaps?dryRun=All", time.monotonic() + PATIENCE
    for number, glob in enumerate(family.keys):
        key = glob.replace("*.", "a.").replace("/*", "/x").replace("*", "")
        obj = {"metadata": {"name": f"taken-{number}", part: {key: "x"}}}
        status, found = plane.request("POST", path, obj)
        while status == 201 and time.monotonic() < deadline:  # a new policy isn't in force at once
            time.sleep(0.2)
            status, found = plane.request("POST", path, obj)
        assert status == 422, (key, found)
        assert "replicators are not for tenants" in found["message"]
    status, found = plane.request("POST", path, {"metadata": {"name": "plain", part: {"example.org/team": "x"}}})
    assert status == 201, found


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"schedulerName": "another"}, "the scheduler is not for tenants to choose"),
        ({"tolerations": [{"operator": "Exists"}]}, "nodes with taints are not for tenants"),
        ({"tolerations": [{"key": "node-role.kubernetes.io/control-plane"}]}, "nodes with taints are not for tenants"),
        ({"hostnameOverride": "db.example.org"}, "the host name is not for tenants to choose"),
        ({"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}, ""),
        ({}, ""),
    ],
)
def test_policy_of_the_page_refuses_fields_pods_may_not_choose(plane: ControlPlane, field: Obj, message: str) -> None:
    main = {"name": "main", "image": "i"}
    obj = {"metadata": {"name": "chosen"}, "spec": {"containers": [main], **field}}
    path, deadline = "/api/v1/namespaces/vc-shop/pods?dryRun=All", time.monotonic() + PATIENCE
    status, found = plane.request("POST", path, obj)
    while message and status == 201 and time.monotonic() < deadline:  # a new policy isn't in force at once
        time.sleep(0.2)
        status, found = plane.request("POST", path, obj)
    assert (status == 201) is (message == ""), found
    assert message in found.get("message", "")


def matched(plane: ControlPlane, path: str) -> str:
    """Return the uid of the FlowSchema that takes a request of the daemon."""
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    request = urllib.request.Request(plane.url + path, headers={"Authorization": f"Bearer {plane.token('daemon')}"})
    try:
        with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as response:
            return str(response.headers["X-Kubernetes-PF-FlowSchema-UID"])
    except urllib.error.HTTPError as error:  # the daemon's user has no rights here
        return str(error.headers["X-Kubernetes-PF-FlowSchema-UID"])


def test_requests_of_the_daemon_are_taken_by_its_flow_schema(plane: ControlPlane) -> None:
    uids = {}
    for obj in flow_schemas(Subject("daemon"), name="vsyncer-shop.vc-shop"):
        uids[obj["kind"], obj["metadata"]["name"]] = created(plane, obj)["metadata"]["uid"]
    expected = {
        "/api/v1/namespaces/vc-shop/configmaps": "vsyncer-shop.vc-shop",
        "/api/v1/namespaces": "vsyncer-shop.vc-shop",
        "/version": "vsyncer-shop.vc-shop",
        "/apis/coordination.k8s.io/v1/namespaces/vc-shop/leases/vsyncer-shop": "vsyncer-shop.vc-shop.lease",
    }
    wait_until_configured(plane, uids["FlowSchema", "vsyncer-shop.vc-shop"])
    assert {path: matched(plane, path) for path in expected} == {
        path: uids["FlowSchema", name] for path, name in expected.items()
    }


def wait_until_configured(plane: ControlPlane, uid: str) -> None:
    """Wait until the API server goes by the new schema."""
    eventually(lambda: matched(plane, "/version") == uid, "the FlowSchema is in force")
