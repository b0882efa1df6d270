"""Services of the host under names in the virtual cluster.

Each is a Service without an address of its own there, with an EndpointSlice that has the host's
address: names are all that clients need, as the host's addresses are routed for the tenant's Pods
already. So nothing is made on the host, and connections take no way around.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from syncer.api import (
    Context,
    Decision,
    Index,
    Indexes,
    Key,
    NameTaken,
    Obj,
    ObjectRef,
    Pair,
    Precondition,
    Right,
    Settings,
    Side,
    Source,
    annotations_of,
    apply,
    delete,
    key_of,
    uid_of,
)
from syncer.resources.endpointslices import MANAGED_BY, SERVICE_NAME
from syncer.resources.host_objects import HostObjectConfig, HostObjectSyncer
from syncer.resources.kinds import ENDPOINT_SLICES, NAMESPACES, SERVICES
from syncer.resources.service_stand_ins import (
    NAME,
    contents,
    headless,
    is_name,
    owner,
    service_of,
    slices_of,
)
from syncer.resources.services import KUBERNETES

_SHOWN = Source(Side.VIRTUAL, SERVICES, marked=True)
_SLICES = Source(Side.VIRTUAL, ENDPOINT_SLICES)
#: Indexes of the host's Services by their keys, of its slices by those of their Services, and of
#: what is shown of them.
_BY_KEY = "host-services/key"
_OF_SERVICE = "host-services/slices"
_BY_SHOWN_KEY = "host-services/shown-key"
_SHOWN_SLICES = "host-services/shown-slices"


def _own_key(obj: Obj) -> Iterable[str]:
    return [str(key_of(obj))]


_OF_SHOWN = (
    Index(_SHOWN, _BY_SHOWN_KEY, _own_key),
    Index(_SLICES, _SHOWN_SLICES, _own_key, requeues=_BY_SHOWN_KEY, when="change"),
)


class HostServiceSyncer(HostObjectSyncer, Indexes):
    """Services of the host that `mappings` lists, under names in the virtual cluster.

    Clients find them by DNS: the name leads to the host's ClusterIP, or of a headless Service to
    its endpoints, as long as an endpoint is ready. They have the host's ports, and no ClusterIP,
    node ports and environment variables of their own. The EndpointSlice has the Service's name.
    """

    name = "host-services"
    section = "fromHost.services"
    resource = SERVICES
    reads = (Source(Side.VIRTUAL, NAMESPACES), _SLICES)
    rights = (Right(Side.VIRTUAL, ENDPOINT_SLICES, ("create", "patch", "delete")),)
    up = (
        "spec.type",
        "spec.externalName",
        "spec.clusterIP",
        "spec.ports",
        "spec.publishNotReadyAddresses",
        "spec.selector",
    )
    exact = ("spec.ports", "spec.selector")

    def indexes(self) -> Sequence[Index]:
        """Return the indexes for any configuration."""
        return self._indexes(Source(Side.HOST, SERVICES), Source(Side.HOST, ENDPOINT_SLICES))

    def indexes_with(self, settings: Settings) -> Sequence[Index]:
        """Return the indexes of the host's Services, of the slices in their namespaces, and of what
        is shown of them.
        """
        namespaces = self.host_namespaces(settings)
        names = self.host_names(settings)
        if not (namespaces or names):
            return _OF_SHOWN
        of_slices = tuple(dict.fromkeys((*namespaces, *(key.namespace for key in names))))
        services = Source(
            Side.HOST,
            SERVICES,
            selector=self.host_selector(settings),
            namespaces=namespaces,
            names=names,
        )
        return self._indexes(services, Source(Side.HOST, ENDPOINT_SLICES, namespaces=of_slices))

    def is_own(self, host: Obj) -> bool:
        """Return True for the Service of the host's own API server."""
        return key_of(host) == KUBERNETES

    def is_fixed(self, virtual: Obj, shown: Obj) -> bool:
        """Return True if the Service becomes an ExternalName, or is none any more."""
        return bool(virtual["spec"].get("type", "ClusterIP") != shown["spec"]["type"])

    def shown(self, ctx: Context[HostObjectConfig], host: Obj, key: Key) -> Obj:
        """Return the virtual Service: headless, or the same name outside of the cluster."""
        shown = super().shown(ctx, host, key)
        if is_name(host):
            name = host["spec"].get("externalName", "")
            shown["spec"] = {"type": NAME, "externalName": name}
        else:
            shown["spec"] = headless(host)
        return shown

    def sync_from_host(self, ctx: Context[HostObjectConfig], host: Obj) -> Decision:
        """Create the virtual Service; its slice, which names it as the owner, is the next step."""
        decision = super().sync_from_host(ctx, host)
        return replace(decision, is_step=bool(decision.writes))

    def sync(self, ctx: Context[HostObjectConfig], pair: Pair) -> Decision:
        """Update the virtual Service and its slice."""
        decision = super().sync(ctx, pair)
        if decision.deletes or not decision.writes:
            return decision
        return decision.then(self._sliced(ctx, pair))

    def removed(self, ctx: Context[HostObjectConfig], virtual: Obj, reason: str) -> Decision:
        """Delete the slice, and then the virtual Service."""
        decision = super().removed(ctx, virtual, reason)
        if not decision.deletes:
            return decision
        return self._without_slice(ctx, key_of(virtual), reason).then(decision)

    def _indexes(self, services: Source, slices: Source) -> Sequence[Index]:
        return [
            Index(services, _BY_KEY, _own_key),
            Index(slices, _OF_SERVICE, service_of, requeues=_BY_KEY, when="change"),
            *_OF_SHOWN,
        ]

    def _has_made(self, virtual: Obj, settings: Settings) -> bool:
        marks = settings.marks
        made_for = annotations_of(virtual).get(marks.made_for)
        is_ours = marks.is_from_here(virtual, cluster=settings.identity)
        return is_ours and made_for == self.name

    def _sliced(self, ctx: Context[HostObjectConfig], pair: Pair) -> Decision:
        """Return the write of the slice of a virtual Service; an ExternalName has none.

        Raises:
            NameTaken: The tenant has a slice of that name.
        """
        key = key_of(pair.virtual)
        if is_name(pair.host):
            return self._without_slice(ctx, key, "the Service is only a name now")
        there = ctx.virtual(ENDPOINT_SLICES, key)
        if there is not None and not self._has_made(there, ctx.settings):
            why = "a Service of the host appears under this name, and its EndpointSlice would, too"
            raise NameTaken(f"{why}. Rename or remove this one", about=there)
        wanted = self._slice(ctx, pair)
        if there is not None and there.get("addressType") != wanted["addressType"]:
            why = "the addresses are of another family, so the slice is replaced"
            return delete(virtual=there, resource=ENDPOINT_SLICES, reason=why)
        decision = apply(virtual=wanted, resource=ENDPOINT_SLICES, exact=("endpoints", "ports"))
        if there is not None:
            return decision
        # The virtual cluster would remove a slice at once whose Service is another one by now.
        owner = Precondition(ObjectRef(Side.VIRTUAL, SERVICES, key), uid_of(pair.virtual))
        [write] = decision.writes
        return replace(decision, writes=(replace(write, precondition=owner),))

    def _without_slice(self, ctx: Context[HostObjectConfig], key: Key, reason: str) -> Decision:
        there = ctx.virtual(ENDPOINT_SLICES, key)
        if there is None or not self._has_made(there, ctx.settings):
            return Decision()
        return delete(virtual=there, resource=ENDPOINT_SLICES, reason=reason)

    def _slice(self, ctx: Context[HostObjectConfig], pair: Pair) -> Obj:
        """Return the slice with the host's address, or of a headless Service with its endpoints."""
        key = key_of(pair.virtual)
        slices = list(slices_of(ctx, _OF_SERVICE, key_of(pair.host)))
        return {
            "apiVersion": ENDPOINT_SLICES.api_version,
            "kind": ENDPOINT_SLICES.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": {
                    ctx.marks.cluster: ctx.identity,
                    SERVICE_NAME: key.name,
                    MANAGED_BY: ctx.marks.prefix,
                },
                "annotations": {ctx.marks.made_for: self.name},
                "ownerReferences": [owner(pair.virtual)],
            },
            **contents(pair.host, slices),
        }
