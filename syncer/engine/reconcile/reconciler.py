"""The reconciler makes the plan of a request from cached objects.

It does no I/O and may be called at any time; only policies may remember anything.

Used by workers, patroller, circuit breaker, dry run, and the World of the tests.
"""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field

from syncer.api.context import Settings
from syncer.api.decision import Decision, Write, wait
from syncer.api.errors import NotYet, Refused
from syncer.api.marks import Marks
from syncer.api.objects import Key, Obj, ObjectRef, Resource, Side, SyncRequest, key_of, labels_of
from syncer.cache.decoded import DECODED
from syncer.cache.parts import refuse_many_keys, refuse_many_parts
from syncer.clusters import codec
from syncer.directions import collision
from syncer.engine.reconcile.calls import needed
from syncer.engine.reconcile.controller import BoundSyncer, CheckedCopies, Reads, View
from syncer.engine.reconcile.dispatch import dispatch
from syncer.engine.reconcile.pipeline import Answer, Pipeline, Pipelines
from syncer.engine.reconcile.plan import Decided, Deferred, Observed, Plan, PlannedWrite, Reconciled
from syncer.engine.reconcile.policies.generations import Generations
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.engine.reconcile.trace import Explained, TraceStep, traced
from syncer.engine.stores.informers import SideInformer


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Plans the requests of a pair."""

    view: View
    #: The host namespaces that may be written to.
    homes: HostNamespaces
    #: Returns True if a resource has the status subresource on a side.
    has_status: Callable[[Side, Resource], bool]
    #: The policies of each controller, by the name of its syncer.
    pipelines: MutableMapping[str, Pipelines] = field(default_factory=dict)

    def reconcile(
        self, controller: BoundSyncer, request: SyncRequest, known: CheckedCopies | None = None
    ) -> Reconciled:
        """Return the plan of a request or the error instead of it, and the objects that were read.

        Args:
            controller: The controller of the request.
            request: The request.
            known: The named copies that were checked before; others may then be left unread. None
                to read all of them.
        """
        reads = self.view.reads(known)
        pipeline = self.pipelines[request.syncer].requests
        try:
            plan = self._plan(controller, request, reads, pipeline)
        except Exception as error:  # noqa: BLE001 — the caller judges it by its class
            # No variable keeps the error: its traceback refers to this frame, a cycle otherwise.
            return Reconciled(None, error, tuple(reads.noted), reads.left_out, tuple(reads.unread))
        return Reconciled(plan, None, tuple(reads.noted), reads.left_out, tuple(reads.unread))

    def plan(self, controller: BoundSyncer, request: SyncRequest) -> Plan:
        """Return the plan of a request.

        Raises:
            Refused: The request can't be carried out. Any other exception of the syncer is passed
                on, too.
        """
        pipeline = self.pipelines[request.syncer].requests
        return self._plan(controller, request, self.view.reads(), pipeline)

    def admit(self, plan: Plan, written_from: str | None = None) -> Deferred | None:
        """Return why the calls of a plan may not be sent now; None if they may.

        Args:
            plan: The plan of a request.
            written_from: The version of the virtual object that the same request has just written
                from; None if it has written nothing yet.
        """
        for planned in plan.writes:
            if planned.calls:
                break
        else:
            return None
        for gate in self.pipelines[plan.observed.request.syncer].requests.gates:
            deferred = gate(plan, written_from)
            if deferred is not None:
                return deferred
        return None

    def scan(self, controller: BoundSyncer, request: SyncRequest) -> Plan:
        """Return the plan that would mend everything, including writes that a policy holds back.

        Raises as :meth:`plan`.
        """
        pipeline = self.pipelines[controller.name].scan
        return self._plan(controller, request, self.view.reads(), pipeline)

    def decide(self, controller: BoundSyncer, request: SyncRequest, view: View) -> Decided:
        """Return the decision about a request, as made with this view of the caches.

        Raises as :meth:`plan`.
        """
        reads = view.reads()
        pipeline = self.pipelines[controller.name].requests
        observed, decision = self._decide(controller, request, reads, pipeline)
        generations = pipeline.generations
        if generations is not None and generations.concern(observed, decision):
            decision, _ = self._with_generations(observed, decision, pipeline, generations)
        return Decided(decision, tuple(reads.noted), reads.vacant, reads.left_out)

    def explain(self, controller: BoundSyncer, request: SyncRequest) -> Explained:
        """Return the plan of :meth:`scan` or the error instead of it, with all that led to it."""
        steps: list[TraceStep] = []
        reads = self.view.reads()
        plan = None
        failure = None
        try:
            pipeline = traced(self.pipelines[controller.name].scan, steps)
            plan = self._plan(controller, request, reads, pipeline)
        except Exception as error:  # noqa: BLE001 — the caller shows it
            failure = error.with_traceback(None)
        return Explained(plan, failure, tuple(steps), tuple(reads.noted), reads.left_out)

    def is_gone(self, controller: BoundSyncer, request: SyncRequest) -> bool:
        """Return True if neither object of a request exists."""
        direction = controller.direction
        from_virtual = (direction.goes_down or direction.fakes) and request.host_key is None
        if from_virtual and controller.has(Side.VIRTUAL, request.key):
            return False
        if direction.goes_down:
            host_key = request.host_key or controller.host_key(request.key)
            if not controller.has(Side.HOST, host_key):
                return True
        return self._observe(controller, request, self.view.reads()).host is None

    def plan_decision(self, controller: BoundSyncer, decision: Decision) -> Plan:
        """Return the plan of a decision that was made elsewhere, from the cached objects."""
        request = controller.request(Key("", ""))
        pipeline = self.pipelines[controller.name].scan
        observed = Observed(controller, request, controller.context(), None, None, request.key)

        def again(write: Write) -> PlannedWrite:
            return self.planned(observed, write, pipeline)

        writes = tuple([self.planned(observed, write, pipeline) for write in decision.writes])
        return Plan(decision, writes, observed, again, pipeline.results)

    def planned(
        self, observed: Observed, write: Write, pipeline: Pipeline, *, is_latest: bool = False
    ) -> PlannedWrite:
        """Return a write with the calls that it takes.

        With ``is_latest`` the observed objects are still those in the cache, and aren't read again.

        Raises:
            Refused: The write is forbidden.
        """
        controller = observed.controller
        syncer = controller.syncer
        side = write.side
        key = key_of(write.obj)
        if side is Side.VIRTUAL:
            resource = write.resource or syncer.resource
            own_key = observed.request.key
            own = observed.virtual
        else:
            own_namespaces = controller.own_namespaces
            if own_namespaces is not None and key.namespace not in own_namespaces:
                section = f"sync.{syncer.section}"
                raise Refused(f"the host namespace of {key} isn't listed in {section}")
            resource = write.resource or syncer.host_resource
            own_key = observed.host_key
            own = observed.host

        ref = ObjectRef(side, resource, key)
        is_own = write.resource is None and key == own_key
        if own is not None and is_latest and is_own:
            live: Obj | None = own
        else:
            live = controller.store_of(ref).get(key)
        if side is Side.HOST:
            self._check(controller, write, live, resource)
        exact = controller.exact[side] if write.exact is None else write.exact
        is_copy = side is Side.HOST and write.resource is None
        create_only = controller.syncer.create_only if is_copy else ()
        calls = needed(
            write,
            live,
            exact=exact,
            create_only=create_only,
            marks=self.view.settings.marks,
            has_status=live is not None and self.has_status(side, resource),
            verbatim=not resource.is_built_in,
        )
        planned = PlannedWrite(write, ref, live, calls)
        if calls:
            for policy in pipeline.calls:
                planned = policy(planned, observed.request)
        return planned

    # -- inside ------------------------------------------------------------------------------------

    def _plan(
        self, controller: BoundSyncer, request: SyncRequest, reads: Reads, pipeline: Pipeline
    ) -> Plan:
        observed, decision = self._decide(controller, request, reads, pipeline)

        def again(write: Write) -> PlannedWrite:
            return self.planned(observed, write, pipeline)

        generations = pipeline.generations
        if generations is not None and generations.concern(observed, decision):
            decision, writes = self._with_generations(observed, decision, pipeline, generations)
        else:
            writes = [
                self.planned(observed, write, pipeline, is_latest=True) for write in decision.writes
            ]
        return Plan(decision, tuple(writes), observed, again, pipeline.results, reads.vacant)

    def _with_generations(
        self,
        observed: Observed,
        decision: Decision,
        pipeline: Pipeline,
        generations: Generations,
    ) -> tuple[Decision, list[PlannedWrite]]:
        """Return a decision with the generations of the virtual object, and its planned writes.

        Which generation a status is about depends on the calls that the copy takes.

        Raises:
            Refused: A write is forbidden.
        """
        on_host: dict[int, PlannedWrite] = {}
        for number, write in enumerate(decision.writes):
            if write.side is Side.HOST:
                on_host[number] = self.planned(observed, write, pipeline, is_latest=True)

        decision = generations.translate(observed, decision, on_host.values())
        writes: list[PlannedWrite] = []
        for number, write in enumerate(decision.writes):
            planned = on_host.get(number)
            if planned is None:
                planned = self.planned(observed, write, pipeline, is_latest=True)
            writes.append(planned)
        return generations.followed(observed, decision, writes), writes

    def _decide(
        self, controller: BoundSyncer, request: SyncRequest, reads: Reads, pipeline: Pipeline
    ) -> tuple[Observed, Decision]:
        """Return the decision, and the objects that it was made from.

        Raises:
            Refused: A deletion is held, or the syncer refuses the objects.
        """
        try:
            observed = self._observe(controller, request, reads)
        except Refused as error:
            observed = self._in_part(controller, request, reads, pipeline, error)

        if pipeline.revocation is not None:
            revoked = self._revoked(observed, pipeline.revocation, pipeline)
            if revoked is not None:
                return observed, revoked

        for answer in pipeline.answers:
            answered = answer(observed)
            if answered is not None:
                return observed, answered

        decision = None
        for substitute in pipeline.substitutes:
            decision = substitute(observed)
            if decision is not None:
                break

        try:
            if decision is None:
                decision = dispatch(observed, pipeline.role_substitutes)
            for policy in pipeline.decisions:
                decision = policy(observed, decision)
        except NotYet as missing:
            return observed, wait(missing.why, on=(missing.on,))

        if decision.deletes:
            for policy in pipeline.deletions:
                decision = policy(observed, decision)
        return observed, decision

    def _observe(self, controller: BoundSyncer, request: SyncRequest, reads: Reads) -> Observed:
        """Return a request with private copies of its two objects.

        A name that can't be translated has no host object, so nothing of it is left once the
        virtual object is gone.

        Raises:
            Refused: An object can't be read.
        """
        syncer = controller.syncer
        try:
            virtual = self._virtual(controller, request.key)
        except Refused:
            if request.host_key is not None and controller.virtual is not None:
                # A change of the virtual object is another request than that of the host object.
                reads.note(controller.virtual, request.key)
            raise

        if not controller.direction.by_host:
            return Observed(
                controller, request, controller.context(reads), virtual, None, request.key
            )

        translated: Key | None = None
        try:
            if not request.host_key:
                translated = syncer.host_key(self.view.settings, request.key)
        except Refused:
            if virtual is not None or controller.direction.fakes:
                raise
            return Observed(controller, request, controller.context(reads), None, None, request.key)

        def host_key_of(settings: Settings, key: Key) -> Key:
            if translated and key == request.key:
                return translated
            return syncer.host_key(settings, key)

        ctx = controller.context(reads, host_key_of)
        host_key = request.host_key or host_key_of(self.view.settings, request.key)
        host = self._host(controller, host_key, virtual)
        if host is not None and not controller.direction.is_about(ctx, request.key, host):
            host = None
        return Observed(controller, request, ctx, virtual, host, host_key)

    def _revoked(
        self, observed: Observed, revocation: Answer, pipeline: Pipeline
    ) -> Decision | None:
        """Return the decision that takes out of a copy what is no longer granted.

        None if that takes no call. It ends the request: no other decision is made in this round,
        and no policy for answers, decisions or deletions applies.
        """
        revoked = revocation(observed)
        if revoked is None:
            return None
        writes = [
            self.planned(observed, write, pipeline, is_latest=True) for write in revoked.writes
        ]
        changes_any = any(planned.calls for planned in writes)
        return revoked if changes_any else None

    def _in_part(
        self,
        controller: BoundSyncer,
        request: SyncRequest,
        reads: Reads,
        pipeline: Pipeline,
        error: Refused,
    ) -> Observed:
        """Return a request of which an object can't be read.

        It has its copy alone, if that may be revoked.
        """
        error = error.with_traceback(None)  # which refers to frames with these objects
        ctx = controller.context(reads)
        if pipeline.revocation is None:
            return Observed(controller, request, ctx, None, None, request.key, error=error)
        host_key = request.host_key or controller.host_key(request.key)
        is_unreadable = False
        try:
            host = _cached(controller.host_at(host_key), host_key)
        except Refused:
            is_unreadable = True
            host = _remains(controller.host_at(host_key), host_key, self.view.settings.marks)
        return Observed(controller, request, ctx, None, host, host_key, is_unreadable, error)

    def _virtual(self, controller: BoundSyncer, key: Key) -> Obj | None:
        try:
            return _cached(controller.virtual, key)
        except Refused:
            remains = _remains(controller.virtual, key, self.view.settings.marks)
            if not (remains and controller.direction.ends_copy(remains)):
                raise
            return remains

    def _host(self, controller: BoundSyncer, key: Key, virtual: Obj | None) -> Obj | None:
        try:
            return _cached(controller.host_at(key), key)
        except Refused:
            remains = _remains(controller.host_at(key), key, self.view.settings.marks)
            direction = controller.direction
            is_to_go = direction.goes_down if virtual is None else direction.ends_copy(virtual)
            if not (remains and is_to_go):
                raise
            return remains

    def _check(
        self, controller: BoundSyncer, write: Write, live: Obj | None, resource: Resource
    ) -> None:
        """Refuse a forbidden write, whatever a syncer decided.

        That is one to an unmarked object, or outside the host namespaces.
        """
        mark = self.view.settings.marks.cluster
        identity = self.view.settings.identity
        if (write.obj["metadata"].get("labels") or {}).get(mark) != identity:
            raise Refused(f"the host object {key_of(write.obj)} would be written without our mark")
        if live is not None and labels_of(live).get(mark) != identity:
            raise collision(ObjectRef(Side.HOST, resource, key_of(live)))
        if controller.own_namespaces is None:
            self.homes.check(write, resource)


def _cached(store: SideInformer | None, key: Key) -> Obj | None:
    """Return a private copy of a cached object, or None.

    Raises:
        Refused: It can't be read.
        TooLarge: It has too many parts.
    """
    entry = store.entry(key) if store is not None else None
    if store is None or entry is None:
        return None
    of_copy = store.side is Side.HOST
    if entry.parts:
        refuse_many_parts(entry.parts, of_copy=of_copy)
    obj = DECODED.take(entry)
    if codec.UNREADABLE in obj:
        raise Refused(cannot_be_read(store, key), reason="Unreadable")
    if entry.parts:
        refuse_many_keys(obj["metadata"], of_copy=of_copy)
    return obj


def _remains(store: SideInformer | None, key: Key, marks: Marks) -> Obj | None:
    """Return the parts that a deletion takes, of an object that is too large or can't be read.

    These are its metadata, with marks as the only labels and annotations. None if it can't be
    distinguished from a later object of its name. The contents of an object must not hold up its
    deletion.
    """
    outline = store.outline(key) if store is not None else None
    if store is None or outline is None or not outline["metadata"].get("uid"):
        return None
    metadata = outline["metadata"]
    for part in ("labels", "annotations"):
        found = metadata.get(part) or {}
        metadata[part] = {name: value for name, value in found.items() if marks.is_mark(name)}
    resource = store.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": {},
        "status": {},
    }


def cannot_be_read(store: SideInformer, key: Key) -> str:
    """Return why a quarantined object isn't synced, and what to do.

    The text names the object before the first colon.
    """
    obj = store.get(key) or {}
    why = obj.get(codec.UNREADABLE) or "an index or a watch of a syncer raised, as the log says"
    named = f"the {store.side} {store.resource.kind} {key}"
    if key in store.left_out:
        way_out = "Delete objects of its namespace, or have the limit raised"
        return f"{named} isn't synced as it is now: {why}. {way_out}"
    return f"{named} can't be read: {why}. Write the object again, or delete it"
