"""What an API server made of a call is found in its reply, with and without the quick look at the whole."""

from typing import Any
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st

from syncer.engine.reconcile import patch_fields, patch_paths
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.nulls import with_nulls
from syncer.engine.reconcile.patch_paths import DEPTHS, unmet

NAMES = st.sampled_from("abc")
LEAVES = st.sampled_from([None, True, 1, 1.0, "", "x", 0])
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda below: st.dictionaries(NAMES, below, max_size=3) | st.lists(below, max_size=2), max_leaves=8
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)
OPERATIONS = st.sampled_from([Operation.CREATE, Operation.PATCH, Operation.PATCH_STATUS])


def with_metadata(obj: Any, labels: Any, uid: str) -> Any:
    return {**obj, "kind": "Widget", "metadata": {"uid": uid, "labels": labels}}


def deep(value: Any, levels: int) -> Any:
    """Return a value below so many names."""
    for _ in range(levels):
        value = {"a": value}
    return value


@given(
    OPERATIONS,
    OBJECTS,
    OBJECTS | st.none(),
    st.dictionaries(NAMES, st.sampled_from("xy")),
    st.sampled_from(["1", "2"]),
    st.booleans(),
)
@example(Operation.CREATE, deep({"b": 1}, DEPTHS[0]), deep({"c": 1}, DEPTHS[0]), {}, "1", False)
@example(Operation.PATCH, {"a": None}, {"a": None}, {}, "1", True)
@example(Operation.PATCH, {"a": [True]}, {"a": [1]}, {}, "1", False)
@example(Operation.CREATE, {"a": {}}, {}, {}, "1", True)
def test_quick_look_at_a_reply_changes_nothing(
    kind: Operation, wanted: Any, found: Any, labels: dict[str, str], uid: str, verbatim: bool
) -> None:
    """``found`` is None if the reply has what the call wants."""
    body = with_metadata(wanted, labels, "1")
    if verbatim and kind is not Operation.CREATE:
        body = with_nulls(body)
    reply = with_metadata(wanted if found is None else found, {"a": "x"}, uid)
    call = Call(kind, body)
    quick = unmet(call, reply, verbatim=verbatim)
    with (
        mock.patch.object(patch_paths, "_has_all", return_value=False),
        mock.patch.object(patch_paths, "_is_applied", return_value=False),
    ):
        assert unmet(call, reply, verbatim=verbatim) == quick


def test_met_call_is_not_divided_into_its_fields() -> None:
    body = with_metadata({"data": {"a": "1", "b": "2"}}, {"a": "x"}, "1")
    for kind in (Operation.CREATE, Operation.PATCH):
        with mock.patch.object(patch_fields, "changes") as changes:
            assert unmet(Call(kind, body), body, verbatim=False) == []
        changes.assert_not_called()
