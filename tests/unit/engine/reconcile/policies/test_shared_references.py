"""Fields of both sides whose values are translated: names of other objects, and selectors."""

from typing import Any, ClassVar

import pytest

from syncer.api import Mirror, Obj, Reference, References, Refused, Resource, Selects, Side, Source
from syncer.resources.kinds import PODS, SECRETS
from syncer.rights.rbac import sources
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, host_copy, secret

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
KEY, HOST_KEY = "shop/w", "vc-ns/w-x-shop-x-vc"
LONG = "long" * 60


class Widgets(Mirror):
    """Widgets: either side may set the named Secret and the selected Pods."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    both = ("spec.to", "spec.list", "spec.selector")
    references: ClassVar[References] = {
        "spec.to.name": Reference(SECRETS, namespace="namespace"),
        "spec.list[]": SECRETS,
        "spec.selector": Selects(PODS),
        "spec.own": SECRETS,
    }


def on_host(name: str, namespace: str = "shop") -> str:
    made: str = host_copy(secret(name, namespace=namespace))["metadata"]["name"]
    return made


def started(**spec: Any) -> World:
    """Return a widget and its copy in step, and the copies of some Secrets."""
    copies = [host_copy(secret(name)) for name in ("a", "b", LONG)] + [host_copy(secret("far", namespace="blog"))]
    world = World([Widgets]).given(virtual=[build(WIDGETS, "w", spec={"own": "a", **spec})], host=copies)
    world.settle(Widgets, KEY)
    return world


def restarted(world: World) -> World:
    return World([Widgets]).given(**{side.value: [obj for _, obj in world.objects(side)] for side in Side})


def specs(world: World) -> tuple[Obj, Obj]:
    virtual, host = world.virtual("Widget", KEY), world.host("Widget", HOST_KEY)
    assert virtual
    assert host
    return virtual["spec"], host["spec"]


def edit(world: World, side: Side, spec: Obj) -> World:
    obj = world.virtual("Widget", KEY) if side is Side.VIRTUAL else world.host("Widget", HOST_KEY)
    assert obj
    return world.given(**{side.value: [merged(obj, {"spec": spec})]})


@pytest.mark.parametrize("again", [lambda world: world, restarted], ids=["running", "restarted"])
@pytest.mark.parametrize(
    ("there", "here"),
    [
        ({"to": {"name": on_host("b")}}, {"to": {"name": "b"}}),
        ({"to": {"name": on_host(LONG)}}, {"to": {"name": LONG}}),
        ({"to": {"name": on_host("far", "blog"), "namespace": "vc-ns"}}, {"to": {"name": "far", "namespace": "blog"}}),
        ({"to": None}, {"to": None}),
        ({"list": [on_host("b"), on_host(LONG)]}, {"list": ["b", LONG]}),
        ({"selector": {"matchLabels": {"app": "db"}}}, {"selector": {"matchLabels": {"app": "db"}}}),
    ],
)
def test_names_from_the_host_come_up_translated(there: Obj, here: Obj, again: Any) -> None:
    world = started(to={"name": "a"}, list=["a"], selector={"matchLabels": {"app": "web"}})
    before = specs(world)
    world = again(edit(world, Side.HOST, there))
    world.settle(Widgets, KEY)
    virtual, host = specs(world)
    assert virtual == merged(before[0], here)
    selector = {"vsyncer.dev/cluster": "vc.vc-ns", "vsyncer.dev/namespace": "shop"}
    assert host == merged(merged(before[1], there), {"selector": {"matchLabels": selector}})


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({"to": {"name": "b"}}, {"to": {"name": on_host("b")}}),
        ({"to": {"name": LONG}}, {"to": {"name": on_host(LONG)}}),
        ({"list": ["b", "a"]}, {"list": [on_host("b"), on_host("a")]}),
        ({"list": None}, {"list": None}),
    ],
)
def test_names_of_the_tenant_go_down(here: Obj, there: Obj) -> None:
    world = started(to={"name": LONG}, list=[LONG])
    before = specs(world)[1]
    edit(world, Side.VIRTUAL, here).settle(Widgets, KEY)
    assert specs(world)[1] == merged(before, there)


def test_virtual_side_wins_where_both_change_a_name() -> None:
    world = started(to={"name": "a"})
    edit(world, Side.HOST, {"to": {"name": "the-hosts-own"}})
    edit(world, Side.VIRTUAL, {"to": {"name": "b"}}).settle(Widgets, KEY)
    assert [spec["to"]["name"] for spec in specs(world)] == ["b", on_host("b")]


@pytest.mark.parametrize(
    "there",
    [
        {"to": {"name": "the-hosts-own"}},
        {"to": {"name": on_host("far", "blog")}},
        {"list": [on_host("a"), "the-hosts-own"]},
    ],
)
def test_host_name_without_a_virtual_object_never_comes_up(there: Obj) -> None:
    world = started(to={"name": "a"}, list=["a"])
    edit(world, Side.HOST, there)
    with pytest.raises(Refused, match="the host names something there for which no virtual object") as caught:
        world.decide(Widgets, KEY)
    assert "the-hosts-own" not in str(caught.value), "the tenant reads it"


def test_field_of_one_owner_is_restored() -> None:
    world = started()
    edit(world, Side.HOST, {"own": on_host("b")}).settle(Widgets, KEY)
    assert [spec["own"] for spec in specs(world)] == ["a", on_host("a")]


def test_copies_are_read_for_the_marks_of_named_objects() -> None:
    assert Source(Side.HOST, SECRETS, marked=True) in sources(Widgets())
    assert all(source.resource != SECRETS for source in sources(type("Own", (Widgets,), {"both": ()})()))
