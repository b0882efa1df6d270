"""The syntax of names, labels and keys.

Each check returns the problems, an empty list if there are none.

Source: `k8s.io/apimachinery/pkg/api/validate/content` and `pkg/util/validation`, including the
messages.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

Check = Callable[[str], Sequence[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_ENDS = "and must start and end with an alphanumeric character"
_NAME_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_NAME_EXAMPLES = ("MyName", "my.name", "123-abc")


def _matches(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value, re.ASCII) is not None


def _rule(text: str, pattern: str, *examples: str) -> str:
    # The API server's own text, including its stray space before "or".
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{text} (e.g. {shown}, regex used for validation is '{pattern}')"


def _at_most(value: str, most: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {most} {unit}"] if len(value.encode()) > most else []


@lru_cache(4096)
def dns1123_label(value: str) -> Sequence[str]:
    """Check a namespace's or a container's name."""
    found = _at_most(value, 63)
    if not _matches(_LABEL, value):
        if _matches(_SUBDOMAIN, value):
            return (*found, "must not contain dots")
        text = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
        found.append(_rule(text, _LABEL, "my-name", "123-abc"))
    return tuple(found)


@lru_cache(4096)
def dns1123_subdomain(value: str) -> Sequence[str]:
    """Check the name of most objects."""
    found = _at_most(value, 253)
    if not _matches(_SUBDOMAIN, value):
        text = f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
        found.append(_rule(text, _SUBDOMAIN, "example.com"))
    return tuple(found)


@lru_cache(4096)
def path_segment(value: str) -> Sequence[str]:
    """Check a name that only has to fit into a URL: roles and bindings."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{bad}'" for bad in ("/", "%") if bad in value)


@lru_cache(4096)
def qualified_name(value: str) -> Sequence[str]:
    """Check a label's or annotation's key, or a finalizer."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        text = f"{_rule('a valid label key ' + _NAME_RULE, _NAME, *_NAME_EXAMPLES)}"
        return (f"{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    found: list[str] = []
    if slash:
        problems = dns1123_subdomain(prefix) if prefix else ("must be non-empty",)
        found += ["prefix part " + problem for problem in problems]
    if not name:
        found.append("name part must be non-empty")
    found += ["name part " + problem for problem in _at_most(name, 63, "bytes")]
    if not _matches(_NAME, name):
        found.append("name part " + _rule(_NAME_RULE, _NAME, *_NAME_EXAMPLES))
    return tuple(found)


@lru_cache(4096)
def label_value(value: str) -> Sequence[str]:
    """Check a label's value."""
    found = _at_most(value, 63, "bytes")
    if not _matches(f"({_NAME})?", value):
        text = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " + _ENDS
        found.append(_rule(text, f"({_NAME})?", "MyValue", "my_value", "12345"))
    return tuple(found)


@lru_cache(4096)
def config_key(value: str) -> Sequence[str]:
    """Check a key of a ConfigMap or Secret."""
    found = _at_most(value, 253)
    if not _matches(_CONFIG_KEY, value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found.append(_rule(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    elif value == ".":
        found.append("must not be '.'")
    elif value.startswith(".."):
        problem = "must not start with '..'"
        if value == "..":
            problem = "must not be '..'"
        found.append(problem)
    return tuple(found)


@lru_cache(4096)
def env_name(value: str) -> Sequence[str]:
    """Check the name of an environment variable."""
    if value and all(" " <= char <= "~" and char != "=" for char in value):
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


@lru_cache(4096)
def port_name(value: str) -> Sequence[str]:
    """Check a container port's name."""
    found = _at_most(value, 15)
    if not _matches("[-a-z0-9]+", value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)
