"""Requests of a tenant to the host's controllers, nodes and network stay behind, with an event for the tenant."""

from typing import Any

import pytest
from hostile_scene import HOME, NAMESPACE, HostileScene, eventually

from syncer.api import Key, Obj, Resource, annotations_of, labels_of
from syncer.resources.kinds import NAMESPACES, PERSISTENT_VOLUME_CLAIMS
from syncer.testing.objects import build, configmap, crd, ingress, namespace, pod, secret, service, serviceaccount

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
    "alpha.image-policy.k8s.io/break-glass": "true",
    "admission.stackrox.io/break-glass": "ticket-1",
    "io.kubernetes.pod.namespace": "kube-system",
    "ipam.antrea.io/ippools": "host",
    "ls1.ovn.kubernetes.io/logical_switch": "host",
    "microsoft.containerinstance.virtualnode.identity": "host",
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
    labels = {"azure.workload.identity/use": "true", "image-policy.k8s.io/break-glass": "true", "app": "a"}
    metadata: dict[str, Any] = {"labels": labels, "annotations": forced}
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
        assert labels_of(copy).keys() & labels.keys() == {"app"}
        assert ("plain" in annotations_of(copy)) is (obj["kind"] != "ServiceAccount"), "none of an account's cross"
        assert "eks.amazonaws.com/role-arn" in hostile.event_message(obj, "NotCopied")
    hostile.serves_others()


#: Annotations by which a storage controller gives a claim the data of others, or a path of its server.
OF_STORAGE = {
    "trident.netapp.io/importOriginalName": "host-volume",
    "trident.netapp.io/cloneFromPVC": "data-x-other-x-vc",
    "nfs.io/storage-path": "../../",
    "cdi.kubevirt.io/storage.import.endpoint": "http://10.0.0.1/",
    "k8s.io/CloneRequest": "kube-system/data",
    "px/secret-name": "host",
}
#: Annotations that configure the host's load balancers and ingress controllers, for others too.
OF_BALANCERS = {
    "service.antrea.io/external-ip-pool": "host",
    "loxilb.io/staticIP": "192.0.2.1",
    "ako.vmware.com/host-fqdn": "login.bank.example",
}
OF_CONTROLLERS = {
    "kubernetes.io/ingress.regional-static-ip-name": "host",
    "kubernetes.azure.com/tls-cert-keyvault-uri": "https://host.vault.example/certificates/bank",
    "higress.io/destination": "bank.host-system.svc:80",
    "nginx.ingress.kubernetes.io/mirror-host": "a;",
    "nginx.ingress.kubernetes.io/rewrite-target": "/$1",
}


@pytest.mark.translators("single-namespace", reason="which annotations cross has no names in it")
def test_annotations_of_storage_and_balancers_stay_behind_unless_they_are_harmless(hostile: HostileScene) -> None:
    """Before, a list of known keys stayed behind, which these were missing in."""
    hostile.start(sync={"toHost": {"ingresses": {"enabled": True}}})
    plain = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = build(PERSISTENT_VOLUME_CLAIMS, "data", spec=plain, metadata={"annotations": OF_STORAGE})
    hostile.tenant.put(claim)
    hostile.tenant.put(pod("user", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}))
    assert not annotations_of(hostile.copied(claim)).keys() & OF_STORAGE.keys()
    assert "trident.netapp.io/importOriginalName" in hostile.event_message(claim, "NotCopied")
    asking = {}
    for number, (key, value) in enumerate(OF_BALANCERS.items()):
        metadata = {"annotations": {key: value}}
        asking[key] = hostile.tenant.put(
            service(f"balanced-{number}", spec={"type": "LoadBalancer"}, metadata=metadata)
        )
    for number, (key, value) in enumerate(OF_CONTROLLERS.items()):
        asking[key] = hostile.tenant.put(ingress(f"routed-{number}", metadata={"annotations": {key: value}}))
    hostile.copied(hostile.tenant.put(service("plain", spec={"type": "LoadBalancer"})))
    hostile.copied(hostile.tenant.put(ingress("plain")))
    hostile.quiet()
    crossed = [key for key, obj in asking.items() if key in annotations_of(hostile.copy(obj) or {"metadata": {}})]
    assert crossed == []


@pytest.mark.translators("single-namespace", reason="hosts and classes of the host have no tenants' names")
def test_ingress_serves_no_host_and_has_no_class_but_the_allowed(hostile: HostileScene) -> None:
    """Before, a path or an annotation could name others."""
    limits = {"enabled": True, "allowedHosts": ["*.shop.example.org"], "allowedClasses": ["public"]}
    hostile.start(sync={"toHost": {"ingresses": limits}})
    fine = {"host": "www.shop.example.org"}

    def of(name: str, *, host: str = fine["host"], path: str = "/", **annotations: str) -> Obj:
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        paths = [{"path": path, "pathType": "Prefix", "backend": backend}]
        spec = {"ingressClassName": "public", "rules": [{"host": host, "http": {"paths": paths}}]}
        return hostile.tenant.put(ingress(name, spec=spec, metadata={"annotations": annotations}))

    hostile.tenant.put(service("web"))
    asking = [
        of("other-host", host="login.bank.example"),
        of("rule-in-a-path", path="/x`) || HostRegexp(`.+"),
        of("directive-in-a-path", path="/x; proxy_pass http://10.0.0.1"),
        of("other-class", **{"projectcontour.io/ingress.class": "internal"}),
        of("rule-in-an-annotation", **{"traefik.ingress.kubernetes.io/router.pathmatcher": "Path(`/`) || Path"}),
        of("redirect", **{"haproxy-ingress.github.io/redirect-from": "login.bank.example"}),
        of("parent", **{"nginx.ingress.kubernetes.io/from-to-www-redirect": "true"}),
    ]
    hostile.copied(of("plain"))
    hostile.serves_others()
    hostile.quiet()
    assert [each["metadata"]["name"] for each in asking if hostile.copy(each) is not None] == []


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
