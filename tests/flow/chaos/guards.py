"""Invariants of a play, checked with each change that a server stores."""

from collections.abc import Callable, Mapping

from chaos.daemons import OURS, SYSTEM, Cast
from chaos.servers import Server
from kube_envtest.apiserver.storage import Event
from syncer.api import Obj, annotations_of, is_deleting, labels_of, uid_of
from syncer.api.marks import Marks
from syncer.resources.pods.lifecycle import has_started

MARKS = Marks()
#: Tables of what isn't synced: Leases; and Events, which a candidate may still tell after its term.
_APART = ("coordination.k8s.io/leases", "/events")


class Guards:
    """Listens to the servers, and reports changes that must not happen."""

    def __init__(self, host: Server, tenants: Mapping[str, Server], cast: Cast, wrong: Callable[[str], None]) -> None:
        self._host, self._tenants, self._cast, self._wrong = host, tenants, cast, wrong
        #: The virtual cluster of each uid that there ever was in one.
        self._homes: dict[str, str] = {}
        #: The uids of virtual Pods whose host pod somebody else has deleted, or taken for another one's.
        self._lost: set[str] = set()
        #: The uids of virtual Pods that were seen to have started.
        self._started: set[str] = set()
        #: Processes that are dead, and may lead no more; what they had under way may still land.
        self.dead: set[str] = set()
        host.listen(self._on_host)
        for name, server in tenants.items():
            server.listen(self._on_virtual(name, server))

    def _on_host(self, table: str, event: Event) -> None:
        now, before = event.entry.obj, event.previous.obj if event.previous else None
        if not self._host.by.startswith(OURS):
            if table == "/pods":
                self._hurt(now, before, ended=event.type == "DELETED" or is_deleting(now))
            return
        if table in _APART:
            return
        write = f"{self._host.by}: {event.type} host {_named(table, now)}"
        self._led(write, self._host.by, owner_of(before or now))
        for obj in (now, before) if before else (now,):
            owner, uid = owner_of(obj), annotations_of(obj).get(MARKS.uid, "")
            if obj is now and event.type == "ADDED" and self._homes.get(uid, owner) != owner:
                self._wrong(f"{write}, which is of {self._homes[uid]}, and bears the mark of {owner}")
            if owner not in self._tenants:
                self._wrong(f"{write}, which bears no mark")
            elif obj["metadata"].get("namespace") != home(owner):
                self._wrong(f"{write}, which is in the wrong place for {owner}")
        if table == "/pods" and event.type == "ADDED":
            self._once(write, annotations_of(now).get(MARKS.uid, ""))

    def _hurt(self, now: Obj, before: Obj | None, *, ended: bool) -> None:
        """Note whose host pod another user has ended, or has made that of another object by its uid mark."""
        uid, was = (annotations_of(one).get(MARKS.uid, "") if one else "" for one in (now, before))
        if ended or (was and was != uid):
            self._lost |= {uid, was}

    def _once(self, write: str, uid: str) -> None:
        if uid in self._started:
            self._wrong(f"{write}, whose virtual Pod had started")

    def _on_virtual(self, name: str, server: Server) -> Callable[[str, Event], None]:
        def changed(table: str, event: Event) -> None:
            now, before = event.entry.obj, event.previous.obj if event.previous else None
            self._homes[uid_of(now)] = name
            if table == "/pods" and has_started(now):
                self._started.add(uid_of(now))
            if not server.by.startswith(OURS) or table in _APART:
                return
            write = f"{server.by}: {event.type} {name} {_named(table, now)}"
            self._led(write, server.by, name)
            if owner_of(before or now) == name:
                return
            if before is None:
                self._wrong(f"{write}, which bears no mark")
            elif is_deleting(before):
                return  # it was deleted before, and ends now
            elif event.type == "DELETED" or is_deleting(now):
                if table != "/pods" or uid_of(before) not in self._lost:
                    self._wrong(f"{write}, which is the tenant's")
            else:
                self._unchanged(write, table, before, now)

        return changed

    def _led(self, write: str, user: str, tenant: str) -> None:
        lease = self._host.get("leases.coordination.k8s.io", f"{SYSTEM}/{self._cast.lease(tenant)}")
        holder = lease["spec"].get("holderIdentity") if lease else None
        if holder != user and user not in self.dead:
            self._wrong(f"{write}, while {holder or 'nobody'} led")

    def _unchanged(self, write: str, table: str, before: Obj, now: Obj) -> None:
        """Of a tenant's object only the status is written; and a Pod's node, and a Service's node ports."""
        ours, was = _without_ours(table, now), _without_ours(table, before)
        if ours != was:
            parts = [part for part in {**ours, **was} if ours.get(part) != was.get(part)]
            self._wrong(f"{write}, in {', '.join(sorted(parts))}")


def home(tenant: str) -> str:
    """The host namespace of a tenant."""
    return f"{tenant}-ns"


def owner_of(obj: Obj) -> str:
    """The tenant whose mark an object bears, ``""`` where it bears none."""
    return labels_of(obj).get(MARKS.cluster, "").partition(".")[0]


def _named(table: str, obj: Obj) -> str:
    metadata = obj["metadata"]
    return f"{table.lstrip('/')} {metadata.get('namespace', '')}/{metadata['name']} (uid {metadata.get('uid')})"


def _without_ours(table: str, obj: Obj) -> Obj:
    """The parts of a tenant's object that only the tenant may change."""
    parts = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    metadata, spec = obj["metadata"], parts.get("spec") or {}
    parts |= {name: metadata.get(name) or [] for name in ("finalizers", "ownerReferences")}
    for name in ("labels", "annotations"):
        parts[name] = {key: value for key, value in (metadata.get(name) or {}).items() if not MARKS.is_mark(key)}
    if table == "/pods":
        parts["spec"] = {name: value for name, value in spec.items() if name != "nodeName"}
    if table == "/services":
        ports = [{name: value for name, value in port.items() if name != "nodePort"} for port in spec.get("ports", ())]
        parts["spec"] = {**spec, "ports": ports}
    return parts
