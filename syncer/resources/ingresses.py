"""Copies of virtual Ingresses on the host; the host's addresses are copied up."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from syncer.api import (
    Config,
    Context,
    Decision,
    Grants,
    HostPattern,
    Index,
    Indexes,
    MetadataRules,
    Mirror,
    Obj,
    Pair,
    Reference,
    References,
    Refused,
    Settings,
    Side,
    Source,
    annotations_of,
    apply,
    dig,
    is_allowed_host,
    key_family,
    key_of,
)
from syncer.resources import classes
from syncer.resources.classes import ClassNames, IngressClassSyncer
from syncer.resources.harmless_annotations import INGRESSES as HARMLESS
from syncer.resources.harmless_annotations import refuse_odd_values, rules_of
from syncer.resources.kinds import CONFIG_MAPS, INGRESS_CLASSES, INGRESSES, SECRETS, SERVICES

_is_dangerous = key_family("Ingress controllers")
#: The domains of annotations of controllers without "ingress" in it.
_CONTROLLERS = frozenset({"haproxy.org", "haproxy.com", "nginx.org", "nginx.com", "konghq.com"})

#: The ending of each annotation in which a controller may look for the class.
_CLASS_ENDING = "ingress.class"
_CLASSES: ClassNames = {
    "spec.ingressClassName": IngressClassSyncer,
    "/metadata/annotations/kubernetes.io~1ingress.class": IngressClassSyncer,
}
#: The index of the host's classes by name, and of the copies by those that they name.
_BY_CLASS = "class"
_NGINX = "/metadata/annotations/nginx.ingress.kubernetes.io~1"
#: Annotations of ingress-nginx that name objects, by the endings of their keys.
#: https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/
_NAMED: References = {
    "auth-secret": Reference(SECRETS, form="key"),
    "auth-tls-secret": Reference(SECRETS, form="key"),
    "proxy-ssl-secret": Reference(SECRETS, form="key"),
    "auth-proxy-set-headers": Reference(CONFIG_MAPS, form="key"),
    "custom-headers": Reference(CONFIG_MAPS, form="key"),
    "fastcgi-params-configmap": Reference(CONFIG_MAPS, form="key"),
    "default-backend": SERVICES,
}
#: Annotations of the AWS Load Balancer Controller in whose JSON there may be names of Services.
_WITH_NAMES = ("alb.ingress.kubernetes.io/actions.", "alb.ingress.kubernetes.io/conditions.")
#: The characters of a URL's path (RFC 3986, 3.3) without the quote and the semicolon, and those of
#: the regular expressions that some controllers take it for.
_STRICT_PATH = re.compile(r"[-A-Za-z0-9/._~%!$&()*+,=:@|^?\[\]]*")


class IngressConfig(Config):
    """The options of Ingresses."""

    enabled: bool = False
    """Whether Ingresses are synced.

    Off by default: a tenant's routes reach the host's ingress controllers. Of the annotations only
    harmless ones do (docs/metadata.md); `metadata.annotations.allow` adds others.
    """

    allowed_classes: tuple[str, ...] = ()
    """The classes that may be named. Empty: all. Otherwise an Ingress without a class is parked,
    too, as the host would give it one, and one that names another class in any annotation that ends
    in `ingress.class`, or with a path that has quotes, spaces, braces, or any of
    `` ` ; \\ < > # ``.
    """

    allowed_hosts: tuple[HostPattern, ...] = ()
    """The hosts that may be served; `*.` at the beginning stands for one or more labels. Empty:
    all. Otherwise an Ingress that serves any host is parked, too, and paths are limited as with
    `allowedClasses`.
    """


class IngressSyncer(Mirror[IngressConfig], Grants[IngressConfig], Indexes):
    """Copies Ingresses; the virtual side owns the routes, the host the addresses.

    The class is one of the host's. The Secrets of the certificates are synced with an Ingress, and
    so are the objects that annotations of ingress-nginx name, where the policy lets these cross.
    """

    name = "ingresses"
    resource = INGRESSES
    has_templates = False
    metadata: ClassVar[MetadataRules] = MetadataRules(annotations=rules_of(HARMLESS))
    down = ("spec",)
    up = ("status",)
    grants = ("spec", *_CLASSES)
    fixed_grants = tuple(_CLASSES)
    references: ClassVar[References] = {
        "spec.defaultBackend.service.name": SERVICES,
        "spec.rules[].http.paths[].backend.service.name": SERVICES,
        "spec.tls[].secretName": SECRETS,
        **{_NGINX + ending: reference for ending, reference in _NAMED.items()},
    }

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the classes of the host that Ingresses may name."""
        return (*self.reads, *classes.sources(settings, IngressClassSyncer))

    def indexes(self) -> Sequence[Index]:
        """Return the indexes by which a change of a class requeues the copies that name it."""
        copies = Source(Side.HOST, INGRESSES, marked=True)
        on = IngressClassSyncer.name
        return [
            Index(copies, _BY_CLASS, _class_names, optional_with=on, copies_only=True),
            Index(
                Source(Side.HOST, INGRESS_CLASSES),
                _BY_CLASS,
                _own_name,
                optional_with=on,
                requeues=_BY_CLASS,
                when="change",
            ),
        ]

    def sync_down(self, ctx: Context[IngressConfig], virtual: Obj) -> Decision:
        """Create the copy, once the class that it names appears."""
        waiting = classes.obstacle(ctx, _CLASSES, virtual)
        if waiting:
            return waiting
        return super().sync_down(ctx, virtual)

    def sync(self, ctx: Context[IngressConfig], pair: Pair) -> Decision:
        """Update the copy, unless it would get a class that doesn't appear.

        The addresses come up all the same.
        """
        if waiting := classes.obstacle(ctx, _CLASSES, pair.virtual, pair.host):
            return apply(virtual=self.reflect(ctx, pair)).then(waiting)
        return super().sync(ctx, pair)

    def still_granted(self, ctx: Context[IngressConfig], host: Obj) -> Obj | None:
        """Return the copy without the rules for hosts that aren't allowed, and without a class that
        isn't allowed or doesn't appear any more; None if nothing is left to serve.
        """
        if not _may_keep_class(ctx, host):
            host = _without_class(host)
        allowed_hosts = ctx.config.allowed_hosts
        if not allowed_hosts:
            return host
        spec = host.get("spec") or {}
        left = _of_allowed_hosts(allowed_hosts, spec)
        if left == spec:
            return host
        if not left.get("rules") and not left.get("defaultBackend"):
            return None
        return {**host, "spec": left}

    def translate(self, ctx: Context[IngressConfig], virtual: Obj) -> Obj:
        """Return the copy; one that would lack its authentication, for example, is refused.

        Raises:
            Refused: An annotation that configures its controller stays behind, has a value of
                another form than harmless ones, or has names of Services within a text; a backend
                is another object than a Service; or the class, a host or a path isn't allowed.
        """
        ctx.refuse_without(virtual, _configures_controller)
        refuse_odd_values(ctx, virtual, HARMLESS)
        for key, text in annotations_of(virtual).items():
            if key.startswith(_WITH_NAMES) and "serviceName" in text:
                why = "it names a Service, but the copy of the Service has another name"
                how = "use a backend of a path instead"
                raise Refused(f"{why}: {how}", path=f"metadata.annotations[{key}]")

        if ctx.config.allowed_classes:
            _check_class(ctx, virtual)
        if ctx.config.allowed_hosts:
            _check_hosts(ctx.config.allowed_hosts, virtual.get("spec") or {})
        if ctx.config.allowed_classes or ctx.config.allowed_hosts:
            _check_paths(virtual.get("spec") or {})
        for path, backend in _backends(virtual.get("spec") or {}):
            if backend.get("resource"):
                why = "its name would refer to an object of the host: name a Service instead"
                raise Refused(why, path=f"{path}.resource")
        return super().translate(ctx, classes.with_default(ctx, _CLASSES, virtual))


def _class_names(ingress: Obj) -> Iterable[str]:
    """Return the classes of the host that a copy names."""
    names = [dig(ingress, path) for path in _CLASSES]
    return [name for name in names if name]


def _own_name(obj: Obj) -> Iterable[str]:
    return [key_of(obj).name]


def _configures_controller(key: str) -> bool:
    """Return True for an annotation of an ingress controller: a copy without it may be open to
    more.
    """
    domain, _, name = key.partition("/")
    if not name:
        return False
    return "ingress" in domain or domain in _CONTROLLERS or _is_dangerous(key)


def _backends(spec: Obj) -> Iterable[tuple[str, Obj]]:
    """Yield the backends with their paths.

    https://kubernetes.io/docs/concepts/services-networking/ingress/#resource-backend
    """
    yield "spec.defaultBackend", spec.get("defaultBackend") or {}
    for number, rule in enumerate(spec.get("rules") or ()):
        for index, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield f"spec.rules[{number}].http.paths[{index}].backend", path.get("backend") or {}


def _check_class(ctx: Context[IngressConfig], virtual: Obj) -> None:
    """Refuse an Ingress whose class isn't allowed, in any annotation that a controller may take it
    from.
    """
    allowed = ctx.config.allowed_classes
    how = f"use {' or '.join(allowed)}"
    for path, name in _named_classes(ctx, virtual).items():
        if name not in allowed:
            raise Refused(f"this class isn't allowed: {how}", path=path, reason="NotAllowed")
    if not _named_classes(ctx, virtual, crossing=True):
        why = f"a class is required: {how}"
        raise Refused(why, path="spec.ingressClassName", reason="NotAllowed")


def _may_keep_class(ctx: Context[IngressConfig], host: Obj) -> bool:
    """Return True if every class that a copy names is allowed, and appears where classes do."""
    allowed = ctx.config.allowed_classes
    crossing = _named_classes(ctx, host, crossing=True)
    if allowed and any(name not in allowed for name in crossing.values()):
        return False
    return not classes.is_withdrawn(ctx, _CLASSES, host)


def _named_classes(
    ctx: Context[IngressConfig], ingress: Obj, *, crossing: bool = False
) -> dict[str, str]:
    """Return the classes that an Ingress names, by their paths; ``crossing`` leaves out those in
    annotations that stay behind.
    """
    named = {}
    name = (ingress.get("spec") or {}).get("ingressClassName")
    if name:
        named["spec.ingressClassName"] = name
    for key, value in annotations_of(ingress).items():
        if not value or not key.endswith(_CLASS_ENDING):
            continue
        if not crossing or ctx.metadata.crosses("annotations", key):
            named[f"metadata.annotations[{key}]"] = value
    return named


def _check_paths(spec: Obj) -> None:
    """Refuse an Ingress with a path that may end the text in which a controller quotes it, and go
    on with a rule for other hosts.
    """
    for number, rule in enumerate(spec.get("rules") or ()):
        for index, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            if _STRICT_PATH.fullmatch(path.get("path") or ""):
                continue
            why = (
                "where hosts or classes are limited, a path has no spaces, quotes, braces,"
                " or any of ` ; \\ < > #"
            )
            where = f"spec.rules[{number}].http.paths[{index}].path"
            raise Refused(
                f"{why}: write these in percent-encoding", path=where, reason="NotAllowed"
            )


def _check_hosts(allowed: tuple[str, ...], spec: Obj) -> None:
    """Refuse an Ingress that serves a host that isn't allowed."""
    for path, host in _hosts(spec):
        if is_allowed_host(host, allowed):
            continue
        why = f"only these hosts are allowed: {', '.join(allowed)}"
        if not host:
            why = f"the Ingress would serve any host; {why}"
        raise Refused(why, path=path, reason="NotAllowed")


def _is_refused(
    check: Callable[[tuple[str, ...], Obj], None], allowed: tuple[str, ...], part: Obj
) -> bool:
    """Return True if a check refuses a part of an Ingress."""
    try:
        check(allowed, part)
    except Refused:
        return True
    return False


def _of_allowed_hosts(allowed: tuple[str, ...], spec: Obj) -> Obj:
    """Return a spec with the rules, certificates and default backend for allowed hosts alone."""
    left: Obj = {}
    for field, value in spec.items():
        if field == "defaultBackend":
            if not _is_refused(_check_hosts, allowed, {field: value}):
                left[field] = value
        elif field in ("rules", "tls"):
            left[field] = [
                each
                for each in value or ()
                if not _is_refused(_check_hosts, allowed, {field: [each]})
            ]
        else:
            left[field] = value
    return left


def _without_class(host: Obj) -> Obj:
    """Return a copy that names no class."""
    spec = {
        field: value
        for field, value in (host.get("spec") or {}).items()
        if field != "ingressClassName"
    }
    annotations = {
        key: value for key, value in annotations_of(host).items() if not key.endswith(_CLASS_ENDING)
    }
    return {**host, "metadata": {**host["metadata"], "annotations": annotations}, "spec": spec}


def _hosts(spec: Obj) -> Iterable[tuple[str, str]]:
    """Yield the hosts with their paths; ``""`` where all are served."""
    if spec.get("defaultBackend"):
        yield "spec.defaultBackend", ""
    for number, rule in enumerate(spec.get("rules") or ()):
        yield f"spec.rules[{number}].host", rule.get("host") or ""
    for number, tls in enumerate(spec.get("tls") or ()):
        for index, host in enumerate(tls.get("hosts") or ()):
            yield f"spec.tls[{number}].hosts[{index}]", host
