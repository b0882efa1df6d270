"""Finds the plugins that are installed, and imports the built-in ones and those that the configuration names."""

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any, NamedTuple

from syncer.api import (
    API_VERSION,
    Config,
    FakeSyncUp,
    NameTranslator,
    OwnController,
    PluginError,
    Sync,
    SyncDown,
    Syncer,
    SyncUp,
)

#: The entry-point groups.
SYNCERS = "syncer.syncers"
TRANSLATORS = "syncer.names"
#: The distribution whose plugins are the built-in ones.
OURS = "vsyncer"

#: A syncer must have at least one of these, or it could never be asked anything.
ROLES = (SyncDown, Sync, SyncUp, FakeSyncUp, OwnController)
_SECTION = re.compile(r"(toHost|fromHost|fake)\.[A-Za-z][A-Za-z0-9-]*")
_TRANSLATES = ("to_host", "to_virtual", "host_namespaces")


class Origin(NamedTuple):
    """The installed package that a plugin comes from."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


class Installed:
    """All plugins that are installed. Built-in ones are always loaded, any other only when it is asked for by name."""

    def __init__(self, own: Iterable[EntryPoint], others: Callable[[str], Iterable[EntryPoint]]) -> None:
        """``others`` gives the entry points of a group; it reads every distribution, so it is called late or never."""
        self._own, self._find_others = list(own), others
        self._loaded: dict[str, type[Any]] = {}
        self._origins: dict[type[Any], Origin] = {}

    def syncers(self, named: Iterable[str] = ()) -> Sequence[type[Syncer]]:
        """The built-in syncers, and those of plugins with one of these sections. Raises PluginError."""
        found = list(self._built_in)
        for section in dict.fromkeys(named):
            if all(syncer.section != section for syncer in found):
                found += self._with_section(section)
        _refuse_shared_sections(found)
        return found

    def known_syncers(self) -> Sequence[str]:
        """The last parts of the sections of all syncers that are installed, loaded or not."""
        own = {syncer.section.partition(".")[2] for syncer in self._built_in}
        return sorted(own | {point.name for point in self.others})

    def translator(self, name: str) -> type[NameTranslator] | None:
        """The class of a name translator, or None where nobody offers one of this name. Raises PluginError."""
        points = [point for point in self._own if (point.group, point.name) == (TRANSLATORS, name)]
        points = points or [point for point in self._other_translators if point.name == name]
        if not points:
            return None
        _refuse_two(points)
        return self._load(points[0], _checked_translator)

    def known_translators(self) -> Sequence[str]:
        """The names of all name translators that are installed."""
        return sorted({name for name, _ in self.translators()})

    def translators(self) -> Sequence[tuple[str, Origin]]:
        """Every name translator that is installed, and the package that it comes from; nothing is imported."""
        own = [point for point in self._own if point.group == TRANSLATORS]
        return [(point.name, origin_of(point)) for point in (*own, *self._other_translators)]

    @cached_property
    def others(self) -> Sequence[EntryPoint]:
        """The entry points of syncers that aren't built in."""
        return [point for point in self._find_others(SYNCERS) if origin_of(point).package != OURS]

    def origin(self, plugin: type[Any]) -> Origin:
        """The package that a loaded plugin comes from."""
        return self._origins.get(plugin, Origin("", ""))

    def refuse_conflicts(self, syncers: Sequence[type[Syncer]]) -> None:
        """Raises PluginError where two syncers have one name, or would write the same objects in one direction."""
        seen: dict[Any, type[Syncer]] = {}
        for syncer in syncers:
            direction = syncer.section.partition(".")[0]
            for key, what in (
                (syncer.name, f"is called {syncer.name}"),
                ((syncer.resource, syncer.host_resource, direction), f"syncs {syncer.resource} in {direction}"),
            ):
                if key in seen:
                    raise self._conflict(syncer, seen[key], what)
                seen[key] = syncer

    def _conflict(self, syncer: type[Syncer], other: type[Syncer], what: str) -> PluginError:
        origin = self.origin(syncer)
        why = (
            f"{what}, and so does {other.name} (from {self.origin(other)}). "
            f"Set sync.{syncer.section}.enabled or sync.{other.section}.enabled to false"
        )
        return PluginError(syncer.name, why, package=origin.package, version=origin.version)

    @cached_property
    def _built_in(self) -> Sequence[type[Syncer]]:
        return [self._load(point, _checked_syncer) for point in self._own if point.group == SYNCERS]

    @cached_property
    def _other_translators(self) -> Sequence[EntryPoint]:
        return [point for point in self._find_others(TRANSLATORS) if origin_of(point).package != OURS]

    def _with_section(self, section: str) -> Sequence[type[Syncer]]:
        points = [point for point in self.others if point.name == section.partition(".")[2]]
        _refuse_two(points)
        found = [self._load(point, _checked_syncer) for point in points]
        return [syncer for syncer in found if syncer.section == section]

    def _load(self, point: EntryPoint, check: Callable[[Any], str]) -> type[Any]:
        key = f"{point.group}:{point.name}:{point.value}"
        if key not in self._loaded:
            plugin = _imported(point)
            if fault := check(plugin):
                raise _error(point, f"{fault}{_place(plugin)}")
            self._loaded[key] = plugin
            self._origins[plugin] = origin_of(point)
        return self._loaded[key]


def installed() -> Installed:
    """The plugins of this Python environment. Raises PluginError where not even the built-in ones are registered."""
    try:
        own = distribution(OURS).entry_points
    except PackageNotFoundError:
        why = "the package vsyncer itself is not installed: run `pip install -e .` in its tree"
        raise PluginError("(built-in)", why) from None
    return Installed(own, lambda group: entry_points(group=group))


def origin_of(point: EntryPoint) -> Origin:
    """The package that an entry point belongs to."""
    dist = point.dist
    return Origin(dist.name, dist.version) if dist else Origin("an unknown package", "")


def roles_of(syncer: type[Syncer]) -> list[str]:
    """The names of the roles that a syncer has, such as ``SyncDown``."""
    return [role.__name__ for role in ROLES if issubclass(syncer, role)]


def _error(point: EntryPoint, why: str) -> PluginError:
    origin = origin_of(point)
    return PluginError(point.name, why, package=origin.package, version=origin.version)


def _imported(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        why = f"cannot be imported: {type(error).__name__}: {error} ({_raised_at(error) or point.value})"
        raise _error(point, why) from error


def _raised_at(error: Exception) -> str:
    """The line of the plugin that raised, without the import machinery around and below it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    return f"{ours[-1].filename}:{ours[-1].lineno}" if ours else ""


def _place(plugin: Any) -> str:
    try:
        return f" ({inspect.getsourcefile(plugin)}:{inspect.getsourcelines(plugin)[1]})"
    except (OSError, TypeError):  # no source, or no class at all
        return ""


def _refuse_two(points: Sequence[EntryPoint]) -> None:
    if len({(point.value, origin_of(point)) for point in points}) > 1:
        both = " and ".join(str(origin_of(point)) for point in points)
        raise _error(points[0], f"is offered by {both}. Uninstall all but one")


def _refuse_shared_sections(syncers: Sequence[type[Syncer]]) -> None:
    """Several syncers may share a section, as those that make up pods do; then it means the same to each."""
    owners: dict[str, type[Syncer]] = {}
    for syncer in syncers:
        owner = owners.setdefault(syncer.section, syncer)
        if owner.config is not syncer.config:
            why = f"has the section {syncer.section}, which belongs to {owner.name}, and other options in it"
            raise PluginError(syncer.name, f"{why}{_place(syncer)}")


def _checked_syncer(plugin: Any) -> str:
    """What is wrong with a syncer, or ``""``."""
    if not (inspect.isclass(plugin) and issubclass(plugin, Syncer)):
        return f"{plugin!r} is not a subclass of syncer.api.Syncer"
    if plugin.api_version != API_VERSION:
        return f"was written for version {plugin.api_version} of the plugin API; this is version {API_VERSION}"
    if lacking := [name for name in ("name", "resource", "section") if not hasattr(plugin, name)]:
        return f"{plugin.__name__} doesn't set {', '.join(lacking)}"
    if missing := sorted(plugin.__abstractmethods__):
        return f"{plugin.__name__} lacks the method {', '.join(missing)}"
    if not issubclass(plugin, ROLES):
        return f"{plugin.__name__} has no role; derive it from {', '.join(role.__name__ for role in ROLES)} or Mirror"
    if not _SECTION.fullmatch(plugin.section):
        return f"its section {plugin.section!r} is not of the form toHost.name, fromHost.name or fake.name"
    if not issubclass(plugin.config, Config):
        return f"its config {plugin.config!r} is not a subclass of syncer.api.Config"
    return ""


def _checked_translator(plugin: Any) -> str:
    """What is wrong with a name translator, or ``""``."""
    if not inspect.isclass(plugin):
        return f"{plugin!r} is not a class"
    if missing := [name for name in _TRANSLATES if not callable(getattr(plugin, name, None))]:
        return f"{plugin.__name__} lacks the method {', '.join(missing)}"
    return ""
