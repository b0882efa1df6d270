"""Services of the tenant under names in namespaces of the host.

Each is a Service without an address of its own there, with an EndpointSlice that leads to the
Service's copy. Addresses, ports and readiness are those that the host has given the copy; nothing
of them is read from the virtual Service, which is the tenant's to write.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import permutations
from typing import ClassVar, Self

from pydantic import Field, model_validator

from syncer.api import (
    DNS_LABEL,
    LONGEST_LABEL,
    Config,
    Context,
    Decision,
    Grants,
    HostNamespace,
    Index,
    Indexes,
    Key,
    KeyRules,
    MetadataRules,
    NameTaken,
    Obj,
    ObjectRef,
    Pair,
    Precondition,
    Refused,
    Right,
    Section,
    Settings,
    Side,
    Source,
    Sync,
    SyncDown,
    Syncer,
    SyncUp,
    annotations_of,
    apply,
    delete,
    is_deleting,
    key_of,
    reasons,
    skip,
    uid_of,
    wait,
)
from syncer.resources.endpointslices import MANAGED_BY, SERVICE_NAME
from syncer.resources.kinds import ENDPOINT_SLICES, SERVICES
from syncer.resources.mappings import ALL
from syncer.resources.service_stand_ins import (
    contents,
    headless,
    is_name,
    owner,
    service_of,
    slices_of,
)
from syncer.resources.services import KUBERNETES

#: The name of a Service (RFC 1035 label), and the beginning of one.
_SERVICE_NAME = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_BEGINNING = rf"{_SERVICE_NAME}-"

_COPIES = Source(Side.HOST, SERVICES, marked=True)
_SLICES_OF_COPIES = Source(Side.HOST, ENDPOINT_SLICES, marked=True)
#: Indexes of the published Services by the keys of the copies that they lead to, of these copies by
#: their own keys, and of their slices by the keys of their Services.
_BY_COPY = "published-services/copy"
_COPY = "published-services/copies"
_SLICES_OF = "published-services/slices"
#: Indexes of the published Services, and of their slices, by their own keys.
_OWN = "published-services/own"
_OWN_SLICES = "published-services/own-slices"


class PublishedNames(Section):
    """Services of the virtual cluster, each with its place on the host."""

    by_name: dict[str, str] = Field(default={})
    """Services of the virtual cluster that appear on the host, as `namespace/name`, each with the
    host namespace and the name that it has there: `shop/web: infra/shop-web`.

    `shop/*: infra/shop-*` stands for all Services of a virtual namespace: their names follow
    `shop-`, so that a tenant chooses no name beyond those. One that is listed by its name, too,
    appears there alone.
    """

    @model_validator(mode="after")
    def _is_one_to_one(self) -> Self:
        places: dict[Key, str] = {}
        for virtual, host in self._entries.items():
            text = f"{virtual.namespace}/{virtual.name}"
            other = places.setdefault(host, text)
            if other != text:
                why = f"byName puts both {other} and {text} at {host.namespace}/{host.name}"
                raise ValueError(f"{why}: two Services would share a name")
        for (one, beginning), (other, longer) in permutations(self.beginnings.items(), 2):
            is_within = longer.name.startswith(beginning.name)
            if beginning.namespace == longer.namespace and is_within:
                why = f"the names of {other}/* would be among those of {one}/*"
                how = f"let {longer.name} not begin with {beginning.name}"
                raise ValueError(f"byName: {why}; {how}")
        return self

    @cached_property
    def _entries(self) -> Mapping[Key, Key]:
        """The host key of each virtual key; a name ``*`` stands for all of a namespace."""
        return {_virtual(text): _place(text, place) for text, place in self.by_name.items()}

    @cached_property
    def names(self) -> Mapping[Key, Key]:
        """The host key of each Service that is listed by its name."""
        return {virtual: host for virtual, host in self._entries.items() if virtual.name != ALL}

    @cached_property
    def beginnings(self) -> Mapping[str, Key]:
        """The host namespace, and the beginning of names in it, of each virtual namespace of which
        all Services appear.
        """
        return {
            virtual.namespace: Key(host.namespace, host.name.removesuffix(ALL))
            for virtual, host in self._entries.items()
            if virtual.name == ALL
        }

    @cached_property
    def namespaces(self) -> Sequence[str]:
        """The host namespaces of all entries, each once."""
        return tuple(dict.fromkeys(host.namespace for host in self._entries.values()))

    @cached_property
    def _taken(self) -> frozenset[Key]:
        return frozenset(self.names.values())

    def host_key(self, virtual: Key) -> Key | None:
        """Return the host key of a Service; None if it doesn't appear.

        The name may be too long for one. A Service that is listed by its name goes before another
        one that would have that name.
        """
        if virtual in self.names:
            return self.names[virtual]
        beginning = self.beginnings.get(virtual.namespace)
        if beginning is None:
            return None
        key = Key(beginning.namespace, f"{beginning.name}{virtual.name}")
        return None if key in self._taken else key


def _virtual(text: str) -> Key:
    """Return the virtual key of an entry.

    Raises:
        ValueError: It isn't of the form ``namespace/name``.
    """
    namespace, _, name = text.partition("/")
    is_name = name == ALL or _fits(_SERVICE_NAME, name)
    if not (_fits(DNS_LABEL, namespace) and is_name):
        examples = "such as shop/web, or shop/* for all of the namespace"
        raise ValueError(f"byName: expected a namespace and a Service, {examples}, {_found(text)}")
    return Key(namespace, name)


def _place(virtual: str, text: str) -> Key:
    """Return the host key of an entry; its name ends with ``*`` for all of a namespace.

    Raises:
        ValueError: It isn't of the form that the entry takes.
    """
    namespace, _, name = text.partition("/")
    form, example, pattern = "a Service", "infra/shop-web", _SERVICE_NAME
    if virtual.endswith(f"/{ALL}"):
        form, example, pattern = "the beginning of names", "infra/shop-*", rf"{_BEGINNING}\*"
    if not (_fits(DNS_LABEL, namespace) and _fits(pattern, name)):
        expected = f"expected a host namespace and {form}, such as {example}"
        raise ValueError(f"byName: {virtual}: {expected}, {_found(text)}")
    return Key(namespace, name)


def _fits(pattern: str, text: str) -> bool:
    return len(text) <= LONGEST_LABEL and re.fullmatch(pattern, text) is not None


def _found(text: str) -> str:
    return f"found {text[: 2 * LONGEST_LABEL]!r}"


class PublishedServiceConfig(Config):
    """The options of Services that appear under names on the host."""

    enabled: bool = False
    """Whether the Services that `mappings` lists appear on the host, as vcluster's
    `networking.replicateServices.toHost`.

    They lead to the copies of these Services, which `sync.toHost.services` makes. The host chooses
    their addresses, the operator their names and namespaces.
    """

    namespaces: tuple[HostNamespace, ...] = ()
    """The host namespaces in which Services may appear. The daemon has its rights in these alone.

    If an entry of `mappings` is removed, so is its Service on the host. So remove entries first,
    and their namespace, or `enabled`, once the Services are gone.
    """

    mappings: PublishedNames = PublishedNames()
    """The Services that appear. Without any, none does."""

    @model_validator(mode="after")
    def _leads_into_its_namespaces(self) -> Self:
        for namespace in self.mappings.namespaces:
            if namespace not in self.namespaces:
                why = f"mappings: the host namespace {namespace} isn't listed in namespaces"
                raise ValueError(f"{why}: add it there")
        return self


class PublishedServiceSyncer(
    Syncer[PublishedServiceConfig],
    SyncDown[PublishedServiceConfig],
    Sync[PublishedServiceConfig],
    SyncUp[PublishedServiceConfig],
    Grants[PublishedServiceConfig],
    Indexes,
):
    """Services that `mappings` lists, under names in namespaces of the host.

    Clients on the host find them by DNS: the name leads to the ClusterIP of the Service's copy, or
    of a headless Service to its endpoints, as long as an endpoint is ready. They have the copy's
    ports, and no ClusterIP, node ports and load balancer of their own. A tenant's ExternalName
    isn't published.
    """

    name = "published-services"
    section = "toHost.publishedServices"
    resource = SERVICES
    own_deletion = True
    adopts = True
    down = ("spec",)
    translates = ("spec",)
    exact = ("spec.ports", "spec.selector")
    metadata = MetadataRules(labels=KeyRules(deny=("*",)), annotations=KeyRules(deny=("*",)))
    grants: ClassVar[tuple[str, ...]] = ()

    def host_namespaces(self, settings: Settings) -> tuple[str, ...]:
        """Return the listed host namespaces."""
        return self._config(settings).namespaces

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the key at which a Service appears; one that no object has if it doesn't."""
        return _host_key(self._config(settings), key) or Key("", str(key))

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Return the right to write the slices."""
        namespaces = self.host_namespaces(settings)
        if namespaces:
            verbs = ("create", "patch", "delete")
            yield Right(Side.HOST, ENDPOINT_SLICES, verbs, namespaces=namespaces)

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the slices in the listed namespaces."""
        namespaces = self.host_namespaces(settings)
        if namespaces:
            yield replace(_SLICES_OF_COPIES, namespaces=namespaces)

    def indexes(self) -> Sequence[Index]:
        """Return the indexes without those whose objects depend on the configuration."""
        return [
            Index(_COPIES, _COPY, _own_key, requeues=_BY_COPY, when="change"),
            Index(_SLICES_OF_COPIES, _SLICES_OF, service_of, requeues=_BY_COPY, when="change"),
        ]

    def indexes_with(self, settings: Settings) -> Sequence[Index]:
        """Return the indexes of the copies, of their slices, and of what leads to them."""
        namespaces = self.host_namespaces(settings)
        if not namespaces:
            return self.indexes()

        def copies(published: Obj) -> Iterable[str]:
            key = settings.marks.virtual_key(published)
            if key is None:
                return ()
            try:
                return [str(settings.names.to_host(SERVICES, key))]
            except Refused:
                return ()

        own = replace(_COPIES, namespaces=namespaces)
        slices = replace(_SLICES_OF_COPIES, namespaces=namespaces)
        return [
            *self.indexes(),
            Index(own, _BY_COPY, copies),
            Index(own, _OWN, _own_key),
            Index(slices, _OWN_SLICES, _own_key, requeues=_OWN, when="change"),
        ]

    def still_granted(self, ctx: Context[PublishedServiceConfig], host: Obj) -> Obj | None:
        """Return the published Service; None unless an entry puts it where it is."""
        key = ctx.marks.virtual_key(host)
        is_listed = key is not None and _host_key(ctx.config, key) == key_of(host)
        return host if is_listed else None

    def beside(self, ctx: Context[PublishedServiceConfig], host: Obj) -> Decision:
        """Keep the slice in step with the copy, in any state of the virtual Service.

        Raises:
            NameTaken: Another slice of the virtual cluster has its name.
        """
        key = key_of(host)
        there = ctx.host(ENDPOINT_SLICES, key)
        if there is not None and not self._has_made(ctx, there):
            why = "another EndpointSlice on the host has the name that this Service's would get"
            raise NameTaken(f"{why}. Ask the operator for another name")
        original = ctx.marks.virtual_key(host)
        copy = _copy(ctx, original) if original is not None else None
        origin = copy if copy is not None else there
        if original is None or origin is None:
            return Decision()
        wanted = self._slice(ctx, host, original, origin)
        if there is not None and there.get("addressType") != wanted["addressType"]:
            why = "the addresses are of another family, so the slice is replaced"
            return delete(host=there, resource=ENDPOINT_SLICES, reason=why)
        decision = apply(host=wanted, resource=ENDPOINT_SLICES, exact=("endpoints", "ports"))
        if there is not None:
            return decision
        # The host would remove a slice at once whose Service is another one by now.
        of_host = Precondition(ObjectRef(Side.HOST, SERVICES, key), uid_of(host))
        [write] = decision.writes
        return replace(decision, writes=(replace(write, precondition=of_host),))

    def sync_down(self, ctx: Context[PublishedServiceConfig], virtual: Obj) -> Decision:
        """Create the Service on the host; its slice, which names it as the owner, comes next.

        Raises:
            Refused: Its name would be too long.
        """
        key = key_of(virtual)
        place = ctx.config.mappings.host_key(key)
        if place is None:
            return skip(reasons.LEFT_OUT(f"{self.section}.mappings"))
        if is_deleting(virtual):
            return skip(reasons.ORIGINAL_ENDS("Service"))
        if key == KUBERNETES:
            return skip(reasons.API_SERVERS_OWN(""))
        if is_name(virtual):
            return skip(reasons.NAME_UNPUBLISHED())
        if len(place.name) > LONGEST_LABEL:
            most = len(key.name) + LONGEST_LABEL - len(place.name)
            why = f"the name of a Service that appears on the host has at most {most} characters"
            raise Refused(f"{why}; give this one a shorter one", reason="NameTooLong")
        copy = _copy(ctx, key)
        if copy is None:
            return _awaiting(ctx, key)
        why = f"sync.{self.section}.mappings lists it"
        decision = apply(host=_published(ctx, virtual, copy), reason=why)
        return replace(decision, is_step=True)

    def sync(self, ctx: Context[PublishedServiceConfig], pair: Pair) -> Decision:
        """Update the ports, or end with the Service. Without its copy it leads nowhere."""
        if is_deleting(pair.host):
            return wait(reasons.REMADE("Service on the host"))
        if is_deleting(pair.virtual):
            return self._removed(ctx, pair.host, "the virtual Service is being deleted")
        if is_name(pair.virtual):
            return self._removed(ctx, pair.host, "the virtual Service is only a DNS name")
        copy = _copy(ctx, key_of(pair.virtual))
        if copy is None:
            return _awaiting(ctx, key_of(pair.virtual))
        return apply(host=_published(ctx, pair.virtual, copy))

    def sync_up(self, ctx: Context[PublishedServiceConfig], host: Obj) -> Decision:
        """Delete the Service on the host, as the virtual one is gone."""
        if is_deleting(host):
            return skip(reasons.HOST_ENDS("Service"))
        return self._removed(ctx, host, "the virtual Service is gone")

    def deselected(self, ctx: Context[PublishedServiceConfig], pair: Pair, reason: str) -> Decision:
        """Delete the Service on the host with its slice."""
        return self._removed(ctx, pair.host, reason)

    def _config(self, settings: Settings) -> PublishedServiceConfig:
        return settings.section(self.name, PublishedServiceConfig) or PublishedServiceConfig()

    def _removed(self, ctx: Context[PublishedServiceConfig], host: Obj, reason: str) -> Decision:
        """Delete the slice, and then the Service on the host."""
        decision = delete(host=host, reason=reason)
        there = ctx.host(ENDPOINT_SLICES, key_of(host))
        if there is None or not self._has_made(ctx, there):
            return decision
        return delete(host=there, resource=ENDPOINT_SLICES, reason=reason).then(decision)

    def _has_made(self, ctx: Context[PublishedServiceConfig], of_host: Obj) -> bool:
        return ctx.marks.is_ours(
            of_host, cluster=ctx.identity, resource=SERVICES, made_for=self.name
        )

    def _slice(
        self, ctx: Context[PublishedServiceConfig], host: Obj, original: Key, origin: Obj
    ) -> Obj:
        """Return the slice of a published Service.

        Args:
            ctx: The context of the decision.
            host: The published Service.
            original: The virtual key of the Service.
            origin: Its copy; without one, the slice as it is, which then leads nowhere.
        """
        key = key_of(host)
        if origin["kind"] == SERVICES.kind:
            fields = contents(origin, list(slices_of(ctx, _SLICES_OF, key_of(origin))))
        else:
            fields = {"addressType": origin.get("addressType"), "endpoints": [], "ports": []}
        uid = annotations_of(origin).get(ctx.marks.uid, "")
        identity = {"name": original.name, "namespace": original.namespace, "uid": uid}
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
                "annotations": ctx.marks.annotations(
                    SERVICES, {"metadata": identity}, key, made_for=self.name
                ),
                "ownerReferences": [owner(host)],
            },
            **fields,
        }


def _own_key(obj: Obj) -> Iterable[str]:
    return [str(key_of(obj))]


def _host_key(config: PublishedServiceConfig, key: Key) -> Key | None:
    """Return the key at which a Service appears; None if it doesn't, or has too long a name."""
    place = config.mappings.host_key(key)
    if place is None or len(place.name) > LONGEST_LABEL:
        return None
    return place


def _copy(ctx: Context[PublishedServiceConfig], key: Key) -> Obj | None:
    """Return the copy of a virtual Service; None if it has none, or one that is only a name."""
    copy = ctx.host_of(SERVICES, key)
    if copy is None or is_deleting(copy) or is_name(copy):
        return None
    is_copy = ctx.marks.is_ours(copy, cluster=ctx.identity, resource=SERVICES)
    return copy if is_copy and ctx.marks.virtual_key(copy) == key else None


def _awaiting(ctx: Context[PublishedServiceConfig], key: Key) -> Decision:
    """Return a wait for the copy of a virtual Service."""
    there = ObjectRef(Side.HOST, SERVICES, ctx.names.to_host(SERVICES, key))
    return wait(reasons.COPY_ABSENT(key), on=(there,))


def _published(ctx: Context[PublishedServiceConfig], virtual: Obj, copy: Obj) -> Obj:
    """Return the Service that stands for a copy."""
    return {**ctx.host_copy(virtual), "spec": headless(copy)}
