"""Names from a template such as ``{namespace}-{name}``, and back."""

import difflib
import hashlib
import re
from collections.abc import Iterator

from syncer.api import Key
from syncer.names.forms import LABEL, SUBDOMAIN, NameForm

#: The fields that may stand in braces.
FIELDS = ("cluster", "namespace", "name")
#: Hexadecimal digits of the digest in a hashed name, 4 bits each.
_DIGITS = 20

_FIELD = re.compile(r"\{([^{}]*)\}")
_LITERAL = re.compile(r"[-a-z0-9.]*")
_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[^a-z0-9]+")
_LOOKS_HASHED = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}$")

#: A part of a template: text, or the name of a field.
_Part = tuple[str, str]


class Template:
    """A template that gives different names to different keys.

    A name is **readable** if it results from a single key, fits its kind, and doesn't end like a
    hashed one. Any other is **hashed**: some of the text, a dash, and 80 bits of SHA-256 of the
    key. So ``b-c`` in ``a`` and ``c`` in ``a-b`` have different names with ``{namespace}-{name}``,
    too. With a dot between the fields (``{name}.{namespace}``) all names that fit are readable,
    since no namespace contains a dot.
    """

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises:
            ValueError: The text is not a template, or lacks the name.
        """
        self.text = text
        self._parts = list(_parts(text))

    def has(self, field: str) -> bool:
        """Return True if the template contains a field."""
        return ("field", field) in self._parts

    def render(self, cluster: str, key: Key, form: NameForm) -> str:
        """Return the name for a key, readable or hashed."""
        values = {"cluster": cluster, "namespace": key.namespace, "name": key.name}
        text = ""
        for kind, part in self._parts:
            if kind == "field":
                text += values[part]
            else:
                text += part

        if form.fits(text) and not _LOOKS_HASHED.search(text):
            known = key if self.has("namespace") else Key("", key.name)
            if self.keys(cluster, text, most=2) == [known]:
                return text

        digest = hashlib.sha256(f"{key.namespace}/{key.name}".encode()).hexdigest()[:_DIGITS]
        stem = _NEITHER_LETTER_NOR_DIGIT.sub("-", text).strip("-")
        stem = stem[: form.limit - _DIGITS - 2].rstrip("-")
        return f"{stem or 'n'}-{digest}"

    def keys(self, cluster: str, text: str, *, most: int = 2) -> list[Key]:
        """Return up to ``most`` keys that result in this text.

        They have no namespace if the template has none.
        """
        found: list[Key] = []
        for values in _readings(tuple(self._parts), text, {"cluster": cluster}):
            key = Key(values.get("namespace", ""), values["name"])
            if key not in found:
                found.append(key)
            if len(found) == most:
                break
        return found


def _parts(text: str) -> Iterator[_Part]:
    """Parse a template into its parts.

    Raises:
        ValueError: The text is not a template, or lacks the name.
    """
    position = 0
    has_name = False
    for found in _FIELD.finditer(text):
        yield from _literal(text[position : found.start()])
        if found[1] not in FIELDS:
            known = ", ".join(f"{{{field}}}" for field in FIELDS)
            message = f"there is no {found[0]} in a name, only {known}."
            near = difflib.get_close_matches(found[1], FIELDS, n=1)
            if near:
                message += f" Did you mean {{{near[0]}}}?"
            raise ValueError(message)
        if found[1] == "name":
            has_name = True
        yield "field", found[1]
        position = found.end()
    yield from _literal(text[position:])
    if not has_name:
        raise ValueError("must have {name} in it, or two objects would have one name")


def _literal(text: str) -> Iterator[_Part]:
    if not _LITERAL.fullmatch(text):
        allowed = "lower-case letters, digits, - and ."
        raise ValueError(f"may have {allowed} outside the braces, and not {text!r}")
    if text:
        yield "text", text


def _readings(
    parts: tuple[_Part, ...],
    text: str,
    values: dict[str, str],
) -> Iterator[dict[str, str]]:
    """Yield all ways to split a text into the parts, as the values of the fields."""
    if not parts:
        if not text:
            yield values
        return

    kind, part = parts[0]
    rest = parts[1:]
    known = part if kind == "text" else values.get(part)
    if known is not None:
        if text.startswith(known):
            yield from _readings(rest, text[len(known) :], values)
        return

    # The first field that isn't known yet: try every length that its form allows.
    form = LABEL if part == "namespace" else SUBDOMAIN
    for end in range(1, min(len(text), form.limit) + 1):
        if form.pattern.fullmatch(text, 0, end):
            yield from _readings(rest, text[end:], values | {part: text[:end]})
