"""What of a host object is told in the virtual cluster."""

from collections.abc import Iterable, Mapping

from syncer.api import FieldPath, Obj, Resource, copy_fields
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.resources.secrets import CONTROL_PLANE_TYPES

#: What the host owns of objects that an operator makes there, by kind.
_OWNED: Mapping[Resource, tuple[str, ...]] = {
    SECRETS: ("data", "type", "immutable"),
    CONFIG_MAPS: ("data", "binaryData", "immutable"),
}


def owned(resource: Resource) -> tuple[str, ...]:
    """Return the paths of an object of this kind that say what it is."""
    return _OWNED.get(resource, ("spec", "status"))


def copied(source: Obj, target: Obj, paths: Iterable[FieldPath]) -> Obj:
    """Return the target with what the source has at the paths; the target itself is filled."""
    copy_fields(source, target, paths)
    return target


def harmless(obj: Obj) -> Obj:
    """Return the object, as no control plane acts on it: a Secret of a type that means
    something to one becomes Opaque.
    """
    return {**obj, "type": "Opaque"} if obj.get("type") in CONTROL_PLANE_TYPES else obj


def must_be_made_anew(old: Obj, new: Obj) -> bool:
    """Return True if an API server refuses to change one into the other: the type differs, or
    it is immutable and differs.
    """
    if "type" in new and old.get("type") != new["type"]:
        return True
    parts = ("data", "binaryData")
    return bool(old.get("immutable")) and any((old.get(part) or {}) != (new.get(part) or {}) for part in parts)
