"""Build the model of ``sync`` from the available syncers, each of which owns its section."""

from collections.abc import Callable, Iterable, Sequence
from types import GenericAlias
from typing import Any

from pydantic import Field, create_model

from syncer.api import Config, NameTranslator, Section, Syncer
from syncer.config.model import SyncerConfig
from syncer.config.options import SyncOptions, VirtualClusterSecretsSection, VirtualClusterSection
from syncer.config.virtual_cluster import field_name

#: The groups of sections below ``sync``.
DIRECTIONS = ("toHost", "fromHost", "fake")


def config_with(
    syncers: Iterable[type[Syncer]],
    *,
    translator: type[NameTranslator] | None = None,
    translators: Callable[[str], type[NameTranslator] | None] | None = None,
) -> type[SyncerConfig]:
    """Return the configuration model with sections for exactly these syncers.

    Args:
        syncers: The classes of the syncers.
        translator: The name translator to use whatever ``names.translator`` says; None to look it
            up.
        translators: Returns the class for a value of ``names.translator``; None if there is none.
    """
    known = tuple(syncers)
    parts: dict[str, Any] = {}
    for direction in DIRECTIONS:
        part = _part(direction, known)
        parts[field_name(direction)] = (part, Field(default=part()))
    sync = create_model("SyncOptions", __base__=SyncOptions, __doc__=SyncOptions.__doc__, **parts)

    own_sync: Any = (sync | None, None)
    entry = create_model(
        "VirtualCluster",
        __base__=VirtualClusterSection,
        __doc__=VirtualClusterSection.__doc__,
        sync=own_sync,
    )
    secrets = create_model(
        "VirtualClusterSecrets",
        __base__=VirtualClusterSecretsSection,
        __doc__=VirtualClusterSecretsSection.__doc__,
        sync=own_sync,
    )
    fields: dict[str, Any] = {
        "virtual_clusters": (GenericAlias(tuple, (entry, ...)), ...),
        "virtual_cluster_secrets": (GenericAlias(tuple, (secrets, ...)), ()),
        "sync": (sync, sync()),
    }
    model = create_model(
        "SyncerConfig",
        __base__=SyncerConfig,
        __doc__=SyncerConfig.__doc__,
        **fields,
    )
    model.syncers = known
    model.translators = staticmethod(translators or (lambda name: translator))
    return model


def _part(direction: str, syncers: Sequence[type[Syncer]]) -> type[Section]:
    """Return the model of a group of sections; of several with the same name, the first wins."""
    owners: dict[str, type[Syncer]] = {}
    for syncer in syncers:
        group, _, name = syncer.section.partition(".")
        if group == direction:
            owners.setdefault(name, syncer)

    fields: dict[str, Any] = {}
    for name, owner in owners.items():
        info = Field(default=owner.config(), alias=name, description=_help(owner))
        fields[field_name(name)] = (owner.config, info)
    return create_model(direction[0].upper() + direction[1:], __base__=Section, **fields)


def _help(owner: type[Syncer]) -> str:
    """Return the help of a section: its docstring, or else the first sentence of its syncer's."""
    own = owner.config.__doc__ if owner.config is not Config else None
    if own:
        return own.strip()
    first, _, _ = (owner.__doc__ or "").partition("\n\n")
    return first.strip()
