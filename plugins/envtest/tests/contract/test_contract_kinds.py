"""Ways of single kinds: secrets, events, deployments."""

from typing import Any

from contract_client import Api, config_map, maps

Obj = dict[str, Any]


def test_values_of_the_wrong_type(api: Api, ns: str) -> None:
    answer = api.post(maps(ns), {"metadata": {"name": "a"}, "data": {"x": 1}})
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    assert "json: cannot unmarshal number into Go struct field ConfigMap.data of type string" in answer["message"]
    answer = api.post(f"/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "a"}, "data": {"x": "?"}})
    assert (answer.status, answer["reason"]) == (400, "BadRequest")


def test_immutable_ones(api: Api, ns: str) -> None:
    api.make(maps(ns), {**config_map("a", x="1"), "immutable": True})
    answer = api.patch(maps(ns, "a"), {"data": {"x": "2"}})
    assert answer.status == 422
    assert answer["message"].endswith("data: Forbidden: field is immutable when `immutable` is set")
    assert api.patch(maps(ns, "a"), {"metadata": {"labels": {"x": "y"}}}).status == 200


def test_secrets(api: Api, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/secrets"
    made = api.make(path, {"metadata": {"name": "a"}, "stringData": {"x": "1"}, "data": {"y": "Mg=="}})
    assert (made["type"], made["data"]) == ("Opaque", {"x": "MQ==", "y": "Mg=="})
    assert "stringData" not in made
    answer = api.patch(f"{path}/a", {"type": "other"})
    assert (answer.status, answer["details.causes.0.field"]) == (422, "type")


def test_both_groups_of_events_are_one(api: Api, ns: str) -> None:
    core, own = f"/api/v1/namespaces/{ns}/events", f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    about = {"kind": "Pod", "namespace": ns, "name": "p", "apiVersion": "v1"}
    body = {"metadata": {"name": "a"}, "involvedObject": about, "reason": "R", "message": "hello", "type": "Normal"}
    api.make(core, {**body, "source": {"component": "c"}, "count": 3, "firstTimestamp": "2026-01-01T00:00:00Z"})
    other = api.get(f"{own}/a").json
    assert (other["apiVersion"], other["note"], other["deprecatedCount"]) == ("events.k8s.io/v1", "hello", 3)
    assert other["regarding"] == about
    new = {
        "metadata": {"name": "b"},
        "regarding": about,
        "reason": "R",
        "note": "new",
        "type": "Normal",
        "action": "Test",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
    }
    api.make(own, new)
    found = api.get(f"{core}/b").json
    assert (found["message"], found["reportingComponent"]) == ("new", "example.com/c")
    listed = api.get(f"{core}?fieldSelector=involvedObject.name=p,reason=R").json
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]


def test_generation(api: Api, ns: str) -> None:
    path = f"/apis/apps/v1/namespaces/{ns}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "one", "image": "x"}]}}
    body = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    made = api.make(path, {**body, "status": {"replicas": 9}})
    assert (made["metadata"]["generation"], made["status"]) == (1, {})
    assert api.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})["metadata.generation"] == 1
    assert api.patch(f"{path}/a", {"spec": {"replicas": 3}})["metadata.generation"] == 2
    answer = api.patch(f"{path}/a/status", {"status": {"replicas": 3}, "spec": {"replicas": 9}})
    assert (answer["metadata.generation"], answer["spec.replicas"], answer["status.replicas"]) == (2, 3, 3)


def test_scale(api: Api, ns: str) -> None:
    path = f"/apis/apps/v1/namespaces/{ns}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "one", "image": "x"}]}}
    made = api.make(
        path, {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    )
    scale = api.get(f"{path}/a/scale").json
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 1})
    assert scale["status"] == {"replicas": 0, "selector": "a=b"}
    assert scale["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    scale["spec"]["replicas"] = 4
    assert api.put(f"{path}/a/scale", scale)["spec"] == {"replicas": 4}
    assert api.put(f"{path}/a/scale", scale)["reason"] == "Conflict"
    assert api.get(f"{path}/a")["metadata.generation"] == 2
    assert api.patch(f"{path}/a/scale", {"spec": {"replicas": -1}}).status == 422
