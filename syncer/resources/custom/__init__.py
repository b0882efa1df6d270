"""Custom resources without code: syncers made from the ``sync.custom`` section of the configuration."""

from syncer.resources.custom.config import CustomConfig, Related
from syncer.resources.custom.entry import Entry

__all__ = ["CustomConfig", "Entry", "Related"]
