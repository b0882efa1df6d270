"""Scheduling relative to other pods: the tenant's selectors must match this tenant's pods only.

All virtual namespaces may share a host namespace. So a selector is narrowed to the marks for the
virtual cluster and the virtual namespace.
"""

from collections.abc import Iterable

from syncer.api import Context, Key, Obj, Side, labels_of, selectors
from syncer.resources.kinds import NAMESPACES, PODS

#: Fields of an affinity term that become part of its selector.
_FOLDED = frozenset({"namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys"})

_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def spread(ctx: Context, virtual: Obj, constraints: list[Obj]) -> list[Obj]:
    """Return the topology spread constraints, which count pods of the Pod's own namespace."""
    namespace, labels = virtual["metadata"].get("namespace", ""), labels_of(virtual)
    marks = ctx.marks.labels(ctx.identity, Key(namespace, ""))
    result = []
    for constraint in constraints:
        kept = {name: value for name, value in constraint.items() if name != "matchLabelKeys"}
        if (selector := constraint.get("labelSelector")) is not None:
            wide = selectors.folded(selector, labels, match=constraint.get("matchLabelKeys") or ())
            kept["labelSelector"] = selectors.narrowed(wide, marks)
        result.append(kept)
    return result


def affinity(ctx: Context, virtual: Obj, given: Obj) -> Obj:
    """Return the affinity: node affinity unchanged, pod affinity and anti-affinity narrowed."""
    result = dict(given)
    for part in ("podAffinity", "podAntiAffinity"):
        if found := given.get(part):
            result[part] = _pod_affinity(ctx, virtual, found)
    return result


def _pod_affinity(ctx: Context, virtual: Obj, given: Obj) -> Obj:
    result = dict(given)
    if terms := given.get(_REQUIRED):
        result[_REQUIRED] = [_term(ctx, virtual, term) for term in terms]
    if weighted := given.get(_PREFERRED):
        result[_PREFERRED] = [
            {**one, "podAffinityTerm": _term(ctx, virtual, one["podAffinityTerm"])} for one in weighted
        ]
    return result


def _term(ctx: Context, virtual: Obj, term: Obj) -> Obj:
    """Return an affinity term. A term without a selector matches no pod, and stays so."""
    result = {name: value for name, value in term.items() if name not in _FOLDED}
    selector = term.get("labelSelector")
    if selector is None:
        return result
    selector = selectors.folded(
        selector,
        labels_of(virtual),
        match=term.get("matchLabelKeys") or (),
        mismatch=term.get("mismatchLabelKeys") or (),
    )
    selector = selectors.narrowed(selector, {ctx.marks.cluster: ctx.identity})
    if (wanted := _namespaces(ctx, virtual, term)) is None:
        return {**result, "labelSelector": selector, **_anywhere(ctx)}
    selector = selectors.required(selector, selectors.one_of(ctx.marks.namespace_label, wanted))
    return {**result, "labelSelector": selector, **_places(ctx, virtual, wanted)}


def _namespaces(ctx: Context, virtual: Obj, term: Obj) -> list[str] | None:
    """Return the virtual namespaces of a term; None for all.

    A namespace selector is evaluated now: the scheduler evaluates the term when it places the Pod,
    which is soon.
    """
    named, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if selector is None:
        return named or [virtual["metadata"].get("namespace", "")]
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return None
    keys = ctx.reader.keys(Side.VIRTUAL, NAMESPACES)
    return [*named, *(key.name for key in keys if _matches(ctx, key, selector))]


def _matches(ctx: Context, key: Key, selector: Obj) -> bool:
    namespace = ctx.virtual(NAMESPACES, key)
    return namespace is not None and selectors.matches(selector, labels_of(namespace))


def _anywhere(ctx: Context) -> Obj:
    """Return no namespaces if all copies share the Pod's host namespace, which is a term's default."""
    spaces = ctx.names.host_namespaces()
    return {} if spaces is not None and len(spaces) == 1 else {"namespaceSelector": {}}


def _places(ctx: Context, virtual: Obj, namespaces: Iterable[str]) -> Obj:
    """Return the host namespaces of virtual ones, unless they are the Pod's own."""
    own = _place(ctx, virtual["metadata"].get("namespace", ""))
    places = sorted({_place(ctx, namespace) for namespace in namespaces})
    return {"namespaces": places} if places and places != [own] else {}


def _place(ctx: Context, namespace: str) -> str:
    return ctx.names.to_host(PODS, Key(namespace, "any")).namespace
