"""Labels on the copies of Pods that the tenant's NetworkPolicies isolate.

NetworkPolicies of a namespace add up, so what the operator's own lets through, a tenant's can't hold up. By these
labels the operator's leave out the Pods about which the tenant's decide.
"""

import json
from collections.abc import Iterable

from cachetools import LRUCache, cached

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
#: What follows the namespace in the value of a policy that isolates all Pods there, as it is too long or can't be read.
_ALL = "/all"
#: What follows it in the value that says whom a policy isolates, as JSON, so that no Pod's decision reads the policy.
_SUMMARY = "/summary="
#: Most policies of a namespace that are looked at for a Pod; with more, its Pods are isolated.
MOST_READ = 100
#: Most labels of a policy that are compared with the syncer's selector; one with more counts as selected.
MOST_LABELS = 32
#: Memory for cached summaries, and for each besides its text, in bytes, approximately.
SUMMARY_BYTES, OVERHEAD = 8 << 20, 500
#: What values of wrong types, or too deep ones, lead to.
_MALFORMED = (AttributeError, KeyError, TypeError, RecursionError)


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
    home, reader = key_of(virtual).namespace, ctx.reader
    keys = reader.indexed(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, home)
    if len(keys) > MOST_READ or reader.indexed(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, home + _ALL):
        return isolated
    values = (value for key in keys for value in reader.values(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, key))
    start = home + _SUMMARY
    try:
        policies = [_summary(value.removeprefix(start)) for value in values if value.startswith(start)]
        selecting = [each for each in policies if _is_synced(each, config) and selectors.matches(each["selector"], own)]
    except _MALFORMED:
        return isolated
    return {mark: "true" for kind, mark in by_type.items() if _is_isolated(kind, selecting)}


def _is_synced(policy: Obj, config: NetworkPolicyConfig) -> bool:
    return "labels" not in policy or config.selector.selects({"metadata": {"labels": policy["labels"]}})


def _is_isolated(kind: str, policies: list[Obj]) -> bool:
    """Return True if policies isolate in this direction, and none of them lets through everything."""
    opened = [policy["opens"][kind] for policy in policies if kind in policy["opens"]]
    return bool(opened) and not any(opened)


def _namespace(obj: Obj) -> Iterable[str]:
    return (key_of(obj).namespace,)


def _of_policy(policy: Obj) -> Iterable[str]:
    home = key_of(policy).namespace
    if is_deleting(policy):
        return (home,)
    try:
        return (home, f"{home}{_ALL}" if is_too_long(policy) else f"{home}{_SUMMARY}{_summed_up(policy)}")
    except _MALFORMED:
        return (home, home + _ALL)


def _summed_up(policy: Obj) -> str:
    """Return the JSON of whom a policy isolates, and in which directions it lets through everything."""
    spec, labels = policy.get("spec") or {}, labels_of(policy)
    types = policy_types(spec)
    opens = {
        kind: any(not rule.get(peers) and not rule.get("ports") for rule in spec.get(rules) or ())
        for kind, rules, peers in DIRECTIONS
        if kind in types
    }
    known = {"labels": dict(labels)} if len(labels) <= MOST_LABELS else {}
    return json.dumps({"selector": spec.get("podSelector") or {}, "opens": opens, **known}, sort_keys=True)


@cached(LRUCache(SUMMARY_BYTES, getsizeof=lambda policy: OVERHEAD + 8 * len(str(policy))))
def _summary(text: str) -> Obj:
    """Parse a summary. Cached, so the result must not be changed."""
    found: Obj = json.loads(text)
    return found
