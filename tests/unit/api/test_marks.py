"""Marks: whose copy an object is; a copy of a copy is not ours."""

from typing import Any

import pytest

from syncer.api import Key, Marks, Obj, Resource
from syncer.api.marks import label_value
from syncer.testing.merge import merged

CONFIGMAPS = Resource("v1", "ConfigMap", "configmaps")
INGRESSES = Resource("networking.k8s.io/v1", "Ingress", "ingresses")
CLASSES = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
MARKS = Marks()
VIRTUAL = {"metadata": {"name": "db", "namespace": "shop", "uid": "u-1"}}


def copied(**metadata: Any) -> Obj:
    marks: Obj = {
        "name": "db-x",
        "namespace": "vc-ns",
        "labels": MARKS.labels("vc.vc-ns", Key("shop", "db")),
        "annotations": MARKS.annotations(CONFIGMAPS, VIRTUAL, Key("vc-ns", "db-x")),
    }
    return {"metadata": merged(marks, metadata)}


def ours(obj: Obj, cluster: str = "vc.vc-ns", resource: Resource = CONFIGMAPS) -> bool:
    return MARKS.is_ours(obj, cluster=cluster, resource=resource)


def test_marks_of_a_copy_lead_back() -> None:
    assert ours(copied())
    assert MARKS.virtual_key(copied()) == Key("shop", "db")
    assert copied()["metadata"]["annotations"][MARKS.uid] == "u-1"


def test_marks_of_cluster_objects_lead_back() -> None:
    annotations = MARKS.annotations(CLASSES, {"metadata": {"name": "gold"}}, Key("", "gold-x"))
    host = {"metadata": {"name": "gold-x", "annotations": annotations, "labels": MARKS.labels("c", Key("", "gold"))}}
    assert MARKS.virtual_key(host) == Key("", "gold")
    assert MARKS.is_ours(host, cluster="c", resource=CLASSES)
    assert MARKS.namespace_label not in host["metadata"]["labels"]


@pytest.mark.parametrize(
    "other",
    [
        {"name": "db-y"},
        {"namespace": "elsewhere"},
        {"labels": {MARKS.cluster: "other"}},
        {"labels": None},
        {"annotations": {MARKS.kind: "Secret"}},
        {"annotations": {MARKS.name: None}},
        {"annotations": None},
    ],
)
def test_object_that_differs_in_any_mark_is_not_ours(other: Obj) -> None:
    assert not ours(copied(**other))


def test_selection_differs_for_each_cluster_and_resource() -> None:
    assert not ours(copied(), cluster="other")
    assert not ours(copied(), resource=INGRESSES)


def test_unmarked_object_has_no_virtual_key() -> None:
    assert MARKS.virtual_key({"metadata": {"name": "db"}}) is None


def test_groups_tell_kinds_of_one_name_apart() -> None:
    other = Resource("example.org/v1", "Ingress", "ingresses")
    annotations = MARKS.annotations(INGRESSES, VIRTUAL, Key("vc-ns", "db-x"))
    host = copied(annotations=annotations)
    assert ours(host, resource=INGRESSES)
    assert not ours(host, resource=other)


def test_marks_begin_with_the_prefix_and_are_recognised_by_it() -> None:
    marks = Marks("example.org")
    names = [getattr(marks, name) for name in Marks.__slots__ if name != "prefix"]
    assert len(set(names)) == len(names)
    assert all(name.startswith("example.org/") and marks.is_mark(name) for name in names)
    assert not marks.is_mark("example.organisation/name")
    assert not marks.is_mark("vsyncer.dev/cluster")


def test_selector_finds_objects_with_our_labels() -> None:
    key, _, value = MARKS.selector("vc.vc-ns").partition("=")
    assert MARKS.labels("vc.vc-ns", Key("shop", "db"))[key] == value


def test_virtual_objects_of_ours() -> None:
    assert MARKS.is_from_here({"metadata": {"labels": {MARKS.cluster: "vc"}}}, cluster="vc")
    assert not MARKS.is_from_here({"metadata": {"labels": {MARKS.cluster: "vc"}}}, cluster="other")
    assert not MARKS.is_from_here({"metadata": {}}, cluster="vc")


def test_long_label_values_are_shortened_and_stay_apart() -> None:
    assert label_value("a" * 63) == "a" * 63
    one, other = label_value("a" * 64), label_value("a" * 64 + "b")
    assert len(one) == len(other) == 63
    assert one != other
