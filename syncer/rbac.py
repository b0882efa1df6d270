"""The rights that the daemon needs, no more: they follow from the roles, the sources and the rights of its syncers."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncer.api import (
    Config,
    Index,
    Indexes,
    Obj,
    Patch,
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
from syncer.resources.kinds import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS, NAMESPACES
from syncer.translate.authority import authority_of

READ = ("get", "list", "watch")
LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases")
#: What the daemon itself needs whatever its syncers are: it tells tenants of refusals by events.
EVENT_RIGHTS = (Right(Side.VIRTUAL, EVENTS, ("create", "patch")),)
#: And it notes in the virtual cluster whose it is.
CLAIM_RIGHTS = (Right(Side.VIRTUAL, CONFIG_MAPS, ("get", "create")),)
#: It is told there, and by its namespaces, what is paused; without these rights only marks on objects pause them.
PAUSE_RIGHTS = (Right(Side.VIRTUAL, CONFIG_MAPS, READ), Right(Side.VIRTUAL, NAMESPACES, READ))
#: It looks whether there is room again for what a quota had none for; without this right it only tries again slowly.
QUOTAS = Resource("v1", "ResourceQuota", "resourcequotas")
QUOTA_RIGHTS = (Right(Side.HOST, QUOTAS, ("list",)),)
LEASE_RIGHTS = (Right(Side.HOST, LEASES, ("get", "create", "patch")),)

_API = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a binding gives the rights: a ServiceAccount, or a user (then ``namespace`` is empty)."""

    name: str
    namespace: str = ""

    def manifest(self) -> Obj:
        """The entry under ``subjects``."""
        if self.namespace:
            return {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        return {"kind": "User", "name": self.name, "apiGroup": _API}


def sources(
    syncer: Syncer, enabled: Collection[str] | None = None, settings: Settings | None = None
) -> frozenset[Source]:
    """All that must be watched for a syncer: its resource on both sides, and what it, its indexes and watches read.

    ``enabled`` are the names of all syncers that are on; indexes and watches that need another one are left out with
    it. None stands for all. Without ``settings`` it isn't told which part of what begins on the host is watched there.
    """
    direction = direction_of(syncer)
    found = {*direction.sources(), *syncer.reads}
    extras: list[Index | Watch] = list(syncer.indexes()) if isinstance(syncer, Indexes) else []
    extras += syncer.watches() if isinstance(syncer, Watches) else ()
    found |= {
        extra.source for extra in extras if enabled is None or not extra.optional_with or extra.optional_with in enabled
    }
    on = (source for source in found if enabled is None or not source.optional_with or source.optional_with in enabled)
    return frozenset(source if settings is None else direction.narrowed(source, settings) for source in on)


def rights(syncer: Syncer, enabled: Collection[str] | None = None, settings: Settings | None = None) -> Iterator[Right]:
    """Every right that a syncer needs, by source, by role, and as it says itself."""
    for source in sources(syncer, enabled, settings):
        yield Right(source.side, source.resource, READ, namespaces=source.namespaces)
    yield from direction_of(syncer).rights()
    if settings and syncer.name in settings.sections:
        yield from by_path(Side.VIRTUAL, syncer.resource, (patch.steps for patch in _upward(syncer, settings)))
        yield from _by_rules(syncer, settings.sections[syncer.name])
    yield from syncer.rights if settings is None else syncer.rights_with(settings)


def _upward(syncer: Syncer, settings: Settings) -> tuple[Patch, ...]:
    return settings.sections[syncer.name].patches.up


def _by_rules(syncer: Syncer, config: Config) -> Iterator[Right]:
    """What other owners of fields take, and what it may mean that somebody deletes a copy on the host."""
    if authority_of(syncer, config).owners:
        yield Right(Side.VIRTUAL, syncer.resource, ("patch",))
    if config.on_host_deletion == "recreate" or not direction_of(syncer).remakes:
        return
    yield Right(Side.VIRTUAL, syncer.resource, ("patch",))
    if config.on_host_deletion == "propagate":
        yield Right(Side.VIRTUAL, syncer.resource, ("delete",))
        if syncer.host_resource.namespaced:
            yield Right(Side.HOST, NAMESPACES, ("get",))
        if syncer.host_resource.group:
            yield Right(Side.HOST, CUSTOM_RESOURCE_DEFINITIONS, ("get",))


def needed(
    syncers: Iterable[Syncer], *, settings: Settings | None = None, leader_election: bool = False
) -> tuple[Right, ...]:
    """Every right that a daemon with these syncers needs; each resource and subresource once, the verbs in order."""
    own = (*EVENT_RIGHTS, *CLAIM_RIGHTS, *PAUSE_RIGHTS, *QUOTA_RIGHTS, *(LEASE_RIGHTS if leader_election else ()))
    made = tuple(syncers)
    enabled = {syncer.name for syncer in made} if settings is None else settings.sections
    verbs: dict[tuple[Side, Resource, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for right in (*own, *(right for syncer in made for right in rights(syncer, enabled, settings))):
        verbs[right.side, right.resource, right.subresource, right.namespaces].update(right.verbs)
    order = sorted(verbs, key=lambda place: (place[0], place[1].group, place[1].plural, *place[2:]))
    return tuple(
        Right(side, resource, tuple(sorted(verbs[side, resource, part, elsewhere], key=_rank)), part, elsewhere)
        for side, resource, part, elsewhere in order
    )


def allows(granted: Iterable[Right], side: Side, resource: Resource, verb: str, subresource: str = "") -> bool:
    """Whether a request is within the rights."""
    place = (side, resource, subresource)
    return any((right.side, right.resource, right.subresource) == place and verb in right.verbs for right in granted)


def manifests(
    granted: Sequence[Right],
    *,
    cluster: str,
    home: str,
    host_namespaces: Sequence[str] | None,
    subjects: Mapping[Side, Subject] | None = None,
) -> dict[Side, list[Obj]]:
    """The roles to be made on each side, and the bindings where a subject is known.

    ``cluster`` is the virtual cluster and ``home`` its configured namespace on the host, where the Lease is.

    On the host a Role in each of ``host_namespaces`` holds what is namespaced; where that is None, they are not known
    beforehand and a ClusterRole has to hold all. A tenant may use any namespace, so the virtual side is a ClusterRole.
    """
    given = subjects or {}
    by_place: dict[str, list[Right]] = defaultdict(list)
    for right in granted:
        if right.side is Side.HOST:
            places = (home,) if right.resource == LEASES else _places(right, granted, host_namespaces)
            for namespace in places:
                by_place[namespace].append(right)
    virtual = [right for right in granted if right.side is Side.VIRTUAL]
    name = f"vsyncer-{cluster}"
    host = [
        each
        for namespace, rights in sorted(by_place.items())
        for each in _role(namespace, name if namespace else f"{name}.{home}", rights, given.get(Side.HOST))
    ]
    return {Side.VIRTUAL: _role("", name, virtual, given.get(Side.VIRTUAL)), Side.HOST: host}


def _places(right: Right, granted: Sequence[Right], host_namespaces: Sequence[str] | None) -> Sequence[str]:
    """The namespaces that a right on the host is needed in; ``""`` for the whole cluster.

    What is watched in several namespaces is watched by one request, which names none of them.
    """
    if right.resource == NAMESPACES and right.verbs == ("get",) and host_namespaces is not None:
        return host_namespaces  # whoever has the right in a namespace may read it
    if not right.resource.namespaced:
        return ("",)
    if not right.namespaces and host_namespaces is None:
        return ("",)
    own = right.namespaces or host_namespaces or ()
    watches = [each for each in granted if _is_same_watch(each, right)]
    if "watch" not in right.verbs or not any(each.namespaces for each in watches):
        return own
    places = {namespace for each in watches for namespace in each.namespaces or host_namespaces or ()}
    return ("",) if len(places) > 1 else own


def _is_same_watch(one: Right, other: Right) -> bool:
    return (one.side, one.resource) == (other.side, other.resource) and "watch" in one.verbs and not one.subresource


def _role(namespace: str, name: str, granted: Sequence[Right], subject: Subject | None) -> list[Obj]:
    kind = "Role" if namespace else "ClusterRole"
    metadata: dict[str, Any] = {"name": name} | ({"namespace": namespace} if namespace else {})
    role = {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": metadata, "rules": _rules(granted)}
    if subject is None:
        return [role]
    reference = {"apiGroup": _API, "kind": kind, "name": name}
    binding = {"apiVersion": f"{_API}/v1", "kind": f"{kind}Binding", "metadata": dict(metadata)}
    return [role, binding | {"roleRef": reference, "subjects": [subject.manifest()]}]


def _rules(granted: Sequence[Right]) -> list[Obj]:
    """The rules; resources of one group that need the same verbs share one."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for right in granted:
        resource = f"{right.resource.plural}/{right.subresource}" if right.subresource else right.resource.plural
        together[right.resource.group, right.verbs].append(resource)
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": list(verbs)}
        for (group, verbs), resources in sorted(together.items())
    ]


def _rank(verb: str) -> tuple[int, str]:
    """Verbs in the order in which people write them."""
    known = ("get", "list", "watch", "create", "update", "patch", "delete")
    return (known.index(verb) if verb in known else len(known), verb)
