"""The role that is called, and the checks before: objects that aren't ours are never changed."""

from typing import Any

import pytest
from engine_fakes import (
    KEY,
    MARKS,
    WIDGETS,
    DownOnly,
    KeptReports,
    Reports,
    Stands,
    UpToo,
    Widgets,
    context,
    copy_of,
    deleting,
    observed,
    virtual,
)

from syncer.api import (
    AroundReconcile,
    Context,
    Decision,
    Excludes,
    Key,
    Obj,
    Outcome,
    Refused,
    Resource,
    Side,
    Syncer,
    SyncRequest,
    Verb,
    apply,
)
from syncer.engine.reconcile.dispatch import dispatch
from syncer.testing.merge import merged


def ask(syncer: Syncer, *, v: Obj | None = None, h: Obj | None = None) -> Decision:
    return dispatch(observed(SyncRequest("vc", syncer.name, KEY), virtual=v, host=h, syncer=syncer))


def deleted(decision: Decision) -> tuple[Side, str]:
    """Return the side and uid of a deletion, the only write."""
    [write] = decision.writes
    assert write.verb is Verb.DELETE
    return write.side, write.obj["metadata"]["uid"]


def unmarked(copy: Obj, **metadata: Any) -> Obj:
    return merged(copy, {"metadata": metadata})


ORIGINAL = virtual()
COPY = copy_of(ORIGINAL)

#: Host objects in the place of a copy that are not the copy.
FOREIGN = {
    "no label": unmarked(COPY, labels={MARKS.cluster: None}),
    "another virtual cluster": unmarked(COPY, labels={MARKS.cluster: "other.vc-ns"}),
    "another kind": unmarked(COPY, annotations={MARKS.kind: "Pod"}),
    "a copy of our copy": unmarked(COPY, annotations={MARKS.host_name: "elsewhere"}),
    "a copy of our copy in another namespace": unmarked(COPY, annotations={MARKS.host_namespace: "elsewhere"}),
    "no virtual name": unmarked(COPY, annotations={MARKS.name: None}),
}


@pytest.fixture(params=FOREIGN)
def foreign(request: pytest.FixtureRequest) -> Obj:
    return FOREIGN[request.param]


# -- what begins on the virtual side ---------------------------------------------------------------


def test_key_that_neither_side_has_needs_nothing() -> None:
    assert ask(Widgets()).outcome is Outcome.SKIPPED


def test_virtual_object_alone_goes_down() -> None:
    [write] = ask(DownOnly(), v=ORIGINAL).writes
    assert (write.side, write.verb) == (Side.HOST, Verb.APPLY)


def test_virtual_object_that_is_being_deleted_gets_no_copy_any_more() -> None:
    assert ask(Widgets(), v=deleting(ORIGINAL)).writes == ()


def test_orphan_of_ours_is_deleted() -> None:
    assert deleted(ask(Widgets(), h=COPY)) == (Side.HOST, "h1")


def test_orphan_that_is_being_deleted_already_is_left_to_it() -> None:
    assert ask(Widgets(), h=deleting(COPY)).writes == ()


def test_syncer_with_sync_up_is_asked_about_its_orphans() -> None:
    assert ask(UpToo(), h=COPY).reason == "sync_up"


@pytest.mark.parametrize("syncer", [Widgets(), UpToo(), DownOnly()])
@pytest.mark.reason("NotOurs")
def test_host_object_that_is_not_ours_is_no_orphan(syncer: Syncer, foreign: Obj) -> None:
    decision = ask(syncer, h=foreign)
    assert (decision.writes, decision.outcome) == ((), Outcome.SKIPPED)


@pytest.mark.parametrize("original", [ORIGINAL, deleting(ORIGINAL), virtual(uid="v2")])
def test_object_at_the_key_of_a_copy_is_left_alone(original: Obj, foreign: Obj) -> None:
    with pytest.raises(Refused, match=r"the host cluster has a Widget .* that is not ours; it is left") as refused:
        ask(Widgets(), v=original, h=foreign)
    assert refused.value.reason == "NameCollision"
    assert refused.value.why == (
        "another Widget on the host has the name that this object's copy would get. "
        "Rename this object, or ask the operator"
    ), "the tenant sees one of the two"
    assert refused.value.in_the_way is None, "a watch shows its end"


def test_pair_is_synced_if_the_uid_matches() -> None:
    decision = ask(Widgets(), v=merged(ORIGINAL, {"spec": {"a": 1}}), h=merged(COPY, {"status": {"b": 2}}))
    host, up = decision.writes
    assert (host.side, host.obj["spec"]) == (Side.HOST, {"a": 1})
    assert (up.side, up.obj["status"]) == (Side.VIRTUAL, {"b": 2})


def test_copy_is_updated_by_sync_down_without_sync() -> None:
    assert ask(DownOnly(), v=ORIGINAL, h=COPY).reason == "sync_down"


@pytest.mark.reason("EarlierCopyEnds")
def test_copy_of_an_earlier_object_of_the_name_is_deleted_first() -> None:
    assert deleted(ask(Widgets(), v=virtual(uid="v2"), h=COPY)) == (Side.HOST, "h1")
    waiting = ask(Widgets(), v=virtual(uid="v2"), h=deleting(COPY))
    assert (waiting.writes, waiting.outcome) == ((), Outcome.PENDING)


def test_deletion_goes_down() -> None:
    assert deleted(ask(Widgets(), v=deleting(ORIGINAL), h=COPY)) == (Side.HOST, "h1")


def test_copy_stays_and_is_kept_in_step_until_the_original_is_gone() -> None:
    class ReadOnly(Widgets):
        deletion = "whenGone"

    ending = deleting(merged(ORIGINAL, {"spec": {"a": 1}}))
    [made] = [write for write in ask(ReadOnly(), v=ending).writes if write.side is Side.HOST]
    kept = ask(ReadOnly(), v=ending, h=COPY).writes[0]
    for write in (made, kept):
        assert (write.side, write.verb, write.obj["spec"]) == (Side.HOST, Verb.APPLY, {"a": 1})
    assert deleted(ask(ReadOnly(), h=COPY)) == (Side.HOST, "h1")
    assert ask(ReadOnly(), v=ending, h=deleting(COPY)).outcome is Outcome.PENDING
    assert deleted(ask(ReadOnly(), v=deleting(virtual(uid="v2")), h=COPY)) == (Side.HOST, "h1")


def test_wait_for_an_earlier_copy_warns_the_tenant() -> None:
    waits = ask(Widgets(), v=virtual(uid="v2"), h=deleting(COPY))
    assert waits.warning
    assert waits.warning.reason == "EarlierCopyEnds"
    assert "the copy of an earlier Widget of this name" in waits.warning.message
    assert ask(Widgets(), v=ORIGINAL, h=deleting(COPY)).warning is None


def test_copy_that_somebody_deletes_is_waited_for() -> None:
    for original in (ORIGINAL, deleting(ORIGINAL)):
        decision = ask(Widgets(), v=original, h=deleting(COPY))
        assert (decision.writes, decision.outcome) == ((), Outcome.PENDING)


def test_syncer_of_its_own_deletion_is_asked_also_then() -> None:
    class Own(Widgets):
        own_deletion = True

    assert ask(Own(), v=deleting(ORIGINAL)).writes
    assert ask(Own(), v=deleting(ORIGINAL), h=COPY).writes[0].verb is Verb.APPLY
    assert ask(Own(), v=ORIGINAL, h=deleting(COPY)).writes[0].verb is Verb.APPLY
    assert deleted(ask(Own(), v=virtual(uid="v2"), h=COPY)) == (Side.HOST, "h1")


# -- what begins on the host -----------------------------------------------------------------------

REPORT = {
    "apiVersion": "example.org/v1",
    "kind": "Widget",
    "metadata": {"name": "web", "namespace": "vc-ns", "uid": "h1"},
}
FROM_HERE = virtual(metadata={"labels": {MARKS.cluster: context(Reports()).identity}})


def test_host_object_comes_up_with_or_without_a_virtual_one() -> None:
    assert ask(Reports(), h=REPORT).reason == "sync_from_host"
    assert ask(Reports(), h=REPORT, v=FROM_HERE).reason == "sync_from_host"
    assert ask(KeptReports(), h=REPORT, v=FROM_HERE).reason == "sync"


@pytest.mark.parametrize("syncer", [Reports(), KeptReports()])
def test_tenants_own_object_of_the_same_name_is_left_alone(syncer: Syncer) -> None:
    with pytest.raises(Refused, match="the virtual cluster has a Widget shop/web that is not ours") as refused:
        ask(syncer, h=REPORT, v=virtual())
    assert refused.value.reason == "NameCollision"
    assert refused.value.why == (
        "the host has a Widget that would have the name of this one here, which is left alone. "
        "Rename or remove this one to have that of the host"
    )


def test_object_deleted_on_the_host_is_deleted_in_the_virtual_cluster() -> None:
    assert deleted(ask(KeptReports(), v=FROM_HERE)) == (Side.VIRTUAL, "v1")
    assert ask(Reports(), v=FROM_HERE).writes == ()
    assert ask(KeptReports(), v=virtual()).writes == ()


# -- what exists nowhere ---------------------------------------------------------------------------


def test_fake_is_made_if_missing_and_kept_if_ours() -> None:
    assert ask(Stands()).reason == f"fake_sync_up {KEY}"
    assert ask(Stands(), v=FROM_HERE).reason == "fake_sync"
    assert "not one that we made" in ask(Stands(), v=virtual()).reason


# -- optional roles --------------------------------------------------------------------------------


class Picky(Widgets, Excludes):
    """Leaves alone what says so."""

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        return f"{side} says so" if obj.get("leave") else None


@pytest.mark.parametrize(
    ("v", "h", "reason"),
    [
        (virtual(leave=True), None, "virtual says so"),
        (virtual(leave=True), COPY, "virtual says so"),
        (ORIGINAL, merged(COPY, {"leave": True}), "host says so"),
        (None, merged(COPY, {"leave": True}), "host says so"),
        (virtual(leave=True, uid="v2"), COPY, "virtual says so"),
    ],
)
def test_excluded_object_is_left_alone_altogether(v: Obj | None, h: Obj | None, reason: str) -> None:
    decision = ask(Picky(), v=v, h=h)
    assert (decision.writes, decision.reason, decision.outcome) == ((), reason, Outcome.SKIPPED)


class Around(Widgets, AroundReconcile):
    """Writes down what happens around a request."""

    def __init__(self, reason: str | None = None, error: Exception | None = None) -> None:
        self.reason, self.error = reason, error
        self.heard: list[Any] = []

    def reconcile_start(self, ctx: Context, key: Key) -> str | None:
        self.heard.append(("start", key))
        return self.reason

    def reconcile_end(self, ctx: Context, key: Key, error: Exception | None) -> None:
        self.heard.append(("end", key, error))

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        self.heard.append("asked")
        if self.error:
            raise self.error
        return apply(host=ctx.host_copy(virtual))


def around(syncer: Around) -> Decision:
    return ask(syncer, v=ORIGINAL)


def test_request_is_surrounded() -> None:
    syncer = Around()
    assert around(syncer).writes
    assert syncer.heard == [("start", KEY), "asked", ("end", KEY, None)]


def test_reconcile_start_can_skip_a_request() -> None:
    syncer = Around(reason="not now")
    assert around(syncer).reason == "not now"
    assert syncer.heard == [("start", KEY), ("end", KEY, None)]


def test_reconcile_end_gets_the_error() -> None:
    error = ValueError("oh")
    syncer = Around(error=error)
    with pytest.raises(ValueError, match="oh"):
        around(syncer)
    assert syncer.heard[-1] == ("end", KEY, error)


def test_syncer_without_hooks_is_called_alone() -> None:
    syncer = DownOnly()
    assert ask(syncer, v=ORIGINAL).reason == "sync_down"
    assert syncer.resource == Resource("example.org/v1", "Widget", "widgets") == WIDGETS
