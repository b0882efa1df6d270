"""Who reaches whom, by the NetworkPolicies of the chart `virtual-cluster`."""

import re
from typing import Any

import pytest
import yaml
from chart_rendering import ROOT
from virtual_cluster_scene import (
    NAME,
    WORKLOADS,
    config,
    objects,
)

from syncer.api import Marks, Obj


def part(name: str) -> Obj:
    """Return the peer that is the release's own pods of a part."""
    labels = {"vsyncer.dev/part": name, "app.kubernetes.io/instance": "shop"}
    return {"podSelector": {"matchLabels": labels}}


def reach(rule: Obj) -> list[tuple[int, int]]:
    """Return the ranges of ports of a rule of a NetworkPolicy."""
    return [(each["port"], each.get("endPort", each["port"])) for each in rule.get("ports", [])]


def test_etcd_is_reached_by_the_control_plane_and_by_backups_alone() -> None:
    for enabled in (False, True):
        found = objects(networkPolicy={"monitoring": []}, backup={"enabled": enabled})
        rules = found["NetworkPolicy", f"{NAME}-control-plane"]["spec"]["ingress"]
        by_port: dict[int, list[Obj]] = {}
        for rule in rules:
            for first, _ in reach(rule):
                by_port.setdefault(first, []).extend(rule.get("from", ["all"]))
        backup = [part("backup")] if enabled else []
        assert by_port == {6443: ["all"], 2379: [part("control-plane"), *backup], 2380: [part("control-plane")]}
    assert ("NetworkPolicy", f"{NAME}-control-plane") not in objects(networkPolicy={"enabled": False})


@pytest.mark.parametrize(
    ("config", "kubelet", "metrics"),
    [
        ({}, [(1, 8079), (8082, 65535)], [(8080, 8080)]),
        ({"metrics": {"address": "0.0.0.0:9000"}}, [(1, 8080), (8082, 8999), (9001, 65535)], [(9000, 9000)]),
        ({"metrics": {"address": "0"}, "health": {"address": ":1"}}, [(2, 65535)], None),
    ],
)
def test_daemon_is_reached_at_metrics_by_monitoring_alone(config: Obj, kubelet: Any, metrics: Any) -> None:
    found = objects(syncer={"config": config})
    server, *monitoring = found["NetworkPolicy", f"{NAME}-syncer"]["spec"]["ingress"]
    assert server["from"] == [part("control-plane")]
    assert reach(server) == kubelet
    assert [reach(rule) for rule in monitoring] == ([metrics] if metrics else [])
    [dialled] = [
        rule
        for rule in found["NetworkPolicy", f"{NAME}-control-plane"]["spec"]["egress"]
        if rule.get("to") == [part("syncer")]
    ]
    assert reach(dialled) == kubelet


def test_api_server_dials_only_the_tenant_and_the_internet() -> None:
    """A tenant chooses the addresses: of webhooks, aggregated APIs, Pods and Nodes."""
    dns = [{"ipBlock": {"cidr": "192.0.2.53/32"}}]
    found = objects(workloads={"networkPolicy": {"dns": dns}})
    spec = found["NetworkPolicy", f"{NAME}-control-plane"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    own, _, workloads, names, internet = spec["egress"]
    assert own["to"] == [part("control-plane")]
    assert reach(own) == [(2379, 2379), (2380, 2380), (6443, 6443)]
    assert workloads == {"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": WORKLOADS}}}]}
    assert names["to"] == dns
    assert reach(names) == [(53, 53), (53, 53)]
    assert internet in found["NetworkPolicy", f"{NAME}-egress"]["spec"]["egress"], "the tenant's pods have the same"
    closed = objects(networkPolicy={"egress": []})
    assert len(closed["NetworkPolicy", f"{NAME}-control-plane"]["spec"]["egress"]) == 4


def test_internet_excludes_private_and_cloud_addresses() -> None:
    """The special ranges of RFC 6890, and the address of Azure's own services."""
    [internet] = objects()["NetworkPolicy", f"{NAME}-egress"]["spec"]["egress"][-1]["to"]
    found = set(internet["ipBlock"]["except"])
    assert found >= {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"}
    assert found >= {"0.0.0.0/8", "168.63.129.16/32", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4"}
    page = (ROOT / "docs" / "hardening.md").read_text()
    [listed] = re.findall(r"except: (\[.*?\])", page, re.DOTALL)
    assert set(yaml.safe_load(listed)) == found


def test_pods_that_a_tenants_policy_isolates_are_left_their_api_server_and_names_alone() -> None:
    """Policies add up, so what else the chart opens leaves them out, by the daemon's label of the direction."""
    further = {"ingress": [{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}], "dns": [part("dns")]}
    found = objects(workloads={"networkPolicy": further})
    policies = {name: obj["spec"] for (kind, name), obj in found.items() if kind == "NetworkPolicy"}
    every, ingress, egress = (policies[name] for name in (NAME, f"{NAME}-ingress", f"{NAME}-egress"))
    for spec, direction in ((ingress, "ingress"), (egress, "egress")):
        label = getattr(Marks(), f"isolated_{direction}")
        assert spec["podSelector"] == {"matchExpressions": [{"key": label, "operator": "DoesNotExist"}]}
        assert spec["policyTypes"] == [direction.title()]
    assert ingress["ingress"] == [{"from": [{"podSelector": {}}]}, *further["ingress"]]
    assert egress["egress"][0] == {"to": [{"podSelector": {}}]}
    assert every["podSelector"] == {}
    plane = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}, **part("control-plane")}
    assert every["ingress"] == [{"from": [plane]}]
    server, names, own_names = every["egress"]
    assert (server["to"], reach(server)) == ([plane], [(6443, 6443)])
    assert (names["to"], reach(names)) == ([part("dns")], [(53, 53), (53, 53)])
    labels = {"k8s-app": "kube-dns", Marks().namespace_label: "kube-system"}
    assert own_names["to"] == [{"podSelector": {"matchLabels": labels}}]
    assert reach(own_names) == [(1053, 1053), (1053, 1053)]


def test_tenants_policies_may_name_blocks_of_the_chart_unless_configured() -> None:
    on = {"enabled": True}

    def allowed(policies: Obj, **network: Any) -> Any:
        values = {"syncer": {"config": {"sync": {"toHost": {"networkPolicies": policies}}}}}
        found = config(objects(**values, workloads={"networkPolicy": network}))
        return found["sync"]["toHost"]["networkPolicies"].get("allowedCIDRs")

    egress = objects()["NetworkPolicy", f"{NAME}-egress"]["spec"]["egress"]
    assert allowed(on) == {"ingress": [], "egress": [egress[-1]["to"][0]["ipBlock"]]}
    office, https = {"ipBlock": {"cidr": "192.0.2.0/24"}}, [{"port": 443}]
    rules = [
        {"from": [office, {"podSelector": {}}]},
        {"from": [{"ipBlock": {"cidr": "198.51.100.0/24"}}], "ports": https},
    ]
    assert allowed(on, ingress=rules, egress=[]) == {"ingress": [office["ipBlock"]], "egress": []}
    own = {"egress": [{"cidr": "203.0.113.0/24"}]}
    assert allowed({**on, "allowedCIDRs": own}) == own
    assert allowed(on, enabled=False) is None
    assert allowed({"enabled": False}) is None
