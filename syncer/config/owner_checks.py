"""Checks of selectors, metadata rules, ``authority`` and ``onHostDeletion`` against what their syncers own."""

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from syncer.api import (
    EACH,
    Config,
    FieldPath,
    Marks,
    MetadataRules,
    Reference,
    Refers,
    Syncer,
    is_within,
    metadata_key,
    overlaps,
    path_steps,
    path_text,
)
from syncer.api.metadata_defaults import with_defaults
from syncer.api.metadata_rules import MetadataFilter
from syncer.config.document import Mistake, Steps
from syncer.directions import way_of
from syncer.resources.custom import CustomConfig

_NO_MARK = "is a mark, by which our copies are known; it can't come from the other side."


class _Kind(NamedTuple):
    """The fields of a kind, as its syncer owns them."""

    goes_down: bool
    #: True if a selector chooses which of its objects are synced.
    has_selector: bool
    own_deletion: bool
    down: Sequence[FieldPath]
    both: Sequence[FieldPath]
    translates: Sequence[FieldPath]
    #: The labels and annotations that are copied.
    metadata: MetadataRules
    #: The paths of names with further fields beside them, such as a kind or a namespace.
    qualified: Sequence[FieldPath]
    #: True if all other fields go, too, except ``status`` and those that come up.
    all_goes: bool = False


def owners(data: Mapping[str, Any], syncers: Sequence[type[Syncer]], marks: Marks) -> Iterator[Mistake]:
    """Yield the problems of every ``selector``, ``metadata``, ``authority`` and ``onHostDeletion``."""
    sync = _mapping(data.get("sync"))
    for syncer in syncers:
        direction, _, name = syncer.section.partition(".")
        section = _mapping(_mapping(sync.get(direction)).get(name))
        yield from _section(("sync", direction, name), section, _of_syncer(syncer), marks)
    for name, section in _mapping(sync.get("custom")).items():
        if kind := _of_entry(name, section):
            yield from _section(("sync", "custom", name), _mapping(section), kind, marks)
            up = _mapping(section).get("up")
            for number, path in enumerate(up if isinstance(up, list) else ()):
                if _is_mark(path, marks):
                    yield ("sync", "custom", name, "up", number), _NO_MARK


def _of_syncer(syncer: type[Syncer]) -> _Kind:
    goes_down = way_of(syncer).goes_down
    references = syncer.references if issubclass(syncer, Refers) else {}
    qualified = [path for path, said in references.items() if isinstance(said, Reference) and said.beside]
    return _Kind(
        goes_down,
        goes_down or _declares(syncer.config, "selector"),
        syncer.own_deletion,
        syncer.down,
        syncer.both,
        syncer.translates,
        syncer.metadata,
        qualified,
    )


def _declares(config: type[Config], option: str) -> bool:
    """Return True if the options of a kind give one that every kind has a meaning of their own."""
    own = itertools.takewhile(lambda each: each is not Config, config.__mro__)
    return any(option in inspect.get_annotations(each) for each in own)


def _of_entry(name: str, section: Any) -> _Kind | None:
    """Return the fields of a ``sync.custom`` entry; None if its own section reports a problem."""
    try:
        config = CustomConfig.model_validate({} if section is None else section).of(name)
    except ValidationError:
        return None
    goes_down = config.direction == "toHost"
    down = config.down_with(config.authority)
    qualified = [path for path in config.references if path_steps(path)[-1] == "name"]
    all_goes = config.down is None
    return _Kind(goes_down, True, config.on_delete == "retain", down, (), (), MetadataRules(), qualified, all_goes)


def _section(place: Steps, section: Mapping[str, Any], kind: _Kind, marks: Marks) -> Iterator[Mistake]:
    policy = section.get("onHostDeletion", "recreate")
    if policy != "recreate" and not (kind.goes_down and not kind.own_deletion):
        why = "has a rule of its own for that" if kind.goes_down else "has no copies on the host"
        yield (*place, "onHostDeletion"), f"can't be {policy!r}: this kind {why}."
    if any(_mapping(section.get("selector")).values()) and not kind.has_selector:
        yield (*place, "selector"), "can't be given: this kind does not go to the host."
    if place[1] == "fake" and _has_rules(_mapping(section.get("metadata"))):
        yield (*place, "metadata"), "can't be given: no labels or annotations of this kind cross."
    for path, owner in _read(section).items():
        problem = _wrong(path, kind, section) if owner != "virtual" else ""
        problem = _NO_MARK if _is_mark(path, marks) else problem
        if problem:
            yield (*place, "authority", path), problem


def _read(section: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the given owners by path; empty if their own section reports a problem."""
    try:
        return Config.model_validate({"authority": section.get("authority", {})}).authority
    except ValidationError:
        return {}


def _has_rules(metadata: Mapping[str, Any]) -> bool:
    return any(any(_mapping(part).values()) for part in metadata.values())


def _rules(section: Mapping[str, Any]) -> MetadataRules:
    """Return the given metadata rules; empty if their own section reports a problem."""
    try:
        return Config.model_validate({"metadata": section.get("metadata", {})}).metadata
    except ValidationError:
        return MetadataRules()


def _wrong(path: str, kind: _Kind, section: Mapping[str, Any]) -> str:
    """Return why a field can't have another owner; ``""`` if it can."""
    going = [*kind.down, *kind.both] if kind.goes_down else []
    if not (kind.goes_down and metadata_key(path)) and not any(is_within(path, own) for own in going):
        what = "all but status and what comes up" if kind.all_goes else ", ".join(map(path_text, going))
        named = f"what goes is {what}." if going else "nothing of this kind does."
        return f"is no field that goes to the host; {named}"
    if taken := [own for own in kind.translates if overlaps(path, _plain(own))]:
        why = f"{path_text(taken[0])} is another value on the host, and can't go up."
        return f"can't have another owner: {why}"
    if taken := [own for own in kind.both if overlaps(path, own) and path_steps(own) != path_steps(path)]:
        return f"can't have another owner than {path_text(taken[0])}, which both sides own."
    key = metadata_key(path)
    rules = with_defaults(kind.metadata, goes_down=kind.goes_down)
    if key and not MetadataFilter(rules, _rules(section)).crosses(*key):
        return f"can't have another owner: it stays behind, as the metadata rules of this kind say of {key[0]}."
    if parted := [own for own in kind.qualified if is_within(own, path) and not is_within(path_steps(own)[:-1], path)]:
        return f"can't have another owner alone: what stands beside {path_text(parted[0])} says what it is the name of."
    if patched := [own for own in _patched(section) if _is_patched(path, own)]:
        return f"can't have another owner: a patch changes {patched[0]}."
    return ""


def _patched(section: Mapping[str, Any]) -> Iterator[str]:
    for several in _mapping(section.get("patches")).values():
        for patch in several if isinstance(several, list) else ():
            for option in ("path", "from"):
                if isinstance(text := _mapping(patch).get(option), str):
                    yield text


def _is_mark(path: str, marks: Marks) -> bool:
    key = metadata_key(path)
    return key is not None and marks.is_mark(key[1])


def _plain(path: FieldPath) -> FieldPath:
    """Return the part of a path above its first list."""
    steps = path_steps(path)
    return steps[: steps.index(EACH)] if EACH in steps else steps


def _is_patched(path: str, other: str) -> bool:
    """Return True if a patch at ``other`` changes a part of a field."""
    try:
        return overlaps(path, _plain(other))
    except ValueError:  # reported by its own section
        return False


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
