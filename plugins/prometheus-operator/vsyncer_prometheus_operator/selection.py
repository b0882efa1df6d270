"""The selectors of a monitor.

Copies on the host have their virtual namespace as a label, so it can be selected.
"""

from syncer.api import Context, Key, Obj, Resource, selectors


def narrowed(ctx: Context, spec: Obj, namespace: str) -> Obj:
    """Return the monitor's label selector, narrowed to this virtual cluster and the namespaces
    that the monitor names.
    """
    selector = selectors.narrowed(spec.get("selector") or {}, {ctx.marks.cluster: ctx.identity})
    wanted = _namespaces(spec, namespace)
    if wanted is None:
        return selector
    return selectors.required(selector, selectors.one_of(ctx.marks.namespace_label, wanted))


def namespace_selector(ctx: Context, spec: Obj, namespace: str, selected: Resource) -> Obj:
    """Return the ``namespaceSelector`` for the host namespaces of these virtual namespaces."""
    wanted = _namespaces(spec, namespace)
    if wanted is not None:
        found = {ctx.names.to_host(selected, Key(each, "any")).namespace for each in wanted}
        return {"matchNames": sorted(found)}
    known = ctx.names.host_namespaces()
    return {"any": True} if known is None else {"matchNames": sorted(known)}


def _namespaces(spec: Obj, namespace: str) -> list[str] | None:
    """Return the virtual namespaces of a monitor: its own if it names none; None for all."""
    selector = spec.get("namespaceSelector") or {}
    if selector.get("any"):
        return None
    return selector.get("matchNames") or [namespace]
