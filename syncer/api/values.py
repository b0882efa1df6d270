"""Classes of values that are made several times for each object."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with slots, whose fields must not change once it is made.

    Only the type checker refuses a change. ``frozen=True`` refuses it at run time, too, and for
    that sets each field by a call of ``object.__setattr__``: that costs about fifty calls for each
    object synced, 5 % of its CPU. Instances aren't hashable.
    """
    return dataclass(slots=True)(cls)
