"""Build the model of ``sync`` from the available syncers, each of which owns its section."""

from collections.abc import Callable, Iterable, Sequence
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
    parts = {field_name(direction): _part(direction, known) for direction in DIRECTIONS}
    fields: dict[str, Any] = {name: (part, Field(default=part())) for name, part in parts.items()}
    sync = create_model("SyncOptions", __base__=SyncOptions, __doc__=SyncOptions.__doc__, **fields)
    entry = create_model(
        "VirtualCluster",
        __base__=VirtualClusterSection,
        __doc__=VirtualClusterSection.__doc__,
        sync=(sync | None, None),  # type: ignore[arg-type]
    )
    secrets = create_model(
        "VirtualClusterSecrets",
        __base__=VirtualClusterSecretsSection,
        __doc__=VirtualClusterSecretsSection.__doc__,
        sync=(sync | None, None),  # type: ignore[arg-type]
    )
    made = create_model(
        "SyncerConfig",
        __base__=SyncerConfig,
        __doc__=SyncerConfig.__doc__,
        virtual_clusters=(tuple[entry, ...], ...),  # type: ignore[valid-type]
        virtual_cluster_secrets=(tuple[secrets, ...], ()),  # type: ignore[valid-type]
        sync=(sync, sync()),
    )
    made.syncers, made.translators = known, staticmethod(translators or (lambda name: translator))
    return made


def _part(direction: str, syncers: Sequence[type[Syncer]]) -> type[Section]:
    owners: dict[str, type[Syncer]] = {}
    for syncer in syncers:
        where, _, name = syncer.section.partition(".")
        if where == direction:
            owners.setdefault(name, syncer)
    fields: dict[str, Any] = {
        field_name(name): (owner.config, Field(default=owner.config(), alias=name, description=_help(owner)))
        for name, owner in owners.items()
    }
    return create_model(direction[0].upper() + direction[1:], __base__=Section, **fields)


def _help(owner: type[Syncer]) -> str:
    """Return the help of a section: its own docstring, or else the first sentence of its syncer's."""
    own = owner.config.__doc__ if owner.config is not Config else None
    return (own or (owner.__doc__ or "").partition("\n\n")[0]).strip()
