"""Deletion: preconditions, grace periods, finalizers and collections.

Source: ``rest.BeforeDelete`` and ``Store.Delete`` of k8s.io/apiserver,
``podStrategy.CheckGracefulDelete``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from kube_envtest.apiserver.bodies import read_options
from kube_envtest.apiserver.clock import seconds_of, timestamp
from kube_envtest.apiserver.errors import ApiError, bad_request, cause, conflict, invalid
from kube_envtest.apiserver.objects import Objects
from kube_envtest.apiserver.request import Call
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import Entry, Storage

Obj = dict[str, Any]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
PROPAGATION = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}


@dataclass(slots=True)
class DeleteOptions:
    """The options of a deletion. ``grace`` is in seconds, None for the kind's own.

    ``old_style``: the client used ``orphanDependents: false``; a deletion that has to wait gets 202
    then.
    """

    grace: int | None = None
    uid: str = ""
    version: str = ""
    propagation: str = ""
    dry_run: bool = False
    now: float = 0.0
    old_style: bool = False


class Deleted(NamedTuple):
    """The object after the request, and True if it is gone."""

    entry: Entry
    gone: bool


def options_of(call: Call, now: float) -> DeleteOptions:
    """Read DeleteOptions from the body, or else from the query."""
    body = read_options(call.request.body, call.request.content_type)
    query = call.query
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    if body.get("orphanDependents") is not None:
        propagation = "Orphan" if body["orphanDependents"] else "Background"
    old_style = body.get("orphanDependents") is False
    if propagation and propagation not in PROPAGATION:
        raise _bad_propagation(propagation)
    wanted = body.get("preconditions") or {}
    dry_run = call.request.dry_run or body.get("dryRun") == ["All"]
    return DeleteOptions(
        _seconds(grace),
        wanted.get("uid") or "",
        wanted.get("resourceVersion") or "",
        propagation,
        dry_run,
        now,
        old_style,
    )


def _seconds(grace: Any) -> int | None:
    if grace is None:
        return None
    try:
        seconds = int(grace)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{grace}": invalid syntax') from None
    return 1 if seconds < 0 else seconds


def _bad_propagation(text: str) -> ApiError:
    options = ResourceType("meta.k8s.io", "v1", "DeleteOptions", "deleteoptions")
    known = '"Background", "Foreground", "Orphan", "nil"'
    message = f'Unsupported value: "{text}": supported values: {known}'
    return invalid(options, "", [cause("propagationPolicy", message, "FieldValueNotSupported")])


class Deleter:
    """Deletes objects of any resource."""

    def __init__(self, storage: Storage, objects: Objects) -> None:
        self._storage = storage
        self._objects = objects

    def delete(self, rt: ResourceType, entry: Entry, options: DeleteOptions) -> Deleted:
        """Delete an object, or mark it as terminating if it has to wait."""
        _check(rt, entry.obj["metadata"], options)
        if rt.table_name == "/namespaces":
            return self._namespace(rt, entry, options)
        if rt.kind == "CustomResourceDefinition":
            return self._definition(rt, entry, options)
        graceful, pending = self._grace(rt, entry, options)
        if pending:
            return Deleted(entry, gone=False)
        finalizers = _finalizers(entry.obj["metadata"], options)
        before = entry.obj["metadata"].get("finalizers") or []
        if graceful is None and not finalizers and not before:
            return self._remove(rt, entry, options)
        meta = graceful if graceful is not None else _marked(entry.obj["metadata"], options.now)
        meta = {**meta, "finalizers": finalizers}
        if not finalizers:
            del meta["finalizers"]
            if graceful is None:
                return self._remove(rt, entry, options)
        waiting = bool(finalizers) or bool(meta.get("deletionGracePeriodSeconds"))
        updated = self._store(rt, entry, meta, options)
        return Deleted(updated, gone=False) if waiting else self._remove(rt, updated, options)

    def _grace(self, rt: ResourceType, entry: Entry, options: DeleteOptions) -> tuple[Obj | None, bool]:
        """Return the metadata of a graceful deletion, or None, and True if one is in progress that
        stays as it is.
        """
        meta = entry.obj["metadata"]
        if rt.table_name != "/pods":
            return None, False
        if "deletionTimestamp" not in meta:
            return _graceful(entry.obj, options), False
        left = meta.get("deletionGracePeriodSeconds")
        if not left:
            return None, False
        if options.grace is None or options.grace >= left:
            return None, True
        return _shortened(meta, left, options), False

    def _store(self, rt: ResourceType, entry: Entry, meta: Obj, options: DeleteOptions) -> Entry:
        obj = {**entry.obj, "metadata": meta}
        if options.dry_run:
            return Entry(entry.key, obj, entry.revision)
        if meta == entry.obj["metadata"]:
            return entry
        return self._storage.update(rt.table_name, entry.key, obj)

    def _remove(self, rt: ResourceType, entry: Entry, options: DeleteOptions) -> Deleted:
        if options.dry_run:
            return Deleted(entry, gone=True)
        return Deleted(self._objects.remove(rt, entry), gone=True)

    def _namespace(self, rt: ResourceType, entry: Entry, options: DeleteOptions) -> Deleted:
        """Mark a namespace as terminating; it is deleted when its contents and its finalizers are gone."""
        if "deletionTimestamp" in entry.obj["metadata"]:
            if not (entry.obj.get("spec") or {}).get("finalizers") and not entry.obj["metadata"].get("finalizers"):
                return self._remove(rt, entry, options)
            return Deleted(entry, gone=False)
        meta = _marked(entry.obj["metadata"], options.now)
        meta.pop("deletionGracePeriodSeconds")
        obj = {**entry.obj, "metadata": meta, "status": {**entry.obj.get("status", {}), "phase": "Terminating"}}
        if options.dry_run:
            return Deleted(Entry(entry.key, obj, entry.revision), gone=False)
        return Deleted(self._storage.update(rt.table_name, entry.key, obj), gone=False)

    def _definition(self, rt: ResourceType, entry: Entry, options: DeleteOptions) -> Deleted:
        """Mark a definition as terminating; it is deleted when its instances are gone."""
        if "deletionTimestamp" in entry.obj["metadata"]:
            return Deleted(entry, gone=False)
        meta = _marked(entry.obj["metadata"], options.now)
        meta["finalizers"] = list(dict.fromkeys([*(meta.get("finalizers") or ()), CLEANUP]))
        del meta["deletionGracePeriodSeconds"]
        ending = {"type": "Terminating", "status": "True", "lastTransitionTime": timestamp(options.now)}
        ending |= {"reason": "InstanceDeletionPending", "message": "CustomResourceDefinition marked for deletion"}
        status = entry.obj.get("status") or {}
        conditions = [*(status.get("conditions") or ()), ending]
        obj = {**entry.obj, "metadata": meta, "status": {**status, "conditions": conditions}}
        if options.dry_run:
            return Deleted(Entry(entry.key, obj, entry.revision), gone=False)
        return Deleted(self._storage.update(rt.table_name, entry.key, obj), gone=False)


def _check(rt: ResourceType, meta: Obj, options: DeleteOptions) -> None:
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(rt, meta["name"], why, by_kind=True)
    if options.version and options.version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise conflict(rt, meta["name"], why, by_kind=True)


def _graceful(pod: Obj, options: DeleteOptions) -> Obj:
    spec = pod.get("spec") or {}
    status = pod.get("status") or {}
    grace = options.grace
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds") or 0
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        grace = 0
    meta = _marked(pod["metadata"], options.now + grace)
    meta["deletionGracePeriodSeconds"] = grace
    return meta


def _shortened(meta: Obj, left: int, options: DeleteOptions) -> Obj:
    grace = options.grace or 0
    ends = seconds_of(meta["deletionTimestamp"]) - left + grace
    if ends < options.now:
        ends = options.now
        grace = 1 if grace else 0
    return {**meta, "deletionTimestamp": timestamp(ends), "deletionGracePeriodSeconds": grace}


def _marked(meta: Obj, ends: float) -> Obj:
    marked = {**meta, "deletionGracePeriodSeconds": 0}
    if "deletionTimestamp" in meta:
        return marked
    marked["deletionTimestamp"] = timestamp(ends)
    if "generation" in meta:
        marked["generation"] = meta["generation"] + 1
    return marked


def _finalizers(meta: Obj, options: DeleteOptions) -> list[str]:
    """Return the finalizers with those of the garbage collector, according to the options."""
    now = meta.get("finalizers") or []
    if not options.propagation:
        return list(now)
    wanted = PROPAGATION[options.propagation]
    kept = [name for name in now if name not in (ORPHAN, FOREGROUND)]
    return [*kept, wanted] if wanted else kept
