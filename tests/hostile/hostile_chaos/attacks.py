"""The attacks of a hostile tenant: a function for each way in which the host could be harmed."""

import contextlib
import json
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hostile_scene import CLUSTER, COPIED, FOREIGN, HOME, NAMESPACE
from kubelet_client import UPGRADE

from hostile_chaos.audit import ACTED_ON, ACTED_ON_LABELS, CANARY, INJECTED, POLICY_LABELS, PREFIX, is_unmarked
from hostile_chaos.fleet import MOST_CLUSTERS
from hostile_chaos.grants import (
    FROZEN,
    HIDDEN_CLASS,
    LEFT_OUT,
    NEIGHBOUR_ADDRESS,
    SHOWN,
    SHOWN_CLASS,
    SLICES,
    SLICES_OF_A_NAMESPACE,
    address_of,
    class_of_host,
    slice_of,
)
from hostile_chaos.lies import LIES, RAW
from hostile_chaos.stage import (
    CLAIM,
    CLAIMS,
    CLASSES,
    ISSUERS,
    KUBELETS,
    LEADING,
    LIFE,
    NODE,
    PORTS,
    SHARE_OF_KUBELETS,
    SPACES,
    SYSTEM,
    TAKEN,
    VOUCHERS,
    WIDE,
    FrozenObject,
    Stage,
)
from syncer.api import Key, Marks, Obj, Resource, key_of
from syncer.cache.parts import MOST_KEYS
from syncer.engine.stores.identity import NOTE_KEY
from syncer.resources.endpointslices import SERVICE_NAME
from syncer.resources.kinds import INGRESS_CLASSES, NODES, PRIORITY_CLASSES, SECRETS, STORAGE_CLASSES
from syncer.testing.merge import merged
from syncer.testing.objects import (
    build,
    configmap,
    endpointslice,
    ingress,
    namespace,
    pod,
    pod_mounting,
    resource_of,
    secret,
    service,
    serviceaccount,
)

#: Acts on the stage, with a random number generator and a name of its own; returns False if nothing was done.
Attack = Callable[[Stage, random.Random, str], bool | None]

ATTACKS: dict[str, Attack] = {}
#: Annotations in which tools keep the whole of an object.
NOTES = (
    "kapp.k14s.io/original",
    "kopf.zalando.org/last-handled-configuration",
    "objectset.rio.cattle.io/applied",
)
#: The nodes on which a tenant's Pods run, and the slices that are made at once.
NODES_OF_A_TENANT = 8
SLICES_AT_ONCE = 10
#: Connections to the health page at once.
CONNECTIONS = 45
#: The virtual namespace in which the slice of a Service `kubernetes` is excluded.
DEFAULT = "default"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
#: An object of this many bytes is large, and still accepted by an API server.
LARGE = 1_000_000


def attack(name: str) -> Callable[[Attack], Attack]:
    """Add an attack under its name, which each of its objects is called by."""

    def added(function: Attack) -> Attack:
        ATTACKS[name] = function
        return function

    return added


def _voucher(name: str, **spec: Any) -> Obj:
    return build(VOUCHERS, name, spec=spec)


# -- what isn't the tenant's -----------------------------------------------------------------------


@attack("references")
def host_objects_by_name(stage: Stage, rng: random.Random, name: str) -> None:
    """Name objects of the host, which the tenant hasn't got, in every reference of a Pod."""
    one = f"{CANARY}-secret"
    key = {"valueFrom": {"secretKeyRef": {"name": one, "key": "key"}}}
    references: list[Obj] = [
        {"volumes": [{"name": "v", "secret": {"secretName": one, "optional": rng.random() < 0.3}}]},
        {"volumes": [{"name": "v", "configMap": {"name": f"{CANARY}-config"}}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": f"{CANARY}-claim"}}]},
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": one}}]}}]},
        {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": one}}}]},
        {"imagePullSecrets": [{"name": one}]},
        {"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": one}}]}]},
        {"containers": [{"name": "c", "image": "i", "env": [{"name": "K", **key}]}]},
    ]
    chosen = rng.choice([NAMESPACE, NAMESPACE, WIDE, SYSTEM])
    stage.put(pod(name, spec=rng.choice(references), namespace=chosen))


def _started(name: str, *, namespace: str) -> Obj:
    """Return a Pod that says it has started: without a copy, it is deleted."""
    return pod(name, namespace=namespace, status={"phase": "Running"})


@attack("foreign")
def host_namespaces(stage: Stage, rng: random.Random, name: str) -> None:
    """Create objects in a virtual namespace that is called like one of the host's."""
    chosen = rng.choice([FOREIGN, SYSTEM, "default"])
    if chosen == FOREIGN:
        stage.tenant.put(namespace(chosen))
    kind: Callable[..., Obj] = rng.choice([pod, _started, service, serviceaccount])
    stage.put(kind(name, namespace=chosen))


@attack("squatted")
def squatted_names(stage: Stage, rng: random.Random, name: str) -> None:
    """Name a Secret whose place on the host has an object of the host's."""
    choice = rng.randrange(4)
    if choice == 0:
        stage.put(serviceaccount(TAKEN))
        stage.put(pod(name, spec={"serviceAccountName": TAKEN}))
    elif choice == 1:
        stage.put(secret(TAKEN))
        stage.put(pod_mounting(name, secret=TAKEN))
    else:
        stage.put(rng.choice([pod_mounting(name, secret=TAKEN), pod_mounting(name, configmap=TAKEN)]))


@attack("policies")
def policy_of_namespaces(stage: Stage, rng: random.Random, name: str) -> None:
    """Create a namespace with labels that the host's policies go by, and a Pod in it at once."""
    stage.put(namespace(name, metadata={"labels": {rng.choice(POLICY_LABELS): "0", "tier": "two"}}))
    privileged = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    stage.put(pod(name, namespace=name, spec={"containers": [privileged]}))


@attack("annotations")
def annotations_of_others(stage: Stage, rng: random.Random, name: str) -> None:
    """Set annotations that host components act on."""
    annotations = {rng.choice(ACTED_ON): f"{CANARY}/x", "annotations.example.org/mine": "x"}
    metadata: Obj = {"annotations": annotations, "labels": {rng.choice(ACTED_ON_LABELS): "true"}}
    choice = rng.randrange(4)
    if choice == 0:
        stage.put(serviceaccount(name, metadata=metadata))
    elif choice == 1:
        stage.put(service(name, metadata=metadata))
    elif choice == 2:
        stage.put(pod(name, metadata=metadata))
    else:
        stage.put(configmap(name, metadata={**metadata, "annotations": {**annotations, **COPIED["annotations"]}}))


@attack("tokens")
def tokens_of_pods(stage: Stage, rng: random.Random, name: str) -> None:
    """Name the Secret of another Pod's tokens."""
    source = {"serviceAccountToken": {"path": "token"}}
    stage.put(pod(name, spec={"volumes": [{"name": "t", "projected": {"sources": [source]}}]}))
    stage.later(1.0, lambda: stage.put(_voucher(f"{name}-v", secretName=f"{name}.pod-tokens")))


@attack("templates")
def marks_in_templates(stage: Stage, rng: random.Random, name: str) -> None:
    """Write our marks into the templates of a custom object, at any depth."""
    marks: Obj = {f"{PREFIX}cluster": f"{CLUSTER}.{HOME}", f"{PREFIX}name": "x"}
    template: Obj = {rng.choice(["labels", "annotations"]): marks}
    for part in rng.choices(["metadata", "template", "items"], k=rng.randrange(3)):
        template = {part: [template]} if part == "items" else {part: template}
    stage.put(_voucher(name, secretTemplate=template))


@attack("remade")
def deletions_that_come_back(stage: Stage, rng: random.Random, name: str) -> bool:
    """Let an operator of the host make an object again that has our marks, whenever it is deleted."""
    virtual = {**secret(name), "metadata": {"name": name, "namespace": NAMESPACE, "uid": "1"}}
    host_key, marks = stage.scene.host_key(virtual), Marks()
    metadata = {
        "name": host_key.name,
        "namespace": host_key.namespace,
        "labels": marks.labels(f"{CLUSTER}.{HOME}", key_of(virtual)),
        "annotations": marks.annotations(SECRETS, virtual, host_key),
    }
    if stage.operator.get("namespaces", host_key.namespace) is None:
        return False
    stage.make_again(merged(secret(name), {"metadata": metadata}))
    return True


@attack("issuers")
def issuers_of_the_host(stage: Stage, rng: random.Random, name: str) -> None:
    """Name an Issuer or a Secret of the host in a custom object."""
    reference = {"name": f"{CANARY}-issuer", "kind": "Issuer"}
    stage.put(_voucher(name, issuerRef=reference, secretName=rng.choice([f"{CANARY}-secret", f"{name}-s"])))


@attack("operators")
def operators_of_the_host(stage: Stage, rng: random.Random, name: str) -> None:
    """Have operators on the host do what the tenant may not, through fields of plugins' kinds."""
    solver: Obj = rng.choice(
        [
            {
                "http01": {
                    "ingress": {"ingressTemplate": {"metadata": {"annotations": {"a/configuration-snippet": "x"}}}}
                }
            },
            {"http01": {"ingress": {"podTemplate": {"spec": {"priorityClassName": "system-node-critical"}}}}},
            {"http01": {"gatewayHTTPRoute": {"parentRefs": [{"name": "gate", "namespace": FOREIGN}]}}},
            {"dns01": {"unheardOf": {"apiKeySecretRef": {"name": f"{CANARY}-secret"}}}},
        ]
    )
    if rng.random() < 0.6:
        spec: Obj = {"acme": {"server": "https://a", "privateKeySecretRef": {"name": "k"}, "solvers": [solver]}}
        stage.put(build(Resource("cert-manager.io/v1", "Issuer", "issuers"), name, spec=spec))
    else:
        monitors = Resource("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")
        spec = {"scrapeClass": f"{CANARY}-class", "selector": {}, "endpoints": [{"port": "web"}]}
        stage.put(build(monitors, name, spec=spec))


@attack("addresses")
def external_addresses(stage: Stage, rng: random.Random, name: str) -> None:
    """Take the traffic of others to an address."""
    address = f"8.8.{rng.randrange(250)}.8"
    balanced = {"type": "LoadBalancer", "loadBalancerIP": address}
    stage.put(service(name, spec=rng.choice([{"externalIPs": [address]}, balanced])))


@attack("nodes")
def nodes_and_their_volumes(stage: Stage, rng: random.Random, name: str) -> None:
    """Choose a node, or a volume that names something of the host."""
    certificate = {"podCertificate": {"signerName": "example.com/x", "keyType": "ED25519", "credentialBundlePath": "b"}}
    bundle = {"clusterTrustBundle": {"name": f"{CANARY}-bundle", "path": "b"}}
    specs: list[Obj] = [
        {"nodeName": "control-plane-1"},
        {"volumes": [{"name": "v", "glusterfs": {"endpoints": f"{CANARY}-service", "path": "p"}}]},
        {"volumes": [{"name": "v", "projected": {"sources": [bundle]}}]},
        {"volumes": [{"name": "v", "projected": {"sources": [certificate]}}]},
    ]
    stage.put(pod(name, spec=rng.choice(specs)))


@attack("privileges")
def rights_on_the_node(stage: Stage, rng: random.Random, name: str) -> None:
    """Ask for what is the node's in a Pod, or in a container that is added to one which runs already."""
    context: Obj = rng.choice([{"privileged": True}, {"capabilities": {"add": ["SYS_ADMIN"]}}])
    container = {"name": "c", "image": "i", "securityContext": context}
    port = {"containerPort": 80, "hostPort": rng.randrange(1, 1000)}
    specs: list[Obj] = [
        {rng.choice(["hostNetwork", "hostPID", "hostIPC"]): True},
        {"volumes": [{"name": "v", "hostPath": {"path": rng.choice(["/", "/var/run", "/etc/kubernetes"])}}]},
        {"containers": [container]},
        {"initContainers": [container]},
        {"containers": [{"name": "c", "image": "i", "ports": [port]}]},
    ]
    if rng.random() < 0.8:
        stage.put(pod(name, spec=rng.choice(specs)))
        return
    made = pod(f"{name}-plain")
    stage.put(made)
    more = [{**container, "name": "debug"}]

    def debug() -> None:
        if stage.scene.copy(made) and stage.tenant.get("pods", str(key_of(made))):
            stage.tenant.patch("pods", str(key_of(made)), spec={"ephemeralContainers": more})

    stage.later(1.0, debug)


@attack("relay")
def parts_of_the_host(stage: Stage, rng: random.Random, name: str) -> None:
    """Get at what the host has put into a pod: by names, debug containers and forged Nodes."""
    made = pod(name, spec={"terminationGracePeriodSeconds": 0})  # no kubelet ends it here
    stage.put(made)
    sidecar = f"{INJECTED}sidecar"
    debugger = f"{INJECTED}debugger"
    token = f"{INJECTED}token"
    statuses = {
        "containerStatuses": [_status("app"), _status(sidecar)],
        "ephemeralContainerStatuses": [_status(debugger)],
    }

    def inject() -> None:
        copy = stage.scene.copy(made)
        if copy is None:
            return
        parts = {
            "nodeName": NODE,
            "containers": [*copy["spec"]["containers"], {"name": sidecar, "image": "proxy"}],
            "ephemeralContainers": [{"name": debugger, "image": "tools"}],
            "volumes": [*copy["spec"].get("volumes", ()), {"name": token, "emptyDir": {}}],
        }
        stage.operator.change(copy, {"spec": parts, "status": {"phase": "Running", **statuses}})
        stage.operator.put(_started_container(copy, name, debugger))
        stage.later(0.5, forge)

    def forge() -> None:
        mounts = [{"name": token, "mountPath": "/t"}]
        forged: list[Obj] = [
            {"name": debugger, "image": "i"},
            {"name": sidecar, "image": "i"},
            {"name": "beside", "image": "i", "targetContainerName": sidecar},
            {"name": "mounting", "image": "i", "volumeMounts": mounts},
        ]
        if original := stage.tenant.get("pods", str(key_of(made))):
            volumes = [*original["spec"].get("volumes", ()), {"name": token, "emptyDir": {}}]
            chosen = rng.sample(forged, rng.randrange(1, 5))
            parts = {"ephemeralContainers": chosen, "volumes": volumes}
            stage.tenant.change(original, {"spec": parts})
        stage.later(1.0, ask)

    def ask() -> None:
        for container in (sidecar, debugger):
            stage.ask_kubelet(f"/containerLogs/{key_of(made)}/{container}")
            stage.ask_kubelet(f"/exec/{key_of(made)}/{container}?command=id&output=1", UPGRADE)

    stage.later(1.0, inject)
    if rng.random() < 0.3:
        labels = {f"{PREFIX}cluster": f"{CLUSTER}.{HOME}"}
        stage.put(pod(f"{name}-kept", spec={"nodeName": name}))
        stage.put(build(NODES, name, metadata={"labels": labels}))

        def look() -> None:
            if stage.kubelet_port(name):
                stage.report("relay", "a forged Node has a port", name)

        stage.later(3.0, look)


@attack("ports")
def ports_of_kubelets(stage: Stage, rng: random.Random, name: str) -> None:
    """Run Pods on many nodes, so that their kubelets take the ports of all tenants."""
    made = [pod(f"{name}-{number}", spec={"terminationGracePeriodSeconds": 0}) for number in range(NODES_OF_A_TENANT)]
    for each in made:
        stage.put(each)

    def spread() -> None:
        for each in made:
            copy = stage.scene.copy(each)
            if copy is not None and not is_unmarked(copy):
                node = {"nodeName": key_of(each).name}
                stage.operator.change(copy, {"spec": node, "status": {"phase": "Running"}})

    def look() -> None:
        used = stage.kubelet_ports()
        if len(used) > SHARE_OF_KUBELETS:
            fault = "a virtual cluster has more kubelet ports than its share"
            stage.report("ports", fault, f"{len(used)} of {KUBELETS}")

    stage.later(1.0, spread)
    stage.later(4.0, look)


@attack("slices")
def slices_that_lead_away(stage: Stage, rng: random.Random, name: str) -> None:
    """Lead a Service to what isn't the tenant's, by many slices with many addresses each."""
    number = int(name.rpartition("-")[2])
    own = address_of(number)
    target = pod(name, namespace=LEADING, spec={"terminationGracePeriodSeconds": 0})
    # What a tenant writes into the status of a virtual Pod is no address of theirs.
    lying = {"phase": "Running", "podIP": NEIGHBOUR_ADDRESS, "podIPs": [{"ip": NEIGHBOUR_ADDRESS}]}
    stage.put(pod(f"{name}-lying", namespace=LEADING, status=lying))
    stage.put(target)
    others = [NEIGHBOUR_ADDRESS, "169.254.169.254", "10.96.0.10", *(f"10.9.0.{each}" for each in range(1, 250))]

    def run() -> None:
        copy = stage.scene.copy(target)
        if copy is not None and not is_unmarked(copy):
            status = {"phase": "Running", "podIP": own, "podIPs": [{"ip": own}]}
            stage.operator.change(copy, {"spec": {"nodeName": NODE}, "status": status})

    def lead() -> None:
        for each in range(SLICES_AT_ONCE):
            chosen = [own, *rng.sample(others, rng.randrange(1, 200)), rng.choice([own, NEIGHBOUR_ADDRESS])]
            stage.put(endpointslice(f"{name}-{each}", *chosen, namespace=LEADING))

    def look() -> None:
        copies = stage.slices_of(LEADING)
        if copies > SLICES_OF_A_NAMESPACE:
            fault = "a namespace has more copies of EndpointSlices than its share"
            stage.report("slices", fault, f"{copies} of {SLICES}")

    stage.later(1.0, run)
    stage.later(1.5, lead)
    stage.later(4.0, look)


@attack("fleet")
def secrets_of_virtual_clusters(stage: Stage, rng: random.Random, name: str) -> None:
    """Write Secrets that name virtual clusters, whose kubeconfigs reach for what is the daemon's or others'."""
    fleet = stage.fleet
    # An attacker removes the note by which the daemon knows under which name it has served their API server.
    fleet.own.delete("configmaps", str(NOTE_KEY))
    chosen = rng.sample(fleet.attacks(name), rng.randrange(1, 4))
    for number, each in enumerate(chosen):
        made = merged(each, {"metadata": {"name": f"{name}-{number}"}})
        stage.operator.put(made)
        stage.later(LIFE, partial(stage.operator.delete, "secrets", str(key_of(made))))

    def look() -> None:
        fleet.look()
        served = stage.served_clusters()
        if served > MOST_CLUSTERS + 2:
            stage.report("fleet", "more virtual clusters of Secrets are served than may be", str(served))

    stage.later(3.0, look)


def _status(name: str) -> Obj:
    """Return the status of a running container."""
    return {"name": name, "image": "i", "imageID": "", "ready": True, "restartCount": 0}


def _started_container(copy: Obj, name: str, container: str) -> Obj:
    """Return an Event of the host's kubelet about a container of a pod."""
    metadata = copy["metadata"]
    about = {part: metadata[part] for part in ("name", "namespace", "uid")}
    path = f"spec.ephemeralContainers{{{container}}}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{name}", "namespace": metadata["namespace"]},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "fieldPath": path, **about},
        "type": "Normal",
        "reason": "Started",
        "message": "Started container",
    }


@attack("notes")
def repeat_hidden_values(stage: Stage, rng: random.Random, name: str) -> None:
    """Change a host object whose annotations repeat what the tenants don't see."""
    metadata = {"annotations": {rng.choice(NOTES): json.dumps({"password": f"{CANARY}-{name}"})}}
    spec = {"password": f"{CANARY}-password", "n": name}
    stage.operator.put(build(CLASSES, "gold", metadata=metadata, spec=spec))


@attack("hostnames")
def names_of_the_host(stage: Stage, rng: random.Random, name: str) -> None:
    """Read names of the host in a Pod's own fields, or in what a kubelet says of it."""
    field = {"fieldRef": {"fieldPath": f"metadata.annotations['{PREFIX}host-namespace']"}}
    env = [{"name": "WHERE", "valueFrom": field}] if rng.random() < 0.5 else []
    made = pod(name, spec={"containers": [{"name": "c", "image": "i", "env": env}]})
    stage.put(made)
    waiting = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0}

    def report() -> None:
        copy = stage.scene.copy(made)
        if copy is None:
            return
        text = f'secret "db" not found in namespace {copy["metadata"]["namespace"]}'
        state = {"waiting": {"reason": "Error", "message": text}}
        status = {"message": text, "containerStatuses": [{**waiting, "state": state}]}
        stage.operator.change(copy, {"status": status})

    stage.later(1.5, report)


# -- what takes time and memory --------------------------------------------------------------------


@attack("variables")
def variables_of_services(stage: Stage, rng: random.Random, name: str) -> None:
    """Create a Pod with many containers where there are many Services with variables, and others with many ports."""
    containers = [{"name": f"c{number}", "image": "i"} for number in range(rng.randrange(20, 200))]
    stage.put(pod(name, namespace=WIDE, spec={"containers": containers}))
    if rng.random() < 0.05:
        stage.tenant.patch("services", f"{WIDE}/s{rng.randrange(len(PORTS))}", metadata={"labels": {"n": name}})


@attack("selectors")
def selectors_of_namespaces(stage: Stage, rng: random.Random, name: str) -> None:
    """Create a Pod whose many affinity terms select namespaces, and change one of these."""
    kind = rng.choice(["podAffinity", "podAntiAffinity"])
    terms = [
        {
            "labelSelector": {},
            "topologyKey": "kubernetes.io/hostname",
            "namespaceSelector": {"matchLabels": {"tier": "one", **({"x": str(one)} if rng.random() < 0.1 else {})}},
        }
        for one in range(rng.randrange(100, 1200))
    ]
    affinity = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    stage.put(pod(name, spec={"affinity": affinity}))
    if rng.random() < 0.2:
        stage.tenant.patch("namespaces", f"space-{rng.randrange(SPACES)}", metadata={"labels": {"changed": name}})


@attack("passing")
def names_that_go_again(stage: Stage, rng: random.Random, name: str) -> None:
    """Name a Secret with a very long name, or have very many annotations, for a moment."""
    for number in range(6):
        one = f"{name}-{number}"
        if rng.random() < 0.7:
            obj = pod_mounting(one, secret=one.ljust(rng.randrange(100_000, LARGE), "x"))
        else:
            many = {f"example.org/{one}-{each}": "" for each in range(rng.randrange(100, 4000))}
            obj = serviceaccount(one, metadata={"annotations": many})
        stage.later(0.2 * number, partial(stage.tenant.put, obj))
        gone = partial(stage.tenant.delete, resource_of(obj), str(key_of(obj)))
        stage.later(0.2 * number + 0.5, gone)


@attack("expressions")
def costly_expressions(stage: Stage, rng: random.Random, name: str) -> None:
    """Give an expression of the operator's, which compares each with each, a long list."""
    count = rng.choice([10, 100, 500, 900])
    stage.put(_voucher(name, items=[f"{name}-{number}" for number in range(count)]))


@attack("hammered")
def hammering(stage: Stage, rng: random.Random, name: str) -> None:
    """Change an object again and again."""
    target = configmap("hammered-0", {"n": name}, metadata=COPIED)
    for number in range(12):
        stage.tenant.put(merged(target, {"data": {"at": f"{name}-{number}"}}))
        stage.pause(0.015)


@attack("messages")
def long_messages(stage: Stage, rng: random.Random, name: str) -> None:
    """Be refused with a very long message, or one that moves the cursor of a terminal."""
    kind = rng.choice(["\x1b[31m", "x" * rng.randrange(10_000, LARGE)])
    stage.put(_voucher(name, issuerRef={"name": "a", "kind": kind}))


@attack("page")
def health_page(stage: Stage, rng: random.Random, name: str) -> None:
    """Open connections to the health page and never finish a request, or give it errors to tell."""
    if rng.random() < 0.5:
        opened = contextlib.ExitStack()
        for _ in range(CONNECTIONS):
            with contextlib.suppress(OSError):
                address = "127.0.0.1", stage.scene.daemon.health
                one = opened.enter_context(socket.create_connection(address, timeout=0.02))
                one.sendall(b"GET /readyz HTTP/1.1\r\n")
        stage.later(0.3, stage.read_page)
        stage.later(0.5, opened.close)
        return
    stage.cut_off("events")
    stage.later(0.8, stage.read_page)
    stage.later(1.0, stage.heal)


# -- what an operator may not be let to configure --------------------------------------------------

_REFERRED = {"references": {"spec.ref.name": "issuers.example.com"}}
#: Sections, any of which hands the host over.
CARELESS: Sequence[Obj] = (
    {"host": {"namespace": "kube-system"}},
    {"host": {"namespace": "default"}},
    {"sync": {"custom": {"deployments.apps": {}}}},
    {"sync": {"custom": {"rolebindings.rbac.authorization.k8s.io": {}}}},
    {"sync": {"custom": {"validatingwebhookconfigurations.admissionregistration.k8s.io": {"scope": "Cluster"}}}},
    {"sync": {"custom": {"vouchers.example.com": _REFERRED, "issuers.example.com": {"name": "{namespace}-{name}"}}}},
    {"names": {"translator": "unchanged", "trustTenant": False}},
)


@attack("careless")
def careless_configurations(stage: Stage, rng: random.Random, name: str) -> None:
    """Write a configuration that hands the host over, which must be refused."""
    section = rng.choice(CARELESS)
    stage.must_refuse(merged(stage.scene.config(), section), section)


# -- what ends a process ---------------------------------------------------------------------------


@attack("malformed")
def malformed_objects(stage: Stage, rng: random.Random, name: str) -> None:
    """Let an aggregated API server say what no API server says, in a watch or in a list."""
    choice = rng.choice(sorted([*LIES, *RAW]))
    kinds: list[Obj] = [
        configmap(name, metadata=COPIED),
        service(name),
        pod(name),
        serviceaccount(name),
        _voucher(name, secretName="a"),
        secret(name),
        build(ISSUERS, name, spec={}),
        build(CLAIMS, name, spec=CLAIM),
        endpointslice(name),
    ]
    obj = rng.choice(kinds)
    stage.lie(name, choice)
    stage.put(obj)
    if rng.random() < 0.3:
        stage.relist(resource_of(obj).plural)


# -- what doesn't go again -------------------------------------------------------------------------


@attack("paused")
def pause_and_delete(stage: Stage, rng: random.Random, name: str) -> None:
    """Pause an object and delete it."""
    obj = rng.choice([pod(name), service(name), pod_mounting(name, secret=name)])
    resource, key = resource_of(obj), key_of(obj)
    stage.put(obj)

    def pause() -> None:
        if stage.tenant.get(resource, str(key)):
            stage.tenant.patch(resource, str(key), metadata={"annotations": {f"{PREFIX}paused": "true"}})
            stage.later(0.5, delete)

    def delete() -> None:
        stage.tenant.delete(resource, str(key))
        stage.must_go(obj, "paused")

    stage.later(1.0, pause)


def _patch(stage: Stage, obj: Obj, **parts: Any) -> None:
    """Change an object as the tenant if it is there."""
    resource = resource_of(obj)
    key = str(key_of(obj))
    if stage.tenant.get(resource, key):
        stage.tenant.patch(resource, key, **parts)


def _pause_namespace(stage: Stage, obj: Obj) -> None:
    home = obj["metadata"].get("namespace", obj["metadata"]["name"])
    if home != DEFAULT:
        _patch(stage, namespace(home), metadata=_PAUSED)


def _lie(stage: Stage, obj: Obj) -> None:
    """Let the virtual API server tell something malformed of an object, in a watch at once."""
    name = obj["metadata"]["name"]
    choices = sorted([*LIES, *RAW])
    number = int(name.rpartition("-")[2])
    stage.lie(name, choices[number % len(choices)])
    _patch(stage, obj, metadata={"labels": {"changed": "yes"}})


_PAUSED = {"annotations": {f"{PREFIX}paused": "true"}}
_TOO_MANY = {f"note-{number}": "" for number in range(MOST_KEYS + 1)}
#: The ways to freeze the copy of an object.
FREEZES: Mapping[str, Callable[[Stage, Obj], object]] = {
    "pauses it": lambda stage, obj: _patch(stage, obj, metadata=_PAUSED),
    "pauses its namespace": _pause_namespace,
    "makes it too large": lambda stage, obj: _patch(stage, obj, metadata={"annotations": _TOO_MANY}),
    "relabels it": lambda stage, obj: _patch(stage, obj, metadata={"labels": LEFT_OUT}),
    "has it excluded": lambda stage, obj: _patch(stage, obj, metadata={"labels": {SERVICE_NAME: "kubernetes"}}),
    "makes it malformed": _lie,
}


@attack("freezes")
def grants_that_are_frozen(stage: Stage, rng: random.Random, name: str) -> None:
    """Freeze the copy of an object that gives access, when the access ends or the tenant asks for more."""
    home = f"{name}-home"
    kind = rng.choice(sorted(FROZEN))
    if kind == "EndpointSlice" and rng.random() < 0.5:
        _freeze_address(stage, rng, name)
        return
    frozen = FROZEN[kind]
    obj = frozen.within(name, home)
    freezes = rng.sample(sorted(FREEZES), rng.randrange(1, 3))
    stage.put_lasting(namespace(home))
    stage.put_lasting(obj)

    def freeze() -> None:
        if rng.random() < 0.5:
            _patch(stage, obj, **frozen.more)
        for each in freezes:
            FREEZES[each](stage, obj)
        stage.later(0.7, exceed)

    def exceed() -> None:
        copy = stage.scene.copy(obj)
        if copy is not None and not is_unmarked(copy):
            stage.operator.change(copy, frozen.earlier(copy))
        stage.must_shrink(FrozenObject(obj, "freezes"))

    stage.later(1.5, freeze)


def _freeze_address(stage: Stage, rng: random.Random, name: str) -> None:
    """Freeze the copy of a slice that leads to a Pod, and let the Pod end."""
    home = rng.choice([f"{name}-home", DEFAULT])
    address = address_of(int(name.rpartition("-")[2]))
    target = pod(f"{name}-pod", namespace=home, spec={"terminationGracePeriodSeconds": 0})
    leading = slice_of(address, name, home)
    freezes = rng.sample(sorted(FREEZES), rng.randrange(1, 3))
    end = rng.choice(["Succeeded", "Failed", "deleted by the host", "deleted by the tenant"])
    if home != DEFAULT:
        stage.put_lasting(namespace(home))
    stage.put_lasting(target)
    stage.put_lasting(leading)

    def write_status(phase: str) -> None:
        copy = stage.scene.copy(target)
        if copy is not None and not is_unmarked(copy):
            status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}]}
            stage.operator.change(copy, {"spec": {"nodeName": NODE}, "status": status})

    def freeze() -> None:
        for each in freezes:
            FREEZES[each](stage, leading)
        stage.later(0.7, finish)

    def finish() -> None:
        copy = stage.scene.copy(target)
        if end == "deleted by the tenant":
            stage.tenant.delete(resource_of(target), str(key_of(target)))
        elif end == "deleted by the host":
            if copy is not None and not is_unmarked(copy):
                stage.operator.delete(resource_of(copy), str(key_of(copy)))
        else:
            write_status(end)
        if copy is not None:
            stage.must_shrink(FrozenObject(leading, "freezes", address))

    stage.later(1.5, lambda: write_status("Running"))
    stage.later(3.0, freeze)


@attack("classes")
def classes_of_the_host(stage: Stage, rng: random.Random, name: str) -> None:
    """Name classes of the host that the tenant isn't shown, or is shown no longer."""
    if rng.random() < 0.4:
        _keep_withdrawn_class(stage, rng, name)
        return
    hidden: list[Obj] = [
        ingress(name, spec={"ingressClassName": HIDDEN_CLASS}),
        ingress(name, metadata={"annotations": {"kubernetes.io/ingress.class": HIDDEN_CLASS}}),
        build(CLAIMS, name, spec={**CLAIM, "storageClassName": HIDDEN_CLASS}),
        build(CLAIMS, name, spec={**CLAIM, "volumeAttributesClassName": HIDDEN_CLASS}),
        build(CLAIMS, name, spec=CLAIM, metadata={"annotations": {_BETA_CLASS: HIDDEN_CLASS}}),
        pod(name, spec={"runtimeClassName": HIDDEN_CLASS}),
        pod(name, spec={"priorityClassName": HIDDEN_CLASS}),
    ]
    obj = rng.choice(hidden)
    if rng.random() < 0.3:
        stage.put(class_of_host(rng.choice([INGRESS_CLASSES, STORAGE_CLASSES]), HIDDEN_CLASS, labels=SHOWN))
    if obj["kind"] == "Ingress" and rng.random() < 0.5:
        stage.put(ingress(name, spec={"ingressClassName": SHOWN_CLASS}))
        stage.later(1.5, lambda: _patch(stage, obj, metadata=obj["metadata"], spec=obj["spec"]))
        return
    if "priorityClassName" in obj.get("spec", {}):
        # The API server refuses a Pod whose class isn't there. Where names are unchanged, the copy of
        # the tenant's class would be at the place of the host's, and the daemon asks what is there.
        if stage.scene.names.to_host(PRIORITY_CLASSES, Key("", HIDDEN_CLASS)).name == HIDDEN_CLASS:
            return
        stage.put(class_of_host(PRIORITY_CLASSES, HIDDEN_CLASS))
    stage.put(obj)


def _keep_withdrawn_class(stage: Stage, rng: random.Random, name: str) -> None:
    """Name a class that is shown, and freeze the Ingress before the operator withdraws the class."""
    named = f"{name}-class"
    stage.operator.put(class_of_host(INGRESS_CLASSES, named, labels=SHOWN))
    obj = ingress(name, namespace=f"{name}-home", spec={"ingressClassName": named})
    if rng.random() < 0.5:
        annotations = {"kubernetes.io/ingress.class": named}
        obj = ingress(name, namespace=f"{name}-home", metadata={"annotations": annotations})
    stage.put_lasting(namespace(f"{name}-home"))
    stage.put_lasting(obj)
    freeze = FREEZES[rng.choice(sorted(FREEZES))]

    def withdraw() -> None:
        stage.operator.put(class_of_host(INGRESS_CLASSES, named))
        stage.must_shrink(FrozenObject(obj, "classes", named))

    stage.later(2.0, lambda: freeze(stage, obj))
    stage.later(2.7, withdraw)


@attack("halted")
def pause_namespace_and_delete(stage: Stage, rng: random.Random, name: str) -> None:
    """Pause a Namespace, and delete what is in it."""
    home = namespace(name)
    given = [pod(name, namespace=name), service(name, namespace=name), configmap(name, namespace=name, metadata=COPIED)]
    obj = rng.choice(given)
    resource, key = resource_of(obj), key_of(obj)
    stage.put(obj)
    stage.put(home)

    def pause() -> None:
        if stage.tenant.get("namespaces", name):
            stage.tenant.patch("namespaces", name, metadata={"annotations": {f"{PREFIX}paused": "true"}})
            stage.later(0.5, delete)

    def delete() -> None:
        stage.tenant.delete(resource, str(key))
        stage.must_go(obj, "halted")

    stage.later(1.0, pause)


@attack("marks")
def forged_marks(stage: Stage, rng: random.Random, name: str) -> None:
    """Write our marks on objects of the tenant's own."""
    canary_key = Key(HOME, f"{CANARY}-secret")
    marks, wanted = Marks(), secret(name)
    wanted["metadata"]["annotations"] = marks.annotations(SECRETS, wanted, canary_key)
    if rng.random() < 0.5:
        wanted["metadata"]["labels"] = marks.labels(f"{CLUSTER}.{HOME}", canary_key)
    stage.put(wanted)
    stage.put(pod_mounting(name, secret=name))
