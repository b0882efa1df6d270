"""The ``selector`` of a section: which objects are synced, by their labels."""

from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from syncer.api import selectors
from syncer.api.objects import Obj, labels_of
from syncer.api.section import Section


class Expression(Section):
    """One requirement on a label."""

    key: str = Field(min_length=1)
    """The label."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How its value is compared."""

    values: tuple[str, ...] = ()
    """The values, for `In` and `NotIn`."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            raise ValueError(f"operator {self.operator} {'takes no' if self.values else 'needs'} values")
        return self


class Selector(Section):
    """A label selector; empty, it selects everything."""

    match_labels: dict[str, str] = Field(default={})
    """Labels and their values, all of which must be there."""

    match_expressions: tuple[Expression, ...] = ()
    """Further requirements, all of which must hold."""

    def __bool__(self) -> bool:
        return self.narrows

    @cached_property
    def narrows(self) -> bool:
        """Return True if there are objects that it may leave out."""
        return bool(self.match_labels or self.match_expressions)

    @cached_property
    def plain(self) -> Obj:
        """Return the selector as Kubernetes writes it; it must not be changed."""
        labels, expressions = dict(self.match_labels), [one.model_dump() for one in self.match_expressions]
        return {
            **({"matchLabels": labels} if labels else {}),
            **({"matchExpressions": expressions} if expressions else {}),
        }

    def selects(self, obj: Obj) -> bool:
        """Return True if it selects an object."""
        return not self.narrows or selectors.matches(self.plain, labels_of(obj))
