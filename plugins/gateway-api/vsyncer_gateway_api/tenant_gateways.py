"""Gateways of the tenant's own, with the listeners that the operator lets them have."""

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from syncer.api import (
    AllowedFields,
    Config,
    Context,
    Grants,
    HostPattern,
    Json,
    Key,
    KeyRules,
    MetadataRules,
    Obj,
    Reference,
    References,
    Refused,
    Settings,
    dig,
    is_allowed_host,
    key_of,
)
from vsyncer_gateway_api.annotations import FOR_PEOPLE, configures_controller
from vsyncer_gateway_api.grants import GrantedMirror
from vsyncer_gateway_api.kinds import GATEWAYS, GROUP, ROUTES, SECRETS, TLS_ROUTES

#: Stands for all hosts, also for a listener without one.
ANY_HOST = "*"
#: The most listeners of a Gateway that its CRD allows.
MOST_LISTENERS = 64

#: The reason why a Gateway has no copy whose name its own can't be read from: whether a route may
#: have it as a parent couldn't be judged from the route's copy.
UNREADABLE = (
    "the name of the Gateway on the host would be too long, or couldn't be told from other names:"
    " give it a shorter one without -x-"
)

_LISTENERS = "spec.listeners"
_FROM = "allowedRoutes.namespaces.from"
_ALLOWED = AllowedFields(
    "gatewayClassName",
    *(f"listeners[].{field}" for field in ("name", "hostname", "port", "protocol", "tls.mode")),
    *(
        f"listeners[].tls.certificateRefs[].{field}"
        for field in ("group", "kind", "namespace", "name")
    ),
    *(f"listeners[].allowedRoutes.kinds[].{field}" for field in ("group", "kind")),
    f"listeners[].{_FROM}",
)
_HINT = "What a Gateway has besides listeners is chosen on the host."


class TenantGatewayConfig(Config):
    """The Gateways that a tenant may create."""

    enabled: bool = False
    """Whether Gateways of the tenant's own go to the host.

    Off by default: each takes an address, and mostly a load balancer, of the host. A ResourceQuota
    on `count/gateways.gateway.networking.k8s.io` in the host namespace bounds how many.
    """

    classes: tuple[str, ...] = ()
    """The GatewayClasses of the host that they may have. Empty: none."""

    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    """The ports that their listeners may have."""

    protocols: tuple[Literal["HTTP", "HTTPS", "TLS"], ...] = ("HTTP", "HTTPS")
    """The protocols that their listeners may have. Routes of other protocols aren't synced."""

    max_listeners: int = Field(default=8, ge=1, le=MOST_LISTENERS)
    """The most listeners of a Gateway."""

    allowed_hosts: tuple[Literal["*"] | HostPattern, ...] = ()
    """The hosts that their listeners may have; `*.` at the beginning stands for one or more labels.
    `*` stands for all, and lets a listener have none. Empty: none.
    """


def options_of(settings: Settings) -> TenantGatewayConfig | None:
    """Return the options; None while no Gateways of the tenant's own are synced."""
    return settings.section(TenantGatewaySyncer.name, TenantGatewayConfig)


def host_key_of(settings: Settings, key: Key) -> Key | None:
    """Return the host key of a Gateway of the tenant's own.

    None if these aren't synced, or if its own name couldn't be read from that on the host.

    Raises:
        Refused: The key has no valid translation.
    """
    if options_of(settings) is None:
        return None
    host = settings.names.to_host(GATEWAYS, key)
    return host if _original(settings, host) == key else None


def is_own(settings: Settings, host: Key) -> bool:
    """Return True if a host key is that of a Gateway of the tenant's own."""
    return options_of(settings) is not None and _original(settings, host) is not None


def _original(settings: Settings, host: Key) -> Key | None:
    """Return the virtual key that a host key is the translation of.

    None if it doesn't follow from the name, or is the same: then the host's own is meant as well.
    """
    virtual = settings.names.to_virtual(GATEWAYS, host)
    return None if virtual == host else virtual


class Listeners(NamedTuple):
    """What a reference to a Gateway names: all of its listeners, or some."""

    gateway: Key
    section: Json
    port: Json


def takes_all_namespaces(gateway: Obj, wanted: Listeners) -> bool:
    """Return True if all listeners that a reference names take routes of all namespaces.

    Only as many are looked at as a copy may have; a Gateway with more takes none.
    """
    listed = dig(gateway, _LISTENERS)
    if not isinstance(listed, list) or len(listed) > MOST_LISTENERS:
        return False
    named = []
    for each in listed:
        is_named = (
            isinstance(each, dict)
            and wanted.section in (None, "", each.get("name"))
            and wanted.port in (None, each.get("port"))
        )
        if is_named:
            named.append(each)
    return bool(named) and all(_source(each) == "All" for each in named)


class TenantGatewaySyncer(GrantedMirror[TenantGatewayConfig], Grants[TenantGatewayConfig]):
    """The tenant owns the listeners, the host the addresses.

    Of annotations only those for people go to the host, and of labels only those that name an
    application: controllers of gateways put them on what they create.
    """

    name = "tenant-gateways"
    section = "toHost.tenantGateways"
    resource = GATEWAYS
    granted = SECRETS
    down = ("spec",)
    up = ("status",)
    has_templates = False
    translates = (_LISTENERS,)
    grants = ("spec.gatewayClassName", _LISTENERS)
    references: ClassVar[References] = {
        f"{_LISTENERS}[].tls.certificateRefs[].name": Reference(
            SECRETS, namespace="namespace", kind="kind", group="group"
        )
    }
    metadata: ClassVar[MetadataRules] = MetadataRules(
        labels=KeyRules(
            allow=(
                "app.kubernetes.io/component",
                "app.kubernetes.io/name",
                "app.kubernetes.io/part-of",
                "app.kubernetes.io/version",
            )
        ),
        annotations=FOR_PEOPLE,
    )

    def still_granted(self, ctx: Context[TenantGatewayConfig], host: Obj) -> Obj | None:
        """Return the copy without listeners that aren't allowed; None if none are left, or if its
        class isn't allowed.
        """
        spec = host.get("spec") or {}
        if spec.get("gatewayClassName") not in ctx.config.classes:
            return None
        listed = spec.get("listeners") or ()
        allowed = [each for each in listed if _fault(ctx.config, each) is None]
        left = allowed[: ctx.config.max_listeners]
        if not left:
            return None
        return host if left == spec["listeners"] else {**host, "spec": {**spec, "listeners": left}}

    def translate(self, ctx: Context[TenantGatewayConfig], virtual: Obj) -> Obj:
        """Return the copy.

        Raises:
            Refused: The Gateway has a field that tenants may not set, an annotation that configures
                a controller, a class or a listener that isn't allowed, a certificate of another
                namespace without a grant, or a name that couldn't be read from that on the host.
        """
        ctx.refuse_without(virtual, configures_controller)
        _ALLOWED.refuse_others(virtual.get("spec"), at="spec", hint=_HINT)
        if host_key_of(ctx.settings, key_of(virtual)) is None:
            raise Refused(UNREADABLE, path="metadata.name")
        _check_class(ctx.config, virtual)
        _check_listeners(ctx.config, virtual)
        host = super().translate(ctx, virtual)
        listeners = [_narrowed(ctx, each) for each in host["spec"]["listeners"]]
        return {**host, "spec": {**host["spec"], "listeners": listeners}}


def _check_class(config: TenantGatewayConfig, virtual: Obj) -> None:
    """Refuse a Gateway of a class that isn't allowed."""
    if dig(virtual, "spec.gatewayClassName") not in config.classes:
        why = "this class isn't allowed for Gateways of the virtual cluster's own"
        how = "ask the operator which are"
        if config.classes:
            how = f"use {' or '.join(config.classes)}"
        raise Refused(f"{why}: {how}", path="spec.gatewayClassName", reason="NotAllowed")


def _check_listeners(config: TenantGatewayConfig, virtual: Obj) -> None:
    """Refuse a Gateway with a listener that isn't allowed, or with too many."""
    listed = dig(virtual, _LISTENERS)
    if not isinstance(listed, list) or not listed:
        raise Refused("a Gateway has one listener at least: add one", path=_LISTENERS)
    if len(listed) > config.max_listeners:
        why = f"at most {config.max_listeners} listeners are allowed"
        raise Refused(f"{why}: use several Gateways", path=_LISTENERS, reason="NotAllowed")
    for index, listener in enumerate(listed):
        fault = _fault(config, listener) or _fault_of_routes(listener)
        if fault is not None:
            path = f"{_LISTENERS}[{index}]"
            if fault.field:
                path = f"{path}.{fault.field}"
            raise Refused(fault.why, path=path, reason="NotAllowed")


class _Fault(NamedTuple):
    """Why a listener isn't allowed."""

    field: str
    why: str


def _fault(config: TenantGatewayConfig, listener: Json) -> _Fault | None:
    """Return the first fault of a listener, of any shape; None if the operator allows all of it."""
    if not isinstance(listener, dict):
        return _Fault("", "is no listener")
    port = listener.get("port")
    if isinstance(port, bool) or port not in config.ports:
        return _Fault("port", f"only these ports are allowed: {_listed(config.ports)}")
    if listener.get("protocol") not in config.protocols:
        return _Fault("protocol", f"only these protocols are allowed: {_listed(config.protocols)}")
    host = listener.get("hostname") or ""
    if not _is_allowed(host, config.allowed_hosts):
        only = f"only these hosts are allowed: {_listed(config.allowed_hosts)}"
        if not host:
            only = f"the listener would serve any host; {only}"
        return _Fault("hostname", only)
    return None


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _is_allowed(host: Json, allowed: Sequence[str]) -> bool:
    """Return True if a listener may have a host; ``""`` stands for all hosts."""
    if not isinstance(host, str):
        return False
    if ANY_HOST in allowed:
        return not host or is_allowed_host(host, [host])
    return is_allowed_host(host, allowed)


def _fault_of_routes(listener: Obj) -> _Fault | None:
    """Return the first fault in the routes that a listener takes; None if a copy can take them."""
    if _source(listener) not in ("Same", "All"):
        why = "copies of routes have other namespaces on the host, with other labels"
        return _Fault(_FROM, f"{why}: use Same or All")
    for index, kind in enumerate(_kinds(listener)):
        of = kind.get("group")
        if (GROUP if of is None else of) != GROUP or kind.get("kind") not in _KINDS:
            why = f"routes of this kind aren't synced: use {', '.join(_KINDS)}"
            return _Fault(f"allowedRoutes.kinds[{index}]", why)
    return None


_KINDS = tuple(each.kind for each in ROUTES)


def _source(listener: Obj) -> Json:
    """Return from which namespaces a listener takes routes."""
    return dig(listener, _FROM) or "Same"


def _kinds(listener: Obj) -> Iterator[Obj]:
    """Yield the kinds of routes that a listener names, which may be of any shape."""
    listed = dig(listener, "allowedRoutes.kinds")
    if not isinstance(listed, list):
        return
    for each in listed:
        yield each if isinstance(each, dict) else {}


def _narrowed(ctx: Context[TenantGatewayConfig], listener: Obj) -> Obj:
    """Return a listener of a copy, which takes routes from namespaces of this virtual cluster's
    copies alone.

    Where several virtual namespaces are one on the host, the routes' syncers judge which of them
    may have the Gateway as a parent.
    """
    allowed: Obj = {"namespaces": _namespaces(ctx, _source(listener))}
    kinds = list(_kinds(listener))
    if not kinds and listener["protocol"] == "TLS":
        # Otherwise implementations would add TCPRoutes, which nobody has judged.
        kinds = [{"group": GROUP, "kind": TLS_ROUTES.kind}]
    if kinds:
        allowed["kinds"] = kinds
    return {**listener, "allowedRoutes": allowed}


def _namespaces(ctx: Context[TenantGatewayConfig], source: Json) -> Obj:
    """Return the namespaces of the host from which a listener takes routes."""
    known = ctx.settings.names.host_namespaces()
    if source == "Same" or (known is not None and len(known) == 1):
        return {"from": "Same"}
    selector: Obj = {"matchLabels": {ctx.marks.cluster: ctx.identity}}
    if known is not None:
        name = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*known]}
        selector = {"matchExpressions": [name]}
    return {"from": "Selector", "selector": selector}
