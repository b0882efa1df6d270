"""Refuses syncers that conflict: with the same name, the same section, or the same objects."""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence

from syncer.api import Side, Syncer
from syncer.directions import direction_class, makes_no_copies
from syncer.plugins.loading import PluginOrigin, refusal

#: A syncer or its class: both have a name, resources and a section.
SyncerOrType = Syncer | type[Syncer]
OriginOf = Callable[[SyncerOrType], PluginOrigin]


def refuse_conflicts(syncers: Sequence[SyncerOrType], origin: OriginOf) -> None:
    """Refuse syncers with the same name, or that would write the same objects.

    Raises:
        PluginError: Two syncers conflict.
    """
    for syncer, other, claim in clashes(syncers):
        why = f"{claim} {other.name} ({origin(other).phrase})"
        way_out = f"Set sync.{syncer.section}.enabled or sync.{other.section}.enabled to false"
        raise refusal(syncer.name, origin(syncer), f"{why}. {way_out}")


def clashes(syncers: Sequence[SyncerOrType]) -> Iterator[tuple[SyncerOrType, SyncerOrType, str]]:
    """Yield each syncer that conflicts with an earlier one.

    Yields both, and the reason: a sentence that ends before the name of the earlier one.
    """
    claimants: dict[Hashable, SyncerOrType] = {}
    for syncer in syncers:
        for key, claim in _claims(syncer):
            if key in claimants:
                yield syncer, claimants[key], claim
            else:
                claimants[key] = syncer


def shared_sections(
    syncers: Sequence[type[Syncer]],
    origin: OriginOf,
) -> Iterator[tuple[SyncerOrType, str]]:
    """Yield each syncer that has the section of an earlier one and can't share it, with the reason.

    Syncers of one package may share a section if it has the same meaning for each.
    """
    owners: dict[str, type[Syncer]] = {}
    for syncer in syncers:
        # Sections that differ in case or in dashes alone would be mistaken for each other.
        folded = re.sub("[^a-z0-9.]", "", syncer.section.lower())
        owner = owners.setdefault(folded, syncer)
        has = f"has the section {syncer.section}, and {owner.name} ({origin(owner).phrase})"
        if owner.section != syncer.section:
            yield syncer, f"{has} has {owner.section}. Give it a section that is called otherwise"
        elif origin(owner) != origin(syncer):
            yield syncer, f"{has} has it, too. Give it a section of its own"
        elif owner.config is not syncer.config:
            yield syncer, f"{has} has it, too, with other options. Let both have one config"


def refuse_shared_sections(syncers: Sequence[type[Syncer]], origin: OriginOf) -> None:
    """Refuse syncers that have the same section and can't share it.

    Raises:
        PluginError: Two syncers conflict.
    """
    for syncer, why in shared_sections(syncers, origin):
        raise refusal(syncer.name, origin(syncer), why)


def _claims(syncer: SyncerOrType) -> Iterator[tuple[Hashable, str]]:
    """Yield the names and objects that a syncer claims, each with a phrase for messages."""
    yield syncer.name, f"is called {syncer.name}, as is"

    cls = syncer if isinstance(syncer, type) else type(syncer)
    direction = direction_class(cls)
    sides: list[Side] = []
    if direction.goes_down and not makes_no_copies(cls):
        sides.append(Side.HOST)
    if direction.comes_up or direction.fakes:
        sides.append(Side.VIRTUAL)
    for side in sides:
        key = (side, str(syncer.resource), str(syncer.host_resource))
        yield key, f"makes the {side} copies of {syncer.resource}, as does"
