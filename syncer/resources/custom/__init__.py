"""Custom resources without code: syncers from the section ``sync.custom`` of the configuration."""

from syncer.resources.custom.config import CustomConfig, Related
from syncer.resources.custom.entry import CustomEntry

__all__ = ["CustomConfig", "CustomEntry", "Related"]
