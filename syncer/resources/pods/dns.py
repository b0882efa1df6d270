"""Host name and DNS of a Pod: ``ClusterFirst`` of the virtual cluster, written out for the host.

See https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/.
"""

from collections.abc import Iterable

from syncer.api import LONGEST_LABEL, Context, Decision, Key, Obj, ObjectRef, Side, wait
from syncer.resources.kinds import SERVICES

#: Limits of ``dnsConfig`` in a Pod.
_NAMESERVERS, _SEARCHES = 3, 32


def hostname(name: str) -> str:
    """Return the host name of a Pod of this name: a DNS label, cut as by the kubelet."""
    return name[:LONGEST_LABEL].rstrip("-.").replace(".", "-")


def uses_cluster_dns(spec: Obj) -> bool:
    """Return True if the Pod uses its cluster's DNS server."""
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not spec.get("hostNetwork"))


def missing_server(ctx: Context, virtual: Obj) -> Decision | None:
    """Return a wait until the copy of the virtual DNS Service has an address; None if it has, or if
    there is no such Service.
    """
    key = _service(ctx)
    if key is None or not uses_cluster_dns(virtual["spec"]) or ctx.virtual(SERVICES, key) is None:
        return None
    if _address(ctx, key):
        return None
    seen = ObjectRef(Side.HOST, SERVICES, ctx.names.to_host(SERVICES, key))
    return wait(f"the DNS Service {key} has no address on the host yet", on=(seen,))


def fields(ctx: Context, virtual: Obj) -> Obj:
    """Return the DNS fields of the host pod's spec; empty if the Pod uses the host's DNS."""
    spec, key = virtual["spec"], _service(ctx)
    address = _address(ctx, key) if key and uses_cluster_dns(spec) else ""
    if not address or address == "None":
        return {}
    domain = ctx.settings.networking.cluster_domain
    given = spec.get("dnsConfig") or {}
    searches = [f"{virtual['metadata'].get('namespace', '')}.svc.{domain}", f"svc.{domain}", domain]
    config = {
        "nameservers": _unique([address, *(given.get("nameservers") or ())])[:_NAMESERVERS],
        "searches": _unique([*searches, *(given.get("searches") or ())])[:_SEARCHES],
        "options": _options(given.get("options") or ()),
    }
    return {"dnsPolicy": "None", "dnsConfig": config}


def _service(ctx: Context) -> Key | None:
    networking = ctx.settings.networking
    if not networking.dns.service or not ctx.enabled("services"):
        return None
    return Key.parse(networking.dns.service)


def _address(ctx: Context, key: Key) -> str:
    copy = ctx.host_of(SERVICES, key)
    return ((copy or {}).get("spec") or {}).get("clusterIP") or ""


def _options(given: Iterable[Obj]) -> list[Obj]:
    """Return the kubelet's options for a cluster's DNS, overridden by the Pod's."""
    return list({option["name"]: option for option in ({"name": "ndots", "value": "5"}, *given)}.values())


def _unique(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))
