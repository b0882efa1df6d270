"""The workloads of the built-in kinds: what a tenant and the people on the host do to each, some seconds apart."""

from collections.abc import Callable
from typing import Any

from class_rows import (
    CSI,
    CSI_SYNCERS,
    DISK,
    NFS,
    STORAGE,
    TENANTS_PRIORITIES,
    TENANTS_PRIORITY,
    capacity,
    csi_node,
    fast,
    zoned,
)
from class_rows import ROWS as CLASSES
from harness import CLUSTER, HOME, NAMESPACE
from sampled import SAMPLES, define
from sieve_workload import (
    Act,
    Stage,
    Workload,
    balancer,
    both,
    configured,
    drop,
    drop_copy,
    drop_host,
    edit,
    edit_copy,
    edit_host,
    kubelet,
    nodes,
    on_host,
    put,
    start,
    stop,
)

from syncer.api import Obj, Resource, annotations_of, uid_of
from syncer.names import PerNamespace
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, VOLUME_SNAPSHOTS
from syncer.testing.merge import merged
from syncer.testing.objects import (
    build,
    configmap,
    endpointslice,
    ingress,
    namespace,
    pod_mounting,
    secret,
    service,
    serviceaccount,
)
from syncer.testing.samples import Sample

#: What makes Pods run, besides the kinds that they use.
RUNNING = ("pods", "nodes", "serviceaccounts")
LABELLED: Obj = {"metadata": {"labels": {"tier": "front"}}}
ALL = {"all": True}


def is_used(volume: str, name: str) -> Callable[[Stage, Obj, Obj], bool]:
    """Return True if a Pod mounts the object; ``volume`` and ``name`` are the fields of the volume."""

    def used(two: Stage, original: Obj, copy: Obj) -> bool:
        found = [one for each in two.virtual.objects("pods") for one in each["spec"].get("volumes") or ()]
        return any((one.get(volume) or {}).get(name) == original["metadata"]["name"] for one in found)

    return used


def configmaps() -> Workload:
    """ConfigMaps that Pods begin and cease to use."""
    return Workload(
        "configmaps",
        configured("configmaps", *RUNNING),
        (
            both(put(configmap("x")), put(configmap("idle"))),
            start(pod_mounting("web", configmap="x")),
            put(configmap("x", {"color": "red"})),
            edit_copy("configmaps", "x", {"data": {"color": "green"}}),
            drop_copy("configmaps", "x"),
            stop("web"),
            start(pod_mounting("web", configmap="x")),
            both(drop("configmaps", "x"), put(configmap("x", {"color": "white"}))),
            drop("configmaps", "x"),
        ),
        given=(nodes,),
        reactions=(kubelet,),
        wanted=is_used("configMap", "name"),
    )


def all_configmaps() -> Workload:
    """ConfigMaps that are all copied."""
    return Workload(
        "all-configmaps",
        configured("configmaps", toHost={"configMaps": ALL}),
        (
            both(put(configmap("x")), put(configmap("y"))),
            edit("configmaps", "x", {"data": {"size": "1"}, **LABELLED}),
            edit_copy("configmaps", "x", {"data": {"color": None}, "metadata": {"labels": {"tier": None}}}),
            edit("configmaps", "x", {"data": {"size": None}, "metadata": {"labels": {"tier": None}}}),
            drop_copy("configmaps", "y"),
            both(drop("configmaps", "x"), put(configmap("x", {"color": "red"}))),
            both(drop("configmaps", "y"), put(configmap("z"))),
            put(configmap("y", {"color": "white"})),
            drop("configmaps", "x"),
        ),
    )


def secrets() -> Workload:
    """Secrets that Pods use, one of them immutable."""
    fixed: Obj = {"immutable": True}

    def wanted(two: Stage, original: Obj, copy: Obj) -> bool:
        changed = bool(copy.get("immutable")) and copy.get("data") != original.get("data")
        return is_used("secret", "secretName")(two, original, copy) and not changed

    return Workload(
        "secrets",
        configured("secrets", *RUNNING),
        (
            both(put(secret("x")), put(secret("fixed", **fixed))),
            both(start(pod_mounting("web", secret="x")), start(pod_mounting("far", secret="fixed"))),
            put(secret("x", {"password": "tuna"})),
            edit_copy("secrets", "x", {"data": {"password": "bGVhZA=="}}),
            both(drop("secrets", "fixed"), put(secret("fixed", {"password": "cod"}, **fixed))),
            drop_copy("secrets", "x"),
            stop("web"),
            start(pod_mounting("web", secret="x")),
            drop("secrets", "fixed"),
        ),
        given=(nodes,),
        reactions=(kubelet,),
        wanted=wanted,
    )


def all_secrets() -> Workload:
    """Secrets that are all copied."""
    return Workload(
        "all-secrets",
        configured("secrets", toHost={"secrets": ALL}),
        (
            put(secret("x")),
            edit("secrets", "x", {"data": {"user": "bWU="}, **LABELLED}),
            edit_copy("secrets", "x", {"data": {"password": "bGVhZA=="}}),
            drop_copy("secrets", "x"),
            both(drop("secrets", "x"), put(secret("x", {"password": "tuna"}))),
            drop("secrets", "x"),
            put(secret("x", {"password": "cod"})),
        ),
    )


def services() -> Workload:
    """Services of several types, whose addresses and node ports flow back."""

    def wanted(two: Stage, original: Obj, copy: Obj) -> bool:
        headless = [one["spec"].get("clusterIP") == "None" for one in (original, copy)]
        return bool(headless[0] == headless[1])

    return Workload(
        "services",
        configured("services"),
        (
            both(put(service("web")), put(service("lb", spec={"type": "LoadBalancer"}))),
            edit("services", "web", {"spec": {"selector": {"tier": "front"}}, **LABELLED}),
            edit_copy("services", "web", {"spec": {"selector": {"app": "other"}}}),
            edit("services", "web", {"spec": {"type": "NodePort"}}),
            drop_copy("services", "lb"),
            both(drop("services", "web"), put(service("web", (81, 82), spec={"clusterIP": "None"}))),
            drop("services", "lb"),
            both(drop("services", "web"), put(service("web", (83,)))),
            put(service("lb", (84,), spec={"type": "LoadBalancer"})),
        ),
        given=(on_host(service("other", namespace="default", spec={"type": "NodePort"})),),
        reactions=(balancer("services"),),
        wanted=wanted,
    )


#: Addresses that Services of the host's own have.
TAKEN = ("10.96.99.1", "10.96.99.2", "10.96.99.3", "10.96.99.4")


def addresses() -> Workload:
    """Services whose addresses the host has given to others."""
    first, second, third, fourth = ({"spec": {"clusterIP": address}} for address in TAKEN)
    local: Obj = {"spec": {"internalTrafficPolicy": "Local", "sessionAffinity": "ClientIP"}}
    name: Obj = {"spec": {"type": "ExternalName", "externalName": "db.example.org"}}
    return Workload(
        "addresses",
        configured("services"),
        (
            put(merged(service("web"), first)),
            edit("services", "web", {"spec": {"selector": {"tier": "front"}}, **LABELLED}),
            both(put(merged(merged(service("db"), second), local)), drop_copy("services", "web")),
            drop_copy("services", "db"),
            both(drop("services", "web"), put(merged(service("web", (81, 82)), third))),
            both(drop("services", "db"), put(merged(service("db"), name))),
            both(drop("services", "db"), put(merged(service("db"), fourth))),
            edit("services", "db", {"spec": {"selector": {"tier": "back"}}}),
        ),
        given=tuple(
            on_host(service(f"theirs-{number}", namespace="default", spec={"clusterIP": address}))
            for number, address in enumerate(TAKEN)
        ),
        wanted=lambda two, original, copy: original["spec"]["type"] != "ExternalName",
    )


def classes() -> Workload:
    """Classes of the host of each kind, which are changed and recreated."""

    def edit_virtual(two: Stage) -> None:
        for row in CLASSES:
            if found := two.virtual.get(str(row.resource), "fast"):
                two.virtual.put(merged(found, {"metadata": {"labels": {"zone": "z"}}}))

    def shown(two: Stage, virtual: Obj) -> bool:
        [row] = [row for row in CLASSES if row.resource.kind == virtual["kind"]]
        found = two.host.get(str(row.resource), virtual["metadata"]["name"])
        return found is not None and (virtual == merged(virtual, row.other)) == (found == merged(found, row.other))

    def lose(two: Stage) -> None:
        for row in CLASSES:
            two.virtual.delete(str(row.resource), "fast")

    return Workload(
        "classes",
        configured(*(row.syncer for row in CLASSES), fromHost={row.section: {"enabled": True} for row in CLASSES}),
        (
            both(*(on_host(row.named("fast")) for row in CLASSES)),
            both(*(edit_host(str(row.resource), "fast", row.edit) for row in CLASSES)),
            edit_virtual,
            both(*(edit_host(str(row.resource), "fast", row.other) for row in CLASSES)),
            lose,
            both(*(drop_host(str(row.resource), "fast") for row in CLASSES)),
            both(*(on_host(row.named("fast")) for row in CLASSES)),
        ),
        given=(lambda two: define(two.virtual, two.host, *(SAMPLES[row.syncer] for row in CLASSES)),),
        shown=shown,
    )


def csi() -> Workload:
    """A CSINode and a capacity, whose node, class and contents change, go and come back."""
    nodes = "csinodes.storage.k8s.io"
    capacities = "csistoragecapacities.storage.k8s.io"
    of_class = "storageclasses.storage.k8s.io"

    def spoil(two: Stage) -> None:
        if found := two.virtual.get(capacities, f"kube-system/{STORAGE}.x"):
            two.virtual.put(merged(found, {"capacity": "9Ti"}))
        if found := two.virtual.get(nodes, "n1"):
            two.virtual.put(merged(found, {"spec": {"drivers": [{**DISK, "nodeID": "n1"}]}}))

    def lose(two: Stage) -> None:
        two.virtual.delete(capacities, f"kube-system/{STORAGE}.x")
        two.virtual.delete(nodes, "n1")

    def shown(two: Stage, virtual: Obj) -> bool:
        node = two.host.get("nodes", "n1")
        name = virtual["metadata"]["name"]
        if virtual["kind"] == "CSIStorageCapacity":
            in_zone = node is not None and node["metadata"]["labels"] == zoned("n1")["metadata"]["labels"]
            found = two.host.get(capacities, f"{STORAGE}/x")
            return in_zone and found is not None and two.host.get(of_class, "fast") is not None
        plurals = {"Node": "nodes", "CSINode": nodes, "StorageClass": of_class}
        found = two.host.get(plurals[virtual["kind"]], name)
        return found is not None and (virtual["kind"] != "CSINode" or node is not None)

    return Workload(
        "csi",
        configured(*CSI_SYNCERS, fromHost=CSI),
        (
            both(on_host(zoned("n1")), on_host(fast()), on_host(csi_node("n1")), on_host(capacity("x"))),
            both(
                edit_host(capacities, f"{STORAGE}/x", {"capacity": "4Gi"}),
                edit_host(nodes, "n1", {"spec": {"drivers": [DISK, NFS]}}),
            ),
            spoil,
            edit_host("nodes", "n1", {"metadata": {"labels": {"topology.kubernetes.io/zone": "b"}}}),
            both(on_host(zoned("n1")), drop_host(of_class, "fast")),
            both(on_host(fast()), edit_host(nodes, "n1", {"spec": {"drivers": [{**DISK, "nodeID": "i-9"}]}})),
            lose,
            both(drop_host("nodes", "n1"), drop_host(capacities, f"{STORAGE}/x")),
            both(on_host(zoned("n1")), on_host(capacity("x"))),
        ),
        shown=shown,
    )


CLAIM: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def claim(name: str, **spec: Any) -> Obj:
    """A claim of the shop."""
    return build(PERSISTENT_VOLUME_CLAIMS, name, spec={**CLAIM, **spec})


def provide(two: Stage) -> None:
    """Bind each claim of the host to a volume of its own."""
    for each in two.host.objects("persistentvolumeclaims"):
        if not each["spec"].get("volumeName"):
            status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
            volume = f"pvc-{each['metadata']['uid']}"
            two.host.put(merged(each, {"spec": {"volumeName": volume}, "status": status}))


def is_bound(two: Stage, virtual: Obj) -> bool:
    """Return True if the copy of a claim that is still there has the volume that a stand-in is for."""
    kind = "persistentvolumeclaims"
    originals = {uid_of(each) for each in two.virtual.objects(kind)}
    for copy in two.host.objects(kind):
        if copy["spec"].get("volumeName") == virtual["metadata"]["name"]:
            return annotations_of(copy).get("vsyncer.dev/virtual-uid") in originals
    return False


def volumes() -> Workload:
    """Stand-ins of the volumes of claims, of which one is lost and one made again."""
    kind = "persistentvolumeclaims"
    volumes = "persistentvolumes"

    def spoil(two: Stage) -> None:
        for each in two.virtual.objects(volumes):
            two.virtual.put(merged(each, {"spec": {"capacity": {"storage": "9Gi"}}, "status": {"phase": "Failed"}}))

    def lose(two: Stage) -> None:
        for each in two.virtual.objects(volumes):
            two.virtual.delete(volumes, each["metadata"]["name"])

    return Workload(
        volumes,
        configured(kind, volumes),
        (
            both(put(claim("x")), put(claim("y"))),
            spoil,
            lose,
            drop(kind, "y"),
            both(drop(kind, "x"), put(claim("x"))),
            put(claim("y")),
            both(drop(kind, "x"), drop(kind, "y")),
        ),
        reactions=(provide,),
        shown=is_bound,
    )


def restored() -> Workload:
    """Claims that have their data from a snapshot or from another claim, and outlive it."""
    kind = "persistentvolumeclaims"
    snapshots = str(VOLUME_SNAPSHOTS)

    def snapshot(name: str, of: str) -> Obj:
        return build(VOLUME_SNAPSHOTS, name, spec={"source": {"persistentVolumeClaimName": of}})

    def copied(name: str, source: Resource, of: str) -> Obj:
        """A claim with its source as an API server stores it."""
        named = {"kind": source.kind, "name": of}
        if source.group:
            named["apiGroup"] = source.group
        return claim(name, dataSource=named, dataSourceRef=named)

    def take(two: Stage) -> None:
        for each in two.host.objects(snapshots):
            if not each.get("status"):
                content = f"snapcontent-{each['metadata']['uid']}"
                status = {"boundVolumeSnapshotContentName": content, "readyToUse": True, "restoreSize": "1Gi"}
                two.host.put(merged(each, {"status": status}))

    again = copied("again", VOLUME_SNAPSHOTS, "daily")
    return Workload(
        "restored",
        configured(kind, "persistentvolumes", "volumesnapshots", toHost={"volumeSnapshots": {"enabled": True}}),
        (
            put(claim("data")),
            put(snapshot("daily", of="data")),
            both(drop(kind, "data"), put(again)),
            put(copied("cloned", PERSISTENT_VOLUME_CLAIMS, "again")),
            both(drop(snapshots, "daily"), put(claim("data"))),
            both(put(snapshot("daily", of="data")), drop(kind, "again"), put(again)),
            both(drop(snapshots, "daily"), put(snapshot("daily", of="again"))),
            both(drop(kind, "cloned"), drop(snapshots, "daily")),
        ),
        given=(lambda two: define(two.virtual, two.host, SAMPLES["volumesnapshots"]),),
        reactions=(provide, take),
        shown=is_bound,
    )


def listed() -> Workload:
    """A listed ConfigMap and Secret of the host, with the copy of one for the tenant's Pods."""
    kind, host_key = "configmaps", "infra/x"
    options = {"enabled": True, "mappings": {"byName": {host_key: f"{NAMESPACE}/x"}}}

    def shown(two: Stage, virtual: Obj) -> bool:
        found = two.host.get("secrets" if virtual["kind"] == "Secret" else kind, host_key)
        return found is not None and found.get("type") == virtual.get("type")

    return Workload(
        "listed",
        configured(
            "configmaps",
            "host-configmaps",
            "host-secrets",
            toHost={"configMaps": ALL},
            fromHost={"configMaps": options, "secrets": options},
        ),
        (
            both(on_host(configmap("x", namespace="infra")), on_host(secret("x", namespace="infra"))),
            edit_host(kind, host_key, {"data": {"color": "red"}}),
            both(
                edit(kind, "x", {"data": {"color": "white", "more": "1"}}),
                edit("secrets", "x", {"data": {"password": "bGVhZA=="}}),
            ),
            drop(kind, "x"),
            edit_copy(kind, "x", {"data": {"color": "green"}}),
            both(drop_copy(kind, "x"), edit_host(kind, host_key, {"data": {"size": "1"}})),
            both(drop_host(kind, host_key), drop_host("secrets", host_key)),
            both(
                on_host(configmap("x", namespace="infra")),
                on_host(secret("x", namespace="infra", type="example.org/key")),
            ),
        ),
        shown=shown,
    )


def listed_services() -> Workload:
    """A listed Service of the host, with the endpoints of its Pods."""
    kind, host_key, slices = "services", "infra/x", "endpointslices.discovery.k8s.io"
    of_host: Obj = endpointslice("x-1", service="x", namespace="infra")

    def shown(two: Stage, virtual: Obj) -> bool:
        return two.host.get(kind, host_key) is not None

    return Workload(
        "listed-services",
        configured(
            "host-services",
            fromHost={"services": {"enabled": True, "mappings": {"byName": {host_key: f"{NAMESPACE}/x"}}}},
        ),
        (
            on_host(service("x", namespace="infra")),
            on_host(of_host),
            edit_host(kind, host_key, {"spec": {"ports": [{"name": "other", "port": 9}]}}),
            edit(kind, "x", {"spec": {"selector": {"app": "mine"}}}),
            edit(slices, "x", {"endpoints": []}),
            drop(slices, "x"),
            both(drop(kind, "x"), drop_host(slices, "infra/x-1")),
            on_host(of_host),
            drop_host(kind, host_key),
            on_host(service("x", namespace="infra", spec={"clusterIP": "None"})),
        ),
        shown=shown,
    )


def published_services() -> Workload:
    """A Service under a name on the host, with the endpoints of its copy."""
    kind, host_key, slices = "services", "infra/p-x", "endpointslices.discovery.k8s.io"
    options = {"enabled": True, "namespaces": ["infra"], "mappings": {"byName": {f"{NAMESPACE}/*": "infra/p-*"}}}

    def provide(two: Stage) -> None:
        """The host's controller makes the slice of each copy, with the labels of that."""
        for each in two.host.objects(kind):
            name, space = each["metadata"]["name"], each["metadata"]["namespace"]
            if space != HOME:
                continue
            addresses = ("10.1.0.2", "10.1.0.3") if each["spec"].get("clusterIP") == "None" else ("10.1.0.1",)
            of_copy = endpointslice(f"{name}-1", *addresses, service=name, namespace=HOME)
            there = two.host.get(slices, f"{HOME}/{name}-1")
            if there is None or there["endpoints"] != of_copy["endpoints"]:
                two.host.put(merged(of_copy, {"metadata": {"labels": each["metadata"]["labels"]}}))

    def wanted(two: Stage, original: Obj, copy: Obj) -> bool:
        is_slice = copy["kind"] == "EndpointSlice"
        is_published = copy["metadata"]["namespace"] == "infra"
        if is_published:
            return not is_slice and two.host.get(kind, two.host_path("x")) is not None
        return bool((original["spec"].get("clusterIP") == "None") == (copy["spec"].get("clusterIP") == "None"))

    return Workload(
        "published-services",
        configured("services", "published-services", toHost={"publishedServices": options}),
        (
            put(service("x")),
            edit_host(kind, host_key, {"spec": {"ports": [{"name": "other", "port": 9}]}}),
            edit(kind, "x", {"spec": {"ports": [{"name": "more", "port": 81}]}}),
            edit_host(slices, host_key, {"endpoints": []}),
            drop_host(slices, host_key),
            drop_host(kind, host_key),
            drop_copy(kind, "x"),
            both(drop(kind, "x"), put(service("x", spec={"clusterIP": "None"}))),
            drop(kind, "x"),
            put(service("x", (83,))),
        ),
        given=(on_host(namespace("infra")),),
        reactions=(provide,),
        wanted=wanted,
    )


def priorities() -> Workload:
    """A tenant's own PriorityClass, which has no namespace."""
    kind, made = str(TENANTS_PRIORITY.resource), TENANTS_PRIORITY.named("fast")
    copy = f"fast-x-{CLUSTER}-x-{HOME}"
    return Workload(
        "tenant-priorityclasses",
        configured("tenant-priorityclasses", **TENANTS_PRIORITIES),
        (
            put(made),
            lambda two: two.virtual.put(merged(two.virtual.get(kind, "fast") or made, TENANTS_PRIORITY.edit)),
            edit_host(kind, copy, {"description": "theirs"}),
            drop_host(kind, copy),
            both(lambda two: two.virtual.delete(kind, "fast"), put(merged(made, {"value": 5}))),
            lambda two: two.virtual.delete(kind, "fast"),
            put(made),
        ),
    )


def ingresses() -> Workload:
    """Ingresses, with the Secret of a certificate."""
    secured = ingress("web", tls_secret="cert")

    def wanted(two: Stage, original: Obj, copy: Obj) -> bool:
        if original["kind"] != "Secret":
            return True
        found = [
            one for each in two.virtual.objects("ingresses.networking.k8s.io") for one in each["spec"].get("tls") or ()
        ]
        return any(one["secretName"] == original["metadata"]["name"] for one in found)

    kind = "ingresses.networking.k8s.io"
    return Workload(
        "ingresses",
        configured("ingresses", "secrets", toHost={"ingresses": {"enabled": True}}),
        (
            both(put(secret("cert")), put(ingress("web"))),
            put(secured),
            edit_copy(kind, "web", {"spec": {"tls": None}}),
            edit(kind, "web", {"spec": {"ingressClassName": "fast"}, **LABELLED}),
            drop_copy(kind, "web"),
            both(drop(kind, "web"), put(merged(secured, LABELLED))),
            drop("secrets", "cert"),
            drop(kind, "web"),
            both(put(secret("cert", {"tls": "new"})), put(secured)),
        ),
        reactions=(balancer(kind),),
        wanted=wanted,
    )


def serviceaccounts() -> Workload:
    """ServiceAccounts."""
    return Workload(
        "serviceaccounts",
        configured("serviceaccounts"),
        (
            put(serviceaccount("bot")),
            edit("serviceaccounts", "bot", LABELLED),
            edit_copy("serviceaccounts", "bot", {"automountServiceAccountToken": True}),
            drop_copy("serviceaccounts", "bot"),
            both(drop("serviceaccounts", "bot"), put(serviceaccount("bot", **LABELLED))),
            drop("serviceaccounts", "bot"),
            put(serviceaccount("bot")),
        ),
    )


#: What the operator gives each host namespace.
QUOTA = {"hard": {"pods": "10"}}


def namespaces() -> Workload:
    """Namespaces where each virtual one has its own on the host."""
    settings = configmap("x", namespace="blog")
    return Workload(
        "namespaces",
        configured(
            "namespaces",
            "configmaps",
            translator=PerNamespace,
            toHost={"configMaps": ALL, "namespaces": {"quota": QUOTA, "metadata": {"labels": {"allow": ["tier"]}}}},
        ),
        (
            put(namespace("blog")),
            put(settings),
            lambda two: two.virtual.put(merged(two.virtual.get("namespaces", "blog") or namespace("blog"), LABELLED)),
            merge_home({"metadata": {"labels": {"tier": "wrong"}}}),
            lambda two: two.virtual.delete("namespaces", "blog"),
            both(put(namespace("blog")), put(configmap("y", namespace="blog"))),
            drop_home,
            drop("configmaps", "y", "blog"),
        ),
    )


def homes(two: Stage) -> list[Obj]:
    """The host namespaces of the blog."""
    marks = [(one, one["metadata"].get("annotations") or {}) for one in two.host.objects("namespaces")]
    return [one for one, annotations in marks if annotations.get("vsyncer.dev/virtual-name") == "blog"]


def merge_home(parts: Obj) -> Act:
    """A user edits the host namespace of the blog."""
    return lambda two: [two.host.put(merged(one, parts)) for one in homes(two)]


def drop_home(two: Stage) -> None:
    """A user deletes the host namespace of the blog."""
    for one in homes(two):
        two.host.delete("namespaces", one["metadata"]["name"])


def sampled(sample: Sample) -> Workload:
    """A kind of which nothing is known but its sample."""
    kind, name = sample.plural, sample.name
    report, again = sample.reports or ({}, {})
    labelled = sample.object("x", **LABELLED)
    return Workload(
        name,
        configured(name, *(each.name for each in sample.together), **sample.sync),
        (
            both(put(sample.object("x")), put(sample.object("y"))),
            edit(kind, "x", merged(sample.change, LABELLED)),
            edit_copy(kind, "x", report),
            edit_copy(kind, "x", sample.tampered),
            drop_copy(kind, "y"),
            both(drop(kind, "x"), put(labelled)),
            edit_copy(kind, "x", again),
            drop(kind, "y"),
            drop(kind, "x"),
            put(sample.object("x")),
        ),
        given=(lambda two: define(two.virtual, two.host, sample),),
    )
