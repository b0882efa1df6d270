"""The labels and annotations that stay behind by default, and why.

They are those that controllers of a host cluster act on, whoever has written them. The list is of
well-known controllers; it can't be complete, so a section may deny more, or allow only some. Where
controllers act on any annotation (claims, Ingresses, load balancers), the kind has a list of those
that cross instead.
"""

from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from syncer.api.metadata_rules import KeyRules, MetadataRules, matcher


class Family(NamedTuple):
    """Keys with the same effect, as patterns."""

    title: str
    #: The effect of such a key on the host.
    why: str
    #: Denied as annotations and as labels.
    keys: tuple[str, ...]
    #: Denied as annotations only, because a tenant may select Pods by the label.
    annotations: tuple[str, ...] = ()


FAMILIES = (
    Family(
        "Cloud identities",
        "a webhook or an agent gives the pod credentials of the host's cloud account",
        (
            "eks.amazonaws.com/*",
            "iam.amazonaws.com/*",
            "vpc.amazonaws.com/*",
            "azure.workload.identity/*",
            "aadpodidbinding",
            "iam.gke.io/*",
            "iam.cloud.google.com/*",
            "pod-identity.alibabacloud.com/*",
            "spiffe.io/*",
            "*.spiffe.io/*",
            "k8s.aliyun.com/*",
            "eks.tke.cloud.tencent.com/*",
            "microsoft.containerinstance.virtualnode.*",
        ),
    ),
    Family(
        "Injectors",
        "a webhook adds containers, secrets or networks of the host to the pod",
        (
            "*.hashicorp.com/*",
            "vault.security.banzaicloud.io/*",
            "*.banzaicloud.io/mutate*",
            "istio-injection",
            "istio.io/*",
            "*.istio.io/*",
            "*linkerd.io/*",
            "kuma.io/*",
            "k8s.v1.cni.cncf.io/*",
            "v1.multus-cni.io/*",
            "k8s.ovn.org/*",
            "ovn.kubernetes.io/*",
            "*.ovn.kubernetes.io/*",
            "ipam.antrea.io/*",
            "cni.projectcalico.org/*",
            "*.cilium.io/*",
            "io.cilium.*",
            "io.kubernetes.pod.namespace",
            "*dapr.io/*",
            "admission.datadoghq.com/*",
            "ad.datadoghq.com/*",
            "instrumentation.opentelemetry.io/*",
            "sidecar.opentelemetry.io/*",
            "sidecar.jaegertracing.io/*",
            "injector.tumblr.com/*",
            "gke-gcsfuse/*",
            "secretgen.carvel.dev/*",
            "operator.1password.io/*",
            "*.bank-vaults.io/*",
            "akeyless/*",
            "conjur.org/*",
            "skupper.io/*",
            "egress.projectcalico.org/*",
            "ipam.spidernet.io/*",
            "openservicemesh.io/*",
            "k8tz.io/*",
            "chaos-mesh.org/*",
            "secrets.infisical.com/*",
            "secrets.doppler.com/*",
            "*.signalfx.com/*",
        ),
    ),
    Family(
        "Replicators",
        "a controller copies objects between namespaces of the host, into or out of the copy",
        (
            "replicator.v1.mittwald.de/*",
            "reflector.v1.k8s.emberstack.com/*",
            "kubed.appscode.com/*",
            "*kubernetes-replicator.olli.com/*",
            "clustersecret.io/*",
            "*.clustersecret.io/*",
            "synator/*",
            "k8s.kuack.io/*",
        ),
    ),
    Family(
        "DNS",
        "a controller publishes any host name in the host's DNS zones",
        (
            "external-dns.*",
            "dns.gardener.cloud/*",
            "dns.alpha.kubernetes.io/*",
            "coredns.io/*",
        ),
    ),
    Family(
        "Load balancers",
        "a controller configures the host's load balancers: addresses, networks, security groups,"
        " sharing",
        (
            "service.beta.kubernetes.io/*",
            "service.kubernetes.io/ibm-*",
            "service.kubernetes.io/qcloud-*",
            "service.cloud.tencent.com/*",
            "*.k8s.aws/*",
            "cloud.google.com/*",
            "beta.cloud.google.com/*",
            "alpha.cloud.google.com/*",
            "networking.gke.io/*",
            "oci.oraclecloud.com/*",
            "oci-network-load-balancer.oraclecloud.com/*",
            "loadbalancer.openstack.org/*",
            "load-balancer.hetzner.cloud/*",
            "loadbalancer.ovhcloud.com/*",
            "metallb.universe.tf/*",
            "metallb.io/*",
            "kube-vip.io/*",
            "purelb.io/*",
            "tailscale.com/*",
            "*.kubesphere.io/*",
            "lbipam.cilium.io/*",
            "io.cilium/*",
            "kubernetes.digitalocean.com/*",
            "kubernetes.civo.com/*",
            "kubernetes.io/elb.*",
            "service.kubernetes.io/tke-*",
            "projectcalico.org/*",
            "controller.autoneg.dev/*",
            "cis.f5.com/*",
            "virtual-server.f5.com/*",
            "kube-router.io/*",
            "k8s.ngrok.com/*",
            "service.antrea.io/*",
            "loxilb.io/*",
            "service.citrix.com/*",
            "*ako.vmware.com/*",
            "ncp/*",
            "metal.equinix.com/*",
            "cloudprovider.harvesterhci.io/*",
            "vks.vngcloud.vn/*",
            "networking.resources.gardener.cloud/*",
            "multicluster.kubernetes.io/*",
        ),
    ),
    Family(
        "Ingress controllers",
        "the controller takes configuration text, or reads Secrets and other objects of any"
        " namespace",
        (
            "alb.ingress.kubernetes.io/*",
            "appgw.ingress.kubernetes.io/*",
            "ingress.gcp.kubernetes.io/*",
            "kubernetes.io/ingress.global-static-ip-name",
            "kubernetes.io/ingress.regional-static-ip-name",
            "kubernetes.io/ingress.existLbId",
            "kubernetes.azure.com/tls-cert-keyvault-uri",
            "oci-native-ingress.oraclecloud.com/*",
            "alb.networking.azure.io/*",
            "higress.io/*",
            "projectcontour.io/*",
            "route.openshift.io/*",
            "*router.openshift.io/*",
            "zalando.org/aws-load-balancer-*",
            "*ingress*/*-snippet",
            "*ingress*/*auth-*",
            "*ingress*/*-secret",
            "*ingress*/config-*",
            "*ingress*/server-alias",
            "haproxy.org/*-snippet",
            "haproxy.org/auth-*",
            "haproxy.org/route-acl",
            "traefik.*/router.middlewares",
            "traefik.*/router.tls.*",
            "traefik.*/service.serverstransport",
            "konghq.com/*",
            "*ingress*/custom-headers",
            "*ingress*/*-configmap",
            "*ingress*/default-backend",
            "*ingress*/mirror-target",
            "*ingress*/mirror-host",
            "*ingress*/enable-global-auth",
            "nginx.org/*",
            "nginx.com/*",
            "appprotect.f5.com/*",
            "haproxy.org/server-crt",
            "haproxy.org/server-ca",
            "haproxy.com/*",
            "haproxy-ingress.github.io/server-alias-regex",
            "haproxy-ingress.github.io/tcp-service-port",
            "k8s.apisix.apache.org/*",
            "ingress.citrix.com/*",
            "getambassador.io/*",
            "zalando.org/skipper-*",
        ),
    ),
    Family(
        "Certificates",
        "a controller signs with the host's authorities, and writes Secrets and Ingresses, of any"
        " name",
        (
            "cert-manager.io/issuer",
            "cert-manager.io/cluster-issuer",
            "cert-manager.io/secret-template",
            "acme.cert-manager.io/*",
            "kubernetes.io/tls-acme",
            "cert.gardener.cloud/*",
        ),
    ),
    Family(
        "Container runtimes",
        "the runtime of the node changes the sandbox: its kernel, devices, mounts, system calls",
        (
            "io.katacontainers.*",
            "io.kubernetes.cri-o.*",
            "seccomp-profile.kubernetes.cri-o.io/*",
            "dev.gvisor.*",
            "*.nri.io/*",
            "*.nri.containerd.io/*",
            "cdi.k8s.io/*",
            "*.crio.io",
            "run.oci.*",
            "module.wasm.image/*",
            "org.systemd.property.*",
        ),
    ),
    Family(
        "Admission",
        "it turns off, or chooses, a policy of the host",
        (
            "pod-security.kubernetes.io/*",
            "openshift.io/*",
            "security.openshift.io/*",
            "admission.gatekeeper.sh/*",
            "*image-policy.k8s.io/*",
            "*stackrox.io/*",
            "openpolicyagent.org/*",
            "cert-manager.io/disable-validation",
            "policies.kyverno.io/*",
            "kyverno.io/*",
            "*kubewarden*/*",
            "field.cattle.io/*",
            "container.apparmor.security.beta.kubernetes.io/*",
            "seccomp.security.alpha.kubernetes.io/*",
            "container.seccomp.security.alpha.kubernetes.io/*",
        ),
    ),
    Family(
        "Nodes and scheduling",
        "it keeps the host's nodes from being emptied, removed or balanced, or uses the quota of"
        " another queue",
        (
            "cluster-autoscaler.kubernetes.io/*",
            "karpenter.sh/*",
            "descheduler.alpha.kubernetes.io/*",
            "scheduler.alpha.kubernetes.io/*",
            "kueue.x-k8s.io/*",
            "yunikorn.apache.org/*",
            "scheduling.volcano.sh/*",
            "volcano.sh/*",
            "scheduling.k8s.io/group-name",
            "*koordinator.sh/*",
            "kai.scheduler/*",
            "runai/*",
            "descheduler.kubernetes.io/*",
        ),
    ),
    Family(
        "Pick-up",
        "a program of the host loads every object with this key as configuration or credentials of"
        " its own",
        (
            "grafana_*",
            "k8s-sidecar-*",
            "loki_rule",
            "jenkins.io/*",
            "*jenkins-config",
            "argocd.argoproj.io/secret-type",
            "istio/multiCluster",
            "sigs.k8s.io/multicluster-runtime-kubeconfig",
            "cluster.x-k8s.io/*",
            "strimzi.io/*",
            "*open-cluster-management.io/*",
        ),
    ),
    Family(
        "Cloud resources",
        "a controller adopts, changes or deletes a resource of the host's cloud account",
        (
            "crossplane.io/external-name",
            "serviceoperator.azure.com/*",
            "cnrm.cloud.google.com/*",
        ),
    ),
    Family(
        "Agents",
        "an agent of the host connects to an address, or runs a command, with its own rights",
        (
            "co.elastic.*/*",
            "telegraf.influxdata.com/*",
            "*dynatrace.com/*",
            "*velero.io/*",
        ),
    ),
    Family(
        "Notes of tools",
        "it names objects that the other cluster hasn't, holds the whole object once more, or makes"
        " a tool there take the object for its own and remove it",
        (),
        (
            "*last-applied*",
            "*last-handled-configuration",
            "*cert-manager.io/inject-*",
            "*cert-manager.io/allow-direct-injection",
            "service.*.openshift.io/*",
            "meta.helm.sh/*",
            "argocd.argoproj.io/*",
            "*.toolkit.fluxcd.io/*",
            "objectset.rio.cattle.io/*",
            "kapp.k14s.io/*",
            "kopf.zalando.org/*",
            "kopf.dev/*",
            "pulumi.com/*",
            "*config.kubernetes.io/*",
            "config.k8s.io/*",
            "addonmanager.kubernetes.io/*",
            "olm.*",
            "operators.coreos.com/*",
        ),
    ),
)

_ANYWHERE = tuple(chain.from_iterable(family.keys for family in FAMILIES))
_ANNOTATIONS = tuple(chain.from_iterable(family.annotations for family in FAMILIES))

#: The keys by which tools know objects of their own cluster.
NOTES_OF_TOOLS = KeyRules(deny=FAMILIES[-1].annotations)
#: The rules of objects that go to the host.
GOING_DOWN = MetadataRules(
    labels=KeyRules(deny=_ANYWHERE),
    annotations=KeyRules(deny=(*_ANYWHERE, *_ANNOTATIONS)),
)
#: The rules of objects that come from the host.
COMING_UP = MetadataRules(labels=NOTES_OF_TOOLS, annotations=NOTES_OF_TOOLS)


#: Returns True for a key by which tools know objects of their own cluster.
is_note = matcher(NOTES_OF_TOOLS.deny)


def key_family(title: str) -> Callable[[str], bool]:
    """Return a function that returns True if a key belongs to a family of :data:`FAMILIES`.

    A kind uses it where an object without such a key would be open to more. The object is then
    refused rather than copied without the key.

    Raises:
        KeyError: There is no such family.
    """
    keys = {family.title: family.keys for family in FAMILIES}
    return matcher(keys[title])


def of_every_kind(*, goes_down: bool) -> MetadataRules:
    """Return the rules of every kind of a direction."""
    return GOING_DOWN if goes_down else COMING_UP
