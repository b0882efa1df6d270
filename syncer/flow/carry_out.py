"""Step 5: a decision into the fewest API calls, or none. The only place that writes."""

import base64
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

from syncer.api.decision import Decision, Premise, Verb, Write
from syncer.api.errors import Conflict, Exists, Invalid, Missing, NotConnected, Refused
from syncer.api.marks import Marks
from syncer.api.names import NameTranslator
from syncer.api.objects import Key, Obj, Resource, Side, key_of, labels_of, uid_of
from syncer.api.roles import Syncer
from syncer.clusters.client import Cluster
from syncer.flow.caches import Caches
from syncer.flow.decide import collision
from syncer.flow.needed import Call, Kind, exact_paths, needed
from syncer.flow.store import Writing
from syncer.resources.kinds import SERVICE_ACCOUNTS

#: How often a write looks again at what its own calls left to do: create, then status.
ROUNDS = 3


#: The objects of a request by side.
Pairing = Mapping[Side, Obj | None]
NOTHING: Pairing = {}


class Recorder(Protocol):
    """What hears of writes, for metrics."""

    def wrote(self, side: Side, verb: str) -> None:
        """One API call that changed something."""

    def futile(self, side: Side) -> None:
        """One API call that changed nothing."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """Carries out the decisions of one virtual cluster's syncers."""

    identity: str
    marks: Marks
    names: NameTranslator
    virtual: Cluster
    host: Cluster
    caches: Caches
    has_status: Callable[[Side, Resource], bool]
    #: Whether we may write at all: false as soon as leadership has run out, however late we notice.
    may_write: Callable[[], bool]
    #: Patches that changed nothing, by side, resource and key: the version they were sent over. Sent once, not again.
    futile: MutableMapping[tuple[Side, Resource, Key], tuple[str, Obj]]
    #: The uids of Pods that we have bound: the reply to a binding doesn't show the Pod, and its event may be late.
    bound: MutableMapping[str, None]

    async def carry_out(
        self, syncer: Syncer[Any], decision: Decision, recorder: Recorder, *, seen: Pairing = NOTHING
    ) -> set[Side]:
        """Make the writes in order; gives the sides on which calls were made.

        ``seen`` are the objects that the decision was made from, to save reading them again. Raises
        :class:`ClusterError` and ``Refused``.
        """
        sides = set()
        for write in decision.writes:
            if await self._write(syncer, write, recorder, seen):
                sides.add(write.side)
        return sides

    # -- one write -------------------------------------------------------------------------------------------------

    async def _write(self, syncer: Syncer[Any], write: Write, recorder: Recorder, seen: Pairing) -> int:
        made = 0
        for _ in range(ROUNDS):
            calls = self.calls(syncer, write, seen)
            for call in calls:
                made += 1
                changed = await self._send(syncer, write, call)
                if changed:
                    recorder.wrote(write.side, call.kind)
                else:
                    recorder.futile(write.side)
            if not calls or calls[-1].kind is not Kind.CREATE or "status" not in write.obj:
                break
        return made

    def calls(self, syncer: Syncer[Any], write: Write, seen: Pairing = NOTHING) -> list[Call]:
        """The calls that a write needs as of what was last seen; raises ``Refused`` where it must not be made."""
        resource = self._resource(syncer, write)
        key = key_of(write.obj)
        live = self._live(write.side, resource, key, seen)
        self._check(write, live, resource)
        if write.verb is Verb.BIND and uid_of(write.obj) in self.bound:
            return []
        calls = needed(
            write,
            live,
            exact=exact_paths(syncer, write),
            marks=self.marks,
            has_status=self.has_status(write.side, resource),
        )
        known = self.futile.get((write.side, resource, key)) if calls else None
        if known is None or live is None:
            return calls
        return [call for call in calls if known != (live["metadata"]["resourceVersion"], call.body)]

    def _live(self, side: Side, resource: Resource, key: Key, seen: Pairing) -> Obj | None:
        store = self.caches.store(side, resource)
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

    def _resource(self, syncer: Syncer[Any], write: Write) -> Resource:
        if write.resource is not None:
            return write.resource
        return syncer.resource if write.side is Side.VIRTUAL else syncer.host_resource

    async def _send(self, syncer: Syncer[Any], write: Write, call: Call) -> bool:
        if not self.may_write():
            raise NotConnected("another daemon may lead by now; nothing is written until this one leads again")
        resource, key = self._resource(syncer, write), key_of(write.obj)
        cluster = self.virtual if write.side is Side.VIRTUAL else self.host
        body = await self._with_tokens(write, call.body) if write.tokens else call.body
        store = self.caches.store(write.side, resource)
        with store.writing(key) as writing:
            try:
                match call.kind:
                    case Kind.CREATE:
                        return store.wrote(key, writing, await cluster.create(resource, body))
                    case Kind.DELETE:
                        return await self._delete(cluster, resource, write, writing)
                    case Kind.BIND:
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
        store = self.caches.store(cluster.side, resource)
        before = store.entry(key)
        reply = await cluster.patch(
            resource,
            key,
            call.body,
            kind="strategic" if call.kind is Kind.CONDITIONS else "merge",
            subresource="" if call.kind is Kind.PATCH else "status",
        )
        changed = store.wrote(key, writing, reply)
        place = (cluster.side, resource, key)
        if not changed and before is not None:
            self.futile[place] = (before.version, call.body)
        else:
            self.futile.pop(place, None)
        return changed

    async def _delete(self, cluster: Cluster, resource: Resource, write: Write, writing: Writing) -> bool:
        key, uid = key_of(write.obj), uid_of(write.obj)
        store = self.caches.store(cluster.side, resource)
        if write.only_if_none is not None:
            await self._must_be_unused(cluster, resource, key, write.only_if_none)
        if write.premise is not None:
            await self._must_hold(write.premise)
        try:
            left = await cluster.delete(resource, key, uid=uid, grace=write.grace, propagation="Background")
        except Missing:
            left = None
        if left is None:
            store.deleted(key, writing, uid)
            return True
        return store.wrote(key, writing, left)

    async def _must_hold(self, premise: Premise) -> None:
        """Raise :class:`Conflict` where the object that a deletion follows from is another one than was last seen."""
        side, resource, key = premise.seen.side, premise.seen.resource, premise.seen.key
        store = self.caches.store(side, resource)
        with store.writing(key) as writing:
            await self._look(self.virtual if side is Side.VIRTUAL else self.host, resource, key, writing)
        entry = store.entry(key)
        if (entry.uid if entry else "") != premise.uid:
            raise Conflict(f"the {side} {resource.kind} {key} is not as it was last seen", side=side)

    async def _must_be_unused(self, cluster: Cluster, resource: Resource, key: Key, users: Resource) -> None:
        """Refuse a deletion for as long as there is an object that would go with it."""
        try:
            found = [item async for page in cluster.list_pages(users, limit=1) for item in page.items[:1]]
        except Missing as error:
            why = f"the {cluster.side} cluster doesn't serve {users} now, so nobody knows whether there are any"
            raise Refused(f"{resource.kind} {key} is not deleted: {why}", reason="InUse") from error
        if found:
            why = f"{resource.kind} {key} is not deleted while the {cluster.side} cluster has any {users}"
            raise Refused(f"{why}; delete those first", reason="InUse")

    async def _check_uid(
        self, cluster: Cluster, resource: Resource, key: Key, call: Call, writing: Writing, error: Invalid
    ) -> None:
        """Raise :class:`Conflict` where a patch was refused because the object is another one by now.

        An API server answers 422 then (``metadata.uid: field is immutable``), and not 409 as it does for a delete.
        """
        meant = call.body.get("metadata", {}).get("uid")
        if call.kind in (Kind.CREATE, Kind.DELETE, Kind.BIND) or not meant:
            return
        await self._look(cluster, resource, key, writing)
        entry = self.caches.store(cluster.side, resource).entry(key)
        if entry is None or entry.uid != meant:
            raise Conflict(f"{error}: it is another object of this name by now", side=cluster.side) from error

    async def _look(self, cluster: Cluster, resource: Resource, key: Key, writing: Writing) -> None:
        """The store is behind: read the object itself, so that the next decision is made from fresh state.

        On the host, what doesn't bear our mark stays out of the store (the watch would never tell that it went); it
        stands in the way, and that is the answer.
        """
        store = self.caches.store(cluster.side, resource)
        try:
            live = await cluster.get(resource, key)
        except Missing:
            store.gone_live(key, writing)
            return
        ours = labels_of(live).get(self.marks.cluster) == self.identity
        if ours or not self.caches.is_marked(cluster.side, resource):
            store.seen_live(live, writing)
        else:
            store.gone_live(key, writing)
            raise collision(live, cluster.side)

    async def _with_tokens(self, write: Write, body: Obj) -> Obj:
        """The object with the tokens that it asks for, and the time when the first of them ends."""
        data, ends = dict(body.get("data") or {}), []
        for token in write.tokens:
            request: Obj = {"audiences": list(token.audiences), "expirationSeconds": token.seconds}
            if token.bound_to is not None:
                metadata = token.bound_to["metadata"]
                bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
                request["boundObjectRef"] = bound
            answer = await self.virtual.create(
                SERVICE_ACCOUNTS,
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": request},
                subresource="token",
                key=Key(token.namespace, token.service_account),
            )
            data[token.field] = base64.b64encode(answer["status"]["token"].encode()).decode()
            ends.append(answer["status"]["expirationTimestamp"])
        metadata = body["metadata"]
        annotations = {**(metadata.get("annotations") or {}), self.marks.token_expires: min(ends)}
        return {**body, "metadata": {**metadata, "annotations": annotations}, "data": data}
