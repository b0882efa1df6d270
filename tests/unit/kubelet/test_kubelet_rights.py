"""The rights of a daemon that answers as a kubelet, and that no node of the host is among them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from syncer.api import ConfigError, Obj, Side
from syncer.config import load
from syncer.plugins import installed
from syncer.rights.rbac import Subject, manifests, needed

BASE = {"cluster": "shop", "host": {"namespace": "vc-shop"}, "virtual": {"kubeconfig": "v"}}


def roles(folder: Path, **kubelet: Any) -> dict[Side, list[Obj]]:
    """Return what `syncer rbac` prints."""
    file = folder / "syncer.yaml"
    head = {"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig"}
    file.write_text(yaml.safe_dump({**head, **BASE, "kubelet": kubelet}))
    cluster = load(str(file), installed()).cluster
    granted = needed(cluster.all_syncers(), settings=cluster.settings())
    home = cluster.host_namespace
    return manifests(
        granted, cluster="shop", home=home, host_namespaces=(home,), subjects=dict.fromkeys(Side, Subject("daemon"))
    )


def rules(objects: list[Obj]) -> set[tuple[str, str, str, str]]:
    return {
        (obj["metadata"].get("namespace", ""), resource, verb, ",".join(rule.get("resourceNames", ())))
        for obj in objects
        for rule in obj.get("rules", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_rights_to_pods_of_the_host_are_those_of_its_namespace_and_only_where_they_are_asked_for(
    tmp_path: Path,
) -> None:
    without, found = roles(tmp_path), roles(tmp_path, enabled=True, metrics=False)
    of_host = rules(found[Side.HOST]) - rules(without[Side.HOST])
    streams = {("vc-shop", f"pods/{each}", verb, "") for each in STREAMS for verb in ("get", "create")}
    assert of_host == streams | {("vc-shop", "pods/log", "get", "")}


STREAMS = ("exec", "attach", "portforward")


def test_rights_to_nodes_of_the_host_are_none(tmp_path: Path) -> None:
    for kubelet in ({}, {"enabled": True}, {"enabled": True, "metrics": False}):
        resources = {resource for _, resource, _, _ in rules(roles(tmp_path, **kubelet)[Side.HOST])}
        assert not {each for each in resources if each.split("/")[0] in ("nodes", "*")}


def test_rights_on_the_virtual_side_are_to_ask_who_may_and_for_one_signer(tmp_path: Path) -> None:
    off = roles(tmp_path, enabled=True, metrics=False)[Side.VIRTUAL]
    found = rules(off) - rules(roles(tmp_path)[Side.VIRTUAL])
    requests = "certificatesigningrequests"
    assert found == {
        ("", "tokenreviews", "create", ""),
        ("", "subjectaccessreviews", "create", ""),
        *(("", requests, verb, "") for verb in ("get", "create", "delete")),
        ("", f"{requests}/approval", "update", ""),
        ("", "signers", "approve", "kubernetes.io/kubelet-serving"),
    }


def test_rights_for_figures_are_to_list_them_in_the_host_namespace_and_to_three_virtual_objects(tmp_path: Path) -> None:
    off, found = roles(tmp_path, enabled=True, metrics=False), roles(tmp_path, enabled=True)
    [rule] = [
        rule for obj in found[Side.HOST] for rule in obj.get("rules", ()) if "metrics.k8s.io" in rule["apiGroups"]
    ]
    assert rule == {"apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["list"]}
    assert {obj["metadata"].get("namespace") for obj in found[Side.HOST] if rule in obj.get("rules", ())} == {"vc-shop"}
    names = {
        "apiservices": "v1beta1.metrics.k8s.io",
        "endpointslices": "vsyncer-metrics",
        "services": "vsyncer-metrics",
    }
    expected = {("", kind, verb, name) for kind, name in names.items() for verb in ("get", "patch", "delete")}
    expected |= {("", kind, "create", "") for kind in names}
    granted = rules(found[Side.VIRTUAL])
    assert granted - rules(off[Side.VIRTUAL]) <= expected <= granted


def test_rights_to_the_metrics_of_nodes_are_there_only_where_they_are_asked_for(tmp_path: Path) -> None:
    with_it = rules(roles(tmp_path, enabled=True, cadvisor=True)[Side.HOST])
    without = rules(roles(tmp_path, enabled=True)[Side.HOST])
    assert with_it - without == {("", "nodes", "get", ""), ("", "nodes/metrics", "get", "")}
    assert rules(roles(tmp_path, cadvisor=True)[Side.HOST]) == rules(roles(tmp_path)[Side.HOST])


@pytest.mark.parametrize(
    ("kubelet", "why"),
    [
        ({"certificate": "/a"}, "certificate and key are both needed"),
        ({"firstPort": 65000, "ports": 1000}, "beyond port 65535"),
        ({"firstPort": 0}, "firstPort"),
        ({"address": "10.0.0.1 x"}, "address"),
        ({"listen": "everywhere"}, "listen"),
    ],
)
def test_malformed_section_is_refused(tmp_path: Path, kubelet: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        roles(tmp_path, **kubelet)
