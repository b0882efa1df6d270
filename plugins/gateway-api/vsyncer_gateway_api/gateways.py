"""Gateways of the host that serve virtual clusters: tenants see their listeners and addresses."""

from functools import cached_property
from typing import Self

from pydantic import Field, model_validator

from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
    Obj,
    ObjectRef,
    Pair,
    Settings,
    Side,
    Source,
    Sync,
    Syncer,
    SyncFromHost,
    apply,
    copy_fields,
    dig,
    is_deleting,
    key_of,
    labels_of,
    skip,
    wait,
)
from vsyncer_gateway_api import generations
from vsyncer_gateway_api.kinds import GATEWAYS, NAMESPACES
from vsyncer_gateway_api.mappings import Mappings, checked

#: The parts of a listener that tenants see. (The reference of the Gateway API, ``Listener`` of v1.)
_LISTENER = ("name", "hostname", "port", "protocol", "allowedRoutes.kinds")
#: Stands for the certificates of the host in a listener, which needs one or an option.
_CERTIFICATES = {"gateway.vsyncer.dev/certificates": "of-the-host"}


class GatewayConfig(Config):
    """The Gateways of the host that serve this virtual cluster."""

    mappings: dict[str, str] = Field(default={})
    """The Gateways of the host that appear, each with its name in the virtual cluster:
    `infra/shared: gateways/web`, or `infra/*: gateways` for all of a namespace. In the namespace of
    the copies there may be other tenants' Gateways, so those of the host have to be named one by
    one there.

    Routes of the tenant may have these as parents, and those that `toHost.tenantGateways` lets the
    tenant create. None by default.
    """

    @model_validator(mode="after")
    def _has_mappings_that_can_be(self) -> Self:
        checked(self.mappings)
        return self

    @cached_property
    def names(self) -> Mappings:
        """The mappings, in both directions."""
        return Mappings(self.mappings)


def mappings_of(settings: Settings) -> Mappings:
    """Return the Gateways that appear in a virtual cluster; none while they aren't synced.

    A namespace with copies has no mapping for all of its Gateways: a route must not have the copy
    of another tenant's as a parent.
    """
    section = settings.section(GatewaySyncer.name, GatewayConfig)
    if section is None:
        return Mappings({})
    return section.names.without_all_of(settings.names.host_namespaces() or ())


class GatewaySyncer(Syncer[GatewayConfig], SyncFromHost[GatewayConfig], Sync[GatewayConfig]):
    """The host owns them, and a tenant's changes are reverted.

    What names objects of the host stays there: certificates, parameters, the namespaces from which
    a listener takes routes, and the messages of conditions, whose reasons appear.
    """

    name = "gateways"
    section = "fromHost.gateways"
    resource = GATEWAYS
    up = ("spec", "status")
    exact = ("spec", "status")
    reads = (Source(Side.VIRTUAL, NAMESPACES),)
    reverts_virtual_changes = True

    def host_namespaces(self, settings: Settings) -> tuple[str, ...]:
        """Return the host namespaces of the mapped Gateways; no others are watched."""
        return mappings_of(settings).namespaces

    def virtual_key(self, ctx: Context[GatewayConfig], host: Obj) -> Key | None:
        """Return the key at which a Gateway appears; None if it isn't mapped, or is a copy."""
        if ctx.marks.cluster in labels_of(host):
            return None
        return mappings_of(ctx.settings).virtual_key(key_of(host))

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the key of the host's Gateway."""
        return mappings_of(settings).host_key(key) or Key("", key.name)

    def sync_from_host(self, ctx: Context[GatewayConfig], host: Obj) -> Decision:
        """Show it to the tenant, once there is a namespace for it."""
        key = self.virtual_key(ctx, host)
        if key is None:
            return skip(f"sync.{self.section}.mappings doesn't name it")
        reference = ObjectRef(Side.VIRTUAL, NAMESPACES, Key("", key.namespace))
        namespace = ctx.virtual(NAMESPACES, reference.key)
        if namespace is None:
            why = f"the virtual cluster has no namespace {key.namespace} yet"
            return wait(why, on=(reference,))
        if is_deleting(namespace):
            why = f"the virtual namespace {key.namespace} is being deleted"
            return wait(why, on=(reference,))
        return apply(virtual=_shown(ctx, host, key), reason="this Gateway serves the tenant")

    def sync(self, ctx: Context[GatewayConfig], pair: Pair) -> Decision:
        """Update it."""
        return apply(virtual=_shown(ctx, pair.host, key_of(pair.virtual), pair.virtual))


def _shown(ctx: Context[GatewayConfig], host: Obj, key: Key, virtual: Obj | None = None) -> Obj:
    listeners = [_listener(each) for each in dig(host, "spec.listeners") or ()]
    spec = {"gatewayClassName": dig(host, "spec.gatewayClassName"), "listeners": listeners}
    shown = ctx.virtual_copy(host, key) | {"spec": spec}
    if "status" in host:
        shown["status"] = _status(host, generations.of_shown(virtual, spec))
    return shown


def _status(host: Obj, generation: int) -> Obj:
    """Return the status of the host's Gateway, about a generation of the virtual one."""
    status = _with_own_conditions(host["status"], host, generation)
    if status.get("listeners"):
        listeners = status["listeners"]
        status["listeners"] = [_with_own_conditions(each, host, generation) for each in listeners]
    return status


def _with_own_conditions(part: Obj, host: Obj, generation: int) -> Obj:
    """Return a part of a status, whose conditions have no messages and generations of their own.

    Messages name Secrets and other objects of the host, such as one that isn't found.
    """
    own = {**generations.of_virtual(part, host, generation)}
    if own.get("conditions"):
        own["conditions"] = [{**each, "message": ""} for each in own["conditions"]]
    return own


def _listener(host: Obj) -> Obj:
    """Return a listener as tenants see it: it takes routes of all their namespaces."""
    listener: Obj = {}
    copy_fields(host, listener, _LISTENER)
    listener.setdefault("allowedRoutes", {})["namespaces"] = {"from": "All"}
    mode = dig(host, "tls.mode")
    if mode == "Passthrough":
        listener["tls"] = {"mode": mode}
    elif "tls" in host:
        listener["tls"] = {"mode": "Terminate", "options": _CERTIFICATES}
    return listener
