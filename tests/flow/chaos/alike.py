"""A comparison of both sides that asks no syncer; the other half is the writes of a fresh daemon."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from custom_scene import CERTIFICATES, ISSUERS

from chaos.guards import MARKS, host_namespace, owner_of
from chaos.people import INGRESSES, KINDS, SAMPLED, SERVICE_ACCOUNTS
from syncer.api import Key, Obj, SyncRequest, annotations_of, is_deleting, uid_of
from syncer.api.reasons import RequestState
from syncer.daemon.process import Process
from syncer.resources.pods.lifecycle import has_started, is_finished

if TYPE_CHECKING:
    from chaos.stage import Stage

#: The syncer of a kind, where it isn't named like it.
SYNCERS = {INGRESSES: "ingresses", **{kind: sample.name for kind, sample in SAMPLED.items()}}
#: The parts of a copy that must be as in the original.
ALIKE = {
    "configmaps": ("data", "binaryData", "immutable"),
    "secrets": ("data", "type"),
    CERTIFICATES: ("status",),
    ISSUERS: ("status",),
    "pods": (),
    SERVICE_ACCOUNTS: (),
}
#: Why a request may be parked though nothing is wrong with us.
ACCEPTED = ("NameCollision", "is not ours", "an object of others has that place on the host")


def differences(stage: "Stage", processes: Mapping[str, Process]) -> Iterator[str]:
    """Return the differences of both sides, and the requests that are neither done nor waiting.

    ``processes`` has the process that leads each tenant.
    """
    for tenant, process in processes.items():
        yield from _unfinished(process, tenant)
        for kind in KINDS:
            yield from _originals(stage, process, tenant, kind)
            yield from _copies(stage, tenant, kind)


def _unfinished(process: Process, tenant: str) -> Iterator[str]:
    queue = process.queue
    running = [request for request in queue.running() if request.cluster == tenant]
    if waiting := queue.depths()[tenant]:
        yield f"the queue of {tenant} isn't empty: {waiting} wait"
    if running:
        yield f"the queue of {tenant} isn't empty: {running[:5]} are worked on"
    for request, status in process.statuses.troubles():
        if request.cluster != tenant:
            continue
        if status.state is RequestState.FAILING or not any(word in status.reason for word in ACCEPTED):
            yield f"{request} of {request.cluster} is {status.state}: {status.reason}"
        elif request not in queue.delayed():
            yield f"{request} of {request.cluster} is parked for ever: {status.reason}"


def _originals(stage: "Stage", process: Process, tenant: str, kind: str) -> Iterator[str]:
    for original in stage.tenants[tenant].objects(kind):
        space, name = original["metadata"]["namespace"], original["metadata"]["name"]
        copy = stage.copy(tenant, kind, space, name)
        if process.statuses.of(SyncRequest(tenant, SYNCERS.get(kind, kind), Key(space, name))) is not None:
            continue  # something is said of it; whether that may be, is looked at above
        if copy is not None and owner_of(copy) == tenant and MARKS.name in annotations_of(copy):
            yield from (f"{tenant} {kind} {space}/{name} {fault}" for fault in _unlike(kind, original, copy))
        elif copy is None and _needs_copy(kind, original):
            yield f"{tenant} {kind} {space}/{name} has no copy, and nothing says why"


def _needs_copy(kind: str, original: Obj) -> bool:
    if is_deleting(original) or owner_of(original):
        return False
    return kind != "pods" or not (is_finished(original) or has_started(original))


def _unlike(kind: str, original: Obj, copy: Obj) -> Iterator[str]:
    if owner_of(original):
        return  # it came from the host
    if annotations_of(copy).get(MARKS.uid) != uid_of(original):
        yield "has the copy of another object"
    for part in ALIKE.get(kind, ()):
        if (original.get(part) or {}) != (copy.get(part) or {}):
            yield f"has other {part} on the host"
    if kind == "pods" and (original.get("status") or {}).get("phase") != (copy.get("status") or {}).get("phase"):
        yield "has another phase on the host"


def _copies(stage: "Stage", tenant: str, kind: str) -> Iterator[str]:
    """Copies without an original, second copies, and copies in odd places."""
    for copy in stage.host.objects(kind, host_namespace(tenant)) if stage.serves("host", kind) else ():
        notes = annotations_of(copy)
        if owner_of(copy) != tenant or notes.get(MARKS.kind, "").partition(".")[0] != copy["kind"]:
            continue
        space, name = notes.get(MARKS.namespace, ""), notes.get(MARKS.name, "")
        if stage.tenants[tenant].get(kind, f"{space}/{name}") is None:
            yield f"{tenant} {kind} {space}/{name} is gone but has a copy"
        if stage.host_path(tenant, space, name) != f"{host_namespace(tenant)}/{copy['metadata']['name']}":
            yield f"{tenant} {kind} {space}/{name} has a second copy"
