"""Metadata rules: the labels and annotations that are copied, by the rules of a kind and of its section."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from typing import Annotated

from pydantic import AfterValidator

from syncer.api.paths import FieldPath, metadata_key
from syncer.api.section import Section

_GLOB = re.compile(r"[-A-Za-z0-9._/*?]+")
_EXPECTED = "expected the key of a label or annotation, such as example.org/team, or a pattern with * and ?"


def _glob(text: str) -> str:
    if not _GLOB.fullmatch(text):
        raise ValueError(_EXPECTED)
    return text


_KeyGlob = Annotated[str, AfterValidator(_glob)]


class KeyRules(Section):
    """The keys that are copied. A denied key is never copied, even if it is allowed."""

    allow: tuple[_KeyGlob, ...] = ()
    """Keys that are copied; `*` stands for any characters and `?` for a single one.

    Empty: all. A key that the kind itself excludes is copied only if it is listed in full, without
    `*` and `?`; to keep copying all others, add `*`.
    """

    deny: tuple[_KeyGlob, ...] = ()
    """Keys that are not copied; `*` stands for any characters and `?` for a single one."""


class MetadataRules(Section):
    """Labels and annotations that cross, by their keys."""

    labels: KeyRules = KeyRules()
    """Labels. Those that a Service or a selector on the host selects the copies by must be copied.
    """

    annotations: KeyRules = KeyRules()
    """Annotations. Controllers of the host act on them, whoever has written them."""


class MetadataFilter:
    """The rules of a kind and of its section, compiled."""

    def __init__(self, kind: MetadataRules, section: MetadataRules, host_owned: Iterable[FieldPath] = ()) -> None:
        """Compile the rules.

        ``host_owned`` are the fields that never go down; only labels and annotations among them
        matter here.
        """
        owned = {key for path in host_owned if (key := metadata_key(path))}
        self._parts = {
            part: _Keys(mine, given, {key for holder, key in owned if holder == part})
            for part, mine, given in (
                ("labels", kind.labels, section.labels),
                ("annotations", kind.annotations, section.annotations),
            )
        }
        #: True if some keys may not be copied.
        self.narrows = any(keys.narrows for keys in self._parts.values())

    def crosses(self, part: str, key: str) -> bool:
        """Return True if a key is copied; ``part`` is ``labels`` or ``annotations``."""
        return self._parts[part].crosses(key)

    def kept(self, part: str, found: Mapping[str, str]) -> dict[str, str]:
        """Return the labels or annotations that are copied."""
        keys = self._parts[part]
        return {key: value for key, value in found.items() if keys.crosses(key)}


class _Keys:
    """The rules of labels, or of annotations."""

    def __init__(self, kind: KeyRules, section: KeyRules, host_owned: set[str]) -> None:
        self.narrows = bool(host_owned or kind.allow or kind.deny or section.allow or section.deny)
        self._host_owned = host_owned
        self._named = {glob for glob in section.allow if not set(glob) & set("*?")}
        self._denied, self._kept_back = _matcher(section.deny), _matcher(kind.deny)
        self._allowed = [_matcher(rules.allow) for rules in (kind, section) if rules.allow]

    def crosses(self, key: str) -> bool:
        if key in self._host_owned or self._denied(key):
            return False
        if key in self._named:
            return True
        return not self._kept_back(key) and all(is_allowed(key) for is_allowed in self._allowed)


def _matcher(globs: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that returns True if a key matches a pattern."""
    patterns = [translate(glob) for glob in globs]
    if not patterns:
        return lambda key: False
    matches = re.compile("|".join(patterns)).match
    return lambda key: matches(key) is not None
