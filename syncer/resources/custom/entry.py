"""Create the syncers of a ``sync.custom`` entry, as soon as both sides serve the resources that it names."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from syncer.api import Config, Marks, NameTranslator, Reference, Resource, Shown, Side, Syncer
from syncer.names.templated import keeps_names, lack
from syncer.resources.custom.config import CustomConfig, Related
from syncer.resources.custom.from_host import FromHost
from syncer.resources.custom.mirror import Kind, Retained, Ties, ToHost
from syncer.resources.custom.references import referred
from syncer.resources.custom.related import Belongs, Found, Named
from syncer.translate.named import named

#: Returns a resource that a side serves, in its preferred version unless the name has one:
#: ``certificates.cert-manager.io/v1``.
Find = Callable[[Side, str], Resource | None]


class _Waits(Exception):
    """The syncers can't be created yet; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
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

    def syncers(self, find: Find) -> Sequence[Syncer] | str:
        """Return the syncers of the entry, the custom resource's first, or the reason why it must wait."""
        try:
            return list(self._made(find))
        except _Waits as reason:
            return str(reason)

    def assumed(self) -> Sequence[Syncer]:
        """Return the syncers as if everything was served, for commands without a connection, such
        as ``syncer rbac``.
        """
        made = self.syncers(self._assumed)
        return () if isinstance(made, str) else made

    def sections(self) -> Mapping[str, Config]:
        """Return the options of its syncers by name: the entry's, and those of its related objects."""
        return {self.name: self.config, **dict(self._from_host())}

    # -- inside ------------------------------------------------------------------------------------

    def _made(self, find: Find) -> Iterator[Syncer]:
        kind, config = self._kind(find, self.name, self.config), self.config.of(self.name)
        self._check(kind)
        if config.direction == "fromHost":
            yield FromHost(kind, config)
            return
        make = Retained if config.on_delete == "retain" else ToHost
        yield make(kind, config, self._ties(find))
        for name, related in self._from_host():
            yield self._belongs(name, kind, related, find)

    def _check(self, kind: Kind) -> None:
        """Check the options against the kind as it is served.

        Raises:
            _Waits: They don't match.
        """
        scopes = {side: "Namespaced" if one.namespaced else "Cluster" for side, one in kind.sides.items()}
        wanted = self.config.scope or scopes[Side.HOST]
        said = f"{self._where}.scope is {wanted}" if self.config.scope else f"the host cluster serves it as {wanted}"
        for side, scope in scopes.items():
            if scope != wanted:
                raise _Waits(f"{said}, but the {side} cluster serves {self.name} as {scope}")
        template = self.config.template
        if template and (missing := lack(template, self.names, namespaced=kind.virtual.namespaced)):
            raise _Waits(f"{self._where}.name {missing}")
        if self.config.direction == "fromHost" and kind.host.namespaced != bool(self.config.namespaces):
            why = "is empty, so nothing would appear" if kind.host.namespaced else "is given, but the kind has none"
            raise _Waits(f"{self._where}.namespaces {why}")

    def _kind(self, find: Find, name: str, config: CustomConfig) -> Kind:
        """Return a custom resource in a version that both sides serve.

        Raises:
            _Waits: There is no such version.
        """
        wanted = f"{name}/{config.version}" if config.version else name
        found = {side: find(side, wanted) for side in (Side.HOST, Side.VIRTUAL)}
        for side, resource in found.items():
            if resource is None:
                raise _Waits(self._missing(find, side, name, config.version))
        host, virtual = found[Side.HOST], found[Side.VIRTUAL]
        assert host is not None
        assert virtual is not None
        if same := find(Side.VIRTUAL, f"{name}/{host.version}"):
            return Kind(name, same, host)
        if other := find(Side.HOST, f"{name}/{virtual.version}"):
            return Kind(name, virtual, other)
        versions = f"the host cluster prefers {host.version}, the virtual cluster {virtual.version}"
        raise _Waits(f"there is no version of {name} that both sides serve: {versions}")

    def _missing(self, find: Find, side: Side, name: str, version: str) -> str:
        if version and find(side, name):
            return f"the {side} cluster does not serve {name} in version {version}"
        return f"the {side} cluster does not serve {name} yet; its CRD is missing there"

    def _ties(self, find: Find) -> Ties:
        targets = {path: [self._target(find, kind) for kind in kinds] for path, kinds in self.config.references.items()}
        made: dict[str, Reference] = {}
        selected, owned = [], []
        for related in self.config.related:
            path, target = related.by.reference, self._target(find, related.resource)
            resource = target.resource if isinstance(target, Shown) else target
            if related.origin == "host":
                made |= {path: referred(path, [resource], use="made")} if path in self.config.references else {}
                continue
            if path and target not in targets.setdefault(path, []):
                targets[path].append(target)
            selected += [(resource, related.by.selector)] if related.by.selector else []
            owned += [resource] if related.by.owner else []
        named = {path: referred(path, kinds) for path, kinds in targets.items()}
        named |= {
            path: replace(named[path], comes_later=True)
            for path, said in made.items()
            if said.targets == named[path].targets
        }
        return Ties(named, selected, owned, made)

    def _target(self, find: Find, word: str) -> Resource | Shown:
        """Return the resource of a kind or plural.group.

        Raises:
            _Waits: It isn't served.
        """
        if known := named(word, self.synced):
            return known
        config = self.entries.get(word, CustomConfig())
        kind = self._kind(find, word, config)
        return Shown(kind.virtual, FromHost(kind, config.of(word))) if config.direction == "fromHost" else kind.virtual

    def _from_host(self) -> Iterator[tuple[str, Related]]:
        """Yield the rules for objects that operators create on the host, each with the name of its syncer."""
        seen: Counter[str] = Counter()
        for related in self.config.related:
            if related.origin == "host" and related.enabled:
                seen[related.resource] += 1
                number = seen[related.resource]
                yield f"{self.name}:{related.resource}" + (f":{number}" if number > 1 else ""), related

    def _belongs(self, name: str, kind: Kind, related: Related, find: Find) -> Belongs:
        target, by = self._target(find, related.resource), related.by
        resource = target.resource if isinstance(target, Shown) else target
        if resource.namespaced and not kind.virtual.namespaced and by.reference not in self.config.references:
            what = f"{kind.virtual.kind} has no namespace, so it isn't known where its {resource.plural} belong"
            raise _Waits(f"{self._where}.related: {what}; find them by.reference, with a path of references")
        if by.reference in self.config.references:
            if keeps_names(self.names) and not (by.owner or by.selector):
                why = (
                    "the tenant says which name, and names.translator leaves it as it is; give by.selector or by.owner"
                )
                raise _Waits(
                    f"{self._where}.related: by {by.reference}, they could name whatever is on the host: {why}"
                )
            is_synced = self.config.selector.selects
            return Named(name, kind, resource, by, marks=self.marks, names=self.names, is_synced=is_synced)
        return Found(name, kind, resource, by, marks=self.marks)

    def _assumed(self, side: Side, wanted: str) -> Resource | None:
        name, _, version = wanted.partition("/")
        plural, _, group = name.partition(".")
        config = self.entries.get(name, CustomConfig())
        version = version or config.version or "v1"
        namespaced = config.scope != "Cluster" and not (config.direction == "fromHost" and not config.namespaces)
        kind = plural.removesuffix("s").capitalize()
        return Resource(f"{group}/{version}" if group else version, kind, plural, namespaced)

    @property
    def _where(self) -> str:
        return f"sync.{self.section_name}"
