"""Inspect the models: the options below a path, and readable names of their types."""

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

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
    return [] if section is None else [field.alias or name for name, field in section.model_fields.items()]


def options(model: type[BaseModel], path: str = "") -> Iterator[Option]:
    """Yield the options of a model, one level deep, in the order of the model."""
    document(model)
    for name, field in model.model_fields.items():
        yield _option(field, f"{path}.{field.alias or name}" if path else field.alias or name)


def option_at(model: type[BaseModel], path: str) -> Option | None:
    """Return the option at a dotted path, or None; ``""`` is the configuration as a whole."""
    whole = Option("", "section", None, required=False, help=_doc(model), model=model)
    return _below(whole, tuple(path.split(".")) if path else ())


def _below(option: Option, steps: tuple[str, ...]) -> Option | None:
    if not steps:
        return option
    if option.item is not None and option.takes.startswith("mapping"):
        return _in_mapping(option, option.item, steps)
    model = option.model or option.item
    if model is None:
        return None
    name = _plain(steps[0])
    inner = {each.path.rpartition(".")[2]: each for each in options(model, option.path)}
    return _below(inner[name], steps[1:]) if name in inner else None


def _in_mapping(option: Option, item: type[BaseModel], steps: tuple[str, ...]) -> Option | None:
    """Return an item of a mapping, or an option below it.

    A key may contain dots, so it ends where an option begins.

    The key may be ``*``, as in :attr:`Option.items`, a placeholder in capitals such as ``KIND``, or be left
    out for an option of the items.
    """

    def inside(key: str, rest: tuple[str, ...]) -> Option | None:
        path = f"{option.path}.{key}"
        return _below(Option(path, "section", None, required=False, help=_doc(item), model=item), rest)

    if steps[0] == "*" or steps[0].isupper():
        return inside("*", steps[1:])
    if found := inside("*", steps):
        return found
    known = {each.path for each in options(item)}
    ends = [length for length in range(2, len(steps)) if _plain(steps[length]) in known]
    length = ends[0] if ends else len(steps)
    return inside(".".join(steps[:length]), steps[length:])


def _plain(step: str) -> str:
    """Return a step without its list index: ``related[0]`` → ``related``."""
    return step.partition("[")[0]


def _option(field: FieldInfo, path: str) -> Option:
    inner = section_in(field.annotation)
    default = None if inner or field.is_required() else _written(field)
    text = field.description or (_doc(inner) if inner else "")
    item = None if inner else item_in(field.annotation)
    return Option(path, _takes(field), default, required=field.is_required(), help=text, model=inner, item=item)


def _written(field: FieldInfo) -> Any:
    """Return the default as it is written in a file."""
    default = field.get_default(call_default_factory=True)
    for mark in field.metadata:
        if isinstance(mark, PlainSerializer):
            return cast("Callable[[Any], Any]", mark.func)(default)
    return to_jsonable_python(default, by_alias=True)


def _doc(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _takes(field: FieldInfo) -> str:
    kinds = [str(mark) for mark in field.metadata if isinstance(mark, OptionType)]
    return kinds[0] if kinds else _type_text(field.annotation)


def _type_text(annotation: Any) -> str:
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    arguments, origin = get_args(annotation), get_origin(annotation)
    if origin is Literal:
        return " | ".join(str(each) or '""' for each in arguments)
    if origin is Annotated:
        return next((str(mark) for mark in arguments if isinstance(mark, OptionType)), _type_text(arguments[0]))
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(each) for each in arguments if each is not type(None))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping of {_type_text(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence | frozenset | set):
        return f"list of {_type_text(arguments[0])}"
    if section_in(annotation):
        return "section"
    return "text" if isinstance(annotation, type) and issubclass(annotation, str) else "value"


def inside(annotation: Any, step: str | int) -> Any:
    """Return the type of the value a step below a value of this type; None if there can't be any."""
    for each in alternatives(annotation):
        if isinstance(step, str) and (section := section_in(each)):
            fields = section.model_fields.items()
            return next((field.annotation for name, field in fields if step in (field.alias, name)), None)
        if arguments := get_args(each):
            return arguments[0] if isinstance(step, int) else arguments[-1]
    return None
