"""Custom resources without code: syncers that are made from entries of ``sync.custom`` in the configuration."""

from syncer.resources.custom.config import CustomConfig, Related
from syncer.resources.custom.entry import Entry

__all__ = ["CustomConfig", "Entry", "Related"]
