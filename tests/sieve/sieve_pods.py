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
    edit,
    edit_copy,
    kubelet,
    nodes,
    put,
    start,
    stop,
)

from syncer.api import Obj
from syncer.testing.merge import merged
from syncer.testing.objects import event, pod, service, serviceaccount


def events() -> Workload:
    """What the host reports about copies."""

    def report(name: str, count: int) -> Act:
        """The kubelet tells of a Pod, once it is there; it tells again until somebody could have heard."""
        return lambda two: two.host.put(_about(name, count))

    def _about(name: str, count: int) -> Obj:
        about = pod(f"{name}-x-{NAMESPACE}-x-vc", namespace=HOME)
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
    """Pods from their birth to their end: run, finish, stopped, deleted, lost by the host, made anew."""
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


def tokens() -> Workload:
    """Pods with tokens of their ServiceAccounts."""
    volume = {
        "name": "t",
        "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]},
    }
    mounting: Obj = {"spec": {"serviceAccountName": "bot", "volumes": [volume]}}
    key = f"web-x-{NAMESPACE}-x-vc.pod-tokens"

    def spoil(two: Stage) -> None:
        found = two.host.get("secrets", f"{HOME}/{key}")
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


def stand_ins() -> Workload:
    """Nodes that stand in the virtual cluster for those that Pods are on."""

    def spoil(two: Stage) -> None:
        found = two.virtual.get("nodes", "n1")
        if found is not None:
            two.virtual.put(merged(found, {"status": {"capacity": {"cpu": "1"}}}))

    def shown(two: Stage, virtual: Obj) -> bool:
        on = [
            one for one in two.host.objects("pods", HOME) if one["spec"].get("nodeName") == virtual["metadata"]["name"]
        ]
        return bool(on)

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
