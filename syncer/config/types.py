"""Looks into the models: which options there are below a path, and how to name their types to a reader."""

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, PlainSerializer
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from syncer.config.docs import alternatives, document, section_in
from syncer.config.document import Steps
from syncer.config.values import Kind

_SIMPLE = {str: "text", int: "whole number", float: "number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its path, what it takes, its default as a file has it, and its help.

    ``model`` is set where options are below it.
    """

    path: str
    takes: str
    default: Any
    required: bool
    help: str
    model: type[BaseModel] | None = None


def model_in(model: type[BaseModel], steps: Steps) -> type[BaseModel] | None:
    """The model of the value at a place, or None where that isn't a section."""
    annotation: Any = model
    for step in steps:
        annotation = _inside(annotation, step)
    return section_in(annotation)


def options(model: type[BaseModel], path: str = "") -> Iterator[Option]:
    """The options of a model, one level deep, in the order of the model."""
    document(model)
    for name, field in model.model_fields.items():
        yield _option(field, f"{path}.{field.alias or name}" if path else field.alias or name)


def option_at(model: type[BaseModel], path: str) -> Option | None:
    """The option at a dotted path, or None; ``""`` is the whole configuration."""
    whole = Option("", "section", None, required=False, help=_doc(model), model=model)
    for step in filter(None, path.split(".")):
        if whole.model is None:
            return None
        below = {option.path.rpartition(".")[2]: option for option in options(whole.model, whole.path)}
        if step not in below:
            return None
        whole = below[step]
    return whole


def _option(field: FieldInfo, path: str) -> Option:
    inner = section_in(field.annotation)
    default = None if inner or field.is_required() else _written(field)
    text = field.description or (_doc(inner) if inner else "")
    return Option(path, _takes(field), default, required=field.is_required(), help=text, model=inner)


def _written(field: FieldInfo) -> Any:
    """The default as it is written in a file."""
    default = field.get_default(call_default_factory=True)
    for mark in field.metadata:
        if isinstance(mark, PlainSerializer):
            return cast("Callable[[Any], Any]", mark.func)(default)
    return to_jsonable_python(default, by_alias=True)


def _doc(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _takes(field: FieldInfo) -> str:
    kinds = [str(mark) for mark in field.metadata if isinstance(mark, Kind)]
    return kinds[0] if kinds else _type_text(field.annotation)


def _type_text(annotation: Any) -> str:
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    arguments, origin = get_args(annotation), get_origin(annotation)
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(each) for each in arguments if each is not type(None))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {_type_text(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence | frozenset | set):
        return f"list of {_type_text(arguments[0])}"
    if section_in(annotation):
        return "section"
    return "text" if isinstance(annotation, type) and issubclass(annotation, str) else "value"


def _inside(annotation: Any, step: str | int) -> Any:
    """The type of what is one step below a value of this type; None where nothing can be."""
    for each in alternatives(annotation):
        if isinstance(step, str) and (section := section_in(each)):
            fields = section.model_fields.items()
            return next((field.annotation for name, field in fields if step in (field.alias, name)), None)
        if arguments := get_args(each):
            return arguments[0] if isinstance(step, int) else arguments[-1]
    return None
