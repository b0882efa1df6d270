"""Testing of syncers, for authors of plugins too.

* :class:`~syncer.testing.World`: decisions without a cluster, in memory and at once;
* :mod:`syncer.testing.objects`: builders of small objects;
* :mod:`syncer.testing.cases`: cases written in YAML;
* :mod:`syncer.testing.laws`: what holds for every syncer, checked by hypothesis;
* :mod:`syncer.testing.apiserver`: an API server in this process, that kubectl can talk to;
* :mod:`syncer.testing.clock`: asyncio in virtual time.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncer.testing.world import World

__all__ = ["World"]


def __getattr__(name: str) -> Any:
    """Import the engine when a World is first wanted: pytest imports this package wherever it is installed."""
    if name == "World":
        from syncer.testing.world import World

        return World
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
