"""The laws detect violations: a syncer for each, broken in that way only."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st

from syncer.api import (
    Context,
    Decision,
    FakeSyncUp,
    Key,
    Mirror,
    Obj,
    Pair,
    Resource,
    Settings,
    Side,
    SyncDown,
    Syncer,
    apply,
    delete,
    key_of,
    skip,
)
from syncer.testing import strategies
from syncer.testing.laws import Scene, laws_for
from syncer.testing.objects import configmap, node

pytestmark = pytest.mark.slow

CONFIGMAPS = Resource("v1", "ConfigMap", "configmaps")


class Good(Mirror):
    """Obeys."""

    name = "good"
    resource = CONFIGMAPS
    down = ("data", "binaryData", "extra")
    exact = ("data", "binaryData")


class NeverRests(Good):
    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        host = super().translate(ctx, virtual)
        there = ctx.host(CONFIGMAPS, key_of(host))
        turn = "a" if there is None or (there.get("data") or {}).get("turn") != "a" else "b"
        return {**host, "data": {"turn": turn}}


class ForgetsItsCopy(Good):
    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        host = super().translate(ctx, virtual)
        host["metadata"]["annotations"][ctx.marks.name] = "other"
        return host


class LeavesBehind(Good):
    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        second = self.translate(ctx, virtual)
        second["metadata"]["name"] += "-2"
        return super().sync_down(ctx, virtual).then(apply(host=second))


class TakesUnmarked(Good):
    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        host = self.translate(ctx, virtual)
        del host["metadata"]["labels"][ctx.marks.cluster]
        return apply(host=host)


class WritesElsewhere(Good):
    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        host = self.translate(ctx, virtual)
        host["metadata"]["namespace"] = "kube-system"
        return apply(host=host)


class DeletesTheTenants(Good):
    def sync(self, ctx: Context, pair: Pair) -> Decision:
        other = ctx.virtual(CONFIGMAPS, Key(pair.virtual["metadata"]["namespace"], "bystander"))
        decision = super().sync(ctx, pair)
        return decision.then(delete(virtual=other, reason="because")) if other else decision


class NeedsMoreRights(Good):
    def sync(self, ctx: Context, pair: Pair) -> Decision:
        own = {key: pair.virtual["metadata"][key] for key in ("name", "namespace", "uid")}
        noted = {"metadata": {**own, "annotations": {"example.org/synced": "yes"}}}
        return super().sync(ctx, pair).then(apply(virtual=noted))


class GivesNoReason(Good):
    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        return skip("")


class ChangesItsInput(Good):
    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        virtual["metadata"].pop("annotations", None)
        return super().translate(ctx, virtual)


class NamesTooLong(Good):
    def host_key(self, settings: Settings, key: Key) -> Key:
        return Key(settings.host_namespace, f"{key.name}_{key.namespace}")

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        host = super().translate(ctx, virtual)
        host["metadata"]["name"] = ctx.host_key(key_of(virtual)).name
        host["metadata"]["annotations"][ctx.marks.host_name] = host["metadata"]["name"]
        return host


class SharesHostKeys(Good):
    def host_key(self, settings: Settings, key: Key) -> Key:
        return Key(settings.host_namespace, f"{key.name}-x-{key.namespace}-x-{settings.cluster}")


class LosesUnknown(Good):
    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        host = super().translate(ctx, virtual)
        if "extra" in host:
            host["extra"] = {"known": host["extra"].get("known", "")}
        return host


class Overwrites(Syncer, FakeSyncUp):
    """A fake that takes a Node of the tenant's own for its own."""

    name = "overwrites"
    resource = Resource("v1", "Node", "nodes", namespaced=False)
    reads = ()

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        return apply(virtual=node(key.name, metadata={"labels": {ctx.marks.cluster: ctx.identity}}))

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return skip("it is there")


OBJECTS = strategies.configmaps().map(lambda obj: {**obj, "extra": {"known": "x"}})


def _scene(obj: Obj) -> Scene:
    key = key_of(obj)
    return Scene(key, (obj, configmap("bystander", namespace=key.namespace)))


@contextmanager
def _quick() -> Iterator[None]:
    """Without shrinking and without the database: it only counts whether it fails."""
    settings.register_profile("broken", phases=[Phase.generate], database=None)
    before = settings.get_current_profile_name()
    settings.load_profile("broken")
    try:
        yield
    finally:
        settings.load_profile(before)


def _run(syncer: type[Syncer], law: str) -> None:
    with _quick():
        laws = laws_for(syncer, objects=OBJECTS.map(_scene), examples=60)
        getattr(laws(), law)()


@pytest.mark.parametrize(
    ("syncer", "law", "message"),
    [
        (NeverRests, "test_what_happens", "never in step"),
        (ForgetsItsCopy, "test_what_happens", "marks lead back to"),
        (LeavesBehind, "test_what_happens", "the copy is not"),
        (TakesUnmarked, "test_what_happens", "without our mark"),
        (WritesElsewhere, "test_what_happens", "may write to"),
        (DeletesTheTenants, "test_what_happens", "delete virtual configmaps .*: the object is not ours"),
        (NeedsMoreRights, "test_what_happens", "no right to patch virtual configmaps"),
        (GivesNoReason, "test_what_happens", "gives no reason"),
        (ChangesItsInput, "test_what_happens", "changed what it was given"),
        (NamesTooLong, "test_what_happens", "no name for a ConfigMap"),
        (SharesHostKeys, "test_no_two_keys_share_a_host_key", "share the host key"),
        (LosesUnknown, "test_unknown_fields_are_kept", "was lost on the way"),
    ],
)
def test_broken_syncer_is_found(syncer: type[Syncer], law: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        _run(syncer, law)


@pytest.mark.parametrize(
    "law",
    [
        "test_what_happens",
        "test_squatters_are_left_alone",
        "test_unknown_fields_are_kept",
        "test_no_two_keys_share_a_host_key",
    ],
)
def test_good_syncer_passes(law: str) -> None:
    _run(Good, law)


def test_fake_that_nothing_needs_any_more_must_go() -> None:
    with _quick():
        host = (configmap("any", namespace="vc-ns"),)
        laws = laws_for(Overwrites, objects=st.just(Scene(Key("", "n1"), (), host)), examples=5)
        with pytest.raises(AssertionError, match="the copy is not"):
            laws().test_what_happens()


def test_laws_are_tested_only_if_they_concern_the_syncer() -> None:
    laws = laws_for(Overwrites, objects=st.just(Scene(Key("", "n1"))))
    assert not hasattr(laws, "test_no_two_keys_share_a_host_key")
    assert not hasattr(laws, "test_unknown_fields_are_kept")
    assert issubclass(Good, SyncDown)
    assert hasattr(laws_for(Good, objects=OBJECTS), "test_unknown_fields_are_kept")


def test_sides_are_distinguished() -> None:
    from syncer.testing.trial import Trial
    from syncer.testing.world import World

    trial = Trial(Overwrites(), Scene(Key("", "n1")), lambda: World([Overwrites]))
    assert trial.source_side() is Side.HOST
    assert trial.copy_side() is Side.VIRTUAL
