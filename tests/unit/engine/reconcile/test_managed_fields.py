"""The manager of a field, read from managedFields as API servers write them."""

from typing import Any

import pytest

from syncer.api import Obj
from syncer.engine.reconcile.managed_fields import FieldManager, PathStep, holders, writers

FIELDS: dict[str, Any] = {
    "vsyncer": {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:example.org/team": {}}},
        "f:spec": {
            "f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:targetPort": {}}},
            "f:selector": {},
            "f:type": {},
        },
    },
    "kubectl-edit": {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"example.org/wait"': {}}},
        "f:spec": {
            "f:externalTrafficPolicy": {},
            "f:ports": {'k:{"port":443,"protocol":"TCP"}': {".": {}, "f:port": {}}},
        },
    },
    "proxy": {"f:status": {"f:loadBalancer": {"f:ingress": {}}, "f:conditions": {"i:1": {}}}},
}
TIMES = {"vsyncer": "2026-01-01T00:00:05Z", "kubectl-edit": "2026-01-01T00:00:09Z", "proxy": "2026-01-01T00:00:07Z"}


def service() -> Obj:
    entries = [
        {
            "manager": name,
            "operation": "Update",
            "apiVersion": "v1",
            "time": TIMES[name],
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            **({"subresource": "status"} if name == "proxy" else {}),
        }
        for name, fields in FIELDS.items()
    ]
    return {
        "metadata": {"name": "web", "finalizers": ["example.org/wait"], "managedFields": entries},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 443, "protocol": "TCP"}]},
        "status": {"conditions": [{}, {}]},
    }


@pytest.mark.parametrize(
    ("path", "who"),
    [
        (("spec", "type"), ["vsyncer"]),
        (("spec", "externalTrafficPolicy"), ["kubectl-edit"]),
        (("metadata", "labels", "example.org/team"), ["vsyncer"]),
        (("metadata", "labels", "other"), []),
        (("spec", "selector", "app"), ["vsyncer"]),
        (("spec", "ports"), ["kubectl-edit", "vsyncer"]),
        (("spec", "ports", 0, "port"), ["vsyncer"]),
        (("spec", "ports", 0, "name"), []),
        (("spec", "ports", 1), ["kubectl-edit"]),
        (("spec", "ports", 7), []),
        (("metadata", "finalizers", 0), ["kubectl-edit"]),
        (("status", "loadBalancer", "ingress", 0, "ip"), ["proxy"]),
        (("status", "conditions", 1), ["proxy"]),
        (("status", "conditions", 0), []),
        (("status",), ["proxy"]),
        (("data", "x"), []),
        ((), ["kubectl-edit", "proxy", "vsyncer"]),
    ],
    ids=str,
)
def test_holders_of_a_field(path: tuple[PathStep, ...], who: list[str]) -> None:
    assert [manager.name for manager in holders(service(), path)] == who


def test_manager_says_how_and_when_it_wrote() -> None:
    [proxy] = holders(service(), ("status", "loadBalancer"))
    assert proxy == FieldManager("proxy", "Update", "2026-01-01T00:00:07Z", "status")


def test_writers_are_ordered_with_the_latest_first() -> None:
    assert [manager.name for manager in writers(service())] == ["kubectl-edit", "proxy", "vsyncer"]


@pytest.mark.parametrize(
    "entries",
    [None, "x", [None], [{}], [{"manager": "x", "fieldsV1": []}], [{"manager": "x", "fieldsV1": {"f:spec": 7}}]],
    ids=str,
)
def test_malformed_managed_fields_have_no_managers(entries: Any) -> None:
    assert holders({"metadata": {"managedFields": entries}}, ("spec", 0, "x")) == []


@pytest.mark.parametrize("name", ["k:{", "k:7", "v:", "i:x", "k", "z:1"])
def test_element_with_an_unknown_key_has_no_manager(name: str) -> None:
    entries = [{"manager": "x", "fieldsV1": {"f:spec": {name: {}}}}]
    assert holders({"metadata": {"managedFields": entries}, "spec": [{}]}, ("spec", 0)) == []


@pytest.mark.parametrize("fields", [None, 1, "x", {"a": 1}, [1, None]])
def test_malformed_managed_fields_name_no_writer(fields: Any) -> None:
    assert writers({"metadata": {"managedFields": fields}}) == []


@pytest.mark.parametrize("answer", [[], [1], "x", {"metadata": []}])
def test_answer_that_is_no_object_has_no_writer(answer: Any) -> None:
    assert writers(answer) == []
