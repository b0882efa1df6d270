"""What a tenant named once takes no memory when it is gone."""

from collections.abc import Callable, Iterable

import pytest
from hostile_scene import COPIED, NAMESPACE, HostileScene

from syncer.api import Obj, key_of
from syncer.testing.objects import configmap, pod_mounting, resource_of

#: The most that may be left of 50 MB and more, in MB: the allocator keeps what a few objects took.
KEPT = 15


def _kept(hostile: HostileScene, make: Callable[[int], Obj], *, turns: int, each_turn: int) -> float:
    """Return the growth of the daemon's memory, in MB, while objects come and go, some in each turn."""

    def come_and_go(numbers: Iterable[int]) -> None:
        made = [hostile.tenant.put(make(number)) for number in numbers]
        hostile.quiet()
        for each in made:
            hostile.tenant.delete(resource_of(each), str(key_of(each)))
        hostile.quiet()

    hostile.start()
    come_and_go(range(each_turn))
    before = hostile.daemon.rss()
    for turn in range(1, turns + 1):
        come_and_go(range(each_turn * turn, each_turn * (turn + 1)))
    hostile.serves_others()
    return hostile.daemon.rss() - before


def _naming(number: int) -> Obj:
    """Return a Pod with a name in it that is longer than any object's, which API servers accept."""
    return pod_mounting(f"p{number}", secret=f"s{number}-".ljust(1_000_000, "x"))


def test_long_names_in_references_are_not_kept(hostile: HostileScene) -> None:
    """On 0aeb964 a translator remembers each: `assert 49.9 < 15`."""
    assert _kept(hostile, _naming, turns=6, each_turn=10) < KEPT


def _annotated(number: int) -> Obj:
    """Return a ConfigMap with many annotations, each of its own."""
    long = "x" * 60
    annotations = {f"a{number}-{each}.{long}.example.org/key": "" for each in range(1000)}
    metadata = {"annotations": {**annotations, **COPIED["annotations"]}}
    return configmap(f"c{number}", namespace=NAMESPACE, metadata=metadata)


@pytest.mark.translators("single-namespace", reason="no translator sees the names of annotations")
def test_names_of_annotations_are_not_kept(hostile: HostileScene) -> None:
    """On 0aeb964 the names of each object's fields are remembered: `assert 43.9 < 15`."""
    assert _kept(hostile, _annotated, turns=6, each_turn=40) < KEPT
