"""Copies of virtual NetworkPolicies, which isolate the tenant's Pods on the host."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Self

from pydantic import Field, model_validator

from syncer.api import (
    Config,
    Context,
    Decision,
    Grants,
    Index,
    Indexes,
    Json,
    Key,
    Obj,
    Pair,
    Refused,
    Section,
    Side,
    Source,
    Sync,
    SyncDown,
    Syncer,
    TooLarge,
    apply,
    key_of,
    selectors,
)
from syncer.resources import shares
from syncer.resources.endpointslices import AddressRange
from syncer.resources.kinds import NAMESPACES, NETWORK_POLICIES, PODS
from syncer.resources.selected_namespaces import (
    MORE_LABELS,
    NamespaceSelection,
    decisive_values,
    label_values,
)
from syncer.resources.service_ranges import Network
from syncer.translate.messages import LONGEST_LABEL_QUOTE, LONGEST_QUOTE, MOST_NAMED

#: The index of virtual Namespaces by label, and of the policies by the values that decide about
#: them.
_BY_LABEL = "policies-label"
#: The value of every Namespace, for selectors that find it whatever its labels.
_EVERY = "/every"
#: Most rules, peers, ports, and exceptions of address ranges in a policy.
MOST_PARTS = 1000
#: Most characters of a policy's spec, as each Pod of its namespace is decided from all policies
#: there.
LONGEST = 32 << 10
#: The seconds after which a policy is decided again if some Namespaces have more labels than the
#: index has room for.
CROWDED_SECONDS = 60.0
#: The label of each namespace with its name (kubernetes.io, "Well-Known Labels").
_NAME = "kubernetes.io/metadata.name"
#: Addresses of IPv4 in the form of IPv6, which networks may take for either.
_MAPPED = IPv6Network("::ffff:0:0/96")
#: The directions, each with its type, its rules, and the peers of a rule.
DIRECTIONS = (("Ingress", "ingress", "from"), ("Egress", "egress", "to"))
_SELECTOR = ("podSelector", "namespaceSelector")
_EXPRESSION = {"key", "operator", "values"}


class AllowedRange(Section):
    """A range of addresses that tenants may open their Pods to."""

    cidr: AddressRange
    """The range, such as `0.0.0.0/0`."""

    excepted: tuple[AddressRange, ...] = Field(default=(), alias="except")
    """Ranges within it that they may not."""

    @cached_property
    def block(self) -> "Block":
        """The range, parsed."""
        return Block(ip_network(self.cidr), tuple(map(ip_network, self.excepted)))

    @model_validator(mode="after")
    def _has_its_exceptions_within(self) -> Self:
        for each in self.block.excepted:
            if not _is_within(each, self.block.network) or each == self.block.network:
                raise ValueError(f"except: {each} is not strictly within {self.cidr}")
        return self


class AllowedRanges(Section):
    """Ranges of addresses besides those of the tenant's own Pods, by direction."""

    ingress: tuple[AllowedRange, ...] = ()
    """Those from which connections may be let in."""

    egress: tuple[AllowedRange, ...] = ()
    """Those to which connections may be let out."""

    def of(self, direction: str) -> tuple[AllowedRange, ...]:
        """Return the ranges of a direction, ``ingress`` or ``egress``."""
        return self.ingress if direction == "ingress" else self.egress


class NetworkPolicyConfig(Config):
    """The options of NetworkPolicies."""

    enabled: bool = False
    """Whether NetworkPolicies go to the host, where they hold the tenant's Pods, if its network
    enforces them.

    Off by default: NetworkPolicies of a namespace add up, so those of the operator must leave out
    the Pods that a tenant's isolate (docs/operate/network.md).
    """

    allowed_cidrs: AllowedRanges = Field(default=AllowedRanges(), alias="allowedCIDRs")
    """Ranges of addresses that a copy may name, besides the tenant's own Pods; its `ipBlock`s are
    cut to them.

    Let them be no more than the operator's own NetworkPolicy allows the tenant's Pods. A rule
    without peers, which is for all, becomes one for the tenant's own Pods and these ranges.
    """

    most: int = Field(default=100, ge=0)
    """The most copies; further policies are parked. Every node of the host works with all of them.

    A namespace may have one, and up to three times as many as are left, so that it takes none from
    the others.
    """


class NetworkPolicySyncer(
    Syncer[NetworkPolicyConfig],
    SyncDown[NetworkPolicyConfig],
    Sync[NetworkPolicyConfig],
    Grants[NetworkPolicyConfig],
    Indexes,
):
    """Copies NetworkPolicies; the copy selects Pods of this tenant and namespace, and names no
    others.

    Policies of a namespace add up
    (https://kubernetes.io/docs/concepts/services-networking/network-policies/), so a copy that
    named more would open a tenant's Pods to others in spite of the operator's own. A policy without
    an equivalent on the host is refused as a whole. A policy holds until it is gone, so its copy
    stays until then, whatever finalizers hold it.
    """

    deletion = "whenGone"
    name = "networkpolicies"
    counts_copies = True
    section = "toHost.networkPolicies"
    resource = NETWORK_POLICIES
    down = ("spec.podSelector", "spec.policyTypes", "spec.ingress", "spec.egress")
    translates = ("spec.podSelector", "spec.policyTypes", "spec.ingress", "spec.egress")
    exact = down
    reads = (Source(Side.VIRTUAL, NAMESPACES),)
    grants = ("spec.ingress", "spec.egress")

    def indexes(self) -> Sequence[Index]:
        """Return indexes that requeue a policy when its selectors find other Namespaces."""
        policies = Source(Side.VIRTUAL, NETWORK_POLICIES)
        namespaces = Source(Side.VIRTUAL, NAMESPACES)
        return [
            Index(policies, _BY_LABEL, _decisive),
            Index(namespaces, _BY_LABEL, _namespace_values, requeues=_BY_LABEL),
        ]

    def still_granted(self, ctx: Context[NetworkPolicyConfig], host: Obj) -> Obj:
        """Return the copy with the address ranges that are still allowed."""
        spec = host.get("spec") or {}
        left = dict(spec)
        for _, direction, peers in DIRECTIONS:
            if spec.get(direction):
                left[direction] = _allowed_rules(
                    spec[direction], peers, ctx.config.allowed_cidrs.of(direction)
                )
        if left == spec:
            return host
        return {**host, "spec": left}

    def sync_down(self, ctx: Context[NetworkPolicyConfig], virtual: Obj) -> Decision:
        """Create the copy.

        Raises:
            Refused: There are too many, or the policy has no equivalent on the host.
            TooLarge: It has too many parts.
        """
        most = ctx.config.most
        if not shares.may_add(ctx, virtual, NETWORK_POLICIES, most):
            why = (
                f"this namespace has its share of the {most} NetworkPolicies"
                " that a virtual cluster may have where Pods run: delete others"
            )
            raise Refused(why, reason="TooManyPolicies")
        return _Copy(ctx, virtual).decided("the virtual object has no copy on the host yet")

    def sync(self, ctx: Context[NetworkPolicyConfig], pair: Pair) -> Decision:
        """Update the copy.

        Raises:
            Refused: The policy has no equivalent on the host.
            TooLarge: It has too many parts.
        """
        return _Copy(ctx, pair.virtual).decided("")


def _allowed_rules(given: list[Obj], peers: str, allowed: Sequence[AllowedRange]) -> list[Obj]:
    """Return the rules of a copy with the parts of their address ranges that are allowed.

    A rule that has no peers left is dropped, as one without any is for all. A copy is never made
    with such a rule: somebody on the host has added it, which is drift, and no grant of ours.
    """
    left = []
    for rule in given:
        if not rule.get(peers):
            left.append(rule)
            continue
        of_rule: list[Obj] = []
        for peer in rule[peers]:
            of_rule.extend(_allowed_peers(peer, allowed))
        if of_rule:
            left.append({**rule, peers: of_rule})
    return left


def _allowed_peers(peer: Obj, allowed: Sequence[AllowedRange]) -> list[Obj]:
    """Return the peers that are left of one.

    It is the peer itself unless that is a range that isn't allowed as a whole.
    """
    if "ipBlock" not in peer:
        return [peer]
    try:
        block = _block(peer["ipBlock"], "ipBlock")
    except Refused:
        return []
    parts = [part for each in allowed if (part := block.within(each.block)) is not None]
    return [peer] if block in parts else [part.peer for part in parts]


def is_too_long(policy: Obj) -> bool:
    """Return True for a policy that isn't read for each Pod of its namespace."""
    return len(str(policy.get("spec"))) > LONGEST


def labels_named(selector: Obj) -> list[str]:
    """Return the keys of the labels that a LabelSelector names."""
    keys = list(selector.get("matchLabels") or ())
    keys.extend(each["key"] for each in selector.get("matchExpressions") or ())
    return keys


def policy_types(spec: Obj) -> list[str]:
    """Return the types of a policy, or those that an API server gives it by default."""
    given: list[str] | None = spec.get("policyTypes")
    if given:
        return given
    if spec.get("egress"):
        return ["Ingress", "Egress"]
    return ["Ingress"]


@dataclass(frozen=True, slots=True)
class Block:
    """A range of addresses without some ranges in it."""

    network: Network
    excepted: tuple[Network, ...] = ()

    def within(self, other: "Block") -> "Block | None":
        """Return the addresses that are in both; None if there are none."""
        # Of two networks, one lies in the other, or they have no address in common.
        if _is_within(self.network, other.network):
            inner = self.network
        elif _is_within(other.network, self.network):
            inner = other.network
        else:
            return None
        excepted = [each for each in (*self.excepted, *other.excepted) if each.overlaps(inner)]
        if any(_is_within(inner, each) for each in excepted):
            return None
        left_out = tuple(_collapsed(excepted))
        if left_out == (inner,):
            return None
        return Block(inner, left_out)

    @property
    def peer(self) -> Obj:
        """The range as a peer of a NetworkPolicy."""
        block: Obj = {"cidr": str(self.network)}
        if self.excepted:
            block["except"] = list(map(str, self.excepted))
        return {"ipBlock": block}


def _is_within(one: Network, other: Network) -> bool:
    if isinstance(one, IPv4Network):
        return isinstance(other, IPv4Network) and one.subnet_of(other)
    return isinstance(other, IPv6Network) and one.subnet_of(other)


def _collapsed(networks: Iterable[Network]) -> Iterator[Network]:
    """Yield networks of one version, without overlaps."""
    given = list(networks)
    yield from collapse_addresses([each for each in given if isinstance(each, IPv4Network)])
    yield from collapse_addresses([each for each in given if isinstance(each, IPv6Network)])


@dataclass(slots=True)
class _Copy:
    """The making of a copy."""

    ctx: Context[NetworkPolicyConfig]
    virtual: Obj
    found: NamespaceSelection = field(init=False)
    #: The fields that mean less on the host.
    cut: list[str] = field(default_factory=list)
    #: True if labels of Namespaces were read that aren't indexed.
    is_doubtful: bool = False

    def __post_init__(self) -> None:
        self.found = NamespaceSelection(self.ctx, _BY_LABEL, "it", "peers", "spec")

    def decided(self, reason: str) -> Decision:
        """Return the decision to write the copy, with a warning about the traffic that it lacks."""
        decision = apply(host=self.made(), reason=reason)
        if self.is_doubtful:
            decision = decision.look_again(CROWDED_SECONDS)
        if not self.cut:
            return decision
        named = ", ".join(self.cut[:MOST_NAMED])
        if len(self.cut) > MOST_NAMED:
            named = f"{named} and {len(self.cut) - MOST_NAMED} more"
        why = f"{named}: where Pods run this is only for Pods of this virtual cluster"
        how = f"{why}, and for addresses that its operator allows"
        return decision.warn("NetworkPolicyCut", how)

    def made(self) -> Obj:
        """Return the copy.

        Raises:
            Refused: The policy has no equivalent on the host.
            TooLarge: It has too many parts.
        """
        ctx = self.ctx
        given = self.virtual.get("spec") or {}
        own = key_of(self.virtual).namespace
        if ctx.host_key(key_of(self.virtual)).namespace != _host_namespace(ctx, own):
            why = "the Pods of its namespace are in another namespace of the host"
            raise Refused(f"{why} than the policy would be")
        if is_too_long(self.virtual):
            why = f"has more than {LONGEST} characters; split the policy into several"
            raise TooLarge(why, path="spec")
        _count(given)

        selector = self._selector(given.get("podSelector") or {}, "spec.podSelector")
        spec: Obj = {
            "podSelector": self._of_own_namespace(selector),
            # Written out, as an API server's default depends on rules that may be dropped here.
            "policyTypes": policy_types(given),
        }
        for _, direction, peers in DIRECTIONS:
            if given.get(direction) is not None:
                spec[direction] = self._rules(given[direction], direction, peers)
        return {**ctx.host_copy(self.virtual), "spec": spec}

    def _rules(self, given: list[Obj], direction: str, peers: str) -> list[Obj]:
        """Return the rules of the copy; those that have no peers left are dropped."""
        made = []
        for number, each in enumerate(given):
            rule = self._rule(each, direction, peers, f"spec.{direction}[{number}]")
            if rule is not None:
                made.append(rule)
        return made

    def _rule(self, rule: Obj, direction: str, peers: str, path: str) -> Obj | None:
        """Return a rule; None if it has no peers left, as a rule without peers is for all."""
        _check_known(rule, (peers, "ports"), path)
        made: list[Obj] = []
        if given := rule.get(peers):
            for number, peer in enumerate(given):
                made.extend(self._peer(peer, direction, f"{path}.{peers}[{number}]"))
        else:
            self.cut.append(path)
            made.append(self._pods({}, None))
            made.extend(each.block.peer for each in self.ctx.config.allowed_cidrs.of(direction))
        if not made:
            return None

        result: Obj = {peers: made}
        if rule.get("ports"):
            result["ports"] = rule["ports"]
        return result

    def _peer(self, peer: Obj, direction: str, path: str) -> Iterator[Obj]:
        """Yield the peers that stand for one on the host."""
        if "ipBlock" in peer:
            _check_known(peer, ("ipBlock",), path)
            yield from self._blocks(peer["ipBlock"], direction, f"{path}.ipBlock")
            return
        _check_known(peer, _SELECTOR, path)
        pods = peer.get("podSelector")
        namespaces = peer.get("namespaceSelector")
        if pods is None and namespaces is None:
            raise Refused("names no kind of peer that is known here", path=path)
        selector = self._selector(pods or {}, f"{path}.podSelector")
        if namespaces is None:
            yield {"podSelector": self._of_own_namespace(selector)}
            return

        _check_selector(namespaces, f"{path}.namespaceSelector")
        if not namespaces.get("matchLabels") and not namespaces.get("matchExpressions"):
            yield self._pods(selector, None)
        elif names := self._selected(namespaces):
            yield self._pods(selector, names)

    def _of_own_namespace(self, selector: Obj) -> Obj:
        """Return a selector of the host's Pods that finds only those of the policy's namespace."""
        own = Key(key_of(self.virtual).namespace, "")
        return selectors.narrowed(selector, self.ctx.marks.labels(self.ctx.identity, own))

    def _blocks(self, given: Obj, direction: str, path: str) -> Iterator[Obj]:
        """Yield the parts of a range of addresses that are allowed."""
        _check_known(given, ("cidr", "except"), path)
        block = _block(given, path)
        left = []
        for each in self.ctx.config.allowed_cidrs.of(direction):
            part = block.within(each.block)
            if part is not None:
                left.append(part)
        if block not in left:
            self.cut.append(path)
        for part in left:
            yield part.peer

    def _pods(self, selector: Obj, namespaces: list[str] | None) -> Obj:
        """Return the peer for Pods of this tenant in some virtual namespaces; None for all."""
        ctx = self.ctx
        selector = selectors.narrowed(selector, {ctx.marks.cluster: ctx.identity})
        if namespaces is not None:
            is_of_these = selectors.one_of(ctx.marks.namespace_label, namespaces)
            selector = selectors.required(selector, is_of_these)

        host_namespaces = ctx.names.host_namespaces()
        if host_namespaces is not None and len(host_namespaces) == 1:
            return {"podSelector": selector}
        if namespaces is None:
            namespaces = self._selected({})
        homes = {_host_namespace(ctx, each) for each in namespaces}
        is_there = {"matchExpressions": [selectors.one_of(_NAME, homes)]}
        return {"podSelector": selector, "namespaceSelector": is_there}

    def _selected(self, selector: Obj) -> list[str]:
        """Return the names of the virtual namespaces that a selector finds; an empty one, all."""
        found = self.found.selected(selector)
        if selector and self.found.crowded:
            self.is_doubtful = True
        return found

    def _selector(self, selector: Json, path: str) -> Obj:
        """Return a selector of Pods as it is: the labels that it names are on their copies, too.

        Raises:
            Refused: The value is no selector, or names a label that no copy has.
        """
        _check_selector(selector, path)
        for key in labels_named(selector):
            if not self.ctx.metadata.crosses("labels", key):
                why = f"the label {key:.{LONGEST_LABEL_QUOTE}} doesn't go to where Pods run"
                raise Refused(why, path=path, reason="NotCopied")
        result: Obj = selector
        return result


def _host_namespace(ctx: Context, namespace: str) -> str:
    """Return the host namespace of the Pods of a virtual one."""
    return ctx.names.to_host(PODS, Key(namespace, "any")).namespace


def _count(spec: Obj) -> None:
    """Refuse a policy with too many parts before work is spent on it."""
    parts = 0
    for _, rules, peers in DIRECTIONS:
        for rule in spec.get(rules) or ():
            given = rule.get(peers) or ()
            parts += 1 + len(given) + len(rule.get("ports") or ())
            for peer in given:
                parts += len((peer.get("ipBlock") or {}).get("except") or ())
    if parts > MOST_PARTS:
        why = f"has {parts} rules, peers, ports and exceptions, and {MOST_PARTS} are accepted"
        raise TooLarge(why, path="spec")


def _check_known(part: Obj, known: Iterable[str], path: str) -> None:
    """Refuse fields that aren't known, as without one a copy may allow more."""
    for name in part:
        if name not in known:
            why = "this field isn't known here, and without it the copy might allow more"
            raise Refused(why, path=f"{path}.{name}")


def _check_selector(selector: Json, path: str) -> None:
    """Refuse a value that is no label selector, or a selector with fields that aren't known."""
    if not selectors.fits("selector", selector):
        raise Refused("is no label selector", path=path)
    for each in selector.get("matchExpressions") or ():
        if not isinstance(each, dict):
            raise Refused("is no label selector", path=path)
        if not {"key", "operator"} <= each.keys() <= _EXPRESSION:
            raise Refused("is no label selector", path=path)
    if why := selectors.fault(selector):
        raise Refused(why, path=path)


def _block(given: Obj, path: str) -> Block:
    """Parse an ``ipBlock``.

    Raises:
        Refused: A range of it is none.
    """
    excepted = [_network(each, path) for each in given.get("except") or ()]
    return Block(_network(given.get("cidr"), path), tuple(_collapsed(excepted)))


def _network(text: Json, path: str) -> Network:
    """Parse a range of addresses.

    Raises:
        Refused: The text is no range, or one that networks may take for either version.
    """
    network = None
    if isinstance(text, str):
        with suppress(ValueError):
            network = ip_network(text, strict=False)
    is_mapped = isinstance(network, IPv6Network) and network.subnet_of(_MAPPED)
    if network is None or is_mapped:
        why = f"{str(text)[:LONGEST_QUOTE]!r} is no range of addresses such as 192.0.2.0/24"
        raise Refused(why, path=path)
    return network


def _namespace_values(namespace: Obj) -> tuple[str, ...]:
    """Return the values by which policies find a Namespace."""
    return (_EVERY, *label_values(namespace))


def _decisive(policy: Obj) -> Iterator[str]:
    """Yield the values of Namespaces that decide about a policy.

    Every Namespace does for a policy that selects some, or has a rule for all; and for one that is
    too long, which is refused in any case.
    """
    if is_too_long(policy):
        yield from (_EVERY, MORE_LABELS)
        return
    spec = policy.get("spec") or {}
    for _, rules, peers in DIRECTIONS:
        for rule in spec.get(rules) or ():
            given = rule.get(peers) or ()
            selectors_of_peers = [peer.get("namespaceSelector") for peer in given]
            selected = [selector for selector in selectors_of_peers if selector is not None]
            if selected or not given:
                yield from (_EVERY, MORE_LABELS)
            for selector in selected:
                yield from decisive_values(selector)
