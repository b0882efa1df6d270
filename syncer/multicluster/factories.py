"""Factories of controllers that other packages offer, as plugins do for syncers.

A package offers one by an entry point, which has a name and leads to the function::

    [options.entry_points]
    syncer.controllers =
        backups = acme.backups:controller
"""

from collections.abc import Collection, Sequence
from importlib.metadata import entry_points
from typing import Any

from syncer.api.contract import Fault
from syncer.api.errors import PluginError
from syncer.multicluster.registry import ControllerFactory
from syncer.plugins.loading import look_at, origin_of, refusal

#: The group of the entry points.
GROUP = "syncer.controllers"


def known_factories() -> Sequence[str]:
    """Return the names of the factories that installed packages offer; none is imported."""
    return sorted(set(entry_points(group=GROUP).names))


def installed_factories(names: Collection[str] | None = None) -> Sequence[ControllerFactory]:
    """Return factories that installed packages offer, by their names; only these are imported. None
    is all of them.

    They are in the order of the names, for a :class:`~syncer.multicluster.ClusterRegistry`::

        ClusterRegistry(manage, factories=[pods_controller, *installed_factories(["backups"])])

    Raises:
        PluginError: There is none of a name, there are several, or it can't be imported or called.
    """
    if names is None:
        names = known_factories()
    return [_loaded(name) for name in names]


def _loaded(name: str) -> ControllerFactory:
    points = {}
    for each in entry_points(group=GROUP, name=name):
        points[each.value, origin_of(each)] = each
    if not points:
        known = ", ".join(known_factories()) or "none"
        why = "no installed package offers such a factory of controllers"
        raise PluginError(name, f"{why}; there are: {known}")
    point, *others = points.values()
    if others:
        both = " and ".join(str(origin_of(each)) for each in (point, *others))
        raise refusal(name, origin_of(point), f"is offered by {both}. Uninstall all but one")
    found = look_at(point, _faults)
    if found.problems:
        raise found.error()
    factory: ControllerFactory = found.plugin
    return factory


def _faults(plugin: Any) -> Sequence[Fault]:
    if callable(plugin):
        return []
    return [Fault(f"is no function of a Spawned, but {plugin!r}")]
