"""The downward API: a container reads the virtual Pod's fields."""

from typing import Any

import pytest

from syncer.api import Marks, Obj
from syncer.resources.pods.fields import host_field, lines
from syncer.testing import World
from syncer.testing.objects import pod, serviceaccount

COPY = "vc-ns/web-x-shop-x-vc"


def reading(*fields: str, **parts: Any) -> Obj:
    items = [{"path": f"f{number}", "fieldRef": {"fieldPath": field}} for number, field in enumerate(fields)]
    return pod("web", spec={"volumes": [{"name": "info", "downwardAPI": {"items": items}}]}, **parts)


@pytest.mark.parametrize(
    ("field", "annotation"),
    [
        ("metadata.name", "virtual-name"),
        ("metadata.namespace", "virtual-namespace"),
        ("metadata.uid", "virtual-uid"),
        ("metadata.labels", "pod-labels"),
        ("metadata.annotations", "pod-annotations"),
        ("spec.serviceAccountName", "pod-service-account"),
    ],
)
def test_fields_that_differ_are_read_from_annotations(field: str, annotation: str) -> None:
    assert host_field(field, Marks()) == f"metadata.annotations['vsyncer.dev/{annotation}']"


@pytest.mark.parametrize(
    "field", ["metadata.labels['app']", "metadata.annotations['a']", "spec.nodeName", "status.podIP"]
)
def test_fields_that_are_the_same_on_both_sides_are_read_as_they_are(field: str) -> None:
    assert host_field(field, Marks()) == field


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize("key", ["host-namespace", "cluster", "pod-labels"])
@pytest.mark.parametrize("prefix", ["vsyncer.dev", "tenants.example.org"])
def test_field_below_the_marks_prefix_reads_an_annotation_that_is_nowhere(part: str, key: str, prefix: str) -> None:
    field = f"metadata.{part}['{prefix}/{key}']"
    assert host_field(field, Marks(prefix)) == f"metadata.annotations['{prefix}/none']"
    assert host_field(field, Marks("other.example.org")) == field


def test_container_that_reads_a_mark_of_its_host_pod_gets_nothing(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    marks = ["metadata.annotations['vsyncer.dev/host-namespace']", "metadata.labels['vsyncer.dev/cluster']"]
    world.given(virtual=[reading(*marks)]).settle("pods", "shop/web")
    copy = world.host("Pod", COPY) or {}
    read = {item["fieldRef"]["fieldPath"] for item in copy["spec"]["volumes"][0]["downwardAPI"]["items"]}
    assert read == {"metadata.annotations['vsyncer.dev/none']"}
    assert "vsyncer.dev/none" not in copy["metadata"]["annotations"]


def test_host_pod_has_only_the_fields_that_are_read(world: World) -> None:
    world.given(virtual=[serviceaccount("robot")]).settle("serviceaccounts", "shop/robot")
    virtual = reading("metadata.labels", "spec.serviceAccountName", metadata={"labels": {"b": "2", "a": "1"}})
    virtual["spec"]["serviceAccountName"] = "robot"
    world.given(virtual=[virtual]).settle("pods", "shop/web")
    annotations = (world.host("Pod", COPY) or {})["metadata"]["annotations"]
    assert annotations["vsyncer.dev/pod-labels"] == 'a="1"\nb="2"'
    assert annotations["vsyncer.dev/pod-service-account"] == "robot"
    assert "vsyncer.dev/pod-annotations" not in annotations


def test_field_that_no_container_reads_is_not_written_twice(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[reading("metadata.name", metadata={"labels": {"a": "1"}})]).settle("pods", "shop/web")
    annotations = (world.host("Pod", COPY) or {})["metadata"]["annotations"]
    assert not {f"vsyncer.dev/pod-{part}" for part in ("labels", "annotations", "service-account")} & annotations.keys()


def test_changed_label_reaches_the_running_container(world: World) -> None:
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[reading("metadata.labels", metadata={"labels": {"a": "1"}})]).settle("pods", "shop/web")
    world.given(virtual=[reading("metadata.labels", metadata={"labels": {"a": "2"}})]).settle("pods", "shop/web")
    metadata = (world.host("Pod", COPY) or {})["metadata"]
    assert (metadata["labels"]["a"], metadata["annotations"]["vsyncer.dev/pod-labels"]) == ("2", 'a="2"')


def test_lines_are_written_as_go_quotes_them() -> None:
    """The expected text is what ``fmt.Sprintf("%v=%q\\n", key, value)`` gives, which the kubelet uses."""
    values = {"z": 'say "hi"\\', "a": "tab\tline\nbell\x07", "c": "\x01\x7f", "d": "grün", "e": "\u200b\U000e0001"}
    assert lines(values) == (
        'a="tab\\tline\\nbell\\a"\nc="\\x01\\x7f"\nd="grün"\ne="\\u200b\\U000e0001"\nz="say \\"hi\\"\\\\"'
    )
