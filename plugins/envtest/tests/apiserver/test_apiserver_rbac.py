"""RBAC: who may do what."""

from typing import Any

import pytest

from kube_envtest.apiserver.rbac import User, authorise, authorise_url

Obj = dict[str, Any]


def role(name: str, *rules: Obj, namespace: str = "", **more: Any) -> Obj:
    labels = more.pop("labels", {})
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "rules": list(rules), **more}


def rule(verbs: str, resources: str, groups: str = "", **more: Any) -> Obj:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": groups.split(",")} | more


def binding(kind: str, name: str, *subjects: Obj, namespace: str = "") -> Obj:
    ref = {"kind": kind, "name": name}
    return {"metadata": {"name": name, "namespace": namespace}, "roleRef": ref, "subjects": list(subjects)}


def subject(kind: str, name: str, namespace: str = "") -> Obj:
    return {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})


def may(user: User, request: str, **objects: Any) -> bool:
    """Ask for `VERB GROUP/RESOURCE[/SUB] [NAMESPACE[/NAME]]`."""
    verb, what, *where = request.split()
    group, resource, *sub = what.split("/")
    namespace, _, name = (where or [""])[0].partition("/")
    lists = ("roles", "cluster_roles", "role_bindings", "cluster_role_bindings")
    given = {key: objects.get(key, []) for key in lists}
    return authorise(user, verb, group, resource, "".join(sub), namespace, name, **given)


ALICE = User("alice", ("dev",))
VIEW = role("view", rule("get list", "pods services"))


def test_users_without_a_role_have_no_rights_and_masters_have_all() -> None:
    assert not may(ALICE, "get /pods n")
    assert may(User("root", ("system:masters",)), "delete apps/deployments n/x")


def test_a_role_binding_gives_rights_in_its_namespace_only() -> None:
    given: dict[str, Any] = {
        "roles": [{**VIEW, "metadata": {"name": "view", "namespace": "n"}}],
        "role_bindings": [binding("Role", "view", subject("User", "alice"), namespace="n")],
    }
    assert may(ALICE, "get /pods n/x", **given)
    assert not may(ALICE, "get /pods other/x", **given)
    assert not may(ALICE, "list /pods", **given)
    assert not may(ALICE, "delete /pods n/x", **given)
    assert not may(ALICE, "get apps/pods n/x", **given)
    assert not may(User("bob"), "get /pods n/x", **given)


def test_a_cluster_role_bound_in_a_namespace_counts_there() -> None:
    bound = binding("ClusterRole", "view", subject("Group", "dev"), namespace="n")
    given: dict[str, Any] = {"cluster_roles": [VIEW], "role_bindings": [bound]}
    assert may(ALICE, "list /services n", **given)
    assert not may(ALICE, "list /services m", **given)
    other = [role("view", rule("get", "pods"), namespace="elsewhere")]
    local = binding("Role", "view", subject("User", "alice"), namespace="n")
    assert not may(ALICE, "get /pods n/x", roles=other, role_bindings=[local])


def test_a_cluster_role_binding_gives_rights_everywhere() -> None:
    given = {
        "cluster_roles": [VIEW],
        "cluster_role_bindings": [binding("ClusterRole", "view", subject("User", "alice"))],
    }
    assert may(ALICE, "list /pods", **given)
    assert may(ALICE, "get /services any/x", **given)


@pytest.mark.parametrize(
    ("granted", "request_", "allowed"),
    [
        (rule("*", "*", "*"), "delete apps/deployments n/x", True),
        (rule("get", "pods"), "get /pods/status n/x", False),
        (rule("get", "pods/status"), "get /pods/status n/x", True),
        (rule("get", "*/status"), "get /pods/status n/x", True),
        (rule("get", "*/status"), "get /pods n/x", False),
        (rule("get", "*"), "get /pods/log n/x", True),
        (rule("get", "deployments", "apps,extensions"), "get extensions/deployments n/x", True),
        (rule("get", "pods", resourceNames=["x"]), "get /pods n/x", True),
        (rule("get", "pods", resourceNames=["x"]), "get /pods n/y", False),
        (rule("list", "pods", resourceNames=["x"]), "list /pods n", False),
    ],
)
def test_rules(granted: Obj, request_: str, allowed: bool) -> None:
    bound = binding("ClusterRole", "r", subject("User", "alice"))
    assert may(ALICE, request_, cluster_roles=[role("r", granted)], cluster_role_bindings=[bound]) is allowed


@pytest.mark.parametrize(
    ("who", "bound_to", "allowed"),
    [
        (User("system:serviceaccount:n:sa"), subject("ServiceAccount", "sa", "n"), True),
        (User("system:serviceaccount:m:sa"), subject("ServiceAccount", "sa", "n"), False),
        (User("system:serviceaccount:n:sa"), subject("Group", "system:serviceaccounts"), True),
        (User("system:serviceaccount:n:sa"), subject("Group", "system:serviceaccounts:n"), True),
        (User("system:serviceaccount:m:sa"), subject("Group", "system:serviceaccounts:n"), False),
        (User("anybody"), subject("Group", "system:authenticated"), True),
        (User("system:anonymous"), subject("Group", "system:authenticated"), False),
        (User("system:anonymous"), subject("Group", "system:unauthenticated"), True),
        (User("dev"), subject("Group", "dev"), False),
    ],
)
def test_subjects(who: User, bound_to: Obj, allowed: bool) -> None:
    given = {"cluster_roles": [VIEW], "cluster_role_bindings": [binding("ClusterRole", "view", bound_to)]}
    assert may(who, "get /pods n/x", **given) is allowed


def test_a_service_account_of_a_role_binding_is_in_its_namespace_by_default() -> None:
    bound = binding("ClusterRole", "view", subject("ServiceAccount", "sa"), namespace="n")
    given: dict[str, Any] = {"cluster_roles": [VIEW], "role_bindings": [bound]}
    assert may(User("system:serviceaccount:n:sa"), "get /pods n/x", **given)


def test_an_aggregated_role_has_the_rules_of_those_it_selects() -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "admin"}}]}
    roles = [
        role("admin", aggregationRule=selector),
        role("edit", rule("create", "pods"), labels={"to": "admin"}, aggregationRule=selector),
        role("no", rule("delete", "pods"), labels={"to": "other"}),
    ]
    given = {
        "cluster_roles": roles,
        "cluster_role_bindings": [binding("ClusterRole", "admin", subject("User", "alice"))],
    }
    assert may(ALICE, "create /pods n", **given)
    assert not may(ALICE, "delete /pods n/x", **given)


@pytest.mark.parametrize(
    ("pattern", "path", "allowed"),
    [("/healthz", "/healthz", True), ("/healthz", "/healthz/x", False), ("/api/*", "/api/v1", True), ("*", "/x", True)],
)
def test_urls(pattern: str, path: str, allowed: bool) -> None:
    roles = [role("r", {"verbs": ["get"], "nonResourceURLs": [pattern]})]
    bound = [binding("ClusterRole", "r", subject("User", "alice"))]
    assert authorise_url(ALICE, "get", path, cluster_roles=roles, cluster_role_bindings=bound) is allowed
    assert not authorise_url(ALICE, "post", path, cluster_roles=roles, cluster_role_bindings=bound)
