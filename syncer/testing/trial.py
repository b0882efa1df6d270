"""A scene played in a world, with a record of everything that the laws are about."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncer.api import (
    ClusterError,
    Key,
    Obj,
    Refused,
    Resource,
    Side,
    Syncer,
    is_deleting,
    key_of,
    labels_of,
)
from syncer.directions import direction_of
from syncer.engine.reconcile.dispatch import dispatch
from syncer.engine.reconcile.plan import Observed
from syncer.testing.memory import Sent
from syncer.testing.world import World
from syncer.translate.merge_patch import merged

#: How often a syncer is called, with pods ending in between, before it must be at rest.
ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Scene:
    """The objects that exist when the syncer is called, including the one that it copies."""

    key: Key
    virtual: tuple[Obj, ...] = ()
    host: tuple[Obj, ...] = ()


#: An event that happens to the objects of a trial.
Event = Callable[["Trial"], None]


@dataclass(slots=True)
class Trial:
    """A syncer called about a key, in a world of its own."""

    syncer: Syncer = field(repr=False)
    scene: Scene
    make: Callable[[], World] = field(repr=False)
    #: The names of the events that happen first.
    history: Sequence[str] = ()
    events: Mapping[str, Event] = field(default_factory=dict, repr=False)
    #: Paths of fields that the copy leaves out on purpose.
    dropped: tuple[str, ...] = field(default=(), repr=False)
    world: World = field(init=False, repr=False)
    #: All requests, each with the object before it (None: there was none).
    sent: list[tuple[Sent, Obj | None]] = field(default_factory=list, repr=False)
    #: Reasons of decisions without writes.
    idle: list[str] = field(default_factory=list, repr=False)
    #: The refusal at the end, by us or by an API server; ``""`` if there was none.
    refused: str = field(default="", repr=False)
    #: All refusals.
    refusals: list[str] = field(default_factory=list, repr=False)
    #: True if the syncer changed one of its arguments.
    changed_inputs: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        self.world = self.make().given(virtual=self.scene.virtual, host=self.scene.host)

    # -- events ------------------------------------------------------------------------------------

    def live(self) -> None:
        """Let the events happen."""
        for name in self.history:
            self.events[name](self)

    def settle(self) -> None:
        """Reconcile until nothing is left to do, or until refused; pods that end are removed in
        between.
        """
        for _ in range(ROUNDS):
            if not self.step() and not self.end_pods():
                return
        calls = "; ".join(str(sent) for sent, _ in self.sent[-3:])
        raise AssertionError(
            f"{self.scene.key} needs writes again and again, and is never in step: {calls}",
        )

    def step(self) -> list[Sent]:
        """Reconcile once, and return the requests that were made."""
        before = {(side, *side_key): obj for side in Side for side_key, obj in self._all(side)}
        start = len(self.world.sent)
        self.refused = ""
        try:
            self._compare_inputs()
            decision = self.world.decide(self.syncer, self.scene.key)
            if not decision.writes:
                self.idle.append(decision.reason)
            self.world.apply(decision)
        except (Refused, ClusterError) as error:
            self.refused = str(error) or type(error).__name__
            self.refusals.append(self.refused)
        made = self.world.sent[start:]
        self.sent += [(sent, before.get((sent.side, sent.resource, sent.key))) for sent in made]
        return [] if self.refused else made

    def step_once(self) -> None:
        """Reconcile once."""
        self.step()

    def end_pods(self) -> bool:
        """Remove host objects that are terminating and have no finalizer.

        Return True if there were any.
        """
        ending = [
            obj
            for _, obj in self.world.objects(Side.HOST)
            if is_deleting(obj) and not obj["metadata"].get("finalizers")
        ]
        self.world.gone(host=ending)
        return bool(ending)

    def restart(self) -> "Trial":
        """Return the same objects in a new world: all that a newly started process knows."""
        scene = Scene(
            self.scene.key,
            tuple(self.objects(Side.VIRTUAL)),
            tuple(self.objects(Side.HOST)),
        )
        return Trial(self.syncer, scene, self.make)

    def remove_source(self) -> None:
        """Remove the original."""
        self.world.gone(**{self.source_side().value: self.sources()})

    def mark_source(self) -> None:
        """Mark the original as deleted; a finalizer holds it."""
        mark = {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/hold"]}
        marked = [merged(obj, {"metadata": mark}) for obj in self.sources()]
        self.world.given(**{self.source_side().value: marked})

    def change_copy(self, patch: Mapping[str, Any]) -> None:
        """Change the copy, if there is one, like someone else on that side."""
        copied = self.copied()
        if copied is not None:
            self.world.given(**{self.copy_side().value: [merged(copied, patch)]})

    def remove_copy(self) -> None:
        """Delete the copy, if there is one, like someone else."""
        copied = self.copied()
        if copied is not None:
            self.world.gone(**{self.copy_side().value: [copied]})

    def remake_source(self) -> None:
        """Delete the original and create it again unseen: the same key, another uid."""
        remade = []
        for obj in self.sources():
            uid = f"{obj['metadata']['uid']}-again"
            remade.append(merged(obj, {"metadata": {"uid": uid}}))
        self.world.given(**{self.source_side().value: remade})

    # -- objects -----------------------------------------------------------------------------------

    def source_side(self) -> Side:
        """Return the side that the original is on."""
        return Side.VIRTUAL if direction_of(self.syncer).goes_down else Side.HOST

    def copy_side(self) -> Side:
        """Return the side that copies are on."""
        return self.source_side().other

    def sources(self) -> list[Obj]:
        """Return the originals of the copy: the object of the key, or all objects given on that
        side.
        """
        if self.source_side() is Side.VIRTUAL:
            found = [self.world.virtual(self.syncer.resource.kind, self.scene.key)]
        else:
            found = [self.world.host(obj["kind"], key_of(obj)) for obj in self.scene.host]
        return [obj for obj in found if obj is not None]

    def copied(self) -> Obj | None:
        """Return the copy, if there is one with our mark."""
        if self.copy_side() is Side.VIRTUAL:
            found = self.world.virtual(self.syncer.resource.kind, self.scene.key)
        else:
            found = self.world.copy_of(self.syncer, self.scene.key)
        return found if found is not None and self.marked(found) else None

    def copies(self) -> list[Obj]:
        """Return all our objects on the side of copies, of any kind, that were not given."""
        given = {(obj["kind"], key_of(obj)) for obj in (*self.scene.virtual, *self.scene.host)}
        marked = [obj for obj in self.objects(self.copy_side()) if self.marked(obj)]
        return [obj for obj in marked if (obj["kind"], key_of(obj)) not in given]

    def marked(self, obj: Obj) -> bool:
        """Return True if an object bears our mark."""
        settings = self.world.settings
        return bool(labels_of(obj).get(settings.marks.cluster) == settings.identity)

    def objects(self, side: Side) -> list[Obj]:
        """Return private copies of all objects on a side."""
        return [obj for _, obj in self.world.objects(side)]

    def _compare_inputs(self) -> None:
        """Reconcile with objects that are compared afterwards, as a World gives each decision its
        own copies.
        """
        syncer = self.syncer
        key = self.scene.key
        virtual = self.world.virtual(syncer.resource.kind, key)
        ctx = self.world.context(syncer)  # adds the syncer to the world, if it isn't there yet
        pair = self.world.pair
        controller = pair.controllers[syncer.name]
        direction = controller.direction
        found = next(iter(self.sources()), None)
        if direction.goes_down:
            found = self.world.copy_of(syncer, key)
        host = found if direction.by_host else None
        host_key = key if host is None else key_of(host)
        observed = Observed(controller, controller.request(key), ctx, virtual, host, host_key)
        before = copy.deepcopy((virtual, host))
        try:
            dispatch(observed, pair.reconciler.pipelines[syncer.name].requests.role_substitutes)
        finally:
            self.changed_inputs = self.changed_inputs or (virtual, host) != before

    def _all(self, side: Side) -> Iterable[tuple[tuple[Resource, Key], Obj]]:
        return (((resource, key_of(obj)), obj) for resource, obj in self.world.objects(side))
