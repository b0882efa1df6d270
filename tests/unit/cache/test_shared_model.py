"""Whatever happens, a reflector on a shared watch holds and tells what one with a label selector of its own does."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reflector_scene import play
from shared_scene import HOME, Host, Member, host, soon

pytestmark = pytest.mark.slow

NAMES, CLUSTERS, MARKS = ("x", "y", "z"), ("a", "b"), ("a", "b", "unknown", None)

#: A change of an object: its name, and its mark, or ``"gone"``.
changes = st.tuples(st.sampled_from(NAMES), st.sampled_from((*MARKS, "gone")))
#: What else happens: the watches are cut, or can't go on; the daemon lists again; a cluster leaves and comes again.
troubles = st.sampled_from(("cut", "compact", "relist a", "relist b", "again a", "again b", "wait", "breath"))
Steps = Sequence[tuple[str, str | None] | str]


def change(scene: Host, name: str, mark: str | None, number: int) -> None:
    if mark != "gone":
        scene.put(name, mark, number=str(number))
    elif scene.server.get("configmaps", f"{HOME}/{name}"):
        scene.delete(name)


def same(one: Member, other: Member) -> None:
    assert one.objects() == other.objects()


@given(steps=st.lists(changes, max_size=12), apart=st.booleans())
@example(steps=[("x", "a"), ("x", "b"), ("x", "a"), ("x", "gone")], apart=False)
def test_each_is_notified_of_the_same_changes(steps: Sequence[tuple[str, str | None]], apart: bool) -> None:
    async def scenario() -> None:
        async with host() as scene:
            change(scene, "x", "a", -1)
            together = [scene.join(cluster) for cluster in CLUSTERS]
            await soon()
            alone = [scene.join(cluster, shared=False) for cluster in CLUSTERS]
            await soon()
            for number, (name, mark) in enumerate(steps):
                change(scene, name, mark, number)
                if apart:
                    await asyncio.sleep(1)
            await soon()
            for one, other in zip(together, alone, strict=True):
                same(one, other)
                assert one.notified == other.notified
                assert one.informer._witnessed == other.informer._witnessed

    play(scenario)


@given(
    steps=st.lists(st.one_of(changes, changes, troubles), max_size=20), ordered=st.booleans(), joins=st.integers(0, 20)
)
def test_stores_are_the_same_after_any_trouble(steps: Steps, ordered: bool, joins: int) -> None:
    async def scenario() -> None:
        async with host(ordered=ordered) as scene:
            members = {"a": scene.join("a")}
            for number, step in enumerate((*steps, "wait")):
                if number == min(joins, len(steps)):
                    members["b"] = scene.join("b")
                if not isinstance(step, str):
                    change(scene, *step, number)
                    continue
                act, _, cluster = step.partition(" ")
                if act == "cut":
                    scene.server.cut_watches()
                elif act == "compact":
                    scene.server.compact()
                    scene.server.cut_watches()
                elif act == "relist" and cluster in members:
                    await members[cluster].reflector.relist(lambda key: None)
                elif act == "again" and cluster in members:
                    await members[cluster].leave()
                    members[cluster] = scene.join(cluster)
                elif act == "wait":
                    await soon()
                elif act == "breath":
                    await asyncio.sleep(0)
            await soon()
            assert scene.way.most == 1, "there is one watch at a time"
            alone = [scene.join(cluster, shared=False) for cluster in CLUSTERS]
            await soon()
            for cluster, other in zip(CLUSTERS, alone, strict=True):
                same(members[cluster], other)

    play(scenario)
