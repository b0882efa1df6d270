"""The help of options: the docstring under each field, read from the source on demand.

Pydantic can do so itself, but does it for every model whenever the module is imported: 50 ms of CPU
at every start of a daemon that shows no help.
"""

import ast
import inspect
import itertools
import textwrap
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel


@cache
def document(model: type[BaseModel]) -> None:
    """Set the docstrings of fields as their descriptions, in a model and the sections below it.

    Does nothing the second time.
    """
    for name, field in model.model_fields.items():
        section = section_in(field.annotation) or item_in(field.annotation)
        if section:
            document(section)
        if not field.description:
            field.description = _docstring(model, name)
    # The JSON schema is made from the built model, not from its fields.
    model.model_rebuild(force=True)


def _docstring(model: type[BaseModel], name: str) -> str | None:
    """Return the docstring of a field, of the class or of one that it inherits from."""
    for cls in model.__mro__:
        docs = _docs(cls)
        if name in docs:
            return docs[name]
    return None


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union; of any other type, the type itself."""
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


def section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a field of this type holds, or None."""
    for each in alternatives(annotation):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None


def item_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that each item of a mapping or list of this type is, or None."""
    for each in alternatives(annotation):
        origin = get_origin(each)
        arguments = get_args(each)
        if not isinstance(origin, type):
            continue
        if issubclass(origin, Mapping):
            return section_in(arguments[-1])
        if issubclass(origin, Sequence):
            return section_in(arguments[0])
    return None


@cache
def _docs(cls: type) -> Mapping[str, str]:
    """Return the docstrings of a class's fields, by field; empty if the source is not available."""
    if cls is BaseModel or not issubclass(cls, BaseModel):
        return {}
    try:
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    assert isinstance(definition, ast.ClassDef)

    docs: dict[str, str] = {}
    for field, below in itertools.pairwise(definition.body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if not isinstance(below, ast.Expr) or not isinstance(below.value, ast.Constant):
            continue
        if isinstance(below.value.value, str):
            docs[field.target.id] = inspect.cleandoc(below.value.value)
    return docs
