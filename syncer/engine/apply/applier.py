"""Step 5: a decision into the fewest API calls, or none. The only place that writes."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from syncer.api.decision import Decision, Precondition, Verb, Write
from syncer.api.errors import Conflict, Exists, Invalid, Missing, NotConnected, Refused
from syncer.api.marks import Marks
from syncer.api.names import NameTranslator
from syncer.api.objects import Key, Obj, Request, Resource, Side, key_of, labels_of, uid_of
from syncer.api.roles import Syncer
from syncer.clusters.client import Cluster
from syncer.engine.apply.field_managers import name_others
from syncer.engine.apply.preconditions import must_be_served, must_be_unused, must_have_home
from syncer.engine.apply.tokens import with_tokens
from syncer.engine.cache.assumed import Writing
from syncer.engine.cache.informers import Informers
from syncer.engine.reconcile.dispatch import collision
from syncer.engine.reconcile.plan import Call, Operation, create_only_paths, exact_paths, needed
from syncer.engine.reconcile.policies.contention import Contention, Frozen, HeldFields, Place
from syncer.engine.reconcile.policies.drift_policy import DriftPolicy

#: How often a write looks again at what its own calls left to do: create, then status.
ROUNDS = 3


#: The objects of a request by side.
BySide = Mapping[Side, Obj | None]
NOTHING: BySide = {}


class Recorder(Protocol):
    """What hears of writes, for metrics."""

    def wrote(self, side: Side, verb: str) -> None:
        """One API call that changed something."""

    def futile(self, side: Side) -> None:
        """One API call that changed nothing."""

    def held(self, held: HeldFields) -> None:
        """Fields of one object are left alone, because somebody else writes them, too."""


class WritePlan(NamedTuple):
    """What a write needs as of what was last seen."""

    place: Place
    live: Obj | None
    calls: Sequence[Call]
    #: What of it is frozen, and so not in the calls.
    held: Sequence[Frozen] = ()


@dataclass(frozen=True, slots=True)
class Applier:
    """Carries out the decisions of one virtual cluster's syncers."""

    identity: str
    marks: Marks
    names: NameTranslator
    virtual: Cluster
    host: Cluster
    informers: Informers
    has_status: Callable[[Side, Resource], bool]
    #: Whether we may write at all: false as soon as leadership has run out, however late we notice.
    may_write: Callable[[], bool]
    #: Patches that changed nothing, by side, resource and key: the version they were sent over. Sent once, not again.
    futile: MutableMapping[tuple[Side, Resource, Key], tuple[str, Call]]
    #: The uids of Pods that we have bound: the reply to a binding doesn't show the Pod, and its event may be late.
    bound: MutableMapping[str, None]
    #: The fields that somebody else sets back each time.
    contention: Contention
    #: What is left as somebody else has made it, because the drift policy of the kind says so.
    drift_policy: DriftPolicy

    async def carry_out(
        self,
        syncer: Syncer,
        decision: Decision,
        recorder: Recorder,
        *,
        seen: BySide = NOTHING,
        request: Request | None = None,
    ) -> set[Side]:
        """Make the writes in order; gives the sides on which calls were made.

        ``seen`` are the objects that the decision was made from, to save reading them again. Fields that are fought
        over are frozen in the name of a ``request`` only. Raises :class:`ClusterError` and ``Refused``.
        """
        sides = set()
        for write in decision.writes:
            if await self._write(syncer, write, recorder, seen, request):
                sides.add(write.side)
        return sides

    # -- one write -------------------------------------------------------------------------------------------------

    async def _write(
        self, syncer: Syncer, write: Write, recorder: Recorder, seen: BySide, request: Request | None
    ) -> int:
        made = 0
        for _ in range(ROUNDS):
            plan = self._plan(syncer, write, seen, request)
            for call in plan.calls:
                made += 1
                changed = await self._make(syncer, write, plan, call)
                if changed:
                    recorder.wrote(write.side, call.kind)
                else:
                    recorder.futile(write.side)
            if plan.held:
                await name_others(plan.held, self.virtual if write.side is Side.VIRTUAL else self.host)
                recorder.held(self.contention.held(plan.held))
            if not plan.calls or plan.calls[-1].kind is not Operation.CREATE or "status" not in write.obj:
                break
        self.drift_policy.settled(syncer.name, write, plan.place)
        return made

    async def _make(self, syncer: Syncer, write: Write, plan: WritePlan, call: Call) -> bool:
        changed = False
        try:
            changed = await self._send(syncer, write, call)
        finally:
            self.contention.sent(plan.place, call, plan.live, changed=changed)
        return changed

    def calls(self, syncer: Syncer, write: Write, seen: BySide = NOTHING) -> list[Call]:
        """The calls that a write needs as of what was last seen; raises ``Refused`` where it must not be made.

        Also those that a drift policy leaves out.
        """
        plan = self._plan(syncer, write, seen)
        if not plan.calls and not plan.held:
            self.drift_policy.settled(syncer.name, write, plan.place)
        return list(plan.calls)

    def _plan(self, syncer: Syncer, write: Write, seen: BySide, request: Request | None = None) -> WritePlan:
        resource = self._resource(syncer, write)
        key = key_of(write.obj)
        live = self._live(write.side, resource, key, seen)
        self._check(write, live, resource)
        place = (write.side, resource, key)
        if write.verb is Verb.BIND and uid_of(write.obj) in self.bound:
            return WritePlan(place, live, ())
        calls = needed(
            write,
            live,
            exact=exact_paths(syncer, write),
            create_only=create_only_paths(syncer, write),
            marks=self.marks,
            has_status=self.has_status(write.side, resource),
        )
        if calls and request is not None:
            calls = self.drift_policy.left(syncer.name, write, calls, place=place, live=live)
        if not calls:
            return WritePlan(place, live, ())
        if request is not None:
            self.contention.freeze(place, calls, live, request)
        calls, held = self.contention.sift(place, calls, live)
        known = self.futile.get(place)
        if known is not None and live is not None:
            calls = [call for call in calls if known != (live["metadata"]["resourceVersion"], call)]
        return WritePlan(place, live, calls, held)

    def _live(self, side: Side, resource: Resource, key: Key, seen: BySide) -> Obj | None:
        store = self.informers.store(side, resource)
        entry, obj = store.entry(key), seen.get(side)
        if entry is not None and obj is not None:
            metadata = obj["metadata"]
            if metadata.get("resourceVersion") == entry.version and metadata.get("uid", "") == entry.uid:
                return obj
        return store.get(key)

    def _check(self, write: Write, live: Obj | None, resource: Resource) -> None:
        """Refuse what must never happen, whatever a syncer decided: a write to what lacks our mark, or elsewhere."""
        if write.side is Side.VIRTUAL:
            return
        marked = labels_of(write.obj).get(self.marks.cluster) == self.identity
        if not marked:
            raise Refused(f"the host object {key_of(write.obj)} would be written without our mark")
        if live is not None and labels_of(live).get(self.marks.cluster) != self.identity:
            raise collision(live)
        namespaces = self.names.host_namespaces()
        namespace = key_of(write.obj).namespace
        if resource.namespaced and namespaces is not None and namespace not in namespaces:
            raise Refused(f"the host namespace {namespace} is not one that this virtual cluster may write to")

    def _resource(self, syncer: Syncer, write: Write) -> Resource:
        if write.resource is not None:
            return write.resource
        return syncer.resource if write.side is Side.VIRTUAL else syncer.host_resource

    async def _send(self, syncer: Syncer, write: Write, call: Call) -> bool:
        if not self.may_write():
            raise NotConnected("another daemon may lead by now; nothing is written until this one leads again")
        resource, key = self._resource(syncer, write), key_of(write.obj)
        cluster = self.virtual if write.side is Side.VIRTUAL else self.host
        body = call.body
        if write.tokens:
            body = await with_tokens(write, body, virtual=self.virtual, marks=self.marks)
        store = self.informers.store(write.side, resource)
        with store.writing(key) as writing:
            try:
                match call.kind:
                    case Operation.CREATE:
                        if write.precondition is not None:
                            await self._must_hold(write.precondition)
                        return store.wrote(key, writing, await cluster.create(resource, body))
                    case Operation.DELETE:
                        return await self._delete(cluster, resource, write, writing)
                    case Operation.BIND:
                        await cluster.create(resource, body, subresource="binding", key=key)
                        self.bound[uid_of(write.obj)] = None
                        return True
                    case _:
                        return await self._patch(cluster, resource, key, Call(call.kind, body), writing)
            except (Conflict, Exists, Missing):
                await self._look(cluster, resource, key, writing)
                raise
            except Invalid as error:
                await self._check_uid(cluster, resource, key, call, writing, error)
                raise

    async def _patch(self, cluster: Cluster, resource: Resource, key: Key, call: Call, writing: Writing) -> bool:
        store = self.informers.store(cluster.side, resource)
        before = store.entry(key)
        reply = await cluster.patch(
            resource,
            key,
            call.body,
            kind="strategic" if call.kind is Operation.CONDITIONS else "merge",
            subresource="" if call.kind is Operation.PATCH else "status",
        )
        changed = store.wrote(key, writing, reply)
        place = (cluster.side, resource, key)
        if not changed and before is not None:
            self.futile[place] = (before.version, call)
        else:
            self.futile.pop(place, None)
        return changed

    async def _delete(self, cluster: Cluster, resource: Resource, write: Write, writing: Writing) -> bool:
        key, uid = key_of(write.obj), uid_of(write.obj)
        store = self.informers.store(cluster.side, resource)
        if write.only_if_none is not None:
            await must_be_unused(cluster, resource, key, users=write.only_if_none)
        if write.precondition is not None:
            await self._must_hold(write.precondition)
        # On the host a copy may have ceased to be ours a moment ago; a virtual object stays what it is.
        version = write.obj["metadata"].get("resourceVersion") if write.side is Side.HOST else None
        try:
            left = await cluster.delete(
                resource, key, uid=uid, resource_version=version, grace=write.grace, propagation="Background"
            )
        except Missing:
            left = None
        if left is None:
            store.deleted(key, writing, uid)
            return True
        return store.wrote(key, writing, left)

    async def _must_hold(self, precondition: Precondition) -> None:
        """Raise :class:`Conflict` where the object that a write follows from is another one than was last seen."""
        side, resource, key = precondition.seen.side, precondition.seen.resource, precondition.seen.key
        store = self.informers.store(side, resource)
        with store.writing(key) as writing:
            await self._look(self.virtual if side is Side.VIRTUAL else self.host, resource, key, writing)
        entry = store.entry(key)
        same = (entry.uid if entry else "") == precondition.uid
        if not same or (entry and precondition.version not in ("", entry.version)):
            raise Conflict(f"the {side} {resource.kind} {key} is not as it was last seen", side=side)
        if precondition.since:
            then, mark = precondition.since, self.marks.copied
            await must_be_served(self.host, resource, key.namespace, since=then, mark=mark)
            if key.namespace:
                await must_have_home(self.host, key.namespace, since=then, mark=mark)

    async def _check_uid(
        self, cluster: Cluster, resource: Resource, key: Key, call: Call, writing: Writing, error: Invalid
    ) -> None:
        """Raise :class:`Conflict` where a patch was refused because the object is another one by now.

        An API server answers 422 then (``metadata.uid: field is immutable``), and not 409 as it does for a delete.
        """
        meant = call.body.get("metadata", {}).get("uid")
        if call.kind in (Operation.CREATE, Operation.DELETE, Operation.BIND) or not meant:
            return
        await self._look(cluster, resource, key, writing)
        entry = self.informers.store(cluster.side, resource).entry(key)
        if entry is None or entry.uid != meant:
            raise Conflict(f"{error}: it is another object of this name by now", side=cluster.side) from error

    async def _look(self, cluster: Cluster, resource: Resource, key: Key, writing: Writing) -> None:
        """The store is behind: read the object itself, so that the next decision is made from fresh state.

        On the host, what doesn't bear our mark stays out of the store (the watch would never tell that it went); it
        stands in the way, and that is the answer.
        """
        store = self.informers.store(cluster.side, resource)
        try:
            live = await cluster.get(resource, key)
        except Missing:
            store.gone_live(key, writing)
            return
        ours = labels_of(live).get(self.marks.cluster) == self.identity
        if ours or not self.informers.is_marked(cluster.side, resource):
            store.seen_live(live, writing)
        else:
            store.gone_live(key, writing)
            raise collision(live, cluster.side)
