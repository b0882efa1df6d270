"""The types of values in an entry: paths, names of kinds, versions, templates.

Each validates itself.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from syncer.api import metadata_key, path_steps
from syncer.names.template import Template
from syncer.resources.custom.contents import IDENTITY

_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")


def _owned(path: str) -> str:
    if path.startswith("/") or "[" in path:
        raise ValueError("expected a path of fields such as spec or spec.template, without lists")
    if path_steps(path)[0] in IDENTITY:
        why = f"expected a path outside {', '.join(IDENTITY)}"
        raise ValueError(f"{why}: labels and annotations always go along")
    return path


def _risen(path: str) -> str:
    if metadata_key(path):
        return path
    return _owned(path)


def _reference(path: str) -> str:
    if path.startswith("/") or re.search(r"\[\d", path):
        how = "such as spec.secretName or spec.endpoints[].secret.name"
        raise ValueError(f"expected a dotted path {how}")
    if path_steps(path)[0] in IDENTITY:
        raise ValueError(f"expected a path outside {', '.join(IDENTITY)}")
    return path


def _maybe_reference(path: str) -> str:
    if path:
        return _reference(path)
    return path


def _version(version: str) -> str:
    if version and not _VERSION.fullmatch(version):
        raise ValueError("expected a version such as v1 or v1beta1")
    return version


def _template(text: str) -> str:
    if text:
        Template(text)
    return text


def _several(value: Any) -> Any:
    """Accept a single kind without a list."""
    if isinstance(value, str):
        return (value,)
    return value


def _some(kinds: tuple[str, ...]) -> tuple[str, ...]:
    if not all(kinds) or not kinds:
        why = "expected a kind such as Secret"
        raise ValueError(f"{why}, or a plural with its group such as issuers.cert-manager.io")
    return kinds


def _written(kinds: tuple[str, ...]) -> Any:
    if len(kinds) == 1:
        return kinds[0]
    return list(kinds)


_TEXT = {"type": "string", "minLength": 1}

#: A path of fields that a side owns.
OwnedPath = Annotated[str, AfterValidator(_owned)]
#: A path of fields that the host owns; in metadata the path of a single label or annotation.
RisenPath = Annotated[str, AfterValidator(_risen)]
#: A path of names, in which ``[]`` stands for every item of a list.
ReferencePath = Annotated[str, AfterValidator(_reference)]
#: The same, or ``""``.
MaybePath = Annotated[str, AfterValidator(_maybe_reference)]
Version = Annotated[str, AfterValidator(_version)]
NameTemplate = Annotated[str, AfterValidator(_template)]
#: A kind or several; always a tuple here.
Kinds = Annotated[
    tuple[str, ...],
    BeforeValidator(_several),
    AfterValidator(_some),
    PlainSerializer(_written),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}),
]
