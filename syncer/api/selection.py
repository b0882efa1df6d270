"""The ``selector`` of a section: the labels of the objects to sync."""

from functools import cached_property
from typing import Literal, Self

from pydantic import Field, model_validator

from syncer.api import selectors
from syncer.api.objects import Obj, labels_of
from syncer.api.section import Section


class LabelRequirement(Section):
    """A requirement on a label."""

    key: str = Field(min_length=1)
    """The key of the label."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label's value is compared."""

    values: tuple[str, ...] = ()
    """The values, for `In` and `NotIn`."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        takes_values = self.operator in ("In", "NotIn")
        if takes_values and not self.values:
            raise ValueError(f"operator {self.operator} needs values")
        if self.values and not takes_values:
            raise ValueError(f"operator {self.operator} takes no values")
        return self


class Selector(Section):
    """A label selector. Empty, it matches everything."""

    match_labels: dict[str, str] = Field(default={})
    """Labels that must all be present with these values."""

    match_expressions: tuple[LabelRequirement, ...] = ()
    """Further requirements, all of which must hold."""

    def __bool__(self) -> bool:
        return self.narrows

    @cached_property
    def narrows(self) -> bool:
        """True if it may exclude objects."""
        return bool(self.match_labels or self.match_expressions)

    @cached_property
    def plain(self) -> Obj:
        """Return the selector as a LabelSelector. Cached, so it must not be changed."""
        selector: Obj = {}
        if self.match_labels:
            selector["matchLabels"] = dict(self.match_labels)
        if self.match_expressions:
            requirements = [requirement.model_dump() for requirement in self.match_expressions]
            selector["matchExpressions"] = requirements
        return selector

    def selects(self, obj: Obj) -> bool:
        """Return True if it matches an object."""
        return not self.narrows or selectors.matches(self.plain, labels_of(obj))
