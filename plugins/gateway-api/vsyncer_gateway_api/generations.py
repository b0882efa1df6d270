"""The generation that a condition of an object from the host is about.

Each side counts the changes of its own object. In the statuses of copies the engine translates.
"""

from syncer.api import Json, Obj, dig

_FIELD = "observedGeneration"


def of_virtual(part: Obj, host: Obj, generation: int) -> Obj:
    """Return a part of a status whose conditions are about generations of the virtual object.

    Tools of the tenant compare these with the object's own, to know whether a condition is about
    its present spec: ``kubectl wait`` and Argo CD do. If it isn't, the generation before stands for
    all earlier ones.

    Args:
        part: A part of the status of the host's object, with conditions.
        host: The host's object.
        generation: The generation of the virtual object.
    """
    conditions = part.get("conditions")
    if not conditions:
        return part
    latest = dig(host, "metadata.generation", 0)
    shown = []
    for condition in conditions:
        if _FIELD not in condition:
            shown.append(condition)
            continue
        observed = generation
        if condition[_FIELD] < latest:
            observed = max(generation - 1, 0)
        shown.append({**condition, _FIELD: observed})
    return {**part, "conditions": shown}


def of_shown(virtual: Obj | None, spec: Obj | None) -> int:
    """Return the generation of a virtual object once it has a spec.

    Args:
        virtual: The object as it is; None if it is about to be created.
        spec: The spec that it gets.
    """
    if virtual is None:
        return 1
    generation: int = dig(virtual, "metadata.generation", 0)
    if _has_all(spec, virtual.get("spec")):
        return generation
    return generation + 1


def _has_all(wanted: Json, found: Json) -> bool:
    """Return True if a value has all that is wanted; API servers may have added defaults."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return False
        return all(name in found and _has_all(value, found[name]) for name, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(wanted) != len(found):
            return False
        return all(_has_all(one, other) for one, other in zip(wanted, found, strict=True))
    return bool(wanted == found)
