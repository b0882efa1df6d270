"""Labels on the copies of Pods that the tenant's NetworkPolicies isolate.

NetworkPolicies of a namespace add up, so a tenant's policy can't stop traffic that the operator's
own lets through. By these labels, the operator's policies leave out the Pods that the tenant's
policies select.

A change of one policy concerns all Pods of its namespace, so what the policies decide is worked out
once: they are parsed once for each state of the namespace, and compared once with the labels of a
Pod, as far as a selector names these. The decision about a further Pod is looked up.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from cachetools import LRUCache, cached

from syncer.api import (
    REMEMBERED,
    Context,
    Decision,
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
    LONGEST,
    NetworkPolicyConfig,
    NetworkPolicySyncer,
    is_too_long,
    labels_named,
    policy_types,
)
from syncer.resources.selected_namespaces import selector_size

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
#: Most labels, expressions and values in the ``podSelector`` of all policies of a namespace; with
#: more, its Pods are isolated. Pods that differ in a label that these name are compared with each.
MOST_EXPRESSIONS = 5000
#: Most labels of a policy that are compared with the syncer's selector; one with more counts as
#: selected, as does one that is too long with its labels.
MOST_LABELS = 32
#: Memory for the parsed policies of namespaces, and for each part of them besides its text, in
#: bytes, approximately. Those of one namespace always have room.
PARSED_BYTES = 8 << 20
OVERHEAD = 500
#: The reason of the event about a Pod that is isolated whatever the policies select.
EVENT = "NamespaceIsolated"
#: The errors to which values of wrong types, or too deep ones, lead.
_MALFORMED = (AttributeError, KeyError, TypeError, RecursionError)
#: All types of isolation.
_TYPES = tuple(kind for kind, _, _ in DIRECTIONS)
#: The start of that event.
_WHOLE = "it is isolated, as are all Pods of its namespace"


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
    one with values of wrong types or unknown operators, as a malicious or newer API server may have
    it; and so do more policies or expressions than are compared.
    """
    policies = _policies_of(ctx, virtual)
    if policies is None:
        return {}
    types = _TYPES if policies.reason else _isolated_types(policies, labels_of(virtual))
    marks = {"Ingress": ctx.marks.isolated_ingress, "Egress": ctx.marks.isolated_egress}
    return {marks[kind]: "true" for kind in types}


def warned(ctx: Context, virtual: Obj, decision: Decision) -> Decision:
    """Return the decision with a warning if a Pod is isolated whatever the policies select.

    A warning that it has already comes first.
    """
    policies = _policies_of(ctx, virtual)
    if policies is None or not policies.reason or decision.warning is not None:
        return decision
    return decision.warn(EVENT, policies.reason)


@dataclass(frozen=True, slots=True)
class _Policy:
    """The Pods that a policy isolates."""

    selector: Obj
    #: By type of isolation; True: everything is let through.
    opens: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class _Policies:
    """The policies of a namespace in one of its states, parsed."""

    policies: tuple[_Policy, ...] = ()
    #: The labels that their selectors name.
    named: frozenset[str] = frozenset()
    #: What they take of memory, in bytes.
    size: int = OVERHEAD
    #: Why all Pods of the namespace are isolated; ``""`` if the selectors decide.
    reason: str = ""
    #: A number that no others have.
    number: int = field(default_factory=partial(next, itertools.count()))


#: The values of each policy of a namespace in the index.
_State = frozenset[frozenset[str]]

_MANY = _Policies(reason=f"{_WHOLE}: there are more than {MOST_READ} NetworkPolicies; delete some")


def _policies_of(ctx: Context, virtual: Obj) -> _Policies | None:
    """Return the policies of a Pod's namespace; None if there are none, or none are synced."""
    config = ctx.settings.section(NetworkPolicySyncer.name, NetworkPolicyConfig)
    if config is None:
        return None
    reader = ctx.reader
    home = key_of(virtual).namespace
    keys = reader.indexed(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, home)
    if not keys:
        return None
    if len(keys) > MOST_READ:
        return _MANY
    # The index has frozen sets, so neither they nor the texts in them are hashed again.
    state = frozenset(
        [
            frozenset(reader.values(Side.VIRTUAL, NETWORK_POLICIES, _BY_NAMESPACE, key))
            for key in keys
        ]
    )
    return _parsed(home, state, config)


def _key_of_state(home: str, state: _State, config: NetworkPolicyConfig) -> tuple[str, _State, str]:
    return home, state, repr(config.selector.plain)


@cached(LRUCache(PARSED_BYTES, getsizeof=attrgetter("size")), key=_key_of_state)
def _parsed(home: str, state: _State, config: NetworkPolicyConfig) -> _Policies:
    """Parse the policies of a namespace that the syncer's selector selects.

    Those with too many labels count as selected.
    """
    values = list(itertools.chain.from_iterable(state))
    size = OVERHEAD * (1 + len(state)) + sum(map(len, values))
    if home + _ALL in values:
        why = "a NetworkPolicy there is too long, or malformed; split or correct it"
        return _Policies(size=size, reason=f"{_WHOLE}: {why}")

    policies = []
    named = set[str]()
    parts = 0
    try:
        for value in values:
            if not value.startswith(home + _SUMMARY):
                continue
            summary: Obj = json.loads(value.removeprefix(home + _SUMMARY))
            selector = summary["selector"]
            parts += selector_size(selector)
            if parts > MOST_EXPRESSIONS:
                why = (
                    f"the NetworkPolicies there select Pods by more than {MOST_EXPRESSIONS} labels"
                )
                why = f"{why}, expressions and values together; use fewer"
                return _Policies(size=size, reason=f"{_WHOLE}: {why}")
            if fault := selectors.fault(selector):
                why = f"the podSelector of a NetworkPolicy there {fault}; correct it"
                return _Policies(size=size, reason=f"{_WHOLE}: {why}")
            labels = summary.get("labels")
            if labels is None or config.selector.selects({"metadata": {"labels": labels}}):
                policies.append(_Policy(selector, summary["opens"]))
                named.update(labels_named(selector))
    except _MALFORMED:
        why = "the podSelector of a NetworkPolicy there is malformed; correct it"
        return _Policies(size=size, reason=f"{_WHOLE}: {why}")
    return _Policies(tuple(policies), frozenset(named), size + OVERHEAD * parts)


def _key_of_labels(policies: _Policies, labels: Mapping[str, str]) -> tuple[int, bytes]:
    """Return what the decision of policies depends on, in few bytes whatever a Pod has."""
    relevant = [pair for pair in labels.items() if pair[0] in policies.named]
    text = repr(sorted(relevant)).encode(errors="surrogatepass")
    return policies.number, hashlib.sha256(text).digest()


@cached(LRUCache(REMEMBERED), key=_key_of_labels)
def _isolated_types(policies: _Policies, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the types of isolation of a Pod with these labels; all if the labels are malformed."""
    try:
        selecting = [each for each in policies.policies if selectors.matches(each.selector, labels)]
    except _MALFORMED:
        return _TYPES
    return tuple(kind for kind in _TYPES if _is_isolated(kind, selecting))


def _is_isolated(kind: str, policies: list[_Policy]) -> bool:
    """Return True if policies isolate in a direction, and none of them lets everything through."""
    opened = [policy.opens[kind] for policy in policies if kind in policy.opens]
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
            summary = _summed_up(policy)
            if len(summary) <= LONGEST:
                return (home, home + _SUMMARY + summary)
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
        labelled = json.dumps({**summary, "labels": dict(labels)}, sort_keys=True)
        if len(labelled) <= LONGEST:
            return labelled
    return json.dumps(summary, sort_keys=True)
