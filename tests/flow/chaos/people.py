"""Objects of tenants, and their lot on the host: the contents of a play, without the play."""

from collections.abc import Sequence
from typing import Any

from custom_scene import CERTIFICATES, CLUSTER_ISSUERS, FAO, ISSUERS, PUBLIC, certificate, custom, definition
from sampled import MADE

from syncer.api import Obj
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, ingress, pod, pod_mounting, secret, service, serviceaccount

SERVICE_ACCOUNTS, INGRESSES = "serviceaccounts", "ingresses.networking.k8s.io"
_OURS = ("configmaps", "secrets", "services", "pods", SERVICE_ACCOUNTS, INGRESSES, CERTIFICATES, ISSUERS)
#: Kinds of which nothing is known but their samples.
SAMPLED = {sample.plural: sample for sample in MADE.values() if sample.plural not in _OURS}
#: What tenants make; a name is of one of these.
KINDS = (*_OURS, *SAMPLED)
NAMES = ("a", "b", "c")
#: Names that something else has, too: the CA's, which is in each namespace, and a Secret that comes from the host.
SPECIAL = {"configmaps": ("kube-root-ca.crt",), "secrets": ("a-tls",), SERVICE_ACCOUNTS: ("default",)}
SPACES = ("shop", "blog")
#: How many ways there are to make each of them.
LOOKS = 4
COLORS = ("red", "green", "blue")
PIN = "example.org/pin"


def made(kind: str, space: str, name: str, look: int) -> Obj:
    """An object as a tenant may make it."""
    colors = {"color": COLORS[look % len(COLORS)]}
    labels: dict[str, Any] = {"metadata": {"labels": colors}, "namespace": space}
    if kind in SAMPLED:
        changed = merged(labels, SAMPLED[kind].change) if look % 2 else labels
        return merged(SAMPLED[kind].object(name), {**changed, "metadata": {**labels["metadata"], "namespace": space}})
    match kind:
        case "configmaps":
            return configmap(name, colors, namespace=space, **({"immutable": True} if look == 3 else {}))
        case "secrets":
            return secret(name, colors, namespace=space)
        case "services":
            return service(name, ports=(80, 81)[: 1 + look % 2], **labels, spec={"type": _type(look)})
        case "pods":
            return _pod(name, look, labels)
        case "serviceaccounts":
            return serviceaccount(name, **labels)
        case "ingresses.networking.k8s.io":
            return ingress(name, service=name, tls_secret=("", "a", "b", "a-tls")[look], namespace=space)
        case "certificates.cert-manager.io":
            kind_of_issuer = ("Issuer", "ClusterIssuer")[look % 2]
            made = certificate(name, f"{'ab'[look // 2]}-tls", "a", kind_of_issuer)
        case _:
            made = custom(ISSUERS, name, spec={"ca": {"secretName": NAMES[look % len(NAMES)]}})
    return merged(made, {"metadata": {"namespace": space}})


def _type(look: int) -> str:
    return "NodePort" if look > 1 else "ClusterIP"


def _pod(name: str, look: int, labels: dict[str, Any]) -> Obj:
    match look:
        case 0:
            return pod(name, **labels)
        case 1:
            return pod_mounting(name, secret="a", **labels)
        case 2:
            return pod_mounting(name, secret="a-tls", configmap="b", **labels)
        case _:
            return pod_mounting(name, configmap="c", **labels, spec={"serviceAccountName": "a"})


def changed(kind: str, before: Obj, obj: Obj) -> Obj:
    """Return an existing object changed into the other one, as far as its kind allows."""
    match kind:
        case "pods":
            return merged(before, {"metadata": {"labels": obj["metadata"]["labels"]}})
        case "services":
            return merged(before, {"metadata": {"labels": obj["metadata"]["labels"]}, "spec": obj["spec"]})
        case _:
            return merged(before, {**obj, "metadata": {"labels": obj["metadata"].get("labels")}})


def spoilt(kind: str, copy: Obj, how: str) -> Obj:
    """A copy as a user of the host may leave it."""
    match how:
        case "contents":
            if kind in SAMPLED:
                return merged(copy, SAMPLED[kind].tampered)
            part = {"configmaps": "data", "secrets": "data"}.get(kind, "")
            if part:
                return merged(copy, {"data": {"color": "bGVhZA=="}, "immutable": None})
            return merged(copy, {"metadata": {"labels": {"color": "lead"}}})
        case "labels":
            return merged(copy, {"metadata": {"labels": {"color": "lead", "host": "own"}}})
        case "unmark":
            return merged(copy, {"metadata": {"labels": {"vsyncer.dev/cluster": None}}})
        case "uid":
            return merged(copy, {"metadata": {"annotations": {"vsyncer.dev/virtual-uid": "another"}}})
        case "fields":
            return merged(copy, {"metadata": {"annotations": {"vsyncer.dev/fields": None}}})
        case _:
            return merged(copy, {"metadata": {"finalizers": [PIN]}})


#: The ways to spoil a copy, ``delete`` beside them.
SPOILS = ("contents", "labels", "unmark", "uid", "fields", "pin")


def lived(copy: Obj, act: str, now: str) -> Obj | None:
    """A host pod after the next step of its life; None where that step isn't one that it can take."""
    phase, deleting = (copy.get("status") or {}).get("phase", "Pending"), "deletionTimestamp" in copy["metadata"]
    if act == "run" and phase == "Pending" and not deleting:
        status = {"phase": "Running", "startTime": now, "hostIP": "192.0.2.10", "conditions": _conditions("True", now)}
        return merged(copy, {"spec": {"nodeName": "node-1"}, "status": status})
    if act == "place" and not copy["spec"].get("nodeName") and not deleting:
        placed = {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now}]}
        return merged(copy, {"spec": {"nodeName": "node-2"}, "status": placed})
    if act in ("Succeeded", "Failed") and phase == "Running":
        return merged(copy, {"status": {"phase": act, "conditions": _conditions("False", now)}})
    return None


def _conditions(ready: str, now: str) -> list[Obj]:
    states = (("PodScheduled", "True"), ("Initialized", "True"), ("Ready", ready))
    return [{"type": kind, "status": status, "lastTransitionTime": now} for kind, status in states]


def issued(copy: Obj, look: int) -> Sequence[Obj]:
    """Return the objects that cert-manager makes for a Certificate on the host: its Secret, and a status."""
    tls = {"tls.crt": COLORS[look % len(COLORS)], "tls.key": "key"}
    parts: dict[str, Any] = {"type": "kubernetes.io/tls", "metadata": {"labels": FAO}}
    made = secret(copy["spec"]["secretName"], tls, namespace=copy["metadata"]["namespace"], **parts)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z", "reason": "Ready"}
    return made, merged(copy, {"status": {"conditions": [ready], "revision": look}})


def cluster_issuer(look: int) -> Obj:
    """An issuer of the host for all tenants, or one that is not shown to them."""
    shown = PUBLIC if look % 2 else {}
    spec = {"spec": {"ca": {"secretName": f"host-{look}"}}}
    return merged(custom(CLUSTER_ISSUERS, "a", namespace=""), {**shown, **spec})


#: The definitions of the custom kinds; the second is one that the host publishes, and that comes to tenants by itself.
def defined(kind: str) -> Obj:
    """The CRD of a kind, as people on the host keep it."""
    match kind:
        case "clusterissuers.cert-manager.io":
            return definition(kind, scope="Cluster")
        case "issuers.cert-manager.io":
            return merged(definition(kind), PUBLIC)
        case _:
            return definition(kind)
