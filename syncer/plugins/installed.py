"""The available plugins, and those of them that were loaded."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from syncer.api import NameTranslator, PluginError, Syncer
from syncer.api.contract import ROLES, Fault, syncer_faults, translator_faults
from syncer.api.registration import registered
from syncer.plugins.conflicts import AnySyncer, refuse_conflicts, refuse_shared_sections, shared_sections
from syncer.plugins.loading import SYNCERS, TRANSLATORS, Found, Origin, look_at, origin_of, problem_of, refusal

#: The distribution of the built-in plugins.
OURS = "vsyncer"


class Installed:
    """The available plugins. Built-in and registered ones are always loaded, others on demand."""

    def __init__(
        self,
        own: Iterable[EntryPoint],
        others: Callable[[str], Iterable[EntryPoint]],
        registered: Mapping[type[Syncer], str] | None = None,
    ) -> None:
        """Create the list of plugins.

        Args:
            own: The entry points of the built-in plugins.
            others: Returns the entry points of a group. It reads every distribution, so it is
                called late or never.
            registered: The classes that the program registered, each with its module.
        """
        self._own, self._find_others = list(own), others
        self._registered = registered or {}
        self._found: dict[Hashable, Found] = {}
        self._origins = {syncer: Origin("", "", module) for syncer, module in self._registered.items()}

    def syncers(self, named: Iterable[str] = ()) -> Sequence[type[Syncer]]:
        """Return the built-in and registered syncers, and those of plugins with these sections.

        Raises:
            PluginError: One of the plugins can't be used.
        """
        found, own = self._always(), {syncer.section for syncer in self.built_in}
        for section in dict.fromkeys(named):
            if section not in own:
                found += self._with_section(section)
        refuse_shared_sections(found, self.origin)
        return found

    def known_syncers(self) -> Sequence[str]:
        """Return the last part of each available syncer's section, loaded or not."""
        known = {_last(syncer) for syncer in self._always()}
        return sorted(known | {point.name for point in self.others})

    def translator(self, name: str) -> type[NameTranslator] | None:
        """Return the class of a name translator, or None if there is none of this name.

        Raises:
            PluginError: The plugin can't be used.
        """
        points = [point for point in self._own if (point.group, point.name) == (TRANSLATORS, name)]
        points = points or [point for point in self._other_translators if point.name == name]
        if not points:
            return None
        _refuse_two(points)
        made: type[NameTranslator] = self._loaded(
            points[0], ". Set names.translator to another one to start without it"
        )
        return made

    def known_translators(self) -> Sequence[str]:
        """Return the names of all installed name translators."""
        return sorted({name for name, _ in self.translators()})

    def translators(self) -> Sequence[tuple[str, Origin]]:
        """Return every installed name translator with its package, without importing it."""
        own = [point for point in self._own if point.group == TRANSLATORS]
        return [(point.name, origin_of(point)) for point in (*own, *self._other_translators)]

    @cached_property
    def others(self) -> Sequence[EntryPoint]:
        """The entry points of syncers that are not built in."""
        return [point for point in self._find_others(SYNCERS) if origin_of(point).package != OURS]

    def origin(self, plugin: Any) -> Origin:
        """Return the origin of a loaded plugin.

        A syncer made from configuration has the origin of its class.
        """
        return self._origins.get(plugin if isinstance(plugin, type) else type(plugin), Origin(OURS, ""))

    def refuse_conflicts(self, syncers: Sequence[AnySyncer]) -> None:
        """Refuse syncers with the same name, or that would write the same objects.

        Raises:
            PluginError: Two syncers conflict.
        """
        refuse_conflicts(syncers, self.origin)

    def names(self) -> Sequence[str]:
        """Return the names of all available plugins, without importing them."""
        return [*(point.name for point in self._points()), *(syncer.name for syncer in self._registered)]

    def found(self, names: Collection[str]) -> Iterator[Found]:
        """Import the named plugins, and yield them with their problems."""
        for point in self._points():
            if point.name in names:
                yield self._fitting(self._look_at(point))
        for syncer in self._registered:
            if syncer.name in names:
                yield self._fitting(Found(SYNCERS, syncer.name, self._origins[syncer], syncer))

    def _points(self) -> Sequence[EntryPoint]:
        return [*(point for point in self._own if point.group in (SYNCERS, TRANSLATORS)), *self._installed()]

    def _installed(self) -> Sequence[EntryPoint]:
        return [*self.others, *self._other_translators]

    @cached_property
    def built_in(self) -> Sequence[type[Syncer]]:
        """The built-in syncers."""
        return [self._loaded(point) for point in self._own if point.group == SYNCERS]

    @cached_property
    def _own_plugins(self) -> Sequence[Any]:
        return [self._look_at(point).plugin for point in self._own if point.group in (SYNCERS, TRANSLATORS)]

    @cached_property
    def _other_translators(self) -> Sequence[EntryPoint]:
        return [point for point in self._find_others(TRANSLATORS) if origin_of(point).package != OURS]

    def _always(self) -> list[type[Syncer]]:
        return [*self.built_in, *self._registered]

    def _with_section(self, section: str) -> Sequence[type[Syncer]]:
        points = [point for point in self.others if point.name == section.partition(".")[2]]
        _refuse_two(points)
        way_out = f". Take sync.{section} out of the configuration to start without it"
        found = [self._loaded(point, way_out) for point in points]
        return [syncer for syncer in found if syncer.section == section]

    def _loaded(self, point: EntryPoint, way_out: str = "") -> type[Any]:
        found = self._look_at(point)
        if found.problems:
            raise found.error(way_out)
        plugin: type[Any] = found.plugin
        return plugin

    def _look_at(self, point: EntryPoint) -> Found:
        key = (point.group, point.name, point.value, origin_of(point))
        if key not in self._found:
            found = look_at(point, translator_faults if point.group == TRANSLATORS else self._faults_of(point))
            self._found[key] = found
            if isinstance(found.plugin, type):
                self._origins[found.plugin] = found.origin
        return self._found[key]

    def _faults_of(self, point: EntryPoint) -> Callable[[Any], Sequence[Fault]]:
        """Return the check for a syncer.

        A plugin's syncer is found by its section, so its entry point must have the same name.
        """

        def faults(plugin: Any) -> Sequence[Fault]:
            found = syncer_faults(plugin)
            if found or point in self._own or _last(plugin) == point.name:
                return found
            why = f"its section is {plugin.section}, but its entry point is called {point.name}"
            return [Fault(f"{why}; call the entry point {_last(plugin)}", "section")]

        return faults

    def _fitting(self, found: Found) -> Found:
        """Return the same plugin, with the conflicts that keep it from being used."""
        if found.problems or found.plugin in self._own_plugins:
            return found
        faults = [Fault(f"is offered by {both}. Uninstall all but one") for both in self._offers(found)]
        if not faults and found.group == SYNCERS:
            beside = [syncer for syncer in self._always() if syncer is not found.plugin]
            shared = shared_sections([*beside, found.plugin], self.origin)
            faults = [Fault(why, "section") for syncer, why in shared if syncer is found.plugin]
        return found._replace(problems=tuple(problem_of(found.plugin, fault) for fault in faults))

    def _offers(self, found: Found) -> Iterator[str]:
        """Yield the packages that offer a plugin of this name, if there are several."""
        points = [point for point in self._installed() if (point.group, point.name) == (found.group, found.name)]
        origins = [str(origin_of(point)) for point in points]
        if len(origins) > 1 and not found.origin.module:
            yield " and ".join(origins)


def installed() -> Installed:
    """Return the plugins of this Python environment.

    Raises:
        PluginError: The built-in plugins are not registered.
    """
    try:
        own = distribution(OURS).entry_points
    except PackageNotFoundError:
        why = "the package vsyncer itself is not installed: run `pip install -e .` in its tree"
        raise PluginError("(built-in)", why) from None
    return Installed(own, lambda group: entry_points(group=group), registered())


def roles_of(syncer: type[Syncer]) -> list[str]:
    """Return the names of a syncer's roles, such as ``SyncDown``."""
    return [role.__name__ for role in ROLES if issubclass(syncer, role)]


def _last(syncer: type[Syncer]) -> str:
    """Do what comes after everything else; where it fails, that is all there is to do by hand."""
    return syncer.section.partition(".")[2]


def _refuse_two(points: Sequence[EntryPoint]) -> None:
    if len({(point.value, origin_of(point)) for point in points}) > 1:
        both = " and ".join(str(origin_of(point)) for point in points)
        raise refusal(points[0].name, origin_of(points[0]), f"is offered by {both}. Uninstall all but one")
