"""Scheduling relative to other pods: the tenant's selectors must match this tenant's pods only.

All virtual namespaces may share a host namespace. So a selector is narrowed to the marks for the
virtual cluster and the virtual namespace.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from syncer.api import Context, Key, Obj, TooLarge, labels_of, selectors
from syncer.resources.kinds import PODS
from syncer.resources.selected_namespaces import BY_LABEL, NamespaceSelection

#: Fields of an affinity term that become part of its selector.
_FOLDED = frozenset({"namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys"})

#: Most terms of pod affinity in a Pod: the host pod grows with their product with the namespaces
#: that they select. Schedulers are slow long before.
MOST_TERMS = 200

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def spread(ctx: Context, virtual: Obj, constraints: list[Obj]) -> list[Obj]:
    """Return the topology spread constraints, which count pods of the Pod's own namespace."""
    namespace = virtual["metadata"].get("namespace", "")
    labels = labels_of(virtual)
    marks = ctx.marks.labels(ctx.identity, Key(namespace, ""))
    result = []
    for constraint in constraints:
        kept = {name: value for name, value in constraint.items() if name != "matchLabelKeys"}
        selector = constraint.get("labelSelector")
        if selector is not None:
            wide = selectors.folded(selector, labels, match=constraint.get("matchLabelKeys") or ())
            kept["labelSelector"] = selectors.narrowed(wide, marks)
        result.append(kept)
    return result


def affinity(ctx: Context, virtual: Obj, given: Obj) -> Obj:
    """Return the affinity: node affinity unchanged, pod affinity and anti-affinity narrowed.

    Raises:
        TooLarge: It has too many terms, or these name too many namespaces or have too many
            expressions.
        Refused: Their selectors find too many namespaces, or too many whose labels aren't indexed
            would have to be read.
    """
    result = dict(given)
    named = NamespaceSelection(ctx, BY_LABEL, "its affinity", "terms", "spec.affinity")
    terms = _Terms(ctx, virtual, named)
    for part in ("podAffinity", "podAntiAffinity"):
        if found := given.get(part):
            result[part] = terms.of(found)
    return result


@dataclass(slots=True)
class _Terms:
    """The affinity terms of a Pod, counted while they are narrowed."""

    ctx: Context
    virtual: Obj
    named: NamespaceSelection
    terms: int = 0

    def of(self, given: Obj) -> Obj:
        """Return a pod affinity or anti-affinity with narrowed terms."""
        result = dict(given)
        required = given.get(_REQUIRED) or ()
        preferred = given.get(_PREFERRED) or ()
        self.terms += len(required) + len(preferred)
        if self.terms > MOST_TERMS:
            why = f"has {self.terms} terms of pod affinity, and {MOST_TERMS} are accepted"
            raise TooLarge(f"{why}; use fewer", path="spec.affinity")
        if required:
            result[_REQUIRED] = [self._term(term) for term in required]
        if preferred:
            result[_PREFERRED] = []
            for one in preferred:
                term = self._term(one["podAffinityTerm"])
                result[_PREFERRED].append({**one, "podAffinityTerm": term})
        return result

    def _term(self, term: Obj) -> Obj:
        """Return an affinity term. A term without a selector matches no pod, and stays so."""
        ctx = self.ctx
        result = {name: value for name, value in term.items() if name not in _FOLDED}
        selector = term.get("labelSelector")
        if selector is None:
            return result
        selector = selectors.folded(
            selector,
            labels_of(self.virtual),
            match=term.get("matchLabelKeys") or (),
            mismatch=term.get("mismatchLabelKeys") or (),
        )
        selector = selectors.narrowed(selector, {ctx.marks.cluster: ctx.identity})
        wanted = self._namespaces(term)
        if wanted is None:
            return {**result, "labelSelector": selector, **_anywhere(ctx)}
        is_of_these = selectors.one_of(ctx.marks.namespace_label, wanted)
        selector = selectors.required(selector, is_of_these)
        return {**result, "labelSelector": selector, **_host_namespaces(ctx, self.virtual, wanted)}

    def _namespaces(self, term: Obj) -> list[str] | None:
        """Return the virtual namespaces of a term; None for all.

        A namespace selector is evaluated now: the scheduler evaluates the term when it places the
        Pod, which is soon.
        """
        named = term.get("namespaces") or []
        selector = term.get("namespaceSelector")
        self.named.count(len(named))
        if selector is None:
            return named or [self.virtual["metadata"].get("namespace", "")]
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            return None
        return [*named, *self.named.selected(selector)]


def _anywhere(ctx: Context) -> Obj:
    """Return the namespaces of a term for all of them.

    None are named if all copies share the Pod's host namespace, which is a term's default.
    """
    spaces = ctx.names.host_namespaces()
    if spaces is not None and len(spaces) == 1:
        return {}
    return {"namespaceSelector": {}}


def _host_namespaces(ctx: Context, virtual: Obj, namespaces: Iterable[str]) -> Obj:
    """Return the host namespaces of virtual ones, unless they are the Pod's own."""
    own = _host_namespace(ctx, virtual["metadata"].get("namespace", ""))
    found = sorted({_host_namespace(ctx, namespace) for namespace in namespaces})
    if found and found != [own]:
        return {"namespaces": found}
    return {}


def _host_namespace(ctx: Context, namespace: str) -> str:
    return ctx.names.to_host(PODS, Key(namespace, "any")).namespace
