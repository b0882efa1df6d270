"""Access: RBAC, reviews, tokens."""

import base64
from typing import Any

import msgspec
from contract_client import Api

Obj = dict[str, Any]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"


def grant(api: Api, ns: str, subject: Obj, *rules: Obj) -> None:
    name = api.name("role")
    api.make(f"{RBAC}/namespaces/{ns}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    api.make(f"{RBAC}/namespaces/{ns}/rolebindings", binding)


def user(name: str) -> Obj:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def rule(verbs: str, resources: str = "configmaps", **more: Any) -> Obj:
    return {"apiGroups": [""], "resources": resources.split(), "verbs": verbs.split(), **more}


def test_a_user_without_a_role_is_forbidden(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/configmaps"
    answer = api.get(f"{path}/a", user="alice")
    message = (
        'configmaps "a" is forbidden: User "alice" cannot get resource "configmaps" in API group "" in the namespace '
        f'"{ns}"'
    )
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 403,
    }
    assert api.get(path, user="alice")["message"] == (
        'configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace '
        f'"{ns}"'
    )
    assert api.get("/api/v1/nodes", user="alice")["message"] == (
        'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    answer = api.get(f"/apis/apps/v1/namespaces/{ns}/deployments/a/status", user="alice")
    assert answer["message"] == (
        'deployments.apps "a" is forbidden: User "alice" cannot get resource "deployments/status" in API group "apps" '
        f'in the namespace "{ns}"'
    )
    assert api.get("/metrics", user="alice")["message"] == 'forbidden: User "alice" cannot get path "/metrics"'
    assert api.get(f"/api/v1/namespaces/{ns}", user="alice")["message"].endswith(f'in the namespace "{ns}"')


def test_unknown_and_missing_credentials(api: Api) -> None:
    answer = api.get("/api/v1/nodes", token="nonsense")
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_a_role_allows_exactly_its_rules(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/configmaps"
    api.make(path, {"metadata": {"name": "a"}})
    api.make(path, {"metadata": {"name": "b"}})
    grant(api, ns, user("alice"), rule("get", resourceNames=["a"]), rule("list create"))
    api.eventually(lambda: api.get(f"{path}/a", user="alice").status == 200)
    assert api.get(f"{path}/b", user="alice").status == 403
    assert api.get(path, user="alice").status == 200
    assert api.get(f"{path}?watch=true&timeoutSeconds=1", user="alice").status == 403
    assert api.post(path, {"metadata": {"name": "c"}}, user="alice").status == 201
    assert api.patch(f"{path}/c", {}, user="alice").status == 403
    assert api.delete(f"{path}/c", user="alice").status == 403
    assert api.delete(path, user="alice").status == 403
    assert api.get("/api/v1/configmaps", user="alice").status == 403


def test_a_list_and_a_watch_of_a_name_take_the_right_to_that_name(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/configmaps"
    for name in ("a", "b"):
        api.make(path, {"metadata": {"name": name}})
    grant(api, ns, user("alice"), rule("get list watch deletecollection", resourceNames=["a"]))
    selected = f"{path}?fieldSelector=metadata.name%3Da"
    api.eventually(lambda: api.get(selected, user="alice").status == 200)
    assert [one["metadata"]["name"] for one in api.get(selected, user="alice")["items"]] == ["a"]
    assert api.get(f"{selected}&watch=true&timeoutSeconds=1", user="alice").status == 200
    assert api.get(f"{path}?fieldSelector=metadata.name%3D%3Da%2Cmetadata.namespace%3D{ns}", user="alice").status == 200
    assert api.get(f"{path}?fieldSelector=metadata.name%21%3Da", user="alice").status == 403
    assert api.get(path, user="alice").status == 403
    assert api.delete(selected, user="alice").status == 403
    assert api.get(f"{path}?fieldSelector=metadata.name%3Db", user="alice")["message"] == (
        'configmaps "b" is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace '
        f'"{ns}"'
    )


def test_groups_and_cluster_roles(api: Api, ns: str) -> None:
    name = api.name("role")
    api.make(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule("get list", "pods pods/status")]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    team = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team"}
    path = f"/api/v1/namespaces/{ns}/pods"
    assert api.get(path, user="bob").status == 403
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [team]}
    api.make(f"{RBAC}/namespaces/{ns}/rolebindings", binding)
    api.eventually(lambda: api.get(path, user="bob").status == 200)
    assert api.get("/api/v1/pods", user="bob").status == 403
    api.make(f"{RBAC}/clusterrolebindings", binding)
    api.eventually(lambda: api.get("/api/v1/pods", user="bob").status == 200)
    assert api.get(path, user="alice").status == 403
    api.delete(f"{RBAC}/clusterrolebindings/{name}")
    api.eventually(lambda: api.get("/api/v1/pods", user="bob").status == 403)


def test_subresources_are_apart(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path = f"/api/v1/namespaces/{ns}/pods"
    api.make(path, body)
    grant(api, ns, user("alice"), rule("get patch", "pods/status"))
    api.eventually(lambda: api.get(f"{path}/a/status", user="alice").status == 200)
    assert api.get(f"{path}/a", user="alice").status == 403
    assert api.patch(f"{path}/a", {}, user="alice").status == 403


def test_apply_that_creates_needs_create(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/configmaps/a?fieldManager=x"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    grant(api, ns, user("alice"), rule("patch get"))
    api.eventually(lambda: api.get(f"/api/v1/namespaces/{ns}/configmaps/a", user="alice").status == 404)
    form = "application/apply-patch+yaml"
    assert api.patch(path, body, form, user="alice").status == 403
    grant(api, ns, user("alice"), rule("create"))
    api.eventually(lambda: api.patch(path, body, form, user="alice").status == 201)


def test_everybody_may_discover(api: Api) -> None:
    for path in ("/version", "/api", "/apis", "/apis/apps/v1", "/healthz", "/readyz", "/openapi/v3"):
        assert api.get(path, user="alice").status == 200, path


def test_self_subject_access_review_answers_by_the_rights(api: Api, ns: str) -> None:
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    attributes = {"verb": "get", "resource": "configmaps", "namespace": ns}
    answer = api.post(path, {"spec": {"resourceAttributes": attributes}}, user="alice")
    assert (answer.status, answer["status.allowed"]) == (201, False)
    grant(api, ns, user("alice"), rule("get"))
    api.eventually(lambda: api.post(path, {"spec": {"resourceAttributes": attributes}}, user="alice")["status.allowed"])
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    body = {"spec": {"user": "alice", "resourceAttributes": attributes}}
    assert api.post(path, body)["status.allowed"] is True
    assert api.post(path, {"spec": {"user": "nobody", "resourceAttributes": attributes}})["status.allowed"] is False
    nowhere = {"verb": "get", "path": "/metrics"}
    assert api.post(path, {"spec": {"user": "alice", "nonResourceAttributes": nowhere}})["status.allowed"] is False


def test_self_subject_review_names_the_user(api: Api) -> None:
    answer = api.post(f"{AUTHENTICATION}/selfsubjectreviews", {}, user="bob")
    assert answer.status == 201
    assert answer["status.userInfo.username"] == "bob"
    assert set(answer["status.userInfo.groups"]) == {"team", "system:authenticated"}


def token(api: Api, ns: str, account: str = "default", **spec: Any) -> Any:
    return api.post(f"/api/v1/namespaces/{ns}/serviceaccounts/{account}/token", {"spec": spec})


def test_tokens_of_service_accounts(api: Api, ns: str) -> None:
    answer = token(api, ns, expirationSeconds=1000)
    assert (answer.status, answer["kind"], answer["metadata.name"]) == (201, "TokenRequest", "default")
    assert answer["spec.expirationSeconds"] == 1000
    assert answer["status.expirationTimestamp"]
    claims = answer["status.token"].split(".")[1]
    read = msgspec.json.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert read["sub"] == f"system:serviceaccount:{ns}:default"
    assert read["exp"] - read["iat"] == 1000
    assert read["kubernetes.io"]["namespace"] == ns
    assert read["kubernetes.io"]["serviceaccount"]["name"] == "default"
    path = f"/api/v1/namespaces/{ns}/configmaps"
    assert f'User "system:serviceaccount:{ns}:default" cannot' in api.get(path, token=answer["status.token"])["message"]
    grant(api, ns, {"kind": "ServiceAccount", "name": "default", "namespace": ns}, rule("list"))
    api.eventually(lambda: api.get(path, token=answer["status.token"]).status == 200)


def test_tokens_that_cannot_be_had(api: Api, ns: str) -> None:
    assert token(api, ns, "none").status == 404
    short = token(api, ns, expirationSeconds=10)
    assert (short.status, short["reason"]) == (422, "Invalid")
    assert short["message"] == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: '
        "may not specify a duration less than 10 minutes"
    )
    missing = token(api, ns, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "none"})
    assert missing["message"] == 'pods "none" not found'


def test_a_token_goes_with_its_pod(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    pod = api.make(f"/api/v1/namespaces/{ns}/pods", body)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": pod["metadata"]["uid"]}
    answer = token(api, ns, boundObjectRef=reference)
    assert answer["spec.boundObjectRef"] == reference
    wrong = token(api, ns, boundObjectRef={**reference, "uid": "other"})
    assert (wrong.status, wrong["reason"]) == (409, "Conflict")
    mine = {"token": answer["status.token"]}
    review = api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": mine})
    assert review["status.authenticated"] is True
    assert review["status.user.username"] == f"system:serviceaccount:{ns}:default"
    assert api.get("/version", **mine).status == 200
    api.delete(f"/api/v1/namespaces/{ns}/pods/a")
    api.eventually(lambda: api.get("/version", **mine).status == 401)
    review = api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": mine})
    assert not review["status.authenticated"]
