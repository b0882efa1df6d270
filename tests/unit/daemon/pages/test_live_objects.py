"""What holds an object that is being deleted, whatever its API server answers."""

from typing import Any

import pytest

from syncer.api import Key, Obj, ObjectRef, Resource, Side
from syncer.daemon.pages.live_objects import MOST_SHOWN, LiveObject, endings
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES

SINCE = "2026-01-01T12:00:00Z"


def ending(obj: Any, resource: Resource = CONFIG_MAPS) -> list[Obj]:
    """Return the row about an object, without its name and its time; none if it isn't being deleted."""
    rows = endings([LiveObject(ObjectRef(Side.VIRTUAL, resource, Key("shop", "x")), obj)])
    return [{name: row[name] for name in ("finalizers", "conditions")} for row in rows]


@pytest.mark.parametrize("obj", [{}, {"metadata": {}}, {"metadata": 5}, {"metadata": {"finalizers": ["a/b"]}}])
def test_object_that_stays_has_no_end(obj: Any) -> None:
    assert ending(obj) == []


@pytest.mark.parametrize(
    ("given", "shown"),
    [(None, []), (["a/b", 5, None, "c/d"], ["a/b", "c/d"]), ("a/b", []), ({"a/b": 1}, []), (7, [])],
)
def test_finalizers_that_are_texts_are_shown(given: Any, shown: list[str]) -> None:
    metadata = {"deletionTimestamp": SINCE, "finalizers": given}
    assert ending({"metadata": metadata}) == [{"finalizers": shown, "conditions": []}]


def test_finalizers_are_bounded() -> None:
    many = [f"example.org/{number}" for number in range(MOST_SHOWN + 5)]
    [row] = ending({"metadata": {"deletionTimestamp": SINCE, "finalizers": ["x" * 5000, *many]}})
    assert len(row["finalizers"]) == MOST_SHOWN
    assert len(row["finalizers"][0]) < 5000


@pytest.mark.parametrize(
    ("conditions", "shown"),
    [
        ([{"type": "NamespaceContentRemaining", "status": "True", "message": "1 is left"}], ["1 is left"]),
        ([{"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all is found"}], []),
        ([5, {"status": "True"}, {"status": "True", "message": 7}], []),
        ("no list", []),
    ],
)
def test_namespace_shows_what_it_waits_for(conditions: Any, shown: list[str]) -> None:
    namespace = {"metadata": {"deletionTimestamp": SINCE}, "status": {"conditions": conditions}}
    assert ending(namespace, NAMESPACES) == [{"finalizers": [], "conditions": shown}]
    assert ending(namespace) == [{"finalizers": [], "conditions": []}]
