"""Unknown fields: dropped, reported in a warning, or refused."""

from typing import Any

from contract_client import APPLY, STRATEGIC, Api

Obj = dict[str, Any]


def body() -> Obj:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "imag": "typo"}]},
    }
    spec = {"replica": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "lables": {}},
        "spec": spec,
        "x": 1,
    }


PATHS = ("metadata.lables", "spec.replica", "spec.template.spec.containers[0].imag", "x")


def deployments(ns: str, name: str = "") -> str:
    return f"/apis/apps/v1/namespaces/{ns}/deployments" + (f"/{name}" if name else "")


def test_unknown_fields_are_dropped_with_a_warning(api: Api, ns: str) -> None:
    answer = api.post(deployments(ns), body())
    assert answer.status == 201
    assert "replica" not in answer["spec"]
    assert "imag" not in answer["spec.template.spec.containers.0"]
    assert "x" not in answer.json
    assert answer.headers["warning"].startswith('299 - "unknown field \\"')
    quiet = api.post(f"{deployments(ns)}?fieldValidation=Ignore&dryRun=All", {**body(), "metadata": {"name": "b"}})
    assert (quiet.status, "warning" in quiet.headers) == (201, False)


def test_unknown_fields_are_refused_where_the_client_asks_so(api: Api, ns: str) -> None:
    answer = api.post(f"{deployments(ns)}?fieldValidation=Strict", body())
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    faults = ", ".join(f'unknown field "{path}"' for path in PATHS)
    assert answer["message"] == (
        f'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: {faults}'
    )


def test_patches(api: Api, ns: str) -> None:
    api.make(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "a"}})
    path = f"/api/v1/namespaces/{ns}/configmaps/a"
    for form in (STRATEGIC, "application/merge-patch+json"):
        answer = api.patch(f"{path}?fieldValidation=Strict", {"datas": {"x": "1"}}, form)
        assert (answer.status, answer["reason"]) == (422, "Invalid")
        assert answer["message"].endswith('strict decoding error: unknown field "datas"')
        assert api.patch(path, {"datas": {"x": "1"}}, form).status == 200
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "datas": {"x": "1"}}
    answer = api.patch(f"{path}?fieldManager=m", applied, APPLY)
    assert answer.status == 500
    assert answer["message"] == (
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .datas: field not declared in schema"
    )


def test_values_of_the_wrong_type(api: Api, ns: str) -> None:
    start = 'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal '
    for spec, faults in (
        ({"replicas": "x"}, "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        (
            {"template": {"spec": {"containers": {}}}},
            "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            {"template": {"spec": {"containers": [{"name": 1}]}}},
            "number into Go struct field Container.spec.template.spec.containers.name of type string",
        ),
        ({"paused": "yes"}, "string into Go struct field DeploymentSpec.spec.paused of type bool"),
    ):
        answer = api.post(deployments(ns), {"metadata": {"name": "a"}, "spec": spec})
        assert (answer.status, answer["message"]) == (400, start + faults)
