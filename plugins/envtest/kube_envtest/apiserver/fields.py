"""Errors about fields, in the API server's words.

Source: `k8s.io/apimachinery/pkg/util/validation/field`.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple


class FieldError(NamedTuple):
    """An invalid field: its path, the problem, and the machine-readable reason (`FieldValueInvalid`, …)."""

    path: str
    message: str
    reason: str

    @property
    def cause(self) -> dict[str, str]:
        """Return the error as an entry of `details.causes` of a Status."""
        return {"reason": self.reason, "message": self.message, "field": self.path}

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """Return the error for a value that breaks a rule."""
    return FieldError(path, _with_detail(f"Invalid value: {_shown(value)}", detail), "FieldValueInvalid")


def wrong_type(path: str, value: Any, detail: str) -> FieldError:
    """Return the error for a value of another type than the schema's."""
    return FieldError(path, _with_detail(f"Invalid value: {_shown(value)}", detail), "FieldValueTypeInvalid")


def required(path: str, detail: str = "") -> FieldError:
    """Return the error for a missing value."""
    return FieldError(path, _with_detail("Required value", detail), "FieldValueRequired")


def forbidden(path: str, detail: str) -> FieldError:
    """Return the error for a value that is forbidden here or now."""
    return FieldError(path, _with_detail("Forbidden", detail), "FieldValueForbidden")


def duplicate(path: str, value: Any) -> FieldError:
    """Return the error for a value that may occur only once."""
    return FieldError(path, f"Duplicate value: {_shown(value)}", "FieldValueDuplicate")


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error for a value that isn't among the allowed ones."""
    options = ", ".join(_shown(one) for one in sorted(supported))
    text = f"Unsupported value: {_shown(value)}"
    return FieldError(path, _with_detail(text, f"supported values: {options}"), "FieldValueNotSupported")


def too_long(path: str, most: int) -> FieldError:
    """Return the error for a string or an object of too many bytes."""
    return FieldError(path, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")


def too_many(path: str, found: int, most: int) -> FieldError:
    """Return the error for a list with too many items."""
    return FieldError(path, f"Too many: {found}: must have at most {most} items", "FieldValueTooMany")
