"""Syncers of the tests' own, as small as they come."""

from harness import HOME, NAMESPACE, Two

from syncer.api import Config, Mirror, Resource
from syncer.resources.kinds import CONFIG_MAPS

WIDGETS = Resource("example.org/v1", "Widget", "widgets")


class Widgets(Mirror[Config]):
    """A kind that may not be there."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up = ("status",)


class Maps(Mirror[Config]):
    """All ConfigMaps."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)


def copies(two: Two, plural: str = "configmaps") -> set[str]:
    """The names of the shop's objects that have copies."""
    tail = f"-x-{NAMESPACE}-x-vc"
    return {
        copy["metadata"]["name"].removesuffix(tail)
        for copy in two.host.objects(plural, HOME)
        if copy["metadata"]["name"].endswith(tail)
    }
