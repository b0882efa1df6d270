"""Checks of selectors, metadata rules, ``authority`` and ``onHostDeletion`` of kinds.

They are compared with the fields that the kind's syncer owns.
"""

import inspect
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
from syncer.api.metadata_defaults import of_every_kind
from syncer.api.metadata_rules import MetadataFilter
from syncer.config.document import Mistake, Steps, as_list, as_mapping
from syncer.directions import direction_class
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


def owners(
    data: Mapping[str, Any],
    syncers: Sequence[type[Syncer]],
    marks: Marks,
) -> Iterator[Mistake]:
    """Yield problems of each ``selector``, ``metadata``, ``authority`` and ``onHostDeletion``."""
    sync = as_mapping(data.get("sync"))
    for syncer in syncers:
        direction, _, name = syncer.section.partition(".")
        section = as_mapping(as_mapping(sync.get(direction)).get(name))
        yield from _section(("sync", direction, name), section, _of_syncer(syncer), marks)

    for name, given in as_mapping(sync.get("custom")).items():
        kind = _of_entry(name, given)
        if kind is None:
            continue
        path = ("sync", "custom", name)
        section = as_mapping(given)
        yield from _section(path, section, kind, marks)
        for number, field in enumerate(as_list(section.get("up"))):
            if _is_mark(field, marks):
                yield (*path, "up", number), _NO_MARK


def _of_syncer(syncer: type[Syncer]) -> _Kind:
    """Return the fields of a syncer's kind."""
    goes_down = direction_class(syncer).goes_down
    references = syncer.references if issubclass(syncer, Refers) else {}
    by_name = {path: each for path, each in references.items() if isinstance(each, Reference)}
    qualified = [path for path, reference in by_name.items() if reference.beside]
    return _Kind(
        goes_down=goes_down,
        has_selector=goes_down or _declares(syncer.config, "selector"),
        own_deletion=syncer.own_deletion,
        down=syncer.down,
        both=syncer.both,
        translates=syncer.translates,
        metadata=syncer.metadata,
        qualified=qualified,
    )


def _declares(config: type[Config], option: str) -> bool:
    """Return True if a kind redefines an option that every kind has."""
    for each in config.__mro__:
        if each is Config:
            break
        if option in inspect.get_annotations(each):
            return True
    return False


def _of_entry(name: str, section: Any) -> _Kind | None:
    """Return the fields of a ``sync.custom`` entry; None if its own section reports a problem."""
    if section is None:
        section = {}
    try:
        config = CustomConfig.model_validate(section).of(name)
    except ValidationError:
        return None
    return _Kind(
        goes_down=config.direction == "toHost",
        has_selector=True,
        own_deletion=config.on_delete == "retain",
        down=config.down_with(config.authority),
        both=(),
        translates=(),
        metadata=MetadataRules(),
        qualified=[path for path in config.references if path_steps(path)[-1] == "name"],
        all_goes=config.down is None,
    )


def _section(
    path: Steps,
    section: Mapping[str, Any],
    kind: _Kind,
    marks: Marks,
) -> Iterator[Mistake]:
    """Yield the problems of the section of a kind; ``path`` leads to it."""
    policy = section.get("onHostDeletion", "recreate")
    if policy != "recreate":
        if not kind.goes_down:
            yield (
                (*path, "onHostDeletion"),
                f"can't be {policy!r}: this kind has no copies on the host.",
            )
        elif kind.own_deletion:
            yield (
                (*path, "onHostDeletion"),
                f"can't be {policy!r}: this kind has a rule of its own for that.",
            )

    if any(as_mapping(section.get("selector")).values()) and not kind.has_selector:
        yield (*path, "selector"), "can't be given: this kind does not go to the host."

    if path[1] == "fake" and _has_rules(as_mapping(section.get("metadata"))):
        yield (*path, "metadata"), "can't be given: no labels or annotations of this kind cross."

    for field, owner in _authority(section).items():
        problem = ""
        if _is_mark(field, marks):
            problem = _NO_MARK
        elif owner != "virtual":
            problem = _problem_of_owner(field, kind, section)
        if problem:
            yield (*path, "authority", field), problem


def _authority(section: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the given owners by path; empty if their own section reports a problem."""
    try:
        return Config.model_validate({"authority": section.get("authority", {})}).authority
    except ValidationError:
        return {}


def _rules(section: Mapping[str, Any]) -> MetadataRules:
    """Return the given metadata rules; empty if their own section reports a problem."""
    try:
        return Config.model_validate({"metadata": section.get("metadata", {})}).metadata
    except ValidationError:
        return MetadataRules()


def _has_rules(metadata: Mapping[str, Any]) -> bool:
    return any(any(as_mapping(part).values()) for part in metadata.values())


def _problem_of_owner(path: str, kind: _Kind, section: Mapping[str, Any]) -> str:
    """Return why a field can't have another owner; ``""`` if it can."""
    key = metadata_key(path)
    going: list[FieldPath] = []
    if kind.goes_down:
        going = [*kind.down, *kind.both]

    is_metadata = kind.goes_down and key is not None
    if not is_metadata and not any(is_within(path, own) for own in going):
        if not going:
            which = "nothing of this kind does"
        elif kind.all_goes:
            which = "what goes is all but status and what comes up"
        else:
            which = f"what goes is {', '.join(map(path_text, going))}"
        return f"is no field that goes to the host; {which}."

    for own in kind.translates:
        if overlaps(path, _plain(own)):
            why = f"{path_text(own)} is another value on the host, and can't go up."
            return f"can't have another owner: {why}"

    for own in kind.both:
        if overlaps(path, own) and path_steps(own) != path_steps(path):
            return f"can't have another owner than {path_text(own)}, which both sides own."

    every = of_every_kind(goes_down=kind.goes_down)
    if key and not MetadataFilter(kind.metadata, _rules(section), every=every).crosses(*key):
        why = f"it stays behind, as the metadata rules of this kind say of {key[0]}."
        return f"can't have another owner: {why}"

    for own in kind.qualified:
        holder = path_steps(own)[:-1]
        if is_within(own, path) and not is_within(holder, path):
            why = f"the fields beside {path_text(own)} say what object the name is of."
            return f"can't have another owner alone: {why}"

    for patched in _patched(section):
        if _is_patched(path, patched):
            return f"can't have another owner: a patch changes {patched}."
    return ""


def _patched(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths in the patches of a section."""
    for patches in as_mapping(section.get("patches")).values():
        for patch in as_list(patches):
            for option in ("path", "from"):
                text = as_mapping(patch).get(option)
                if isinstance(text, str):
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
