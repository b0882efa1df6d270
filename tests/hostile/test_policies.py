"""Requests of a tenant to the host's controllers, nodes and network stay behind, with an event for the tenant."""

from typing import Any

import pytest
from hostile_scene import HOME, NAMESPACE, HostileScene, eventually

from syncer.api import Key, Obj, Resource, annotations_of, labels_of
from syncer.resources.kinds import NAMESPACES
from syncer.testing.objects import build, configmap, crd, namespace, pod, secret, service, serviceaccount

#: A key of each sort that controllers of a host act on.
ACTED_ON = {
    "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/host",
    "iam.amazonaws.com/role": "host",
    "vault.hashicorp.com/agent-inject": "true",
    "k8s.v1.cni.cncf.io/networks": "host-system/net",
    "replicator.v1.mittwald.de/replicate-from": "kube-system/etcd-certs",
    "external-dns.alpha.kubernetes.io/hostname": "login.bank.example",
    "service.beta.kubernetes.io/aws-load-balancer-security-groups": "sg-1",
    "openshift.io/run-level": "0",
    "admission.gatekeeper.sh/ignore": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


def refused(hostile: HostileScene, obj: Obj, reason: str) -> str:
    """Return the message to the tenant about a Pod that has no copy."""
    message = hostile.event_message(obj, reason)
    assert hostile.copy(obj) is None
    assert "vc-ns" not in message, "nothing of the host is named"
    return message


def test_metadata_that_a_host_acts_on_stays_behind_on_every_kind(hostile: HostileScene) -> None:
    hostile.start()
    forced = {**ACTED_ON, "vsyncer.dev/force-sync": "true", "plain": "1"}
    metadata: dict[str, Any] = {"labels": {"azure.workload.identity/use": "true", "app": "a"}, "annotations": forced}
    given = [
        hostile.tenant.put(each)
        for each in (
            serviceaccount("bot", metadata=metadata),
            secret("db", {"a": "1"}, metadata=metadata),
            service("web", metadata=metadata),
            pod("web", metadata=metadata),
        )
    ]
    for obj in given:
        copy = hostile.copied(obj)
        # 0aeb964 copies them all.
        assert not annotations_of(copy).keys() & ACTED_ON.keys()
        assert "azure.workload.identity/use" not in labels_of(copy)
        assert labels_of(copy)["app"] == "a"
        assert ("plain" in annotations_of(copy)) is (obj["kind"] != "ServiceAccount"), "none of an account's cross"
        assert "eks.amazonaws.com/role-arn" in hostile.event_message(obj, "NotCopied")
    hostile.serves_others()


def test_label_of_a_namespace_stays_behind(hostile: HostileScene) -> None:
    hostile.start()
    labels = {"pod-security.kubernetes.io/enforce": "privileged", "name": "kube-system", "team": "payments"}
    hostile.tenant.patch("namespaces", NAMESPACE, metadata={"labels": labels})
    hostile.copied(hostile.tenant.put(serviceaccount("last")))
    hostile.quiet()
    found = [each for each in hostile.operator.objects("namespaces") if "vsyncer.dev/cluster" in labels_of(each)]
    # 0aeb964 copies name and team, if the translator makes host namespaces.
    assert not [each for each in found if labels_of(each).items() & labels.items()]


@pytest.mark.translators("single-namespace", reason="what a Service asks of the host's network has no names")
def test_service_takes_no_address_of_the_hosts(hostile: HostileScene) -> None:
    hostile.start()
    asked = {"type": "LoadBalancer", "externalIPs": ["10.96.0.10"], "loadBalancerIP": "192.0.2.1"}
    greedy = hostile.tenant.put(service("web", spec=asked))
    copy = hostile.copied(greedy)
    # 0aeb964 copies both.
    assert not {"externalIPs", "loadBalancerIP"} & copy["spec"].keys()
    assert "spec.externalIPs" in hostile.event_message(greedy, "NotCopied")
    chosen = hostile.tenant.put(service("chosen", spec={**asked, "loadBalancerClass": "example.org/other"}))
    # 0aeb964 copies it with the class.
    refused(hostile, chosen, "NotCopied")
    name = service("meta", spec={"type": "ExternalName", "externalName": "metadata.google.internal", "ports": None})
    hostile.tenant.put(name)
    hostile.event_message(name, "NotCopied")
    assert hostile.copy(name) is None


def test_pod_that_reaches_beyond_its_own_is_refused(hostile: HostileScene) -> None:
    hostile.start()
    asked = {
        "node": ({"nodeName": "control-plane-1"}, "NodeNameRefused"),
        "csi": ({"volumes": [{"name": "v", "csi": {"driver": "secrets-store.csi.k8s.io"}}]}, "VolumeRefused"),
        "trust": (
            {
                "volumes": [
                    {"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "a", "path": "p"}}]}}
                ]
            },
            "VolumeRefused",
        ),
        "path": ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "PodSecurity"),
        "network": ({"hostNetwork": True}, "PodSecurity"),
        "root": (
            {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]},
            "PodSecurity",
        ),
    }
    given = {name: hostile.tenant.put(pod(name, spec=spec)) for name, (spec, _) in asked.items()}
    for name, (_, reason) in asked.items():
        # 0aeb964 sends each of them to the host.
        refused(hostile, given[name], reason)
    assert hostile.copied(hostile.tenant.put(pod("plain")))
    hostile.serves_others()


@pytest.mark.translators("per-namespace", reason="no other makes host namespaces for a tenant")
def test_host_namespace_is_policed_before_the_first_pod(hostile: HostileScene) -> None:
    options = {"labels": {"team": "tenants"}, "quota": {"hard": {"pods": "5"}}}
    hostile.start(sync={"toHost": {"namespaces": options}})
    hostile.tenant.put(namespace("fresh", metadata={"labels": {"team": "payments"}}))
    web = hostile.tenant.put(pod("web", namespace="fresh"))
    home = hostile.names.to_host(NAMESPACES, Key("", "fresh")).name
    eventually(lambda: hostile.operator.get("resourcequotas", f"{home}/vsyncer"), "there is a quota")
    hostile.quiet()
    assert hostile.copy(web) is None, "the host's admission doesn't know the quota yet"
    hostile.operator.patch("resourcequotas", f"{home}/vsyncer", status={"hard": {"pods": "5"}})
    hostile.copied(web)
    found = hostile.operator.get("namespaces", home)
    assert found
    # 0aeb964 sets no Pod Security level, copies the tenant's label, and makes no quota.
    assert labels_of(found)["pod-security.kubernetes.io/enforce"] == "baseline"
    assert labels_of(found)["team"] == "tenants"
    made = [each.path for each in hostile.asked if each.verb == "create" and f"/{home}/" in f"{each.path}/"]
    assert made.index(f"/api/v1/namespaces/{home}/resourcequotas") < made.index(f"/api/v1/namespaces/{home}/pods")


@pytest.mark.translators("single-namespace", "vcluster-compat", reason="the others' host namespaces hold nothing else")
def test_operator_is_warned_of_selectors_that_find_a_tenants_pods(hostile: HostileScene) -> None:
    for name, selector in (("open", {"app": "web"}), ("closed", {"app": "web", "vsyncer.dev/role": "daemon"})):
        hostile.operator.put(service(name, namespace=HOME, selector=selector))
    policy = {"podSelector": {"matchLabels": {"role": "db"}}}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    hostile.operator.put({**kind, "metadata": {"namespace": HOME, "name": "db"}, "spec": policy})
    hostile.start(sync={"toHost": {"pods": {"checkSelectors": True}}})
    hostile.copied(hostile.tenant.put(service("web", selector={"app": "web"})))
    hostile.restart()
    # 0aeb964 says nothing.
    eventually(lambda: log_of(hostile).count("with the right labels is selected") == 4, "two warnings at each start")
    assert f"Service {HOME}/open" in log_of(hostile)
    assert f"NetworkPolicy {HOME}/db" in log_of(hostile)


def log_of(hostile: HostileScene) -> str:
    """Return what the daemon has logged."""
    return hostile.daemon.log_text()


def test_marks_in_a_template_stay_behind(hostile: HostileScene) -> None:
    kind = Resource("issuing.example.org/v1", "Paper", "papers")
    for server in (hostile.tenant, hostile.operator):
        server.put(crd(str(kind), spec={"names": {"plural": "papers", "singular": "paper", "kind": "Paper"}}))
    hostile.start(sync={"custom": {str(kind): {}}})
    forged = {
        "vsyncer.dev/cluster": "vc.vc-ns",
        "vsyncer.dev/virtual-name": "x",
        "tenancy.x-k8s.io/super.public": "true",
    }
    spec = {"secretTemplate": {"labels": {**forged, "app": "a"}, "annotations": forged}}
    copy = hostile.copied(hostile.tenant.put(build(kind, "p", spec=spec)))
    # 0aeb964 copies them all: an operator's Secret with these looked like a copy, and was deleted again and again.
    assert copy["spec"]["secretTemplate"] == {"labels": {"app": "a"}, "annotations": {}}


def test_denied_metadata_in_a_template_is_left_out_with_an_event(hostile: HostileScene) -> None:
    kind = Resource("issuing.example.org/v1", "Paper", "papers")
    for server in (hostile.tenant, hostile.operator):
        server.put(crd(str(kind), spec={"names": {"plural": "papers", "singular": "paper", "kind": "Paper"}}))
    hostile.start(sync={"custom": {str(kind): {}}})
    annotations = {"replicator.v1.mittwald.de/replicate-from": "kube-system/token", "example.org/note": "a"}
    spec = {"secretTemplate": {"labels": {"app": "a"}, "annotations": annotations}}
    made = hostile.tenant.put(build(kind, "p", spec=spec))
    # 0aeb964 copies both: an operator's Secret with the first is filled with one of the host's.
    assert hostile.copied(made)["spec"]["secretTemplate"] == {
        "labels": {"app": "a"},
        "annotations": {"example.org/note": "a"},
    }
    assert "annotations[replicator.v1.mittwald.de/replicate-from] of a template" in hostile.event_message(
        made, "NotCopied"
    )


@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_release_of_a_tenant_is_none_for_helm_on_the_host(hostile: HostileScene, kind: str) -> None:
    hostile.start()
    release: dict[str, Any] = {"owner": "helm", "name": "syncer", "status": "deployed", "version": "999"}
    metadata = {"labels": release, "annotations": {"vsyncer.dev/force-sync": "true"}}
    make = {
        "secrets": lambda: secret("release", {"release": "x"}, metadata=metadata, type="helm.sh/release.v1"),
        "configmaps": lambda: configmap("release", {"release": "x"}, metadata=metadata),
    }
    copy = hostile.copied(hostile.tenant.put(make[kind]()))
    # 0aeb964 copies the label, by which alone Helm finds it, and the type.
    assert "owner" not in labels_of(copy)
    assert copy.get("type") in (None, "Opaque")
