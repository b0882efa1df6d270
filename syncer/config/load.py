"""From a file, the environment and flags to a configuration, or to all that is wrong with them at once."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from syncer.api import ConfigError, NameTranslator, Problem, Syncer
from syncer.config import checks
from syncer.config.document import Document, Steps, dotted, read
from syncer.config.model import Names, SyncerConfig
from syncer.config.problems import explained, guess
from syncer.config.sections import DIRECTIONS, config_with
from syncer.config.types import model_in

DEFAULT = "default"


class Plugins(Protocol):
    """What can be configured: the built-in syncers, and the plugins that are installed."""

    def syncers(self, named: Iterable[str] = ()) -> Sequence[type[Syncer]]:
        """The classes of the built-in syncers and of the plugins with these sections (``toHost.widgets``).

        Raises PluginError where one that is named can't be used; ignores names that nobody offers.
        """
        ...

    def known_syncers(self) -> Sequence[str]:
        """The last parts of the sections of all plugins that are installed, loaded or not."""
        ...

    def translator(self, name: str) -> type[NameTranslator] | None:
        """The class of a name translator, or None where nobody offers one of this name."""
        ...

    def known_translators(self) -> Sequence[str]:
        """The names of all name translators that are installed."""
        ...

    def refuse_conflicts(self, syncers: Sequence[Syncer | type[Syncer]]) -> None:
        """Raises PluginError where two of the syncers that are on would write the same objects."""
        ...


@dataclass(frozen=True, slots=True)
class Override:
    """A value that a flag or a variable of the environment gives for an option; ``origin`` names it."""

    path: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and where each of its values comes from."""

    config: SyncerConfig
    #: Dotted path of each value that was given → ``syncer.yaml:9``, ``SYNCER_LOG_LEVEL`` or ``--log-level``.
    origins: Mapping[str, str] = field(default_factory=dict)

    def origin(self, path: str) -> str:
        """Where a value comes from; ``default`` where nobody gave it."""
        return self.origins.get(path, DEFAULT)


def load(path: str | None, plugins: Plugins, overrides: Sequence[Override] = ()) -> Loaded:
    """The configuration in a file, or of the overrides alone. Later overrides win.

    Raises ConfigError with every problem found, PluginError where a plugin that the file names can't be used.
    """
    return build(read(path) if path else Document(), plugins, overrides)


def build(document: Document, plugins: Plugins, overrides: Sequence[Override] = ()) -> Loaded:
    """The configuration in a document that was read already; otherwise as ``load``."""
    name = _translator_name(document.data, overrides)
    syncers = plugins.syncers(_sections(document.data))
    model = config_with(syncers, translator=plugins.translator(name))
    given = _Given(document, model, overrides)
    config, problems = _validated(given, model, plugins)
    problems += [*document.problems, *_format(document), *_translator(given, name, model, plugins)]
    problems += [given.report(steps, message, "") for steps, message in checks.across(given.data, model)]
    if problems or config is None:
        raise ConfigError(*sorted(problems, key=lambda problem: problem.line or 0))
    custom = [syncer for entry in config.custom_entries() for syncer in entry.assumed()[:1]]
    plugins.refuse_conflicts([*(type(enabled.syncer) for enabled in config.enabled()), *custom])
    return Loaded(config, given.origins)


def model_for(path: str | None, plugins: Plugins) -> type[SyncerConfig]:
    """The model of a configuration with the built-in syncers and the plugins that a file names, if there is one."""
    document = read(path) if path else Document()
    return config_with(plugins.syncers(_sections(document.data)), translator=plugins.translator(Names().translator))


class _Given:
    """The file's values with the overrides on top, and where each value comes from."""

    def __init__(self, document: Document, model: type[SyncerConfig], overrides: Sequence[Override]) -> None:
        self._document = document
        self.data: dict[str, Any] = _filled(document.data, model)
        self.origins = {dotted(steps): f"{document.file}:{line}" for steps, line in document.lines.items() if steps}
        self._overridden: dict[str, str] = {}
        for override in overrides:
            self._put(override)

    def _put(self, override: Override) -> None:
        *parents, last = override.path.split(".")
        place = self.data
        for parent in parents:
            inner = place.setdefault(parent, {})
            if not isinstance(inner, dict):
                return  # the file has something else than a section there, which is a problem of its own
            place = inner
        place[last] = override.value
        self.origins[override.path] = self._overridden[override.path] = override.origin

    def report(self, steps: Steps, message: str, hint: str) -> Problem:
        origin = self._overridden.get(dotted(steps))
        if origin:
            return Problem(message, path=dotted(steps), file=origin, hint=hint)
        return self._document.problem(steps, message, hint)


def _filled(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """A copy that overrides may change. A section with nothing in it (``metrics:``) is one with all its defaults."""
    return {key: _filled_value(value, model_in(model, (key,))) for key, value in data.items()}


def _filled_value(value: Any, section: type[BaseModel] | None) -> Any:
    if section is None or not (value is None or isinstance(value, dict)):
        return value
    return _filled(value or {}, section)


def _translator_name(data: Mapping[str, Any], overrides: Sequence[Override]) -> str:
    names = data.get("names")
    given = names.get("translator") if isinstance(names, dict) else None
    chosen = [override.value for override in overrides if override.path == "names.translator"]
    return str(chosen[-1] if chosen else given or Names().translator)


def _sections(data: Mapping[str, Any]) -> list[str]:
    """The sections below ``sync`` that the file names."""
    sync = data.get("sync")
    parts = sync if isinstance(sync, dict) else {}
    return [
        f"{direction}.{name}"
        for direction in DIRECTIONS
        if isinstance(parts.get(direction), dict)
        for name in parts[direction]
    ]


def _format(document: Document) -> list[Problem]:
    """A file must say what it is, so that a later version can still be told from this one."""
    if not document.file:
        return []
    expected = {"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig"}
    return [
        document.problem((key,), "is required and not given.", f"Write `{key}: {value}`.")
        for key, value in expected.items()
        if key not in document.data
    ]


def _translator(given: _Given, name: str, model: type[SyncerConfig], plugins: Plugins) -> list[Problem]:
    if model.translator_class is not None:
        return []
    known = plugins.known_translators()
    message = f"no name translator is called {name!r}; there are {', '.join(sorted(known)) or 'none'}."
    return [given.report(("names", "translator"), message, guess(name, known))]


def _validated(given: _Given, model: type[SyncerConfig], plugins: Plugins) -> tuple[SyncerConfig | None, list[Problem]]:
    try:
        return model.model_validate(given.data), []
    except ValidationError as error:
        problems = explained(error, model, given.data, given.report)
        return None, [_no_syncer(problem, plugins) for problem in problems]


def _no_syncer(problem: Problem, plugins: Plugins) -> Problem:
    """An unknown section of a syncer may be a plugin's that isn't installed, or one that is and has another name."""
    section = re.fullmatch(r"sync\.(toHost|fromHost|fake)\.([^.]+)", problem.path)
    if section is None or problem.message != "no such option.":
        return problem
    known = plugins.known_syncers()
    hint = problem.hint or guess(section[2], known)
    if section[2] in known:
        hint = f"The plugin {section[2]} is installed; its section is elsewhere below sync, see `syncer plugins list`."
    hint = hint or "If it is a plugin's, install its package; `syncer plugins list` shows what is there."
    message = "no syncer, built in or installed, has this section."
    return Problem(message, path=problem.path, line=problem.line, file=problem.file, hint=hint)
