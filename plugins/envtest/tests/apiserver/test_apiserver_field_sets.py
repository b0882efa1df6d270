"""The algebra of field sets, against plain sets of paths."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver.field_sets import (
    Fields,
    Path,
    difference,
    intersection,
    path_text,
    paths,
    step_of_item,
    step_of_value,
    union,
    without_subtrees,
)
from kube_envtest.apiserver.shapes import FREE, Shape

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"q"'])
PATHS = st.sets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=6)


def tree(members: set[Path]) -> Fields:
    root: Fields = {}
    for path in members:
        at = root
        for step in path:
            at = at.setdefault(step, {})
        at["."] = {}
    return normal(root)


def normal(node: Fields) -> Fields:
    """Return the node in one form: a leaf is an empty dict, only a member with more below says so."""
    out = {step: normal(sub) for step, sub in node.items() if step != "."}
    return {".": {}, **out} if out and "." in node else out


@given(PATHS)
def test_a_tree_returns_its_paths(members: set[Path]) -> None:
    assert set(paths(tree(members))) == members


@given(PATHS, PATHS)
def test_union_difference_and_intersection_are_those_of_sets(left: set[Path], right: set[Path]) -> None:
    one, two = tree(left), tree(right)
    assert set(paths(union(one, two))) == left | right
    assert set(paths(difference(one, two))) == left - right
    assert set(paths(intersection(one, two))) == left & right
    assert (one, two) == (tree(left), tree(right))


@given(PATHS)
def test_difference_gives_back_the_same_object_where_nothing_goes(members: set[Path]) -> None:
    fields = tree(members)
    assert difference(fields, {"f:other": {}}) is fields


@given(PATHS, PATHS)
def test_without_subtrees_also_removes_the_paths_below(left: set[Path], right: set[Path]) -> None:
    wanted = {path for path in left if not any(path[: len(gone)] == gone for gone in right)}
    assert set(paths(without_subtrees(tree(left), tree(right)))) == wanted


def test_paths_come_in_the_servers_order_and_are_printed_its_way() -> None:
    fields: Fields = {"f:spec": {"f:containers": {'k:{"name":"x"}': {".": {}, "f:image": {}}}, "f:a": {}}, "f:data": {}}
    assert [path_text(path) for path in paths(fields)] == [
        ".data",
        ".spec.a",
        '.spec.containers[name="x"]',
        '.spec.containers[name="x"].image',
    ]
    assert path_text(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'


def test_steps_are_written_as_go_writes_json() -> None:
    ports = Shape(keys=(("containerPort", 0), ("protocol", "TCP")))
    assert step_of_item(ports, {"containerPort": 80}) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert step_of_item(ports, {"protocol": "UDP", "containerPort": 1}) == 'k:{"containerPort":1,"protocol":"UDP"}'
    assert step_of_value("a<b&c>é") == 'v:"a\\u003cb\\u0026c\\u003eé"'
    without: Any = step_of_item(Shape(keys=(("k", None),)), {"v": 1})
    assert without is None
    assert FREE.of("anything") is FREE
