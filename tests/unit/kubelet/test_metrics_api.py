"""metrics.k8s.io in a virtual cluster trusts the front proxy alone, and shows each user no more than they may see."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from kubelet_scene import Api
from usage_scene import BACK, FRONT, Measuring, measuring

from syncer.api.objects import Key, Side
from syncer.clusters.client import SideClient
from syncer.kubelet.http import MessageHead
from syncer.kubelet.metrics_api import FrontProxy, MetricsApi
from syncer.kubelet.users import User

ROOT = "/apis/metrics.k8s.io/v1beta1"
#: As a kube-apiserver publishes it.
PUBLISHED = {
    "client-ca-file": "-----BEGIN CERTIFICATE-----",
    "requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----",
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def certificate(name: str) -> Mapping[str, Any]:
    """Return a verified certificate as ``ssl`` decodes it."""
    return {"subject": ((("commonName", name),),)}


PROXY = certificate("front-proxy-client")


def head(target: str, user: str = "alice", method: str = "GET", **headers: str) -> MessageHead:
    """Return a request that the front proxy passes on."""
    lines = [("x-remote-user", user), ("x-remote-group", "devs"), *((name, value) for name, value in headers.items())]
    return MessageHead(lines, method, target)


class Scene:
    """The API of a tenant with two Pods, and the virtual API server that says who may."""

    def __init__(self, host: Measuring | None = None) -> None:
        self.virtual = Api(allowed={"alice"})
        labels = {("pods", FRONT): {"app": "front"}, ("pods", BACK): {"app": "back", "old": ""}}
        self.api = MetricsApi(
            SideClient("shop", Side.VIRTUAL, self.virtual),
            (host or measuring()).usages(),
            lambda plural, key: labels.get((plural, key), {}),
        )
        self.api.trust(FrontProxy(PUBLISHED))

    async def ask(self, target: str, status: int = 200, **given: Any) -> Any:
        """Return the decoded answer."""
        found = await self.api.answer(given.pop("certificate", PROXY), head(target, **given))
        answer = json.loads(found[1])
        assert found[0] == status, answer
        return answer


def names(answer: Any) -> list[tuple[str, str]]:
    return [(each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in answer["items"]]


async def test_list_has_the_figures_of_all_pods_under_their_virtual_names() -> None:
    found = await Scene().ask(f"{ROOT}/pods")
    assert (found["kind"], found["apiVersion"]) == ("PodMetricsList", "metrics.k8s.io/v1beta1")
    assert names(found) == [BACK, FRONT]
    assert found["items"][1] == {
        "metadata": {
            "name": "front",
            "namespace": "web",
            "creationTimestamp": "2026-01-01T10:00:00Z",
            "labels": {"app": "front"},
        },
        "timestamp": "2026-01-01T10:00:00Z",
        "window": "10s",
        "containers": [{"name": "main", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}],
    }


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("namespaces/web/pods", [FRONT]),
        ("namespaces/none/pods", []),
        ("pods?labelSelector=app%3Dfront", [FRONT]),
        ("pods?labelSelector=app%3D%3Dfront%2C%21old", [FRONT]),
        ("pods?labelSelector=app+in+%28front%2C+back%29", [BACK, FRONT]),
        ("pods?labelSelector=app+notin+%28front%29", [BACK]),
        ("pods?labelSelector=old", [BACK]),
        ("pods?labelSelector=old%3D", [BACK]),
        ("pods?labelSelector=app%21%3Dback&limit=500&watch=false", [FRONT]),
        ("pods?fieldSelector=metadata.name%3Dback", [BACK]),
        ("pods?fieldSelector=metadata.namespace%21%3Ddata", [FRONT]),
        ("nodes", [Key("", "node1"), Key("", "node2")]),
    ],
)
async def test_list_is_narrowed(target: str, expected: list[Key]) -> None:
    assert names(await Scene().ask(f"{ROOT}/{target}")) == expected


async def test_single_objects_are_found_by_name() -> None:
    scene = Scene()
    pod = await scene.ask(f"{ROOT}/namespaces/web/pods/front")
    assert (pod["kind"], pod["containers"][0]["usage"]["memory"]) == ("PodMetrics", "65536Ki")
    node = await scene.ask(f"{ROOT}/nodes/node2")
    assert (node["kind"], node["usage"]) == ("NodeMetrics", {"cpu": "1500000n", "memory": "1000Ki"})
    assert (await scene.ask(f"{ROOT}/namespaces/data/pods/front", 404))["reason"] == "NotFound"


async def test_table_has_the_columns_of_kubectl_get() -> None:
    found = await Scene().ask(f"{ROOT}/namespaces/web/pods", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert found["kind"] == "Table"
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    [row] = found["rows"]
    assert row["cells"] == ["front", "250000000n", "65536Ki", "10s"]
    assert row["object"]["metadata"]["namespace"] == "web"


async def test_user_is_authorised_for_the_object_by_the_virtual_api_server() -> None:
    scene = Scene()
    await scene.ask(f"{ROOT}/namespaces/web/pods/front")
    [(_, _, review)] = scene.virtual.asked
    assert review["spec"] == {
        "user": "alice",
        "groups": ["devs"],
        "resourceAttributes": {
            "verb": "get",
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "resource": "pods",
            "namespace": "web",
            "name": "front",
        },
    }
    refused = await scene.ask(f"{ROOT}/pods", 403, user="mallory")
    assert refused["reason"] == "Forbidden"
    assert 'User "mallory" cannot list resource "pods" in API group "metrics.k8s.io"' in refused["message"]


@pytest.mark.parametrize("sender", [None, certificate("alice"), {"subject": ()}])
async def test_sender_that_is_not_the_front_proxy_may_name_no_user(sender: Any) -> None:
    scene = Scene()
    for target in (f"{ROOT}/pods", ROOT):
        assert (await scene.ask(target, 401, certificate=sender))["reason"] == "Unauthorized"
    assert scene.virtual.asked == []


async def test_front_proxy_that_names_no_user_gets_nothing() -> None:
    assert (await Scene().ask(f"{ROOT}/pods", 401, user=""))["reason"] == "Unauthorized"


def test_user_has_all_attributes_of_the_headers() -> None:
    lines = [
        ("x-remote-user", "alice"),
        ("x-remote-group", "devs"),
        ("x-remote-group", "system:authenticated"),
        ("x-remote-uid", "7"),
        ("x-remote-extra-example.com%2fScopes", "read"),
        ("x-remote-extra-example.com%2fscopes", "write"),
        ("x-other", "root"),
    ]
    assert FrontProxy(PUBLISHED).user(PROXY, MessageHead(lines)) == User(
        "alice", ("devs", "system:authenticated"), "7", {"example.com/scopes": ["read", "write"]}
    )


@pytest.mark.parametrize(
    "data", [{}, {"requestheader-client-ca-file": ""}, {"requestheader-username-headers": "{not json"}]
)
def test_api_server_without_a_front_proxy_trusts_no_client(data: dict[str, str]) -> None:
    assert FrontProxy(data).ca == b""


@pytest.mark.parametrize(
    ("target", "method", "status"),
    [
        (f"{ROOT}/pods?watch=true", "GET", 405),
        (f"{ROOT}/pods?watch=1", "GET", 405),
        (f"{ROOT}/pods", "POST", 405),
        (f"{ROOT}/pods?labelSelector=%28%28", "GET", 400),
        (f"{ROOT}/pods?labelSelector=a+in+b", "GET", 400),
        (f"{ROOT}/pods?fieldSelector=spec.nodeName%3Dx", "GET", 400),
        (f"{ROOT}/pods?{'&a=b' * 200}", "GET", 400),
        (f"{ROOT}/secrets", "GET", 404),
        (f"{ROOT}/namespaces/web/pods/front/log", "GET", 404),
        ("/apis/metrics.k8s.io/v1/pods", "GET", 404),
        ("/api/v1/pods", "GET", 404),
        ("/openapi/v2", "GET", 404),
        ("/", "GET", 404),
    ],
)
async def test_anything_else_is_refused(target: str, method: str, status: int) -> None:
    found = await Scene().ask(target, status, method=method)
    assert (found["kind"], found["status"], found["code"]) == ("Status", "Failure", status)


async def test_discovery_lists_the_served_resources() -> None:
    scene = Scene()
    found = await scene.ask(ROOT)
    assert {(each["name"], each["kind"], each["namespaced"]) for each in found["resources"]} == {
        ("pods", "PodMetrics", True),
        ("nodes", "NodeMetrics", False),
    }
    assert (await scene.ask("/apis/metrics.k8s.io"))["preferredVersion"]["version"] == "v1beta1"
    assert (await scene.ask("/apis"))["kind"] == "APIGroupList"


async def test_host_without_figures_is_a_failure_for_the_moment() -> None:
    host = measuring()
    host.status = 404
    found = await Scene(host).ask(f"{ROOT}/pods", 503)
    assert (found["reason"], "no metrics.k8s.io" in found["message"]) == ("ServiceUnavailable", True)
