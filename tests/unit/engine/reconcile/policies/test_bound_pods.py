"""A Pod is bound once, and again only after the API server went back in time."""

import pytest

from syncer.api import Key, ObjectRef, Side, SyncRequest, Verb, Write
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.plan import PlannedWrite, ServerAnswer
from syncer.engine.reconcile.policies.bound_pods import BoundPods
from syncer.resources.kinds import PODS
from syncer.testing.objects import pod

REQUEST = SyncRequest("vc", "pods", Key("shop", "web"))
BIND = Call(Operation.BIND, {})


def planned(uid: str, verb: Verb = Verb.BIND) -> PlannedWrite:
    ref = ObjectRef(Side.VIRTUAL, PODS, REQUEST.key)
    return PlannedWrite(Write(Side.VIRTUAL, verb, pod("web", metadata={"uid": uid}), node="n1"), ref, None, (BIND,))


def bound(uid: str) -> BoundPods:
    pods = BoundPods()
    pods.sent(planned(uid), BIND, ServerAnswer(BIND, None, changed=True))
    return pods


@pytest.mark.parametrize(
    ("write", "calls"),
    [
        pytest.param(planned("u1"), (), id="bound already"),
        pytest.param(planned("u2"), (BIND,), id="another Pod of its name"),
        pytest.param(planned("u1", Verb.APPLY), (BIND,), id="another write of the Pod"),
    ],
)
def test_pod_is_bound_once(write: PlannedWrite, calls: tuple[Call, ...]) -> None:
    assert bound("u1").drop_bound(write, REQUEST).calls == calls


def test_pod_of_a_failed_binding_is_bound_again() -> None:
    pods = BoundPods()
    pods.sent(planned("u1"), BIND, None)
    assert pods.drop_bound(planned("u1"), REQUEST).calls == (BIND,)


def test_pod_is_bound_again_after_its_api_server_went_back_in_time() -> None:
    pods = bound("u1")
    pods.clear()
    assert pods.drop_bound(planned("u1"), REQUEST).calls == (BIND,)
