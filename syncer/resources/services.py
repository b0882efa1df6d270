"""Copies of virtual Services on the host; the host's addresses are copied up."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from syncer.api import (
    ClusterError,
    Config,
    ConfigError,
    Context,
    Decision,
    Excludes,
    Grants,
    Initialize,
    Key,
    Live,
    Mirror,
    Obj,
    OwnController,
    Pair,
    Problem,
    References,
    Refused,
    Right,
    Section,
    Selects,
    Settings,
    Side,
    Warned,
    Write,
    apply,
    delete,
    key_family,
    key_of,
    reasons,
    skip,
    wait,
)
from syncer.resources import service_addresses as same
from syncer.resources.harmless_annotations import LOAD_BALANCERS, refuse_odd_values, rules_of
from syncer.resources.kinds import PODS, SERVICES
from syncer.resources.service_addresses import HEADLESS, MOST_DRAWS, NO_NOTE, Note
from syncer.resources.service_ranges import SERVICE_CIDRS, Obstacle, obstacle_to_same
from syncer.translate.messages import MOST_LISTED

#: The Service of the virtual API server itself. Each API server manages its own.
KUBERNETES = Key("default", "kubernetes")

#: Why a Service of type ExternalName has no copy.
_ONLY_A_NAME = reasons.ONLY_A_NAME()

#: Returns True for the key of an annotation that makes a load balancer internal, for example.
_configures_load_balancer = key_family("Load balancers")
#: The annotations of Services of type LoadBalancer that cross.
_OF_LOAD_BALANCERS = rules_of(LOAD_BALANCERS)

#: Seconds between two requests for the ranges while they aren't known, or don't fit.
LOOK_SECONDS = 60.0

#: Most refusals of node ports for a write of a copy. After each refusal the write asks for the
#: ports that were not refused; after the last one the host draws all.
MOST_REFUSALS = 8
#: The options that allow fields of a Service.
_ALLOWED_BY = {
    "externalIPs": "external_ips",
    "externalName": "external_names",
    "loadBalancerClass": "load_balancer_class",
    "loadBalancerIP": "load_balancer_ip",
}
#: Node ports by protocol and port.
NodePorts = Mapping[tuple[str, int], int]
#: The field at which an API server refuses node ports.
_PORTS = "spec.ports"
#: The types of Services with node ports.
_PUBLISHED = ("NodePort", "LoadBalancer")


class ServicesAllowed(Section):
    """What a tenant's Services may ask of the host's network beyond addresses of its own choice."""

    external_ips: bool = Field(default=False, alias="externalIPs")
    """Whether `spec.externalIPs` goes to the host.

    The host's nodes then take the traffic of all tenants, and of the host, to these addresses
    (CVE-2020-8554).
    """

    external_names: bool = False
    """Whether Services of type ExternalName are copied.

    Pods don't need the copies, as the virtual cluster's DNS knows the names. An Ingress controller
    of the host sends requests to any name in them.
    """

    load_balancer_class: bool = False
    """Whether Services of type LoadBalancer may have a `spec.loadBalancerClass`, so that tenants
    choose among the load balancers of the host. Without it, a Service that has one is refused: the
    default one may be open to more.
    """

    load_balancer_ip: bool = Field(default=False, alias="loadBalancerIP")
    """Whether `spec.loadBalancerIP` goes to the host, so that tenants choose the address of a load
    balancer, including one that is meant for somebody else.
    """


class ServiceConfig(Config):
    """The options of Services."""

    cluster_ip: Literal["auto", "own", "same"] = Field(default="auto", alias="clusterIP")
    """The ClusterIP of the host copy.

    `same`: the host is asked for the virtual one; if that is taken there, the virtual Service gets
    the one that the host draws, and keeps its uid. That needs a `--service-cluster-ip-range` of the
    virtual API server inside the host's. `own`: each side allocates its own. Pods get the host's in
    the environment and as their DNS server; a virtual DNS server that answers with ClusterIPs
    answers with the virtual ones, which the host does not route. `auto`: `same` if the ranges are
    known and the virtual one lies inside the host's, otherwise `own`, which `/readyz?verbose` says.
    """

    allow: ServicesAllowed = ServicesAllowed()


class ServiceSyncer(
    Mirror[ServiceConfig], Excludes[ServiceConfig], Grants[ServiceConfig], Initialize, OwnController
):
    """Copies Services; the virtual side owns the spec, and both agree on addresses and node ports.

    The host is asked for the ones that the virtual API server has drawn. If it has given them to
    another Service, its own come up, since tenants can only connect to these. Health-check node
    ports are left to the host's networking, and IP families are where the addresses differ.
    """

    name = "services"
    resource = SERVICES
    has_templates = False
    down = (
        "spec.type",
        "spec.externalName",
        "spec.externalIPs",
        "spec.externalTrafficPolicy",
        "spec.internalTrafficPolicy",
        "spec.trafficDistribution",
        "spec.sessionAffinity",
        "spec.sessionAffinityConfig",
        "spec.publishNotReadyAddresses",
        "spec.loadBalancerClass",
        "spec.loadBalancerIP",
        "spec.loadBalancerSourceRanges",
        "spec.allocateLoadBalancerNodePorts",
        "spec.ports",
        "spec.selector",
    )
    up = ("status",)
    references: ClassVar[References] = {
        "spec.selector": Selects(PODS, "map", empty_selects_nothing=True),
    }
    rights = (Right(Side.VIRTUAL, SERVICES, ("patch",)),)
    grants = (
        "spec.externalIPs",
        "spec.externalName",
        "spec.loadBalancerClass",
        "spec.loadBalancerIP",
    )
    fixed_grants = ("spec.externalName", "spec.loadBalancerClass")

    def __init__(self) -> None:
        #: True if the virtual API server draws addresses from the host's range; set by ``init``.
        self._draws_from_hosts = False
        #: Why the virtual API server doesn't; None if the configuration doesn't ask for it.
        self._obstacle: Obstacle | None = None

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Return the rights to find out the ranges, unless each side has its own addresses.

        A virtual API server below Kubernetes 1.33 has no ServiceCIDRs, and is asked in a dry run,
        as is the host where the daemon's rights are in a namespace.
        """
        yield from self.rights
        config = settings.section(self.name, ServiceConfig)
        if config is None or config.cluster_ip != "own":
            yield Right(Side.VIRTUAL, SERVICE_CIDRS, ("list",))
            yield Right(Side.VIRTUAL, SERVICES, ("create",))
            if settings.names.host_namespaces() is None:
                yield Right(Side.HOST, SERVICE_CIDRS, ("list",))

    async def init(self, live: Live) -> None:
        """Find out whether both sides can have the same addresses.

        Raises:
            ConfigError: They are to be the same, and can't be.
            ClusterError: An API server doesn't answer.
        """
        config = live.settings.section(self.name, ServiceConfig) or ServiceConfig()
        if config.cluster_ip == "own":
            return
        obstacle = await obstacle_to_same(live)
        if config.cluster_ip == "auto":
            self._found(live, obstacle)
        elif obstacle is not None and obstacle.is_certain:
            why = "the ClusterIPs can't be the same on both sides"
            why = f"{why}: {obstacle.sentence} ({obstacle.detail})"
            raise ConfigError(Problem(why, path=f"sync.{self.section}.clusterIP"))

    async def register(self, live: Live) -> None:
        """While each side has its own addresses, ask for the ranges from time to time.

        Once the ranges are known and fit, both sides get the same addresses. Ranges that fit aren't
        looked at again.
        """
        if self._obstacle is not None:
            # Shown again: init may run before this process leads, and only the leader writes the
            # event.
            self._found(live, self._obstacle)
        while self._obstacle is not None:
            await asyncio.sleep(LOOK_SECONDS)
            services: Iterable[Obj] = ()
            try:
                obstacle = await obstacle_to_same(live)
                if obstacle is None:
                    services = await live.virtual.list(SERVICES)
            except ClusterError:
                continue
            if obstacle != self._obstacle:
                self._found(live, obstacle)
            for service in services:
                live.request(key_of(service))

    def _found(self, live: Live, obstacle: Obstacle | None) -> None:
        """Act by an obstacle to equal addresses, and show it; None for none."""
        self._draws_from_hosts = obstacle is None
        self._obstacle = obstacle
        if obstacle is None:
            live.tell("", "")
        else:
            live.tell(f"each side has its own ClusterIPs: {obstacle.sentence}", obstacle.detail)

    def excluded(self, ctx: Context[ServiceConfig], side: Side, obj: Obj) -> str | None:
        """Leave the API server's own Service alone."""
        if side is Side.VIRTUAL and key_of(obj) == KUBERNETES:
            return reasons.API_SERVERS_OWN("")
        return None

    def still_granted(self, ctx: Context[ServiceConfig], host: Obj) -> Obj:
        """Return the copy without the fields that the tenant may not have, and has set."""
        spec = host.get("spec") or {}
        refused = []
        for field, option in _ALLOWED_BY.items():
            if (
                spec.get(field)
                and not getattr(ctx.config.allow, option)
                and ctx.marks.is_set(host, "spec", field)
            ):
                refused.append(field)
        if not refused:
            return host
        return {
            **host,
            "spec": {field: value for field, value in spec.items() if field not in refused},
        }

    def translate(self, ctx: Context[ServiceConfig], virtual: Obj) -> Obj:
        """Return the copy; it selects only this tenant's Pods of this namespace."""
        given = virtual.get("spec") or {}
        is_balanced = given.get("type") == "LoadBalancer"
        if is_balanced:
            ctx = ctx.with_annotation_rules(_OF_LOAD_BALANCERS)
        host = super().translate(ctx, virtual)
        spec = host.setdefault("spec", {})
        if is_balanced:
            _refuse_open(ctx, virtual)
            refuse_odd_values(ctx, virtual, LOAD_BALANCERS)

        for field in _kept_back(ctx.config.allow):
            if spec.pop(field, None):
                ctx.leave_out(f"spec.{field}")

        if given.get("ports"):
            spec["ports"] = _with_node_ports(given["ports"], {})
        if given.get("clusterIP") == HEADLESS:
            spec["clusterIP"] = HEADLESS
        return host

    def sync_down(self, ctx: Context[ServiceConfig], virtual: Obj) -> Decision:
        """Create the copy, unless the Service is only a name that must not go to the host."""
        note = Note.of(ctx.marks, virtual)
        if same.is_being_changed(virtual, note):
            return same.undo(ctx.marks, virtual, note)
        if _is_kept_back(ctx, virtual):
            return skip(_ONLY_A_NAME)
        decision = super().sync_down(ctx, virtual)
        decision = self._addressed(ctx, decision, virtual, None, note)
        return _published(decision, virtual, None)

    def sync(self, ctx: Context[ServiceConfig], pair: Pair) -> Decision:
        """Update the copy, or replace it if the host can't change it in place.

        Both get the same address.
        """
        virtual = pair.virtual
        note = Note.of(ctx.marks, virtual)
        if same.is_being_changed(virtual, note):
            if same.addresses(pair.host):
                return same.finish(ctx.marks, virtual, pair.host, note)
            return same.undo(ctx.marks, virtual, note)
        if note is not NO_NOTE:
            is_over = same.addresses(virtual) == same.addresses(pair.host)
            if is_over or note.was is not None:
                return same.forget(ctx.marks, virtual)

        if _is_kept_back(ctx, virtual):
            return delete(host=pair.host, reason=_ONLY_A_NAME)
        host = self.translate(ctx, virtual)
        if reason := _unchangeable(host, pair.host):
            return delete(host=pair.host, reason=reason)

        decision = apply(host=host, virtual=self.reflect(ctx, pair))
        decision = self._addressed(ctx, decision, virtual, pair.host, note)
        decision = _published(decision, virtual, pair.host)
        if not self._is_same(ctx) or not _can_be_changed(virtual):
            return decision
        if not same.differ(virtual, pair.host):
            return decision
        return decision.then(_agreed(ctx, pair, note))

    def deselected(self, ctx: Context[ServiceConfig], pair: Pair, reason: str) -> Decision:
        """Delete the copy; a Service in the middle of a change gets its old address back first."""
        note = Note.of(ctx.marks, pair.virtual)
        if same.is_being_changed(pair.virtual, note):
            return same.undo(ctx.marks, pair.virtual, note)
        return super().deselected(ctx, pair, reason)

    def _is_same(self, ctx: Context[ServiceConfig]) -> bool:
        """Return True if both sides are to have the same addresses."""
        mode = ctx.config.cluster_ip
        return mode == "same" or (mode == "auto" and self._draws_from_hosts)

    def _addressed(
        self,
        ctx: Context[ServiceConfig],
        decision: Decision,
        virtual: Obj,
        host: Obj | None,
        note: Note,
    ) -> Decision:
        """Return a decision whose copy asks for the addresses of the virtual Service.

        If they are taken, the host draws; but not for a Service with node ports, which keeps its
        address and waits.
        """
        if not self._is_same(ctx) or not decision.writes:
            return decision
        wanted = same.addresses(virtual)
        if not wanted:
            return decision

        copy = decision.writes[0]
        there = same.addresses(host)
        copy.obj["spec"] |= same.asked(virtual, wanted, host, there, note)
        if wanted in (there, note.taken) or not _can_be_changed(virtual):
            return decision

        def noted(refused: Write, fields: Collection[str]) -> Write:
            return same.note_taken(ctx.marks, virtual, note)

        asking = replace(copy, disputed=same.DISPUTED, otherwise=noted)
        return _with_copy(decision, asking)


def _can_be_changed(virtual: Obj) -> bool:
    """Return True if the address of a virtual Service may be changed.

    Then it has no node ports, which it would lose, and no load balancer.
    """
    return (virtual["spec"].get("type") or "ClusterIP") == "ClusterIP"


def _published(decision: Decision, virtual: Obj, host: Obj | None) -> Decision:
    """Return a decision whose copy asks for the node ports of a Service that publishes them.

    If some are taken on the host, the host draws others, or the copy keeps its own, and the virtual
    Service takes these in place, with an event; clients must look up a node port anyway. If the
    virtual API server can't assign them, the Service waits, parked, and the rest of the copy is
    kept up to date.
    """
    service_type = (virtual.get("spec") or {}).get("type")
    if service_type not in _PUBLISHED or not decision.writes:
        return decision
    copy = decision.writes[0]
    bare = copy.obj["spec"].get("ports")
    if not bare:
        return decision

    wanted = _node_ports(virtual)
    there = _node_ports(host or {})
    copy.obj["spec"]["ports"] = _with_node_ports(bare, {**there, **wanted})
    if wanted.items() <= there.items():
        return decision
    return _with_copy(decision, _asking(copy, virtual, there, wanted))


def _asking(
    write: Write,
    virtual: Obj,
    there: NodePorts,
    asked: NodePorts,
    refusals: int = 0,
) -> Write:
    """Return the write of a copy that asks for these node ports, beside those that are there.

    Args:
        write: The write of the copy.
        virtual: The virtual Service.
        there: The node ports that the copy has.
        asked: Those of the virtual Service that the host hasn't refused.
        refusals: The number of writes that the host has refused.
    """
    asking = _with_ports(write, {**there, **asked})
    refused = partial(_refused, virtual, there, asked, refusals + 1)
    return replace(asking, disputed=_PORTS, otherwise=refused)


def _refused(
    virtual: Obj,
    there: NodePorts,
    asked: NodePorts,
    refusals: int,
    write: Write,
    fields: Collection[str],
) -> Write:
    """Return the write to make after the host has refused node ports.

    It asks for the others. If none are left to ask for, it gives the virtual Service those of its
    copy; or the host draws those that the copy lacks.
    """
    taken = set()
    for number, port in enumerate(write.obj["spec"]["ports"]):
        if f"{_PORTS}[{number}].nodePort" in fields:
            taken.add(_port(port))
    left = {port: number for port, number in asked.items() if port not in taken}

    if taken and refusals < MOST_REFUSALS and not left.items() <= there.items():
        return _asking(write, virtual, there, left, refusals)
    for port, number in _node_ports(virtual).items():
        if there.get(port, number) != number:
            return _taken_over(virtual, there, write)
    return _drawn(there, write)


def _drawn(there: NodePorts, refused: Write) -> Write:
    """Return the write of a copy that keeps its node ports; the host draws the others."""
    drawn = _with_ports(refused, there)
    return replace(drawn, disputed="", otherwise=None)


def _with_ports(write: Write, allocated: NodePorts) -> Write:
    """Return the write of a copy with these node ports, and no others."""
    spec = write.obj["spec"]
    ports = _with_node_ports(spec.get("ports") or [], allocated)
    return replace(write, obj={**write.obj, "spec": {**spec, "ports": ports}})


def _taken_over(virtual: Obj, there: NodePorts, refused: Write) -> Write:
    """Return the write that gives a virtual Service the node ports of its copy."""
    ports = _with_node_ports(virtual["spec"]["ports"], there, keep=True)
    [write] = apply(virtual={**same.version_of(virtual), "spec": {"ports": ports}}).writes

    def drawn(write: Write, fields: Collection[str]) -> Write:
        return _drawn(there, refused)

    warning = Warned("NodePortChanged", _changed_ports(virtual, there))
    return replace(write, disputed=_PORTS, otherwise=drawn, warning=warning)


def _changed_ports(virtual: Obj, there: NodePorts) -> str:
    """Return the sentence of the event that names the node ports that change."""
    changed = []
    for (protocol, port), number in _node_ports(virtual).items():
        new = there.get((protocol, port), number)
        if new != number:
            changed.append(f"{number} of port {port}/{protocol} becomes {new}")

    named = ", ".join(changed[:MOST_LISTED])
    if len(changed) > MOST_LISTED:
        named = f"{named} and {len(changed) - MOST_LISTED} more"
    return f"node ports that others have on the nodes are changed: {named}"


def _with_copy(decision: Decision, copy: Write) -> Decision:
    """Return a decision with another write of the copy."""
    return replace(decision, writes=(copy, *decision.writes[1:]))


def _agreed(ctx: Context[ServiceConfig], pair: Pair, note: Note) -> Decision:
    """Return the next step for a virtual Service whose copy has another address."""
    if note.unfit != same.addresses(pair.host):
        return same.begin(ctx.marks, pair.virtual, note)
    if note.taken and note.draws < MOST_DRAWS:
        why = "the virtual Service can't have its address, so the host draws another one"
        return delete(host=pair.host, reason=why)
    if not note.notified:
        return same.tell(ctx.marks, pair.virtual, note)
    if note.taken:
        return wait(reasons.NO_FREE_ADDRESS())
    return Decision()


def _kept_back(allow: ServicesAllowed) -> Iterable[str]:
    """Return the fields of a spec that don't go to the host."""
    if not allow.external_ips:
        yield "externalIPs"
    if not allow.load_balancer_ip:
        yield "loadBalancerIP"


def _is_kept_back(ctx: Context[ServiceConfig], virtual: Obj) -> bool:
    """Return True for a Service of type ExternalName, if these are not copied."""
    is_name = (virtual.get("spec") or {}).get("type") == "ExternalName"
    if not is_name or ctx.config.allow.external_names:
        return False
    ctx.leave_out("spec.externalName")
    return True


def _refuse_open(ctx: Context[ServiceConfig], virtual: Obj) -> None:
    """Refuse a load balancer that would be open to more than the tenant means.

    A class or an annotation may keep the load balancer internal, and neither goes to the host.

    Raises:
        Refused: The Service has such a class or annotation.
    """
    has_class = virtual["spec"].get("loadBalancerClass")
    if has_class and not ctx.config.allow.load_balancer_class:
        why = "the host chooses the load balancer, and the default one may be open to more"
        how = "create the Service again without it, or change its type, as a class can't be changed"
        raise Refused(f"{why}: {how}", path="spec.loadBalancerClass", reason="NotCopied")
    ctx.refuse_without(virtual, _configures_load_balancer)


def _unchangeable(wanted: Obj, actual: Obj) -> str | None:
    """Return why the copy must be replaced; None if it can be changed in place.

    A Service stays headless, or not, for as long as its type has an address.
    """
    address = (actual.get("spec") or {}).get("clusterIP")
    if not address or wanted["spec"].get("type") == "ExternalName":
        return None
    is_headless = wanted["spec"].get("clusterIP") == HEADLESS
    if is_headless == (address == HEADLESS):
        return None
    now = "headless now" if is_headless else "no longer headless"
    return f"the virtual Service is {now}, which the host can't change in place"


def _node_ports(service: Obj) -> dict[tuple[str, int], int]:
    """Return the allocated node ports by protocol and port."""
    ports = (service.get("spec") or {}).get("ports") or ()
    return {_port(port): port["nodePort"] for port in ports if port.get("nodePort")}


def _with_node_ports(ports: list[Obj], allocated: NodePorts, *, keep: bool = False) -> list[Obj]:
    """Return the ports with the given node ports.

    Others have none, or with ``keep`` the one that they had.
    """
    result = []
    for port in ports:
        number = allocated.get(_port(port))
        if number:
            result.append({**port, "nodePort": number})
        elif keep:
            result.append(port)
        else:
            bare = {name: value for name, value in port.items() if name != "nodePort"}
            result.append(bare)
    return result


def _port(port: Obj) -> tuple[str, int]:
    return port.get("protocol", "TCP"), port["port"]
