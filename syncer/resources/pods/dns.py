"""Host name and DNS of a Pod: ``ClusterFirst`` of the virtual cluster, written out for the host.

See https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/.
"""

from collections.abc import Iterable

from syncer.api import LONGEST_LABEL, Context, Decision, Key, Obj, ObjectRef, Side, reasons, wait
from syncer.resources.kinds import SERVICES

#: Limits of ``dnsConfig`` in a Pod.
_NAMESERVERS = 3
_SEARCHES = 32
#: The reason of the event about a Pod that lacks the virtual cluster's DNS, as kubelets name it.
EVENT = "MissingClusterDNS"


def hostname(name: str) -> str:
    """Return the host name of a Pod of this name: a DNS label, cut as by the kubelet."""
    return name[:LONGEST_LABEL].rstrip("-.").replace(".", "-")


def uses_cluster_dns(spec: Obj) -> bool:
    """Return True if the Pod uses its cluster's DNS server."""
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if spec.get("hostNetwork"):
        return policy == "ClusterFirstWithHostNet"
    return policy in ("ClusterFirst", "ClusterFirstWithHostNet")


def missing_server(ctx: Context, virtual: Obj) -> Decision | None:
    """Return a wait until the copy of the virtual DNS Service has an address.

    None if it has one, or if there is no such Service.
    """
    key = _service(ctx)
    if key is None or not uses_cluster_dns(virtual["spec"]):
        return None
    if _address(ctx, key) or ctx.virtual(SERVICES, key) is None:
        return None
    reference = ObjectRef(Side.HOST, SERVICES, ctx.names.to_host(SERVICES, key))
    return wait(reasons.NO_DNS_ADDRESS(key), on=(reference,))


def warned(ctx: Context, host: Obj, decision: Decision) -> Decision:
    """Return the decision with a warning if the host pod has the host's DNS for lack of another.

    A warning that it has already comes first.
    """
    key = _service(ctx)
    if key is None or not uses_cluster_dns(host["spec"]) or decision.warning is not None:
        return decision
    why = f"it uses the host's DNS, as there is no Service {key} with a ClusterIP"
    how = "Create that Service, then this Pod again; or set dnsPolicy: Default"
    return decision.warn(EVENT, f"{why}. {how}")


def fields(ctx: Context, virtual: Obj) -> Obj:
    """Return the DNS fields of the host pod's spec; empty if the Pod uses the host's DNS."""
    spec = virtual["spec"]
    key = _service(ctx)
    if key is None or not uses_cluster_dns(spec):
        return {}
    address = _address(ctx, key)
    if not address or address == "None":
        return {}

    domain = ctx.settings.networking.cluster_domain
    namespace = virtual["metadata"].get("namespace", "")
    searches = [f"{namespace}.svc.{domain}", f"svc.{domain}", domain]
    given = spec.get("dnsConfig") or {}
    config = {
        "nameservers": _unique([address, *(given.get("nameservers") or ())])[:_NAMESERVERS],
        "searches": _unique([*searches, *(given.get("searches") or ())])[:_SEARCHES],
        "options": _options(given.get("options") or ()),
    }
    return {"dnsPolicy": "None", "dnsConfig": config}


def _service(ctx: Context) -> Key | None:
    """Return the virtual DNS Service; None if none is configured or synced."""
    networking = ctx.settings.networking
    if not networking.dns.service or not ctx.enabled("services"):
        return None
    return Key.parse(networking.dns.service)


def _address(ctx: Context, key: Key) -> str:
    """Return the ClusterIP of a Service's copy; ``""`` while there is none."""
    copy = ctx.host_of(SERVICES, key)
    return ((copy or {}).get("spec") or {}).get("clusterIP") or ""


def _options(given: Iterable[Obj]) -> list[Obj]:
    """Return the kubelet's options for a cluster's DNS, overridden by the Pod's."""
    options: dict[str, Obj] = {"ndots": {"name": "ndots", "value": "5"}}
    for option in given:
        options[option["name"]] = option
    return list(options.values())


def _unique(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))
