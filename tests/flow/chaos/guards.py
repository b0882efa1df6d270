"""Invariants of a play, checked at each write that a server stores."""

from collections.abc import Callable, Mapping

from chaos.daemons import OURS, SYSTEM, Cast
from chaos.servers import Server
from kube_envtest.apiserver.storage import Event
from syncer.api import Obj, annotations_of, is_deleting, labels_of, uid_of
from syncer.api.marks import Marks
from syncer.resources.pods.lifecycle import has_started

MARKS = Marks()
#: Tables of objects that aren't synced: Leases; and Events, which a candidate may write after its term, too.
_NOT_SYNCED = ("coordination.k8s.io/leases", "/events")


class Guards:
    """Watches the servers, and reports writes that must not happen."""

    def __init__(self, host: Server, tenants: Mapping[str, Server], cast: Cast, report: Callable[[str], None]) -> None:
        self._host = host
        self._tenants = tenants
        self._cast = cast
        self._report = report
        #: The virtual cluster of each uid that there ever was in one.
        self._clusters: dict[str, str] = {}
        #: The uids of virtual Pods whose host pod another user has deleted, or given the mark of another Pod.
        self._lost: set[str] = set()
        #: The uids of virtual Pods that have started.
        self._started: set[str] = set()
        #: Processes that are dead, and may lead no more; their last requests may still arrive.
        self.dead: set[str] = set()
        host.listen(self._on_host)
        for name, server in tenants.items():
            server.listen(self._on_virtual(name, server))

    def _on_host(self, table: str, event: Event) -> None:
        now = event.entry.obj
        before = event.previous.obj if event.previous else None
        if not self._host.by.startswith(OURS):
            if table == "/pods":
                self._note_lost_pods(now, before, ended=event.type == "DELETED" or is_deleting(now))
            return
        if table in _NOT_SYNCED:
            return
        write = f"{self._host.by}: {event.type} host {_description(table, now)}"
        self._check_leader(write, self._host.by, owner_of(before or now))
        for obj in (now, before) if before else (now,):
            owner = owner_of(obj)
            uid = annotations_of(obj).get(MARKS.uid, "")
            if obj is now and event.type == "ADDED" and self._clusters.get(uid, owner) != owner:
                self._report(f"{write}, which is of {self._clusters[uid]}, and has the mark of {owner}")
            if owner not in self._tenants:
                self._report(f"{write}, which has no mark")
            elif obj["metadata"].get("namespace") != host_namespace(owner):
                self._report(f"{write}, which is not in the host namespace of {owner}")
        if table == "/pods" and event.type == "ADDED":
            self._check_start(write, annotations_of(now).get(MARKS.uid, ""))

    def _note_lost_pods(self, now: Obj, before: Obj | None, *, ended: bool) -> None:
        """Note the virtual Pod whose host pod another user has ended, or marked as another one's."""
        uid = annotations_of(now).get(MARKS.uid, "")
        uid_before = annotations_of(before).get(MARKS.uid, "") if before else ""
        if ended or (uid_before and uid_before != uid):
            self._lost |= {uid, uid_before}

    def _check_start(self, write: str, uid: str) -> None:
        """Check that a Pod that has started gets no second host pod."""
        if uid in self._started:
            self._report(f"{write}, whose virtual Pod had started")

    def _on_virtual(self, name: str, server: Server) -> Callable[[str, Event], None]:
        def changed(table: str, event: Event) -> None:
            now = event.entry.obj
            before = event.previous.obj if event.previous else None
            self._clusters[uid_of(now)] = name
            if table == "/pods" and has_started(now):
                self._started.add(uid_of(now))
            if not server.by.startswith(OURS) or table in _NOT_SYNCED:
                return
            write = f"{server.by}: {event.type} {name} {_description(table, now)}"
            self._check_leader(write, server.by, name)
            if owner_of(before or now) == name:
                return
            if before is None:
                self._report(f"{write}, which has no mark")
            elif is_deleting(before):
                return  # it was deleted before, and ends now
            elif event.type == "DELETED" or is_deleting(now):
                if table != "/pods" or uid_of(before) not in self._lost:
                    self._report(f"{write}, which is the tenant's")
            else:
                self._check_changed_fields(write, table, before, now)

        return changed

    def _check_leader(self, write: str, user: str, tenant: str) -> None:
        """Check that a user that writes holds the Lease of the virtual cluster."""
        lease = self._host.get("leases.coordination.k8s.io", f"{SYSTEM}/{self._cast.lease(tenant)}")
        holder = lease["spec"].get("holderIdentity") if lease else None
        if holder != user and user not in self.dead:
            self._report(f"{write}, while {holder or 'nobody'} led")

    def _check_changed_fields(self, write: str, table: str, before: Obj, now: Obj) -> None:
        """Check that of a tenant's object only the status, a Pod's node or a Service's node ports change."""
        theirs = _of_tenant(table, now)
        theirs_before = _of_tenant(table, before)
        if theirs != theirs_before:
            parts = [part for part in {**theirs, **theirs_before} if theirs.get(part) != theirs_before.get(part)]
            self._report(f"{write}, in {', '.join(sorted(parts))}")


def host_namespace(tenant: str) -> str:
    """Return the host namespace of a tenant."""
    return f"{tenant}-ns"


def owner_of(obj: Obj) -> str:
    """Return the tenant whose mark an object has; ``""`` if it has none."""
    return labels_of(obj).get(MARKS.cluster, "").partition(".")[0]


def _description(table: str, obj: Obj) -> str:
    metadata = obj["metadata"]
    return f"{table.lstrip('/')} {metadata.get('namespace', '')}/{metadata['name']} (uid {metadata.get('uid')})"


def _of_tenant(table: str, obj: Obj) -> Obj:
    """Return the parts of a virtual object that only its tenant may change."""
    parts = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    metadata = obj["metadata"]
    spec = parts.get("spec") or {}
    parts |= {name: metadata.get(name) or [] for name in ("finalizers", "ownerReferences")}
    for name in ("labels", "annotations"):
        parts[name] = {key: value for key, value in (metadata.get(name) or {}).items() if not MARKS.is_mark(key)}
    if table == "/pods":
        parts["spec"] = {name: value for name, value in spec.items() if name != "nodeName"}
    if table == "/services":
        ports = [{name: value for name, value in port.items() if name != "nodePort"} for port in spec.get("ports", ())]
        parts["spec"] = {**spec, "ports": ports}
    return parts
