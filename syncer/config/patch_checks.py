"""Checks of patches across sections: expressions, kinds, and the prefix of marks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from syncer.api import ConfigError, Marks, Resource, path_steps
from syncer.config.document import Mistake, Steps, as_list, as_mapping
from syncer.config.problems import guess
from syncer.resources import kinds
from syncer.translate.cel import Expression
from syncer.translate.named import named

#: The built-in kinds.
_KINDS = [each for each in vars(kinds).values() if isinstance(each, Resource)]
#: The mappings that hold marks.
_MAPS = (("metadata", "labels"), ("metadata", "annotations"))


def patches(data: Mapping[str, Any], synced: Iterable[Resource], marks: Marks) -> Iterator[Mistake]:
    """Yield the problems of every patch; ``synced`` are the resources with a syncer."""
    known = [*synced, *_KINDS]
    for steps, patch in _given(data):
        yield from _expression(steps, patch)
        yield from _kind(steps, patch, known)
        yield from _mark(steps, patch, marks)


def _given(data: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    """Yield every patch, with the steps to it."""
    for part, sections in as_mapping(data.get("sync")).items():
        for name, section in as_mapping(sections).items():
            for direction, given in as_mapping(as_mapping(section).get("patches")).items():
                for number, patch in enumerate(as_list(given)):
                    yield ("sync", part, name, "patches", direction, number), as_mapping(patch)


def _expression(steps: Steps, patch: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the problems of a patch's CEL expression."""
    text = patch.get("cel")
    if not isinstance(text, str) or not text:
        return
    try:
        Expression(text)
    except ConfigError as error:
        for problem in error.problems:
            yield (*steps, "cel"), problem.message


def _kind(steps: Steps, patch: Mapping[str, Any], known: list[Resource]) -> Iterator[Mistake]:
    """Yield a problem if a patch translates names of an unknown kind."""
    kind = patch.get("rename")
    if not isinstance(kind, str) or not kind or "." in kind or named(kind, known):
        return
    hint = guess(kind, [resource.kind for resource in known])
    others = "others are written plural.group, such as issuers.cert-manager.io"
    message = f"no kind {kind!r} is known here; {others}."
    yield (*steps, "rename"), f"{message} {hint}".rstrip()


def _mark(steps: Steps, patch: Mapping[str, Any], marks: Marks) -> Iterator[Mistake]:
    """Yield a problem if a patch changes a mark."""
    changed = {"test": (), "move": ("path", "from")}.get(str(patch.get("op")), ("path",))
    for option in changed:
        path = _steps(patch.get(option))
        if path[:2] in _MAPS and len(path) > 2 and marks.is_mark(path[2]):
            why = f"would change a mark, {path[2]!r}, by which our copies are known"
            yield (*steps, option), f"{why}; no patch may."


def _steps(path: Any) -> tuple[str, ...]:
    """Return the steps of a path; none if its own section reports a problem."""
    if not isinstance(path, str):
        return ()
    try:
        return path_steps(path)
    except ValueError:
        return ()
