"""Finds installed and registered plugins; imports those that are built in or configured."""

from syncer.plugins.conflicts import clashes
from syncer.plugins.installed import OURS, Installed, installed, roles_of
from syncer.plugins.loading import (
    SYNCERS,
    TRANSLATORS,
    FoundPlugin,
    PluginOrigin,
    origin_of,
    raised_by,
)

__all__ = [
    "OURS",
    "SYNCERS",
    "TRANSLATORS",
    "FoundPlugin",
    "Installed",
    "PluginOrigin",
    "clashes",
    "installed",
    "origin_of",
    "raised_by",
    "roles_of",
]
