"""Which of the configured syncers can work: those whose resources are served, by both sides, as of the last look."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.errors import Missing
from syncer.api.objects import Resource, Side
from syncer.api.optional_roles import Refers
from syncer.api.roles import Syncer
from syncer.clusters.discovery import Discovery
from syncer.rbac import sources

#: Finds a resource on a side by the name that people use, in the version that the side prefers unless one is named.
Find = Callable[[Side, str], Resource | None]


class Entry(Protocol):
    """Part of a configuration from which syncers are made once it is known what the clusters serve."""

    @property
    def name(self) -> str:
        """How it is called in logs and reports."""
        ...

    def sections(self) -> Mapping[str, Config]:
        """The options of its syncers, by their names."""
        ...

    def syncers(self, find: Find) -> Sequence[Syncer[Any]] | str:
        """The syncers, or the reason why they have to wait."""
        ...

    def assumed(self) -> Sequence[Syncer[Any]]:
        """The syncers as if all was served."""
        ...


@dataclass(slots=True)
class Roster:
    """The syncers of one virtual cluster, those that can work and those that have to wait."""

    settings: Settings
    #: Syncers whose resources are known from the start.
    fixed: Sequence[tuple[Syncer[Any], Config]]
    entries: Sequence[Entry]
    virtual: Discovery
    host: Discovery
    #: Why a syncer has to wait, by its name.
    waiting: dict[str, str] = field(default_factory=dict)

    def able(self) -> Mapping[str, tuple[Syncer[Any], Config]]:
        """The syncers that can work, by name; afterwards ``waiting`` has the others."""
        self.waiting.clear()
        return {syncer.name: (syncer, config) for syncer, config in self._served()}

    def referred_to(self, names: Collection[str]) -> frozenset[Resource]:
        """What those of these names that have to wait may refer to, as far as can be told before they can work."""
        fixed = (syncer for syncer, _ in self.fixed if syncer.name in names)
        made = (syncer for entry in self.entries if entry.name in names for syncer in entry.assumed())
        refers = [syncer for syncer in (*fixed, *made) if isinstance(syncer, Refers)]
        return frozenset(resource for syncer in refers for resource in (*syncer.refers_to, *syncer.owns))

    def _served(self) -> Iterable[tuple[Syncer[Any], Config]]:
        for syncer, config in (*self.fixed, *self._of_entries()):
            missing = self._missing(syncer)
            if missing:
                self.waiting[syncer.name] = missing
            else:
                yield syncer, config

    def _of_entries(self) -> Iterable[tuple[Syncer[Any], Config]]:
        for entry in self.entries:
            found = entry.syncers(self._find)
            if isinstance(found, str):
                self.waiting[entry.name] = found
            else:
                sections = entry.sections()
                yield from ((syncer, sections[syncer.name]) for syncer in found)

    def _missing(self, syncer: Syncer[Any]) -> str:
        """What a syncer lacks, in words; what it can do without doesn't count."""
        firm = [source for source in sources(syncer, self.settings.sections) if not source.optional_with]
        lacking = sorted(
            f"the {source.side} cluster does not serve {source.resource}"
            for source in firm
            if self._discovery(source.side).served(source.resource) is None
        )
        return f"waits: {'; '.join(lacking)}" if lacking else ""

    def _find(self, side: Side, name: str) -> Resource | None:
        """What a name means there. With a group it is the plural: any other kind may have that for a short name."""
        plain, _, version = name.partition("/")
        discovery = self._discovery(side)
        if "." in plain:
            there = (one for one in discovery.resources() if str(one) == plain and version in ("", one.version))
            return next(there, None)
        try:
            return discovery.find(name)
        except Missing:
            return None

    def _discovery(self, side: Side) -> Discovery:
        return self.virtual if side is Side.VIRTUAL else self.host
