"""Objects that are gone take no memory: the daemon keeps no names that a tenant has thought of."""

from collections.abc import Iterable

import pytest
from hostile_scene import NAMESPACE, HostileScene

from syncer.api import Obj
from syncer.testing.objects import pod_mounting, serviceaccount

#: Objects that come and go before memory is measured, and after.
WARM_UP, OBJECTS = 8, 40
#: The most by which memory may grow over these objects, in MB: half of their names.
GROWTH = 10
#: An API server checks of the name of a Secret in a Pod only that it isn't empty.
LETTERS = 500_000
#: Annotations of an object, with names of 20 letters.
ANNOTATIONS = 10_000


def _growth(hostile: HostileScene, resource: str, objects: Iterable[Obj]) -> float:
    """Return by how many MB the daemon has grown while objects came and went."""
    before = 0.0
    for number, obj in enumerate(objects):
        if number == WARM_UP:
            before = hostile.daemon.rss()
        hostile.tenant.put(obj)
        hostile.serves_others()
        hostile.tenant.delete(resource, f"{NAMESPACE}/web")
    hostile.quiet()
    return hostile.daemon.rss() - before


def test_names_of_absent_secrets_are_not_kept(hostile: HostileScene) -> None:
    names = (f"{number:08}".ljust(LETTERS, "x") for number in range(WARM_UP + OBJECTS))
    hostile.start()
    # 0aeb964 keeps each of them.
    assert _growth(hostile, "pods", (pod_mounting("web", secret=name) for name in names)) < GROWTH


@pytest.mark.translators("single-namespace", reason="no translator sees annotations")
def test_names_of_annotations_are_not_kept(hostile: HostileScene) -> None:
    accounts = (
        serviceaccount("web", metadata={"annotations": dict.fromkeys(names, "")})
        for names in (
            [f"example.org/{number:02}-{each:05}" for each in range(ANNOTATIONS)] for number in range(WARM_UP + OBJECTS)
        )
    )
    hostile.start()
    # 0aeb964 keeps each of them.
    assert _growth(hostile, "serviceaccounts", accounts) < GROWTH
