"""The base of a syncer's own section of the configuration."""

from syncer.api.patches import Patches
from syncer.api.section import Section


class Config(Section):
    """A syncer's own section; subclass it to add options."""

    enabled: bool = True
    """Whether the kind is synced at all."""

    patches: Patches = Patches()
    """What is changed in objects of this kind just before they are written. A patch that fails parks that object."""
