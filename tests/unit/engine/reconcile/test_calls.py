"""The calls that a write needs: none if the object is right, and only for fields that we set now or
before.
"""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api import FieldPath, Marks, Obj, Resource, Side, Syncer, Token, TooLarge, Verb, Write
from syncer.clusters.bodies import LARGEST
from syncer.engine.reconcile.calls import Call, Operation, exact_paths, fields_before, needed
from syncer.testing.merge import merged

MARKS = Marks()
OURS = {MARKS.cluster: "vc.vc-ns"}
#: What makes a patch hold for the object and the version only that `stored` gives.
GUARD = {"uid": "u1", "resourceVersion": "7"}


def host(*, labels: Any = None, annotations: Any = None, version: str = "", **parts: Any) -> Obj:
    """Return a host object as a syncer wants it: marked as ours."""
    metadata: Obj = {"name": "web", "namespace": "vc-ns", "labels": {**OURS, **(labels or {})}}
    if annotations:
        metadata["annotations"] = annotations
    if version:
        metadata["resourceVersion"] = version
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, **parts}


def calls(want: Obj, live: Obj | None, *exact: FieldPath, has_status: bool = True, **options: Any) -> list[Call]:
    once = options.pop("once", ())
    write = Write(Side.HOST, options.pop("verb", Verb.APPLY), want, **options)
    before = copy.deepcopy((want, live))
    found = needed(write, live, exact=exact, marks=MARKS, has_status=has_status, create_only=once)
    assert (want, live) == before, "what is given must not be changed"
    return found


def stored(obj: Obj, *, keep_status: bool = True) -> Obj:
    """Return an object as the API server has it after a create."""
    obj = copy.deepcopy(obj) if keep_status else {part: value for part, value in obj.items() if part != "status"}
    obj["metadata"] = {**obj["metadata"], "uid": "u1", "resourceVersion": "7"}
    return obj


def created(want: Obj, *exact: FieldPath, **options: Any) -> Obj:
    """Return the object that a create of this makes."""
    [call] = calls(want, None, *exact, **options)
    assert call.kind is Operation.CREATE
    return stored(call.body)


def carried_out(live: Obj, found: list[Call]) -> Obj:
    """Return the object after the calls, by RFC 7386."""
    for call in found:
        assert call.kind in (Operation.PATCH, Operation.PATCH_STATUS)
        live = merged(live, call.body)
    return live


def test_note_is_changed_only_on_the_version_that_it_was_made_for() -> None:
    """Else a label stays for ever that a patch had brought whose reply was lost: no note names it any more."""
    first = created(host(labels={"a": "1"}))
    [lost] = calls(host(labels={"b": "1"}), first)
    assert lost.body["metadata"]["resourceVersion"] == "7"
    then = carried_out(first, [lost])
    then["metadata"]["resourceVersion"] = "8"
    [late] = calls(host(labels={"c": "1"}), first)
    assert late.body["metadata"]["resourceVersion"] == "7", "must be refused, as the object has another version by now"
    [right] = calls(host(labels={"c": "1"}), then)
    assert carried_out(then, [right])["metadata"]["labels"] == {**OURS, "c": "1"}


def test_version_does_not_matter_while_the_note_stays() -> None:
    live = created(host(labels={"a": "1"}))
    [call] = calls(host(labels={"a": "2"}), live)
    assert call.body["metadata"] == {"uid": "u1", "labels": {"a": "2"}}


# -- laws ------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c.d/e"])
SCALARS = st.one_of(st.integers(0, 2), st.booleans(), st.sampled_from(["", "x", "1", "1000m", "1Gi", "1024Mi"]))
JSON = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=3))
)
TEXTS = st.dictionaries(NAMES, st.sampled_from(["x", "y"]), max_size=3)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "data": TEXTS,
        "spec": st.dictionaries(NAMES, JSON, max_size=3),
        "status": st.dictionaries(NAMES, JSON, max_size=3),
        "type": st.sampled_from(["x", "y"]),
    },
)
EXACT = st.sampled_from([(), ("data",), ("status",), ("spec.a",), ("data", "spec"), ("spec.a.b",)])


def wanted(parts: Obj, labels: Any, annotations: Any) -> Obj:
    return host(labels=labels, annotations=annotations, **parts)


WANTED = st.builds(wanted, PARTS, TEXTS, TEXTS)


@given(WANTED, WANTED, EXACT, st.booleans(), st.booleans())
def test_carried_out_and_asked_again_there_is_nothing_to_do(
    before: Obj, want: Obj, exact: tuple[str, ...], has_status: bool, partial: bool
) -> None:
    live = created(before, *exact, partial=partial)
    after = carried_out(live, calls(want, live, *exact, has_status=has_status, partial=partial))
    assert calls(want, after, *exact, has_status=has_status, partial=partial) == []


@given(WANTED, EXACT, st.booleans())
def test_created_object_needs_no_further_call(want: Obj, exact: tuple[str, ...], has_status: bool) -> None:
    assert calls(want, created(want, *exact), *exact, has_status=has_status) == []


@given(WANTED, WANTED, PARTS, TEXTS)
def test_fields_of_others_stay(before: Obj, want: Obj, parts: Obj, labels: Obj) -> None:
    """Fields of others that we neither said before nor say now."""
    foreign = {f"other.{name}": value for name, value in parts.get("spec", {}).items()}
    labels = {f"other.{name}": value for name, value in labels.items()}
    live = merged(created(before), {"spec": foreign, "metadata": {"labels": labels}})
    after = carried_out(live, calls(want, live))
    assert foreign.items() <= after.get("spec", {}).items()
    assert labels.items() <= after["metadata"]["labels"].items()


@given(WANTED, WANTED)
def test_fields_that_we_set_are_there_and_those_no_longer_set_are_not(before: Obj, want: Obj) -> None:
    after = carried_out(created(before), calls(want, created(before)))
    metadata = after["metadata"]
    assert metadata["labels"] == want["metadata"]["labels"]
    note = {MARKS.fields: metadata.get("annotations", {}).get(MARKS.fields)}
    assert {**metadata.get("annotations", {})}.items() - note.items() == (
        want["metadata"].get("annotations") or {}
    ).items()
    assert (after.get("data") or {}) == want.get("data", {})
    assert after.get("type") == want.get("type")


# -- apply, by example -----------------------------------------------------------------------------


def test_missing_object_is_created_whole_with_a_note_of_its_fields() -> None:
    want = host(labels={"app": "web"}, data={"color": "blue"}, spec={"a": {"b": 1}, "list": [1]})
    [call] = calls(want, None, "data")
    assert call.kind is Operation.CREATE
    assert fields_before(call.body, MARKS) == {"metadata": {"labels": {"app": 1}}, "spec": {"a": {"b": 1}, "list": 1}}
    assert call.body["data"] == {"color": "blue"}


def test_create_carries_no_resource_version() -> None:
    [call] = calls(host(version="3", data={}), None)
    assert "resourceVersion" not in call.body["metadata"]


def test_object_that_is_only_to_be_created_is_left_as_it_is() -> None:
    assert calls(host(data={"color": "red"}), stored(host(data={"color": "blue"})), create_only=True) == []


def test_patch_has_only_the_difference_and_the_uid() -> None:
    live = created(host(data={"color": "blue", "size": "3"}))
    [call] = calls(host(data={"color": "red", "size": "3"}), live)
    assert call == Call(Operation.PATCH, {"data": {"color": "red"}, "metadata": {"uid": "u1"}})


def test_wanted_resource_version_is_a_precondition() -> None:
    live = created(host(spec={"ports": [1]}))
    [call] = calls(host(version="6", spec={"ports": [2]}), live)
    assert call.body["metadata"] == {"uid": "u1", "resourceVersion": "6"}
    assert calls(host(version="6", spec={"ports": [1]}), live) == []


def test_status_goes_by_its_own_path_where_there_is_one() -> None:
    live = created(host(data={"a": "1"}, status={"phase": "Pending"}))
    want = host(data={"a": "2"}, status={"phase": "Running"})
    first, second = calls(want, live)
    assert (first.kind, second.kind) == (Operation.PATCH, Operation.PATCH_STATUS)
    assert "status" not in first.body
    assert second.body == {"status": {"phase": "Running"}, "metadata": {"uid": "u1"}}
    [only] = calls(want, live, has_status=False)
    assert only.kind is Operation.PATCH
    assert only.body["status"] == {"phase": "Running"}


def test_exact_path_removes_other_fields_below_it_only() -> None:
    live = merged(
        created(host(data={"a": "1"}, spec={"own": {"x": 1}})), {"data": {"b": "2"}, "spec": {"own": {"y": 1}, "z": 1}}
    )
    [call] = calls(host(data={"a": "1"}, spec={"own": {"x": 1}}), live, "data", "spec.own")
    assert call.body == {"data": {"b": None}, "spec": {"own": {"y": None}}, "metadata": {**GUARD, **_note(call)}}
    [call] = calls(host(spec={"own": {"x": 1}}), live, "data")
    assert call.body["data"] in (None, {"a": None, "b": None})


def _note(call: Call) -> Obj:
    annotations = call.body["metadata"].get("annotations")
    return {"annotations": annotations} if annotations else {}


def test_fields_are_not_removed_without_a_note() -> None:
    live = stored(host(labels={"app": "web"}, spec={"a": 1}))
    assert all(None not in json.loads(json.dumps(call.body)).get("spec", {}).values() for call in calls(host(), live))
    assert calls(host(), live) == []


def test_note_that_somebody_spoilt_counts_as_none() -> None:
    live = stored(host(annotations={MARKS.fields: "{not json"}, spec={"a": 1}))
    [call] = calls(host(spec={"b": 1}), live)
    assert call.body["spec"] == {"b": 1}
    assert fields_before(stored(host(annotations={MARKS.fields: "[1]"})), MARKS) == {}


def test_field_set_as_a_whole_is_removed_as_a_whole() -> None:
    """``{clientIP: {timeoutSeconds: 10}}`` is refused without ClientIP affinity even when it has become empty."""
    live = created(host(spec={"affinity": {"clientIP": {"seconds": 10}}, "type": "x"}))
    [call] = calls(host(spec={"type": "x"}), live)
    assert call.body["spec"] == {"affinity": None}


def test_fields_of_others_beside_ours_stay_when_ours_go() -> None:
    live = merged(created(host(spec={"a": {"ours": 1}})), {"spec": {"a": {"theirs": 1}}})
    [call] = calls(host(), live)
    assert call.body["spec"] == {"a": {"ours": None}}


def test_partial_takes_away_labels_only() -> None:
    live = created(host(labels={"old": "1"}, spec={"a": 1}), partial=True)
    assert fields_before(live, MARKS) == {"metadata": {"labels": {"old": 1}}}
    [call] = calls(host(), live, partial=True)
    assert call.body["metadata"]["labels"] == {"old": None}
    assert "spec" not in call.body


def test_labels_that_the_tenant_gave_up_go_and_those_of_others_stay() -> None:
    live = merged(created(host(labels={"old": "1", "same": "1"})), {"metadata": {"labels": {"other": "1"}}})
    [call] = calls(host(labels={"same": "1", "new": "1"}), live)
    assert call.body["metadata"]["labels"] == {"old": None, "new": "1"}


def test_metadata_is_never_changed_but_for_labels_and_annotations() -> None:
    want = host()
    want["metadata"] |= {"finalizers": ["x/y"], "ownerReferences": [{"uid": "z"}], "generateName": "web-"}
    assert calls(want, stored(host())) == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("007", "7"),
        ("7", "007"),
        ("1", "1.0"),
        ("1.0", "1"),
        ("1000m", "1"),
        ("1M", "1000k"),
        ("1Gi", "1024Mi"),
        ("+5", "5"),
        ("0e99", "0e12"),
        ("3", 3),
        (3, "3"),
        (1, "1.0"),
        (True, 1),
        (0, False),
        (True, "true"),
        ([True], [1]),
        ([{"a": 1}], [{"a": True}]),
        ({"a": [0, "x"]}, {"a": [False, "x"]}),
    ],
)
@pytest.mark.parametrize("exact", [(), ("spec.values",)])
def test_value_is_another_if_it_is_another_one_in_json(before: Any, now: Any, exact: tuple[str, ...]) -> None:
    live = created(host(spec={"values": {"x": before, "y": "1"}}), *exact)
    [call] = calls(host(spec={"values": {"x": now, "y": "1"}}), live, *exact)
    assert json.dumps(call.body["spec"]) == json.dumps({"values": {"x": now}})
    assert calls(host(spec={"values": {"x": now, "y": "1"}}), carried_out(live, [call]), *exact) == []


@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_label_or_annotation_that_is_the_same_number_is_changed(part: str) -> None:
    before: Obj = {part: {"version": "1"}}
    now: Obj = {part: {"version": "1.0"}}
    [call] = calls(host(**now), created(host(**before)))
    assert call.body["metadata"][part] == {"version": "1.0"}


def test_numbers_are_the_same_by_their_value() -> None:
    live = created(host(spec={"values": {"x": 1, "list": [2.0]}}))
    assert calls(host(spec={"values": {"x": 1.0, "list": [2]}}), live) == []


def test_list_with_more_in_its_elements_is_kept() -> None:
    live = created(host(spec={"ports": [{"port": 80}]}))
    live["spec"]["ports"][0] |= {"nodePort": 30000, "protocol": "TCP"}
    assert calls(host(spec={"ports": [{"port": 80}]}), live) == []
    [call] = calls(host(spec={"ports": [{"port": 81}]}), live)
    assert call.body["spec"] == {"ports": [{"port": 81}]}
    [call] = calls(host(spec={"ports": []}), live)
    assert call.body["spec"] == {"ports": []}


def test_field_that_we_no_longer_say_in_a_list_element_is_taken_away() -> None:
    live = created(host(spec={"rules": [{"host": "a.example.org", "http": {"paths": []}}]}))
    live["spec"]["rules"][0]["default"] = "of the server"
    assert calls(host(spec={"rules": [{"host": "a.example.org", "http": {"paths": []}}]}), live) == []
    want = host(spec={"rules": [{"http": {"paths": []}}]})
    [call] = calls(want, live)
    assert call.body["spec"] == want["spec"]
    live = copy.deepcopy(carried_out(live, [call]))
    live["spec"]["rules"][0]["default"] = "of the server"
    assert calls(want, live) == [], "what the server adds is left alone, now as before"


def test_note_of_an_earlier_version_says_nothing_of_list_elements() -> None:
    want = host(spec={"rules": [{"host": "a.example.org"}]})
    live = created(want)
    live["spec"]["rules"][0]["default"] = "of the server"
    live["metadata"]["annotations"][MARKS.fields] = '{"spec":{"rules":1}}'
    [call] = calls(want, live)
    assert call.body.keys() == {"metadata"}


def test_empty_value_equals_a_missing_one() -> None:
    live = created(host(spec={"paths": [{"path": "/"}]}))
    want = host(spec={"paths": [{"path": "/", "rules": []}], "tolerations": [], "affinity": {}}, data={})
    assert [call for call in calls(want, live) if call.body.keys() != {"metadata"}] == []


# -- the other verbs -------------------------------------------------------------------------------


def test_delete_is_of_exactly_this_object() -> None:
    known = stored(host())
    [call] = calls(known, known, verb=Verb.DELETE)
    assert call == Call(Operation.DELETE, known)
    assert calls(known, None, verb=Verb.DELETE) == []
    assert calls(known, merged(known, {"metadata": {"uid": "u2"}}), verb=Verb.DELETE) == []


def test_final_status_is_set_before_the_deletion_over_the_version_that_was_seen() -> None:
    known = stored(host(status={"phase": "Running", "podIP": "10.0.0.3"}))
    later = merged(known, {"metadata": {"resourceVersion": "later"}})
    first, second = calls(known, later, verb=Verb.DELETE, final_status={"phase": "Failed"})
    assert first.kind is Operation.PATCH_STATUS
    version = known["metadata"].get("resourceVersion")
    assert first.body["metadata"] == {"uid": "u1", "resourceVersion": version}
    assert first.body["status"] == {"phase": "Failed", "podIP": None}
    assert second == Call(Operation.DELETE, known)
    [left] = calls(known, known, verb=Verb.DELETE, final_status=known["status"])
    assert left == second


def test_deletion_that_only_waits_for_finalizers_is_not_made_again() -> None:
    ended = stored(host(metadata={"deletionGracePeriodSeconds": 0, "finalizers": ["example.org/hold"]}))
    assert calls(ended, ended, verb=Verb.DELETE, grace=0) == []
    assert len(calls(ended, ended, verb=Verb.DELETE)) == 1, "it may take another grace period"
    free = merged(ended, {"metadata": {"finalizers": None}})
    assert len(calls(free, free, verb=Verb.DELETE, grace=0)) == 1
    graceful = merged(ended, {"metadata": {"deletionGracePeriodSeconds": 30}})
    assert len(calls(graceful, graceful, verb=Verb.DELETE, grace=0)) == 1


def test_pod_is_bound_once() -> None:
    pod = stored(host(spec={}))
    [call] = calls(pod, pod, verb=Verb.BIND, node="n1")
    assert call.kind is Operation.BIND
    assert call.body["target"]["name"] == "n1"
    assert call.body["metadata"] == {"name": "web", "namespace": "vc-ns", "uid": "u1"}
    assert calls(pod, merged(pod, {"spec": {"nodeName": "n2"}}), verb=Verb.BIND, node="n1") == []
    assert calls(pod, None, verb=Verb.BIND, node="n1") == []


def test_conditions_are_set_by_type_and_only_those_that_differ() -> None:
    ready, gate = {"type": "Ready", "status": "False"}, {"type": "gate", "status": "True"}
    live = stored(host(status={"conditions": [ready, {**gate, "lastProbeTime": None}]}))
    want = {**live, "status": {"conditions": [gate, {"type": "other", "status": "True"}]}}
    [call] = calls(want, live, verb=Verb.CONDITIONS)
    assert call == Call(
        Operation.CONDITIONS,
        {"metadata": {"uid": "u1"}, "status": {"conditions": [{"type": "other", "status": "True"}]}},
    )
    assert calls({**live, "status": {"conditions": [gate]}}, live, verb=Verb.CONDITIONS) == []
    assert calls(want, None, verb=Verb.CONDITIONS) == []


def test_merge_has_only_fields_that_the_live_object_lacks() -> None:
    containers = [{"name": "a", "size": "1"}, {"name": "b", "size": "1"}, {"name": "host's"}]
    live = stored(host(spec={"containers": containers, "whole": {"size": "1", "other": 1}}))
    spec: Obj = {"containers": [{"name": "a", "size": "2"}, {"name": "b", "size": "1"}], "whole": {"size": "1"}}
    [call] = calls({**live, "spec": spec}, live, verb=Verb.MERGE)
    assert call == Call(Operation.MERGE, {"metadata": {"uid": "u1"}, "spec": {"containers": [spec["containers"][0]]}})
    new = {"containers": [{"name": "new"}], "extra": [{"name": "x"}], "whole": {"size": "2"}}
    [call] = calls({**live, "spec": new}, live, verb=Verb.MERGE)
    assert call.body["spec"] == new
    assert calls({**live, "spec": {"containers": containers[:1]}}, live, verb=Verb.MERGE) == []


def test_merge_is_for_the_very_object_that_was_seen() -> None:
    live = stored(host(spec={}))
    want = {**live, "spec": {"containers": [{"name": "a"}]}}
    assert calls(want, None, verb=Verb.MERGE) == []
    assert calls(want, merged(live, {"metadata": {"uid": "u2"}}), verb=Verb.MERGE) == []


def test_object_with_tokens_is_written_though_nothing_else_differs() -> None:
    """Its data is not known before the tokens are there, so nothing of the data is taken away."""
    token = Token("t", "default", "shop", 600)
    live = merged(created(host()), {"data": {"t": "old"}})
    [call] = calls(host(), live, "data", tokens=(token,))
    assert call.kind is Operation.PATCH
    assert "data" not in call.body


# -- labels and annotations by their keys ----------------------------------------------------------


def test_exact_annotation_goes_if_unset_and_others_stay() -> None:
    live = stored(host(annotations={"example.org/team": "theirs", "example.org/other": "theirs"}))
    [call] = calls(host(), live, "/metadata/annotations/example.org~1team")
    assert call.body["metadata"]["annotations"] == {"example.org/team": None}
    assert calls(host(), live, "/metadata/annotations/example.org~1absent") == []


# -- fields that count only when the object is made ------------------------------------------------


ONCE = ("spec.volumeName", "spec.source")


def test_create_only_field_is_sent_with_the_creation() -> None:
    live = created(host(spec={"volumeName": "v", "size": 1}), once=ONCE)
    assert live["spec"] == {"volumeName": "v", "size": 1}
    assert json.loads(live["metadata"]["annotations"][MARKS.fields])["spec"] == {"size": 1}


@pytest.mark.parametrize("exact", [(), ("spec",)])
@pytest.mark.parametrize("wanted", [{"volumeName": "other"}, {}, {"volumeName": {"deep": 1}, "source": {"kind": "x"}}])
def test_create_only_field_is_never_compared(wanted: Obj, exact: tuple[str, ...]) -> None:
    live = created(host(spec={"volumeName": "v", "size": 1}), *exact, once=ONCE)
    live["spec"]["source"] = {"name": "theirs", "defaulted": True}
    assert calls(host(spec={"size": 1, **wanted}), live, *exact, once=ONCE) == []
    [call] = calls(host(spec={"size": 2, **wanted}), live, *exact, once=ONCE)
    assert call.body["spec"] == {"size": 2}


def test_field_that_has_become_create_only_stays_though_it_was_noted_before() -> None:
    live = created(host(spec={"volumeName": "v", "size": 1}))
    found = calls(host(spec={"size": 1}), live, once=ONCE)
    assert carried_out(live, found)["spec"] == {"volumeName": "v", "size": 1}
    assert calls(host(spec={"size": 1}), carried_out(live, found), once=ONCE) == []


def test_fields_beside_create_only_fields_are_removed_with_their_part() -> None:
    live = created(host(spec={"volumeName": "v", "size": 1}), once=ONCE)
    found = calls(host(), live, once=ONCE)
    assert carried_out(live, found)["spec"] == {"volumeName": "v"}


# -- which paths are exact -------------------------------------------------------------------------


class Services(Syncer):
    name = "services"
    resource = Resource("v1", "Service", "services")
    down = ("spec.ports", "data")
    up = ("status",)
    exact = ("data", "status", "spec", "spec.ports.x")


@pytest.mark.parametrize(("side", "paths"), [(Side.HOST, ("data", "spec.ports.x")), (Side.VIRTUAL, ("status",))])
def test_exact_paths_of_a_side_are_those_that_the_other_does_not_own(side: Side, paths: tuple[str, ...]) -> None:
    assert exact_paths(Services(), side) == paths


def test_note_goes_when_there_is_nothing_more_to_note() -> None:
    live = created(host(labels={"old": "1"}))
    [call] = calls(host(), live)
    assert call.body["metadata"] == {"labels": {"old": None}, "annotations": {MARKS.fields: None}, **GUARD}


def test_exact_path_removes_other_fields_in_list_elements() -> None:
    live = stored(host(status={"conditions": [{"type": "Ready", "status": "True", "message": "old"}]}))
    want = host(status={"conditions": [{"type": "Ready", "status": "True"}]})
    assert Operation.PATCH_STATUS not in [call.kind for call in calls(want, live)]
    [call] = calls(want, live, "status")
    assert call.body["status"] == {"conditions": [{"type": "Ready", "status": "True"}]}


# -- below exact paths, and what is to go ----------------------------------------------------------


def test_unset_field_below_an_exact_path_goes_at_any_depth() -> None:
    live = stored(host(spec={"a": {"b": 1, "kept": 2}, "c": 3}))
    for want in (host(), host(spec={}), host(spec={"a": {}}), host(spec={"c": 3})):
        [call] = calls(want, live, "spec.a.b")
        assert carried_out(live, [call])["spec"] == {"a": {"kept": 2}, "c": 3}


def test_exact_path_that_empties_its_parent_removes_it() -> None:
    live = stored(host(spec={"a": {"b": 1}}))
    [call] = calls(host(), live, "spec.a.b")
    assert "spec" not in carried_out(live, [call])


def test_note_may_take_an_annotation_away() -> None:
    live = stored(host(annotations={"x": "1", "y": "2"}))
    want = merged(live, {})
    want["metadata"] = {"name": "web", "uid": "u1", "annotations": {"x": None, "gone": None}}
    [call] = calls(want, live, verb=Verb.NOTE)
    assert call.body["metadata"]["annotations"] == {"x": None}
    assert calls(want, carried_out(live, [call]), verb=Verb.NOTE) == []


def test_revocation_removes_only_fields_that_are_left_out() -> None:
    live = stored(host(labels={"x": "1", "y": "2"}, spec={"a": {"b": 1, "c": 2}, "list": [1, 2]}, kept={"d": 1}))
    want = copy.deepcopy(live)
    del want["metadata"]["labels"]["x"]
    want["spec"] = {"a": {"c": 2}, "list": [2]}
    [call] = calls(want, live, verb=Verb.REVOKE)
    assert call.body == {"spec": {"a": {"b": None}, "list": [2]}, "metadata": {"labels": {"x": None}, **GUARD}}
    assert calls(want, want, verb=Verb.REVOKE) == []


@pytest.mark.parametrize("live", [None, {"metadata": {"name": "web", "uid": "another", "resourceVersion": "7"}}])
def test_write_about_one_object_is_none_about_another(live: Any) -> None:
    want = host(data={"a": "1"})
    want["metadata"]["uid"] = "u1"
    assert calls(want, live) == []


def test_body_of_a_call_is_encoded_once() -> None:
    call = Call(Operation.CREATE, host(spec={"type": "ClusterIP"}))
    size = call.size
    taken = call._json
    assert (call.take() is taken, json.loads(taken), len(taken)) == (True, call.body, size)
    assert call._json == b"", "it is held by the request alone"
    assert call.take() == taken


def test_call_with_a_body_that_no_api_server_accepts_is_refused() -> None:
    with pytest.raises(TooLarge, match="spec"):
        _ = Call(Operation.CREATE, host(spec={"type": "x" * LARGEST})).size
