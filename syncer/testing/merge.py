"""JSON merge patches, for tests that change objects."""

from syncer.translate.merge_patch import merged

__all__ = ["merged"]
