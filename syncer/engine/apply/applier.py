"""Carry out plans as API calls. The only place that writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from syncer.api.decision import Precondition, Verb, Warned, Write
from syncer.api.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Denied,
    Forbidden,
    Invalid,
    NotFound,
    QuotaExceeded,
    Refused,
    SyncerError,
)
from syncer.api.marks import Marks
from syncer.api.objects import Key, Obj, ObjectRef, Side, key_of, labels_of, uid_of
from syncer.api.paths import dig
from syncer.cache.assumed import UnseenWrite, WriteInProgress
from syncer.clusters.api_requests import PatchKind
from syncer.clusters.client import SideClient
from syncer.directions import collision
from syncer.engine.apply.field_managers import name_others
from syncer.engine.apply.namespace_owners import NamespaceOwners
from syncer.engine.apply.preconditions import (
    Claim,
    gone_with_its_namespace,
    holds_copies,
    must_be_served,
    must_be_unused,
    must_be_vacant,
    must_have_home,
)
from syncer.engine.apply.tokens import with_tokens
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.nulls import has_nulls, json_patch
from syncer.engine.reconcile.plan import Plan, PlannedWrite, PostponedFields, ServerAnswer
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.engine.stores.informers import Informers, SideInformer

#: The most rounds of calls for a write. Two are usual: first create, then status.
ROUNDS = 3
#: The calls that merge items of lists, instead of replacing lists.
_STRATEGIC = (Operation.CONDITIONS, Operation.MERGE)
#: Errors by which an API server, or we for it, refuse the fields of a write.
_REFUSALS = (Refused, Invalid, Denied, Forbidden, QuotaExceeded)


class WriteRecorder(Protocol):
    """Receives the answers to writes, and what is held back."""

    def answered(self, planned: PlannedWrite, answer: ServerAnswer) -> None:
        """Count an API call, by whether it has changed something."""

    def replaced(self) -> None:
        """Note that another write was made instead of a refused one: the rest is decided again."""

    def postponed(self, postponed: PostponedFields) -> None:
        """Note fields of an object that are held back.

        Another manager writes them too, or they were refused.
        """

    def warned(self, warning: Warned) -> None:
        """Note the event of a write that changed something."""

    def refused(self, postponed: PostponedFields, error: SyncerError) -> None:
        """Note a merge that was refused just now; it is held back for some time."""


def _instead(write: Write, error: Invalid) -> Write | None:
    """Return the write to make instead of a refused one; None if there is none for this refusal."""
    if not write.disputed or write.otherwise is None:
        return None
    fields = {cause["field"] for cause in error.details.get("causes") or ()}
    for name in fields:
        if name.startswith(write.disputed):
            return write.otherwise(write, fields)
    return None


def _is_bound_to(node: str, pod: Obj) -> bool:
    return bool(dig(pod, "spec.nodeName") == node)


@dataclass(frozen=True, slots=True)
class Applier:
    """Carries out the plans of a cluster pair. The only place that writes.

    The fence around both clients (:class:`~syncer.clusters.fenced.Fenced`) checks whether this
    process may write at all.
    """

    identity: str
    marks: Marks
    virtual: SideClient
    host: SideClient
    informers: Informers
    homes: HostNamespaces
    owners: NamespaceOwners
    claim: Claim = field(default_factory=Claim)

    async def apply(self, plan: Plan, recorder: WriteRecorder) -> set[Side]:
        """Make the calls of a plan in order. Return the sides on which calls were made.

        A refused merge holds up no other write.

        Raises:
            ClusterError: A call failed.
            Refused: A write must not be made any more.
        """
        sides = set()
        for planned in plan.writes:
            side = planned.write.side
            try:
                if await self._write(plan, planned, recorder):
                    sides.add(side)
            except _REFUSALS as error:
                if planned.write.verb is Verb.MERGE:
                    for report in plan.results.refused:
                        recorder.refused(report(planned, error), error)
                elif isinstance(error, Invalid):
                    other_side = await self._write_otherwise(plan, planned.write, error, recorder)
                    sides.update((side, other_side))
                    recorder.replaced()
                    break  # the other writes were decided without the refusal
                else:
                    raise
        return sides

    async def _write_otherwise(
        self, plan: Plan, write: Write, error: Invalid, recorder: WriteRecorder
    ) -> Side:
        """Make the write that a refused one names instead. Return its side.

        Raises:
            Invalid: It names none for this refusal, or the last one has nothing to change.
        """
        while True:
            instead = _instead(write, error)
            if instead is None:
                raise error
            try:
                made = await self._write(plan, plan.again(instead), recorder)
            except Invalid as again:
                write = instead
                error = again
            else:
                if not made:
                    raise error
                return instead.side

    # -- a single write ----------------------------------------------------------------------------

    async def _write(self, plan: Plan, planned: PlannedWrite, recorder: WriteRecorder) -> int:
        """Make the calls of a write, and report them to the policies and the recorder.

        It is planned again if its object has changed, or was created. Return the number of calls,
        with those of its note.

        Raises:
            SyncerError: As :meth:`apply`. Earlier calls stay made.
        """
        made = 0
        write = planned.write
        results = plan.results
        if planned is not plan.writes[0] and self._has_changed(plan.observed.controller, planned):
            # An earlier write of this plan has changed the object, or another client.
            planned = plan.again(write)
        for _ in range(ROUNDS):
            if plan.vacant and write.side is Side.HOST and planned.calls:
                await must_be_vacant(self.host, plan.vacant, planned.calls, homes=self.homes)
            for call in planned.calls:
                made += 1
                answer = None
                try:
                    answer = await self._send(plan.observed.controller, planned, call)
                finally:
                    for learn in results.sent:
                        learn(planned, call, answer)
                recorder.answered(planned, answer)
                if answer.changed and plan.observed.controller.direction.comes_up:
                    self._show_others(plan.observed.controller, planned, answer)

            if planned.frozen:
                for hold in results.frozen:
                    hold(planned.frozen)
                await name_others(planned.frozen, self._cluster(write.side))
                for report in results.named:
                    recorder.postponed(report(planned.frozen))
            if planned.refused:
                recorder.postponed(planned.refused)

            has_created = bool(planned.calls) and planned.calls[-1].kind is Operation.CREATE
            if not has_created or "status" not in write.obj:
                break
            planned = plan.again(write)  # a status is written once the object is there

        for settle in results.settled:
            settle(planned)
        if made and write.afterwards is not None:
            made += await self._note(plan, planned, write.afterwards, recorder)
        if made and write.warning is not None:
            recorder.warned(write.warning)
        return made

    def _show_others(
        self, controller: BoundSyncer, planned: PlannedWrite, answer: ServerAnswer
    ) -> None:
        """Notify other syncers of what one has brought up: it may be theirs to copy."""
        if answer.obj is not None:
            store = controller.store_of(planned.ref)
            store.handlers.notify_others(planned.ref.key, answer.obj, writer=controller.name)

    async def _note(
        self,
        plan: Plan,
        merged: PlannedWrite,
        annotations: Callable[[Obj], Mapping[str, str]],
        recorder: WriteRecorder,
    ) -> int:
        """Set the annotations that follow from an accepted merge. Return the number of calls."""
        ref = merged.ref
        live = plan.observed.controller.store_of(ref).get(ref.key)
        if live is None:
            return 0
        metadata = {**live["metadata"], "annotations": dict(annotations(live))}
        note = Write(ref.side, Verb.NOTE, {**live, "metadata": metadata})
        return await self._write(plan, plan.again(note), recorder)

    def _has_changed(self, controller: BoundSyncer, planned: PlannedWrite) -> bool:
        """Return True if the object has changed since the write was planned."""
        ref = planned.ref
        entry = controller.store_of(ref).entry(ref.key)
        live = planned.live
        if entry is None or live is None:
            return (entry is None) is not (live is None)
        return bool(entry.version != live["metadata"]["resourceVersion"])

    def _cluster(self, side: Side) -> SideClient:
        return self.virtual if side is Side.VIRTUAL else self.host

    async def _send(
        self, controller: BoundSyncer, planned: PlannedWrite, call: Call
    ) -> ServerAnswer:
        write = planned.write
        side, resource, key = planned.ref
        cluster = self._cluster(side)
        # A deletion after a final status belongs to the same write, which that status alone would
        # leave half done.
        is_first = call is planned.calls[0]
        if write.tokens:
            body = await with_tokens(write, call.body, virtual=self.virtual, marks=self.marks)
            call = Call(call.kind, body)
        if write.controlled_by_namespace and call.kind is Operation.CREATE:
            call = Call(call.kind, await self.owners.with_controller(call.body))
        body = call.body
        store = controller.store_of(planned.ref)
        with store.writing(key) as writing:
            try:
                if write.precondition is not None and is_first:
                    await self._must_hold(controller, write.precondition)
                match call.kind:
                    case Operation.CREATE:
                        try:
                            reply = await cluster.create(resource, body, key=key, body=call.take())
                        except ClusterError:
                            self.owners.forget(key.namespace)
                            raise
                        changed = store.wrote(key, writing, reply)
                        return ServerAnswer(call, reply, changed)
                    case Operation.DELETE:
                        changed = await self._delete(store, write, writing)
                        return ServerAnswer(call, None, changed)
                    case Operation.BIND:
                        await cluster.create(resource, body, subresource="binding", key=key)
                        if not write.looks_back:
                            is_bound = partial(_is_bound_to, write.node)
                            unseen = UnseenWrite(uid_of(write.obj), controller.name, is_bound)
                            store.wrote_unseen(key, writing, unseen)
                        return ServerAnswer(call, None, True)
                    case _:
                        subresource = write.subresource
                        return await self._patch(store, key, call, writing, subresource)
            except (Conflict, AlreadyExists, NotFound) as error:
                await self._refresh(store, key, writing)
                if write.subresource and isinstance(error, NotFound) and store.entry(key):
                    why = f"the host doesn't serve {resource.plural}/{write.subresource}"
                    message = f"{why}; a newer version of Kubernetes may"
                    raise Refused(message, reason="SyncFailed") from error
                raise
            except Invalid as error:
                await self._check_uid(store, key, call, writing, error)
                raise

    async def _patch(
        self,
        store: SideInformer,
        key: Key,
        call: Call,
        writing: WriteInProgress,
        subresource: str,
    ) -> ServerAnswer:
        cluster = self._cluster(store.side)
        resource = store.resource
        body = call.body
        if not subresource and call.kind is not Operation.PATCH:
            subresource = "status"

        live = None
        if not resource.is_built_in and has_nulls(body):
            live = store.get(key)
        if live is not None:
            reply = await self._patch_with_nulls(store, key, body, live, writing, subresource)
        else:
            kind: PatchKind = "strategic" if call.kind in _STRATEGIC else "merge"
            reply = await cluster.patch(resource, key, body, kind=kind, subresource=subresource)
        changed = store.wrote(key, writing, reply)
        return ServerAnswer(call, reply, changed)

    async def _patch_with_nulls(
        self,
        store: SideInformer,
        key: Key,
        patch: Obj,
        live: Obj,
        writing: WriteInProgress,
        subresource: str,
    ) -> Obj:
        """Patch this very version of an object.

        The patch names places in it that another version may not have.

        Raises:
            Conflict: The object has changed meanwhile.
        """
        version = live["metadata"]["resourceVersion"]
        metadata = {"resourceVersion": version, **(patch.get("metadata") or {})}
        operations = json_patch({**patch, "metadata": metadata}, live)
        cluster = self._cluster(store.side)
        try:
            return await cluster.patch(
                store.resource, key, operations, kind="json", subresource=subresource
            )
        except Invalid as error:
            await self._refresh(store, key, writing)
            entry = store.entry(key)
            if entry is not None and entry.version != version:
                why = f"{error}: it has changed in the meantime"
                raise Conflict(why, side=cluster.side) from error
            raise

    async def _delete(
        self,
        store: SideInformer,
        write: Write,
        writing: WriteInProgress,
    ) -> bool:
        """Delete an object. Return True if that changed it: it is gone, or being deleted now."""
        key = key_of(write.obj)
        uid = uid_of(write.obj)
        cluster = self._cluster(store.side)
        resource = store.resource
        if write.only_if_none is not None:
            await must_be_unused(cluster, resource, key, users=write.only_if_none)
        if write.side is Side.HOST:
            if write.precondition is not None:
                await self.claim.must_hold()
            elif not self.claim.is_confirmed:
                await self.claim.confirm()

        version = None
        if write.side is Side.HOST:
            # A host copy may have ceased to be ours a moment ago; a virtual object can't.
            version = write.obj["metadata"].get("resourceVersion")
        try:
            left = await cluster.delete(
                resource,
                key,
                uid=uid,
                resource_version=version,
                grace=write.grace,
                propagation="Background",
            )
        except NotFound:
            left = None
        if left is None:
            store.deleted(key, writing, uid)
            return True
        return store.wrote(key, writing, left)

    async def _must_hold(self, controller: BoundSyncer, precondition: Precondition) -> None:
        """Check a precondition on the live API server.

        Raises:
            Conflict: The object is another one than was last observed.
            Refused: The object's namespace or kind is not as it was.
        """
        side, resource, key = precondition.observed
        mark = self.marks.copied
        # A key in a namespace without copies isn't read.
        if side is Side.HOST and not precondition.uid and controller.is_among_copies:
            namespace = key.namespace
            if namespace and not await holds_copies(self.host, self.homes, namespace):
                if precondition.since:
                    state = "is gone, or not this virtual cluster's"
                    raise gone_with_its_namespace(namespace, state, mark=mark)
                return

        store = controller.store_of(precondition.observed)
        with store.writing(key) as writing:
            await self._refresh(store, key, writing)
        entry = store.entry(key)
        uid = entry.uid if entry is not None else ""
        is_changed = entry is not None and precondition.version not in ("", entry.version)
        if uid != precondition.uid or is_changed:
            raise Conflict(
                f"the {side} {resource.kind} {key} is not as it was last seen", side=side
            )

        if precondition.since:
            await must_be_served(
                self.host, resource, key.namespace, since=precondition.since, mark=mark
            )
            if key.namespace:
                await must_have_home(self.host, key.namespace, since=precondition.since, mark=mark)

    async def _check_uid(
        self,
        store: SideInformer,
        key: Key,
        call: Call,
        writing: WriteInProgress,
        error: Invalid,
    ) -> None:
        """Turn the error of a refused patch into a conflict if the object is another one by now.

        An API server answers 422 then (``metadata.uid: field is immutable``) rather than 409, as
        for a delete.

        Raises:
            Conflict: The object has another uid.
        """
        expected_uid = call.body.get("metadata", {}).get("uid")
        if call.kind in (Operation.CREATE, Operation.DELETE, Operation.BIND) or not expected_uid:
            return
        await self._refresh(store, key, writing)
        entry = store.entry(key)
        if entry is None or entry.uid != expected_uid:
            why = f"{error}: it is another object of this name by now"
            raise Conflict(why, side=store.side) from error

    async def _refresh(self, store: SideInformer, key: Key, writing: WriteInProgress) -> None:
        """Read the live object into the store, which is behind.

        So the next decision is made from fresh state.

        Raises:
            NameTaken: An object that isn't ours is there. It stays out of the store, as the watch
                would never report its deletion.
        """
        side = store.side
        try:
            live = await self._cluster(side).get(store.resource, key)
        except NotFound:
            store.gone_live(key, writing)
            return
        is_ours = labels_of(live).get(self.marks.cluster) == self.identity
        if is_ours or not self.informers.is_marked(store):
            store.seen_live(live, writing)
        else:
            store.gone_live(key, writing)
            virtual = live if side is Side.VIRTUAL else None
            raise collision(ObjectRef(side, store.resource, key), virtual, is_watched=False)
