"""Parse label and field selectors into predicates, with the API server's grammar and messages.

Source: `k8s.io/apimachinery/pkg/labels` and `pkg/fields`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from kube_envtest.apiserver.fields import invalid
from kube_envtest.apiserver.syntax import label_value, qualified_name

Obj = dict[str, Any]
Labels = Mapping[str, str]

#: The fields that a kind can be selected by besides its name and namespace.
SELECTABLE: Mapping[str, frozenset[str]] = {
    "Pod": frozenset(
        {
            *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
            *("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
        }
    ),
    "Event": frozenset(
        {
            *("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid"),
            *("involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath"),
            *("reason", "reportingComponent", "source", "type"),
        }
    ),
    "Secret": frozenset({"type"}),
    "Namespace": frozenset({"status.phase"}),
    "Node": frozenset({"spec.unschedulable"}),
    "Service": frozenset({"spec.clusterIP", "spec.type"}),
    "ReplicaSet": frozenset({"status.replicas"}),
    "ReplicationController": frozenset({"status.replicas"}),
    "Job": frozenset({"status.successful"}),
    "CertificateSigningRequest": frozenset({"spec.signerName"}),
}


class SelectorError(ValueError):
    """A malformed selector; the message is the API server's."""


_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_OPERATORS = ("in", "notin", "=", "==", "!=", ">", "<")
_EXPECTED = "in, notin, =, ==, !=, gt, lt"


class _Tokens:
    """The tokens of a label selector in order; `""` is the end."""

    def __init__(self, text: str) -> None:
        self._items = _TOKEN.findall(text.strip())
        self._at = 0

    def peek(self) -> str:
        return self._items[self._at] if self._at < len(self._items) else ""

    def take(self) -> str:
        token = self.peek()
        self._at += 1
        return token


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!(),<>"


@lru_cache(1024)
def parse_labels(text: str) -> Callable[[Labels], bool]:
    """Return a predicate on labels for `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.

    Raises:
        SelectorError: The selector is malformed.
    """
    requirements = list(_requirements(_Tokens(text)))

    def matches(labels: Labels) -> bool:
        return all(requirement(labels) for requirement in requirements)

    return matches


def _requirements(tokens: _Tokens) -> Iterator[Callable[[Labels], bool]]:
    if tokens.peek() and not _starts(tokens.peek()):
        raise SelectorError(f"found '{tokens.peek()}', expected: !, identifier, or 'end of string'")
    while tokens.peek():
        try:
            yield _requirement(tokens)
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        after = tokens.take()
        if after not in ("", ","):
            raise SelectorError(f"found '{after}', expected: ',' or 'end of string'")
        if after and not _starts(tokens.peek()):
            raise SelectorError(f"found '{tokens.peek()}', expected: identifier after ','")


def _starts(token: str) -> bool:
    return token == "!" or _is_word(token)


def _requirement(tokens: _Tokens) -> Callable[[Labels], bool]:
    absent = tokens.peek() == "!"
    if absent:
        tokens.take()
    key = tokens.take()
    if not _is_word(key):
        _expected(key, "identifier")
    problems = qualified_name(key)
    if problems:
        raise SelectorError(f"<nil>: {invalid('', key, '; '.join(problems)).message}")
    if absent:
        return lambda labels: key not in labels
    if tokens.peek() in ("", ","):
        return lambda labels: key in labels
    operator = tokens.take()
    if operator not in _OPERATORS:
        _expected(operator, _EXPECTED)
    values = _values(tokens) if operator in ("in", "notin") else [_exact(tokens)]
    return _comparison(key, operator, values)


def _expected(found: str, expected: str) -> NoReturn:
    raise SelectorError(f"found '{found}', expected: {expected}")


def _exact(tokens: _Tokens) -> str:
    if tokens.peek() in ("", ","):
        return ""
    value = tokens.take()
    if not _is_word(value):
        _expected(value, "identifier")
    return value


def _values(tokens: _Tokens) -> list[str]:
    opening = tokens.take()
    if opening != "(":
        raise SelectorError(f"found '{opening}' expected: '('")
    values = []
    last = ","
    while tokens.peek() != ")":
        token = tokens.take()
        if token == ",":
            values += [""] if last == "," else []
        elif not _is_word(token):
            _expected(token, "',', ')' or identifier")
        elif last != ",":
            _expected(token, "',' or ')'")
        else:
            values.append(token)
        last = token
        if not tokens.peek():
            _expected("", "',' or ')'")
    tokens.take()
    return values + ([""] if last == "," else [])


def _comparison(key: str, operator: str, values: list[str]) -> Callable[[Labels], bool]:
    if operator in (">", "<"):
        return _order(key, operator, values[0])
    for value in values:
        problems = label_value(value)
        if problems:
            raise SelectorError(f"values[0][{key}]: {invalid('', value, '; '.join(problems)).message}")
    wanted = frozenset(values)
    if operator in ("in", "=", "=="):
        return lambda labels: key in labels and labels[key] in wanted
    return lambda labels: key not in labels or labels[key] not in wanted


def _order(key: str, operator: str, value: str) -> Callable[[Labels], bool]:
    try:
        limit = int(value)
    except ValueError:
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise SelectorError(f"values[0]: {invalid('', value, why).message}") from None

    def matches(labels: Labels) -> bool:
        try:
            found = int(labels[key])
        except (KeyError, ValueError):
            return False
        return found > limit if operator == ">" else found < limit

    return matches


_TERM = re.compile(r"(?:\\.|[^,\\])+")


@lru_cache(1024)
def _terms(text: str) -> tuple[tuple[str, str, str], ...]:
    """Split a field selector into field, operator and value.

    Raises:
        SelectorError: The selector is malformed.
    """
    out = []
    for term in _TERM.findall(text):
        field, operator, raw = _split(term, text)
        out.append((field, operator, _unescaped(raw)))
    return tuple(out)


def _split(term: str, text: str) -> tuple[str, str, str]:
    for index in range(len(term)):
        for operator in ("!=", "==", "="):
            if term.startswith(operator, index):
                return term[:index], operator, term[index + len(operator) :]
    raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")


def _unescaped(raw: str) -> str:
    bad = re.search(r"\\(?![\\,=]).?", raw)
    if bad:
        raise SelectorError(f"invalid field selector: invalid escape sequence: {bad.group()}")
    plain = re.search(r"[,=]", re.sub(r"\\[\\,=]", "", raw))
    if plain:
        raise SelectorError(f"invalid field selector: unescaped character in value: {ord(plain.group())}")
    return re.sub(r"\\([\\,=])", r"\1", raw)


def parse_fields(text: str) -> Callable[[Obj], bool]:
    """Return a predicate on objects for `metadata.name=a,spec.nodeName!=b`.

    Any dotted path is accepted; `check_fields` knows which of them a kind can be selected by. A
    missing field is "".

    Raises:
        SelectorError: The selector is malformed.
    """
    terms = _terms(text)

    def matches(obj: Obj) -> bool:
        return all((_value(obj, field) == value) is (operator != "!=") for field, operator, value in terms)

    return matches


def exact_name(text: str) -> str:
    """Return the name that a field selector requires; "" if it requires none, or is malformed."""
    try:
        terms = _terms(text)
    except SelectorError:
        return ""
    names = (value for field, operator, value in terms if field == "metadata.name" and operator != "!=")
    return next(names, "")


def check_fields(text: str, kind: str, extra: Iterable[str] = ()) -> None:
    """Refuse a field selector with fields that `kind` can't be selected by.

    `extra` are the paths without the leading dot that a CRD lists as `selectableFields`.

    Raises:
        SelectorError: The selector has such a field.
    """
    known = {"metadata.name", "metadata.namespace", *SELECTABLE.get(kind, ()), *extra}
    for field, _, _ in _terms(text):
        if field not in known and (kind in SELECTABLE or extra):
            raise SelectorError(f"field label not supported: {field}")
        if field not in known:
            only = '"metadata.name", "metadata.namespace"'
            raise SelectorError(f'"{field}" is not a known field selector: only {only}')


def _value(obj: Obj, path: str) -> str:
    """Return the string that a field selector compares."""
    match path:
        case "source":
            return str((obj.get("source") or {}).get("component") or obj.get("reportingComponent") or "")
        case "status.successful":
            path = "status.succeeded"
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return _absent(path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _absent(path: str) -> str:
    """Return the value of a missing field: a number and a boolean have a zero value."""
    if path in ("status.replicas", "status.succeeded"):
        return "0"
    return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
