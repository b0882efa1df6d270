"""Images and a priority that the operator chooses, and files of tokens, as the containers on a real node have them."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from node_scene import Reached, running, until
from tenant_scene import Tenant

NAMESPACE = "options"
NS = f"-n={NAMESPACE}"
#: A registry, a repository and an image, by which the tenant's images become those that the node has.
IMAGES = {
    "registry.example.org/": "vsyncer.dev/",
    "shop/web": "vsyncer.dev/web",
    "mysql:8": "vsyncer.dev/busybox:local",
}
BUSYBOX = "vsyncer.dev/busybox:local"
#: PriorityClasses: the operator's on the host, and one of the tenant's own, which stays behind.
OPERATORS = "tenants"
TENANTS = "urgent"
OPTIONS = {"images": IMAGES, "priorityClassName": OPERATORS}
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"

PODS = f"""
apiVersion: v1
kind: Pod
metadata: {{name: group, labels: {{app: options}}}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsUser: 1000, fsGroup: 2000}}
  containers:
  - {{name: main, image: "registry.example.org/busybox:local", imagePullPolicy: Never, command: [sleep, "3600"]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: user, labels: {{app: options}}}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {{runAsUser: 1000}}
  containers:
  - {{name: main, image: "shop/web:local", imagePullPolicy: Never, command: [sleep, "3600"]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: root, labels: {{app: options}}}}
spec:
  terminationGracePeriodSeconds: 0
  priorityClassName: {TENANTS}
  securityContext: {{runAsUser: 0}}
  containers:
  - {{name: main, image: "mysql:8", imagePullPolicy: Never, command: [sleep, "3600"]}}
"""


class Images(NamedTuple):
    """The images of a container: as its owner wrote it, on the host, and as the kubelet reports it to its owner."""

    written: str
    on_host: str
    reported: str


@pytest.fixture(scope="module")
def choosing(tenant: Tenant) -> Iterator[Tenant]:
    """Return the tenant with three running Pods, whose images and priority the operator chooses."""
    with (
        priority_class(tenant.host, OPERATORS, 7),
        priority_class(tenant, TENANTS, 1000),
        tenant.configured(sync={"toHost": {"pods": OPTIONS}}),
        tenant.namespace(NAMESPACE, PODS),
    ):
        running(tenant, NAMESPACE, "app=options", 3)
        yield tenant


@contextmanager
def priority_class(cluster: Reached, name: str, value: int) -> Iterator[None]:
    """Make a PriorityClass, and delete it at the end."""
    cluster.kubectl("create", "priorityclass", name, f"--value={value}")
    try:
        yield
    finally:
        cluster.kubectl("delete", "priorityclass", name)


def virtual(tenant: Tenant, name: str) -> Any:
    """Return a virtual Pod."""
    return json.loads(tenant.kubectl("get", "pod", name, NS, "-o=json"))


def copy(tenant: Tenant, name: str) -> Any:
    """Return its copy on the host."""
    place = f"-n={tenant.host_namespace}"
    return json.loads(tenant.host.kubectl("get", "pod", tenant.copy(NAMESPACE, name), place, "-o=json"))


def images(tenant: Tenant, name: str, part: str = "containers") -> Images:
    """Return the images of the only container in a list of a Pod's spec, once it runs; empty texts before."""
    own = virtual(tenant, name)
    host = copy(tenant, name)
    statuses = f"{part.removesuffix('s')}Statuses"
    [status] = own["status"].get(statuses) or [{"state": {}}]
    if "running" not in status["state"]:
        return Images("", "", "")
    [written] = own["spec"][part]
    [on_host] = host["spec"][part]
    return Images(written["image"], on_host["image"], status["image"])


@pytest.mark.parametrize(
    ("name", "written", "on_host"),
    [
        pytest.param("group", "registry.example.org/busybox:local", BUSYBOX, id="registry"),
        pytest.param("user", "shop/web:local", "vsyncer.dev/web:local", id="repository"),
        pytest.param("root", "mysql:8", BUSYBOX, id="image"),
    ],
)
def test_pod_runs_the_operators_image_and_keeps_its_own(
    choosing: Tenant, name: str, written: str, on_host: str
) -> None:
    assert images(choosing, name) == Images(written, on_host, reported=on_host)


def test_copies_have_the_operators_priority_and_virtual_pods_their_own(choosing: Tenant) -> None:
    def priority(pod: Any) -> tuple[str | None, int]:
        return pod["spec"].get("priorityClassName"), pod["spec"]["priority"]

    names = ("group", "user", "root")
    assert {name: priority(copy(choosing, name)) for name in names} == dict.fromkeys(names, (OPERATORS, 7))
    assert {name: priority(virtual(choosing, name)) for name in names} == {
        "group": (None, 0),
        "user": (None, 0),
        "root": (TENANTS, 1000),
    }


@pytest.mark.parametrize(
    ("name", "user", "file"),
    [("group", "1000", "640 0 2000"), ("user", "1000", "644 0 0"), ("root", "0", "600 0 0")],
)
def test_token_file_is_readable_by_the_process_and_as_few_others_as_possible(
    choosing: Tenant, name: str, user: str, file: str
) -> None:
    who_and_what = f"echo $(id -u) $(stat -Lc '%a %u %g' {TOKEN})"
    assert choosing.exec(NAMESPACE, name, "sh", "-c", who_and_what) == f"{user} {file}\n"
    token = choosing.exec(NAMESPACE, name, "cat", TOKEN)
    claims = json.loads(base64.urlsafe_b64decode(f"{token.split('.')[1]}=="))
    assert claims["kubernetes.io"]["pod"] == {"name": name, "uid": virtual(choosing, name)["metadata"]["uid"]}


def test_image_that_is_changed_in_place_becomes_the_operators(choosing: Tenant) -> None:
    choosing.kubectl("set", "image", "pod/user", "main=mysql:8", NS)
    until("it runs", lambda: images(choosing, "user") == Images("mysql:8", BUSYBOX, BUSYBOX))
    files = choosing.exec(NAMESPACE, "user", "ls", "/").split()
    assert "web" not in files, "that would be the image before"
    assert virtual(choosing, "user")["status"]["containerStatuses"][0]["restartCount"] == 1


def test_debug_container_has_the_operators_image(choosing: Tenant) -> None:
    image = "registry.example.org/busybox:local"
    options = (f"--image={image}", "--image-pull-policy=Never", "--container=shell", "--profile=baseline")
    choosing.kubectl("debug", "group", NS, *options, "--", "sleep", "3600")
    until("it runs", lambda: images(choosing, "group", "ephemeralContainers") == Images(image, BUSYBOX, BUSYBOX))
