"""Read YAML with the line of every value, and find mistakes that YAML itself accepts silently."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from syncer.api import ConfigError, Problem

#: The steps to a value: keys of mappings and positions in lists, from the top of the document.
Steps = tuple[str | int, ...]
#: A mistake that a check has found: where it is, and the message.
Mistake = tuple[Steps, str]

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # PyYAML was built without libyaml: slower, and otherwise the same
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def dotted(steps: Steps) -> str:
    """Format steps as errors and ``config explain`` do: ``sync.toHost.pods.rules[0].name``."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif path:
            path += f".{step}"
        else:
            path = step
    return path


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> Sequence[Any]:
    """Return a list as it is, and an empty one for any other value."""
    return value if isinstance(value, list) else ()


@dataclass(slots=True)
class Document:
    """A YAML file: plain data, the line of each value, and the problems found while reading."""

    file: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[Steps, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, steps: Steps) -> int | None:
        """Return the line of a value, or of the nearest value around it; None without a file."""
        while steps not in self.lines and steps:
            steps = steps[:-1]
        return self.lines.get(steps)

    def problem(self, steps: Steps, message: str, hint: str = "") -> Problem:
        """Return a problem with the value at these steps."""
        path = dotted(steps)
        return Problem(message, path=path, line=self.line(steps), file=self.file, hint=hint)


def read(path: str) -> Document:
    """Read a YAML file.

    Raises:
        ConfigError: The file can't be read, or is not a YAML mapping.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror or error}", file=path)
        raise ConfigError(problem) from None
    except UnicodeDecodeError as error:
        problem = Problem(f"is not UTF-8 text (byte {error.start})", file=path)
        raise ConfigError(problem) from None
    return parse(text, path)


def parse(text: str, file: str = "") -> Document:
    """Parse a YAML text. ``file`` is the file name for its problems.

    Raises:
        ConfigError: The text is not a YAML mapping.
    """
    loader = Loader(text)
    try:
        return _Reader(loader, Document(file)).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        problem = Problem(f"is not YAML: {error.problem or error}", line=line, file=file)
        raise ConfigError(problem) from None
    except yaml.YAMLError as error:
        # The file has a character that YAML forbids. The error may quote the file, so it is not
        # shown.
        problem = Problem(f"is not YAML ({type(error).__name__})", file=file)
        raise ConfigError(problem) from None
    finally:
        loader.dispose()


class _Reader:
    """Builds a document from the nodes that the YAML library composed."""

    def __init__(self, loader: Any, document: Document) -> None:
        self._loader = loader
        self._document = document
        #: The ids of the nodes around the one being built, by which an alias to one of them shows.
        self._open: set[int] = set()

    def document(self) -> Document:
        node = self._loader.get_single_node()
        if node is None or node.tag == _NULL:
            return self._document
        if not isinstance(node, yaml.MappingNode):
            message = "expected a mapping (`key: value` lines) at the top"
            line = node.start_mark.line + 1
            raise ConfigError(Problem(message, line=line, file=self._document.file))
        self._document.data = self._value(node, ())
        return self._document

    def _value(self, node: yaml.Node, steps: Steps) -> Any:
        self._document.lines.setdefault(steps, node.start_mark.line + 1)
        if id(node) in self._open:
            self._note(steps, "contains itself (by an alias).")
            return None

        self._open.add(id(node))
        try:
            return self._built(node, steps)
        finally:
            self._open.discard(id(node))

    def _built(self, node: yaml.Node, steps: Steps) -> Any:
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            self._note(steps, f"has the tag {node.tag}, unknown here.")
            return None

        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, steps)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*steps, index)) for index, item in enumerate(node.value)]
        return self._loader.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, steps: Steps) -> dict[str, Any]:
        self._refuse_duplicates(node, steps)
        if any(key.tag == _MERGE for key, _ in node.value):
            self._loader.flatten_mapping(node)

        mapping: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._note(steps, "has a key that is no plain text.")
                continue
            name = str(key.value)
            path = (*steps, name)
            self._document.lines[path] = key.start_mark.line + 1
            mapping[name] = self._value(value, path)
        return mapping

    def _refuse_duplicates(self, node: yaml.MappingNode, steps: Steps) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in first and key.tag != _MERGE:
                message = f"is given twice, first in line {first[name]}."
                path = dotted((*steps, name))
                problem = Problem(message, path=path, line=line, file=self._document.file)
                self._document.problems.append(problem)
            first.setdefault(name, line)

    def _note(self, steps: Steps, message: str) -> None:
        """Record a problem with the value at these steps."""
        self._document.problems.append(self._document.problem(steps, message))
