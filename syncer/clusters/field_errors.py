"""Remove the values that API servers quote in their messages.

The values may be secrets, and logs and Events show the messages.

An error of a field is ``title: value: detail``. Value and detail may each be missing, and both may
have colons in them (``ErrorBody`` of ``field.Error`` in k8s.io/apimachinery). The value is a
number, a word, a string in double quotes, or JSON; API servers before Kubernetes 1.34 write Go
syntax for JSON. A message of several fields has them all in a row.
"""

import re

#: The titles after which a value may follow. That of ``Not found`` is the name of another object or
#: part, and stays.
_TITLE = re.compile(
    r"(?:^|(?<=: ))(?:Invalid value|Unsupported value|Duplicate value|Too many|Too few)(?=: )",
)
#: The text after a value: its detail, or the next field's error.
_END = r"(?=: |, |\]|\Z)"
_STRING = r'"[^"\\]*(?:\\[\s\S][^"\\]*)*"'
_QUOTED = re.compile(_STRING + _END)
_PLAIN = re.compile(r"(?:[-+]?\d[\w.+-]*|[-+]?Inf|NaN|true|false|null|<nil>)" + _END)
#: A single word, as types that write themselves have it; prose has more before its first colon.
_WORD = re.compile(r"[^\s\"{\[(&*][^\s\"{\[(]*?(?=: |\]?\Z)")
#: The first word of prose, that is of a detail without a value. Go has a space only before a brace.
_PROSE = re.compile(r"(?!(?:interface|struct) \{)[^\s\"{\[(&*][^\s\"{\[(]*\s")
#: Pieces of JSON and Go syntax: a string, a bracket, and the text between.
_PIECE = re.compile(rf'{_STRING}|[{{\[(]|[}}\])]|[^"{{}}\[\]()]+')
#: The text before and between the brackets of a Go type.
_TYPE = re.compile(r"[\w.*&]+|[*&]?(?:interface|struct) ")
_AFTER = re.compile(_END)
#: Longest message that is searched for the ends of values, in characters.
LONGEST = 1 << 15
#: The least length of a value, in characters, of which unquoted repetitions are removed: a shorter
#: one may be a word.
_LONG = 8


def without_values(message: str) -> str:
    """Return a message of an API server without the values of fields.

    Repetitions of the values are removed, too.

    Where the end of a value isn't certain, all that follows is removed, as it is in messages over
    ``LONGEST``. The time is proportional to the length.
    """
    title = _TITLE.search(message)
    if title is None:
        return message
    if len(message) > LONGEST:
        return message[: title.end()]
    kept = [message[: title.start()]]
    while title is not None:
        kept.append(title[0])
        start = title.end() + len(": ")
        end = _end(message, start)
        if end is None:
            break
        value = message[start:end]
        rest = end if value else title.end()
        title = _TITLE.search(message, rest)
        detail = message[rest:]
        if title is not None:
            detail = message[rest : title.start()]
        kept.append(_without_repetitions(detail, value))
    return "".join(kept)


def _end(text: str, start: int) -> int | None:
    """Return the end of the value that begins at ``start``.

    It is ``start`` if there is no value, and None if that isn't certain.
    """
    for form in (_QUOTED, _PLAIN, _WORD):
        found = form.match(text, start)
        if found is not None:
            return found.end()
    if _PROSE.match(text, start):
        return start
    return _end_of_composite(text, start)


def _end_of_composite(text: str, start: int) -> int | None:
    """Return the end of JSON or Go syntax, such as ``map[string]string{"a": "b"}``.

    None if it is neither.
    """
    depth = 0
    position = start
    while piece := _PIECE.match(text, position):
        position = piece.end()
        first = piece[0][0]
        if first in "{[(":
            depth += 1
        elif first in "}])":
            depth -= 1
            if depth == 0 and _AFTER.match(text, position):
                return position
        elif depth == 0 and not _TYPE.fullmatch(piece[0]):
            return None
        if depth < 0:
            return None
    return None


def _without_repetitions(detail: str, value: str) -> str:
    """Return a detail without the value, which it may quote once more.

    An example is ``must be of type integer: "string"``.
    """
    bare = value[1:-1]
    if not (value.startswith('"') and bare):
        return detail
    detail = detail.replace(f": {value}", "").replace(value, "…")
    if len(bare) < _LONG:
        return detail
    return re.sub(rf"(?<![\w.-]){re.escape(bare)}(?![\w-])", "…", detail)
