"""The patch of an object, for people."""

from typing import Any

import pytest

from syncer.api import Obj
from syncer.engine.reconcile.patch_text import MOST_LINES, patch_text

PREFIX = "vsyncer.dev"


def obj(**fields: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, **fields}


def lines(before: Obj | None, after: Obj | None, *, secret: bool = False) -> list[str]:
    return patch_text(before, after, secret=secret, prefix=PREFIX)


def changed(found: list[str]) -> list[str]:
    """Return the removed and added lines, without those that name the sides."""
    return [line for line in found if line[0] in "+-" and line[:3] not in ("---", "+++")]


def test_equal_objects_have_no_patch() -> None:
    assert lines(obj(data={"a": "1"}), obj(data={"a": "1"})) == []


def test_what_only_the_server_sets_is_no_difference() -> None:
    after = obj()
    after["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 2, "managedFields": []}
    assert lines(obj(), after) == []


def test_patch_names_the_sides_and_has_the_changed_lines() -> None:
    found = lines(obj(data={"a": "1", "b": "2"}), obj(data={"a": "1", "b": "3"}))
    assert found[:2] == ["--- live", "+++ wanted"]
    assert changed(found) == ["-  b: '2'", "+  b: '3'"]


@pytest.mark.parametrize(("before", "after", "sides"), [(None, obj(), 0), (obj(), None, 1)])
def test_side_without_an_object_is_called_none(before: Obj | None, after: Obj | None, sides: int) -> None:
    assert lines(before, after)[sides].endswith(" none")


def test_text_of_a_tenant_cannot_look_like_a_line_of_the_patch() -> None:
    found = lines(None, obj(data={"a": "x\n+++ wanted\n\x1b[2J"}))
    assert found.count("+++ wanted") == 1
    assert not any("\x1b" in line for line in found)


def test_hidden_values_of_a_secret_are_sizes_and_a_change_is_seen() -> None:
    annotations = {"example.org/a": "token", f"{PREFIX}/uid": "seen"}
    before = obj(type="Opaque", data={"a": "xxxx", "same": "zz"})
    after = obj(type="Opaque", data={"a": "yyyy", "same": "zz", "new": "qqq"})
    after["metadata"] = {**after["metadata"], "annotations": annotations}
    found = lines(before, after, secret=True)
    assert changed(found) == [
        "-  a: (4 bytes), before",
        "+  a: (4 bytes), after",
        "+  new: (3 bytes)",
        "+  annotations:",
        "+    example.org/a: (5 bytes)",
        f"+    {PREFIX}/uid: seen",
    ]
    assert "+  name: x" not in found
    assert "   name: x" in found or "  name: x" in "\n".join(found), "names are shown"


@pytest.mark.parametrize("hidden", [["a", "b"], 7, None, {"deep": {"er": "xxxx"}}])
def test_no_value_of_a_malformed_secret_is_shown(hidden: Any) -> None:
    found = "\n".join(lines(None, obj(data={"k": hidden}, other=hidden), secret=True))
    assert "xxxx" not in found
    assert "'7'" not in found
    assert "- a" not in found


def test_object_of_too_many_lines_names_the_fields_that_differ() -> None:
    long = {f"k{number}": "v" for number in range(MOST_LINES)}
    found = lines(obj(data=long), obj(data={**long, "k0": "w"}))
    assert found == [f"more than {MOST_LINES} lines; these fields differ: data"]


def test_object_of_many_levels_is_shown_by_its_fields() -> None:
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    assert lines(obj(spec=deep), obj(spec="flat")) == ["too many levels; these fields differ: spec"]
