"""Namespaces: what there is, how they come, how they go."""

from contract_client import Api


def test_the_first_ones(api: Api) -> None:
    listed = api.get("/api/v1/namespaces").json
    names = {item["metadata"]["name"] for item in listed["items"]}
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= names


def test_a_new_namespace_has_its_label_finalizer_and_phase(api: Api) -> None:
    name = api.name()
    made = api.make("/api/v1/namespaces", {"metadata": {"name": name}})
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}


def test_its_default_service_account(api: Api, ns: str) -> None:
    api.eventually(lambda: api.get(f"/api/v1/namespaces/{ns}/configmaps/kube-root-ca.crt").status == 200)
    account = f"/api/v1/namespaces/{ns}/serviceaccounts/default"
    first = api.get(account)["metadata.uid"]
    api.delete(account)
    api.eventually(lambda: api.get(account)["metadata.uid"] not in (None, first))


def test_creating_in_a_missing_one(api: Api) -> None:
    answer = api.post("/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}})
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'namespaces "nowhere" not found',
        "reason": "NotFound",
        "details": {"name": "nowhere", "kind": "namespaces"},
        "code": 404,
    }


def test_it_goes_with_all_that_it_holds(api: Api, ns: str) -> None:
    maps = f"/api/v1/namespaces/{ns}/configmaps"
    api.make(maps, {"metadata": {"name": "a"}})
    answer = api.delete(f"/api/v1/namespaces/{ns}")
    assert (answer.status, answer["status.phase"]) == (200, "Terminating")
    assert answer["metadata.deletionTimestamp"]
    api.eventually(lambda: api.get(f"/api/v1/namespaces/{ns}").status == 404)
    assert api.get(f"{maps}/a").status == 404


def test_it_waits_for_finalizers_within(api: Api, ns: str) -> None:
    maps = f"/api/v1/namespaces/{ns}/configmaps"
    api.make(maps, {"metadata": {"name": "a", "finalizers": ["example.com/a"]}})
    api.delete(f"/api/v1/namespaces/{ns}")
    api.eventually(lambda: api.get(f"{maps}/a")["metadata.deletionTimestamp"])
    answer = api.post(maps, {"metadata": {"name": "b"}})
    assert (answer.status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        f'configmaps "b" is forbidden: unable to create new content in namespace {ns} because it is being terminated'
    )
    assert answer["details.causes.0.reason"] == "NamespaceTerminating"
    api.eventually(lambda: api.get(f"/api/v1/namespaces/{ns}")["status.conditions"])
    types = {one["type"] for one in api.get(f"/api/v1/namespaces/{ns}")["status.conditions"]}
    assert "NamespaceFinalizersRemaining" in types
    api.patch(f"{maps}/a", {"metadata": {"finalizers": None}})
    api.eventually(lambda: api.get(f"/api/v1/namespaces/{ns}").status == 404)


def test_its_own_finalizers(api: Api) -> None:
    name = api.name()
    path = f"/api/v1/namespaces/{name}"
    api.make("/api/v1/namespaces", {"metadata": {"name": name, "finalizers": ["example.com/a"]}})
    api.delete(path)
    api.eventually(lambda: api.get(path)["spec"] == {})
    assert api.get(path).status == 200
    api.patch(path, {"metadata": {"finalizers": None}})
    api.eventually(lambda: api.get(path).status == 404)


def test_finalize(api: Api) -> None:
    name = api.name()
    made = api.make("/api/v1/namespaces", {"metadata": {"name": name}})
    made["spec"]["finalizers"] = ["kubernetes", "example.com/a"]
    answer = api.put(f"/api/v1/namespaces/{name}/finalize", made)
    assert (answer.status, answer["spec.finalizers"]) == (200, ["kubernetes", "example.com/a"])
    answer.json["spec"]["finalizers"] = ["kubernetes"]
    assert api.put(f"/api/v1/namespaces/{name}", answer.json)["spec.finalizers"] == ["kubernetes", "example.com/a"]


def test_its_label_stays(api: Api, ns: str) -> None:
    answer = api.patch(f"/api/v1/namespaces/{ns}", {"metadata": {"labels": None}})
    assert answer["metadata.labels"] == {"kubernetes.io/metadata.name": ns}
