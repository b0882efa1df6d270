"""Which of the configured syncers can work: those whose resources are served, by both sides, as of the last look."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.errors import Missing
from syncer.api.objects import Resource, Side
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
        firm = [source for source in sources(syncer, self.settings.sections) if not source.needs]
        lacking = sorted(
            f"the {source.side} cluster does not serve {source.resource}"
            for source in firm
            if self._discovery(source.side).served(source.resource) is None
        )
        return f"waits: {'; '.join(lacking)}" if lacking else ""

    def _find(self, side: Side, name: str) -> Resource | None:
        try:
            return self._discovery(side).find(name)
        except Missing:
            return None

    def _discovery(self, side: Side) -> Discovery:
        return self.virtual if side is Side.VIRTUAL else self.host
