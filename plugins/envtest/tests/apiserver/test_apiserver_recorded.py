"""Objects of a real API server, recorded by `record_apiserver.py`: ours must store the same objects."""

import json
from pathlib import Path
from typing import Any

import pytest

from kube_envtest.apiserver.apply import track_update
from kube_envtest.apiserver.defaults import DecodeError, default
from kube_envtest.apiserver.prepare import prepare
from kube_envtest.apiserver.validation import validate_create

Obj = dict[str, Any]

FOLDER = Path(__file__).parent / "recorded"
CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingWebhookConfiguration",
}


def recorded(name: str) -> list[Any]:
    cases = json.loads((FOLDER / name).read_text())
    return [pytest.param(case, id=f"{case['sent']['kind']}-{index}") for index, case in enumerate(cases)]


def read(sent: Obj) -> Obj:
    obj = default(sent["kind"], sent)
    if sent["kind"] not in CLUSTER_WIDE:
        obj["metadata"].setdefault("namespace", "recorded")
    return obj


@pytest.mark.parametrize("case", recorded("creates.json"))
def test_a_created_object_is_stored_as_on_the_real_server(case: Obj) -> None:
    obj = read(case["sent"])
    assert validate_create(obj["kind"], obj) == []
    obj = track_update(None, obj, manager="recorder", api_version=obj["apiVersion"], now="")
    for entry in obj["metadata"].get("managedFields", ()):
        del entry["time"]
    if obj["kind"] == "Job":
        obj["metadata"]["uid"] = "UID"
    obj = prepare(obj["kind"], obj, allocate_cluster_ip=lambda _: ["IP"])
    obj["metadata"].pop("uid", None)
    assert obj == case["stored"]


@pytest.mark.parametrize("case", recorded("refusals.json"))
def test_an_object_is_refused_as_the_real_server_refuses_it(case: Obj) -> None:
    if case["status"] == 400:
        with pytest.raises(DecodeError) as caught:
            read(case["sent"])
        assert str(caught.value) == case["message"]
        return
    causes = [error.cause for error in validate_create(case["sent"]["kind"], read(case["sent"]))]
    assert sorted(causes, key=lambda one: (one["field"], one["message"])) == case.get("causes", [])
