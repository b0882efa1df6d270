"""The available plugins, and those of them that were loaded."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from syncer.api import NameTranslator, PluginError, Syncer
from syncer.api.contract import ROLES, Fault, syncer_faults, translator_faults
from syncer.api.registration import registered
from syncer.plugins.conflicts import (
    SyncerOrType,
    refuse_conflicts,
    refuse_shared_sections,
    shared_sections,
)
from syncer.plugins.loading import (
    SYNCERS,
    TRANSLATORS,
    FoundPlugin,
    PluginOrigin,
    look_at,
    origin_of,
    problem_of,
    refusal,
)

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
        self._own = list(own)
        self._find_others = others
        self._registered = registered or {}
        self._found: dict[Hashable, FoundPlugin] = {}
        self._origins: dict[type, PluginOrigin] = {}
        for syncer, module in self._registered.items():
            self._origins[syncer] = PluginOrigin("", "", module)

    def syncers(self, named: Iterable[str] = ()) -> Sequence[type[Syncer]]:
        """Return the built-in and registered syncers, and those of plugins with these sections.

        Raises:
            PluginError: One of the plugins can't be used.
        """
        found = self._always()
        # Not those of registered syncers: a plugin with the same section is refused below.
        built_in = {syncer.section for syncer in self.built_in}
        for section in dict.fromkeys(named):
            if section not in built_in:
                found += self._with_section(section)
        refuse_shared_sections(found, self.origin)
        return found

    def known_syncers(self) -> Sequence[str]:
        """Return the last part of each available syncer's section, loaded or not."""
        known = {_last(syncer) for syncer in self._always()}
        known.update(point.name for point in self.others)
        return sorted(known)

    def translator(self, name: str) -> type[NameTranslator] | None:
        """Return the class of a name translator, or None if there is none of this name.

        Raises:
            PluginError: The plugin can't be used.
        """
        points = [point for point in self._own_translators if point.name == name]
        if not points:
            points = [point for point in self._other_translators if point.name == name]
        if not points:
            return None
        _refuse_two(points)
        way_out = ". Set names.translator to another one to start without it"
        found: type[NameTranslator] = self._loaded(points[0], way_out)
        return found

    def known_translators(self) -> Sequence[str]:
        """Return the names of all installed name translators."""
        return sorted({name for name, _ in self.translators()})

    def translators(self) -> Sequence[tuple[str, PluginOrigin]]:
        """Return every installed name translator with its package, without importing it."""
        points = (*self._own_translators, *self._other_translators)
        return [(point.name, origin_of(point)) for point in points]

    @cached_property
    def others(self) -> Sequence[EntryPoint]:
        """The entry points of syncers that are not built in."""
        return [point for point in self._find_others(SYNCERS) if origin_of(point).package != OURS]

    def origin(self, plugin: Any) -> PluginOrigin:
        """Return the origin of a loaded plugin.

        A syncer made from configuration has the origin of its class.
        """
        cls = plugin if isinstance(plugin, type) else type(plugin)
        return self._origins.get(cls, PluginOrigin(OURS, ""))

    def refuse_conflicts(self, syncers: Sequence[SyncerOrType]) -> None:
        """Refuse syncers with the same name, or that would write the same objects.

        Raises:
            PluginError: Two syncers conflict.
        """
        refuse_conflicts(syncers, self.origin)

    def names(self) -> Sequence[str]:
        """Return the names of all available plugins, without importing them."""
        found = [point.name for point in self._points()]
        found.extend(syncer.name for syncer in self._registered)
        return found

    def found(self, names: Collection[str]) -> Iterator[FoundPlugin]:
        """Import the named plugins, and yield them with their problems."""
        for point in self._points():
            if point.name in names:
                yield self._with_conflicts(self._look_at(point))
        for syncer in self._registered:
            if syncer.name in names:
                found = FoundPlugin(SYNCERS, syncer.name, self._origins[syncer], syncer)
                yield self._with_conflicts(found)

    def _points(self) -> Sequence[EntryPoint]:
        return [*self._own_points(), *self._installed()]

    def _own_points(self) -> Sequence[EntryPoint]:
        return [point for point in self._own if point.group in (SYNCERS, TRANSLATORS)]

    def _installed(self) -> Sequence[EntryPoint]:
        """Return the entry points of the plugins that are not built in."""
        return [*self.others, *self._other_translators]

    @cached_property
    def built_in(self) -> Sequence[type[Syncer]]:
        """The built-in syncers."""
        return [self._loaded(point) for point in self._own if point.group == SYNCERS]

    @cached_property
    def _own_plugins(self) -> Sequence[Any]:
        return [self._look_at(point).plugin for point in self._own_points()]

    @property
    def _own_translators(self) -> Sequence[EntryPoint]:
        return [point for point in self._own if point.group == TRANSLATORS]

    @cached_property
    def _other_translators(self) -> Sequence[EntryPoint]:
        points = self._find_others(TRANSLATORS)
        return [point for point in points if origin_of(point).package != OURS]

    def _always(self) -> list[type[Syncer]]:
        """Return the syncers that are loaded in every case."""
        return [*self.built_in, *self._registered]

    def _with_section(self, section: str) -> Sequence[type[Syncer]]:
        """Return the plugins' syncers with a section.

        The section ``toHost.widgets`` is that of the entry point ``widgets``.
        """
        name = section.partition(".")[2]
        points = [point for point in self.others if point.name == name]
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

    def _look_at(self, point: EntryPoint) -> FoundPlugin:
        key = (point.group, point.name, point.value, origin_of(point))
        if key not in self._found:
            faults = self._faults_of(point)
            if point.group == TRANSLATORS:
                faults = translator_faults
            found = look_at(point, faults)
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
            way_out = f"call the entry point {_last(plugin)}"
            return [Fault(f"{why}; {way_out}", "section")]

        return faults

    def _with_conflicts(self, found: FoundPlugin) -> FoundPlugin:
        """Return the same plugin, with the conflicts that keep it from being used."""
        if found.problems or found.plugin in self._own_plugins:
            return found

        faults: list[Fault] = []
        name = (found.group, found.name)
        points = [point for point in self._installed() if (point.group, point.name) == name]
        packages = [str(origin_of(point)) for point in points]
        if len(packages) > 1 and not found.origin.module:
            both = " and ".join(packages)
            faults.append(Fault(f"is offered by {both}. Uninstall all but one"))
        elif found.group == SYNCERS:
            others = [syncer for syncer in self._always() if syncer is not found.plugin]
            for syncer, why in shared_sections([*others, found.plugin], self.origin):
                if syncer is found.plugin:
                    faults.append(Fault(why, "section"))

        problems = tuple(problem_of(found.plugin, fault) for fault in faults)
        return found._replace(problems=problems)


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
    return Installed(own, _points_of_all_packages, registered())


def _points_of_all_packages(group: str) -> Iterable[EntryPoint]:
    return entry_points(group=group)


def roles_of(syncer: type[Syncer]) -> list[str]:
    """Return the names of a syncer's roles, such as ``SyncDown``."""
    return [role.__name__ for role in ROLES if issubclass(syncer, role)]


def _last(syncer: type[Syncer]) -> str:
    """Return the last part of a section: ``widgets`` of ``toHost.widgets``."""
    return syncer.section.partition(".")[2]


def _refuse_two(points: Sequence[EntryPoint]) -> None:
    """Refuse a plugin that several packages offer.

    Raises:
        PluginError: They do.
    """
    different = {(point.value, origin_of(point)) for point in points}
    if len(different) > 1:
        first = points[0]
        both = " and ".join(str(origin_of(point)) for point in points)
        why = f"is offered by {both}. Uninstall all but one"
        raise refusal(first.name, origin_of(first), why)
