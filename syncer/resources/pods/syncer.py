"""Run virtual Pods on the host, and report their status."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

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
    reasons,
    set_conditions,
    uid_of,
    wait,
)
from syncer.resources.host_nodes import required_labels
from syncer.resources.kinds import NAMESPACES, NODES, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from syncer.resources.namespaces import home_sources, unready_home
from syncer.resources.pods import (
    classes,
    debugging,
    dns,
    eviction,
    fields,
    isolation,
    lifecycle,
    placement,
    policy,
    record,
    resizing,
    status,
)
from syncer.resources.pods.changes import has_changed, spec_changes
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.env import BY_NAMESPACE, index_values, pod_variables
from syncer.resources.pods.needs import refuse_unsynced
from syncer.resources.pods.neighbours import FURTHER
from syncer.resources.pods.references import PATHS, REFERENCES
from syncer.resources.pods.spec import fields_left_out, host_pod, metadata
from syncer.resources.pods.volumes import token_files, tokens_key
from syncer.resources.selected_namespaces import BY_LABEL, label_values

_VIRTUAL_SERVICES = Source(Side.VIRTUAL, SERVICES)
_VIRTUAL_NAMESPACES = Source(Side.VIRTUAL, NAMESPACES)


class PodSyncer(
    Syncer[PodConfig],
    SyncDown[PodConfig],
    Sync[PodConfig],
    Excludes[PodConfig],
    Indexes,
    Refers,
):
    """Runs Pods on the host; the virtual side owns the spec, the host the node and the status.

    A Pod is created on the host once, when everything that it needs is there, and never a second
    time: if the host loses a Pod that had started, the virtual Pod ends as Failed, with the
    condition ``DisruptionTarget``, and is deleted, as its controller expects of a lost Pod.

    An event (`NotCopied`) names the fields that a copy lacks: `schedulingGroup`, classes that stay
    behind, and fields that the host's API server doesn't know.
    """

    name = "pods"
    resource = PODS
    down = ("spec",)
    up = ("status",)
    own_generations = True
    translates = ("spec",)
    own_deletion = True
    looks_back = False
    references = REFERENCES
    refers_by_spec = True
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
        """Return the kinds that the decision about a Pod reads.

        Besides those of every Pod these are the host namespace that must be ready, the classes that
        a Pod may name, the NetworkPolicies that may isolate it, and the host's nodes that it may be
        bound to.
        """
        return (
            *self.reads,
            *home_sources(settings),
            *classes.sources(settings),
            *isolation.sources(settings),
            *placement.sources(settings),
        )

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Yield the rights that the configuration needs.

        The right on ephemeral containers is missing if Pods may have none. The right to read a
        host namespace comes with copies that it controls, the rights to list kinds of the host with
        the check of selectors, and the right to read a Service of the host if that is in front of
        the virtual API server.
        """
        config = settings.section(self.name, PodConfig)
        may_debug = config is None or config.max_ephemeral_containers > 0
        for right in self.rights:
            if may_debug or right.subresource != debugging.SUBRESOURCE:
                yield right
        if config is not None and config.evictable != "none":
            yield Right(Side.HOST, NAMESPACES, ("get",))
        if config is not None and config.check_selectors:
            for resource in FURTHER:
                yield Right(Side.HOST, resource, ("list",))
        if front := settings.networking.api_server.service:
            at = Key.parse(front)
            namespaces = (at.namespace,)
            yield Right(Side.HOST, SERVICES, ("get",), namespaces=namespaces, names=(at.name,))

    def indexes(self) -> Sequence[Index]:
        """Return the indexes of the objects by which a Pod is decided.

        Services are indexed by namespace, as a container gets the addresses of those in its own;
        Namespaces by label, as affinity may select them; and NetworkPolicies by namespace, as they
        may isolate its Pods.
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
        if lifecycle.is_mirror(virtual):
            return ()
        return super().refers(virtual)

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        """Leave mirror Pods alone, which represent a kubelet's own manifests."""
        if lifecycle.is_mirror(obj):
            return reasons.STATIC_POD()
        return None

    def sync_down(self, ctx: Context[PodConfig], virtual: Obj) -> Decision:
        """Create the host pod once everything that it requires is there.

        Raises:
            Refused: It needs an object of a kind that isn't synced, among others.
        """
        obstacle = lifecycle.not_to_run(ctx, virtual)
        if obstacle is not None:
            return obstacle
        refuse_unsynced(ctx, virtual)
        if ctx.config.is_bound_first:
            obstacle = placement.obstacle(ctx, virtual)
            if obstacle is not None:
                return obstacle
        # The first reason to wait counts; later ones are not looked for.
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
        sent = record.known(ctx.marks, pair)
        if is_deleting(pair.virtual):
            report = apply(virtual=_reported(ctx, pair, sent))
            return report.then(_end_host(ctx.config, pair))
        if is_deleting(pair.host):
            report = apply(virtual=_reported(ctx, pair, sent))
            return report.then(_end_virtual(ctx.config, pair))
        if lifecycle.is_bound_apart(pair):
            raise _bound_apart(ctx.config, pair)
        if ctx.config.is_bound_first:
            moved = placement.moved(ctx, pair)
            if moved is not None:
                return moved

        host = _updated(ctx, pair, sent)
        debug = debugging.added(ctx, pair, sent)
        ctx.leave_out(*fields_left_out(ctx, pair.virtual, pair.host))
        resize = _resized(ctx, pair, host, sent)

        decision = apply(host=host, partial=True)
        if conditions := status.gate_conditions(pair):
            gated = {**pair.host, "status": {"conditions": conditions}}
            decision = decision.then(set_conditions(host=gated))

        behind = "spec" in host or bool(resize) or bool(debug and debug.writes)
        report = apply(virtual=_reported(ctx, pair, sent, behind=behind))
        decision = decision.then(_bound(ctx, pair, report))

        if resize:
            subresource = resizing.SUBRESOURCE
            step = merge(host=resize, subresource=subresource, reason="it is resized")
            decision = decision.then(step)
        if debug:
            decision = decision.then(debug)
        if ctx.config.is_bound_first:
            decision = decision.then(placement.awaited(pair))
        return isolation.warned(ctx, pair.virtual, decision)


def _created(ctx: Context[PodConfig], virtual: Obj) -> Decision:
    """Return the decision to create the host pod."""
    variables = pod_variables(ctx, virtual)
    if variables.missing is not None:
        return variables.missing
    host = policy.applied(ctx, host_pod(ctx, virtual, variables.env), required_labels(ctx.settings))
    ctx.leave_out(*fields_left_out(ctx, virtual, host))
    decision = apply(
        host=host,
        partial=True,
        reason="the host must run it",
        controlled_by_namespace=eviction.is_evictable(ctx.config, virtual),
    )
    if ctx.config.is_bound_first or virtual["spec"].get(debugging.FIELD):
        # It waits for its node then, or gets its ephemeral containers.
        decision = replace(decision, is_step=True)
    if variables.warning:
        return decision.warn("ServiceLinksLeftOut", variables.warning)
    return isolation.warned(ctx, virtual, dns.warned(ctx, host, decision))


def _bound(ctx: Context, pair: Pair, report: Decision) -> Decision:
    """Bind the virtual Pod to the host pod's node, and report.

    A Pod without a node can't have a full status.
    """
    node = pair.host["spec"].get("nodeName")
    if not node or pair.virtual["spec"].get("nodeName"):
        return report
    key = Key("", node)
    if key not in ctx.reader.keys(Side.VIRTUAL, NODES):  # it needn't be decoded
        return wait(reasons.NODE_MISSING(node), on=(ObjectRef(Side.VIRTUAL, NODES, key),))
    # The condition that the binding sets is replaced by the host pod's, which always has one from
    # its own binding, unless something else than a scheduler has placed it.
    conditions = (pair.host.get("status") or {}).get("conditions")
    return bind(virtual=pair.virtual, node=node, looks_back=not conditions).then(report)


def _updated(ctx: Context[PodConfig], pair: Pair, sent: record.PodRecord) -> Obj:
    """Return the host pod with only the fields that may change."""
    latest = sent
    if has_changed(pair.virtual):
        latest = sent.with_images(pair.virtual)
    host = metadata(ctx, pair.virtual, latest)
    if changes := spec_changes(ctx.config, pair, sent):
        # Lists are written whole: a concurrent change by the host must not be undone.
        host["metadata"]["resourceVersion"] = pair.host["metadata"].get("resourceVersion", "")
        host["spec"] = changes
    return host


def _resized(ctx: Context, pair: Pair, host: Obj, sent: record.PodRecord) -> Obj | None:
    """Return the host pod with the resources that it lacks since the tenant changed them.

    None if it lacks none. Then ``host``, which will be written, gets their digest, so that the host
    may change them from then on.
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


def _bound_apart(config: PodConfig, pair: Pair) -> Refused:
    """Return the refusal of a Pod that is bound to different nodes on both sides."""
    own = pair.virtual["spec"]["nodeName"]
    of_host = pair.host["spec"]["nodeName"]
    why = f"the host runs it on {of_host}, and here it is bound to {own:.{LONGEST_NAME}}"
    why = f"{why}: its status stays as it is"
    how = "Delete it"
    if not config.is_bound_first:
        rule = "as the host's scheduler places all Pods"
        how = f"{how}, and run no scheduler in the virtual cluster, {rule}"
    return Refused(f"{why}. {how}", path="spec.nodeName", reason="BoundElsewhere")


def _reported(
    ctx: Context,
    pair: Pair,
    sent: record.PodRecord,
    *,
    behind: bool = False,
) -> Obj | None:
    """Return the virtual Pod with the status that the host reports; None if it reports none."""
    if lifecycle.is_bound_apart(pair):
        return None
    reported = status.virtual_status(pair, sent, behind=behind)
    if reported is None:
        return None
    named = partial(PATHS.keys, pair.virtual)
    names = host_names(ctx, key_of(pair.virtual), key_of(pair.host), named)
    reported = names.in_messages(reported)
    own = pair.virtual["metadata"]
    identity = {name: own[name] for name in ("name", "namespace", "uid") if name in own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": identity, "status": reported}


def _end_host(config: PodConfig, pair: Pair) -> Decision:
    """Delete the host pod as the virtual Pod is being deleted.

    It is deleted once more, and sooner, if the tenant shortens the grace period.
    """
    asked = pair.virtual["metadata"].get("deletionGracePeriodSeconds")
    grace = policy.bounded_grace(config, asked)
    if is_deleting(pair.host):
        left = pair.host["metadata"].get("deletionGracePeriodSeconds")
        if grace is None or left is None or grace >= left:
            return wait(reasons.BOTH_END())
    return delete(
        host=pair.host,
        grace=grace,
        reason="the virtual Pod is being deleted",
        meanwhile=reasons.BOTH_END(),
    )


def _end_virtual(config: PodConfig, pair: Pair) -> Decision:
    """Delete the virtual Pod with the grace period that the host pod has.

    An API server that deletes a pod without grace marks the pod first, so the pod may be seen
    before it is gone. How it ended is known once it is gone, or its status is terminal.
    """
    grace = pair.host["metadata"].get("deletionGracePeriodSeconds")
    has_started = lifecycle.has_started(pair.virtual, bound_first=config.is_bound_first)
    may_run = has_started and not lifecycle.is_finished(pair.host)
    if grace == 0 and may_run:
        return wait(reasons.HOST_ENDS_AT_ONCE())
    decision = delete(virtual=pair.virtual, grace=grace, reason="the host is deleting it")
    return lifecycle.ended_by_host(decision)


def _missing_account(ctx: Context, virtual: Obj) -> Decision | None:
    """Return a wait for a missing ServiceAccount, without which the host refuses a pod."""
    if not ctx.enabled("serviceaccounts"):
        return None
    account = Key(key_of(virtual).namespace, fields.service_account(virtual))
    if ctx.host_of(SERVICE_ACCOUNTS, account) is not None:
        return None
    reference = ObjectRef(Side.HOST, SERVICE_ACCOUNTS, ctx.names.to_host(SERVICE_ACCOUNTS, account))
    return wait(reasons.ACCOUNT_NOT_ON_HOST(account.name, account), on=(reference,))


def _missing_tokens(ctx: Context, virtual: Obj) -> Decision | None:
    """Return a wait for the Secret with the Pod's tokens; None if it is there, or not needed."""
    if not ctx.enabled("pod-tokens") or not token_files(virtual):
        return None
    key = tokens_key(ctx.settings, key_of(virtual))
    secret = ctx.host(SECRETS, key)
    if secret is not None and annotations_of(secret).get(ctx.marks.uid) == uid_of(virtual):
        return None
    why = reasons.TOKEN_NOT_ON_HOST(key_of(virtual))
    return wait(why, on=(ObjectRef(Side.HOST, SECRETS, key),))
