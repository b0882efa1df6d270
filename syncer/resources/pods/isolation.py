"""Labels on the copies of Pods that the tenant's NetworkPolicies isolate.

NetworkPolicies of a namespace add up, so what the operator's own lets through, a tenant's can't hold up. By these
labels the operator's leave out the Pods about which the tenant's decide.
"""

from collections.abc import Iterable, Iterator

from syncer.api import Context, Index, Obj, Settings, Side, Source, is_deleting, key_of, labels_of, selectors
from syncer.resources.kinds import NETWORK_POLICIES, PODS
from syncer.resources.network_policies import (
    DIRECTIONS,
    NetworkPolicyConfig,
    NetworkPolicySyncer,
    is_too_long,
    policy_types,
)

#: The index of virtual policies and Pods by namespace.
_BY_NAMESPACE = "isolation-namespace"
#: What follows the namespace in the value of a policy that isn't read, as it is too long.
_LONG = "/long"
#: Most policies of a namespace that are read for a Pod; with more, its Pods are isolated.
MOST_READ = 100


def sources(settings: Settings) -> Iterable[Source]:
    """Return what :func:`labels` reads."""
    return [Source(Side.VIRTUAL, NETWORK_POLICIES)] if NetworkPolicySyncer.name in settings.sections else ()


def indexes() -> Iterable[Index]:
    """Return the indexes by which a change of a policy concerns the Pods of its namespace."""
    on = NetworkPolicySyncer.name
    return [
        Index(Source(Side.VIRTUAL, PODS), _BY_NAMESPACE, _namespace, optional_with=on),
        Index(
            Source(Side.VIRTUAL, NETWORK_POLICIES),
            _BY_NAMESPACE,
            _of_policy,
            optional_with=on,
            requeues=_BY_NAMESPACE,
            when="change",
        ),
    ]


def labels(ctx: Context, virtual: Obj) -> dict[str, str]:
    """Return the labels of a Pod's copy: a direction is isolated if a policy selects the Pod for it, unless one of them
    lets through everything.

    A policy isolates also while it is refused, so that nothing is open which the tenant means to close. One that is
    refused for its length isolates all Pods of its namespace, as does one with values of wrong types, which a lying API
    server shows.
    """
    config = ctx.settings.section(NetworkPolicySyncer.name, NetworkPolicyConfig)
    if config is None:
        return {}
    marks, own = ctx.marks, labels_of(virtual)
    by_type = {"Ingress": marks.isolated_ingress, "Egress": marks.isolated_egress}
    isolated = dict.fromkeys(by_type.values(), "true")
    home = key_of(virtual).namespace
    keys = ctx.reader.indexed(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, home)
    if len(keys) > MOST_READ or ctx.reader.indexed(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, home + _LONG):
        return isolated
    read = (ctx.virtual(NETWORK_POLICIES, key) for key in sorted(keys))
    specs = [
        policy.get("spec") or {}
        for policy in read
        if policy and not is_deleting(policy) and config.selector.selects(policy)
    ]
    try:
        selecting = [spec for spec in specs if selectors.matches(spec.get("podSelector") or {}, own)]
        return {by_type[kind]: "true" for kind in _isolated(selecting)}
    except (AttributeError, KeyError, TypeError):
        return isolated


def _isolated(specs: list[Obj]) -> Iterator[str]:
    """Yield the types of the directions that the specs of policies isolate together."""
    for kind, rules, peers in DIRECTIONS:
        found = [spec.get(rules) or () for spec in specs if kind in policy_types(spec)]
        if found and not any(not rule.get(peers) and not rule.get("ports") for given in found for rule in given):
            yield kind


def _namespace(obj: Obj) -> Iterable[str]:
    return (key_of(obj).namespace,)


def _of_policy(policy: Obj) -> Iterable[str]:
    home = key_of(policy).namespace
    return (home, home + _LONG) if is_too_long(policy) else (home,)
