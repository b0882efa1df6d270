"""The patches ``rename`` and ``labels``, which change a value on its way down and up."""

from collections.abc import Callable
from typing import Any

from syncer.api import Key, Obj, Resource, Side, selectors
from syncer.translate.pointers import MISSING, Unfit, ValuePath, at
from syncer.translate.writing import Writing

#: Returns the resource with a configured name; None if there is none at present.
FindResource = Callable[[str], Resource | None]
#: Returns the new value at a place; ``MISSING`` removes it.
PatchRule = Callable[[Any, Obj, ValuePath, Writing], Any]


def renaming(kind: str, find: FindResource) -> PatchRule:
    """Return the rule for the name of an object of this kind.

    The value may also be a mapping with its ``name`` and ``namespace``.
    """

    def rule(value: Any, obj: Obj, path: ValuePath, write: Writing) -> Any:
        resource = find(kind)
        if resource is None:
            raise Unfit(f"no {kind} is known on either side")
        if value is MISSING or not value:
            return value
        if isinstance(value, str):
            return _renamed(resource, "", value, path, write).name
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return _renamed_pair(resource, value, path, write)
        raise Unfit("the value there is neither a name nor a mapping with one")

    return rule


def _renamed_pair(resource: Resource, pair: Obj, path: ValuePath, write: Writing) -> Obj:
    """Return a mapping with the ``name`` and ``namespace`` of the side that is written to."""
    name = pair["name"]
    if not name:
        return pair
    namespace = pair.get("namespace") or ""
    key = _renamed(resource, namespace, name, (*path, "name"), write)
    renamed = {**pair, "name": key.name}
    if namespace:
        renamed["namespace"] = key.namespace
    return renamed


def _renamed(resource: Resource, namespace: str, name: str, path: ValuePath, write: Writing) -> Key:
    """Return the key on the side that is written to.

    A name without a namespace is in the object's own namespace, and must stay there.
    """
    if resource.namespaced and not (namespace or write.key.namespace):
        owner = "an object that has none"
        raise Unfit(f"the {resource.kind} is named without a namespace by {owner}")
    if write.side is Side.HOST:
        virtual = _key(resource, namespace or write.key.namespace, name)
        return write.ctx.names.to_host(resource, virtual)

    host = _key(resource, namespace or write.host_namespace, name)
    key = _virtual(resource, host, path, write)
    if key is not None:
        is_own = not namespace and key.namespace == write.key.namespace
        if namespace or is_own or not resource.namespaced:
            return key
    raise Unfit(f"the name there is not that of the host copy of a virtual {resource.kind}")


def _virtual(resource: Resource, host: Key, path: ValuePath, write: Writing) -> Key | None:
    """Return the virtual key of a host key.

    It comes from the name, from the virtual object's value, or from the copy's marks.
    """
    ctx = write.ctx
    found = ctx.names.to_virtual(resource, host)
    if found:
        return found

    if write.virtual is not None:
        name = at(write.virtual, path)
        if isinstance(name, str) and name:
            key = _key(resource, write.key.namespace, name)
            if ctx.names.to_host(resource, key) == host:
                return key

    try:
        copy = ctx.host(resource, host)
    except KeyError:  # not watched
        return None
    if copy is None or not ctx.marks.is_ours(copy, cluster=ctx.identity, resource=resource):
        return None
    return ctx.marks.virtual_key(copy)


def _key(resource: Resource, namespace: str, name: str) -> Key:
    if not resource.namespaced:
        return Key("", name)
    return Key(namespace, name)


def narrowing(form: selectors.SelectorForm) -> PatchRule:
    """Return the rule for a label selector of this form.

    A selector of another form is refused, as it would select too much: a host drops unknown fields,
    and the rest of a selector in the wrong form selects everything.
    """
    expected = {
        "selector": "a label selector",
        "map": "labels",
        "text": "a label selector written as text",
    }[form]

    def rule(value: Any, obj: Obj, path: ValuePath, write: Writing) -> Any:
        if value is MISSING or value is None:
            return value
        if not selectors.fits(form, value):
            raise Unfit(f"the value there is not {expected}")
        marks = write.ctx.marks
        if write.side is Side.HOST:
            return selectors.narrowed_in(form, value, marks.labels(write.ctx.identity, write.key))
        return selectors.widened_in(form, value, marks.is_mark)

    return rule
