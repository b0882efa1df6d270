"""Merges that were refused: when they are sent again."""

from typing import Any

import pytest

from syncer.api import Key, Obj, ObjectRef, Side, SyncRequest, merge
from syncer.api.reasons import MERGE_REFUSED
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.plan import PlannedWrite, PostponedFields
from syncer.engine.reconcile.policies.refusals import AGAIN_SECONDS, REMEMBERED, Refusals
from syncer.resources.kinds import PODS

REQUEST = SyncRequest("vc", "pods", Key("shop", "web"))


def planned(size: str = "1", *, subresource: str = "resize", name: str = "web", **metadata: Any) -> PlannedWrite:
    obj: Obj = {"metadata": {"name": name, "uid": "u", **metadata}, "spec": {"size": size}}
    [write] = merge(host=obj, subresource=subresource).writes
    return PlannedWrite(write, ObjectRef(Side.HOST, PODS, Key("h", name)), obj, [Call(Operation.MERGE, obj)])


class Scene:
    def __init__(self) -> None:
        self.now = 1000.0
        self.refusals = Refusals(lambda: self.now)

    def is_sent(self, write: PlannedWrite) -> bool:
        return bool(self.refusals.drop_refused(write, REQUEST).calls)


def test_refused_merge_is_sent_again_after_five_minutes() -> None:
    scene = Scene()
    assert scene.is_sent(planned())
    postponed = scene.refusals.note(planned(), RuntimeError("no room"))
    assert postponed == PostponedFields(MERGE_REFUSED, "pods/resize is refused: no room", AGAIN_SECONDS, new=False)
    scene.now += 100
    left = scene.refusals.drop_refused(planned(), REQUEST)
    assert (left.calls, left.refused) == (
        (),
        PostponedFields(MERGE_REFUSED, postponed.reason, AGAIN_SECONDS - 100, new=False),
    )
    scene.now += AGAIN_SECONDS - 100
    assert scene.is_sent(planned())


@pytest.mark.parametrize(
    ("other", "sent"),
    [
        (planned("2"), True),
        (planned(subresource="ephemeralcontainers"), True),
        (planned(uid="another"), True),
        (planned(name="other"), True),
        (planned(resourceVersion="9", labels={"a": "b"}), False),
    ],
)
def test_refusal_is_for_these_fields_of_this_object(other: PlannedWrite, sent: bool) -> None:
    scene = Scene()
    scene.refusals.note(planned(), RuntimeError("no"))
    assert scene.is_sent(other) is sent


def test_refusals_of_many_objects_are_bounded() -> None:
    scene = Scene()
    for number in range(REMEMBERED + 1):
        scene.refusals.note(planned(name=f"p{number}"), RuntimeError("x" * 100_000))
    assert scene.is_sent(planned(name="p0"))
    assert not scene.is_sent(planned(name="p1"))
    postponed = scene.refusals.drop_refused(planned(name="p1"), REQUEST).refused
    assert postponed is not None
    assert len(postponed.reason) < 5000
