"""The host pod of a virtual Pod. Fields that aren't named here are copied unchanged."""

import hashlib

from syncer.api import Context, Obj
from syncer.resources.kinds import SERVICE_ACCOUNTS
from syncer.resources.pods import dns, fields, scheduling, volumes
from syncer.resources.pods.env import service_env, with_env
from syncer.resources.pods.references import PATHS

#: Fields that are not copied. The host's admission computes priority and overhead from its own
#: classes and refuses others; debug containers can't exist from the start; a Pod held by scheduling
#: gates isn't copied before they are gone.
DROPPED = frozenset(
    {
        "serviceAccount",
        "priority",
        "priorityClassName",
        "preemptionPolicy",
        "overhead",
        "ephemeralContainers",
        "schedulingGates",
    }
)

#: Below the marks' prefix: a digest of the images that were sent last. The host may replace images
#: (a registry mirror, for example), so only this tells whether the tenant has changed them.
IMAGES = "pod-images"


def host_pod(ctx: Context, virtual: Obj) -> Obj:
    """Return the pod to create on the host."""
    host = metadata(ctx, virtual)
    host["spec"] = _spec(ctx, virtual)
    return host


def metadata(ctx: Context, virtual: Obj) -> Obj:
    """Return the host pod without a spec: name, labels, annotations, marks, and the values for the
    downward API.
    """
    host = ctx.host_copy(virtual)
    annotations = host["metadata"]["annotations"]
    annotations |= fields.annotations(ctx, virtual)
    annotations[f"{ctx.marks.prefix}/{IMAGES}"] = images_digest(virtual["spec"])
    return host


def images_digest(spec: Obj) -> str:
    """Return a short digest of all container images, by container."""
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    text = "\n".join(f"{container['name']}={container.get('image', '')}" for container in containers)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _spec(ctx: Context, virtual: Obj) -> Obj:
    given = PATHS.to_host(ctx, virtual, {"spec": virtual["spec"]})["spec"]
    spec = {name: value for name, value in given.items() if name not in DROPPED}
    spec["enableServiceLinks"] = False
    spec |= dns.fields(ctx, virtual)
    _identify(ctx, virtual, spec)
    _place(ctx, virtual, spec)
    _fill(ctx, virtual, spec)
    return spec


def _identify(ctx: Context, virtual: Obj, spec: Obj) -> None:
    """Set the Pod's host name and ServiceAccount; the host adds no token of its own."""
    metadata = virtual["metadata"]
    spec["automountServiceAccountToken"] = False
    spec.pop("serviceAccountName", None)
    if ctx.enabled("serviceaccounts"):
        account = fields.service_account(virtual)
        spec["serviceAccountName"] = ctx.host_name(SERVICE_ACCOUNTS, metadata.get("namespace", ""), account)
    if not spec.get("hostname") and not spec.get("hostnameOverride"):
        spec["hostname"] = dns.hostname(metadata["name"])


def _place(ctx: Context, virtual: Obj, spec: Obj) -> None:
    if given := spec.get("affinity"):
        spec["affinity"] = scheduling.affinity(ctx, virtual, given)
    if constraints := spec.get("topologySpreadConstraints"):
        spec["topologySpreadConstraints"] = scheduling.spread(ctx, virtual, constraints)


def _fill(ctx: Context, virtual: Obj, spec: Obj) -> None:
    """Fill the containers: volumes, and the variables of Services."""
    if given := spec.get("volumes"):
        spec["volumes"] = volumes.translated(ctx, virtual, given)
    if variables := service_env(ctx, virtual):
        for part in ("containers", "initContainers"):
            if containers := spec.get(part):
                spec[part] = [with_env(container, variables) for container in containers]
