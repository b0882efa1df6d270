"""The paths of the API, parsed and built."""

import pytest

from syncer.api import Key, Resource
from syncer.clusters.paths import Target, object_path

PODS = Resource("v1", "Pod", "pods")
ROLES = Resource("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)


@pytest.mark.parametrize(
    ("resource", "key", "subresource", "path", "message"),
    [
        (PODS, Key("shop", "web"), "", "/api/v1/namespaces/shop/pods/web", "pods shop/web"),
        (PODS, Key("shop", "web"), "status", "/api/v1/namespaces/shop/pods/web/status", "pods/status shop/web"),
        (NAMESPACES, Key("", "shop"), "", "/api/v1/namespaces/shop", "namespaces shop"),
        (NAMESPACES, Key("", "shop"), "finalize", "/api/v1/namespaces/shop/finalize", "namespaces/finalize shop"),
        (
            ROLES,
            Key("", "system:a b"),
            "",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b",
            "clusterroles.rbac.authorization.k8s.io system:a b",
        ),
    ],
)
def test_path_leads_back_to_its_object(resource: Resource, key: Key, subresource: str, path: str, message: str) -> None:
    assert object_path(resource, key, subresource) == path
    target = Target.of(f"{path}?fieldManager=me")
    assert target is not None
    assert (target.plural, target.group, target.key) == (resource.plural, resource.group, key)
    assert target.subresource == subresource
    assert target.path == path.removesuffix(f"/{subresource}")
    assert str(target) == message


def test_collection_has_no_name() -> None:
    assert Target.of("/api/v1/namespaces/shop/pods?limit=5") == Target("/api/v1", "", "pods", Key("shop", ""))
    assert Target.of("/api/v1/namespaces") == Target("/api/v1", "", "namespaces", Key("", ""))


@pytest.mark.parametrize(
    "path", ["/version", "/api", "/api/v1", "/apis/apps/v1", "/readyz?verbose", "/openapi/v3/api/v1"]
)
def test_other_pages_are_no_objects(path: str) -> None:
    assert Target.of(path) is None
