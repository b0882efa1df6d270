"""The minimal rights of the daemon, computed from the roles, sources and rights of its syncers."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from syncer.api import (
    Config,
    Index,
    Indexes,
    Obj,
    Refers,
    Resource,
    Right,
    Settings,
    Side,
    Source,
    Syncer,
    Watch,
    Watches,
)
from syncer.directions import by_path, direction_of
from syncer.resources.kinds import (
    ACCESS_REVIEWS,
    CERTIFICATE_REQUESTS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    ENFORCED_ON_HOST,
    EVENTS,
    NAMESPACES,
    NODES,
    POD_METRICS,
    PODS,
    SECRETS,
    SIGNERS,
    TOKEN_REVIEWS,
)
from syncer.resources.metrics_api import OBJECTS as METRICS_OBJECTS
from syncer.translate.authority import authority_of

READ = ("get", "list", "watch")
LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases")
#: Rights of the daemon itself, whatever its syncers: it reports refusals to tenants as events.
EVENT_RIGHTS = (Right(Side.VIRTUAL, EVENTS, ("create", "patch")),)
#: It records its identity in the virtual cluster, and compares the uid of a namespace on both
#: sides.
CLAIM_RIGHTS = (
    Right(Side.VIRTUAL, CONFIG_MAPS, ("get", "create")),
    Right(Side.VIRTUAL, NAMESPACES, ("get",)),
    Right(Side.HOST, NAMESPACES, ("get",)),
)
#: It reads from these which parts of the virtual cluster are paused. Without these rights, only
#: marks on the objects themselves pause them.
PAUSE_RIGHTS = (Right(Side.VIRTUAL, CONFIG_MAPS, READ), Right(Side.VIRTUAL, NAMESPACES, READ))
#: It checks whether a quota has room again. Without this right, it only retries slowly.
QUOTAS = Resource("v1", "ResourceQuota", "resourcequotas")
QUOTA_RIGHTS = (Right(Side.HOST, QUOTAS, ("list",)),)
#: As the kubelet of the virtual Nodes, it reaches Pods of the tenant on the host, but no node of
#: the host. On the virtual side it asks who its clients are and what they may do, requests its
#: certificate, and writes its address.
KUBELET_RIGHTS = (
    Right(Side.HOST, PODS, ("get",)),
    Right(Side.HOST, PODS, ("get",), "log"),
    Right(Side.HOST, PODS, ("get", "create"), "exec"),
    Right(Side.HOST, PODS, ("get", "create"), "attach"),
    Right(Side.HOST, PODS, ("get", "create"), "portforward"),
    Right(Side.VIRTUAL, PODS, ("get",)),
    Right(Side.VIRTUAL, NODES, ("patch",), "status"),
    Right(Side.VIRTUAL, TOKEN_REVIEWS, ("create",)),
    Right(Side.VIRTUAL, ACCESS_REVIEWS, ("create",)),
    Right(Side.VIRTUAL, CERTIFICATE_REQUESTS, ("get", "create", "delete")),
    Right(Side.VIRTUAL, CERTIFICATE_REQUESTS, ("update",), "approval"),
    Right(Side.VIRTUAL, SIGNERS, ("approve",), names=("kubernetes.io/kubelet-serving",)),
)
#: It asks what Pods of the tenant use, and leads the virtual API server to itself for
#: `metrics.k8s.io`. Its three objects have fixed names, but a right to create can't be narrowed to
#: names.
METRICS_RIGHTS = (
    Right(Side.HOST, POD_METRICS, ("list",)),
    *(Right(Side.VIRTUAL, resource, ("create",)) for resource, _ in METRICS_OBJECTS),
    *(
        Right(Side.VIRTUAL, resource, ("get", "patch", "delete"), names=(key.name,))
        for resource, key in METRICS_OBJECTS
    ),
)
#: It notifies tenants of objects that only the host could enforce and that no syncer copies, unless
#: these rights are missing.
NOTICE_RIGHTS = tuple(Right(Side.VIRTUAL, each, ("list", "watch")) for each in ENFORCED_ON_HOST)
#: It asks the host's kubelets for the metrics of containers.
CADVISOR_RIGHTS = (Right(Side.HOST, NODES, ("get",)), Right(Side.HOST, NODES, ("get",), "metrics"))
LEASE_RIGHTS = (Right(Side.HOST, LEASES, ("create",)), Right(Side.HOST, LEASES, ("get", "patch")))
#: Replicas that share a fleet have Leases with names of their own, list them, and delete those of
#: dead members.
SHARED_LEASE_RIGHTS = (Right(Side.HOST, LEASES, ("create", "delete", "get", "list", "patch")),)

_API = "rbac.authorization.k8s.io"
#: The verbs, in the customary order.
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a binding: a ServiceAccount, or a user (then ``namespace`` is empty)."""

    name: str
    namespace: str = ""

    @property
    def user(self) -> str:
        """The name of the user in requests."""
        if self.namespace:
            return f"system:serviceaccount:{self.namespace}:{self.name}"
        return self.name

    def manifest(self) -> Obj:
        """Return the entry under ``subjects``."""
        if self.namespace:
            return {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        return {"kind": "User", "name": self.name, "apiGroup": _API}


def sources(
    syncer: Syncer, enabled: Collection[str] | None = None, settings: Settings | None = None
) -> frozenset[Source]:
    """Return all sources to watch for a syncer: its resource on both sides, and what it, its
    indexes and watches read.

    Args:
        syncer: The syncer.
        enabled: The names of all enabled syncers; indexes and watches that need another one are
            left out. None for all.
        settings: The settings of the virtual cluster; None: sources of host objects are not
            narrowed.
    """
    direction = direction_of(syncer)
    found: set[Source] = {*direction.sources(settings)}
    if settings is None:
        found.update(syncer.reads)
    else:
        found.update(syncer.reads_with(settings))
    if isinstance(syncer, Refers):
        found.update(syncer.references_down.sources)
        found.update(_copies_that_translate(syncer, settings))

    extras: list[Index | Watch] = []
    if isinstance(syncer, Indexes):
        extras += syncer.indexes() if settings is None else syncer.indexes_with(settings)
    if isinstance(syncer, Watches):
        extras += syncer.watches()
    found.update(extra.source for extra in extras if _applies(extra.optional_with, enabled))

    read = [source for source in found if _applies(source.optional_with, enabled)]
    if settings is None:
        return frozenset(read)
    narrowed = (direction.narrowed(source, settings) for source in read)
    return frozenset(source for source in narrowed if source is not None)


def _applies(optional_with: str, enabled: Collection[str] | None) -> bool:
    """Return True if something that may need another syncer applies with the enabled ones."""
    return enabled is None or not optional_with or optional_with in enabled


def _copies_that_translate(syncer: Syncer, settings: Settings | None) -> Iterable[Source]:
    """Return the copies with marks that translate names on the way up.

    There are none unless fields with names are shared.
    """
    config = settings.sections.get(syncer.name) if settings else None
    return authority_of(syncer, config or Config()).references.host_copies


def rights(
    syncer: Syncer,
    enabled: Collection[str] | None = None,
    settings: Settings | None = None,
) -> Iterator[Right]:
    """Yield the rights that a syncer needs.

    They follow from its sources, its roles and its options, besides those that it declares. The
    arguments are those of :func:`sources`.
    """
    for source in sources(syncer, enabled, settings):
        yield from _to_read(source)
    yield from direction_of(syncer).rights(settings)
    if settings is None:
        yield from syncer.rights
        return

    if syncer.name in settings.sections:
        yield from _by_section(syncer, settings.sections[syncer.name])
    yield from syncer.rights_with(settings)


def _to_read(source: Source) -> Iterator[Right]:
    """Yield the rights to read a source: for its namespaces, and for its names in others.

    RBAC narrows the right to list and watch to a name if the request selects that name.
    """
    if source.namespaces or not source.names:
        yield Right(source.side, source.resource, READ, namespaces=source.namespaces)
    names: dict[str, list[str]] = defaultdict(list)
    for part in source.parts:
        if part.name:
            names[part.namespace].append(part.name)
    for namespace, found in names.items():
        alone = tuple(sorted(found))
        yield Right(source.side, source.resource, READ, namespaces=(namespace,), names=alone)


def _by_section(syncer: Syncer, config: Config) -> Iterator[Right]:
    """Yield the rights that follow from a kind's options: patches, ``authority`` and
    ``onHostDeletion``.
    """
    if not direction_of(syncer).syncs:
        return
    yield from by_path(Side.VIRTUAL, syncer.resource, (patch.steps for patch in config.patches.up))
    if authority_of(syncer, config).owners:
        yield Right(Side.VIRTUAL, syncer.resource, ("patch",))
    if config.on_host_deletion == "recreate" or not direction_of(syncer).remakes:
        return
    yield Right(Side.VIRTUAL, syncer.resource, ("patch",))
    if config.on_host_deletion == "propagate":
        yield Right(Side.VIRTUAL, syncer.resource, ("delete",))
        if syncer.host_resource.group:
            yield Right(Side.HOST, CUSTOM_RESOURCE_DEFINITIONS, ("get",))


def needed(
    syncers: Iterable[Syncer],
    *,
    settings: Settings | None = None,
    leader_election: bool = False,
    optional: bool = True,
) -> tuple[Right, ...]:
    """Return the rights that these syncers need, with each resource and subresource once, the verbs
    in order.

    With ``leader_election``, include the rights on the Lease. Without ``optional``, leave out those
    without which the daemon does all but a convenience.
    """
    own = [*EVENT_RIGHTS, *CLAIM_RIGHTS]
    if optional:
        own += [*PAUSE_RIGHTS, *QUOTA_RIGHTS, *NOTICE_RIGHTS]
    if leader_election:
        own += LEASE_RIGHTS
    if settings is not None and settings.kubelet:
        own += KUBELET_RIGHTS
        if settings.metrics:
            own += METRICS_RIGHTS
        if settings.cadvisor:
            own += CADVISOR_RIGHTS

    given = tuple(syncers)
    enabled: Collection[str] = {syncer.name for syncer in given}
    if settings is not None:
        enabled = settings.sections
    for syncer in given:
        own += rights(syncer, enabled, settings)
    return _joined(own)


def _joined(granted: Iterable[Right]) -> tuple[Right, ...]:
    """Return the rights in order, those that differ in their verbs alone as one."""
    verbs: dict[Right, set[str]] = defaultdict(set)
    for right in granted:
        verbs[replace(right, verbs=())].update(right.verbs)

    joined = [replace(right, verbs=tuple(sorted(verbs[right], key=_rank))) for right in verbs]
    return tuple(sorted(joined, key=_order))


def _order(right: Right) -> tuple[Any, ...]:
    """Return the sort key of a right."""
    resource = right.resource
    scope = (right.subresource, right.namespaces, right.names)
    return (right.side, resource.group, resource.plural, *scope)


def allows(
    granted: Iterable[Right],
    side: Side,
    resource: Resource,
    verb: str,
    subresource: str = "",
) -> bool:
    """Return True if the rights allow a request."""
    wanted = (side, resource, subresource)
    candidates = [right for right in granted if verb in right.verbs]
    return any((each.side, each.resource, each.subresource) == wanted for each in candidates)


@dataclass(frozen=True, slots=True)
class Share:
    """The rights that a daemon needs for a virtual cluster."""

    #: The name of the virtual cluster.
    cluster: str
    #: The rights, as :func:`needed` returns them.
    granted: Sequence[Right]
    #: The host namespaces that copies can be in; None if they are not known beforehand.
    host_namespaces: Sequence[str] | None

    def by_namespace(self) -> Mapping[str, Sequence[Right]]:
        """Return the rights on the host, except for the Lease, by namespace.

        ``""`` is the whole cluster.
        """
        found: dict[str, list[Right]] = defaultdict(list)
        for right in self.granted:
            if right.side is Side.HOST and right.resource != LEASES:
                for namespace in _namespaces_of(right, self.host_namespaces):
                    found[namespace].append(right)
        return found

    def manifests(self, subjects: Mapping[Side, Subject] | None = None) -> dict[Side, list[Obj]]:
        """Return the roles of this virtual cluster by side, with a binding if there is a subject.

        On the host, a Role in each namespace holds the rights for namespaced resources. On the
        virtual side it is a ClusterRole, since a tenant may use any namespace.
        """
        bound = subjects or {}
        name = f"vsyncer-{self.cluster}"

        host: list[Obj] = []
        for namespace, granted in sorted(self.by_namespace().items()):
            if namespace:
                host += _role(namespace, name, granted, bound.get(Side.HOST))
        on_virtual_side = [right for right in self.granted if right.side is Side.VIRTUAL]
        virtual = _role("", name, on_virtual_side, bound.get(Side.VIRTUAL))
        return {Side.VIRTUAL: virtual, Side.HOST: host}


def daemon_manifests(
    shares: Sequence[Share],
    *,
    name: str,
    home: str,
    subject: Subject | None = None,
    is_shared: bool = False,
) -> list[Obj]:
    """Return the roles of the daemon itself on the host, with a binding if there is a subject.

    A ClusterRole holds the rights that virtual clusters need in the whole host; a Role in ``home``
    holds those on the Lease, of which RBAC can't narrow ``create`` to its name.

    Args:
        shares: The rights of the virtual clusters.
        name: The name of the Lease, which is unique to the daemon in its namespace.
        home: The namespace of the Lease.
        subject: The daemon's user on the host; None for no bindings.
        is_shared: True if replicas share the fleet: then the daemon has the rights on all Leases in
            ``home``.
    """
    in_whole_host: list[Right] = []
    has_leader_election = False
    for share in shares:
        in_whole_host += share.by_namespace().get("", ())
        has_leader_election |= any(right.resource == LEASES for right in share.granted)

    roles: list[Obj] = []
    wide = _joined(replace(right, namespaces=()) for right in in_whole_host)
    if wide:
        role_name = f"{name}.{home}" if home else name
        roles += _role("", role_name, wide, subject)
    if has_leader_election:
        lease: Sequence[Right] = SHARED_LEASE_RIGHTS
        if not is_shared:
            lease = [_of_lease(right, name) for right in LEASE_RIGHTS]
        roles += _role(home, f"{name}.lease", lease, subject)
    return roles


def secret_reader(namespace: str, *, name: str, subject: Subject | None = None) -> list[Obj]:
    """Return the Role to read the Secrets with virtual clusters in a namespace of the host, with a
    binding if there is a subject. RBAC can't narrow it to labels.
    """
    return _role(namespace, name, [Right(Side.HOST, SECRETS, READ)], subject)


def manifests(
    granted: Sequence[Right],
    *,
    cluster: str,
    home: str,
    host_namespaces: Sequence[str] | None,
    subjects: Mapping[Side, Subject] | None = None,
) -> dict[Side, list[Obj]]:
    """Return all roles of a daemon with a single virtual cluster, by side.

    They have a binding if there is a subject. ``home`` is the namespace of the daemon's Lease.
    """
    share = Share(cluster, granted, host_namespaces)
    subject = subjects.get(Side.HOST) if subjects else None
    daemon = daemon_manifests([share], name=f"vsyncer-{cluster}", home=home, subject=subject)
    own = share.manifests(subjects)
    return own | {Side.HOST: [*daemon, *own[Side.HOST]]}


def _namespaces_of(right: Right, host_namespaces: Sequence[str] | None) -> Sequence[str]:
    """Return the namespaces that a right on the host is needed in; ``""`` for the whole cluster."""
    if right.resource == NAMESPACES and right.verbs == ("get",) and host_namespaces is not None:
        return host_namespaces  # a right in a namespace suffices to read it
    if not right.resource.namespaced:
        return ("",)
    if not right.namespaces and host_namespaces is None:
        return ("",)

    return right.namespaces or host_namespaces or ()


def _of_lease(right: Right, name: str) -> Right:
    """Return a right that is narrowed to the Lease, unless it is to create one."""
    return right if "create" in right.verbs else replace(right, names=(name,))


def _role(
    namespace: str,
    name: str,
    granted: Sequence[Right],
    subject: Subject | None,
) -> list[Obj]:
    """Return a Role, or without a namespace a ClusterRole, with its binding.

    Without a subject, there is no binding.
    """
    kind = "Role" if namespace else "ClusterRole"
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    role = {
        "apiVersion": f"{_API}/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": _rules(granted),
    }
    if subject is None:
        return [role]

    binding = {
        "apiVersion": f"{_API}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
        "subjects": [subject.manifest()],
    }
    return [role, binding]


def _rules(granted: Sequence[Right]) -> list[Obj]:
    """Return the rules; resources of a group with the same verbs and names share a rule."""
    shared: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for right in granted:
        resource = right.resource.plural
        if right.subresource:
            resource = f"{resource}/{right.subresource}"
        shared[right.resource.group, right.verbs, right.names].append(resource)

    rules: list[Obj] = []
    for (group, verbs, names), resources in sorted(shared.items()):
        rule: Obj = {
            "apiGroups": [group],
            "resources": sorted(resources),
            "verbs": list(verbs),
        }
        if names:
            rule["resourceNames"] = list(names)
        rules.append(rule)
    return rules


def _rank(verb: str) -> tuple[int, str]:
    """Return the sort key of a verb, in the customary order."""
    rank = _VERBS.index(verb) if verb in _VERBS else len(_VERBS)
    return rank, verb
