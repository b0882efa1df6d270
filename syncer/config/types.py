"""Inspect the models: the options below a path, and readable names of their types."""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, PlainSerializer
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from syncer.api.durations import OptionType
from syncer.config.docs import alternatives, document, item_in, section_in
from syncer.config.document import Steps

_SIMPLE = {str: "text", int: "whole number", float: "number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its path, type, default as written in a file, and help.

    ``model`` is set if it has options below it, ``item`` if each item of its mapping or list has.
    """

    path: str
    takes: str
    default: Any
    required: bool
    help: str
    model: type[BaseModel] | None = None
    item: type[BaseModel] | None = None

    @property
    def items(self) -> str:
        """The path of any item of this option."""
        return f"{self.path}.*" if self.takes.startswith("mapping") else f"{self.path}[]"


def model_in(model: type[BaseModel], steps: Steps) -> type[BaseModel] | None:
    """Return the model of the value at these steps, or None if it is not a section."""
    annotation: Any = model
    for step in steps:
        annotation = inside(annotation, step)
    return section_in(annotation)


def option_names(model: type[BaseModel], steps: Steps = ()) -> list[str]:
    """Return the names of the options at these steps; empty if that is not a section."""
    section = model_in(model, steps)
    if section is None:
        return []
    return [field.alias or name for name, field in section.model_fields.items()]


def options(model: type[BaseModel], path: str = "") -> Iterator[Option]:
    """Yield the options of a model, one level deep, in the order of the model."""
    document(model)
    for attribute, field in model.model_fields.items():
        name = field.alias or attribute
        if path:
            name = f"{path}.{name}"
        yield _option(field, name)


def option_at(model: type[BaseModel], path: str) -> Option | None:
    """Return the option at a dotted path, or None; ``""`` is the configuration as a whole."""
    whole = Option("", "section", None, required=False, help=_doc(model), model=model)
    steps = tuple(path.split(".")) if path else ()
    return _below(whole, steps)


def _below(option: Option, steps: tuple[str, ...]) -> Option | None:
    """Return the option at some steps below another one, or None."""
    if not steps:
        return option
    if option.item is not None and option.takes.startswith("mapping"):
        return _in_mapping(option, option.item, steps)

    model = option.model or option.item
    if model is None:
        return None
    name = _plain(steps[0])
    for each in options(model, option.path):
        if each.path.rpartition(".")[2] == name:
            return _below(each, steps[1:])
    return None


def _in_mapping(option: Option, item: type[BaseModel], steps: tuple[str, ...]) -> Option | None:
    """Return an item of a mapping, or an option below it.

    A key may contain dots, so it ends where an option begins.

    The key may be ``*``, as in :attr:`Option.items`, a placeholder in capitals such as ``KIND``, or
    be left out for an option of the items.
    """

    def inside(key: str, rest: tuple[str, ...]) -> Option | None:
        path = f"{option.path}.{key}"
        entry = Option(path, "section", None, required=False, help=_doc(item), model=item)
        return _below(entry, rest)

    if steps[0] == "*" or steps[0].isupper():
        return inside("*", steps[1:])
    without_key = inside("*", steps)
    if without_key is not None:
        return without_key

    known = {each.path for each in options(item)}
    length = len(steps)
    for end in range(2, len(steps)):
        if _plain(steps[end]) in known:
            length = end
            break
    return inside(".".join(steps[:length]), steps[length:])


def _plain(step: str) -> str:
    """Return a step without its list index: ``related[0]`` → ``related``."""
    return step.partition("[")[0]


def _option(field: FieldInfo, path: str) -> Option:
    model = section_in(field.annotation)
    if model is not None:
        text = field.description or _doc(model)
        return Option(
            path,
            _takes(field),
            None,
            required=field.is_required(),
            help=text,
            model=model,
        )
    default = None if field.is_required() else _written(field)
    return Option(
        path,
        _takes(field),
        default,
        required=field.is_required(),
        help=field.description or "",
        item=item_in(field.annotation),
    )


def _written(field: FieldInfo) -> Any:
    """Return the default as it is written in a file."""
    default = field.get_default(call_default_factory=True)
    for mark in field.metadata:
        if isinstance(mark, PlainSerializer):
            serialize: Any = mark.func
            return serialize(default)
    return to_jsonable_python(default, by_alias=True)


def _doc(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _takes(field: FieldInfo) -> str:
    """Return the name of the type of a field."""
    for mark in field.metadata:
        if isinstance(mark, OptionType):
            return str(mark)
    return _type_text(field.annotation)


def _type_text(annotation: Any) -> str:
    """Return the name of a type, as in ``list of text``."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]

    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Literal:
        return " | ".join(str(value) or '""' for value in arguments)
    if origin is Annotated:
        for mark in arguments:
            if isinstance(mark, OptionType):
                return str(mark)
        return _type_text(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(each) for each in arguments if each is not type(None))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {_type_text(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence | frozenset | set):
        return f"list of {_type_text(arguments[0])}"

    if section_in(annotation):
        return "section"
    if isinstance(annotation, type) and issubclass(annotation, str):
        return "text"
    return "value"


def inside(annotation: Any, step: str | int) -> Any:
    """Return the type of the value a step below a value of this type; None if there is none."""
    for each in alternatives(annotation):
        section = section_in(each)
        if section is not None and isinstance(step, str):
            for name, field in section.model_fields.items():
                if step in (field.alias, name):
                    return field.annotation
            return None
        arguments = get_args(each)
        if arguments:
            return arguments[0] if isinstance(step, int) else arguments[-1]
    return None
