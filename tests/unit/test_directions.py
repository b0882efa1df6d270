"""Directions: which one a syncer's roles imply, and which request a change belongs to."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import syncer
from syncer.api import (
    Context,
    Decision,
    FakeSyncUp,
    Initialize,
    Key,
    Mirror,
    Obj,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    Syncer,
    SyncFromHost,
    SyncRequest,
    SyncUp,
    apply,
    skip,
)
from syncer.directions import (
    Direction,
    Fake,
    FromHost,
    FromHostOrFake,
    Nowhere,
    ToHost,
    ToHostOrFake,
    direction_class,
    direction_of,
)
from syncer.names import SingleNamespace
from syncer.testing.merge import merged
from syncer.testing.world import World

MAPS = Resource("v1", "ConfigMap", "configmaps")
SETTINGS = Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns"))
KEY = Key("shop", "web")
HOST_KEY = SETTINGS.names.to_host(MAPS, KEY)


class Down(Mirror):
    """Goes down, where it may."""

    name = "down"
    resource = MAPS
    down = ("data",)

    def predicate(self, virtual: Obj) -> bool:
        return "data" in virtual


class Elsewhere(Down):
    """Goes down into a namespace that the operator names."""

    name = "elsewhere"

    def host_namespaces(self, settings: Settings) -> tuple[str, ...]:
        return ("infra",)

    def host_key(self, settings: Settings, key: Key) -> Key:
        return Key("infra", key.name)


class Up(Syncer, SyncFromHost):
    """Comes up under its own name."""

    name = "up"
    resource = MAPS

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        return Key("shop", host["metadata"]["name"])

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        return apply(virtual=ctx.virtual_copy(host, KEY), reason="it is there")


class Reverting(Up):
    """Puts back what a tenant changes."""

    name = "reverting"
    reverts_virtual_changes = True

    def host_key(self, settings: Settings, key: Key) -> Key:
        return Key("vc-ns", key.name)


class Stand(Syncer, FakeSyncUp):
    """Is nowhere else."""

    name = "stand"
    resource = MAPS

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        return skip("fake_sync_up")

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return skip("fake_sync")


class Prepares(Syncer, Initialize):
    """Syncs nothing."""

    name = "prepares"

    async def init(self, live: Any) -> None:
        """Nothing."""


class DownOrStand(Down, Stand):
    """Goes down, or is nowhere else."""

    name = "down-or-stand"


class UpOrStand(Reverting, Stand):
    """Comes up, or is nowhere else."""

    name = "up-or-stand"


@pytest.mark.parametrize(
    ("kind", "direction"),
    [
        (Down, ToHost),
        (Up, FromHost),
        (Reverting, FromHost),
        (Stand, Fake),
        (DownOrStand, ToHostOrFake),
        (UpOrStand, FromHostOrFake),
        (Prepares, Nowhere),
    ],
)
def test_direction_follows_from_the_roles(kind: type[Syncer], direction: type) -> None:
    assert direction_class(kind) is direction
    assert type(direction_of(kind())) is direction


def decided(direction: Direction, ctx: Context, *, virtual: Obj | None = None, host: Obj | None = None) -> Decision:
    answered = direction.answer(ctx, KEY, virtual=virtual, host=host)
    return direction.call_role(ctx, KEY, virtual=virtual, host=host) if answered is None else answered


def test_sync_up_beside_sync_down_is_asked_about_orphans_alone() -> None:
    class Keeps(Down, SyncUp):
        name = "keeps"

        def sync_up(self, ctx: Context, host: Obj) -> Decision:
            return skip("it stays")

    keeps = direction_of(Keeps())
    assert type(keeps) is ToHost
    assert decided(keeps, World([Down]).context(Down), host=COPY).reason == "it stays"


class View:
    """The view of a direction: a syncer, and the existing keys."""

    settings = SETTINGS

    def __init__(self, kind: type[Syncer], **there: tuple[Key, ...]) -> None:
        self.syncer, self.there = kind(), there

    def context(self) -> Context:
        made: Context = World([type(self.syncer)]).context(self.syncer)
        return made

    def request(self, key: Key, host_key: Key | None = None) -> SyncRequest:
        return SyncRequest("vc", self.syncer.name, key, host_key)

    def host_key(self, key: Key) -> Key:
        return self.syncer.host_key(SETTINGS, key)

    def has(self, side: Side, key: Key) -> bool:
        return key in self.there.get(side.value, ())

    def may_have_copy(self, virtual: Obj) -> bool:
        return self.syncer.predicate(virtual)


def obj(namespace: str = "shop", name: str = "web", **parts: Any) -> Obj:
    metadata = {"namespace": namespace, "name": name, "uid": "u"}
    return merged({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, parts)


COPY = World([Down]).context(Down).host_copy(obj())
FROM_HERE = obj(metadata={"labels": {SETTINGS.marks.cluster: SETTINGS.identity}})
STRAY = merged(COPY, {"metadata": {"name": "other", "annotations": {SETTINGS.marks.host_name: "other"}}})
ORIGIN = Key("vc-ns", "web")


@pytest.mark.parametrize(
    ("kind", "side", "key", "changed", "there", "asked"),
    [
        (Down, Side.VIRTUAL, KEY, obj(data={}), {}, (KEY, None)),
        (Down, Side.VIRTUAL, KEY, obj(), {}, None),
        (Down, Side.VIRTUAL, KEY, obj(), {"host": (HOST_KEY,)}, (KEY, None)),
        (Down, Side.VIRTUAL, KEY, None, {}, (KEY, None)),
        (Down, Side.HOST, HOST_KEY, COPY, {}, (KEY, None)),
        (Down, Side.HOST, Key("vc-ns", "other"), STRAY, {}, (KEY, Key("vc-ns", "other"))),
        (Down, Side.HOST, HOST_KEY, obj("vc-ns", HOST_KEY.name), {}, None),
        (Up, Side.HOST, ORIGIN, obj("vc-ns"), {}, (KEY, ORIGIN)),
        (Reverting, Side.HOST, ORIGIN, obj("vc-ns"), {}, (KEY, None)),
        (Reverting, Side.VIRTUAL, KEY, FROM_HERE, {"virtual": (KEY,)}, (KEY, None)),
        (Reverting, Side.VIRTUAL, KEY, obj(), {"virtual": (KEY,)}, None),
        (Reverting, Side.VIRTUAL, KEY, obj(), {}, (KEY, None)),
        (Stand, Side.VIRTUAL, KEY, obj(), {}, (KEY, None)),
        (Stand, Side.HOST, HOST_KEY, COPY, {}, None),
        (DownOrStand, Side.VIRTUAL, KEY, FROM_HERE, {}, (KEY, None)),
        (DownOrStand, Side.HOST, HOST_KEY, COPY, {}, (KEY, None)),
        (UpOrStand, Side.HOST, ORIGIN, obj("vc-ns"), {}, (KEY, None)),
        (Prepares, Side.VIRTUAL, KEY, obj(), {}, None),
    ],
)
def test_request_for_a_changed_object(
    kind: type[Syncer], side: Side, key: Key, changed: Obj | None, there: Any, asked: tuple[Key, Key | None] | None
) -> None:
    found = direction_of(kind()).request_for(View(kind, **there), side, key, changed)
    assert found == (SyncRequest("vc", kind.name, *asked) if asked else None)


@pytest.mark.parametrize(
    ("kind", "by_virtual", "by_host"),
    [
        (Down, True, True),
        (Up, False, True),
        (Reverting, True, True),
        (Stand, True, False),
        (Prepares, False, False),
        (DownOrStand, True, True),
        (UpOrStand, True, True),
    ],
)
def test_keys_that_are_all_asked_about(kind: type[Syncer], by_virtual: bool, by_host: bool) -> None:
    direction = direction_of(kind())
    assert (direction.by_virtual, direction.by_host) == (by_virtual, by_host)


FOREIGN = obj("vc-ns", HOST_KEY.name)


@pytest.mark.parametrize(
    ("kind", "virtual", "host", "reason"),
    [
        (DownOrStand, None, None, "fake_sync_up"),
        (DownOrStand, FROM_HERE, None, "fake_sync"),
        (DownOrStand, obj(), None, "the virtual object has no copy on the host yet"),
        (DownOrStand, None, COPY, "the virtual object is gone"),
        (DownOrStand, None, FOREIGN, "fake_sync_up"),
        (DownOrStand, FROM_HERE, FOREIGN, "fake_sync"),
        (UpOrStand, None, None, "fake_sync_up"),
        (UpOrStand, FROM_HERE, None, "fake_sync"),
        (
            UpOrStand,
            obj(),
            None,
            "no host object appears as this one: there is none, or sync.toHost.up-or-stand leaves it out",
        ),
        (UpOrStand, None, obj("vc-ns"), "it is there"),
        (UpOrStand, FROM_HERE, obj("vc-ns"), "it is there"),
    ],
)
def test_object_that_exists_nowhere_else_is_faked(
    kind: type[Syncer], virtual: Obj | None, host: Obj | None, reason: str
) -> None:
    ctx = World([kind]).context(kind)
    assert decided(direction_of(kind()), ctx, virtual=virtual, host=host).reason == reason


def test_rights_and_sources_are_those_of_both_directions() -> None:
    both = direction_of(DownOrStand())
    assert set(both.sources()) == {*direction_of(Down()).sources(), *direction_of(Stand()).sources()}
    assert set(both.rights()) == {*direction_of(Down()).rights(), *direction_of(Stand()).rights()}
    assert Source(Side.VIRTUAL, MAPS) in direction_of(UpOrStand()).sources(), "a tenant's own may be in the way"


def test_objects_in_namespaces_of_the_operators_are_watched_and_written_there_alone() -> None:
    direction = direction_of(Elsewhere())
    assert not direction.is_among_copies(SETTINGS)
    places = {each.namespaces for each in direction.sources(SETTINGS) if each.side is Side.HOST}
    assert places == {("infra",)}
    assert {each.namespaces for each in direction.rights(SETTINGS) if each.side is Side.HOST} == {("infra",)}


def test_objects_in_namespaces_of_the_operators_are_no_copies() -> None:
    """Another syncer makes the copies of the kind, and a name in a copy leads to those."""
    world = World([Down, Elsewhere]).given(virtual=[obj()])
    for kind in (Down, Elsewhere):
        world.settle(kind, KEY)
    copy, other = world.host("ConfigMap", HOST_KEY), world.host("ConfigMap", Key("infra", KEY.name))
    assert copy
    assert other
    for kind, own, of_another in ((Down, copy, other), (Elsewhere, other, copy)):
        direction, ctx = direction_of(kind()), world.context(kind)
        assert direction.is_real(ctx, own)
        assert not direction.is_real(ctx, of_another)
        assert world.settle(kind, KEY) == [], "in step, whatever the other one has made"
    pair = world.pair
    assert pair.controllers["down"].stands_for == MAPS
    assert pair.controllers["elsewhere"].stands_for is None
    [copied] = world.context(Elsewhere).copied_by("", "ConfigMap")
    assert copied.host_key(KEY) == HOST_KEY


def test_object_outside_of_the_operators_namespaces_is_not_written() -> None:
    world = World([Elsewhere]).given(virtual=[obj()])
    decision = world.decide(Elsewhere, KEY)
    [write] = decision.writes
    elsewhere = replace(write, obj=merged(write.obj, {"metadata": {"namespace": "vc-ns"}}))
    with pytest.raises(Refused, match=r"isn't listed in sync\.toHost\.elsewhere"):
        world.apply(replace(decision, writes=(elsewhere,)))


ROLES = {"SyncDown", "SyncUp", "SyncFromHost", "FakeSyncUp"}


def test_roles_are_checked_by_directions_alone() -> None:
    root = Path(syncer.__file__).parent
    known = {*(root / "directions").glob("*.py"), *(root / "api").glob("*.py")}
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        if path not in known
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass")
        if ROLES & {getattr(each, "id", "") for each in ast.walk(node.args[1])}
    ]
    assert found == [], "ask the syncer's direction"


@pytest.mark.reason("SyncsNothing")
def test_syncer_without_a_direction_skips_whatever_it_is_asked() -> None:
    ctx: Any = None
    nowhere = Nowhere(Syncer())
    assert nowhere.answer(ctx, Key("shop", "a"), virtual=None, host=None) == nowhere.call_role(
        ctx, Key("shop", "a"), virtual=None, host=None
    )
