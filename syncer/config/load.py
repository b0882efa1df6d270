"""Load the configuration from a file, the environment and flags, or report all problems at once."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from syncer.api import ConfigError, NameTranslator, Problem, Syncer
from syncer.config import checks
from syncer.config.document import Document, Mistake, Steps, as_list, as_mapping, dotted, read
from syncer.config.list_form import (
    COMMON,
    LIST,
    SECRETS,
    depth,
    given_steps,
    layered,
    listed,
    listed_steps,
)
from syncer.config.model import SyncerConfig, no_cluster
from syncer.config.problems import explained, guess
from syncer.config.sections import DIRECTIONS, config_with
from syncer.config.types import model_in
from syncer.config.virtual_cluster import VirtualCluster

DEFAULT = "default"

#: A path in list form of an option in a common section, which is in the group.
_COMMON_OPTION = re.compile(rf"(?:{LIST}|{SECRETS})\[\d+\]\.((?:{'|'.join(COMMON)})\b.*)")
#: The path of a syncer's section, with the direction and the name in the groups.
_SYNCER_SECTION = re.compile(
    rf"(?:(?:{LIST}|{SECRETS})\[\d+\]\.)?sync\.({'|'.join(DIRECTIONS)})\.([^.]+)",
)
#: The options that name the format of a file.
_FORMAT = {"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig"}


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
        if path in self.origins:
            return self.origins[path]
        common = _COMMON_OPTION.fullmatch(path)
        if common is not None:
            return self.origins.get(common[1], DEFAULT)
        return DEFAULT

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
    for steps, message in _translators(given, plugins):
        problems.append(given.report(steps, message, ""))
    for steps, message in checks.across(given.data, model):
        problems.append(given.report(steps, message, ""))
    problems += document.problems
    problems += _format(document)
    problems += given.problems
    if problems or config is None:
        distinct = dict.fromkeys(problems)
        raise ConfigError(*sorted(distinct, key=lambda problem: problem.line or 0))

    for cluster in config.clusters():
        enabled = [type(each.syncer) for each in cluster.enabled()]
        custom = [syncer for entry in cluster.custom_entries() for syncer in entry.assumed()[:1]]
        plugins.refuse_conflicts([*enabled, *custom])
    return Loaded(config, given.origins, given.chosen)


def model_for(path: str | None, plugins: Plugins) -> type[SyncerConfig]:
    """Return the model with the built-in syncers, and the plugins that a file names."""
    document = read(path) if path else Document()
    return config_with(plugins.syncers(_sections(document.data)), translators=plugins.translator)


class _GivenValues:
    """The values of the file in list form, with the overrides on top, and the origin of each."""

    def __init__(
        self,
        document: Document,
        model: type[SyncerConfig],
        overrides: Sequence[Override],
    ) -> None:
        self._document = document
        #: The origin of each value that an override has set.
        self._overridden: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.origins: dict[str, str] = {}
        for steps, line in document.lines.items():
            if steps:
                self.origins[dotted(listed_steps(steps))] = f"{document.file}:{line}"

        filled = _filled(copy.deepcopy(document.data), model)
        self.data: dict[str, Any] = listed(filled, model)
        by_path = {override.path: override for override in overrides}
        self.chosen, number = self._choose(by_path.pop("cluster", None))
        for override in by_path.values():
            self._apply(override, number)
        self.data = layered(self.data, model)

    def _choose(self, wanted: Override | None) -> tuple[str, int]:
        """Return the selected virtual cluster: its name, and its index in the list.

        The name is ``""`` if none is selected. A virtual cluster of a Secret isn't in the list: its
        index is the length of the list.
        """
        if wanted is None:
            return "", 0
        entries = as_list(self.data.get(LIST))
        names = [entry.get("name") if isinstance(entry, dict) else None for entry in entries]
        if names == [None]:
            self._put((LIST, 0, "name"), wanted)
            return wanted.value, 0
        if wanted.value in names:
            return wanted.value, names.index(wanted.value)
        if self.data.get(SECRETS):
            return wanted.value, len(names)

        known_names = [str(name) for name in names if name]
        self.problems.append(no_cluster(wanted.value, known_names, wanted.origin))
        return "", 0

    def _apply(self, override: Override, number: int) -> None:
        """Set the value of an override, which may be about the virtual cluster at an index."""
        steps = listed_steps(tuple(override.path.split(".")), number)
        is_unlisted = number >= len(as_list(self.data.get(LIST)))
        if steps[0] == LIST and is_unlisted and self.data.get(SECRETS):
            problem = Problem("is about a virtual cluster that is listed.", file=override.origin)
            self.problems.append(problem)
        self._put(steps, override)

        # An entry's own value would win over the one at the top.
        in_entry = (LIST, number, *steps)
        if depth(in_entry, self.data) == len(in_entry):
            self._put(in_entry, override)

    def _put(self, steps: Steps, override: Override) -> None:
        """Set the value at these steps, and note its origin."""
        section: Any = self.data
        for step in steps[:-1]:
            if isinstance(section, dict):
                section = section.setdefault(step, {})
            elif depth((step,), section):
                section = section[step]
            else:
                return
        if not isinstance(section, dict):
            return  # the file has a value other than a section there, which is a problem of its own
        section[steps[-1]] = override.value
        path = dotted(steps)
        self.origins[path] = override.origin
        self._overridden[path] = override.origin

    def report(self, steps: Steps, message: str, hint: str) -> Problem:
        """Return a problem with a value, located where it was given."""
        given = given_steps(steps, self._document.data)
        origin = self._overridden.get(dotted(steps))
        if origin:
            return Problem(message, path=dotted(given), file=origin, hint=hint)
        return self._document.problem(given, message, hint)


def _filled(data: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the data with ``{}`` for each empty section, such as ``metrics:``."""
    result = dict(data)
    for key, value in data.items():
        section = model_in(model, (key,))
        if section is not None and (value is None or isinstance(value, dict)):
            result[key] = _filled(value or {}, section)
    return result


def _sections(data: Mapping[str, Any]) -> list[str]:
    """Return the sections of syncers that the file names, at the top or for a virtual cluster."""
    names: list[str] = []
    for given in (data, *as_list(data.get(LIST)), *as_list(data.get(SECRETS))):
        sync = as_mapping(as_mapping(given).get("sync"))
        for direction in DIRECTIONS:
            names += [f"{direction}.{name}" for name in as_mapping(sync.get(direction))]
    return names


def _format(document: Document) -> list[Problem]:
    """Return a problem for each option of the format that the file lacks.

    Without them, a later version could not recognise the format.
    """
    if not document.file:
        return []
    problems: list[Problem] = []
    for key, value in _FORMAT.items():
        if key not in document.data:
            hint = f"Write `{key}: {value}`."
            problems.append(document.problem((key,), "is required and not given.", hint))
    return problems


def _translators(given: _GivenValues, plugins: Plugins) -> Iterator[Mistake]:
    """Yield the configured name translators that don't exist."""
    known = plugins.known_translators()
    sections: list[tuple[Steps, Any]] = [((), given.data)]
    for option in (LIST, SECRETS):
        for number, entry in enumerate(as_list(given.data.get(option))):
            sections.append(((option, number), entry))

    for steps, section in sections:
        name = as_mapping(as_mapping(section).get("names")).get("translator")
        if isinstance(name, str) and plugins.translator(name) is None:
            existing = ", ".join(sorted(known)) or "none"
            message = f"no name translator is called {name!r}; there are {existing}."
            yield (*steps, "names", "translator"), f"{message} {guess(name, known)}".rstrip()


def _validated(
    given: _GivenValues, model: type[SyncerConfig], plugins: Plugins
) -> tuple[SyncerConfig | None, list[Problem]]:
    """Return the configuration, or None and its problems."""
    try:
        return model.model_validate(given.data), []
    except ValidationError as error:
        problems = explained(error, model, given.data, given.report)
        return None, [_no_syncer(problem, plugins) for problem in problems]


def _no_syncer(problem: Problem, plugins: Plugins) -> Problem:
    """Improve the hint of a problem about a section that no syncer has."""
    section = _SYNCER_SECTION.fullmatch(problem.path)
    if section is None or problem.message != "no such option.":
        return problem

    name = section[2]
    known = plugins.known_syncers()
    if name in known:
        where = "its section is elsewhere below sync, see `syncer plugins list`"
        hint = f"The plugin {name} is installed; {where}."
    else:
        hint = problem.hint or guess(name, known)
    if not hint:
        hint = "If it is a plugin's, install its package; `syncer plugins list` shows the plugins."
    message = "no syncer, built in or installed, has this section."
    return Problem(message, path=problem.path, line=problem.line, file=problem.file, hint=hint)
