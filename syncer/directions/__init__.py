"""Directions: the way of a syncer's objects, chosen once from its roles.

``ToHost``: a virtual object gets a copy on the host. ``FromHost``: a host object appears on the
virtual side. ``Fake``: an object exists on the virtual side alone. A direction knows which
resources to watch, which rights that takes, which request a changed object belongs to, which host
object a request is about, and which role to call. It checks marks and uids, so that no syncer has
to.
"""

from syncer.directions.choice import Nowhere, direction_class, direction_of
from syncer.directions.direction import Direction, by_path, came_up, collision, resources_of
from syncer.directions.fakes import Fake, FromHostOrFake, ToHostOrFake
from syncer.directions.from_host import FromHost
from syncer.directions.to_host import ToHost, makes_no_copies

__all__ = [
    "Direction",
    "Fake",
    "FromHost",
    "FromHostOrFake",
    "Nowhere",
    "ToHost",
    "ToHostOrFake",
    "by_path",
    "came_up",
    "collision",
    "direction_class",
    "direction_of",
    "makes_no_copies",
    "resources_of",
]
