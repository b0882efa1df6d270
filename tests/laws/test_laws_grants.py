"""No grant outlasts its permission: a copy is cut to today's rules, whatever the state of its original."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from sampled import registry

from syncer.api import (
    Config,
    Grants,
    Key,
    NameTranslator,
    Obj,
    Refused,
    Resource,
    Side,
    SyncDown,
    Write,
    annotations_of,
    key_of,
    labels_of,
)
from syncer.cache.parts import MOST_KEYS
from syncer.clusters import codec
from syncer.engine.stores.identity import NOTE_KEY
from syncer.names import PerNamespace, SingleNamespace
from syncer.resources.kinds import (
    INGRESS_CLASSES,
    LIMIT_RANGES,
    NETWORK_POLICIES,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
)
from syncer.resources.namespaces import NAME
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import (
    build,
    configmap,
    endpointslice,
    host_copy,
    ingress,
    namespace,
    service,
    serviceaccount,
)

PAUSED = "vsyncer.dev/paused"
MANY = {f"note-{number}": "" for number in range(MOST_KEYS + 1)}
CHOSEN = {"labels": {"tier": "gold"}}


@dataclass(frozen=True)
class Grant:
    """An object whose copy has more by generous rules than strict ones allow."""

    syncer: str
    section: str
    obj: Obj
    generous: Mapping[str, Any]
    strict: Mapping[str, Any]
    #: Returns the part that the strict rules don't allow, of the copy, or of the object beside it.
    excess: Callable[[Obj], Any]
    #: Lets the syncer refuse the original, by the strict rules and whatever else it refuses.
    refusable: Mapping[str, Any]
    translator: type[NameTranslator] = SingleNamespace
    #: Objects of the host's own.
    host: Sequence[Obj] = ()
    #: The kind of the operator's object beside a copy that limits the tenant.
    beside: Resource | None = None
    #: The key of the copy, where the strict rules put it nowhere.
    place: Key | None = None

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration with options of the kind; `fromHost` is the section of that name."""
        of_kind = {"enabled": True, **options}
        from_host = of_kind.pop("fromHost", {})
        return {"sync": {"toHost": {self.section: of_kind}, "fromHost": from_host}}


def _of(path: str, allowed: Any) -> Callable[[Obj], Any]:
    """Return a function that returns the value at a path of a copy unless it is the allowed one."""

    def excess(copy: Obj) -> Any:
        value: Any = copy
        for step in path.split("."):
            value = (value or {}).get(step)
        return None if value in (None, [], allowed) else value

    return excess


def _foreign_hosts(copy: Obj) -> list[str]:
    spec = copy["spec"]
    of_rules = [rule.get("host", "") for rule in spec.get("rules") or ()]
    of_tls = [host for tls in spec.get("tls") or () for host in tls.get("hosts") or ()]
    return [host for host in (*of_rules, *of_tls) if host != "db.shop.example.org"]


def _outer_ranges(copy: Obj) -> list[str]:
    rules = copy["spec"].get("egress") or ()
    ranges = [peer["ipBlock"]["cidr"] for rule in rules for peer in rule["to"] if "ipBlock" in peer]
    return [each for each in ranges if not each.startswith("192.0.2.")] + [
        str(rule) for rule in rules if not rule["to"]
    ]


def _labels(copy: Obj) -> Any:
    level = labels_of(copy).get("pod-security.kubernetes.io/enforce")
    return (level if level != "restricted" else None) or labels_of(copy).get("net")


_BACKEND = {
    "http": {
        "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]
    }
}
_RULES = [{"host": host, **_BACKEND} for host in ("login.bank.example", "db.shop.example.org")]
_TLS = [{"hosts": ["login.bank.example"], "secretName": "a"}, {"hosts": ["db.shop.example.org"], "secretName": "a"}]
_WIDE = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "192.0.0.0/16"}}]}]}
_NAMES_A_SERVICE = {"metadata": {"annotations": {"alb.ingress.kubernetes.io/actions.a": "serviceName"}}}
_ENDPOINTS = [{"addresses": ["192.0.2.1"]}, {"addresses": ["198.51.100.1"]}]
_ROLE = "eks.amazonaws.com/role-arn"
_BALANCED = {"type": "LoadBalancer", "ports": [{"port": 80}]}
_CLASS = build(INGRESS_CLASSES, "internal-admin", spec={"controller": "example.org/a"})
_TAKES_TIER = {"metadata": {"labels": {"allow": ["tier"]}}}
_SELECTED = {"enabled": True, "selector": {"matchLabels": {"tenants": "yes"}}}

GRANTS = {
    "endpointslices": Grant(
        "endpointslices",
        "endpointSlices",
        endpointslice(
            "db",
            service="web",
            namespace="default",
            endpoints=[{"addresses": ["192.0.2.1"]}, {"addresses": ["198.51.100.1"]}],
        ),
        {"allowAddresses": ["192.0.2.0/24", "198.51.100.0/24"]},
        {"allowAddresses": ["192.0.2.0/24"]},
        _of("endpoints", [{"addresses": ["192.0.2.1"]}]),
        {"metadata": {"labels": {"kubernetes.io/service-name": "nowhere"}}},
    ),
    "hosts of ingresses": Grant(
        "ingresses",
        "ingresses",
        ingress("db", spec={"rules": _RULES, "tls": _TLS}),
        {},
        {"allowedHosts": ["*.shop.example.org"]},
        _foreign_hosts,
        _NAMES_A_SERVICE,
    ),
    "only host of an ingress": Grant(
        "ingresses",
        "ingresses",
        ingress("db", spec={"rules": _RULES[:1]}),
        {},
        {"allowedHosts": ["*.shop.example.org"]},
        _foreign_hosts,
        _NAMES_A_SERVICE,
    ),
    "default backend of an ingress": Grant(
        "ingresses",
        "ingresses",
        ingress(
            "db", spec={"rules": _RULES[1:], "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
        ),
        {},
        {"allowedHosts": ["*.shop.example.org"]},
        _of("spec.defaultBackend", None),
        {},
    ),
    "class of an ingress": Grant(
        "ingresses",
        "ingresses",
        ingress("db", spec={"ingressClassName": "internal-admin"}),
        {},
        {"allowedClasses": ["public"]},
        lambda copy: copy,
        _NAMES_A_SERVICE,
    ),
    "class of the host in a field": Grant(
        "ingresses",
        "ingresses",
        ingress("db", spec={"ingressClassName": "internal-admin"}),
        {"fromHost": {"ingressClasses": {"enabled": True}}},
        {"fromHost": {"ingressClasses": _SELECTED}},
        lambda copy: copy,
        _NAMES_A_SERVICE,
        host=[_CLASS],
    ),
    "class of the host in an annotation": Grant(
        "ingresses",
        "ingresses",
        ingress("db", metadata={"annotations": {"kubernetes.io/ingress.class": "internal-admin"}}),
        {"fromHost": {"ingressClasses": {"enabled": True}}},
        {"fromHost": {"ingressClasses": _SELECTED}},
        lambda copy: copy,
        _NAMES_A_SERVICE,
        host=[_CLASS],
    ),
    "ranges of networkpolicies": Grant(
        "networkpolicies",
        "networkPolicies",
        build(NETWORK_POLICIES, "db", spec=_WIDE),
        {"allowedCIDRs": {"egress": [{"cidr": "192.0.0.0/8"}]}},
        {"allowedCIDRs": {"egress": [{"cidr": "192.0.2.0/24", "except": ["192.0.2.7/32"]}]}},
        _outer_ranges,
        {"spec": {"egress": [{"to": [{"unheardOf": {}}]}]}},
    ),
    "external addresses of services": Grant(
        "services",
        "services",
        service("db", spec={"externalIPs": ["8.8.8.8"]}),
        {"allow": {"externalIPs": True}},
        {},
        _of("spec.externalIPs", None),
        {
            "metadata": {"annotations": {"service.beta.kubernetes.io/aws-load-balancer-internal": "true"}},
            "spec": _BALANCED,
        },
    ),
    "class of a load balancer": Grant(
        "services",
        "services",
        service("db", spec={**_BALANCED, "loadBalancerClass": "internal"}),
        {"allow": {"loadBalancerClass": True}},
        {},
        _of("spec.loadBalancerClass", None),
        {},
    ),
    "address of a load balancer": Grant(
        "services",
        "services",
        service("db", spec={**_BALANCED, "loadBalancerIP": "192.0.2.1"}),
        {"allow": {"loadBalancerIP": True}},
        {},
        _of("spec.loadBalancerIP", None),
        {"metadata": {"annotations": {"service.beta.kubernetes.io/aws-load-balancer-internal": "true"}}},
    ),
    "external names": Grant(
        "services",
        "services",
        service("db", spec={"type": "ExternalName", "externalName": "admin.example.org", "selector": None}),
        {"allow": {"externalNames": True}},
        {},
        _of("spec.externalName", None),
        {},
    ),
    "names of services on the host": Grant(
        "published-services",
        "publishedServices",
        service("db"),
        {"namespaces": ["infra"], "mappings": {"byName": {"shop/*": "infra/shop-*"}}, **_TAKES_TIER},
        {"namespaces": ["infra"], "mappings": {"byName": {"shop/other": "infra/shop-db"}}, **_TAKES_TIER},
        lambda copy: copy,
        {},
        host=[host_copy(service("db"), spec={"clusterIP": "10.96.0.7", "ports": [{"port": 80}]})],
        place=Key("infra", "shop-db"),
    ),
    "annotations of services": Grant(
        "services",
        "services",
        service("db", metadata={"annotations": {"example.org/shared": "yes"}}),
        {},
        {"metadata": {"annotations": {"deny": ["example.org/*"]}}},
        lambda copy: annotations_of(copy).get("example.org/shared"),
        {},
    ),
    "values of priorityclasses": Grant(
        "tenant-priorityclasses",
        "priorityClasses",
        build(PRIORITY_CLASSES, "db", value=90000),
        {"maxValue": 90000},
        {"maxValue": 100},
        _of("value", 100),
        {},
    ),
    "accounts of a cloud": Grant(
        "serviceaccounts",
        "serviceAccounts",
        serviceaccount("db", metadata={"annotations": {_ROLE: "arn"}}),
        {"metadata": {"annotations": {"allow": [_ROLE]}}},
        {},
        lambda copy: annotations_of(copy).get(_ROLE),
        {},
    ),
    "labels of host namespaces": Grant(
        "namespaces",
        "namespaces",
        namespace("db"),
        {"podSecurity": "privileged", "labels": {"net": "open"}},
        {"podSecurity": "restricted"},
        _labels,
        {},
        translator=PerNamespace,
    ),
    "quota of host namespaces": Grant(
        "namespaces",
        "namespaces",
        namespace("db"),
        {"quota": {"hard": {"pods": "90"}}},
        {"quota": {"hard": {"pods": "1"}}},
        _of("spec.hard.pods", "1"),
        {},
        translator=PerNamespace,
        beside=RESOURCE_QUOTAS,
    ),
    "limits of host namespaces": Grant(
        "namespaces",
        "namespaces",
        namespace("db"),
        {"limits": {"limits": [{"type": "Container", "max": {"cpu": "64"}}]}},
        {"limits": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
        _of("spec.limits", [{"type": "Container", "max": {"cpu": "1"}}]),
        {},
        translator=PerNamespace,
        beside=LIMIT_RANGES,
    ),
}

#: One grant of each kind.
ONE_OF_EACH = {grant.syncer: grant for grant in GRANTS.values()}


class Frozen:
    """A world in which an original was copied by generous rules."""

    def __init__(self, grant: Grant, more: Mapping[str, Any]) -> None:
        self.grant = grant
        self.obj = merged(grant.obj, {"metadata": CHOSEN})
        self.key = key_of(self.obj)
        generous = merged(grant.options(grant.generous), more)
        self.world = World(config=generous, translator=grant.translator)
        given = [self.obj] if grant.syncer == "namespaces" else [self.obj, namespace(self.key.namespace or "shop")]
        self.world.given(virtual=given, host=grant.host)
        self.world.settle(grant.syncer, self.key)
        assert self.excess(), "the generous rules allow it"

    def copy(self) -> Obj | None:
        if self.grant.place is not None:
            return self.world.host(self.obj["kind"], self.grant.place)
        return self.world.copy_of(self.grant.syncer, self.key)

    def settle(self) -> Sequence[object]:
        """Reconcile the request of the copy until nothing is left to write. Return the API requests."""
        place = self.grant.place
        syncer = self.world.syncer(self.grant.syncer)
        if place == syncer.host_key(self.world.settings, self.key):
            place = None
        return self.world.settle(self.grant.syncer, self.key, host_key=place)

    def excess(self) -> Any:
        """Return the part that the strict rules don't allow; none if there is no copy."""
        limited = copy = self.copy()
        if copy is not None and self.grant.beside is not None:
            limited = self.world.host(self.grant.beside.kind, Key(key_of(copy).name, NAME))
        return self.grant.excess(limited) if limited is not None else None

    def change(self, **parts: Any) -> None:
        self.obj = merged(self.obj, parts)
        self.world.given(virtual=[self.obj])

    def now(self, options: Mapping[str, Any]) -> None:
        """Begin with other rules, as a daemon that is started again."""
        world = World(config=options, translator=self.grant.translator)
        for side in Side:
            world.given(**{side.value: [obj for _, obj in self.world.objects(side)]})
        world.pair.policies.pause.watch(lambda namespace: None, lambda syncer: None)
        self.world = world.given()


def _pause_all(frozen: Frozen, value: str) -> None:
    frozen.world.given(
        virtual=[configmap(NOTE_KEY.name, namespace=NOTE_KEY.namespace, metadata={"annotations": {PAUSED: value}})]
    )


def _pause_namespace(frozen: Frozen) -> None:
    name = frozen.key.namespace or frozen.key.name
    frozen.world.given(virtual=[namespace(name, metadata={"annotations": {PAUSED: "true"}, **CHOSEN})])


#: Acts of a tenant to keep a copy as it is.
FREEZES: Mapping[str, Callable[[Frozen], object]] = {
    "nothing": lambda frozen: None,
    "pauses it": lambda frozen: frozen.change(metadata={"annotations": {PAUSED: "true"}}),
    "pauses its namespace": _pause_namespace,
    "pauses its syncer": lambda frozen: _pause_all(frozen, frozen.grant.syncer),
    "pauses the virtual cluster": lambda frozen: _pause_all(frozen, "true"),
    "makes it too large": lambda frozen: frozen.change(metadata={"annotations": MANY}),
    "makes it unreadable": lambda frozen: frozen.change(**{codec.UNREADABLE: "its labels are a list"}),
    "has it refused": lambda frozen: frozen.change(**frozen.grant.refusable),
    "has it excluded": lambda frozen: frozen.change(metadata={"labels": {"kubernetes.io/service-name": "kubernetes"}}),
    "pauses it and changes it": lambda frozen: frozen.change(
        metadata={"annotations": {PAUSED: "true"}}, spec={"ports": [], "rules": []}
    ),
}


def rounds(frozen: Frozen) -> None:
    """Reconcile as a patrol does, until nothing more is written."""
    with suppress(Refused):
        frozen.settle()


@pytest.mark.parametrize("freeze", FREEZES.values(), ids=FREEZES)
@pytest.mark.parametrize("grant", GRANTS.values(), ids=GRANTS)
def test_no_copy_has_more_than_the_new_rules_allow(grant: Grant, freeze: Callable[[Frozen], object]) -> None:
    frozen = Frozen(grant, {})
    freeze(frozen)
    frozen.now(grant.options(grant.strict))
    rounds(frozen)
    assert not frozen.excess()


@pytest.mark.parametrize("freeze", FREEZES.values(), ids=FREEZES)
@pytest.mark.parametrize("grant", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
def test_no_object_that_a_narrowed_selector_leaves_out_keeps_its_copy(
    grant: Grant, freeze: Callable[[Frozen], object]
) -> None:
    frozen = Frozen(grant, {})
    freeze(frozen)
    frozen.now(grant.options({**grant.generous, "selector": {"matchLabels": {"tier": "silver"}}}))
    rounds(frozen)
    assert frozen.copy() is None


@pytest.mark.parametrize("grant", GRANTS.values(), ids=GRANTS)
def test_nothing_is_revoked_while_the_rules_stay(grant: Grant) -> None:
    frozen = Frozen(grant, {})
    frozen.now(grant.options(grant.generous))
    assert frozen.settle() == []
    FREEZES["pauses it"](frozen)
    frozen.now(grant.options(grant.generous))
    assert frozen.settle() == []


@pytest.mark.parametrize("grant", GRANTS.values(), ids=GRANTS)
def test_copy_that_the_operator_has_paused_is_left_alone(grant: Grant) -> None:
    frozen = Frozen(grant, {})
    paused = merged(frozen.copy() or {}, {"metadata": {"annotations": {PAUSED: "true"}}})
    frozen.world.given(host=[paused])
    frozen.now(grant.options(grant.strict))
    rounds(frozen)
    assert frozen.excess()


@pytest.mark.parametrize("grant", GRANTS.values(), ids=GRANTS)
def test_object_of_the_host_with_the_name_of_a_copy_is_left_alone(grant: Grant) -> None:
    frozen = Frozen(grant, {})
    copy = frozen.copy() or {}
    foreign = {**copy, "metadata": {**copy["metadata"], "labels": {}, "annotations": {}}}
    frozen.world.given(host=[foreign])
    frozen.now(grant.options(grant.strict))
    rounds(frozen)
    assert (frozen.copy() or {}).get("spec") == foreign.get("spec")
    assert not labels_of(frozen.copy() or {})


@pytest.mark.parametrize("grant", GRANTS.values(), ids=GRANTS)
def test_patch_of_the_operator_that_writes_a_grant_is_not_fought(grant: Grant) -> None:
    """Its values stay, and the copy comes to rest."""
    controller = World(config=grant.options({}), translator=grant.translator).pair.controllers[grant.syncer]
    assert isinstance(controller.syncer, Grants)
    patches = [{"path": str(path), "cel": "value"} for path in controller.syncer.grants]
    frozen = Frozen(grant, grant.options({"patches": {"down": patches}}))
    frozen.now(merged(grant.options(grant.strict), grant.options({"patches": {"down": patches}})))
    rounds(frozen)
    if frozen.copy() is not None:
        assert not [write for write in _asked(frozen) if write.revokes]


#: Grants whose copies take a label of the operator's.
LABELLED = {name: grant for name, grant in GRANTS.items() if grant.syncer != "namespaces"}


@pytest.mark.parametrize("grant", LABELLED.values(), ids=LABELLED)
def test_patch_of_a_label_keeps_no_grant(grant: Grant) -> None:
    patched = grant.options({"patches": {"down": [{"op": "replace", "path": "/metadata/labels/tier", "value": "x"}]}})
    frozen = Frozen(grant, patched)
    frozen.now(merged(grant.options(grant.strict), patched))
    rounds(frozen)
    copy = frozen.copy()
    assert copy is None or not grant.excess(copy)


def _asked(frozen: Frozen) -> Iterable[Write]:
    """Return the writes of the next decision; none if the original is refused."""
    with suppress(Refused):
        return frozen.world.decide(frozen.grant.syncer, frozen.key).writes
    return ()


# -- no kind is forgotten --------------------------------------------------------------------------

#: Kinds with options of their own of which nothing that a copy has can be withdrawn, with the reason.
NOT_WITHDRAWN: Mapping[str, str] = {
    "configmaps": "its options choose what is copied, and a copy gives no access",
    "secrets": "its options choose what is copied, and a copy gives no access",
    "pods": "what a Pod may have is checked when it is created, and the host changes none of it later",
    "pod-tokens": "its option chooses what a token names; tokens expire",
    "tenant-crds": "onRemoval decides about what is no longer chosen",
}


def _goes_down() -> Iterable[type[Any]]:
    return [syncer for syncer in registry() if issubclass(syncer, SyncDown)]


def _granting() -> set[str]:
    return {syncer.name for syncer in registry() if issubclass(syncer, Grants)}


def test_every_kind_that_grants_has_a_row() -> None:
    assert {grant.syncer for grant in GRANTS.values()} == _granting()


def test_every_kind_with_own_options_grants_or_explains() -> None:
    plain = Config.model_fields.keys()
    with_options = {syncer.name for syncer in _goes_down() if syncer.config.model_fields.keys() - plain}
    assert with_options - _granting() == NOT_WITHDRAWN.keys()
