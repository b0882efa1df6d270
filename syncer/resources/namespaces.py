"""Host namespaces for virtual ones, if the name translator gives each its own."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from syncer.api import (
    Config,
    Context,
    Decision,
    Grants,
    Key,
    KeyRules,
    MetadataRules,
    Mirror,
    Obj,
    ObjectRef,
    Pair,
    Refused,
    Resource,
    Right,
    Settings,
    Side,
    Source,
    annotations_of,
    apply,
    key_of,
    labels_of,
    reasons,
    skip,
    wait,
)
from syncer.resources import shares
from syncer.resources.kinds import LIMIT_RANGES, NAMESPACES, PODS, RESOURCE_QUOTAS
from syncer.resources.namespace_values import (
    ENFORCE,
    Annotations,
    LabelsOption,
    LimitSpec,
    QuotaSpec,
)
from syncer.resources.pods.security import SecurityLevel
from syncer.translate.alike import covers

#: Namespaces that every cluster has for itself.
BUILT_IN = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
#: The kinds of the objects that the operator gives each host namespace, and their name there.
GIVEN = (RESOURCE_QUOTAS, LIMIT_RANGES)
NAME = "vsyncer"
_LABELS = ("metadata", "labels")


def is_built_in(name: str) -> bool:
    """Return True for a namespace that every cluster may have for itself.

    Kubernetes reserves all names that begin with ``kube-`` (kubernetes.io, "Namespaces").
    """
    return name in BUILT_IN or name.startswith("kube-")


class NamespaceConfig(Config):
    """The options of Namespaces."""

    pod_security: SecurityLevel | Literal[""] = "baseline"
    """The Pod Security level that the host enforces in each host namespace
    (`pod-security.kubernetes.io/enforce`). Empty: no such label is set, so the host's default
    holds.
    """

    labels: LabelsOption = Field(default={})
    """Labels that each host namespace gets; a tenant's can't override them. `podSecurity` sets that
    of its level.
    """

    annotations: Annotations = Field(default={})
    """Annotations that each host namespace gets; a tenant's can't override them."""

    quota: QuotaSpec = Field(default={})
    """The `spec` of a ResourceQuota `vsyncer` in each host namespace, as in a manifest. Empty: none
    is made, and one that is there is left alone.
    """

    limits: LimitSpec = Field(default={})
    """The `spec` of a LimitRange `vsyncer` in each host namespace, as in a manifest. Empty: none is
    made, and one that is there is left alone.
    """

    most: int = Field(default=1000, ge=0)
    """The most host namespaces of the virtual cluster; further Namespaces are parked. Each has the
    whole `quota`.
    """

    @property
    def given(self) -> Mapping[Resource, Mapping[str, Any]]:
        """The objects that each host namespace gets: their specs by resource."""
        specs = zip(GIVEN, (self.quota, self.limits), strict=True)
        return {resource: spec for resource, spec in specs if spec}

    @property
    def overlay(self) -> Mapping[str, str]:
        """The labels that each host namespace gets, with that of the Pod Security level."""
        if self.pod_security:
            return {ENFORCE: self.pod_security, **self.labels}
        return self.labels


class NamespaceSyncer(Mirror[NamespaceConfig], Grants[NamespaceConfig]):
    """Creates the host namespaces that copies are put in.

    Active only if the translator puts the copies of a virtual namespace into the host namespace
    that is its own copy (as ``per-namespace`` does). No label and no annotation of the tenant's is
    copied unless the configuration names it: on a Namespace they are settings of the control plane,
    and other namespaces' policies select by them.
    """

    name = "namespaces"
    counts_copies = True
    resource = NAMESPACES
    has_templates = False
    metadata = MetadataRules(labels=KeyRules(deny=("*",)), annotations=KeyRules(deny=("*",)))
    grants = ("metadata.labels", "metadata.annotations")

    def applies_to(self, settings: Settings) -> bool:
        """Return False if the translator puts all copies into existing host namespaces."""
        return settings.names.host_namespaces() is None

    def still_granted(self, ctx: Context[NamespaceConfig], host: Obj) -> Obj:
        """Return the host namespace with today's labels and annotations of the operator's."""
        return _overlaid(ctx.config, host)

    def beside(self, ctx: Context[NamespaceConfig], host: Obj) -> Decision:
        """Return the writes of the objects that the operator gives each host namespace."""
        virtual_key = ctx.marks.virtual_key(host)
        decision = Decision()
        if virtual_key is None or _not_needed(ctx, virtual_key.name):
            return decision
        for each in _given_to(key_of(host).name, ctx.config):
            decision = decision.then(
                apply(host=self._given(ctx, host, each), resource=each.resource)
            )
        return decision

    def translate(self, ctx: Context[NamespaceConfig], virtual: Obj) -> Obj:
        """Return the host namespace; the operator's labels and annotations prevail."""
        return _overlaid(ctx.config, super().translate(ctx, virtual))

    def sync_down(self, ctx: Context[NamespaceConfig], virtual: Obj) -> Decision:
        """Create the host namespace if copies need it.

        Raises:
            Refused: There are too many.
        """
        if decision := _not_needed(ctx, key_of(virtual).name):
            return decision
        most = ctx.config.most
        if (
            len(ctx.reader.keys(Side.HOST, NAMESPACES)) >= most
            and len(shares.copied(ctx, NAMESPACES)) >= most
        ):
            why = f"this virtual cluster has {most} namespaces where Pods run already"
            raise Refused(f"{why}: delete others", reason="TooManyNamespaces")
        decision = super().sync_down(ctx, virtual)
        # What belongs into it follows once it is there.
        if ctx.config.given:
            return decision.look_again(0)
        return decision

    def sync(self, ctx: Context[NamespaceConfig], pair: Pair) -> Decision:
        """Update the labels, and the objects that the operator gives each host namespace."""
        if decision := _not_needed(ctx, key_of(pair.virtual).name):
            return decision
        decision = super().sync(ctx, pair).then(self.beside(ctx, pair.host))
        return replace(decision, on=_given_to(key_of(pair.host).name, ctx.config))

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the objects that the operator gives each host namespace."""
        return home_sources(settings)

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Return the rights to write them, and to delete them in an uninstall."""
        config = settings.section(self.name, NamespaceConfig)
        if config is None:
            return ()
        verbs = ("create", "patch", "delete")
        return [Right(Side.HOST, resource, verbs) for resource in config.given]

    def _given(self, ctx: Context[NamespaceConfig], host: Obj, each: ObjectRef) -> Obj:
        """Return an object of the operator's in a host namespace, as of the original namespace."""
        key = each.key
        marks = ctx.marks
        annotations = annotations_of(host)
        name = annotations[marks.name]
        original = {"metadata": {"name": name, "uid": annotations.get(marks.uid, "")}}
        return {
            "apiVersion": each.resource.api_version,
            "kind": each.resource.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": marks.labels(ctx.identity, Key("", name)),
                "annotations": marks.annotations(self.resource, original, key),
            },
            "spec": ctx.config.given[each.resource],
        }


def _overlaid(config: NamespaceConfig, host: Obj) -> Obj:
    """Return a host namespace with the operator's labels and annotations."""
    labels = {**labels_of(host), **config.overlay}
    annotations = {**annotations_of(host), **config.annotations}
    return {**host, "metadata": {**host["metadata"], "labels": labels, "annotations": annotations}}


def _not_needed(ctx: Context, name: str) -> Decision | None:
    """Return a skip if no copies go into a host namespace of this virtual one; None otherwise."""
    host_name = ctx.names.to_host(NAMESPACES, Key("", name)).name
    if ctx.names.to_host(PODS, Key(name, "any")).namespace != host_name:
        return skip(reasons.NO_HOST_NAMESPACES())
    if host_name in ctx.settings.namespaces:
        return skip(reasons.HOST_NAMESPACE_LISTED())
    if is_built_in(name) and host_name == name:
        return skip(reasons.BUILT_IN_NAMESPACE())
    return None


def home_sources(settings: Settings) -> Iterable[Source]:
    """Return the host objects that :func:`unready_home` reads."""
    config = settings.section(NamespaceSyncer.name, NamespaceConfig)
    if config is None:
        return ()
    resources = (NAMESPACES, *config.given)
    return [Source(Side.HOST, resource, marked=True) for resource in resources]


def unready_home(ctx: Context, namespace: str) -> Decision | None:
    """Return a wait while the host namespace of a virtual one isn't as configured; None otherwise.

    It must have today's labels, and a quota and limits that the host enforces.

    A host namespace that the daemon didn't make is the operator's own matter, and so are labels
    that a patch of theirs writes.
    """
    config = ctx.settings.section(NamespaceSyncer.name, NamespaceConfig)
    if config is None:
        return None
    host_key = ctx.names.to_host(NAMESPACES, Key("", namespace))
    home = ctx.host(NAMESPACES, host_key)
    if home is None:  # not there yet, or not made by the daemon: only marked ones are watched
        return None

    if not _has_labels(config, home):
        reference = ObjectRef(Side.HOST, NAMESPACES, host_key)
        return wait(reasons.HOME_UNLABELLED(namespace), on=(reference,))
    for reference in _given_to(host_key.name, config):
        kind = reference.resource.kind
        given = ctx.host(reference.resource, reference.key)
        if given is None:
            return wait(reasons.HOME_LACKS(kind, namespace), on=(reference,))
        if not covers(config.given[reference.resource], given.get("spec")):
            return wait(reasons.HOME_OUTDATED(kind, namespace), on=(reference,))
        if not _is_enforced(given):
            return wait(reasons.QUOTA_NOT_ENFORCED(kind), on=(reference,))
    return None


def _has_labels(config: NamespaceConfig, home: Obj) -> bool:
    """Return True if a host namespace has the operator's labels."""
    patched = {patch.steps[: len(_LABELS) + 1] for patch in config.patches.down}
    labels = labels_of(home)
    for key, value in config.overlay.items():
        is_patched = any(steps == (*_LABELS, key)[: len(steps)] for steps in patched)
        if key not in labels or (labels[key] != value and not is_patched):
            return False
    return True


def _is_enforced(given: Obj) -> bool:
    """Return True if the host's admission knows the object as it is.

    Admission goes by ``status.hard`` of a ResourceQuota, which a controller fills.
    """
    asked = (given.get("spec") or {}).get("hard") or {}
    known = (given.get("status") or {}).get("hard") or {}
    return covers(asked, known)


def _given_to(home: str, config: NamespaceConfig) -> tuple[ObjectRef, ...]:
    """Return the objects that the operator gives a host namespace."""
    return tuple(ObjectRef(Side.HOST, resource, Key(home, NAME)) for resource in config.given)
