"""Metadata rules: the labels and annotations that are copied, by the rules of a kind and of its
section.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator

from syncer.api.marks import PREFIX
from syncer.api.objects import LONGEST_LABEL, LONGEST_NAME
from syncer.api.paths import FieldPath, metadata_key
from syncer.api.section import Section

#: The annotation in which ``kubectl apply`` stores the last applied object. It belongs to the side
#: on which kubectl ran, so it is never copied.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

#: The label that each API server sets on its Namespaces.
NAMESPACE_NAME = "kubernetes.io/metadata.name"

#: The longest key of a label or annotation that an API server accepts, in characters: a DNS
#: subdomain, a slash, and a name.
KEY_LIMIT = LONGEST_NAME + 1 + LONGEST_LABEL
#: The number of keys whose answer is remembered, for the labels and for the annotations of a kind.
_REMEMBERED = 2048
#: Sets of patterns that are kept as a function.
_MATCHERS = 64
#: The names of mappings that hold labels and annotations.
_HOLDERS = frozenset({"labels", "annotations"})

_GLOB = re.compile(r"[-A-Za-z0-9._/*?]+")
_WILDCARD = re.compile(r"[*?]")
_EXPECTED = (
    "expected the key of a label or annotation, such as example.org/team, or a pattern with * and ?"
)


def _glob(text: str) -> str:
    if not _GLOB.fullmatch(text):
        raise ValueError(_EXPECTED)
    return text


_KeyGlob = Annotated[str, AfterValidator(_glob)]


class KeyRules(Section):
    """The keys that are copied. A denied key is never copied, even if it is allowed."""

    allow: tuple[_KeyGlob, ...] = ()
    """Keys that are copied; `*` stands for any characters and `?` for a single one.

    Empty: all that the kind lets through. A key that the kind denies is copied only if it is listed
    in full, or by a pattern that spells out the domain and the beginning of the name, such as
    `alb.ingress.kubernetes.io/actions.*`. A key that is merely not on the list of a kind that has
    one is copied by a pattern that spells out the domain, too, such as `example.org/*`. To keep
    copying all others, add `*`.
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


#: The rules by which everything crosses.
_NO_RULES = MetadataRules()


def _is_no_note(key: str) -> bool:
    return False


class MetadataFilter:
    """The rules of every kind, of a kind, and of its section, compiled."""

    def __init__(
        self,
        kind: MetadataRules,
        section: MetadataRules,
        host_owned: Iterable[FieldPath] = (),
        *,
        every: MetadataRules = _NO_RULES,
        prefix: str = PREFIX,
        reserved: Collection[str] = (),
        is_note: Callable[[str], bool] = _is_no_note,
    ) -> None:
        """Compile the rules.

        Args:
            kind: The rules of the kind. What it allows crosses even if ``every`` denies it.
            section: The rules of its section.
            host_owned: The fields that never go down; only labels and annotations among them
                matter here.
            every: The rules of every kind of the direction.
            prefix: The prefix of the marks, which never cross.
            reserved: Further keys that never cross.
            is_note: Returns True for the key of a tool's note, whose denial isn't reported.
        """
        self._is_note = is_note
        self._section = section
        self._every = every
        keys_by_path = [metadata_key(path) for path in host_owned]
        self._host_owned = {key for key in keys_by_path if key}
        self._prefix = prefix + "/"
        self._reserved = frozenset((*reserved, LAST_APPLIED, NAMESPACE_NAME))
        self._parts = {
            "labels": self._keys("labels", kind.labels),
            "annotations": self._keys("annotations", kind.annotations),
        }
        #: This filter with other rules for annotations.
        self._others: dict[KeyRules, MetadataFilter] = {}

    def _keys(self, part: str, kind: KeyRules) -> "_Keys":
        section: KeyRules = getattr(self._section, part)
        every: KeyRules = getattr(self._every, part)
        host_owned = {key for holder, key in self._host_owned if holder == part}
        return _Keys(kind, section, every, host_owned, self.is_reserved)

    def with_annotation_rules(self, annotations: KeyRules) -> "MetadataFilter":
        """Return this filter with ``annotations`` in place of the kind's own annotation rules.

        The section's still apply. Pass a module constant: a compiled filter is kept for each.
        """
        found = self._others.get(annotations)
        if found is None:
            found = copy(self)
            found._parts = {**self._parts, "annotations": self._keys("annotations", annotations)}
            self._others[annotations] = found
        return found

    def is_reserved(self, key: str) -> bool:
        """Return True if a key never crosses, even if a rule allows it.

        Such keys are marks, which a tenant must not forge, ``kubectl``'s own note, a label of the
        API server's, and the reserved ones.
        """
        return key.startswith(self._prefix) or key in self._reserved

    def crosses(self, part: str, key: str) -> bool:
        """Return True if a key is copied; ``part`` is ``labels`` or ``annotations``."""
        return self._parts[part][key]

    def is_denied(self, part: str, key: str) -> bool:
        """Return True if the rules deny a key by its name; ``part`` as in :meth:`crosses`."""
        return self._parts[part].is_denied(key)

    def is_named(self, part: str, key: str) -> bool:
        """Return True if the section allows a key by its name; ``part`` as in :meth:`crosses`."""
        return self._parts[part].is_named(key)

    def kept(self, part: str, found: Mapping[str, str]) -> dict[str, str]:
        """Return the labels or annotations that are copied."""
        crosses = self._parts[part]
        return {key: value for key, value in found.items() if crosses[key]}

    def denied(self, part: str, found: Iterable[str]) -> list[str]:
        """Return the keys that the rules deny.

        Keys that never cross, keys that come from the host, and notes of tools are left out.
        """
        keys = self._parts[part]
        denied = []
        for key in found:
            if keys[key]:
                continue
            is_ours = self.is_reserved(key) or keys.is_hosts(key) or self._is_note(key)
            if not is_ours:
                denied.append(key)
        return denied


class _Keys(dict[str, bool]):
    """Whether a label, or an annotation, crosses; answers are remembered within bounds."""

    def __init__(
        self,
        kind: KeyRules,
        section: KeyRules,
        every: KeyRules,
        host_owned: set[str],
        is_reserved: Callable[[str], bool],
    ) -> None:
        super().__init__()
        self._host_owned = host_owned
        self._is_reserved = is_reserved
        self._denied = matcher(section.deny)
        #: Returns True if the section allows a key by its name, or by a pattern that begins it.
        self.is_named = matcher(tuple(filter(_names_beginning, section.allow)))
        self._of_domain = matcher(tuple(filter(_names_domain, section.allow)))
        self._chosen = matcher(section.allow or ("*",))
        self._kind_denies = matcher(kind.deny)
        self._every_denies = matcher(every.deny)
        self._has_list = bool(kind.allow)
        self._listed = matcher(kind.allow)

    def __missing__(self, key: str) -> bool:
        crosses = self._crosses(key)
        if len(key) <= KEY_LIMIT:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[key] = crosses
        return crosses

    def is_hosts(self, key: str) -> bool:
        """Return True if the host owns the key: it is there since it came up."""
        return key in self._host_owned

    def is_denied(self, key: str) -> bool:
        """Return True if a rule denies the key, and none allows it by its name."""
        if self._denied(key):
            return True
        if self.is_named(key):
            return False
        return self._kind_denies(key) or (self._every_denies(key) and not self._listed(key))

    def _crosses(self, key: str) -> bool:
        if self._is_reserved(key) or key in self._host_owned or self.is_denied(key):
            return False
        if self.is_named(key):
            return True
        if self._has_list and not (self._listed(key) or self._of_domain(key)):
            return False
        return self._chosen(key)


def _names_domain(glob: str) -> bool:
    """Return True if a pattern spells out the domain of its keys, or the whole key."""
    beginning = _WILDCARD.split(glob)[0]
    return beginning == glob or "/" in beginning


def _names_beginning(glob: str) -> bool:
    """Return True if a pattern spells out the domain and the beginning of the name of its keys.

    So does a pattern that is a whole key.
    """
    beginning = _WILDCARD.split(glob)[0]
    return beginning == glob or bool(beginning.partition("/")[2])


def without_keys(
    value: Any,
    stays: Callable[[str, str], bool],
    is_mark: Callable[[str], bool],
) -> Any:
    """Return a value without some keys of labels and annotations, at any depth.

    These are the keys of ``labels`` and ``annotations`` for which ``stays(part, key)`` is true, and
    marks in any mapping: an operator on the host may write those of a template to the objects that
    it makes, and may have them under other names (``podLabels``, ``commonAnnotations``). The value
    is not changed; parts without such keys are shared with the result.
    """
    if isinstance(value, dict):
        result = value
        for name, old in value.items():
            if isinstance(old, dict | list):
                new = old
                if name in _HOLDERS and isinstance(old, dict):
                    kept = {key: each for key, each in old.items() if not stays(name, key)}
                    new = kept if len(kept) < len(old) else old
                new = without_keys(new, stays, is_mark)
                if new is not old:
                    result = value.copy() if result is value else result
                    result[name] = new
            elif isinstance(old, str) and is_mark(name):
                result = value.copy() if result is value else result
                del result[name]
        return result
    if isinstance(value, list):
        items = value
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                new = without_keys(item, stays, is_mark)
                if new is not item:
                    items = value.copy() if items is value else items
                    items[index] = new
        return items
    return value


@lru_cache(maxsize=_MATCHERS)
def matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a function that returns True if a key matches a pattern.

    Most kinds have the same patterns. They are compared by searching for texts: a tenant may change
    thousands of long keys again and again, and a regular expression of a hundred patterns takes
    0.2 ms for such a key.
    """
    named = frozenset(glob for glob in globs if not set(glob) & set("*?"))
    with_star = [glob[:-1] for glob in globs if glob.endswith("*")]
    beginnings = tuple(text for text in with_star if not set(text) & set("*?"))
    in_parts = [glob.split("*") for glob in globs if "*" in glob[:-1] and "?" not in glob]
    telling = [(max(parts, key=len), parts) for parts in in_parts]
    with_any = [re.compile(translate(glob)).match for glob in globs if "?" in glob]

    def matches(key: str) -> bool:
        if key in named or key.startswith(beginnings):
            return True
        for longest, parts in telling:
            if longest in key and _consists_of(key, parts):
                return True
        return any(match(key) for match in with_any)

    return matches


def _consists_of(key: str, parts: list[str]) -> bool:
    """Return True if a key has these parts in this order, the first and the last at its ends."""
    first, *middle, last = parts
    at = len(first)
    end = len(key) - len(last)
    if not (key.startswith(first) and key.endswith(last)):
        return False
    for part in middle:
        at = key.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return at <= end
