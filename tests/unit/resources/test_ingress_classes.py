"""With a selector, an Ingress has no class on the host but those that appear in the virtual cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from syncer.api import Decision, Obj, Refused, dig
from syncer.resources.kinds import INGRESS_CLASSES
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, ingress

SHOWN = {"labels": {"tenants": "yes"}}
DEFAULT = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
SELECTED = {"enabled": True, "selector": {"matchLabels": {"tenants": "yes"}}}
ANNOTATION = "kubernetes.io/ingress.class"
LEGACY = "/metadata/annotations/kubernetes.io~1ingress.class"


def class_(name: str, **metadata: Any) -> Obj:
    return build(INGRESS_CLASSES, name, spec={"controller": "example.org/a"}, metadata=metadata)


def world_with(*classes: Obj, options: Obj | None = None, selected: Obj | None = None) -> World:
    down = {"ingresses": {"enabled": True, **(options or {})}}
    config = {"sync": {"toHost": down, "fromHost": {"ingressClasses": SELECTED if selected is None else selected}}}
    return World(config=config).given(host=classes)


def by_field(name: str) -> Obj:
    return ingress("web", spec={"ingressClassName": name})


def by_annotation(name: str) -> Obj:
    return ingress("web", metadata={"annotations": {ANNOTATION: name}})


def class_on_host(world: World, path: str = "spec.ingressClassName") -> Any:
    copy = world.copy_of("ingresses", "shop/web")
    return dig(copy, path) if copy else None


def asked(world: World, virtual: Obj) -> Decision:
    """Let the tenant have an Ingress, carry the decision about it out, and return it."""
    world.given(virtual=[virtual])
    decision = world.decide("ingresses", "shop/web")
    world.apply(decision)
    return decision


@pytest.mark.parametrize("naming", [by_field, by_annotation])
def test_class_that_does_not_appear_is_waited_for(naming: Callable[[str], Obj]) -> None:
    world = world_with(class_("internal-admin"), class_("public", **SHOWN))
    decision = asked(world, naming("internal-admin"))
    assert decision.writes == ()
    assert decision.warning
    assert decision.warning == (
        "ClassNotListed",
        "the host has no IngressClass internal-admin for this virtual cluster: name one that is listed",
    )
    world.given(host=[class_("internal-admin", **SHOWN)])
    assert world.decide("ingresses", "shop/web").writes


@pytest.mark.parametrize(("naming", "path"), [(by_field, "spec.ingressClassName"), (by_annotation, LEGACY)])
def test_change_to_a_class_that_does_not_appear_waits_and_the_address_comes_up(
    naming: Callable[[str], Obj], path: str
) -> None:
    world = world_with(class_("internal-admin"), class_("public", **SHOWN))
    world.given(virtual=[naming("public")])
    world.settle("ingresses", "shop/web")
    copy = world.copy_of("ingresses", "shop/web")
    original = world.virtual("Ingress", "shop/web")
    assert copy
    assert original
    address = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    world.given(host=[merged(copy, {"status": address})])
    decision = asked(world, merged(original, naming("internal-admin")))
    assert decision.warning
    assert class_on_host(world, path) == "public"
    assert dig(world.virtual("Ingress", "shop/web") or {}, "status") == address


def test_annotation_that_stays_behind_names_no_class() -> None:
    denied = {"metadata": {"annotations": {"deny": [ANNOTATION]}}}
    world = world_with(class_("internal-admin"), class_("public", **SHOWN, **DEFAULT), options=denied)
    asked(world, by_annotation("internal-admin"))
    assert class_on_host(world) == "public"
    assert class_on_host(world, LEGACY) is None


def test_ingress_without_a_class_has_the_default_of_the_host() -> None:
    world = world_with(class_("public", **SHOWN, **DEFAULT))
    asked(world, ingress("web"))
    assert class_on_host(world) == "public"
    world.settle("ingresses", "shop/web")
    assert "ingressClassName" not in dig(world.virtual("Ingress", "shop/web") or {}, "spec")


@pytest.mark.parametrize("classes", [(), (class_("internal-admin", **DEFAULT), class_("public", **SHOWN))])
def test_ingress_without_a_class_waits_if_the_default_of_the_host_does_not_appear(classes: tuple[Obj, ...]) -> None:
    decision = asked(world_with(*classes), ingress("web"))
    assert decision.writes == ()
    assert decision.warning
    assert decision.warning.message.startswith("it names no IngressClass, and the host's default isn't for this")


def test_class_that_is_taken_off_an_ingress_is_the_default_then() -> None:
    public = class_("public", **SHOWN, **DEFAULT)
    world = world_with(public, class_("blue", **SHOWN))
    asked(world, by_field("blue"))
    asked(world, ingress("web"))
    assert class_on_host(world) == "public"
    asked(world, by_field("blue"))
    world.gone(host=[public])
    decision = asked(world, ingress("web"))
    assert class_on_host(world) == "blue"
    assert decision.warning


@pytest.mark.parametrize("naming", [by_field, by_annotation])
def test_copy_is_deleted_once_its_class_is_not_selected(naming: Callable[[str], Obj]) -> None:
    world = world_with(class_("public", **SHOWN))
    asked(world, naming("public"))
    world.given(host=[class_("public", labels={})])
    decision = world.decide("ingresses", "shop/web")
    assert decision.warning
    assert decision.warning.reason == "GrantRevoked"
    world.settle("ingresses", "shop/web")
    assert world.copy_of("ingresses", "shop/web") is None
    world.given(host=[class_("public", **SHOWN)])
    world.settle("ingresses", "shop/web")
    assert world.copy_of("ingresses", "shop/web")


def test_copy_of_a_deleted_class_is_still_updated() -> None:
    public = class_("public", **SHOWN)
    world = world_with(public)
    asked(world, by_field("public"))
    world.gone(host=[public])
    asked(world, merged(by_field("public"), {"metadata": {"labels": {"tier": "front"}}}))
    assert class_on_host(world, "metadata.labels.tier") == "front"


def test_class_that_the_host_owns_is_not_asked_about() -> None:
    world = world_with(class_("public", **SHOWN), options={"authority": {"spec.ingressClassName": "host"}})
    asked(world, by_field("public"))
    original = world.virtual("Ingress", "shop/web")
    assert original
    asked(world, merged(original, {"spec": {"ingressClassName": "internal-admin"}}))
    world.settle("ingresses", "shop/web")
    assert class_on_host(world) == "public"
    assert dig(world.virtual("Ingress", "shop/web") or {}, "spec.ingressClassName") == "public"
    world.given(host=[class_("public", labels={})])
    world.settle("ingresses", "shop/web")
    assert class_on_host(world) == "public"


@pytest.mark.parametrize("selected", [{}, {"enabled": True}])
def test_without_a_selector_the_host_gives_an_ingress_its_class(selected: Obj) -> None:
    world = world_with(class_("public", **DEFAULT), selected=selected)
    asked(world, ingress("web"))
    assert world.copy_of("ingresses", "shop/web")
    assert class_on_host(world) is None


def test_allowed_classes_still_require_one() -> None:
    world = world_with(class_("public", **SHOWN, **DEFAULT), options={"allowedClasses": ["public"]})
    world.given(virtual=[ingress("web")])
    with pytest.raises(Refused, match="a class is required: use public"):
        world.decide("ingresses", "shop/web")
