"""Drift from the needed calls: the class, the paths, old and new values, and the manager."""

from typing import Any

import pytest

from syncer.api import Obj, Resource, Side
from syncer.api.decision import Token, Verb, Write
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.drift import (
    changed_by,
    differences,
    drifts,
    is_hidden,
    other_owner,
    path_text,
    value_text,
)
from syncer.engine.reconcile.patch_fields import Change
from syncer.resources.kinds import CONFIG_MAPS, PODS, SECRETS, SERVICES
from syncer.testing.merge import merged
from syncer.translate.three_way import ABSENT

MARK = "vsyncer.dev/virtual-uid"
LIVE: Obj = {
    "metadata": {"name": "web", "namespace": "vc-ns", "uid": "u1", "labels": {"tier": "gold"}},
    "spec": {"type": "ClusterIP", "ports": [{"port": 8080, "protocol": "TCP"}], "selector": {"app": "x"}},
    "status": {"conditions": [{"type": "Ready", "status": "False"}]},
}


def found(
    call: Call, live: Obj | None = LIVE, *, side: Side = Side.HOST, owner: Change | None = None
) -> dict[str, Any]:
    write = Write(side, Verb.APPLY, LIVE)
    made = drifts(write, [call], live, resource=SERVICES, owner=owner)
    assert all(one.side is side and str(one.key) == "vc-ns/web" for one in made)
    return {one.kind: [(path_text(each.path), each.wanted, each.found) for each in one.changes] for one in made}


def test_call_determines_the_drift_class() -> None:
    assert found(Call(Operation.CREATE, {}), None) == {"missing": []}
    assert found(Call(Operation.DELETE, LIVE)) == {"orphan": []}
    owner = Change(("metadata", "annotations", MARK), "new", "old")
    assert found(Call(Operation.DELETE, LIVE), owner=owner) == {
        "wrongOwner": [('metadata.annotations["vsyncer.dev/virtual-uid"]', "new", "old")]
    }
    bind = Call(Operation.BIND, {"target": {"name": "n1"}})
    assert found(bind, side=Side.VIRTUAL) == {"status": [("spec.nodeName", "n1", ABSENT)]}
    conditions = Call(Operation.CONDITIONS, {"status": {"conditions": [{"type": "Gate", "status": "True"}]}})
    assert found(conditions) == {"status": [("status.conditions.Gate", {"type": "Gate", "status": "True"}, ABSENT)]}


def test_patch_may_be_drift_of_several_classes() -> None:
    guard = {"uid": "u1", "resourceVersion": "7"}
    body = {
        "metadata": {**guard, "labels": {"tier": None, "a.b/c": "1"}},
        "spec": {"ports": [{"port": 80}], "type": "ClusterIP", "selector": {"app": None, "web": "y"}},
        "status": {"loadBalancer": {}},
    }
    assert found(Call(Operation.PATCH, body)) == {
        "metadata": [("metadata.labels.tier", ABSENT, "gold"), ('metadata.labels["a.b/c"]', "1", ABSENT)],
        "field": [
            ("spec.ports[0].port", 80, 8080),
            ("spec.selector.app", ABSENT, "x"),
            ("spec.selector.web", "y", ABSENT),
        ],
        "status": [("status.loadBalancer", {}, ABSENT)],
    }


def test_patch_with_tokens_is_drift_without_paths() -> None:
    write = Write(Side.HOST, Verb.APPLY, LIVE, tokens=(Token("token", "default", "shop", 600),))
    patch = Call(Operation.PATCH, {"metadata": {"uid": "u1"}})
    [drift] = drifts(write, [patch], LIVE, resource=SECRETS, owner=None)
    assert (drift.kind, drift.changes) == ("field", ())
    assert drifts(write, [], LIVE, resource=SECRETS, owner=None) == []


def test_notes_are_drift_only_without_other_changes() -> None:
    note = {"metadata": {"annotations": {"vsyncer.dev/fields": "{}"}}}
    write = Write(Side.HOST, Verb.APPLY, LIVE)
    for body, kinds in ((merged(note, {"spec": {"type": "x"}}), ["field"]), (note, ["metadata"])):
        made = drifts(
            write, [Call(Operation.PATCH, body)], LIVE, resource=SERVICES, owner=None, notes=("vsyncer.dev/fields",)
        )
        assert [one.kind for one in made] == kinds


@pytest.mark.parametrize("wanted", [[], [{"port": 80}, {"port": 81}], ["text"]])
def test_list_with_other_elements_is_one_change(wanted: list[Any]) -> None:
    assert list(differences({"spec": {"ports": wanted}}, LIVE)) == [
        Change(("spec", "ports"), wanted, LIVE["spec"]["ports"])
    ]


def test_null_for_a_missing_field_is_no_change() -> None:
    assert list(differences({"spec": {"gone": None}}, LIVE)) == []


def test_other_owner_follows_from_the_uid_mark_of_both() -> None:
    virtual = {"metadata": {"uid": "now"}}
    copy = {"metadata": {"annotations": {MARK: "then"}}}
    path = ("metadata", "annotations", MARK)
    assert other_owner(virtual, copy, uid_mark=MARK) == Change(path, "now", "then")
    assert other_owner(virtual, {"metadata": {}}, uid_mark=MARK) == Change(path, "now", ABSENT)
    assert other_owner(virtual, {"metadata": {"annotations": {MARK: "now"}}}, uid_mark=MARK) is None
    assert other_owner(None, copy, uid_mark=MARK) is None
    assert other_owner(virtual, None, uid_mark=MARK) is None


# -- who -------------------------------------------------------------------------------------------

#: As a kube-apiserver answers after `vsyncer` has created a Service, `kubectl edit` has changed a port and a label, and
#: a controller has written its status.
MANAGED: Obj = {
    "metadata": {
        "name": "web",
        "labels": {"tier": "gold", "app.kubernetes.io/name": "web"},
        "finalizers": ["a.b/c"],
        "managedFields": [
            {
                "manager": "vsyncer",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-01T12:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {".": {}, "f:app.kubernetes.io/name": {}}},
                    "f:spec": {
                        "f:ports": {
                            ".": {},
                            'k:{"port":443,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}},
                        },
                        "f:type": {},
                    },
                },
            },
            {
                "manager": "kubectl-edit",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-01T12:05:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:tier": {}}, "f:finalizers": {".": {}, 'v:"a.b/c"': {}}},
                    "f:spec": {
                        "f:ports": {'k:{"port":8080,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}}},
                        "f:externalIPs": {},
                    },
                },
            },
            {
                "manager": "cloud-controller",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-01T12:06:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:status": {"f:loadBalancer": {"f:ingress": {}}}},
                "subresource": "status",
            },
        ],
    },
    "spec": {
        "type": "ClusterIP",
        "externalIPs": ["192.0.2.1"],
        "ports": [{"port": 443, "protocol": "TCP"}, {"port": 8080, "protocol": "TCP"}],
    },
    "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.2"}]}},
}


@pytest.mark.parametrize(
    ("path", "who"),
    [
        (("spec", "ports", 1, "port"), "kubectl-edit"),
        (("spec", "ports", 0, "port"), None),
        (("spec", "type"), None),
        (("spec", "externalIPs"), "kubectl-edit"),
        (("spec", "externalIPs", 0), "kubectl-edit"),
        (("metadata", "labels", "tier"), "kubectl-edit"),
        (("metadata", "labels", "app.kubernetes.io/name"), None),
        (("metadata", "finalizers", 0), "kubectl-edit"),
        (("status", "loadBalancer", "ingress", 0, "ip"), "cloud-controller"),
        (("spec", "unheard"), None),
    ],
)
def test_manager_is_read_from_the_managed_fields(path: tuple[str | int, ...], who: str | None) -> None:
    manager = changed_by(MANAGED, path)
    assert (manager.name if manager else None) == who


def test_holders_have_a_time_and_objects_without_managed_fields_have_none() -> None:
    manager = changed_by(MANAGED, ("metadata", "labels", "tier"))
    assert manager
    assert manager.time == "2026-01-01T12:05:00Z"
    assert changed_by(LIVE, ("spec", "type")) is None


# -- for people ------------------------------------------------------------------------------------


def test_value_texts_are_short_and_name_absence() -> None:
    assert value_text(80) == "80"
    assert value_text("a b") == '"a b"'
    assert value_text(None) == "null"
    assert value_text(ABSENT) == "(absent)"
    assert len(value_text("x" * 1000)) < 160
    assert value_text("x" * 1000).endswith("(1002 characters)")


@pytest.mark.parametrize(
    ("resource", "path", "hidden"),
    [
        (SECRETS, ("data", "password"), True),
        (SECRETS, ("data",), True),
        (SECRETS, ("stringData", "password"), True),
        (SECRETS, ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"), True),
        (SECRETS, ("metadata", "annotations"), True),
        (SECRETS, ("metadata", "annotations", "vsyncer.dev/virtual-name"), False),
        (SECRETS, ("metadata", "labels", "tier"), False),
        (SECRETS, ("type",), False),
        (SECRETS, ("immutable",), False),
        (CONFIG_MAPS, ("data", "color"), False),
        (PODS, ("spec",), False),
        (Resource("example.org/v1", "Secret", "secrets"), ("data",), False),
    ],
)
def test_contents_of_a_secret_are_never_shown(resource: Resource, path: tuple[str, ...], hidden: bool) -> None:
    assert is_hidden(resource, path, "vsyncer.dev") is hidden


def test_hidden_value_is_shown_by_its_size() -> None:
    assert value_text("c2VjcmV0", hidden=True) == "(8 bytes)"
    assert value_text({"a": "c2VjcmV0", "b": "eA=="}, hidden=True) == "(12 bytes)"
    assert value_text(ABSENT, hidden=True) == "(absent)"
