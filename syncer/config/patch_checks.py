"""Checks of patches across sections: expressions, kinds, and the prefix of marks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from syncer.api import ConfigError, Marks, Resource, path_steps
from syncer.config.document import Mistake, Steps
from syncer.config.problems import guess
from syncer.resources import kinds
from syncer.translate.cel import Expression
from syncer.translate.named import named

_KINDS = [one for one in vars(kinds).values() if isinstance(one, Resource)]
_MAPS = (("metadata", "labels"), ("metadata", "annotations"))


def patches(data: Mapping[str, Any], synced: Iterable[Resource], marks: Marks) -> Iterator[Mistake]:
    """Yield the problems of every patch; ``synced`` are the resources with a syncer."""
    known = [*synced, *_KINDS]
    for steps, patch in _given(data):
        yield from _expression(steps, patch)
        yield from _kind(steps, patch, known)
        yield from _mark(steps, patch, marks)


def _given(data: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    for steps, section in _sections(data):
        for direction, several in _mapping(section.get("patches")).items():
            for number, patch in enumerate(several if isinstance(several, list) else ()):
                yield (*steps, "patches", direction, number), _mapping(patch)


def _sections(data: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    for part, sections in _mapping(data.get("sync")).items():
        for name, section in _mapping(sections).items():
            yield ("sync", part, name), _mapping(section)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _expression(steps: Steps, patch: Mapping[str, Any]) -> Iterator[Mistake]:
    text = patch.get("cel")
    if isinstance(text, str) and text:
        try:
            Expression(text)
        except ConfigError as error:
            for problem in error.problems:
                yield (*steps, "cel"), problem.message


def _kind(steps: Steps, patch: Mapping[str, Any], known: list[Resource]) -> Iterator[Mistake]:
    kind = patch.get("rename")
    if not isinstance(kind, str) or not kind or "." in kind or named(kind, known):
        return
    hint = guess(kind, [resource.kind for resource in known])
    message = f"no kind {kind!r} is known here; others are written plural.group, such as issuers.cert-manager.io."
    yield (*steps, "rename"), f"{message} {hint}".rstrip()


def _mark(steps: Steps, patch: Mapping[str, Any], marks: Marks) -> Iterator[Mistake]:
    changed = {"test": (), "move": ("path", "from")}.get(str(patch.get("op")), ("path",))
    for option in changed:
        place = _place(patch.get(option))
        if place[:2] in _MAPS and len(place) > 2 and marks.is_mark(place[2]):
            yield (*steps, option), f"would change a mark, {place[2]!r}, by which our copies are known; no patch may."


def _place(path: Any) -> tuple[str, ...]:
    try:
        return path_steps(path) if isinstance(path, str) else ()
    except ValueError:  # reported by its own section
        return ()
