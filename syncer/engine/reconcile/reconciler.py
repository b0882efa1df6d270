"""The decision about one request: its objects are found, the syncer is asked, and what holds for all kinds is added."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, Precondition, Verb, Write, delete, skip
from syncer.api.errors import Refused
from syncer.api.objects import Key, Obj, ObjectRef, Request, Resource, Side, annotations_of, is_deleting, uid_of
from syncer.api.roles import FakeSyncUp, SyncDown, Syncer, SyncUp
from syncer.clusters import codec
from syncer.engine.apply.applier import BySide
from syncer.engine.reconcile.controller import Controller, Reads
from syncer.engine.reconcile.dispatch import reconcile
from syncer.engine.reconcile.policies.pause import Pause
from syncer.engine.reconcile.policies.staleness import doubted, is_fresh


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Where requests of one link are decided from what was last seen."""

    settings: Settings
    reads: Reads
    utcnow: Callable[[], datetime]
    pause: Pause

    def context(self, controller: Controller) -> Context:
        """What the syncer may see, as of now."""
        syncer = controller.syncer
        return Context(
            settings=self.settings,
            config=controller.config,
            resource=syncer.resource,
            host_resource=syncer.host_resource,
            reader=self.reads,
            now=self.utcnow(),
            place=syncer.host_key,
        )

    def look(self, controller: Controller, request: Request) -> tuple[Decision, BySide]:
        """The decision about a request, and the objects that it was made from."""
        ctx, syncer = self.context(controller), controller.syncer
        self.reads.noted.clear()
        virtual = self._seen(Side.VIRTUAL, syncer.resource, request.key)
        host = self._host_of(syncer, ctx, request)
        if paused := self.pause.look(syncer, request, virtual=virtual, host=host):
            return paused, {Side.VIRTUAL: virtual, Side.HOST: host}
        if request.host_key and isinstance(syncer, SyncDown):
            if host is None:
                return skip("the copy at another place is gone"), {}
            place = syncer.host_key(self.settings, request.key)
            raise Refused(
                f"{syncer.host_resource.kind} {request.host_key} on the host is marked as the copy of {request.key},"
                f" which is now translated to {place}; set names.translator back, or delete it by hand",
                reason="NameCollision",
            )
        maker = self.reads.references.maker(syncer.resource, request.key) if isinstance(syncer, SyncDown) else None
        if maker:
            decision = _left_to_the_host(syncer, ctx, host, f"the host makes it, for {maker}")
        else:
            decision = reconcile(syncer, ctx, request.key, virtual=virtual, host=host)
            decision = controller.patcher.apply(decision, ctx=ctx, virtual=virtual, host=host)
        objects = {Side.VIRTUAL: virtual, Side.HOST: host}
        decision = self._ruled(controller, request, decision, objects)
        decision = self._with_preconditions(controller, request, decision, objects)
        return doubted(controller, decision, objects=objects, references=self.reads.references), objects

    def _ruled(self, controller: Controller, request: Request, decision: Decision, objects: BySide) -> Decision:
        """The decision as it is under what the configuration rules for this kind."""
        virtual, host = objects[Side.VIRTUAL], objects[Side.HOST]
        if controller.ownership is None or virtual is None:
            return decision
        syncer, marks = controller.syncer, self.settings.marks
        if marks.is_from_here(virtual, cluster=self.settings.identity):
            return decision  # it came from the host
        place = ObjectRef(Side.HOST, syncer.host_resource, syncer.host_key(self.settings, request.key))
        return controller.ownership.applied(decision, virtual=virtual, host=host, place=place)

    def _with_preconditions(
        self, controller: Controller, request: Request, decision: Decision, objects: BySide
    ) -> Decision:
        """Deletions that follow from an object on the other side, with what the live API server has to confirm."""
        if not decision.deletes:
            return decision
        writes = tuple(self._with_precondition(controller, request, write, objects) for write in decision.writes)
        return replace(decision, writes=writes)

    def _with_precondition(self, controller: Controller, request: Request, write: Write, objects: BySide) -> Write:
        syncer, other = controller.syncer, write.side.other
        if write.verb is not Verb.DELETE or write.precondition is not None:
            return write
        if not isinstance(syncer, SyncDown):
            return self._with_origin(controller, request, write, objects)
        obj = objects.get(other)
        if other is Side.VIRTUAL:
            seen = ObjectRef(other, syncer.resource, request.key)
        else:
            seen = ObjectRef(other, syncer.host_resource, syncer.host_key(self.settings, request.key))
        copied_from = annotations_of(write.obj).get(self.settings.marks.uid)
        if obj is None:
            return write if self._saw_go(seen, write, copied_from) else replace(write, precondition=Precondition(seen))
        is_earlier = write.side is Side.HOST and copied_from not in (None, uid_of(obj))
        return replace(write, precondition=Precondition(seen, uid_of(obj))) if is_earlier else write

    def _with_origin(self, controller: Controller, request: Request, write: Write, objects: BySide) -> Write:
        """For what begins on the host and isn't there any more.

        Where it is only not among what is watched any more, it is taken into the store, and decided about as it is.
        """
        syncer = controller.syncer
        if not isinstance(syncer, SyncUp) or write.side is Side.HOST or objects.get(Side.HOST) is not None:
            return write
        place = request.host_key or syncer.host_key(self.settings, request.key)
        store = self.reads.informers.store(Side.HOST, syncer.host_resource)
        known = place in store or (store.saw_go(place) and not is_fresh(store))
        return (
            write
            if known
            else replace(write, precondition=Precondition(ObjectRef(Side.HOST, syncer.host_resource, place)))
        )

    def _saw_go(self, seen: ObjectRef, write: Write, copied_from: str | None) -> bool:
        """Whether it is known that just that object is gone which a deletion follows from."""
        if not self.reads.informers.has(seen.side, seen.resource):
            return True
        store = self.reads.informers.store(seen.side, seen.resource)
        if seen.side is Side.VIRTUAL:
            return store.saw_go(seen.key, copied_from)
        # What went may have been the copy of an earlier object; that matters unless the tenant has asked for the end.
        return is_deleting(write.obj) and store.saw_go(seen.key)

    def is_gone(self, controller: Controller, request: Request) -> bool:
        """Whether nothing is left of what a request is about, so that there is nothing to say of it any more."""
        syncer = controller.syncer
        from_virtual = isinstance(syncer, SyncDown | FakeSyncUp) and request.host_key is None
        if from_virtual and request.key in self.reads.informers.store(Side.VIRTUAL, syncer.resource):
            return False
        return self._host_of(syncer, self.context(controller), request) is None

    def _host_of(self, syncer: Syncer, ctx: Context, request: Request) -> Obj | None:
        """The host object that a request is about."""
        if isinstance(syncer, FakeSyncUp):
            return None
        place = request.host_key or syncer.host_key(self.settings, request.key)
        host = self._seen(Side.HOST, syncer.host_resource, place)
        if host is None or isinstance(syncer, SyncDown) or not isinstance(syncer, SyncUp):
            return host
        return host if syncer.virtual_key(ctx, host) == request.key else None

    def _seen(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        obj = self.reads.informers.get(side, resource, key) if self.reads.informers.has(side, resource) else None
        if obj is not None and codec.UNREADABLE in obj:
            why = f"the {side} {resource.kind} {key} can't be read: {obj[codec.UNREADABLE]}"
            raise Refused(f"{why}. Write it anew, or delete it", reason="Unreadable")
        return obj


def _left_to_the_host(syncer: Syncer, ctx: Context, host: Obj | None, reason: str) -> Decision:
    """What the host makes itself has no copy of ours, which would be overwritten and written again for ever."""
    if host is None or is_deleting(host) or not ctx.marks.is_ours(host, cluster=ctx.identity, resource=syncer.resource):
        return skip(reason)
    return delete(host=host, reason=reason)
