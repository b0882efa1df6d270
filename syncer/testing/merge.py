"""JSON merge patches, as an API server applies them."""

from collections.abc import Mapping
from typing import Any

from syncer.api import Obj


def merged(target: Obj, patch: Mapping[str, Any]) -> Obj:
    """Return the target with a merge patch (RFC 7386) applied; the arguments are not changed."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            below = result.get(key)
            result[key] = merged(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result
