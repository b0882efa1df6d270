"""Hide what may be a secret in texts and in JSON that leave the machine.

What a secret looks like in a text is a guess, so nothing goes here that has contents of Secrets or
of kubeconfigs: this is for a message that quotes one, and for an option with one.
"""

import re
from collections.abc import Mapping
from typing import Any

#: What is shown in place of a secret.
HIDDEN = "(hidden)"

#: Words in the name of an option whose value is a secret, in small letters without separators.
_WORDS = (
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "authorization",
    "cookie",
    "annotations",  # those that objects get, which may be anything
)
#: Options of a patch that may be anything.
_ANYTHING = ("value", "cel")

#: Secrets in a text, each with what stays of it.
_IN_TEXTS = (
    # User and password of a URL, which may be a proxy's.
    (re.compile(r"(?<=://)[^\s\"'<>]*@"), f"{HIDDEN}@"),
    (re.compile(r"-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|\Z)", re.DOTALL), HIDDEN),
    # A token of a ServiceAccount, or another JSON Web Token.
    (re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]*)*"), HIDDEN),
    (re.compile(r"(?i)\b(bearer|basic) +[\w.~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"(?i)\b([\w-]*(?:password|passwd|token|secret|api-?key|private-?key|-data))"
            r"(\"?[ \t]*[:=][ \t]*)(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;}]+)"
        ),
        rf"\1\2{HIDDEN}",
    ),
    # The last words of a program for credentials.
    (re.compile(r"(?<=; it printed: ).*", re.DOTALL), HIDDEN),
)


def without_secrets(text: str) -> str:
    """Return a text without what looks like a secret."""
    for pattern, shown in _IN_TEXTS:
        text = pattern.sub(shown, text)
    return text


def values_without_secrets(data: Any) -> Any:
    """Return JSON with the texts in it without what looks like a secret."""
    if isinstance(data, Mapping):
        return {name: values_without_secrets(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [values_without_secrets(value) for value in data]
    return without_secrets(data) if isinstance(data, str) else data


def options_without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of the configuration without those values that may be secrets.

    These are the texts of an option whose name speaks of a secret, and what may be anything.
    """
    shown: dict[str, Any] = {}
    for name, value in options.items():
        if name in _ANYTHING and value:
            shown[name] = HIDDEN
        elif _is_secret(name):
            shown[name] = _texts_hidden(value)
        else:
            shown[name] = _options(value)
    return shown


def _options(value: Any) -> Any:
    if isinstance(value, Mapping):
        return options_without_secrets(value)
    if isinstance(value, list | tuple):
        return [_options(each) for each in value]
    return values_without_secrets(value)


def _is_secret(name: str) -> bool:
    plain = re.sub(r"[\W_]", "", name).lower()
    return any(word in plain for word in _WORDS)


def _texts_hidden(value: Any) -> Any:
    """Return the value of an option with a secret without its texts.

    A section, such as that of Secrets, has more than texts, and stays.
    """
    if isinstance(value, str) and value:
        return HIDDEN
    if isinstance(value, list | tuple):
        return [_texts_hidden(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()):
        return dict.fromkeys(value, HIDDEN)
    return _options(value)
