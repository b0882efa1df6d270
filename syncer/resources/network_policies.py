"""Copies of virtual NetworkPolicies on the host, which hold the tenant's Pods there and open them to nobody else."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Self

from pydantic import Field, model_validator

from syncer.api import (
    Config,
    Context,
    Decision,
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
from syncer.resources.endpointslices import AddressRange
from syncer.resources.kinds import NAMESPACES, NETWORK_POLICIES, PODS
from syncer.resources.selected_namespaces import MORE_LABELS, NamespaceSelection, decisive_values, label_values
from syncer.translate.messages import LONGEST_LABEL_QUOTE, LONGEST_QUOTE, MOST_NAMED

Network = IPv4Network | IPv6Network

#: The index of virtual Namespaces by label, and of the policies by the values that decide about them.
_BY_LABEL = "policies-label"
#: The value of every Namespace, for selectors that find it whatever its labels.
_EVERY = "/every"
#: Most rules, peers, ports, and exceptions of address ranges in a policy.
MOST_PARTS = 1000
#: Most characters of a policy's spec, as each Pod of its namespace is decided from all policies there.
LONGEST = 32 << 10
#: The seconds after which a policy is decided again that selects among Namespaces whose labels aren't indexed.
CROWDED_SECONDS = 60.0
#: The label of each namespace with its name (kubernetes.io, "Well-Known Labels").
_NAME = "kubernetes.io/metadata.name"
#: Addresses of IPv4 in the form of IPv6, which networks may take for either.
_MAPPED = IPv6Network("::ffff:0:0/96")
#: The directions, each with its type, its rules, and the peers of a rule.
DIRECTIONS = (("Ingress", "ingress", "from"), ("Egress", "egress", "to"))
_SELECTOR, _EXPRESSION = ("podSelector", "namespaceSelector"), {"key", "operator", "values"}


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


class NetworkPolicyConfig(Config):
    """The options of NetworkPolicies."""

    enabled: bool = False
    """Whether NetworkPolicies go to the host, where they hold the tenant's Pods, if its network enforces them.

    Off by default: NetworkPolicies of a namespace add up, so those of the operator must leave out the
    Pods that a tenant's isolate (docs/operating.md).
    """

    allowed_cidrs: AllowedRanges = Field(default=AllowedRanges(), alias="allowedCIDRs")
    """Ranges of addresses that a copy may name, besides the tenant's own Pods; its `ipBlock`s are cut to them.

    Let them be no more than the operator's own NetworkPolicy allows the tenant's Pods. A rule without
    peers, which is for all, becomes one for the tenant's own Pods and these ranges.
    """

    most: int = Field(default=100, ge=0)
    """The most copies; further policies are parked. Every node of the host works with all of them."""


class NetworkPolicySyncer(
    Syncer[NetworkPolicyConfig], SyncDown[NetworkPolicyConfig], Sync[NetworkPolicyConfig], Indexes
):
    """Copies NetworkPolicies; the copy selects Pods of this tenant and namespace, and names no others.

    Policies of a namespace add up (https://kubernetes.io/docs/concepts/services-networking/network-policies/),
    so a copy that named more would open a tenant's Pods to others in spite of the operator's own. What can't
    be said on the host is refused as a whole. A policy holds until it is gone, so its copy stays until
    then, whatever finalizers hold it.
    """

    deletion = "whenGone"
    name = "networkpolicies"
    section = "toHost.networkPolicies"
    resource = NETWORK_POLICIES
    down = ("spec.podSelector", "spec.policyTypes", "spec.ingress", "spec.egress")
    translates = ("spec.podSelector", "spec.policyTypes", "spec.ingress", "spec.egress")
    exact = down
    reads = (Source(Side.VIRTUAL, NAMESPACES),)

    def indexes(self) -> Sequence[Index]:
        """Return the indexes by which a policy is decided again when its selectors find other Namespaces."""
        return [
            Index(Source(Side.VIRTUAL, NETWORK_POLICIES), _BY_LABEL, _decisive),
            Index(
                Source(Side.VIRTUAL, NAMESPACES),
                _BY_LABEL,
                lambda namespace: (_EVERY, *label_values(namespace)),
                requeues=_BY_LABEL,
            ),
        ]

    def sync_down(self, ctx: Context[NetworkPolicyConfig], virtual: Obj) -> Decision:
        """Create the copy.

        Raises:
            Refused: There are too many, or it has what can't be said on the host.
            TooLarge: It has too many parts.
        """
        if len(ctx.reader.keys(Side.HOST, NETWORK_POLICIES)) >= ctx.config.most:
            why = f"this virtual cluster has {ctx.config.most} NetworkPolicies where Pods run already: delete others"
            raise Refused(why, reason="TooManyPolicies")
        return _Copy(ctx, virtual).decided("the virtual object has no copy on the host yet")

    def sync(self, ctx: Context[NetworkPolicyConfig], pair: Pair) -> Decision:
        """Update the copy.

        Raises:
            Refused: It has what can't be said on the host.
            TooLarge: It has too many parts.
        """
        return _Copy(ctx, pair.virtual).decided("")


def is_too_long(policy: Obj) -> bool:
    """Return True for a policy that isn't read for each Pod of its namespace."""
    return len(str(policy.get("spec"))) > LONGEST


def policy_types(spec: Obj) -> list[str]:
    """Return the types of a policy, or those that an API server gives it by default."""
    given: list[str] = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return given


@dataclass(frozen=True, slots=True)
class Block:
    """A range of addresses without some ranges in it."""

    network: Network
    excepted: tuple[Network, ...] = ()

    def within(self, other: "Block") -> "Block | None":
        """Return what is in both; None if nothing is."""
        inner = next((a for a, b in _both_ways(self.network, other.network) if _is_within(a, b)), None)
        if inner is None:
            return None
        excepted = [each for each in (*self.excepted, *other.excepted) if each.overlaps(inner)]
        if any(_is_within(inner, each) for each in excepted):
            return None
        left_out = tuple(_collapsed(excepted))
        return None if left_out == (inner,) else Block(inner, left_out)

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


def _both_ways(one: Network, other: Network) -> tuple[tuple[Network, Network], ...]:
    return (one, other), (other, one)


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
        """Return the decision to write the copy, with a warning of what it allows less."""
        decision = apply(host=self.made(), reason=reason)
        if self.is_doubtful:
            decision = decision.look_again(CROWDED_SECONDS)
        if not self.cut:
            return decision
        more = f" and {len(self.cut) - MOST_NAMED} more" if len(self.cut) > MOST_NAMED else ""
        why = f"{', '.join(self.cut[:MOST_NAMED])}{more}: where Pods run this is only for Pods of this virtual cluster"
        return decision.warn("NetworkPolicyCut", f"{why}, and for addresses that its operator allows")

    def made(self) -> Obj:
        """Return the copy.

        Raises:
            Refused: It has what can't be said on the host.
            TooLarge: It has too many parts.
        """
        ctx, given, own = self.ctx, self.virtual.get("spec") or {}, key_of(self.virtual).namespace
        if ctx.host_key(key_of(self.virtual)).namespace != _place(ctx, own):
            raise Refused("the Pods of its namespace are in another namespace of the host than the policy would be")
        if is_too_long(self.virtual):
            raise TooLarge(f"has more than {LONGEST} characters; make several policies of it", path="spec")
        _count(given)
        selector = self._selector(given.get("podSelector") or {}, "spec.podSelector")
        spec: Obj = {
            "podSelector": selectors.narrowed(selector, ctx.marks.labels(ctx.identity, Key(own, ""))),
            # Written out, as an API server's default depends on rules that may be dropped here.
            "policyTypes": policy_types(given),
        }
        for _, rules, peers in DIRECTIONS:
            if given.get(rules) is not None:
                made = (
                    self._rule(rule, rules, peers, f"spec.{rules}[{number}]")
                    for number, rule in enumerate(given[rules])
                )
                spec[rules] = [rule for rule in made if rule is not None]
        return {**ctx.host_copy(self.virtual), "spec": spec}

    def _rule(self, rule: Obj, direction: str, peers: str, path: str) -> Obj | None:
        """Return a rule; None if it has no peers left, as a rule without peers is for all."""
        _check_known(rule, (peers, "ports"), path)
        if given := rule.get(peers):
            made = [
                each
                for number, peer in enumerate(given)
                for each in self._peer(peer, direction, f"{path}.{peers}[{number}]")
            ]
        else:
            self.cut.append(path)
            made = [self._pods({}, None), *(each.block.peer for each in self._allowed(direction))]
        if not made:
            return None
        return {peers: made, **({"ports": rule["ports"]} if rule.get("ports") else {})}

    def _peer(self, peer: Obj, direction: str, path: str) -> Iterator[Obj]:
        """Yield the peers that stand for one on the host."""
        if "ipBlock" in peer:
            _check_known(peer, ("ipBlock",), path)
            yield from self._blocks(peer["ipBlock"], direction, f"{path}.ipBlock")
            return
        _check_known(peer, _SELECTOR, path)
        pods, namespaces = peer.get("podSelector"), peer.get("namespaceSelector")
        if pods is None and namespaces is None:
            raise Refused("names nobody that is known here", path=path)
        selector = self._selector(pods or {}, f"{path}.podSelector")
        if namespaces is None:
            own = key_of(self.virtual).namespace
            yield {"podSelector": selectors.narrowed(selector, self.ctx.marks.labels(self.ctx.identity, Key(own, "")))}
            return
        _check_selector(namespaces, f"{path}.namespaceSelector")
        if not namespaces.get("matchLabels") and not namespaces.get("matchExpressions"):
            yield self._pods(selector, None)
        elif names := self._selected(namespaces):
            yield self._pods(selector, names)

    def _blocks(self, given: Obj, direction: str, path: str) -> Iterator[Obj]:
        """Yield the parts of a range of addresses that are allowed."""
        _check_known(given, ("cidr", "except"), path)
        excepted = [_network(each, path) for each in given.get("except") or ()]
        block = Block(_network(given.get("cidr"), path), tuple(_collapsed(excepted)))
        left = [part for each in self._allowed(direction) if (part := block.within(each.block))]
        if block not in left:
            self.cut.append(path)
        yield from (part.peer for part in left)

    def _allowed(self, direction: str) -> tuple[AllowedRange, ...]:
        allowed = self.ctx.config.allowed_cidrs
        return allowed.ingress if direction == "ingress" else allowed.egress

    def _pods(self, selector: Obj, namespaces: list[str] | None) -> Obj:
        """Return the peer for Pods of this tenant in some virtual namespaces, or with None in all."""
        ctx = self.ctx
        selector, places = selectors.narrowed(selector, {ctx.marks.cluster: ctx.identity}), ctx.names.host_namespaces()
        if namespaces is not None:
            selector = selectors.required(selector, selectors.one_of(ctx.marks.namespace_label, namespaces))
        if places is not None and len(places) == 1:
            return {"podSelector": selector}
        homes = {_place(ctx, each) for each in (self._selected({}) if namespaces is None else namespaces)}
        return {"podSelector": selector, "namespaceSelector": {"matchExpressions": [selectors.one_of(_NAME, homes)]}}

    def _selected(self, selector: Obj) -> list[str]:
        found = self.found.selected(selector)
        self.is_doubtful = self.is_doubtful or (bool(self.found.crowded) and bool(selector))
        return found

    def _selector(self, selector: Json, path: str) -> Obj:
        """Return a selector of Pods, whose labels are those of their copies.

        Raises:
            Refused: It is none, or names a label that no copy has.
        """
        _check_selector(selector, path)
        expressions = selector.get("matchExpressions") or ()
        for key in (*(selector.get("matchLabels") or ()), *(each["key"] for each in expressions)):
            if not self.ctx.metadata.crosses("labels", key):
                why = f"the label {key:.{LONGEST_LABEL_QUOTE}} doesn't go to where Pods run"
                raise Refused(why, path=path, reason="NotCopied")
        result: Obj = selector
        return result


def _place(ctx: Context, namespace: str) -> str:
    """Return the host namespace of the Pods of a virtual one."""
    return ctx.names.to_host(PODS, Key(namespace, "any")).namespace


def _count(spec: Obj) -> None:
    """Refuse a policy with too many parts before work is spent on it."""
    parts = 0
    for _, rules, peers in DIRECTIONS:
        for rule in spec.get(rules) or ():
            given = rule.get(peers) or ()
            excepted = sum(len((peer.get("ipBlock") or {}).get("except") or ()) for peer in given)
            parts += 1 + len(given) + len(rule.get("ports") or ()) + excepted
    if parts > MOST_PARTS:
        raise TooLarge(f"has {parts} rules, peers, ports and exceptions, and {MOST_PARTS} are accepted", path="spec")


def _check_known(part: Obj, known: Iterable[str], path: str) -> None:
    """Refuse fields that aren't known, as without one a copy may allow more."""
    for name in part:
        if name not in known:
            raise Refused(
                "this field isn't known here, and without it the copy might allow more", path=f"{path}.{name}"
            )


def _check_selector(selector: Json, path: str) -> None:
    """Refuse what is no label selector, or one with fields that aren't known."""
    if not selectors.fits("selector", selector):
        raise Refused("is no label selector", path=path)
    for each in selector.get("matchExpressions") or ():
        if not isinstance(each, dict) or not each.keys() <= _EXPRESSION or not {"key", "operator"} <= each.keys():
            raise Refused("is no label selector", path=path)


def _network(text: Json, path: str) -> Network:
    """Parse a range of addresses, as it means the same to every network.

    Raises:
        Refused: It is none.
    """
    try:
        network = ip_network(text, strict=False) if isinstance(text, str) else None
    except ValueError:
        network = None
    if network is None or (isinstance(network, IPv6Network) and network.subnet_of(_MAPPED)):
        raise Refused(f"{str(text)[:LONGEST_QUOTE]!r} is no range of addresses such as 192.0.2.0/24", path=path)
    return network


def _decisive(policy: Obj) -> Iterator[str]:
    """Yield the values of Namespaces that decide about a policy: any, if it selects some or has a rule for all.

    One that is too long is refused whatever they are.
    """
    if is_too_long(policy):
        yield from (_EVERY, MORE_LABELS)
        return
    spec = policy.get("spec") or {}
    for _, rules, peers in DIRECTIONS:
        for rule in spec.get(rules) or ():
            given = rule.get(peers) or ()
            selected = [found for peer in given if (found := peer.get("namespaceSelector")) is not None]
            if selected or not given:
                yield from (_EVERY, MORE_LABELS)
            for selector in selected:
                yield from decisive_values(selector)
