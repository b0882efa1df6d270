"""Run virtual Pods on the host, and report their status."""

from collections.abc import Iterable, Sequence

from syncer.api import (
    LONGEST_NAME,
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
    Refused,
    Resource,
    Right,
    Settings,
    Side,
    Source,
    Sync,
    SyncDown,
    Syncer,
    annotations_of,
    apply,
    bind,
    delete,
    host_names,
    is_deleting,
    key_of,
    merge,
    set_conditions,
    uid_of,
    wait,
)
from syncer.resources.host_nodes import required_labels
from syncer.resources.kinds import NAMESPACES, NODES, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from syncer.resources.namespaces import home_sources, unready_home
from syncer.resources.pods import (
    classes,
    containers,
    debugging,
    dns,
    fields,
    isolation,
    lifecycle,
    policy,
    resizing,
    status,
)
from syncer.resources.pods.changes import has_changed, spec_changes
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.env import BY_NAMESPACE, index_values, service_env
from syncer.resources.pods.needs import refuse_unsynced
from syncer.resources.pods.neighbours import FURTHER
from syncer.resources.pods.references import PATHS, REFERENCES
from syncer.resources.pods.spec import fields_left_out, host_pod, metadata
from syncer.resources.pods.volumes import token_files, tokens_key
from syncer.resources.selected_namespaces import BY_LABEL, label_values

_VIRTUAL_SERVICES, _VIRTUAL_NAMESPACES = Source(Side.VIRTUAL, SERVICES), Source(Side.VIRTUAL, NAMESPACES)


class PodSyncer(Syncer[PodConfig], SyncDown[PodConfig], Sync[PodConfig], Excludes[PodConfig], Indexes, Refers):
    """Runs Pods on the host; the virtual side owns the spec, the host the node and the status.

    A Pod is created on the host once, when everything that it needs is there, and never a second
    time: if the host loses a Pod that had started, the virtual Pod ends as Failed, with the condition
    ``DisruptionTarget``, and is deleted, as its controller expects of a lost Pod.

    An event (`NotCopied`) names the fields that a copy lacks: `schedulingGroup`, classes that stay behind, and
    what the host's API server doesn't know.
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
        _VIRTUAL_NAMESPACES,
        Source(Side.HOST, SERVICES, marked=True),
        Source(Side.HOST, SECRETS, marked=True),
        Source(Side.HOST, SERVICE_ACCOUNTS, marked=True),
    )
    rights = (
        Right(Side.VIRTUAL, PODS, ("create",), "binding"),
        Right(Side.VIRTUAL, PODS, ("delete",)),
        Right(Side.HOST, PODS, ("patch",), "status"),
        Right(Side.HOST, PODS, ("patch",), resizing.SUBRESOURCE),
        Right(Side.HOST, PODS, ("patch",), debugging.SUBRESOURCE),
    )

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return what Pods read, the host namespaces that must be ready for them, the classes that they may
        name, and the NetworkPolicies that may isolate them.
        """
        return (*self.reads, *home_sources(settings), *classes.sources(settings), *isolation.sources(settings))

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Return the rights, with those to check selectors of the host if that is enabled, and to read
        the host Service in front of the virtual API server; without that on ephemeral containers if
        Pods may have none.
        """
        config = settings.section(self.name, PodConfig)
        checked = FURTHER if config and config.check_selectors else ()
        front = settings.networking.api_server.service
        fronts = [Key.parse(front)] if front else []
        debugs = not config or config.max_ephemeral_containers > 0
        return (
            *(right for right in self.rights if debugs or right.subresource != debugging.SUBRESOURCE),
            *(Right(Side.HOST, resource, ("list",)) for resource in checked),
            *(Right(Side.HOST, SERVICES, ("get",), namespaces=(at.namespace,), names=(at.name,)) for at in fronts),
        )

    def indexes(self) -> Sequence[Index]:
        """Return the indexes of Services by namespace, as a container gets the addresses of those in
        its own, of Namespaces by label, as affinity may select those, and of what isolates Pods.
        """
        return [
            Index(_VIRTUAL_SERVICES, BY_NAMESPACE, index_values),
            Index(_VIRTUAL_NAMESPACES, BY_LABEL, label_values),
            *isolation.indexes(),
        ]

    def refers(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return the objects that the Pod names; ConfigMaps and Secrets are synced with it.

        Empty if the Pod is never synced.
        """
        return () if lifecycle.is_mirror(virtual) else super().refers(virtual)

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        """Leave mirror Pods alone, which represent a kubelet's own manifests."""
        return "it mirrors a static Pod of a kubelet" if lifecycle.is_mirror(obj) else None

    def sync_down(self, ctx: Context[PodConfig], virtual: Obj) -> Decision:
        """Create the host pod once everything that it requires is there.

        Raises:
            Refused: It needs an object of a kind that isn't synced, among others.
        """
        if (obstacle := lifecycle.not_to_run(ctx, virtual)) is not None:
            return obstacle
        refuse_unsynced(ctx, virtual)
        return (
            unready_home(ctx, key_of(virtual).namespace)
            or _missing_account(ctx, virtual)
            or _missing_tokens(ctx, virtual)
            or dns.missing_server(ctx, virtual)
            or classes.missing(ctx, virtual)
            or _created(ctx, virtual)
        )

    def sync(self, ctx: Context[PodConfig], pair: Pair) -> Decision:
        """Sync deletion both ways with its grace period, changes down, and node and status up.

        Raises:
            Refused: The Pod is bound to different nodes on both sides.
        """
        sent = containers.known(ctx.marks, pair)
        if is_deleting(pair.virtual):
            return apply(virtual=_reported(ctx, pair, sent)).then(_end_host(ctx.config, pair))
        if is_deleting(pair.host):
            return apply(virtual=_reported(ctx, pair, sent)).then(_end_virtual(pair))
        if lifecycle.is_bound_apart(pair):
            raise _bound_apart(pair)
        host = _updated(ctx, pair, sent)
        debug = debugging.added(ctx, pair, sent)
        ctx.leave_out(*fields_left_out(pair.virtual, pair.host))
        resize = _resized(ctx, pair, host, sent)
        decision = apply(host=host, partial=True)
        if conditions := status.gate_conditions(pair):
            decision = decision.then(set_conditions(host={**pair.host, "status": {"conditions": conditions}}))
        behind = "spec" in host or bool(resize) or bool(debug and debug.writes)
        decision = decision.then(_bound(ctx, pair, apply(virtual=_reported(ctx, pair, sent, behind=behind))))
        if resize:
            decision = decision.then(merge(host=resize, subresource=resizing.SUBRESOURCE, reason="it is resized"))
        return decision.then(debug) if debug else decision


def _created(ctx: Context[PodConfig], virtual: Obj) -> Decision:
    variables, left_out = service_env(ctx, virtual)
    host = policy.applied(ctx, host_pod(ctx, virtual, variables), required_labels(ctx.settings))
    ctx.leave_out(*fields_left_out(virtual, host))
    decision = apply(host=host, partial=True, reason="the host is to run it")
    return decision.warn("ServiceLinksLeftOut", left_out) if left_out else decision


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


def _updated(ctx: Context, pair: Pair, sent: containers.Sent) -> Obj:
    """Return the host pod with only the fields that may change."""
    host = metadata(ctx, pair.virtual, sent)
    if changes := spec_changes(ctx, pair, sent):
        # Lists are written whole: a concurrent change by the host must not be undone.
        host["metadata"]["resourceVersion"] = pair.host["metadata"].get("resourceVersion", "")
        host["spec"] = changes
    return host


def _resized(ctx: Context, pair: Pair, host: Obj, sent: containers.Sent) -> Obj | None:
    """Return the host pod with the resources that it lacks since the tenant changed them; None if it
    lacks none.

    Once it has them, ``host``, which is to be written, gets their digest, so that the host may change
    them from then on.
    """
    if not has_changed(pair.virtual):
        return None
    name = f"{ctx.marks.prefix}/{resizing.RESOURCES}"
    wanted = resizing.resources_digest(pair.virtual["spec"])
    if wanted == annotations_of(pair.host).get(name, ""):
        return None
    if spec := resizing.lacking(pair.virtual["spec"], pair.host["spec"], sent):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": pair.host["metadata"], "spec": spec}
    host["metadata"]["annotations"][name] = wanted
    return None


def _bound_apart(pair: Pair) -> Refused:
    own = pair.virtual["spec"]["nodeName"]
    why = (
        f"the host runs it on {pair.host['spec']['nodeName']}, and here it is bound to {own:.{LONGEST_NAME}}: its "
        "status stays as it is. Delete it, and run no scheduler in the virtual cluster, as the host's places all Pods"
    )
    return Refused(why, path="spec.nodeName", reason="BoundElsewhere")


def _reported(ctx: Context, pair: Pair, sent: containers.Sent, *, behind: bool = False) -> Obj | None:
    reported = None
    if not lifecycle.is_bound_apart(pair):
        reported = status.virtual_status(pair, sent, behind=behind)
    if reported is None:
        return None
    names = host_names(ctx, key_of(pair.virtual), key_of(pair.host), lambda: PATHS.keys(pair.virtual))
    reported = names.in_messages(reported)
    own = pair.virtual["metadata"]
    identity = {name: own[name] for name in ("name", "namespace", "uid") if name in own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": identity, "status": reported}


def _end_host(config: PodConfig, pair: Pair) -> Decision:
    """Delete the host pod as the virtual Pod is being deleted, and sooner if the tenant shortens
    the grace period.
    """
    grace, left = (obj["metadata"].get("deletionGracePeriodSeconds") for obj in (pair.virtual, pair.host))
    grace = policy.bounded_grace(config, grace)
    if is_deleting(pair.host) and (grace is None or left is None or grace >= left):
        return wait("both are being deleted; the host's kubelet is stopping it")
    return delete(host=pair.host, grace=grace, reason="the virtual Pod is being deleted")


def _end_virtual(pair: Pair) -> Decision:
    """Delete the virtual Pod with the grace period that the host pod has.

    An API server that is to delete a pod without grace marks it first, so it may be seen before it is gone. How
    it ended is known once it is gone, or has said so itself.
    """
    grace = pair.host["metadata"].get("deletionGracePeriodSeconds")
    if grace == 0 and lifecycle.has_started(pair.virtual) and not lifecycle.is_finished(pair.host):
        return wait("the host is deleting it without grace; how it ended is known when it is gone")
    return lifecycle.ended_by_host(delete(virtual=pair.virtual, grace=grace, reason="the host is deleting it"))


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
