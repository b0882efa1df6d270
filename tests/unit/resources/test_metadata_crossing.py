"""The labels and annotations of an object on the other side, whatever its kind."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from syncer.api import (
    FieldPath,
    KeyRules,
    MetadataRules,
    Mirror,
    Obj,
    Resource,
    SyncDown,
    Syncer,
    annotations_of,
    key_of,
    labels_of,
)
from syncer.names import PerNamespace, SingleNamespace
from syncer.plugins import installed
from syncer.resources.definitions.public import PublicDefinitionSyncer
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, crd, endpointslice, namespace, pod, serviceaccount

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
ADDRESS = "example.org/address"


class Widgets(Mirror):
    """A kind whose address is for the host to say, and some of whose metadata means something there."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up: ClassVar[tuple[FieldPath, ...]] = (
        ("metadata", "annotations", ADDRESS),
        "/metadata/labels/zone.example.org~1id",
    )
    metadata = MetadataRules(annotations=KeyRules(deny=("danger.example.org/*",)))


def widget(**metadata: Any) -> Obj:
    return build(WIDGETS, "w", spec={"size": 1}, metadata=metadata)


def world_of(metadata: dict[str, Any] | None = None) -> World:
    return World([Widgets], config={"sync": {"toHost": {"widgets": {"metadata": metadata or {}}}}})


def copy_in(world: World) -> Obj:
    copy = world.copy_of(Widgets, "shop/w")
    assert copy
    return copy


def theirs(found: Mapping[str, str]) -> dict[str, str]:
    """Return the labels or annotations without our marks."""
    return {key: value for key, value in found.items() if not key.startswith("vsyncer.dev/")}


def test_keys_that_stay_behind_are_taken_off_the_copy_when_the_rules_change() -> None:
    given = widget(labels={"a": "1", "b": "1"}, annotations={"a": "1", "danger.example.org/run": "x"})
    world = world_of().given(virtual=[given])
    world.settle(Widgets, "shop/w")
    copy = copy_in(world)
    assert theirs(labels_of(copy)) == {"a": "1", "b": "1"}
    assert theirs(annotations_of(copy)) == {"a": "1"}
    world = world_of({"labels": {"deny": ["a"]}, "annotations": {"allow": ["danger.example.org/run"]}})
    world.given(virtual=[given], host=[copy])
    world.settle(Widgets, "shop/w")
    assert theirs(labels_of(copy_in(world))) == {"b": "1"}
    assert theirs(annotations_of(copy_in(world))) == {"danger.example.org/run": "x"}


def test_annotation_of_the_host_comes_up_and_goes_when_the_host_drops_it() -> None:
    forged = widget(annotations={ADDRESS: "forged", "kept": "1"}, labels={"zone.example.org/id": "forged"})
    world = world_of().given(virtual=[forged])
    world.settle(Widgets, "shop/w")
    copy = copy_in(world)
    assert ADDRESS not in annotations_of(copy), "the host says it"
    assert "zone.example.org/id" not in labels_of(copy)
    found = world.virtual("Widget", "shop/w")
    assert found
    assert (annotations_of(found), labels_of(found)) == ({"kept": "1"}, {}), "the tenant doesn't say it"

    world.given(host=[merged(copy, {"metadata": {"annotations": {ADDRESS: "192.0.2.1"}}})])
    world.settle(Widgets, "shop/w")
    found = world.virtual("Widget", "shop/w")
    assert found
    assert annotations_of(found) == {"kept": "1", ADDRESS: "192.0.2.1"}
    assert annotations_of(copy_in(world))[ADDRESS] == "192.0.2.1"

    world.given(host=[merged(copy_in(world), {"metadata": {"annotations": {ADDRESS: None}}})])
    world.settle(Widgets, "shop/w")
    found = world.virtual("Widget", "shop/w")
    assert found
    assert annotations_of(found) == {"kept": "1"}
    assert ADDRESS not in annotations_of(copy_in(world))


#: A key of each sort that controllers of a host act on, as an annotation or a label.
ACTED_ON = (
    "eks.amazonaws.com/role-arn",
    "azure.workload.identity/use",
    "iam.gke.io/gcp-service-account",
    "iam.amazonaws.com/role",
    "vault.hashicorp.com/agent-inject",
    "sidecar.istio.io/inject",
    "linkerd.io/inject",
    "k8s.v1.cni.cncf.io/networks",
    "replicator.v1.mittwald.de/replicate-from",
    "reflector.v1.k8s.emberstack.com/reflects",
    "kubed.appscode.com/sync",
    "external-dns.alpha.kubernetes.io/hostname",
    "service.beta.kubernetes.io/aws-load-balancer-security-groups",
    "metallb.universe.tf/allow-shared-ip",
    "service.cilium.io/global",
    "nginx.ingress.kubernetes.io/configuration-snippet",
    "nginx.ingress.kubernetes.io/auth-tls-secret",
    "openshift.io/run-level",
    "admission.gatekeeper.sh/ignore",
    "openpolicyagent.org/webhook",
    "cert-manager.io/disable-validation",
    "container.apparmor.security.beta.kubernetes.io/c",
    "seccomp.security.alpha.kubernetes.io/pod",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "grafana_dashboard",
    "jenkins.io/credentials-type",
    "tenancy.x-k8s.io/super.public",
    "kubernetes.digitalocean.com/load-balancer-id",
    "kubernetes.io/elb.id",
    "service.kubernetes.io/tke-existed-lbid",
    "projectcalico.org/loadBalancerIPs",
    "io.cilium/lb-ipam-ips",
    "k8s.aliyun.com/eci-ram-role-name",
    "eks.tke.cloud.tencent.com/role-name",
    "nginx.org/server-snippets",
    "haproxy.org/server-crt",
    "haproxy-ingress.github.io/server-alias-regex",
    "nginx.ingress.kubernetes.io/custom-headers",
    "nginx.ingress.kubernetes.io/fastcgi-params-configmap",
    "nginx.ingress.kubernetes.io/default-backend",
    "nginx.ingress.kubernetes.io/mirror-target",
    "zalando.org/skipper-routes",
    "cert-manager.io/cluster-issuer",
    "cert-manager.io/issuer",
    "cert-manager.io/secret-template",
    "acme.cert-manager.io/http01-override-ingress-name",
    "kubernetes.io/tls-acme",
    "dns.alpha.kubernetes.io/external",
    "coredns.io/hostname",
    "secrets-webhook.security.bank-vaults.io/provider",
    "egress.projectcalico.org/selector",
    "io.katacontainers.config.hypervisor.kernel_params",
    "io.kubernetes.cri-o.Devices",
    "seccomp-profile.kubernetes.cri-o.io/POD",
    "dev.gvisor.spec.mount.x.share",
    "devices.nri.io/pod",
    "kueue.x-k8s.io/queue-name",
    "istio/multiCluster",
    "tailscale.com/expose",
    "tailscale.com/tailnet-fqdn",
    "co.elastic.logs/enabled",
    "co.elastic.metrics/hosts",
    "co.elastic.monitor/1.hosts",
    "crossplane.io/external-name",
    "serviceoperator.azure.com/reconcile-policy",
    "serviceoperator.azure.com/credential-from",
    "cnrm.cloud.google.com/project-id",
    "cnrm.cloud.google.com/deletion-policy",
    "telegraf.influxdata.com/inputs",
    "telegraf.influxdata.com/secret-env",
    "metrics.dynatrace.com/port",
    "oneagent.dynatrace.com/inject",
    "pre.hook.backup.velero.io/command",
    "backup.velero.io/backup-volumes",
    "velero.io/exclude-from-backup",
    "haproxy.org/route-acl",
)
#: Keys that workloads and their tools set, and that must cross for the copies to work.
PLAIN = {
    "app": "web",
    "app.kubernetes.io/instance": "web",
    "helm.sh/chart": "web-1",
    "pod-template-hash": "5d4f",
    "statefulset.kubernetes.io/pod-name": "web-0",
    "apps.kubernetes.io/pod-index": "0",
    "batch.kubernetes.io/job-name": "j",
    "service.kubernetes.io/topology-mode": "Auto",
    "prometheus.io/scrape": "true",
    "kubernetes.io/ingress-bandwidth": "10M",
    "nginx.ingress.kubernetes.io/rewrite-target": "/",
    "cert-manager.io/certificate-name": "web",
    "kubernetes.io/ingress.class": "nginx",
}


def test_plain_keys_cross_and_those_that_a_host_acts_on_do_not() -> None:
    world = world_of()
    both = {**PLAIN, **dict.fromkeys(ACTED_ON, "x")}
    noted = {**both, "kapp.k14s.io/original": "{}"}
    world.given(virtual=[widget(labels={**both, "kapp.k14s.io/app": "1"}, annotations=noted)])
    world.settle(Widgets, "shop/w")
    assert theirs(labels_of(copy_in(world))) == {**PLAIN, "kapp.k14s.io/app": "1"}, "kapp selects by it"
    assert theirs(annotations_of(copy_in(world))) == PLAIN
    left_out = world.left_out(Widgets, "shop/w")
    assert "metadata.annotations[eks.amazonaws.com/role-arn]" in left_out
    assert "metadata.annotations[kapp.k14s.io/original]" not in left_out, "a tool writes it on each object"


def test_public_label_of_the_configuration_is_on_no_copy() -> None:
    label = "shared.example.org/all"
    public = {"fromHost": {"customResourceDefinitions": {"enabled": True, "label": label}}}
    allow = {"toHost": {"widgets": {"metadata": {"labels": {"allow": ["*", label]}}}}}
    world = World([Widgets, PublicDefinitionSyncer], config={"sync": {**public, **allow}})
    world.given(virtual=[widget(labels={label: "true", "tenancy.x-k8s.io/super.public": "true", "app": "a"})])
    world.settle(Widgets, "shop/w")
    assert theirs(labels_of(copy_in(world))) == {"app": "a"}


def test_annotations_of_a_service_account_stay_behind_unless_they_are_named() -> None:
    given = serviceaccount("a", metadata={"annotations": {"any": "1", "eks.amazonaws.com/role-arn": "r"}})
    copies = []
    for allow in ([], ["*"], ["eks.amazonaws.com/role-arn"]):
        section = {"metadata": {"annotations": {"allow": allow}}}
        world = World(config={"sync": {"toHost": {"serviceAccounts": section}}}).given(virtual=[given])
        world.settle("serviceaccounts", "shop/a")
        copy = world.copy_of("serviceaccounts", "shop/a")
        assert copy
        copies.append(theirs(annotations_of(copy)))
    assert copies == [{}, {}, {"eks.amazonaws.com/role-arn": "r"}]


DOWN = [syncer for syncer in installed().syncers() if issubclass(syncer, SyncDown) and syncer.name != "pod-tokens"]


@pytest.mark.parametrize("syncer", DOWN, ids=lambda syncer: syncer.name)
def test_denied_keys_of_built_in_kinds_stay_behind(syncer: type[Syncer]) -> None:
    metadata = {part: {"allow": ["*", "in"], "deny": ["out"]} for part in ("labels", "annotations")}
    options: dict[str, Any] = {"enabled": True, "metadata": metadata}
    options |= {"all": True} if syncer.name in ("configmaps", "secrets") else {}
    special = {
        "tenant-crds": crd("widgets.example.org"),
        "pods": pod("x"),
        "endpointslices": endpointslice("x"),
    }
    obj = special.get(syncer.name) or build(syncer.resource, "x")
    options |= {"podSecurity": ""} if syncer.name == "namespaces" else {}
    options |= {"names": ["widgets.example.org"]} if syncer.name == "tenant-crds" else {}
    if syncer.name == "published-services":
        options |= {"namespaces": ["infra"], "mappings": {"byName": {"shop/x": "infra/x"}}}
    obj = merged(obj, {"metadata": {part: {"out": "1", "in": "1"} for part in ("labels", "annotations")}})
    translator = PerNamespace if syncer.name == "namespaces" else SingleNamespace
    direction, name = syncer.section.split(".")
    world = World(config={"sync": {direction: {name: options}}}, translator=translator)
    world.given(virtual=[obj, serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    if syncer.name == "published-services":
        world.settle("services", key_of(obj))
    write = world.decide(syncer.name, key_of(obj)).writes[0]
    for part in (labels_of(write.obj), annotations_of(write.obj)):
        assert {key: part.get(key) for key in ("in", "out")} == {"in": "1", "out": None}


def test_settings_of_the_control_plane_stay_off_the_host_namespace_unless_they_are_named() -> None:
    enforce, other = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/warn"
    given = namespace("shop", metadata={"labels": {enforce: "baseline", other: "baseline"}, "annotations": {"a": "1"}})
    world = World(translator=PerNamespace).given(virtual=[given])
    [write] = world.decide("namespaces", "/shop").writes
    assert theirs(labels_of(write.obj)) == {enforce: "baseline"}, "the operator's own"
    assert theirs(annotations_of(write.obj)) == {}
    options = {"podSecurity": "", "metadata": {"labels": {"allow": ["*", other]}}}
    world = World(config={"sync": {"toHost": {"namespaces": options}}}, translator=PerNamespace)
    [write] = world.given(virtual=[given]).decide("namespaces", "/shop").writes
    assert theirs(labels_of(write.obj)) == {other: "baseline"}


#: Notes of tools that hold the object as it was before a patch, beside another annotation.
NOTES = dict.fromkeys(
    ("kapp.k14s.io/original", "kopf.zalando.org/last-handled-configuration", "objectset.rio.cattle.io/applied"), "{}"
) | {"a": "1"}


def test_shown_object_of_the_host_lacks_denied_keys() -> None:
    kind = Resource("example.org/v1", "Class", "classes", namespaced=False)
    entry = {"classes.example.org": {"direction": "fromHost", "metadata": {"labels": {"deny": ["internal/*"]}}}}
    world = World([], config={"sync": {"custom": entry}}, serves=[kind])
    metadata = {"labels": {"internal/rack": "7", "tier": "gold"}, "annotations": NOTES}
    world.given(host=[build(kind, "c", spec={}, metadata=metadata)])
    world.settle("classes.example.org", "/c")
    shown = world.virtual("Class", "/c")
    assert shown
    assert theirs(labels_of(shown)) == {"tier": "gold"}
    assert theirs(annotations_of(shown)) == {"a": "1"}


def test_templates_in_a_copied_field_lack_marks_and_denied_keys() -> None:
    metadata = {"labels": {"vsyncer.dev/cluster": "forged", "a": "1"}, "annotations": {"danger.example.org/run": "x"}}
    given = build(WIDGETS, "w", spec={"parts": [{"template": {"metadata": metadata}}], "podLabels": metadata["labels"]})
    world = world_of().given(virtual=[given])
    world.settle(Widgets, "shop/w")
    cleaned = {"metadata": {"labels": {"a": "1"}, "annotations": {}}}
    assert copy_in(world)["spec"] == {"parts": [{"template": cleaned}], "podLabels": {"a": "1"}}
    assert given["spec"]["podLabels"] == metadata["labels"]
