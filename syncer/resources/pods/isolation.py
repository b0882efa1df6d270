"""Labels on the copies of Pods that the tenant's NetworkPolicies isolate.

NetworkPolicies of a namespace add up, so a tenant's policy can't stop traffic that the operator's
own lets through. By these labels, the operator's policies leave out the Pods that the tenant's
policies select.
"""

import json
from collections.abc import Iterable

from cachetools import LRUCache, cached

from syncer.api import (
    Context,
    Index,
    Obj,
    Settings,
    Side,
    Source,
    is_deleting,
    key_of,
    labels_of,
    selectors,
)
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
#: The end of the value, after the namespace, of a policy that isolates all Pods there, as it is too
#: long or can't be read.
_ALL = "/all"
#: The start, after the namespace, of a summary as JSON: the Pods that a policy isolates. With it no
#: Pod's decision reads the policy.
_SUMMARY = "/summary="
#: Most policies of a namespace that are read for a Pod; with more, its Pods are isolated.
MOST_READ = 100
#: Most labels of a policy that are compared with the syncer's selector; one with more counts as
#: selected.
MOST_LABELS = 32
#: Memory for cached summaries, and for each besides its text, in bytes, approximately.
SUMMARY_BYTES = 8 << 20
OVERHEAD = 500
#: The errors to which values of wrong types, or too deep ones, lead.
_MALFORMED = (AttributeError, KeyError, TypeError, RecursionError)


def sources(settings: Settings) -> Iterable[Source]:
    """Return the kinds that :func:`labels` reads."""
    if NetworkPolicySyncer.name in settings.sections:
        return [Source(Side.VIRTUAL, NETWORK_POLICIES)]
    return ()


def indexes() -> Iterable[Index]:
    """Return the indexes by which a change of a policy concerns the Pods of its namespace."""
    pods = Source(Side.VIRTUAL, PODS)
    policies = Source(Side.VIRTUAL, NETWORK_POLICIES)
    on = NetworkPolicySyncer.name
    return [
        Index(pods, _BY_NAMESPACE, _namespace, optional_with=on),
        Index(
            policies,
            _BY_NAMESPACE,
            _of_policy,
            optional_with=on,
            requeues=_BY_NAMESPACE,
            when="change",
        ),
    ]


def labels(ctx: Context, virtual: Obj) -> dict[str, str]:
    """Return the labels of a Pod's copy.

    A direction is isolated if a policy selects the Pod for it, unless one of these lets everything
    through. A policy isolates also while it is refused, so that no Pod is open that the tenant
    means to close. One that is refused for its length isolates all Pods of its namespace, as does
    one with values of wrong types, as a malicious API server may have it.
    """
    config = ctx.settings.section(NetworkPolicySyncer.name, NetworkPolicyConfig)
    if config is None:
        return {}
    marks = {"Ingress": ctx.marks.isolated_ingress, "Egress": ctx.marks.isolated_egress}
    isolated = dict.fromkeys(marks.values(), "true")
    home = key_of(virtual).namespace
    reader = ctx.reader
    keys = reader.indexed(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, home)
    if len(keys) > MOST_READ:
        return isolated
    if reader.indexed(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, home + _ALL):
        return isolated

    own = labels_of(virtual)
    start = home + _SUMMARY
    selecting = []
    try:
        for key in keys:
            for value in reader.values(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, key):
                if not value.startswith(start):
                    continue
                policy = _summary(value.removeprefix(start))
                if _is_synced(policy, config) and selectors.matches(policy["selector"], own):
                    selecting.append(policy)
    except _MALFORMED:
        return isolated
    return {mark: "true" for kind, mark in marks.items() if _is_isolated(kind, selecting)}


def _is_synced(policy: Obj, config: NetworkPolicyConfig) -> bool:
    """Return True if the syncer's selector selects a policy; also if its labels are too many."""
    if "labels" not in policy:
        return True
    return config.selector.selects({"metadata": {"labels": policy["labels"]}})


def _is_isolated(kind: str, policies: list[Obj]) -> bool:
    """Return True if policies isolate in a direction, and none of them lets everything through."""
    opened = [policy["opens"][kind] for policy in policies if kind in policy["opens"]]
    return bool(opened) and not any(opened)


def _namespace(obj: Obj) -> Iterable[str]:
    return (key_of(obj).namespace,)


def _of_policy(policy: Obj) -> Iterable[str]:
    """Return the values of the index for a policy."""
    home = key_of(policy).namespace
    if is_deleting(policy):
        return (home,)
    try:
        if not is_too_long(policy):
            return (home, home + _SUMMARY + _summed_up(policy))
    except _MALFORMED:
        pass
    return (home, home + _ALL)


def _summed_up(policy: Obj) -> str:
    """Return as JSON the Pods that a policy isolates, and the directions that it opens to all."""
    spec = policy.get("spec") or {}
    types = policy_types(spec)
    opens = {}
    for kind, rules, peers in DIRECTIONS:
        if kind in types:
            given = spec.get(rules) or ()
            opens[kind] = any(not rule.get(peers) and not rule.get("ports") for rule in given)

    summary: Obj = {"selector": spec.get("podSelector") or {}, "opens": opens}
    labels = labels_of(policy)
    if len(labels) <= MOST_LABELS:
        summary["labels"] = dict(labels)
    return json.dumps(summary, sort_keys=True)


def _summary_size(policy: Obj) -> int:
    """Return the memory of a cached summary, in bytes, approximately."""
    return OVERHEAD + 8 * len(str(policy))


@cached(LRUCache(SUMMARY_BYTES, getsizeof=_summary_size))
def _summary(text: str) -> Obj:
    """Parse a summary. Cached, so the result must not be changed."""
    found: Obj = json.loads(text)
    return found
