"""Refuses syncers that can't be there together: two of one name, of one section, or for the same objects."""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence

from syncer.api import Side, Syncer
from syncer.directions import way_of
from syncer.plugins.loading import Origin, refusal

#: A syncer, or its class: names, resources and sections can be asked of both.
AnySyncer = Syncer | type[Syncer]
OriginOf = Callable[[AnySyncer], Origin]


def refuse_conflicts(syncers: Sequence[AnySyncer], origin: OriginOf) -> None:
    """Raise PluginError where two syncers have one name, or would write the same objects."""
    for syncer, other, what in clashes(syncers):
        way_out = f"Set sync.{syncer.section}.enabled or sync.{other.section}.enabled to false"
        raise refusal(syncer.name, origin(syncer), f"{what} {other.name} ({origin(other).phrase}). {way_out}")


def clashes(syncers: Sequence[AnySyncer]) -> Iterator[tuple[AnySyncer, AnySyncer, str]]:
    """Each syncer that can't be on together with one before it: both, and the beginning of a sentence why."""
    seen: dict[Hashable, AnySyncer] = {}
    for syncer in syncers:
        for key, what in _claims(syncer):
            if key in seen:
                yield syncer, seen[key], what
            seen.setdefault(key, syncer)


def shared_sections(syncers: Sequence[type[Syncer]], origin: OriginOf) -> Iterator[tuple[AnySyncer, str]]:
    """Each syncer with a section that belongs to one before it, and why it can't be shared.

    Several syncers of one package may share a section, as long as it means the same to each.
    """
    owners: dict[str, type[Syncer]] = {}
    for syncer in syncers:
        owner = owners.setdefault(_folded(syncer.section), syncer)
        has = f"has the section {syncer.section}, and {owner.name} ({origin(owner).phrase})"
        if owner.section != syncer.section:
            yield syncer, f"{has} has {owner.section}. Give it a section that is called otherwise"
        elif origin(owner) != origin(syncer):
            yield syncer, f"{has} has it, too. Give it a section of its own"
        elif owner.config is not syncer.config:
            yield syncer, f"{has} has it, too, with other options. Let both have one config"


def refuse_shared_sections(syncers: Sequence[type[Syncer]], origin: OriginOf) -> None:
    """Raise PluginError where a section belongs to several syncers that can't share it."""
    for syncer, why in shared_sections(syncers, origin):
        raise refusal(syncer.name, origin(syncer), why)


def _claims(syncer: AnySyncer) -> Iterator[tuple[Hashable, str]]:
    """Yield what only one syncer may have, each with the words for it."""
    yield syncer.name, f"is called {syncer.name}, as is"
    way = way_of(syncer if isinstance(syncer, type) else type(syncer))
    for side, makes in ((Side.HOST, way.goes_down), (Side.VIRTUAL, way.comes_up or way.fakes)):
        if makes:
            what = f"makes the {side} copies of {syncer.resource}, as does"
            yield (side, str(syncer.resource), str(syncer.host_resource)), what


def _folded(section: str) -> str:
    return re.sub("[^a-z0-9.]", "", section.lower())
