"""Create the syncers of a ``sync.custom`` entry, as soon as both sides serve the resources that it
names.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from syncer.api import Config, Marks, NameTranslator, Reference, Resource, Shown, Side, Syncer
from syncer.names.templated import fault_of, keeps_names
from syncer.resources.custom.config import CustomConfig, Related
from syncer.resources.custom.from_host import CustomFromHost
from syncer.resources.custom.mirror import CustomKind, CustomToHost, Retained, Ties
from syncer.resources.custom.references import referred
from syncer.resources.custom.related import Belongs, SameNames, TranslatedNames
from syncer.translate.named import named

#: Returns a resource that a side serves, in its preferred version unless the name has one:
#: ``certificates.cert-manager.io/v1``.
FindServed = Callable[[Side, str], Resource | None]


class _Waits(Exception):
    """The syncers can't be created yet; the message has the reason."""


@dataclass(frozen=True, slots=True)
class CustomEntry:
    """An entry of ``sync.custom``."""

    #: ``<plural>.<group>``.
    name: str
    config: CustomConfig
    names: NameTranslator
    marks: Marks = field(default_factory=Marks)
    #: Resources that other syncers copy to the host; references to them can be resolved.
    synced: Sequence[Resource] = ()
    #: All enabled entries, including this one.
    entries: Mapping[str, CustomConfig] = field(default_factory=dict)

    @property
    def section_name(self) -> str:
        """The path of the entry, below ``sync``."""
        return f"custom.{self.name}"

    def syncers(self, find: FindServed) -> Sequence[Syncer] | str:
        """Return the syncers of the entry, the custom resource's first.

        If the entry must wait, return the reason instead.
        """
        try:
            return list(self._made(find))
        except _Waits as reason:
            return str(reason)

    def assumed(self) -> Sequence[Syncer]:
        """Return the syncers as if everything was served.

        That is for commands without a connection, such as ``syncer rbac``.
        """
        made = self.syncers(self._assumed)
        if isinstance(made, str):
            return ()
        return made

    def sections(self) -> Mapping[str, Config]:
        """Return the options of the entry's syncers, and of its related objects', by name."""
        return {self.name: self.config, **dict(self._from_host())}

    # -- inside ------------------------------------------------------------------------------------

    def _made(self, find: FindServed) -> Iterator[Syncer]:
        kind = self._kind(find, self.name, self.config)
        config = self.config.of(self.name)
        self._check(kind)
        if config.direction == "fromHost":
            yield CustomFromHost(kind, config)
            return
        make = Retained if config.on_delete == "retain" else CustomToHost
        yield make(kind, config, self._ties(find))
        for name, related in self._from_host():
            yield self._belongs(name, kind, related, find)

    def _check(self, kind: CustomKind) -> None:
        """Check the options against the kind as it is served.

        Raises:
            _Waits: They don't match.
        """
        if self.config.scope:
            wanted: str = self.config.scope
            why = f"{self._where}.scope is {wanted}"
        else:
            wanted = _scope(kind.host)
            why = f"the host cluster serves it as {wanted}"
        for side, resource in kind.sides.items():
            scope = _scope(resource)
            if scope != wanted:
                raise _Waits(f"{why}, but the {side} cluster serves {self.name} as {scope}")

        template = self.config.template
        if template is not None:
            fault = fault_of(template, self.names, namespaced=kind.virtual.namespaced)
            if fault:
                raise _Waits(f"{self._where}.name {fault}")

        if self.config.direction == "fromHost":
            is_given = bool(self.config.namespaces)
            if kind.host.namespaced and not is_given:
                raise _Waits(f"{self._where}.namespaces is empty, so nothing would appear")
            if is_given and not kind.host.namespaced:
                raise _Waits(f"{self._where}.namespaces is given, but the kind has none")

    def _kind(self, find: FindServed, name: str, config: CustomConfig) -> CustomKind:
        """Return a custom resource in a version that both sides serve.

        Raises:
            _Waits: There is no such version.
        """
        wanted = f"{name}/{config.version}" if config.version else name
        found = {side: find(side, wanted) for side in (Side.HOST, Side.VIRTUAL)}
        for side, resource in found.items():
            if resource is None:
                raise _Waits(self._missing(find, side, name, config.version))
        host = found[Side.HOST]
        virtual = found[Side.VIRTUAL]
        assert host is not None
        assert virtual is not None
        if same := find(Side.VIRTUAL, f"{name}/{host.version}"):
            return CustomKind(name, same, host)
        if other := find(Side.HOST, f"{name}/{virtual.version}"):
            return CustomKind(name, virtual, other)
        versions = f"the host cluster prefers {host.version}, the virtual cluster {virtual.version}"
        raise _Waits(f"there is no version of {name} that both sides serve: {versions}")

    def _missing(self, find: FindServed, side: Side, name: str, version: str) -> str:
        if version and find(side, name):
            return f"the {side} cluster does not serve {name} in version {version}"
        return f"the {side} cluster does not serve {name} yet; its CRD is missing there"

    def _ties(self, find: FindServed) -> Ties:
        """Return the relations of the entry's objects to other objects.

        Raises:
            _Waits: A kind that the entry names isn't served.
        """
        targets = {}
        for path, kinds in self.config.references.items():
            targets[path] = [self._target(find, kind) for kind in kinds]
        made: dict[str, Reference] = {}
        selected = []
        owned = []
        for related in self.config.related:
            path = related.by.reference
            target = self._target(find, related.resource)
            resource = target.resource if isinstance(target, Shown) else target
            if related.origin == "host":
                if path in self.config.references:
                    made[path] = referred(path, [resource], use="made")
                continue
            if path and target not in targets.setdefault(path, []):
                targets[path].append(target)
            if related.by.selector:
                selected.append((resource, related.by.selector))
            if related.by.owner:
                owned.append(resource)

        references = {path: referred(path, kinds) for path, kinds in targets.items()}
        for path, reference in made.items():
            # Objects of no other kind may be named there, so all of them come from the host.
            if reference.targets == references[path].targets:
                references[path] = replace(references[path], comes_later=True)
        return Ties(references, selected, owned, made)

    def _target(self, find: FindServed, word: str) -> Resource | Shown:
        """Return the resource of a kind or plural.group.

        Raises:
            _Waits: It isn't served.
        """
        if known := named(word, self.synced):
            return known
        config = self.entries.get(word, CustomConfig())
        kind = self._kind(find, word, config)
        if config.direction == "fromHost":
            return Shown(kind.virtual, CustomFromHost(kind, config.of(word)))
        return kind.virtual

    def _from_host(self) -> Iterator[tuple[str, Related]]:
        """Yield the rules for objects that operators create on the host.

        Each comes with the name of its syncer.
        """
        counts: Counter[str] = Counter()
        for related in self.config.related:
            if related.origin != "host" or not related.enabled:
                continue
            counts[related.resource] += 1
            number = counts[related.resource]
            name = f"{self.name}:{related.resource}"
            if number > 1:
                name = f"{name}:{number}"
            yield name, related

    def _belongs(self, name: str, kind: CustomKind, related: Related, find: FindServed) -> Belongs:
        """Return the syncer of objects that operators create on the host.

        Raises:
            _Waits: Their kind isn't served, or the rule can't tell the tenant's from others.
        """
        target = self._target(find, related.resource)
        resource = target.resource if isinstance(target, Shown) else target
        by = related.by
        if by.reference not in self.config.references:
            if resource.namespaced and not kind.virtual.namespaced:
                why = f"{kind.virtual.kind} has no namespace"
                why = f"{why}, so it isn't known where its {resource.plural} belong"
                how = "find them by.reference, with a path of references"
                raise _Waits(f"{self._where}.related: {why}; {how}")
            return SameNames(name, kind, resource, by, marks=self.marks)

        if keeps_names(self.names) and not (by.owner or by.selector):
            why = f"by {by.reference}, tenants could name any object of the host"
            why = f"{why}: they set the name, and names.translator leaves it as it is"
            raise _Waits(f"{self._where}.related: {why}; give by.selector or by.owner")
        return TranslatedNames(
            name,
            kind,
            resource,
            by,
            marks=self.marks,
            names=self.names,
            is_synced=self.config.selector.selects,
        )

    def _assumed(self, side: Side, wanted: str) -> Resource | None:
        """Return a resource as it would be served, as far as the configuration shows."""
        name, _, version = wanted.partition("/")
        plural, _, group = name.partition(".")
        config = self.entries.get(name, CustomConfig())
        version = version or config.version or "v1"
        api_version = f"{group}/{version}" if group else version

        namespaced = config.scope != "Cluster"
        if config.direction == "fromHost" and not config.namespaces:
            namespaced = False
        kind = plural.removesuffix("s").capitalize()
        return Resource(api_version, kind, plural, namespaced)

    @property
    def _where(self) -> str:
        return f"sync.{self.section_name}"


def _scope(resource: Resource) -> str:
    """Return the scope of a resource as a CRD has it."""
    if resource.namespaced:
        return "Namespaced"
    return "Cluster"
