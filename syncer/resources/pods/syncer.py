"""Run virtual Pods on the host, and report their status."""

from collections.abc import Iterable, Sequence

from syncer.api import (
    Context,
    Decision,
    Excludes,
    Index,
    Indexes,
    Key,
    Obj,
    ObjectRef,
    Pair,
    Refers,
    Resource,
    Right,
    Side,
    Source,
    Sync,
    SyncDown,
    Syncer,
    annotations_of,
    apply,
    bind,
    delete,
    is_deleting,
    key_of,
    set_conditions,
    uid_of,
    wait,
)
from syncer.resources.kinds import NAMESPACES, NODES, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from syncer.resources.pods import dns, fields, lifecycle, status
from syncer.resources.pods.changes import spec_changes
from syncer.resources.pods.env import BY_NAMESPACE
from syncer.resources.pods.references import REFERENCES
from syncer.resources.pods.spec import host_pod, metadata
from syncer.resources.pods.volumes import token_files, tokens_key

_VIRTUAL_SERVICES = Source(Side.VIRTUAL, SERVICES)


class PodSyncer(Syncer, SyncDown, Sync, Excludes, Indexes, Refers):
    """Runs Pods on the host; the virtual side owns the spec, the host the node and the status.

    A Pod is created on the host once, when everything that it needs is there, and never a second
    time: if the host loses a Pod that had started, the virtual Pod is deleted, as its controller
    expects of a lost Pod.
    """

    name = "pods"
    resource = PODS
    down = ("spec",)
    up = ("status",)
    translates = ("spec",)
    own_deletion = True
    references = REFERENCES
    reads = (
        _VIRTUAL_SERVICES,
        Source(Side.VIRTUAL, NODES),
        Source(Side.VIRTUAL, NAMESPACES),
        Source(Side.HOST, SERVICES, marked=True),
        Source(Side.HOST, SECRETS, marked=True),
        Source(Side.HOST, SERVICE_ACCOUNTS, marked=True),
    )
    rights = (
        Right(Side.VIRTUAL, PODS, ("create",), "binding"),
        Right(Side.VIRTUAL, PODS, ("delete",)),
        Right(Side.HOST, PODS, ("patch",), "status"),
    )

    def indexes(self) -> Sequence[Index]:
        """Return the index of Services by namespace: a container gets the addresses of those in its own."""
        return [Index(_VIRTUAL_SERVICES, BY_NAMESPACE, lambda service: (service["metadata"].get("namespace", ""),))]

    def refers(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return the objects that the Pod names; ConfigMaps and Secrets are synced with it.

        Empty if the Pod is never synced.
        """
        return () if lifecycle.is_mirror(virtual) else super().refers(virtual)

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        """Leave mirror Pods alone, which represent a kubelet's own manifests."""
        return "it mirrors a static Pod of a kubelet" if lifecycle.is_mirror(obj) else None

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        """Create the host pod once everything that it requires is there."""
        return (
            lifecycle.not_to_run(ctx, virtual)
            or _missing_account(ctx, virtual)
            or _missing_tokens(ctx, virtual)
            or dns.missing_server(ctx, virtual)
            or apply(host=host_pod(ctx, virtual), partial=True, reason="the host is to run it")
        )

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Sync deletion both ways with its grace period, changes down, and node and status up."""
        report = apply(virtual=_reported(pair))
        if is_deleting(pair.virtual):
            return report.then(_end_host(pair))
        if is_deleting(pair.host):
            return report.then(_end_virtual(pair))
        decision = apply(host=_updated(ctx, pair), partial=True)
        if conditions := status.gate_conditions(pair):
            decision = decision.then(set_conditions(host={**pair.host, "status": {"conditions": conditions}}))
        return decision.then(_bound(ctx, pair, report))


def _bound(ctx: Context, pair: Pair, report: Decision) -> Decision:
    """Bind the virtual Pod to the host pod's node, and report.

    A Pod without a node can't have a full status.
    """
    node = pair.host["spec"].get("nodeName")
    if not node or pair.virtual["spec"].get("nodeName"):
        return report
    if ctx.virtual(NODES, Key("", node)) is None:
        reason = f"the virtual cluster has no Node {node} yet; sync.fake.nodes makes one for each that is used"
        return wait(reason, on=(ObjectRef(Side.VIRTUAL, NODES, Key("", node)),))
    return bind(virtual=pair.virtual, node=node).then(report)


def _updated(ctx: Context, pair: Pair) -> Obj:
    """Return the host pod with only the fields that may change."""
    host = metadata(ctx, pair.virtual)
    if changes := spec_changes(ctx, pair):
        # Lists are written whole: a concurrent change by the host must not be undone.
        host["metadata"]["resourceVersion"] = pair.host["metadata"].get("resourceVersion", "")
        host["spec"] = changes
    return host


def _reported(pair: Pair) -> Obj | None:
    reported = status.virtual_status(pair)
    if reported is None:
        return None
    own = pair.virtual["metadata"]
    identity = {name: own[name] for name in ("name", "namespace", "uid") if name in own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": identity, "status": reported}


def _end_host(pair: Pair) -> Decision:
    """Delete the host pod as the virtual Pod is being deleted, and sooner if the tenant shortens
    the grace period.
    """
    grace, left = (obj["metadata"].get("deletionGracePeriodSeconds") for obj in (pair.virtual, pair.host))
    if is_deleting(pair.host) and (grace is None or left is None or grace >= left):
        return wait("both are being deleted; the host's kubelet is stopping it")
    return delete(host=pair.host, grace=grace, reason="the virtual Pod is being deleted")


def _end_virtual(pair: Pair) -> Decision:
    grace = pair.host["metadata"].get("deletionGracePeriodSeconds")
    return delete(virtual=pair.virtual, grace=grace, reason="the host is deleting it")


def _missing_account(ctx: Context, virtual: Obj) -> Decision | None:
    """Return a wait for a missing ServiceAccount, because the host's admission refuses a pod without one."""
    if not ctx.enabled("serviceaccounts"):
        return None
    account = Key(key_of(virtual).namespace, fields.service_account(virtual))
    if ctx.host_of(SERVICE_ACCOUNTS, account) is not None:
        return None
    seen = ObjectRef(Side.HOST, SERVICE_ACCOUNTS, ctx.names.to_host(SERVICE_ACCOUNTS, account))
    return wait(f"its ServiceAccount {account.name} is not on the host yet", on=(seen,))


def _missing_tokens(ctx: Context, virtual: Obj) -> Decision | None:
    if not ctx.enabled("pod-tokens") or not token_files(virtual):
        return None
    key = tokens_key(ctx.settings, key_of(virtual))
    secret = ctx.host(SECRETS, key)
    if secret is not None and annotations_of(secret).get(ctx.marks.uid) == uid_of(virtual):
        return None
    return wait("its token is not on the host yet", on=(ObjectRef(Side.HOST, SECRETS, key),))
