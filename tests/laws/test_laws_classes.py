"""With a selector, the name of a class of the host is copied only while that class appears in the virtual cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from class_rows import ROWS, ClassRow
from hypothesis import given, settings
from hypothesis import strategies as st
from sampled import registry

from syncer.api import Obj, Refused, Resource, dig, path_steps
from syncer.resources.classes import HostClass
from syncer.resources.kinds import INGRESSES, PERSISTENT_VOLUME_CLAIMS, PODS, VOLUME_SNAPSHOTS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, host_copy

NAMES = ("basic", "fast", "of-the-host")
#: More than the requests that any change takes.
ROUNDS = 5


@dataclass(frozen=True)
class Field:
    """A field that names a class."""

    resource: Resource
    path: str
    section: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    #: True: the host gives a default class to objects that name none.
    has_default: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    #: What else there is on the host.
    beside: tuple[Obj, ...] = ()

    @property
    def row(self) -> ClassRow:
        """The kind of classes."""
        return next(row for row in ROWS if row.section == self.section)

    def config(self) -> dict[str, Any]:
        """Return a configuration in which a selector chooses the classes."""
        kind = {"Pod": "pods", "Ingress": "ingresses", "PersistentVolumeClaim": "persistentVolumeClaims"}
        kind["VolumeSnapshot"] = "volumeSnapshots"
        off = {"serviceAccounts": {"enabled": False}, "podTokens": {"enabled": False}}
        down = merged(off, {kind[self.resource.kind]: {"enabled": True, **self.options}})
        classes = {"enabled": True, "selector": {"matchLabels": {"tenants": "yes"}}}
        networking = {"dns": {"service": ""}}
        return {"networking": networking, "sync": {"toHost": down, "fromHost": {self.section: classes}}}

    def naming(self, name: str | None) -> Obj:
        """Return an object that names a class."""
        made = build(self.resource, "web", spec=dict(self.spec))
        if name is None:
            return made
        patch: Any = name
        for step in reversed(path_steps(self.path)):
            patch = {step: patch}
        return merged(made, patch)


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
POD = {"containers": [{"name": "app", "image": "i:1"}]}
RULES = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
#: By the driver of the classes of all rows.
PROVIDED = {"volume.kubernetes.io/storage-provisioner": "disk.example.org"}
BETA = "volume.beta.kubernetes.io/storage-class"
FIELDS = (
    Field(PERSISTENT_VOLUME_CLAIMS, "spec.storageClassName", "storageClasses", CLAIM, has_default=True),
    Field(
        PERSISTENT_VOLUME_CLAIMS,
        "/metadata/annotations/volume.beta.kubernetes.io~1storage-class",
        "storageClasses",
        CLAIM,
        has_default=True,
        options={"metadata": {"annotations": {"allow": ["*", BETA]}}},
    ),
    Field(PERSISTENT_VOLUME_CLAIMS, "spec.volumeAttributesClassName", "volumeAttributesClasses", CLAIM),
    Field(INGRESSES, "spec.ingressClassName", "ingressClasses", RULES, has_default=True),
    Field(INGRESSES, "/metadata/annotations/kubernetes.io~1ingress.class", "ingressClasses", RULES, has_default=True),
    Field(
        VOLUME_SNAPSHOTS,
        "spec.volumeSnapshotClassName",
        "volumeSnapshotClasses",
        {"source": {"persistentVolumeClaimName": "data"}},
        has_default=True,
        beside=(host_copy(build(PERSISTENT_VOLUME_CLAIMS, "data"), metadata={"annotations": PROVIDED}),),
    ),
    Field(PODS, "spec.runtimeClassName", "runtimeClasses", POD),
    Field(PODS, "spec.priorityClassName", "priorityClasses", POD),
)
DEFAULTS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
    "ingressclass.kubernetes.io/is-default-class",
    "snapshot.storage.kubernetes.io/is-default-class",
)

#: The classes of the host by name: whether one appears, and the annotation that makes it the default.
CLASSES = st.dictionaries(st.sampled_from(NAMES), st.tuples(st.booleans(), st.sampled_from(("", *DEFAULTS))))
#: What the tenant names, and what there is on the host then.
STEPS = st.lists(st.tuples(st.sampled_from((None, "", *NAMES, "nowhere")), CLASSES), min_size=1, max_size=4)


def on_host(row: ClassRow, classes: Mapping[str, tuple[bool, str]]) -> list[Obj]:
    """Return the classes of the host."""
    found = []
    for number, (name, (appears, default)) in enumerate(sorted(classes.items())):
        labels = {"tenants": "yes"} if appears else {}
        annotations = {default: "true"} if default else {}
        created = f"2026-01-01T00:00:0{number}Z"
        metadata = {"labels": labels, "annotations": annotations, "creationTimestamp": created}
        found.append(row.named(name, metadata=metadata))
    return found


def settled(world: World, syncer: str) -> None:
    """Ask about the object until nothing is left to do, or it is refused."""
    for _ in range(ROUNDS):
        try:
            if not world.apply(world.decide(syncer, "shop/web")):
                return
        except Refused:
            return


@pytest.mark.parametrize("named", [pytest.param(each, id=f"{each.resource.kind} {each.path}") for each in FIELDS])
@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_name_of_a_class_is_copied_only_while_it_appears(named: Field, steps: list[Any]) -> None:
    syncer, world = named.resource.plural, World(config=named.config())
    there: list[Obj] = []
    before: str | None = None
    for name, classes in steps:
        world.gone(host=there)
        there = [*on_host(named.row, classes), *named.beside]
        known = world.virtual(named.resource.kind, "shop/web")
        status = (known or {}).get("status")
        world.given(virtual=[{**named.naming(name), **({"status": status} if status else {})}], host=there)
        settled(world, syncer)
        copy = world.copy_of(syncer, "shop/web")
        if copy is None:
            continue
        found = dig(copy, named.path)
        shown = {each for each, (appears, _) in classes.items() if appears}
        assert not found or found == before or found in shown
        before = found


@pytest.mark.parametrize("named", [pytest.param(each, id=f"{each.resource.kind} {each.path}") for each in FIELDS])
@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from((None, *NAMES)), classes=CLASSES)
def test_host_chooses_no_class_for_a_copy(named: Field, name: str | None, classes: dict[str, tuple[bool, str]]) -> None:
    """Where the host would give a copy its default class, the copy names one."""
    syncer, world = named.resource.plural, World(config=named.config())
    world.given(virtual=[named.naming(name)], host=[*on_host(named.row, classes), *named.beside])
    settled(world, syncer)
    copy = world.copy_of(syncer, "shop/web")
    if copy is not None and named.has_default:
        fields = [each.path for each in FIELDS if (each.resource, each.section) == (named.resource, named.section)]
        assert any(dig(copy, path) for path in fields)


def test_each_kind_of_classes_is_named_by_a_field() -> None:
    kinds = {syncer.section for syncer in registry() if issubclass(syncer, HostClass)}
    assert {f"fromHost.{each.section}" for each in FIELDS} == kinds
