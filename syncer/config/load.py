"""Load the configuration from a file, the environment and flags, or report all problems at once."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from syncer.api import ConfigError, NameTranslator, Problem, Syncer
from syncer.config import checks
from syncer.config.document import Document, Steps, dotted, read
from syncer.config.list_form import COMMON, LIST, SECRETS, depth, given_place, layered, listed, listed_place
from syncer.config.model import SyncerConfig, no_cluster
from syncer.config.problems import explained, guess
from syncer.config.sections import DIRECTIONS, config_with
from syncer.config.types import model_in
from syncer.config.virtual_cluster import VirtualCluster

DEFAULT = "default"


class Plugins(Protocol):
    """The plugins that can be configured, built in or installed."""

    def syncers(self, named: Iterable[str] = ()) -> Sequence[type[Syncer]]:
        """Return the built-in syncers, and the plugins' syncers with these sections
        (``toHost.widgets``).

        A section that no plugin has is ignored.

        Raises:
            PluginError: A plugin with one of these sections can't be used.
        """
        ...

    def known_syncers(self) -> Sequence[str]:
        """Return the last part of each plugin's section, whether the plugin is loaded or not."""
        ...

    def translator(self, name: str) -> type[NameTranslator] | None:
        """Return the name translator of this name, or None."""
        ...

    def known_translators(self) -> Sequence[str]:
        """Return the names of all installed name translators."""
        ...

    def refuse_conflicts(self, syncers: Sequence[Syncer | type[Syncer]]) -> None:
        """Refuse two enabled syncers that would write the same objects.

        Raises:
            PluginError: Two of the syncers conflict.
        """
        ...


@dataclass(frozen=True, slots=True)
class Override:
    """An option's value from a flag or an environment variable; ``origin`` is the name of that."""

    path: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and the origin of each of its values."""

    config: SyncerConfig
    #: Dotted path in list form → origin: ``syncer.yaml:9``, ``SYNCER_LOG_LEVEL`` or
    #: ``--log-level``.
    origins: Mapping[str, str] = field(default_factory=dict)
    #: The virtual cluster selected by ``--cluster``; ``""`` without that flag.
    chosen: str = ""

    def origin(self, path: str) -> str:
        """Return the origin of a value; ``default`` if it was not given."""
        common = re.fullmatch(rf"(?:{LIST}|{SECRETS})\[\d+\]\.((?:{'|'.join(COMMON)})\b.*)", path)
        return self.origins.get(path) or self.origins.get(common[1] if common else path, DEFAULT)

    @property
    def cluster(self) -> VirtualCluster:
        """The selected virtual cluster, or else the only one.

        Raises:
            ConfigError: There are several virtual clusters, and none is selected.
        """
        return self.config.cluster(self.chosen)


def load(path: str | None, plugins: Plugins, overrides: Sequence[Override] = ()) -> Loaded:
    """Load the configuration from a file. Later overrides win.

    Args:
        path: The file; None to use the overrides alone.
        plugins: The plugins that can be configured.
        overrides: Values from flags and environment variables.

    Raises:
        ConfigError: The configuration is invalid; it carries all problems.
        PluginError: A plugin that the file names can't be used.
    """
    return build(read(path) if path else Document(), plugins, overrides)


def build(document: Document, plugins: Plugins, overrides: Sequence[Override] = ()) -> Loaded:
    """Build the configuration from a parsed document; otherwise like :func:`load`."""
    model = config_with(plugins.syncers(_sections(document.data)), translators=plugins.translator)
    given = _GivenValues(document, model, overrides)
    config, problems = _validated(given, model, plugins)
    found = [*_translators(given, plugins), *checks.across(given.data, model)]
    problems += [given.report(steps, message, "") for steps, message in found]
    problems += [*document.problems, *_format(document), *given.problems]
    if problems or config is None:
        raise ConfigError(*sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0))
    for cluster in config.clusters():
        custom = [syncer for entry in cluster.custom_entries() for syncer in entry.assumed()[:1]]
        plugins.refuse_conflicts([*(type(enabled.syncer) for enabled in cluster.enabled()), *custom])
    return Loaded(config, given.origins, given.chosen)


def model_for(path: str | None, plugins: Plugins) -> type[SyncerConfig]:
    """Return the configuration model with the built-in syncers and the plugins that a file names."""
    document = read(path) if path else Document()
    return config_with(plugins.syncers(_sections(document.data)), translators=plugins.translator)


class _GivenValues:
    """The values of the file in list form, with the overrides on top, and the origin of each."""

    def __init__(self, document: Document, model: type[SyncerConfig], overrides: Sequence[Override]) -> None:
        self._document = document
        self._overridden: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.origins = {
            dotted(listed_place(steps)): f"{document.file}:{line}" for steps, line in document.lines.items() if steps
        }
        self.data: dict[str, Any] = listed(_filled(copy.deepcopy(document.data), model), model)
        by_name = {override.path: override for override in overrides}
        self.chosen, number = self._choose(by_name.pop("cluster", None))
        for override in by_name.values():
            steps = listed_place(tuple(override.path.split(".")), number)
            if steps[0] == LIST and number >= len(_entries(self.data, LIST)) and self.data.get(SECRETS):
                self.problems.append(Problem("is about a virtual cluster that is listed.", file=override.origin))
            self._put(steps, override)
            if depth((LIST, number, *steps), self.data) == len(steps) + 2:
                self._put((LIST, number, *steps), override)
        self.data = layered(self.data, model)

    def _choose(self, wanted: Override | None) -> tuple[str, int]:
        """Return the selected virtual cluster: its name (``""`` without ``--cluster``) and its
        index in the list.
        """
        known = _entries(self.data, LIST)
        names = [each.get("name") if isinstance(each, dict) else None for each in known]
        if wanted is None:
            return "", 0
        if names == [None]:
            self._put((LIST, 0, "name"), wanted)
        elif wanted.value in names:
            return wanted.value, names.index(wanted.value)
        elif self.data.get(SECRETS):
            return wanted.value, len(names)
        else:
            self.problems.append(no_cluster(wanted.value, [str(name) for name in names if name], wanted.origin))
        return "", 0

    def _put(self, steps: Steps, override: Override) -> None:
        place: Any = self.data
        for step in steps[:-1]:
            if isinstance(place, dict):
                place = place.setdefault(step, {})
            else:
                place = place[step] if depth((step,), place) else None
        if not isinstance(place, dict):
            return  # the file has a value other than a section there, which is a problem of its own
        place[steps[-1]] = override.value
        self.origins[dotted(steps)] = self._overridden[dotted(steps)] = override.origin

    def report(self, steps: Steps, message: str, hint: str) -> Problem:
        """Return a problem with a value, located where it was given."""
        place = given_place(steps, self._document.data)
        if origin := self._overridden.get(dotted(steps)):
            return Problem(message, path=dotted(place), file=origin, hint=hint)
        return self._document.problem(place, message, hint)


def _filled(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the data with ``{}`` for each empty section (``metrics:``), so that it gets its defaults."""
    return {key: _filled_value(value, model_in(model, (key,))) for key, value in data.items()}


def _filled_value(value: Any, section: type[BaseModel] | None) -> Any:
    if section is None or not (value is None or isinstance(value, dict)):
        return value
    return _filled(value or {}, section)


def _sections(data: Mapping[str, Any]) -> list[str]:
    """Return the sections below ``sync`` that the file names, at the top or for a virtual cluster."""
    given = [data, *_entries(data, LIST), *_entries(data, SECRETS)]
    found = [each["sync"] for each in given if isinstance(each, dict) and isinstance(each.get("sync"), dict)]
    return [
        f"{direction}.{name}"
        for sync in found
        for direction in DIRECTIONS
        if isinstance(sync.get(direction), dict)
        for name in sync[direction]
    ]


def _entries(data: Mapping[str, Any], option: str) -> list[Any]:
    entries = data.get(option)
    return entries if isinstance(entries, list) else []


def _format(document: Document) -> list[Problem]:
    """Return a problem if the file doesn't name its format, as a later version could not be
    recognised then.
    """
    if not document.file:
        return []
    expected = {"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig"}
    return [
        document.problem((key,), "is required and not given.", f"Write `{key}: {value}`.")
        for key, value in expected.items()
        if key not in document.data
    ]


def _translators(given: _GivenValues, plugins: Plugins) -> Iterator[tuple[Steps, str]]:
    """Yield the configured name translators that don't exist."""
    known = plugins.known_translators()
    places: list[tuple[Steps, Any]] = [
        ((), given.data),
        *(
            ((option, number), each)
            for option in (LIST, SECRETS)
            for number, each in enumerate(_entries(given.data, option))
        ),
    ]
    for steps, section in places:
        names = section.get("names") if isinstance(section, dict) else None
        name = names.get("translator") if isinstance(names, dict) else None
        if isinstance(name, str) and plugins.translator(name) is None:
            message = f"no name translator is called {name!r}; there are {', '.join(sorted(known)) or 'none'}."
            yield (*steps, "names", "translator"), f"{message} {guess(name, known)}".rstrip()


def _validated(
    given: _GivenValues, model: type[SyncerConfig], plugins: Plugins
) -> tuple[SyncerConfig | None, list[Problem]]:
    try:
        return model.model_validate(given.data), []
    except ValidationError as error:
        problems = explained(error, model, given.data, given.report)
        return None, [_no_syncer(problem, plugins) for problem in problems]


def _no_syncer(problem: Problem, plugins: Plugins) -> Problem:
    """Improve the hint of a problem about a section that no syncer has."""
    section = re.fullmatch(rf"(?:(?:{LIST}|{SECRETS})\[\d+\]\.)?sync\.({'|'.join(DIRECTIONS)})\.([^.]+)", problem.path)
    if section is None or problem.message != "no such option.":
        return problem
    known = plugins.known_syncers()
    hint = problem.hint or guess(section[2], known)
    if section[2] in known:
        hint = f"The plugin {section[2]} is installed; its section is elsewhere below sync, see `syncer plugins list`."
    hint = hint or "If it is a plugin's, install its package; `syncer plugins list` shows what is there."
    message = "no syncer, built in or installed, has this section."
    return Problem(message, path=problem.path, line=problem.line, file=problem.file, hint=hint)
