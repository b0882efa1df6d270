"""Invariants of every single write, whatever has gone wrong before."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from chaos.daemons import OURS
from harness import HOME
from sieve_wire import DAEMON, Traffic
from sieve_workload import Stage, Workload, always

from kube_envtest import Change
from syncer.api import Obj, Side, annotations_of, dig, is_deleting, labels_of, uid_of

PREFIX = "vsyncer.dev"

#: Paths of a tenant's object that ours may write, besides its status.
_UP = frozenset(
    {
        ("PersistentVolumeClaim", "volumeName"),
        ("Pod", "nodeName"),
        ("Service", "ports"),
        ("Service", "clusterIP"),
        ("Service", "clusterIPs"),
    }
)
#: The mark on a virtual Service whose address is changed, which has the spec that it gets again.
_ADDRESS = f"{PREFIX}/address"
#: That on a virtual object whose copy isn't made again once the host has deleted it.
_COPIED = f"{PREFIX}/copied"


@dataclass(slots=True)
class Safety:
    """Follows both servers and notes what a daemon should never have done."""

    two: Stage
    workload: Workload
    traffic: Traffic
    #: The host's virtual clusters besides this one, whose copies are looked at by others.
    others: Collection[str] = ()
    problems: list[str] = field(default_factory=list)
    #: Virtual uids of host Pods that a kubelet has started.
    started: set[str] = field(default_factory=set)
    #: Uids of virtual Pods that were bound. Of one that the host has started and lost before that, nothing is left to
    #: tell the next daemon of it.
    bound: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Follow from now on."""
        self.two.host.follow(self._host)
        self.two.virtual.follow(self._virtual)

    # -- on the host -------------------------------------------------------------------------------

    def _host(self, change: Change) -> None:
        if change.resource == "leases.coordination.k8s.io":
            return
        if _is_daemon(change.user) and cluster_of(change.before or change.obj) not in self.others:
            self._host_written(change)
        after = change.after
        if change.resource == "pods" and after is not None and (after.get("status") or {}).get("startTime"):
            self.started.add(annotations_of(after).get(f"{PREFIX}/virtual-uid", ""))

    def _host_written(self, change: Change) -> None:
        before, after = change.before, change.after
        if before is not None and not self._is_ours(before):
            self._report(Side.HOST, change, "is not ours, and was written or deleted")
        if after is not None and not self._is_ours(after):
            self._report(Side.HOST, change, "was left without our mark")
        if before is None and change.resource == "pods" and self._uid(change.obj) in self.started & self.bound:
            self._report(Side.HOST, change, "is started a second time")
        if before is not None and not is_deleting(before) and (after is None or is_deleting(after)):
            self._ended(change, before)

    def _is_ours(self, obj: Obj) -> bool:
        return cluster_of(obj) == self.two.cluster

    def _ended(self, change: Change, copy: Obj) -> None:
        """A copy may go when its original has, or has changed into another, or doesn't want one any more."""
        original = self._original(copy)
        if original is None or is_deleting(original) or uid_of(original) != self._uid(copy):
            return
        if self.traffic.blind and self.workload.wanted is not always:
            return
        if self.workload.wanted(self.two, original, copy):
            self._report(Side.HOST, change, "was deleted though its original is there and wants it")

    def _original(self, copy: Obj) -> Obj | None:
        marks = annotations_of(copy)
        resource = resource_of(marks.get(f"{PREFIX}/virtual-kind", ""))
        key = f"{marks.get(f'{PREFIX}/virtual-namespace', '')}/{marks.get(f'{PREFIX}/virtual-name')}"
        return self.two.virtual.get(resource, key)

    def _uid(self, copy: Obj) -> str:
        return annotations_of(copy).get(f"{PREFIX}/virtual-uid", "")

    # -- on the virtual side -----------------------------------------------------------------------

    def _virtual(self, change: Change) -> None:
        if change.resource == "pods" and (change.obj.get("spec") or {}).get("nodeName"):
            self.bound.add(uid_of(change.obj))
        if not _is_daemon(change.user) or change.resource == "events":
            return
        before, after = change.before, change.after
        if before is None:
            if after is not None and not labels_of(after).get(f"{PREFIX}/cluster"):
                self._report(Side.VIRTUAL, change, "was made without our mark")
        elif labels_of(before).get(f"{PREFIX}/cluster"):
            if (after is None or is_deleting(after)) and not is_deleting(before):
                self._taken_away(change, before)
        elif after is None or (is_deleting(after) and not is_deleting(before)):
            self._tenants_deleted(change, before)
        else:
            self._tenants_written(change, before, after)

    def _taken_away(self, change: Change, before: Obj) -> None:
        if not self.traffic.blind and self.workload.shown(self.two, before):
            self._report(Side.VIRTUAL, change, "was taken away though the host still shows it")

    def _tenants_deleted(self, change: Change, before: Obj) -> None:
        """Only a Pod may be: that the tenant has deleted, or that had started and the host has lost or is stopping."""
        if change.resource != "pods":
            self._report(Side.VIRTUAL, change, "is the tenant's, and was deleted")
            return
        runs = [
            one for one in self.two.host.objects("pods") if self._uid(one) == uid_of(before) and not is_deleting(one)
        ]
        if runs:
            self._report(Side.VIRTUAL, change, "was deleted though the host runs it")
        elif not is_deleting(before) and uid_of(before) not in self.started:
            self._report(Side.VIRTUAL, change, "was deleted though it has never been started")

    def _tenants_written(self, change: Change, before: Obj, after: Obj) -> None:
        if _tenants_part(before) != _tenants_part(after):
            self._report(Side.VIRTUAL, change, "is the tenant's, and more than what comes up was changed in it")

    def _report(self, side: Side, change: Change, fault: str) -> None:
        metadata = change.obj["metadata"]
        self.problems.append(f"{side} {change.resource} {metadata.get('namespace', '')}/{metadata['name']} {fault}")


def resource_of(kind: str) -> str:
    """The resource that a kind mark (``Pod``, ``Ingress.networking.k8s.io``) stands for."""
    name, _, group = kind.lower().partition(".")
    plural = f"{name}es" if name.endswith("s") else f"{name}s"
    return f"{plural}.{group}" if group else plural


def _is_daemon(user: str) -> bool:
    return user == DAEMON or user.startswith(OURS)


def cluster_of(obj: Obj) -> str:
    """Return the virtual cluster whose mark an object bears; ``""`` for none."""
    return labels_of(obj).get(f"{PREFIX}/cluster", "").removesuffix(f".{HOME}")


def _tenants_part(obj: Obj) -> Any:
    """Return the tenant's own part of an object."""
    spec = obj.get("spec") or {}
    if noted := json.loads(annotations_of(obj).get(_ADDRESS, "{}")).get("was"):
        spec = {**noted, **{name: value for name, value in spec.items() if name not in ("type", "externalName")}}
    spec = {name: value for name, value in spec.items() if (obj["kind"], name) not in _UP}
    metadata = {part: dict(dig(obj, f"metadata.{part}") or {}) for part in ("labels", "annotations")}
    for mark in (_ADDRESS, _COPIED):
        metadata["annotations"].pop(mark, None)
    return spec, obj.get("data"), metadata, dig(obj, "metadata.finalizers")
