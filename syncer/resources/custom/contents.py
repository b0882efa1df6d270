"""The contents of host objects that appear in the virtual cluster."""

from collections.abc import Iterable, Mapping

from syncer.api import Context, FieldPath, Key, Obj, Resource, copy_fields, host_names, key_of
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.resources.secrets import CONTROL_PLANE_TYPES

#: The paths that hold the contents of objects that operators create on the host, by kind.
_OWNED: Mapping[Resource, tuple[str, ...]] = {
    SECRETS: ("data", "type", "immutable"),
    CONFIG_MAPS: ("data", "binaryData", "immutable"),
}


def owned(resource: Resource) -> tuple[str, ...]:
    """Return the paths that hold the contents of an object of this kind."""
    return _OWNED.get(resource, ("spec", "status"))


def shown(ctx: Context, host: Obj, key: Key, paths: Iterable[FieldPath]) -> Obj:
    """Return the virtual object that shows the fields at the paths of a host object. Messages in its status have
    virtual names.
    """
    virtual = ctx.virtual_copy(host, key)
    copy_fields(host, virtual, paths)
    if "status" in virtual:
        virtual["status"] = host_names(ctx, key, key_of(host)).in_messages(virtual["status"])
    return virtual


def harmless(obj: Obj) -> Obj:
    """Return the object in a form that no control plane acts on: a Secret of such a type becomes Opaque."""
    return {**obj, "type": "Opaque"} if obj.get("type") in CONTROL_PLANE_TYPES else obj


def must_be_made_anew(old: Obj, new: Obj) -> bool:
    """Return True if an API server refuses to change ``old`` to ``new``: the type differs, or it is
    immutable and differs.
    """
    if "type" in new and old.get("type") != new["type"]:
        return True
    parts = ("data", "binaryData")
    return bool(old.get("immutable")) and any((old.get(part) or {}) != (new.get(part) or {}) for part in parts)
