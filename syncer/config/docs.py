"""The help of options: the docstring under each field, read from the source only when somebody asks for it.

Pydantic can do so itself, but does it for every model whenever the module is imported: 50 ms of CPU at every start of a
daemon that shows no help.
"""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache

from pydantic import BaseModel


def document(model: type[BaseModel]) -> None:
    """Give the fields of a model, and of the sections below it, their docstrings as descriptions."""
    below = [section for field in model.model_fields.values() for section in _sections(field.annotation)]
    for section in below:
        document(section)
    missing = {name: field for name, field in model.model_fields.items() if not field.description}
    for name, field in missing.items():
        field.description = next((docs[name] for cls in model.__mro__ if name in (docs := _docs(cls))), None)
    if missing or below:
        model.model_rebuild(force=True)  # the JSON schema is made from what was built, not from the fields


def _sections(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


@cache
def _docs(cls: type) -> Mapping[str, str]:
    """The docstring under each field of a class, by field; empty where the source isn't there."""
    if cls is BaseModel or not issubclass(cls, BaseModel):
        return {}
    try:
        [made] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    assert isinstance(made, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in itertools.pairwise(made.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
