"""Imports a plugin, and reports its problems: package, version, file, line, and how to mend them."""

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

#: The entry-point groups.
SYNCERS = "syncer.syncers"
TRANSLATORS = "syncer.names"
#: Packages of plugins that are remembered with their name and version.
REMEMBERED = 64


class Origin(NamedTuple):
    """The origin of a plugin: an installed package, or a module of the program that registered it."""

    package: str
    version: str
    module: str = ""

    def __str__(self) -> str:
        return f"registered by {self.module}" if self.module else f"{self.package} {self.version}"

    @property
    def phrase(self) -> str:
        """The origin as a message has it in parentheses."""
        return str(self) if self.module else f"from {self}"


class Found(NamedTuple):
    """A plugin that was looked up.

    With ``problems`` it can't be used; ``plugin`` is None if it can't be imported.
    """

    group: str
    name: str
    origin: Origin
    plugin: Any = None
    problems: tuple[Problem, ...] = ()

    def error(self, way_out: str = "") -> PluginError:
        """Return an error with all problems, and with a way to work without the plugin."""
        said = [_said(problem) for problem in self.problems]
        why = said[0] if len(said) == 1 else "".join(f"\n  {each}" for each in said)
        return refusal(self.name, self.origin, f"{why}{way_out}")


def refusal(name: str, origin: Origin, why: str) -> PluginError:
    """Return the error for a plugin that can't be used."""
    if origin.module:
        return PluginError(name, f"{origin}: {why}")
    return PluginError(name, why, package=origin.package, version=origin.version)


def origin_of(point: EntryPoint) -> Origin:
    """Return the origin of an entry point."""
    return _origin(point.dist) if point.dist else Origin("an unknown package", "")


@lru_cache(maxsize=REMEMBERED)
def _origin(dist: Distribution) -> Origin:
    """Return a package's name and version.

    Reading them parses all its metadata, including the README.
    """
    metadata = dist.metadata
    return Origin(metadata["Name"], metadata["Version"])


def look_at(point: EntryPoint, faults: Callable[[Any], Sequence[Fault]]) -> Found:
    """Import the class that an entry point names, and check its contract."""
    origin = origin_of(point)
    plugin, problem = _imported(point)
    if problem:
        return Found(point.group, point.name, origin, problems=(problem,))
    problems = tuple(problem_of(plugin, fault) for fault in faults(plugin))
    return Found(point.group, point.name, origin, plugin, problems)


def problem_of(plugin: Any, fault: Fault) -> Problem:
    """Return a fault as a problem, with file and line."""
    file, line = _place(plugin, fault.attribute)
    return Problem(fault.message, file=file, line=line)


def raised_by(plugin: Any, error: Exception, message: str) -> Problem:
    """Return an exception as a problem, with the line of the plugin's code that raised it."""
    file, line = _place(plugin, "")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return Problem(message, file=file, line=lines[-1] if lines else line)


def _imported(point: EntryPoint) -> tuple[Any, Problem | None]:
    if not point.pattern.match(point.value):
        return None, Problem(f"its entry point {point.value!r} is not of the form module:Class")
    try:
        module = import_module(point.module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 — whatever it raises, it is no plugin that can be used
        return None, _not_imported(point, error)
    found: Any = module
    for step in filter(None, (point.attr or "").split(".")):
        found = getattr(found, step, None)
    if found is None:
        return None, Problem(_no_class(point, module), file=getattr(module, "__file__", "") or "")
    return found, None


def _not_imported(point: EntryPoint, error: BaseException) -> Problem:
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    message = f"cannot be imported: {type(error).__name__}: {said}"
    file, line = _raised_at(error)
    return Problem(message, file=file or point.value, line=line)


def _no_class(point: EntryPoint, module: ModuleType) -> str:
    """Return what the module has instead of the class that the entry point names."""
    classes = [name for name, value in vars(module).items() if _is_defined_in(value, module)]
    instead = f"it has {', '.join(classes)}" if classes else "it has no class at all"
    return f"its entry point is {point.value}, but {point.module} has no {point.attr}; {instead}"


def _is_defined_in(value: Any, module: ModuleType) -> bool:
    return inspect.isclass(value) and value.__module__ == module.__name__


def _raised_at(error: BaseException) -> tuple[str, int | None]:
    """Return the line of the plugin that raised, without the import machinery around it."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    return (theirs[-1].filename, theirs[-1].lineno) if theirs else ("", None)


def _place(plugin: Any, attribute: str) -> tuple[str, int | None]:
    """Return the line at which an attribute is set, or else the line of the class."""
    owner = plugin if inspect.isclass(plugin) else type(plugin)
    for base in owner.__mro__ if attribute else ():
        if attribute in vars(base) and not base.__module__.startswith("syncer.api."):
            owner = base
            break
    try:
        source, first = inspect.getsourcelines(owner)
        return inspect.getsourcefile(owner) or "", first + _line_within("".join(source), attribute)
    except (OSError, TypeError):  # no source, or not in Python
        return "", None


def _line_within(source: str, attribute: str) -> int:
    """Return the line of an attribute, counted from the first line of its class; 0 if the class
    doesn't set it.
    """
    [made] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(made, ast.ClassDef)
    return next((node.lineno - 1 for node in made.body if attribute in _names(node)), 0)


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name() as target):
            yield target.id


def _said(problem: Problem) -> str:
    place = ":".join(str(part) for part in (problem.file, problem.line) if part)
    return f"{problem.message} ({place})" if place else problem.message
