"""What the operator withdraws leaves the copies, and what is the operator's reaches them, whatever a tenant pauses."""

from collections.abc import Mapping
from typing import Any

from custom_scene import there
from harness import CLUSTER, HOME, NAMESPACE, Tenant, Two, between, built_in, host_path, serving, until
from test_pause import annotate, pause_cluster

from syncer.api import Key, Obj, annotations_of, labels_of
from syncer.config import SyncerConfig, config_with
from syncer.names import PerNamespace
from syncer.resources.kinds import NAMESPACES, NETWORK_POLICIES, PRIORITY_CLASSES
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, ingress, pod, service, serviceaccount

INGRESS_PATH = "ingresses.networking.k8s.io"
POLICY_PATH = "networkpolicies.networking.k8s.io"
CLASS_PATH = "priorityclasses.scheduling.k8s.io"
GENEROUS: Mapping[str, Any] = {
    "configMaps": {"all": True},
    "services": {"allow": {"externalIPs": True}},
    "ingresses": {"enabled": True},
    "networkPolicies": {"enabled": True, "allowedCIDRs": {"egress": [{"cidr": "10.0.0.0/8"}]}},
    "priorityClasses": {"enabled": True, "maxValue": 90000},
}
STRICT: Mapping[str, Any] = {
    "configMaps": {"all": True, "selector": {"matchLabels": {"tier": "gold"}}},
    "ingresses": {"enabled": True, "allowedHosts": ["*.shop.example.org"], "allowedClasses": ["public"]},
    "networkPolicies": {"enabled": True, "allowedCIDRs": {"egress": [{"cidr": "192.0.2.0/24"}]}},
    "priorityClasses": {"enabled": True},
}
LOGIN = {"rules": [{"host": "login.bank.example"}], "ingressClassName": "internal-admin"}
OPEN = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}
QUOTA = "resourcequotas"


async def test_restart_with_stricter_rules_takes_all_grants_back_from_frozen_copies(two: Two) -> None:
    names = {"services": "open", CLASS_PATH: "high", "configmaps": "settings"}

    def copy_of_class() -> list[Obj]:
        return [each for each in two.host.objects(CLASS_PATH) if each.get("value") == 90000]

    def has_range() -> bool:
        return bool((two.copy(POLICY_PATH, "open") or {"spec": {}})["spec"].get("egress"))

    two.virtual.put(service("open", spec={"externalIPs": ["8.8.8.8"]}))
    two.virtual.put(ingress("login", spec=LOGIN))
    two.virtual.put(build(NETWORK_POLICIES, "open", spec=OPEN))
    two.virtual.put(build(PRIORITY_CLASSES, "high", value=90000))
    two.virtual.put(configmap("settings"))
    async with two.daemon(options=GENEROUS) as daemon:
        await until(lambda: two.copy(INGRESS_PATH, "login") and two.copy(POLICY_PATH, "open") and copy_of_class())
        await daemon.settled()
        for plural, name in names.items():
            annotate(two.virtual, plural, name if plural == CLASS_PATH else f"{NAMESPACE}/{name}")
        refused: Obj = {"spec": {"egress": [{"to": [{"unheardOf": {}}]}]}}
        two.virtual.put(merged(there(two.virtual, POLICY_PATH, f"{NAMESPACE}/open"), refused))
        await daemon.settled()
        assert there(two.host, "services", host_path("open"))["spec"]["externalIPs"] == ["8.8.8.8"]
        assert has_range()
    async with two.daemon(options=STRICT) as daemon:
        await until(lambda: two.copy(INGRESS_PATH, "login") is None)
        await until(lambda: not there(two.host, "services", host_path("open"))["spec"].get("externalIPs"))
        await until(lambda: not copy_of_class())
        await until(lambda: two.copy(POLICY_PATH, "open") and not has_range())
        await until(lambda: two.copy("configmaps", "settings") is None)
        await daemon.settled()
        events = [each for each in two.virtual.objects("events") if each["reason"] == "GrantRevoked"]
        revoked = {each["involvedObject"]["kind"] for each in events}
        assert revoked == {"Service", "Ingress", "NetworkPolicy", "PriorityClass"}


async def test_pauses_of_tenants_count_only_where_the_operator_lets_them(two: Two) -> None:
    two.virtual.put(configmap("settings"))
    pause_cluster(two)
    annotate(two.virtual, "configmaps", f"{NAMESPACE}/settings")
    annotate(two.virtual, "namespaces", NAMESPACE)
    async with serving(two.host, [Tenant(two.virtual, options=GENEROUS)]) as daemon:
        await daemon.settled()
        assert two.copy("configmaps", "settings") is None
    async with between(two.host, [(_rules({"pause": {"byTenants": False}}), two.virtual)]) as daemon:
        await until(lambda: two.host.objects("configmaps"))
        await daemon.settled()
        copy = two.host.objects("configmaps")[0]
        two.host.put(merged(copy, {"metadata": {"annotations": {"vsyncer.dev/paused": "true"}}}))
        two.virtual.put(merged(there(two.virtual, "configmaps", f"{NAMESPACE}/settings"), {"data": {"new": "1"}}))
        await daemon.settled()
        assert "new" not in (two.host.objects("configmaps")[0].get("data") or {}), "the operator's own pause counts"


# -- host namespaces -------------------------------------------------------------------------------


def _rules(more: Mapping[str, Any]) -> SyncerConfig:
    model = config_with([*built_in()], translator=PerNamespace)
    config = {"cluster": CLUSTER, "host": {"namespace": HOME}, "sync": {"toHost": {"configMaps": {"all": True}}}}
    return model.model_validate(merged(config, more))


def _of_namespaces(level: str, pods: str) -> SyncerConfig:
    options = {"podSecurity": level, "quota": {"hard": {"pods": pods}}}
    quick = {"networking": {"dns": {"service": ""}}, "patrol": {"interval": "60s", "fresh": "60s"}}
    return _rules({"sync": {"toHost": {"namespaces": options}}, **quick})


def _enforced(two: Two, home: str) -> None:
    """Let the host's controller know the quota."""
    quota = there(two.host, QUOTA, f"{home}/vsyncer")
    two.host.put(merged(quota, {"status": {"hard": quota["spec"]["hard"]}}))


async def test_pause_of_namespaces_keeps_no_stricter_level_and_quota_from_them(two: Two) -> None:
    home = PerNamespace(cluster=CLUSTER, namespace=HOME).to_host(NAMESPACES, Key("", NAMESPACE)).name

    def level() -> Any:
        return labels_of(two.host.get("namespaces", home) or {"metadata": {}}).get("pod-security.kubernetes.io/enforce")

    def pods() -> Any:
        return (two.host.get(QUOTA, f"{home}/vsyncer") or {"spec": {"hard": {}}})["spec"]["hard"].get("pods")

    def is_there(name: str) -> bool:
        return any(annotations_of(each)["vsyncer.dev/virtual-name"] == name for each in two.host.objects("pods"))

    two.virtual.put(serviceaccount("default"))
    two.virtual.put(pod("first"))
    async with between(two.host, [(_of_namespaces("privileged", "20"), two.virtual)]) as daemon:
        await until(lambda: pods() == "20")
        _enforced(two, home)
        await until(lambda: is_there("first"))
        pause_cluster(two, "namespaces")
        await daemon.settled()
    two.virtual.put(pod("second"))
    async with between(two.host, [(_of_namespaces("restricted", "5"), two.virtual)]) as daemon:
        await until(lambda: (level(), pods()) == ("restricted", "5"))
        await daemon.settled()
        assert not is_there("second"), "the host doesn't enforce the new quota yet"
        _enforced(two, home)
        await until(lambda: is_there("second"))
        two.host.delete(QUOTA, f"{home}/vsyncer")
        await until(lambda: pods() == "5", within=200)
