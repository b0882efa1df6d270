"""Patches of writes: which writes, which parts, which are refused, and which parts stay."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patch_fakes import HERE, MARKS, WIDGETS, context, down, host_copy, made, patcher, report, up, widget

from syncer.api import (
    ConfigError,
    Decision,
    Obj,
    Patch,
    Patches,
    Refused,
    Side,
    Write,
    apply,
    bind,
    delete,
    merge,
    set_conditions,
    skip,
)
from syncer.translate.patches import Patcher


def refused(*patches: Obj, spec: Obj | None = None) -> str:
    with pytest.raises(Refused) as caught:
        down(*patches, spec=spec)
    assert caught.value.reason == "PatchFailed"
    return str(caught.value)


# -- which writes ----------------------------------------------------------------------------------

NAMED = {"op": "add", "path": "/spec/patched", "value": True}


def test_decision_without_patches_is_the_very_same() -> None:
    decision = apply(host=host_copy(widget()))
    assert patcher().apply(decision, ctx=context(), virtual=widget(), host=None) is decision


def test_down_is_for_the_host_and_up_for_the_virtual_side() -> None:
    decision = apply(host=host_copy(widget()), virtual=report({"ready": 1}), reason="because").look_again(5)
    patches = patcher(down=[NAMED], up=[{"path": "status.ready", "cel": "value + 1"}])
    result = made(patches, decision, virtual=widget(), host=host_copy(widget()))
    host, virtual = result.writes
    assert (host.obj["spec"], virtual.obj["status"]) == ({"patched": True}, {"ready": 2})
    assert (result.reason, result.after) == ("because", 5)


@pytest.mark.parametrize(
    "decision",
    [
        delete(host=host_copy(widget()), virtual=widget(), reason="gone"),
        bind(virtual=widget(), node="n"),
        set_conditions(host=host_copy(widget())),
        apply(host=host_copy(widget()), resource=WIDGETS),
        apply(virtual=widget()),
        skip("nothing to do"),
    ],
)
def test_patches_change_no_other_write(decision: Decision) -> None:
    result = patcher(down=[NAMED]).apply(decision, ctx=context(), virtual=widget(), host=None)
    assert result is decision


def test_write_keeps_its_other_fields() -> None:
    decision = apply(host=host_copy(widget()), exact=("data",), create_only=True)
    [write] = made(patcher(down=[NAMED]), decision, virtual=widget()).writes
    assert write == replace(decision.writes[0], obj=write.obj)


def test_patches_follow_one_another() -> None:
    first = {"op": "add", "path": "/spec/a", "value": ["x"]}
    assert down(first, {"op": "copy", "from": "/spec/a/0", "path": "/spec/b"})["spec"] == {"a": ["x"], "b": "x"}


@given(st.dictionaries(st.sampled_from("abc"), st.integers() | st.lists(st.integers(), max_size=2), max_size=3))
def test_value_of_a_patch_is_never_changed_by_a_later_one(spec: Obj) -> None:
    patches = Patches.model_validate(
        {
            "down": [
                {"op": "add", "path": "/spec/a", "value": {"b": []}},
                {"op": "add", "path": "/spec/a/b/-", "value": 1},
            ]
        }
    )
    made_of = Patcher(patches, section="toHost.widgets", find=lambda name: None)
    for _ in range(2):
        [write] = made(made_of, apply(host=host_copy(widget(spec))), virtual=widget(spec)).writes
        assert write.obj["spec"] == {**spec, "a": {"b": [1]}}
    assert patches.down[0].value == {"b": []}


# -- which parts of a write ------------------------------------------------------------------------


def test_report_of_the_status_gets_no_other_part() -> None:
    patches: list[Obj] = [{"path": "spec.x", "cel": "'y'"}, {"op": "add", "path": "/spec/z", "value": 1}]
    assert up(*patches, status={"ready": 1}) == report({"ready": 1})


def test_report_may_get_labels_and_annotations() -> None:
    patched = up({"op": "add", "path": "/metadata/annotations/example.org~1seen", "value": "yes"}, status={})
    assert patched["metadata"]["annotations"] == {"example.org/seen": "yes"}


def test_whole_write_gets_parts_that_it_lacks() -> None:
    virtual = widget()
    whole = host_copy(virtual)
    del whole["spec"]
    [write] = made(patcher(down=[{"path": "spec.a.b", "cel": "'c'"}]), apply(host=whole), virtual=virtual).writes
    assert write.obj["spec"] == {"a": {"b": "c"}}


def test_merge_gets_the_patches_of_its_fields_but_not_of_its_metadata() -> None:
    """Its metadata is the live object's, patched when it was written, where a removal finds nothing to remove."""
    patches = patcher(
        down=[
            {"path": "spec.parts[].image", "cel": "'mirror/' + value"},
            {"op": "remove", "path": "/metadata/annotations/gone"},
            {"op": "add", "path": "/metadata/labels/added", "value": "x"},
            {"op": "replace", "path": "/spec/other", "value": 1},
        ]
    )
    live = host_copy(widget({"parts": [{"image": "mirror/a"}], "other": 1}))
    wanted = {**live, "spec": {"parts": [{"image": "b"}]}}
    [write] = made(patches, merge(host=wanted, subresource="parts"), virtual=widget(), host=live).writes
    assert write.obj == {**live, "spec": {"parts": [{"image": "mirror/b"}]}}
    assert write.subresource == "parts"


RUNNING = [{"name": "c", "image": "mirror/app:1", "args": ["a", "--more"]}]


def changed(*patches: Obj, spec: Obj, live: Obj | None = None) -> Obj:
    """Return the change of a running Pod, after the patches: the write says only labels,
    annotations and ``spec``.
    """
    virtual = widget({"containers": [{"name": "c", "image": "app:2", "args": ["a"]}]})
    host = {**host_copy(virtual), "spec": live or {"containers": RUNNING, "priority": 0}}
    decision = apply(host={**host_copy(virtual), "spec": spec}, partial=True)
    [write] = made(patcher(down=patches), decision, virtual=virtual, host=host).writes
    return write.obj


PARTIAL: list[Obj] = [
    {"path": "spec.containers[].image", "cel": "'mirror/' + value"},
    {"path": "spec.containers[].args", "cel": "value + ['--more']"},
    {"path": "spec.priorityClassName", "cel": "'low'"},
    {"op": "add", "path": "/spec/containers/-", "value": {"name": "sidecar"}},
    {"op": "add", "path": "/spec/containers/0", "value": {"name": "first"}},
    {"op": "add", "path": "/spec/containers/1/workingDir", "value": "/"},
    {"op": "add", "path": "/metadata/labels/team", "value": "red"},
    {"op": "remove", "path": "/spec/priority"},
]


def test_running_pod_is_patched_only_where_it_changes() -> None:
    patched = changed(*PARTIAL, spec={"containers": [{**RUNNING[0], "image": "app:2"}]})
    assert patched["spec"] == {"containers": [{"name": "c", "image": "mirror/app:2", "args": ["a", "--more"]}]}
    assert patched["metadata"]["labels"] == {"app": "web", "team": "red", **MARKS}


def test_change_of_labels_alone_gets_no_spec() -> None:
    assert changed(*PARTIAL, spec={})["spec"] == {}


def test_pod_that_is_made_is_patched_whole() -> None:
    virtual = widget({"containers": [{"name": "c", "image": "app:1", "args": ["a"]}], "priority": 0})
    [write] = made(patcher(down=PARTIAL), apply(host=host_copy(virtual), partial=True), virtual=virtual).writes
    assert write.obj["spec"] == {
        "containers": [{"name": "first"}, {**RUNNING[0], "workingDir": "/"}, {"name": "sidecar"}],
        "priorityClassName": "low",
    }


# -- CEL at a path ---------------------------------------------------------------------------------


def test_cel_gets_written_object_other_object_and_context() -> None:
    spec = {"a": 1}
    text = "[self.kind, self.metadata.name, other.metadata.name, context.name, context.namespace, context.cluster]"
    assert down({"path": "spec.b", "cel": text}, spec=spec)["spec"]["b"] == [
        "Widget",
        "w-x-shop-x-vc",
        "w",
        "w",
        "shop",
        "vc",
    ]
    expression = "context.identity + '/' + context.hostNamespace + '/' + other.metadata.name"
    assert up({"path": "status.at", "cel": expression}, status={})["status"]["at"] == "vc.vc-ns/vc-ns/w-x-shop-x-vc"


def test_cel_at_every_path_reads_the_object_before_the_patch() -> None:
    spec = {"cs": [{"n": 1}, {"n": 2}, {}], "first": 1}
    patch = {"path": "spec.cs[].n", "cel": "(value == null ? 0 : value) + self.spec.cs[0].n"}
    assert down(patch, spec=spec)["spec"]["cs"] == [{"n": 2}, {"n": 3}, {"n": 1}]
    last = {"path": "spec.cs[].n", "cel": "self.spec.cs[1].n + value"}
    assert down(last, spec={"cs": [{"n": 1}, {"n": 2}]})["spec"]["cs"] == [{"n": 3}, {"n": 4}]
    gone = {"path": "spec.cs[]", "cel": "has(value.n) && value.n > 1 ? value : null"}
    assert down(gone, spec=spec)["spec"]["cs"] == [{"n": 2}]


def test_null_removes_the_field_and_adds_none() -> None:
    assert down({"path": "spec.a", "cel": "null"}, spec={"a": 1, "b": 2})["spec"] == {"b": 2}
    assert down({"path": "spec.x.y", "cel": "null"}, spec={"b": 2})["spec"] == {"b": 2}


def test_pointer_leads_to_a_name_with_dots() -> None:
    patched = down({"path": "/metadata/annotations/example.org~1team", "cel": "context.namespace"})
    assert patched["metadata"]["annotations"]["example.org/team"] == "shop"


def test_expressions_are_compiled_when_the_patcher_is_made() -> None:
    with pytest.raises(ConfigError, match=r"sync\.toHost\.widgets\.patches\.up\[1\]\.cel: is not a CEL expression"):
        patcher(up=[{"path": "spec.a", "cel": "value"}, {"path": "spec.a", "cel": "value +"}])


# -- what fails ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"op": "replace", "path": "/spec/b", "value": 1}, "(replace /spec/b): there is nothing at /spec/b"),
        ({"op": "test", "path": "/spec/a", "value": 1}, "(test /spec/a): the test does not hold"),
        ({"path": "spec.a", "cel": "value + 1"}, "(cel spec.a): it has no such operation: string + int"),
        ({"path": "spec.a.b", "cel": "1"}, "(cel spec.a.b): /spec/a is neither a mapping nor a list"),
        ({"path": "spec.a[].b", "cel": "1"}, "(cel spec.a[].b): there is no list at /spec/a"),
        ({"path": "spec.a", "cel": "b'x'"}, "(cel spec.a): the result has a bytes in it, which is not JSON"),
    ],
)
def test_patch_that_fails_is_named_with_the_reason_and_without_contents(patch: Obj, expected: str) -> None:
    message = refused({"op": "add", "path": "/spec/c", "value": 1}, patch, spec={"a": "hunter2"})
    assert message == f"{HERE}.down[1] {expected}"
    assert "hunter2" not in message


LABELS = "would not be a mapping of text to text"
MARK = "it would change a mark below vsyncer.dev/ in"


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"path": "metadata.labels", "cel": "null"}, f"{MARK} /metadata/labels"),
        ({"path": "metadata.labels", "cel": "{'app': 'web'}"}, f"{MARK} /metadata/labels"),
        ({"op": "replace", "path": "/metadata/annotations", "value": {}}, f"{MARK} /metadata/annotations"),
        ({"op": "add", "path": "/metadata/labels/vsyncer.dev~1cluster", "value": "x"}, f"{MARK} /metadata/labels"),
        ({"op": "add", "path": "/metadata/labels/n", "value": 1}, f"/metadata/labels {LABELS}"),
        ({"path": "metadata.annotations", "cel": "'x'"}, f"/metadata/annotations {LABELS}"),
    ],
)
def test_marks_of_a_copy_stay(patch: Obj, expected: str) -> None:
    assert refused(patch).endswith(f"): {expected}")


def test_patch_puts_no_mark_on_a_tenants_object() -> None:
    with pytest.raises(Refused, match="would change a mark"):
        up({"op": "add", "path": "/metadata/labels/vsyncer.dev~1cluster", "value": "vc.vc-ns"}, status={})


def test_labels_may_be_rewritten_as_long_as_the_marks_stay() -> None:
    patched = down({"op": "remove", "path": "/metadata/labels/app"}, {"op": "test", "path": "/kind", "value": "Widget"})
    assert patched["metadata"]["labels"] == MARKS


# -- what is refused before any object is there ----------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/apiVersion", "/kind", "/metadata", *(f"/metadata/{name}" for name in ("name", "namespace/x", "uid"))],
)
def test_identity_of_an_object_is_not_for_patches(path: str) -> None:
    for patch in ({"op": "add", "path": path, "value": 1}, {"op": "remove", "path": path}, {"path": path, "cel": "1"}):
        with pytest.raises(ValueError, match="which says what the object is; no patch may"):
            Patch.model_validate(patch)
    with pytest.raises(ValueError, match="no patch may"):
        Patch.model_validate({"op": "move", "from": path, "path": "/spec/x"})
    assert Patch.model_validate({"op": "copy", "from": path, "path": "/spec/x"}).from_steps[0] in path


def test_copy_operation_reads_the_virtual_object() -> None:
    assert down({"op": "copy", "from": "/metadata/name", "path": "/spec/id"})["spec"] == {"id": "w-x-shop-x-vc"}


def test_object_that_begins_on_host_is_named_by_own_key() -> None:
    """An object without a virtual one (what begins on the host) is named by its own key."""
    obj: dict[str, Any] = {**widget(), "metadata": {**widget()["metadata"], "labels": dict(MARKS)}}
    decision = Decision((Write(Side.VIRTUAL, apply(virtual=obj).writes[0].verb, obj),))
    patch = {"path": "spec.of", "cel": "context.namespace + '/' + context.name"}
    [write] = made(patcher(up=[patch]), decision, host=host_copy(widget())).writes
    assert write.obj["spec"] == {"of": "shop/w"}


# -- quantities ------------------------------------------------------------------------------------


def test_quantities_of_built_in_kinds_are_written_as_an_api_server_writes_them() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "vc-ns", "annotations": {"a": "1000m"}},
        "spec": {
            "containers": [{"name": "c", "resources": {"limits": {"memory": "1024Mi"}}, "args": ["1000m"]}],
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "2048Ki"}}, {"name": "w"}],
        },
    }
    patches: list[Obj] = [
        {"op": "add", "path": "/spec/containers/0/resources/limits/cpu", "value": "1000m"},
        {"op": "add", "path": "/spec/overhead", "value": {"cpu": 0.5}},
    ]
    [write] = patcher(down=patches).apply(apply(host=pod), ctx=context(), virtual=widget(), host=None).writes
    spec = write.obj["spec"]
    limits = {"memory": "1Gi", "cpu": "1"}
    assert spec["containers"] == [{"name": "c", "resources": {"limits": limits}, "args": ["1000m"]}]
    assert (spec["overhead"], spec["volumes"][0]) == ({"cpu": "500m"}, {"name": "v", "emptyDir": {"sizeLimit": "2Mi"}})
    assert write.obj["metadata"] == pod["metadata"]


def test_quantities_of_other_kinds_stay_as_they_are_patched() -> None:
    patch = {"op": "add", "path": "/spec/resources", "value": {"limits": {"cpu": "1000m"}}}
    assert down(patch)["spec"] == {"resources": {"limits": {"cpu": "1000m"}}}


def test_value_of_a_type_that_no_api_server_accepts_is_left_to_it() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x"}, "spec": {"resources": {}}}
    for value in ({"requests": ["1"]}, {"requests": {"storage": [1], "x": True}}, "1000m", None):
        patch = {"op": "add", "path": "/spec/resources", "value": value}
        [write] = patcher(down=[patch]).apply(apply(host=claim), ctx=context(), virtual=widget(), host=None).writes
        assert write.obj["spec"] == {"resources": value}
