"""Routes: on the host, they have Gateways as parents, and the tenant's Services as backends."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from syncer.api import (
    AllowedFields,
    Config,
    Context,
    Decision,
    Grants,
    HostPattern,
    Index,
    MetadataRules,
    Obj,
    Pair,
    Refused,
    Settings,
    Source,
    dig,
    is_allowed_host,
    key_of,
)
from vsyncer_gateway_api import backends, parents
from vsyncer_gateway_api.annotations import FOR_PEOPLE, configures_controller
from vsyncer_gateway_api.grants import GrantedMirror
from vsyncer_gateway_api.kinds import GRPC_ROUTES, HTTP_ROUTES, SERVICES, TLS_ROUTES

#: Where each kind has backends, below ``spec``. (The reference of the Gateway API, v1.)
_HTTP_BACKENDS = (
    "rules[].backendRefs[]",
    *(
        f"{filters}[].{field}.backendRef"
        for filters in ("rules[].filters", "rules[].backendRefs[].filters")
        for field in ("requestMirror", "externalAuth")
    ),
)
_GRPC_BACKENDS = (
    "rules[].backendRefs[]",
    "rules[].filters[].requestMirror.backendRef",
    "rules[].backendRefs[].filters[].requestMirror.backendRef",
)
_TLS_BACKENDS = ("rules[].backendRefs[]",)

#: The fields of filters that name nothing.
_GRPC_FILTERS = (
    *("type", "requestHeaderModifier", "responseHeaderModifier"),
    *("requestMirror.percent", "requestMirror.fraction"),
)
_HTTP_FILTERS = (
    *_GRPC_FILTERS,
    *("requestRedirect", "urlRewrite", "cors"),
    *(f"externalAuth.{field}" for field in ("protocol", "grpc", "http", "forwardBody")),
)

_HINT = "Fields that name other objects than Gateways and Services would name those of the host."


def _allowed(fields: Iterable[str], filters: Iterable[str], at: Iterable[str]) -> AllowedFields:
    """Return the fields of a route that tenants may set.

    Args:
        fields: Those of the spec that aren't about parents, filters or backends.
        filters: Those of a filter.
        at: The paths of backends.
    """
    holders = ("rules[].filters[]", "rules[].backendRefs[].filters[]") if filters else ()
    return AllowedFields(
        *("hostnames", "rules[].name", "rules[].backendRefs[].weight"),
        *fields,
        *(f"parentRefs[].{field}" for field in parents.FIELDS),
        *(f"{holder}.{field}" for holder in holders for field in filters),
        *(f"{path}.{field}" for path in at for field in backends.FIELDS),
    )


class RouteConfig(Config):
    """The options of a kind of routes."""

    allowed_hosts: tuple[HostPattern, ...] = ()
    """The hosts that may be served; `*.` at the beginning stands for one or more labels.

    Empty: all that the listeners of the Gateways take. Otherwise a route without `hostnames`, which
    would serve any host, is parked, too.
    """


class _Route(GrantedMirror[RouteConfig], Grants[RouteConfig]):
    """The base of all routes: the virtual side owns them, the host their status.

    Of annotations, only those for people go to the host: controllers of gateways act on others.
    """

    granted = SERVICES
    down = ("spec",)
    up = ("status",)
    has_templates = False
    translates = ("spec.parentRefs",)
    grants = ("spec.parentRefs", "spec.hostnames")
    metadata: ClassVar[MetadataRules] = MetadataRules(annotations=FOR_PEOPLE)
    #: The fields that tenants may set.
    allowed: ClassVar[AllowedFields]

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the tenant's ReferenceGrants and Gateways."""
        return (*super().reads_with(settings), parents.OWN_GATEWAYS)

    def indexes(self) -> Sequence[Index]:
        """Return the indexes of ReferenceGrants and Gateways, and of the routes that need one."""
        return (*super().indexes(), *parents.indexes(self.resource))

    def sync(self, ctx: Context[RouteConfig], pair: Pair) -> Decision:
        """Update the copy; delete it if a ReferenceGrant of a backend that it has is gone, or if a
        Gateway that it has takes it no more.
        """
        return parents.ended(ctx, pair) or super().sync(ctx, pair)

    def still_granted(self, ctx: Context[RouteConfig], host: Obj) -> Obj | None:
        """Return the copy without parents and hosts that aren't allowed; None if none are left."""
        spec = host.get("spec") or {}
        left = {**spec}
        if spec.get("parentRefs"):
            left["parentRefs"] = parents.still_allowed(ctx.settings, host)
            if not left["parentRefs"]:
                return None
        allowed = ctx.config.allowed_hosts
        if allowed:
            hosts = spec.get("hostnames") or ()
            left["hostnames"] = [each for each in hosts if is_allowed_host(each, allowed)]
            if not left["hostnames"]:
                return None
        return host if left == spec else {**host, "spec": left}

    def translate(self, ctx: Context[RouteConfig], virtual: Obj) -> Obj:
        """Return the copy.

        Raises:
            Refused: The route has a field that tenants may not set, an annotation that configures a
                controller, or a parent, a host or a backend that isn't allowed.
        """
        ctx.refuse_without(virtual, configures_controller)
        self.allowed.refuse_others(virtual.get("spec"), at="spec", hint=_HINT)
        if ctx.config.allowed_hosts:
            _check_hosts(ctx.config.allowed_hosts, virtual)
        host_parents = parents.on_host(ctx, virtual)
        host = super().translate(ctx, virtual)
        if host_parents:
            host["spec"] = {**host["spec"], "parentRefs": host_parents}
        return host

    def reflect(self, ctx: Context[RouteConfig], pair: Pair) -> Obj | None:
        """Return the status of the tenant's own parents."""
        virtual = super().reflect(ctx, pair)
        listed = dig(virtual or {}, "status.parents")
        if virtual is None or not listed:
            return virtual
        namespace = key_of(pair.host).namespace
        shown = parents.reported(ctx.settings, pair.virtual, listed, namespace)
        return {**virtual, "status": {**virtual["status"], "parents": shown}}


def _check_hosts(allowed: Sequence[str], virtual: Obj) -> None:
    """Refuse a route that serves a host that isn't allowed."""
    only = f"only these hosts are allowed: {', '.join(allowed)}"
    hosts = dig(virtual, "spec.hostnames")
    if not isinstance(hosts, list) or not hosts:
        why = f"the route would serve any host; {only}"
        raise Refused(why, path="spec.hostnames", reason="NotAllowed")
    for index, host in enumerate(hosts):
        if not isinstance(host, str) or not is_allowed_host(host, allowed):
            raise Refused(only, path=f"spec.hostnames[{index}]", reason="NotAllowed")


class HTTPRouteSyncer(_Route):
    """Routes of HTTP requests."""

    name = "httproutes"
    section = "toHost.httpRoutes"
    resource = HTTP_ROUTES
    references = backends.named_at(_HTTP_BACKENDS)
    allowed = _allowed(
        (
            *("rules[].matches", "rules[].timeouts", "rules[].retry"),
            "rules[].sessionPersistence",
        ),
        _HTTP_FILTERS,
        _HTTP_BACKENDS,
    )


class GRPCRouteSyncer(_Route):
    """Routes of gRPC calls."""

    name = "grpcroutes"
    section = "toHost.grpcRoutes"
    resource = GRPC_ROUTES
    references = backends.named_at(_GRPC_BACKENDS)
    allowed = _allowed(
        ("rules[].matches", "rules[].sessionPersistence"), _GRPC_FILTERS, _GRPC_BACKENDS
    )


class TLSRouteSyncer(_Route):
    """Routes of TLS connections, by the name that the client asks for."""

    name = "tlsroutes"
    section = "toHost.tlsRoutes"
    resource = TLS_ROUTES
    references = backends.named_at(_TLS_BACKENDS)
    allowed = _allowed((), (), _TLS_BACKENDS)
