"""The contents of host objects that appear in the virtual cluster."""

from collections.abc import Collection, Iterable, Mapping

from syncer.api import Context, FieldPath, Key, Obj, Resource, copy_fields, host_names, key_of
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.resources.secrets import CONTROL_PLANE_TYPES

#: The top-level fields that every object has.
IDENTITY = ("apiVersion", "kind", "metadata")
#: The paths that hold the contents of objects that operators create on the host, by kind.
_OWNED: Mapping[Resource, tuple[FieldPath, ...]] = {
    SECRETS: ("data", "type", "immutable"),
    CONFIG_MAPS: ("data", "binaryData", "immutable"),
}
#: The contents of an object of another kind, as far as they are known without it.
USUAL: tuple[FieldPath, ...] = (("spec",), ("status",))
#: Most top-level fields of an object below which a write leaves nothing else, and the longest of
#: their names, in characters: sets of them are cached, and tenants choose some. CRDs have a dozen.
MOST_EXACT = 64
LONGEST_EXACT = 63


def top_level(obj: Obj, *, without: Collection[str] = IDENTITY) -> tuple[FieldPath, ...]:
    """Return the paths of an object's top-level fields, in the order of their names."""
    return tuple((name,) for name in sorted(obj) if name not in without)


def exact_of(host: Obj, virtual: Obj | None) -> tuple[FieldPath, ...]:
    """Return the paths below which the copy of a whole host object has no fields of its own.

    ``virtual`` is the copy as it is, None for a new one.
    """
    found = (*USUAL, *top_level(host), *top_level(virtual or {}))
    bounded = [path for path in dict.fromkeys(found) if len(path[0]) <= LONGEST_EXACT]
    return tuple(bounded[:MOST_EXACT])


def owned(resource: Resource) -> tuple[FieldPath, ...] | None:
    """Return the paths that hold the contents of every object of this kind.

    None for a custom resource, as its objects may have any fields.
    """
    usual = USUAL if resource.is_built_in else None
    return _OWNED.get(resource, usual)


def shown(ctx: Context, host: Obj, key: Key, paths: Iterable[FieldPath]) -> Obj:
    """Return the virtual object that shows the fields at the paths of a host object.

    Messages in the status have virtual names.
    """
    virtual = ctx.virtual_copy(host, key)
    copy_fields(host, virtual, paths)
    if "status" in virtual:
        names = host_names(ctx, key, key_of(host))
        virtual["status"] = names.in_messages(virtual["status"])
    return virtual


def harmless(obj: Obj) -> Obj:
    """Return an object that no control plane acts on: a Secret of such a type becomes Opaque."""
    if obj.get("type") in CONTROL_PLANE_TYPES:
        return {**obj, "type": "Opaque"}
    return obj


def must_be_replaced(resource: Resource, old: Obj, new: Obj) -> bool:
    """Return True if an API server refuses to change ``old`` to ``new``.

    It does for a Secret of another type, and for an immutable Secret or ConfigMap that is to have
    other contents, or not to be immutable.
    """
    if resource not in _OWNED:
        return False
    if "type" in new and old.get("type") != new["type"]:
        return True
    if not old.get("immutable"):
        return False
    if not new.get("immutable"):
        return True
    for part in ("data", "binaryData"):
        given = old.get(part) or {}
        wanted = new.get(part) or {}
        if given != wanted:
            return True
    return False
