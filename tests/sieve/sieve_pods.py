"""The workloads of Pods and of what comes with them: tokens, Events, and the nodes that they are on."""

from harness import HOME, NAMESPACE
from sieve_kinds import LABELLED, RUNNING
from sieve_workload import (
    Act,
    Stage,
    Workload,
    both,
    configured,
    drop,
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

from syncer.api import Obj
from syncer.testing.merge import merged
from syncer.testing.objects import event, node, pod, service, serviceaccount


def events() -> Workload:
    """Return the workload of the host's reports about copies."""

    def report(name: str, count: int) -> Act:
        """The kubelet reports a Pod, once it is there, and again until the daemon could have got the report."""
        return lambda two: two.host.put(_about(two.host_path(name), count))

    def _about(host_path: str, count: int) -> Obj:
        about = pod(host_path.partition("/")[2], namespace=HOME)
        about["metadata"].pop("uid", None)
        return event(f"{about['metadata']['name']}.17ab", about=about, count=count)

    return Workload(
        "events",
        configured("events", *RUNNING),
        (
            both(start(pod("web")), start(pod("far"))),
            report("web", 1),
            report("web", 2),
            both(report("far", 1), report("web", 3)),
            report("far", 2),
            report("web", 4),
        ),
        given=(nodes,),
        reactions=(kubelet,),
    )


def pods() -> Workload:
    """Pods from their birth to their end: run, finish, stopped, deleted, lost by the host, recreated."""
    gated = pod("gated", spec={"schedulingGates": [{"name": "example.org/wait"}]})
    return Workload(
        "pods",
        configured("configmaps", "secrets", "services", "pod-tokens", *RUNNING),
        (
            both(put(service("db")), start(pod("web")), start(gated)),
            both(start(pod("done")), edit("pods", "web", LABELLED)),
            start(pod("doomed")),
            edit_copy("pods", "web", {"metadata": {"labels": {"tier": "wrong"}}}),
            edit("pods", "gated", {"spec": {"schedulingGates": None}}),
            both(stop("web"), start(pod("far"))),
            both(start(pod("web")), drop("pods", "done")),
            drop("pods", "gated"),
            both(drop("pods", "far"), start(pod("far"))),
            stop("web"),
        ),
        given=(nodes,),
        reactions=(kubelet,),
    )


def changes() -> Workload:
    """A running Pod that is resized, and gets ephemeral containers, which go through subresources of the host."""

    def sized(cpu: str) -> list[Obj]:
        return [{"name": "app", "image": "i", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "1"}}}]

    def resize(name: str, cpu: str) -> Act:
        def resized(two: Stage) -> None:
            found = two.virtual.get("pods", f"{NAMESPACE}/{name}")
            if found is not None:
                [container] = found["spec"]["containers"]
                two.virtual.put(merged(found, {"spec": {"containers": [merged(container, sized(cpu)[0])]}}))

        return resized

    def debugged(*names: str) -> Act:
        containers = [{"name": name, "image": "busybox"} for name in names]
        return edit("pods", "web", {"spec": {"ephemeralContainers": containers}})

    return Workload(
        "changes",
        configured("services", *RUNNING),
        (
            start(pod("web", spec={"containers": sized("100m")})),
            resize("web", "200m"),
            debugged("debug"),
            both(resize("web", "300m"), edit_copy("pods", "web", LABELLED)),
            both(debugged("debug", "second"), resize("web", "400m")),
            both(stop("web"), start(pod("far", spec={"containers": sized("100m")}))),
            resize("far", "200m"),
        ),
        given=(nodes,),
        reactions=(kubelet,),
    )


def tokens() -> Workload:
    """Pods with tokens of their ServiceAccounts."""
    volume = {
        "name": "t",
        "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]},
    }
    mounting: Obj = {"spec": {"serviceAccountName": "bot", "volumes": [volume]}}

    def spoil(two: Stage) -> None:
        found = two.host.get("secrets", f"{two.host_path('web')}.pod-tokens")
        if found is not None:
            two.host.put(merged(found, {"data": dict.fromkeys(found.get("data") or ())}))

    def lose(two: Stage) -> None:
        for one in two.host.objects("secrets", HOME):
            two.host.delete("secrets", f"{HOME}/{one['metadata']['name']}")

    return Workload(
        "pod-tokens",
        configured("pod-tokens", *RUNNING),
        (
            both(put(serviceaccount("bot")), start(pod("web", **mounting))),
            spoil,
            lose,
            both(stop("web"), start(pod("far", **mounting))),
            start(pod("web", **mounting)),
            both(drop("pods", "far"), start(pod("far", **mounting))),
            drop("serviceaccounts", "bot"),
            both(put(serviceaccount("bot")), stop("web")),
        ),
        given=(nodes,),
        reactions=(kubelet,),
    )


def _on(two: Stage, node: str) -> list[Obj]:
    """The copies of the virtual cluster's Pods on a node."""
    ours = [one for one in two.host.objects("pods", HOME) if one["metadata"]["name"].endswith(f"-x-{two.cluster}")]
    return [one for one in ours if one["spec"].get("nodeName") == node]


def stand_ins() -> Workload:
    """Nodes that stand in the virtual cluster for those that Pods are on."""

    def spoil(two: Stage) -> None:
        found = two.virtual.get("nodes", "n1")
        if found is not None:
            two.virtual.put(merged(found, {"status": {"capacity": {"cpu": "1"}}}))

    def shown(two: Stage, virtual: Obj) -> bool:
        return bool(_on(two, virtual["metadata"]["name"]))

    return Workload(
        "nodes",
        configured(*RUNNING),
        (
            start(pod("web")),
            both(start(pod("other")), start(pod("far"))),
            spoil,
            lambda two: two.virtual.delete("nodes", "n1"),
            stop("web"),
            stop("far"),
            stop("other"),
            start(pod("far")),
        ),
        given=(nodes,),
        reactions=(kubelet,),
        shown=shown,
    )


def nodes_of_host() -> Workload:
    """Nodes of the host that appear, and one that a Pod is on and that goes."""
    tainted = {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}

    def spoil(two: Stage) -> None:
        found = two.virtual.get("nodes", "n2")
        if found is not None:
            two.virtual.put(merged(found, {"status": {"capacity": {"cpu": "1"}}}))

    def shown(two: Stage, virtual: Obj) -> bool:
        name = virtual["metadata"]["name"]
        return bool(_on(two, name)) or two.host.get("nodes", name) is not None

    return Workload(
        "host-nodes",
        configured("pods", "host-nodes", "serviceaccounts", fromHost={"nodes": {"enabled": True}}),
        (
            on_host(node("n2")),
            start(pod("web")),
            edit_host("nodes", "n2", tainted),
            spoil,
            lambda two: two.virtual.delete("nodes", "n2"),
            drop_host("nodes", "n1"),
            drop_host("nodes", "n2"),
            stop("web"),
            on_host(node("n2")),
        ),
        given=(nodes,),
        reactions=(kubelet,),
        shown=shown,
    )
