"""A survey: what each object of a virtual cluster needs now, decided again as a patrol does.

Nothing is written. A patrol says which drift it found; a survey has the objects before and after.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from syncer.api.decision import Outcome
from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Obj, ObjectRef, Side, SyncRequest
from syncer.api.texts import shortened
from syncer.clusters import codec
from syncer.clusters.codec import DecodeError
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.patroller import GRACE_SECONDS, in_steps
from syncer.engine.patrol.patrollers import BESIDE
from syncer.engine.patrol.verified import VerifiedPairs
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.patch_text import patch_text
from syncer.engine.reconcile.plan import PlannedWrite
from syncer.resources.kinds import SECRETS
from syncer.translate.merge_patch import merged

#: Fields of a patch's metadata that are preconditions.
_GUARDS = ("uid", "resourceVersion")
#: Operations that merge items of lists, instead of replacing lists.
_BY_KEY = (Operation.CONDITIONS, Operation.MERGE)


@dataclass(frozen=True, slots=True)
class WantedChange:
    """A change that an object needs."""

    request: SyncRequest
    ref: ObjectRef
    #: The object as it is; None if there is none.
    before: Obj | None
    #: The object as it would be; None if it would be deleted.
    after: Obj | None
    reason: str = ""
    #: True if a copy grants more than it may, and the change takes that away.
    revokes: bool = False

    @property
    def verb(self) -> str:
        """The verb of the change: ``create``, ``patch`` or ``delete``."""
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "patch"

    def __str__(self) -> str:
        what = f"{self.verb} {self.ref.resource} {self.ref.key} on the {self.ref.side} side"
        taken = ", takes away what it may not have" if self.revokes else ""
        return f"{what}, of {self.request.key}{taken}"

    def patch(self, prefix: str) -> list[str]:
        """Return the lines of a unified diff; ``prefix`` is that of the marks."""
        is_secret = self.ref.resource == SECRETS
        return patch_text(self.before, self.after, secret=is_secret, prefix=prefix)

    def json(self, prefix: str) -> dict[str, Any]:
        """Return the JSON for programs; ``prefix`` is that of the marks."""
        return {
            "cluster": self.request.cluster,
            "syncer": self.request.syncer,
            "of": str(self.request.key),
            "verb": self.verb,
            "side": self.ref.side.value,
            "resource": str(self.ref.resource),
            "object": str(self.ref.key),
            "reason": self.reason,
            "takesAway": self.revokes,
            "patch": "\n".join(self.patch(prefix)),
        }


@dataclass(slots=True)
class Survey:
    """What the objects of a virtual cluster need now."""

    #: The names of the syncers that were surveyed.
    syncers: set[str] = field(default_factory=set)
    changes: list[WantedChange] = field(default_factory=list)
    #: Requests that can't be decided, each with the reason.
    troubles: dict[SyncRequest, str] = field(default_factory=dict)
    #: Requests whose objects are kept in step, or will be by the changes.
    kept: set[SyncRequest] = field(default_factory=set)
    #: Requests that are left alone or wait, each with the reason.
    idle: dict[SyncRequest, str] = field(default_factory=dict)
    #: Kinds that can't be surveyed, each with the reason.
    problems: dict[str, str] = field(default_factory=dict)


async def survey(pair: ClusterPair, controllers: Iterable[BoundSyncer], *, key: str = "") -> Survey:
    """Decide about every object of these syncers, from the caches, and return what each needs.

    A change must still be needed a little later, as for a patrol. ``key`` is the only virtual or
    host key; ``""`` for all.
    """
    found = Survey()
    suspects: list[tuple[BoundSyncer, SyncRequest]] = []
    for controller in controllers:
        found.syncers.add(controller.name)
        unfilled = [str(store) for store in controller.stores if not store.synced]
        if unfilled or not controller.ready:
            found.problems[controller.name] = f"not listed yet: {', '.join(unfilled) or 'a source'}"
            continue
        async for request in in_steps(_requests(pair, controller, key)):
            look = Survey()
            _decide(look, pair, controller, request)
            if look.changes or look.troubles:
                suspects.append((controller, request))
            found.kept |= look.kept
            found.idle |= look.idle
    if suspects:
        await asyncio.sleep(GRACE_SECONDS)
    async for controller, request in in_steps(suspects):
        _decide(found, pair, controller, request)
    await _drop_taken(found, pair)
    return found


async def _drop_taken(found: Survey, pair: ClusterPair) -> None:
    """Turn each creation whose name an object has that isn't watched into a trouble.

    One whose name can't be looked up becomes a trouble, too.
    """
    room = asyncio.Semaphore(BESIDE)

    async def trouble(change: WantedChange) -> str:
        """Return why an object can't be created; ``""`` if its name is free."""
        if change.verb != "create":
            return ""
        side = change.ref.side
        client = pair.virtual if side is Side.VIRTUAL else pair.host
        what = f"{change.ref.resource.kind} {change.ref.key}"
        async with room:
            try:
                await client.get(change.ref.resource, change.ref.key)
            except NotFound:
                return ""
            except (ClusterError, DecodeError) as failure:
                return shortened(f"can't check whether the {side} side has a {what}: {failure}")
        why = f"the {side} side has a {what} that is not ours"
        return f"{why}: rename or remove one of the two"

    troubles = await asyncio.gather(*[trouble(change) for change in found.changes])
    left: list[WantedChange] = []
    for change, why in zip(found.changes, troubles, strict=True):
        if why:
            found.troubles[change.request] = why
            found.kept.discard(change.request)
        else:
            left.append(change)
    found.changes = left


def _requests(pair: ClusterPair, controller: BoundSyncer, key: str) -> Iterator[SyncRequest]:
    for request in VerifiedPairs(pair, controller).changed(everything=True):
        if request is None:
            continue
        host_key = controller.host_key_of(request)
        if key in ("", str(request.key), str(host_key)):
            yield request


def _decide(
    found: Survey, pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
) -> None:
    """Decide about a request, and add to the survey what it needs."""
    try:
        plan = pair.reconciler.scan(controller, request)
    except Exception as error:  # noqa: BLE001 — it is refused, or the syncer has a bug
        found.troubles[request] = shortened(f"{type(error).__name__}: {error}")
        return
    decision = plan.decision
    reason = str(shortened(decision.reason))  # a plain str, which YAML can hold
    if decision.outcome is Outcome.IN_STEP:
        found.kept.add(request)
    else:
        found.idle[request] = reason
    for planned in plan.writes:
        if planned.calls:
            change = _change(request, planned, reason)
            found.changes.append(change)


def _change(request: SyncRequest, planned: PlannedWrite, reason: str) -> WantedChange:
    live = planned.live
    after = live
    for call in planned.calls:
        after = _after(call, after)
    if after is not None:
        after = codec.decode(codec.encode(after))  # a null that is a value has a form of its own
    return WantedChange(request, planned.ref, live, after, reason, planned.write.revokes)


def _after(call: Call, obj: Obj | None) -> Obj | None:
    """Return an object after a call, as far as this is known before the API server's answer."""
    match call.kind:
        case Operation.CREATE:
            return call.body
        case Operation.DELETE:
            return None
        case Operation.BIND:
            return merged(obj or {}, {"spec": {"nodeName": call.body["target"]["name"]}})
        case _:
            return merged(obj or {}, _without_guards(call.body), by_key=call.kind in _BY_KEY)


def _without_guards(body: Obj) -> Obj:
    metadata = body.get("metadata") or {}
    left = {name: value for name, value in metadata.items() if name not in _GUARDS}
    return {**body, "metadata": left}


# -- two configurations ----------------------------------------------------------------------------


@dataclass(slots=True)
class Effects:
    """What a configuration would do now, or beyond another configuration."""

    changes: list[WantedChange] = field(default_factory=list)
    #: Objects that are not kept in step though their copies stay, each with the reason.
    left: dict[SyncRequest, str] = field(default_factory=dict)
    #: The number of objects that are no longer synced and whose copies stay, by syncer.
    off: dict[str, int] = field(default_factory=dict)
    #: Kinds that can't be compared, each with the reason.
    problems: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.changes or self.left or self.off)

    def summary(self) -> str:
        """Return the numbers for people."""
        if not self:
            return "nothing differs"
        counts = Counter(change.verb for change in self.changes)
        parts = [f"{counts[verb]} to {verb}" for verb in ("create", "patch", "delete")]
        revoked = sum(change.revokes for change in self.changes)
        if revoked:
            parts.append(f"{revoked} of these take something away")
        if self.left or self.off:
            parts.append(f"{len(self.left) + sum(self.off.values())} not kept in step")
        return ", ".join(parts)

    def json(self, prefix: str) -> dict[str, Any]:
        """Return the JSON for programs; ``prefix`` is that of the marks."""
        return {
            "changes": [change.json(prefix) for change in self.changes],
            "notKept": {str(request): reason for request, reason in self.left.items()},
            "noLongerSynced": self.off,
            "notCompared": self.problems,
        }


def present(found: Survey) -> Effects:
    """Return what a configuration would do now."""
    return Effects(found.changes, found.troubles, problems=found.problems)


def beyond(old: Survey, new: Survey) -> Effects:
    """Return what a new configuration would do beyond an old one, from the same state of both
    sides.
    """
    found = Effects(problems=old.problems | new.problems)
    known = {(change.request, change.ref): change for change in old.changes}
    for change in new.changes:
        before = known.get((change.request, change.ref))
        if before is None or before.after != change.after:
            found.changes.append(change)

    changed = {change.request for change in new.changes}
    for request in sorted(old.kept - new.kept - changed, key=str):
        if request.syncer not in new.syncers:
            found.off[request.syncer] = found.off.get(request.syncer, 0) + 1
            continue
        reason = new.troubles.get(request) or new.idle.get(request)
        if reason is not None:
            found.left[request] = reason
    return found
