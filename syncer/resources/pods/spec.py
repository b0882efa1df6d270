"""The host pod of a virtual Pod. Fields that aren't named here are copied unchanged."""

from typing import Any

from syncer.api import Context, Obj
from syncer.resources.kinds import SERVICE_ACCOUNTS
from syncer.resources.pods import (
    classes,
    dns,
    eviction,
    fields,
    isolation,
    placement,
    record,
    scheduling,
    tolerations,
    volumes,
)
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.env import with_env
from syncer.resources.pods.references import PATHS
from syncer.resources.pods.resizing import RESOURCES, resources_digest

#: Fields that are not copied. The host's admission computes priority and overhead from its own
#: classes and refuses others; ephemeral containers can only be added later; a Pod held by
#: scheduling gates isn't copied before they are gone; a group of Pods to schedule together is an
#: object of the virtual cluster alone.
DROPPED = frozenset(
    {
        "serviceAccount",
        "priority",
        "priorityClassName",
        "preemptionPolicy",
        "overhead",
        "ephemeralContainers",
        "schedulingGates",
        "schedulingGroup",
        "workloadRef",
    }
)

#: Fields of a Pod about which no event warns if the copy lacks them: the host's admission sets
#: them, or the copy gets their effect in another way, or later.
_UNREPORTED = frozenset(
    {
        "serviceAccount",
        "serviceAccountName",
        "priority",
        "preemptionPolicy",
        "overhead",
        "ephemeralContainers",
        "schedulingGates",
        "nodeName",
    }
)
#: Those of a container. API servers since Kubernetes 1.33 set this one by default, and an older
#: host has none: a resizing itself is refused there.
_UNREPORTED_OF_CONTAINERS = frozenset({"resizePolicy"})

#: Values that mean as much as none. False isn't among them: a Pod may ask for that.
_NOTHING: tuple[Any, ...] = (None, "", [], {})

#: The port that an address without one means to clients of an API server.
HTTPS = 443


def host_pod(ctx: Context[PodConfig], virtual: Obj, variables: list[Obj]) -> Obj:
    """Return the pod to create on the host; each container gets the environment variables.

    Raises:
        Refused: It names what it doesn't have, among others.
    """
    host = metadata(ctx, virtual, record.created(virtual))
    if resources := resources_digest(virtual["spec"]):
        host["metadata"]["annotations"][f"{ctx.marks.prefix}/{RESOURCES}"] = resources
    host["spec"] = _spec(ctx, virtual, variables)
    return host


def fields_left_out(ctx: Context[PodConfig], virtual: Obj, copy: Obj) -> list[str]:
    """Return the paths of a Pod's fields that the copy lacks.

    They weren't sent, or the host dropped them.
    """
    own = virtual["spec"]
    there = copy["spec"]
    unreported = _UNREPORTED
    if ctx.config.is_bound_first:
        unreported = _UNREPORTED | placement.DECIDED
    found = [f"spec.{name}" for name in _lacking(own, there) if name not in unreported]
    if classes.is_replaced(ctx, virtual, copy):
        found.append("spec.priorityClassName")
    if ctx.config.enforced_taints:
        found.extend(tolerations.left_out(tolerations.own(own), ctx.config.enforced_taints))
    for part in ("containers", "initContainers"):
        copies = {container["name"]: container for container in there.get(part) or ()}
        for container in own.get(part) or ():
            like = copies.get(container["name"])
            if like is None:
                continue
            lacking = _lacking(container, like)
            reported = [name for name in lacking if name not in _UNREPORTED_OF_CONTAINERS]
            found.extend(f"spec.{part}[].{name}" for name in reported)
    return found


def _lacking(wanted: Obj, there: Obj) -> list[str]:
    """Return the names of the fields that have a value in ``wanted``, and none in ``there``."""
    missing = wanted.keys() - there.keys()
    if not missing:
        return []
    return sorted(name for name in missing if wanted[name] not in _NOTHING)


def metadata(ctx: Context[PodConfig], virtual: Obj, sent: record.PodRecord) -> Obj:
    """Return the host pod without a spec.

    It has a name, labels and annotations, the marks, the record of what was sent, and the
    values for the downward API. Where a tenant's own annotations for the Cluster Autoscaler may
    cross, they prevail.
    """
    host = ctx.host_copy(virtual)
    host["metadata"]["labels"] |= isolation.labels(ctx, virtual)
    annotations = eviction.annotations(ctx.config, virtual) | host["metadata"]["annotations"]
    host["metadata"]["annotations"] = annotations
    annotations |= fields.annotations(ctx, virtual)
    annotations[record.mark(ctx.marks)] = sent.written()
    if ctx.config.is_bound_first:
        annotations |= placement.annotations(ctx, virtual)
    return host


def _spec(ctx: Context[PodConfig], virtual: Obj, variables: list[Obj]) -> Obj:
    """Return the spec of the host pod."""
    given = {name: value for name, value in virtual["spec"].items() if name not in DROPPED}
    if ctx.config.is_bound_first:
        given = placement.pinned(ctx, given)
    # The result is our own dictionary, or a changed copy of it: it may be written to.
    spec: Obj = PATHS.to_host(ctx, virtual, {"spec": given})["spec"]
    spec["enableServiceLinks"] = False
    spec |= dns.fields(ctx, virtual) | classes.priority(ctx, virtual)
    _identify(ctx, virtual, spec)
    _name_api_server(ctx, virtual, spec)
    _narrow_scheduling(ctx, virtual, spec)
    _fill(ctx, virtual, spec, variables)
    return spec


def _identify(ctx: Context, virtual: Obj, spec: Obj) -> None:
    """Set the Pod's host name and ServiceAccount; the host adds no token of its own."""
    metadata = virtual["metadata"]
    spec["automountServiceAccountToken"] = False
    spec.pop("serviceAccountName", None)
    if ctx.enabled("serviceaccounts"):
        namespace = metadata.get("namespace", "")
        account = fields.service_account(virtual)
        spec["serviceAccountName"] = ctx.host_name(SERVICE_ACCOUNTS, namespace, account)
    if not spec.get("hostname") and not spec.get("hostnameOverride"):
        spec["hostname"] = dns.hostname(metadata["name"])


def _narrow_scheduling(ctx: Context, virtual: Obj, spec: Obj) -> None:
    """Narrow the Pod's affinity and spread constraints to the tenant's Pods.

    A Pod that a scheduler of the virtual cluster has placed has neither; its pin is no such term.
    """
    if given := spec.get("affinity"):
        spec["affinity"] = scheduling.affinity(ctx, virtual, given)
    if constraints := spec.get("topologySpreadConstraints"):
        spec["topologySpreadConstraints"] = scheduling.spread(ctx, virtual, constraints)


def _name_api_server(ctx: Context, virtual: Obj, spec: Obj) -> None:
    """Add the names of the virtual API server to the Pod's ``/etc/hosts``, as vcluster does.

    So they lead there with any DNS server. Names of the Pod's own come first. A port other than
    that of https can't be named there.
    """
    server = ctx.settings.api_server
    if server.port != HTTPS or not server.is_ip:
        return
    domain = ctx.settings.networking.cluster_domain
    names = [f"kubernetes.default.svc.{domain}", "kubernetes.default.svc", "kubernetes.default"]
    if virtual["metadata"].get("namespace") == "default":
        # In another namespace, this is the name of a Service there.
        names.append("kubernetes")
    own = spec.get("hostAliases") or ()
    spec["hostAliases"] = [*own, {"ip": server.host, "hostnames": names}]


def _fill(ctx: Context, virtual: Obj, spec: Obj, variables: list[Obj]) -> None:
    """Fill the containers: volumes, and environment variables."""
    if given := spec.get("volumes"):
        spec["volumes"] = volumes.translated(ctx, virtual, given)
    if variables:
        for part in ("containers", "initContainers"):
            if given := spec.get(part):
                spec[part] = [with_env(container, variables) for container in given]
