"""The ``patches`` part of a syncer's section: what is changed in an object just before it is written."""

import math
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from syncer.api.objects import Json
from syncer.api.paths import path_steps, pointer_steps
from syncer.api.section import Section

_TAKES_VALUE = ("add", "replace", "test")
_TAKES_FROM = ("move", "copy")


class Patch(Section):
    """One change: an operation of RFC 6902 (`op`), or one of `rename`, `labels` and `cel` at a path."""

    #: What says which object it is; no patch may change it.
    protected: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("apiVersion",),
        ("kind",),
        *(("metadata", name) for name in ("name", "namespace", "uid", "resourceVersion")),
    )

    op: Literal["add", "remove", "replace", "move", "copy", "test"] | None = None
    """An operation of RFC 6902 (JSON Patch). `test` that does not hold parks the object."""

    path: str
    """Where. With `op` a JSON pointer such as `/spec/containers/0/image`; else a dotted path such as
    `spec.containers[].image`, in which `[]` stands for every item of a list, or a JSON pointer."""

    from_: str = Field(default="", alias="from")
    """Where `op: move` and `op: copy` take the value from, a JSON pointer."""

    value: Json = None
    """The value for `op: add`, `op: replace` and `op: test`."""

    rename: str = ""
    """A kind, or plural.group. What stands at the path is the name of such an object, or a mapping with its `name` and
    perhaps `namespace`. Going down it becomes the name on the host, going up the virtual one."""

    labels: Literal["selector", "map", "text"] | None = None
    """What stands at the path selects objects by their labels: a LabelSelector (`selector`: `matchLabels`,
    `matchExpressions`), labels alone (`map`), or `text` such as `app=web`. Going down it is narrowed to the objects of
    this virtual cluster, and of the same virtual namespace where the kind has one; going up that is taken out again."""

    cel: str = ""
    """A CEL expression whose result becomes the value at the path; `null` takes the field away. It may use `value`
    (what stands there, else `null`), `self` (the object being written), `other` (the object on the side that it comes
    from) and `context` (`cluster`, `identity`, `hostNamespace`, and of the virtual object `namespace` and `name`).
    Needs the extra `vsyncer[cel]`."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the path, ``EACH`` for every item of a list."""
        return path_steps(self.path)

    @property
    def from_steps(self) -> tuple[str, ...]:
        """The steps of the pointer that a value is taken from."""
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
            found = f"has {' and '.join(given)}" if given else "has none of op, rename, labels and cel"
            raise ValueError(f"{found}; a patch does one thing")
        self._refuse_what_op_does_not_take()
        return self

    def _refuse_what_op_does_not_take(self) -> None:
        what = f"op {self.op}" if self.op else "a patch without op"
        for name, shown, takers in (("value", "value", _TAKES_VALUE), ("from_", "from", _TAKES_FROM)):
            if (name in self.model_fields_set) != (self.op in takers):
                needs = "needs a" if self.op in takers else "takes no"
                raise ValueError(f"{what} {needs} {shown}")
        if self.op == "move" and self.steps[: len(self.from_steps)] == self.from_steps and self.path != self.from_:
            raise ValueError("op move can't move a value into itself")


class Patches(Section):
    """What is changed in objects of this kind just before they are written. A patch that fails parks that object."""

    down: tuple[Patch, ...] = ()
    """Patches, in order, of what is written to the host."""

    up: tuple[Patch, ...] = ()
    """Patches, in order, of what is written to the virtual cluster."""


def _refuse_protected(steps: tuple[str, ...]) -> None:
    for protected in Patch.protected:
        shared = min(len(steps), len(protected))
        if steps[:shared] == protected[:shared]:
            raise ValueError(f"would change {'.'.join(protected)}, which says what the object is; no patch may")


def _refuse_unless_json(value: Any) -> None:
    """YAML has more than JSON: dates, bytes, numbers that are none."""
    if isinstance(value, dict):
        for inner in value.values():
            _refuse_unless_json(inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_unless_json(inner)
    elif not (value is None or isinstance(value, str | bool | int) or (type(value) is float and math.isfinite(value))):
        raise ValueError(f"holds a {type(value).__name__}, which JSON does not have. Put it in quotes")
