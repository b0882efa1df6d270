"""Custom resources without code: syncers from the section ``sync.custom`` of the configuration."""

from syncer.resources.custom.config import CustomConfig, Related
from syncer.resources.custom.entry import Entry

__all__ = ["CustomConfig", "Entry", "Related"]
