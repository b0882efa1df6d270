"""The ``patches`` part of a syncer's section: changes to an object just before it is written."""

import math
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from syncer.api.objects import Json
from syncer.api.paths import path_steps, pointer_steps
from syncer.api.section import Section

_TAKES_VALUE = ("add", "replace", "test")
_TAKES_FROM = ("move", "copy")


class Patch(Section):
    """A single change: an operation of RFC 6902 (`op`), or a `rename`, `labels` or `cel` at a
    path.
    """

    #: Fields that identify an object; no patch may change them.
    protected: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("apiVersion",),
        ("kind",),
        *(("metadata", name) for name in ("name", "namespace", "uid", "resourceVersion")),
    )

    op: Literal["add", "remove", "replace", "move", "copy", "test"] | None = None
    """An operation of RFC 6902 (JSON Patch). A `test` that does not hold parks the object."""

    path: str
    """The field to change.

    With `op` a JSON pointer such as `/spec/containers/0/image`; otherwise a JSON pointer, or a
    dotted path such as `spec.containers[].image`, in which `[]` stands for every item of a list.
    """

    from_: str = Field(default="", alias="from")
    """The field that `op: move` and `op: copy` take the value from, as a JSON pointer."""

    value: Json = None
    """The value for `op: add`, `op: replace` and `op: test`."""

    rename: str = ""
    """A kind, or plural.group.

    The value at the path is the name of an object of this kind, or a mapping with its `name` and
    optionally its `namespace`. It is translated: to the host name on the way down, to the virtual
    name on the way up.
    """

    labels: Literal["selector", "map", "text"] | None = None
    """The form of the label selector at the path: `selector` for a LabelSelector (`matchLabels`,
    `matchExpressions`), `map` for labels alone, `text` for a string such as `app=web`. On the way
    down, the selector is narrowed to the objects of this virtual cluster, and of the same virtual
    namespace if the kind is namespaced; on the way up, this restriction is removed.
    """

    cel: str = ""
    """A CEL expression whose result becomes the value at the path; `null` removes the field.

    Variables: `value` (the current value, or `null`), `self` (the object being written), `other`
    (the object on the side that it comes from) and `context` (`cluster`, `identity`,
    `hostNamespace`, and `namespace` and `name` of the virtual object). Its cost is bounded before
    it is evaluated; an object for which that would be over 0.1 s is parked. Needs the extra
    `vsyncer[cel]`.
    """

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the path, ``EACH`` for every item of a list."""
        return path_steps(self.path)

    @property
    def from_steps(self) -> tuple[str, ...]:
        """The steps of ``from``."""
        return pointer_steps(self.from_)

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, path: str, info: ValidationInfo) -> str:
        op = info.data.get("op")
        steps = pointer_steps(path) if op else path_steps(path)
        if op != "test":
            _refuse_protected(steps)
        return path

    @field_validator("from_")
    @classmethod
    def _is_a_pointer(cls, from_: str, info: ValidationInfo) -> str:
        steps = pointer_steps(from_)
        if info.data.get("op") == "move":
            _refuse_protected(steps)
        return from_

    @field_validator("value")
    @classmethod
    def _is_json(cls, value: Any) -> Any:
        _refuse_unless_json(value)
        return value

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        given = [name for name in ("op", "rename", "labels", "cel") if getattr(self, name)]
        if len(given) != 1:
            found = "has none of op, rename, labels and cel"
            if given:
                found = f"has {' and '.join(given)}"
            raise ValueError(f"{found}; a patch does one thing")
        self._refuse_what_op_does_not_take()
        return self

    def _refuse_what_op_does_not_take(self) -> None:
        what = f"op {self.op}" if self.op else "a patch without op"
        options = (("value", "value", _TAKES_VALUE), ("from_", "from", _TAKES_FROM))
        for attribute, option, takers in options:
            is_given = attribute in self.model_fields_set
            is_taken = self.op in takers
            if is_given != is_taken:
                needs = "needs a" if is_taken else "takes no"
                raise ValueError(f"{what} {needs} {option}")

        if self.op == "move" and self.path != self.from_:
            beginning = self.steps[: len(self.from_steps)]
            if beginning == self.from_steps:
                raise ValueError("op move can't move a value into itself")


class Patches(Section):
    """Changes to objects of this kind just before they are written.

    An object whose patch fails is parked.
    """

    down: tuple[Patch, ...] = ()
    """Patches of objects that are written to the host, applied in order."""

    up: tuple[Patch, ...] = ()
    """Patches of objects that are written to the virtual cluster, applied in order."""


def _refuse_protected(steps: tuple[str, ...]) -> None:
    for protected in Patch.protected:
        shared = min(len(steps), len(protected))
        if steps[:shared] == protected[:shared]:
            path = ".".join(protected)
            raise ValueError(f"would change {path}, which says what the object is; no patch may")


def _refuse_unless_json(value: Any) -> None:
    """Refuse values that YAML has and JSON doesn't: dates, bytes, NaN and infinity."""
    if isinstance(value, dict):
        for inner in value.values():
            _refuse_unless_json(inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_unless_json(inner)
    else:
        is_number = type(value) is float and math.isfinite(value)
        if value is not None and not isinstance(value, str | bool | int) and not is_number:
            kind = type(value).__name__
            raise ValueError(f"holds a {kind}, which JSON does not have. Put it in quotes")
