"""Field ownership on every write, and server-side apply."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube_envtest.apiserver import managed_fields
from kube_envtest.apiserver.field_sets import Fields, difference, intersection, path_text, paths, union
from kube_envtest.apiserver.managed_fields import Entries, Entry, Identity, Obj
from kube_envtest.apiserver.shapes import Shape, find, is_builtin, skeleton
from kube_envtest.apiserver.structured import Change, KeylessItemError, compare, merge, owned, remove, with_structs

#: The annotation in which `kubectl apply` without `--server-side` stores the applied object.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ApplyRefusedError(ValueError):
    """An invalid apply request; `code` is the API server's HTTP status."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


class ApplyConflict(Exception):
    """409: fields that other managers own would change.

    `conflicts` has pairs of the other manager, as the API server prints it, and the field's path;
    `causes` are the same as `details.causes` of the Status.
    """

    def __init__(self, conflicts: list[tuple[str, str]]) -> None:
        self.conflicts = conflicts
        super().__init__(_conflict_message(conflicts))

    @property
    def causes(self) -> list[Obj]:
        """The causes for the Status, one for each field."""
        reason = "FieldManagerConflict"
        return [{"reason": reason, "message": f"conflict with {who}", "field": at} for who, at in self.conflicts]


def _conflict_message(conflicts: list[tuple[str, str]]) -> str:
    if len(conflicts) == 1:
        [(who, path)] = conflicts
        return f"Apply failed with 1 conflict: conflict with {who}: {path}"
    lines = []
    for manager in sorted({who for who, _ in conflicts}):
        lines += [f"conflicts with {manager}:", *(f"- {path}" for who, path in conflicts if who == manager)]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _compare(shape: Shape, old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
    """Compare two objects without the fields that have no owner."""
    change = compare(shape, old, new, skip=("apiVersion", "kind", "metadata"))
    before = old.get("metadata", {})
    after = new.get("metadata", {})
    if before is not after:
        metadata = compare(shape.of("metadata"), before, after, skip=managed_fields.SYSTEM_METADATA)
        change.adopt("f:metadata", metadata)
    return change


def _without_resets(change: Change, resets: Fields) -> Change:
    if not change or not resets:
        return change
    kept = (managed_fields.filtered(part, resets) for part in (change.removed, change.modified, change.added))
    return Change(*kept)


def _empty(api_version: str, kind: str) -> Mapping[str, Any]:
    """Return the object before its creation."""
    return skeleton(kind) if is_builtin(api_version) else {}


def track_update(
    old: Obj | None,
    new: Obj,
    *,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    schema: Any = None,
) -> Obj:
    """Return `new` with the managedFields that the API server writes for a create, update or patch.

    `old` is the stored object, None for a create; `now` is an RFC 3339 time in seconds. The manager
    gets to own the fields that differ from `old`, and all others lose them. `schema` is a compiled
    CRD schema or its shape. An object whose managedFields were emptied stays untracked until it is
    applied, as on the real server.
    """
    kind = new.get("kind", "")
    entries = managed_fields.starting_point(old, new, subresource=subresource) if old is not None else _sent(new)
    if old is not None and not entries:
        return managed_fields.write(new, {})
    shape = find(api_version, kind, getattr(schema, "shape", schema))
    before = _empty(api_version, kind) if old is None else old
    change = _without_resets(_compare(shape, before, new), managed_fields.reset_fields(api_version, kind, subresource))
    if change:
        entries = managed_fields.taken_from(entries, change.lost())
        gained = change.gained()
        if gained:
            entry = Entry(manager or "unknown", "Update", api_version, now, gained, subresource)
            entries = managed_fields.capped(managed_fields.given_to(entries, entry))
    return managed_fields.write(new, entries)


def _sent(new: Obj) -> Entries:
    """Return the entries that a create request contains."""
    return managed_fields.read_or_none(new)


@dataclass(frozen=True, slots=True)
class _Request:
    """An apply request, and the rules for its object."""

    identity: Identity
    shape: Shape
    resets: Fields
    api_version: str
    now: str


def server_side_apply(
    live: Obj | None,
    applied: Obj,
    *,
    manager: str,
    force: bool,
    now: str,
    subresource: str = "",
    schema: Any = None,
) -> Obj:
    """Return the object after `applied` was applied over `live` (None: it doesn't exist).

    The result is `live` itself if nothing changed; it is not defaulted. `schema` is a compiled CRD
    schema or its shape. Source: `merge.Updater.Apply` of structured-merge-diff.

    Raises:
        ApplyConflict: Fields of other managers would change and `force` is False.
        ApplyRefusedError: The request is invalid.
    """
    if applied.get("metadata", {}).get("managedFields") is not None:
        raise ApplyRefusedError("metadata.managedFields must be nil")
    api_version = applied.get("apiVersion", "")
    kind = applied.get("kind", "")
    identity = Identity(manager or "unknown", "Apply", subresource, "")
    shape = find(api_version, kind, getattr(schema, "shape", schema))
    resets = managed_fields.reset_fields(api_version, kind, subresource)
    request = _Request(identity, shape, resets, api_version, now)
    start: Obj = live if live is not None else {"apiVersion": api_version, "kind": kind}
    entries = _tracked(start, request, exists=live is not None)
    try:
        new, entries = _applied(start, applied, entries, request, force=force)
    except KeylessItemError as error:
        subject = f"({applied['metadata'].get('namespace', '')}/{applied['metadata'].get('name', '')}; {_gvk(applied)})"
        raise ApplyRefusedError(f"failed to create typed patch object {subject}: {error}", 500) from error
    if manager == "kubectl":
        new = _with_last_applied(new, applied)
    result = managed_fields.write(new, entries)
    return live if live is not None and result == live else result


def _gvk(obj: Obj) -> str:
    """Return a kind as Go prints it."""
    version: str = obj.get("apiVersion", "")
    return f"{version if '/' in version else '/' + version}, Kind={obj.get('kind', '')}"


def _tracked(live: Obj, request: _Request, *, exists: bool) -> Entries:
    """Return the live object's entries; untracked fields belong to `before-first-apply`."""
    entries = managed_fields.read_or_none(live)
    if entries or not exists:
        return entries
    change = _without_resets(
        _compare(request.shape, _empty(request.api_version, live.get("kind", "")), live), request.resets
    )
    entry = Entry("before-first-apply", "Update", request.api_version, request.now, change.gained())
    return {entry.identity: entry} if entry.fields else {}


def _applied(live: Obj, applied: Obj, entries: Entries, request: _Request, *, force: bool) -> tuple[Obj, Entries]:
    """Merge, remove fields that the manager applied before and no longer does, then settle the owners."""
    last = entries.get(request.identity)
    mine = managed_fields.filtered(owned(request.shape, _without_nulls(applied)), request.resets)
    fields = managed_fields.strip(mine)
    who = request.identity
    time = None
    if last is not None:
        time = last.time
    entry = Entry(who.manager, "Apply", request.api_version, time, fields, who.subresource)
    others = {identity: other for identity, other in entries.items() if identity != request.identity}
    merged = _merged(request.shape, live, _without_nulls(applied))
    if last is not None and last.fields == fields and merged == live:
        return live, entries
    if last is not None and last.fields:
        merged = _pruned(request.shape, merged, last.fields, [*(other.fields for other in others.values()), mine])
    change = _without_resets(_compare(request.shape, live, merged), request.resets)
    _refuse_conflicts(live, change, others, request, force=force)
    others = managed_fields.taken_from(others, change.lost())
    if change:
        entry = entry._replace(time=request.now)
    return merged, {**others, request.identity: entry} if fields else others


def _without_nulls(applied: Obj) -> Obj:
    """Return the configuration without `creationTimestamp: null` and the like, which generators write."""
    metadata = applied.get("metadata", {})
    kept = {key: value for key, value in metadata.items() if value is not None or key != "creationTimestamp"}
    return applied if len(kept) == len(metadata) else {**applied, "metadata": kept}


def _merged(shape: Shape, live: Obj, applied: Obj) -> Obj:
    merged: Obj = merge(shape, live, applied)
    return merged


def _pruned(shape: Shape, merged: Obj, last: Fields, owners: list[Fields]) -> Obj:
    """Return the object without fields that are no longer applied, unless another manager owns them."""
    kept: Fields = {"f:metadata": {"f:name": {}}}
    for fields in owners:
        kept = union(kept, fields)
    gone = difference(with_structs(shape, last), with_structs(shape, kept))
    out: Obj = remove(shape, merged, gone) or {}
    return out


def _refuse_conflicts(live: Obj, change: Change, others: Entries, request: _Request, *, force: bool) -> None:
    gained = change.gained()
    if force or not gained:
        return
    allowed = _once_applied(live, request) if request.identity.manager == "kubectl" else {}
    conflicts = []
    for entry in others.values():
        clash = difference(intersection(entry.fields, gained), allowed)
        conflicts += [(_shown(entry), path_text(path)) for path in paths(clash)]
    if conflicts:
        raise ApplyConflict(conflicts)


def _shown(entry: Entry) -> str:
    """Format a manager as the API server does in a conflict; the time is never printed."""
    text = json.dumps(entry.manager)
    if entry.subresource:
        text += f" with subresource {json.dumps(entry.subresource)}"
    return f"{text} using {entry.api_version}" if entry.operation == "Update" else text


def _once_applied(live: Obj, request: _Request) -> Fields:
    """Return the fields that `kubectl apply` set before it switched to the server side: no
    conflicts for it.
    """
    text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
    try:
        before = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(before, dict) or before.get("apiVersion") != request.api_version:
        return {}
    return difference(owned(request.shape, before), _compare(request.shape, before, live).lost())


def _with_last_applied(new: Obj, applied: Obj) -> Obj:
    """Return the object with the annotation of `kubectl apply` updated, if it has it."""
    metadata = new.get("metadata", {})
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return new
    own = applied.get("metadata", {})
    kept = {key: value for key, value in own.get("annotations", {}).items() if key != LAST_APPLIED}
    config = {**applied, "metadata": {**own, "annotations": kept} if "annotations" in own else own}
    text = json.dumps(config, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"
    return {**new, "metadata": {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}}
