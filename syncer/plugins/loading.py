"""Imports a plugin, and reports its problems: package, version, file, line, and the way out."""

import ast
import inspect
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint
from types import ModuleType
from typing import Any, NamedTuple

from syncer.api import PluginError, Problem
from syncer.api.contract import Fault
from syncer.remembered import REMEMBERED

#: The entry-point groups.
SYNCERS = "syncer.syncers"
TRANSLATORS = "syncer.names"


class PluginOrigin(NamedTuple):
    """The origin of a plugin: an installed package, or the module that registered it."""

    package: str
    version: str
    module: str = ""

    def __str__(self) -> str:
        if self.module:
            return f"registered by {self.module}"
        return f"{self.package} {self.version}"

    @property
    def phrase(self) -> str:
        """The origin as a message has it in parentheses."""
        if self.module:
            return str(self)
        return f"from {self}"


class FoundPlugin(NamedTuple):
    """A plugin that was looked up.

    With ``problems`` it can't be used; ``plugin`` is None if it can't be imported.
    """

    group: str
    name: str
    origin: PluginOrigin
    plugin: Any = None
    problems: tuple[Problem, ...] = ()

    def error(self, way_out: str = "") -> PluginError:
        """Return an error with all problems, and with a way to work without the plugin."""
        messages: list[str] = []
        for problem in self.problems:
            location = problem.file
            if problem.line:
                location = f"{location}:{problem.line}" if location else str(problem.line)
            if location:
                messages.append(f"{problem.message} ({location})")
            else:
                messages.append(problem.message)

        why = "".join(f"\n  {message}" for message in messages)
        if len(messages) == 1:
            why = messages[0]
        return refusal(self.name, self.origin, f"{why}{way_out}")


def refusal(name: str, origin: PluginOrigin, why: str) -> PluginError:
    """Return the error for a plugin that can't be used."""
    if origin.module:
        return PluginError(name, f"{origin}: {why}")
    return PluginError(name, why, package=origin.package, version=origin.version)


def origin_of(point: EntryPoint) -> PluginOrigin:
    """Return the origin of an entry point."""
    if point.dist is None:
        return PluginOrigin("an unknown package", "")
    return _origin(point.dist)


@lru_cache(maxsize=REMEMBERED)
def _origin(dist: Distribution) -> PluginOrigin:
    """Return a package's name and version.

    Reading them parses all its metadata, including the README.
    """
    metadata = dist.metadata
    return PluginOrigin(metadata["Name"], metadata["Version"])


def look_at(point: EntryPoint, faults: Callable[[Any], Sequence[Fault]]) -> FoundPlugin:
    """Import the class that an entry point names, and check its contract."""
    origin = origin_of(point)
    plugin, problem = _imported(point)
    if problem:
        return FoundPlugin(point.group, point.name, origin, problems=(problem,))
    problems = tuple(problem_of(plugin, fault) for fault in faults(plugin))
    return FoundPlugin(point.group, point.name, origin, plugin, problems)


def problem_of(plugin: Any, fault: Fault) -> Problem:
    """Return a fault as a problem, with file and line."""
    file, line = _location(plugin, fault.attribute)
    return Problem(fault.message, file=file, line=line)


def raised_by(plugin: Any, error: Exception, message: str) -> Problem:
    """Return an exception as a problem, with the line of the plugin's code that raised it."""
    file, line = _location(plugin, "")
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:  # the last one wins: it is the innermost
            line = frame.lineno
    return Problem(message, file=file, line=line)


def _imported(point: EntryPoint) -> tuple[Any, Problem | None]:
    """Return the object that an entry point names, or the problem that keeps it from being used."""
    if not point.pattern.match(point.value):
        return None, Problem(f"its entry point {point.value!r} is not of the form module:Class")

    try:
        module = import_module(point.module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's module may raise anything
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        message = f"cannot be imported: {type(error).__name__}: {text}"
        file, line = _raised_at(error)
        return None, Problem(message, file=file or point.value, line=line)

    found: Any = module
    for step in filter(None, (point.attr or "").split(".")):
        found = getattr(found, step, None)
    if found is None:
        file = getattr(module, "__file__", "") or ""
        return None, Problem(_no_class(point, module), file=file)
    return found, None


def _no_class(point: EntryPoint, module: ModuleType) -> str:
    """Return the message about a missing class, with the classes that its module does define."""
    classes: list[str] = []
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            classes.append(name)
    instead = "it has no class at all"
    if classes:
        instead = f"it has {', '.join(classes)}"
    return f"its entry point is {point.value}, but {point.module} has no {point.attr}; {instead}"


def _raised_at(error: BaseException) -> tuple[str, int | None]:
    """Return the line of the plugin that raised, without the import machinery around it."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "importlib" not in frame.filename and frame.filename != __file__:
            return frame.filename, frame.lineno
    return "", None


def _location(plugin: Any, attribute: str) -> tuple[str, int | None]:
    """Return the line at which an attribute is set, or else the line of the class."""
    owner = plugin if inspect.isclass(plugin) else type(plugin)
    if attribute:
        for base in owner.__mro__:
            if attribute in vars(base) and not base.__module__.startswith("syncer.api."):
                owner = base
                break
    try:
        source, first = inspect.getsourcelines(owner)
        file = inspect.getsourcefile(owner) or ""
    except (OSError, TypeError):  # no source, or not in Python
        return "", None
    return file, first + _line_within("".join(source), attribute)


def _line_within(source: str, attribute: str) -> int:
    """Return the line of an attribute, counted from the first line of its class.

    It is 0 if the class doesn't set the attribute.
    """
    [parsed] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(parsed, ast.ClassDef)
    for node in parsed.body:
        if attribute in _names(node):
            return node.lineno - 1
    return 0


def _names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a class sets."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id
        case ast.AnnAssign(target=ast.Name() as target):
            yield target.id
