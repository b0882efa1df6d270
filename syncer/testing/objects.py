"""Builders of small Kubernetes objects for tests, valid for a real API server.

Each takes the name first and ``namespace="shop"``. Other keywords are merged over the object, so
that a test only names what it is about: ``pod("web", spec={"nodeName": "n1"}, metadata={"labels":
{"app": "web"}})``.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from syncer.api import Obj, Resource, Settings, key_of
from syncer.names import SingleNamespace
from syncer.resources import kinds
from syncer.translate.merge_patch import merged

NAMESPACE = "shop"
IMAGE = "registry.example.org/app:1"

#: The default virtual cluster and host namespace of a World.
CLUSTER = "vc"
HOST_NAMESPACE = "vc-ns"
_SETTINGS = Settings(
    CLUSTER,
    HOST_NAMESPACE,
    SingleNamespace(cluster=CLUSTER, namespace=HOST_NAMESPACE),
)

_RESOURCES = [one for one in vars(kinds).values() if isinstance(one, Resource)]
_KINDS = {(one.api_version, one.kind): one for one in _RESOURCES}


def resource_of(obj: Obj) -> Resource:
    """Return the resource of an object: a well-known one, or a guess with the regular plural."""
    kind = (obj["apiVersion"], obj["kind"])
    return _KINDS.get(kind) or Resource(
        *kind,
        kind[1].lower() + "s",
        namespaced="namespace" in obj["metadata"],
    )


def uid_for(side: str, obj: Obj) -> str:
    """Return the uid that a World gives to an object without one."""
    return f"{side}-{obj['kind']}-{key_of(obj)}".lower().replace("/", "-")


def host_copy(virtual: Obj, **parts: Any) -> Obj:
    """Return a host object that is marked as our copy, with only ``parts`` as contents."""
    resource = resource_of(virtual)
    key = key_of(virtual)
    marks = _SETTINGS.marks
    host_key = _SETTINGS.names.to_host(resource, key)
    known = merged({"metadata": {"uid": uid_for("virtual", virtual)}}, virtual)
    metadata = {
        "labels": marks.labels(_SETTINGS.identity, key),
        "annotations": marks.annotations(resource, known, host_key),
    }
    return build(
        resource,
        host_key.name,
        namespace=host_key.namespace,
        **merged({"metadata": metadata}, parts),
    )


def build(resource: Resource, name: str, *, namespace: str = NAMESPACE, **parts: Any) -> Obj:
    """Return an object of any resource; each keyword is a part that is merged over the defaults."""
    metadata = {"name": name, "namespace": namespace} if resource.namespaced else {"name": name}
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return merged(obj, parts)


def configmap(
    name: str,
    data: Mapping[str, str] | None = None,
    *,
    namespace: str = NAMESPACE,
    **parts: Any,
) -> Obj:
    """Return a ConfigMap."""
    base = {"data": dict(data if data is not None else {"color": "blue"})}
    return build(
        Resource("v1", "ConfigMap", "configmaps"),
        name,
        namespace=namespace,
        **merged(base, parts),
    )


def secret(
    name: str,
    data: Mapping[str, str] | None = None,
    *,
    namespace: str = NAMESPACE,
    **parts: Any,
) -> Obj:
    """Return an opaque Secret; ``data`` is plain text."""
    plain = data if data is not None else {"password": "swordfish"}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
    base = {"type": "Opaque", "data": encoded}
    return build(
        Resource("v1", "Secret", "secrets"),
        name,
        namespace=namespace,
        **merged(base, parts),
    )


def service(
    name: str,
    ports: Sequence[int] = (80,),
    *,
    selector: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
    **parts: Any,
) -> Obj:
    """Return a Service that selects ``app: <name>`` by default."""
    entries: list[Obj] = []
    for port in ports:
        entry = {"name": f"p{port}", "port": port, "protocol": "TCP", "targetPort": port}
        entries.append(entry)
    if selector is None:
        selector = {"app": name}
    spec = {
        "ports": entries,
        "selector": dict(selector),
        "type": "ClusterIP",
    }
    resource = Resource("v1", "Service", "services")
    return build(resource, name, namespace=namespace, **merged({"spec": spec}, parts))


def endpointslice(
    name: str,
    *addresses: str,
    service: str = "web",
    namespace: str = NAMESPACE,
    **parts: Any,
) -> Obj:
    """Return an EndpointSlice of a Service, with port 8080 of each address."""
    served_at = addresses or ("192.0.2.7",)
    base = {
        "metadata": {"labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in served_at],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }
    resource = Resource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
    return build(resource, name, namespace=namespace, **merged(base, parts))


def serviceaccount(name: str, *, namespace: str = NAMESPACE, **parts: Any) -> Obj:
    """Return a ServiceAccount."""
    return build(
        Resource("v1", "ServiceAccount", "serviceaccounts"),
        name,
        namespace=namespace,
        **parts,
    )


def namespace(name: str, **parts: Any) -> Obj:
    """Return a Namespace."""
    resource = Resource("v1", "Namespace", "namespaces", namespaced=False)
    return build(resource, name, **merged({"status": {"phase": "Active"}}, parts))


def node(name: str, **parts: Any) -> Obj:
    """Return a ready Node."""
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {
        "capacity": capacity,
        "allocatable": capacity,
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "Hostname", "address": name},
        ],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    base = {"metadata": {"labels": labels}, "spec": {}, "status": status}
    return build(Resource("v1", "Node", "nodes", namespaced=False), name, **merged(base, parts))


def pod(name: str, *, namespace: str = NAMESPACE, **parts: Any) -> Obj:
    """Return a Pod of one container, not scheduled yet, with the defaults of an API server."""
    base = {
        "spec": {
            "containers": [{"name": "app", "image": IMAGE}],
            "serviceAccountName": "default",
            "restartPolicy": "Always",
        },
        "status": {"phase": "Pending"},
    }
    return build(Resource("v1", "Pod", "pods"), name, namespace=namespace, **merged(base, parts))


def pod_mounting(
    name: str,
    *,
    secret: str = "",
    configmap: str = "",
    namespace: str = NAMESPACE,
    **parts: Any,
) -> Obj:
    """Return a Pod that mounts a Secret, a ConfigMap, or both."""
    volumes: list[Obj] = []
    if secret:
        volumes.append({"name": "secret", "secret": {"secretName": secret}})
    if configmap:
        volumes.append({"name": "config", "configMap": {"name": configmap}})
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    containers = [{"name": "app", "image": IMAGE, "volumeMounts": mounts}]
    base = {"spec": {"volumes": volumes, "containers": containers}}
    return pod(name, namespace=namespace, **merged(base, parts))


def ingress(
    name: str,
    *,
    service: str = "web",
    tls_secret: str = "",
    namespace: str = NAMESPACE,
    **parts: Any,
) -> Obj:
    """Return an Ingress for a host name that leads to port 80 of a Service."""
    backend = {"service": {"name": service, "port": {"number": 80}}}
    host = f"{name}.example.org"
    spec: Obj = {
        "rules": [
            {
                "host": host,
                "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
            }
        ]
    }
    if tls_secret:
        spec["tls"] = [{"hosts": [host], "secretName": tls_secret}]
    resource = Resource("networking.k8s.io/v1", "Ingress", "ingresses")
    return build(resource, name, namespace=namespace, **merged({"spec": spec}, parts))


def event(name: str, *, about: Obj, namespace: str = "", **parts: Any) -> Obj:
    """Return a warning Event about an object, in the object's namespace."""
    metadata = about["metadata"]
    event_namespace = namespace or metadata.get("namespace") or "default"
    regarding = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        **{key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata},
    }
    base = {
        "involvedObject": regarding,
        "type": "Warning",
        "reason": "BackOff",
        "message": f"{about['kind']} {metadata['name']} is in trouble",
        "source": {"component": "kubelet", "host": "node-1"},
        "count": 1,
        "firstTimestamp": "2026-01-01T12:00:00Z",
        "lastTimestamp": "2026-01-01T12:00:00Z",
    }
    return build(
        Resource("v1", "Event", "events"),
        name,
        namespace=event_namespace,
        **merged(base, parts),
    )


def crd(
    name: str,
    versions: Sequence[Obj] | None = None,
    *,
    scope: str = "Namespaced",
    **parts: Any,
) -> Obj:
    """Return a CustomResourceDefinition ``<plural>.<group>``, as an API server has it after its
    defaults.
    """
    plural, _, group = name.partition(".")
    kind = plural.removesuffix("s").capitalize()
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    known = list(versions if versions is not None else [crd_version("v1", storage=True)])
    spec = {
        "group": group,
        "names": names,
        "scope": scope,
        "versions": known,
        "conversion": {"strategy": "None"},
    }
    resource = Resource(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
    )
    return build(resource, name, **merged({"spec": spec}, parts))


def crd_version(name: str, *, storage: bool = False, served: bool = True, **parts: Any) -> Obj:
    """Return a version of a CustomResourceDefinition; ``spec`` and ``status`` of its objects take
    anything.
    """
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    base = {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
    }
    return merged(base, {"subresources": {"status": {}}, **parts})
