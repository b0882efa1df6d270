"""Pod tokens of the virtual API server, in a Secret on the host, renewed before they expire."""

from datetime import datetime, timedelta

from syncer.api import (
    Context,
    Decision,
    Excludes,
    Key,
    Obj,
    ObjectRef,
    Pair,
    Refused,
    Right,
    Settings,
    Side,
    Source,
    Sync,
    SyncDown,
    Syncer,
    Token,
    TooLarge,
    annotations_of,
    apply,
    delete,
    is_deleting,
    key_of,
    reasons,
    skip,
    uid_of,
    wait,
)
from syncer.resources.kinds import NODES, PODS, SECRETS, SERVICE_ACCOUNTS
from syncer.resources.pods import lifecycle
from syncer.resources.pods.config import PodTokenConfig
from syncer.resources.pods.fields import service_account
from syncer.resources.pods.volumes import token_files, tokens_key
from syncer.translate import times

#: Renew when this part of the lifetime is left, as a kubelet does.
_LEFT = 0.2

#: Maximum number of tokens of a Pod. Each is a request to the virtual API server; most Pods have
#: one.
MOST_TOKENS = 50

#: Shortest interval between renewals, in case the clocks differ so much that a token looks expired
#: from the start.
_SELDOM = timedelta(minutes=1)

#: Below the marks' prefix: the annotation on the Secret with the time at which its tokens were
#: requested.
ASKED = "tokens-asked"
#: Below the marks' prefix: the annotation on the Secret with the node that its tokens name.
NODE = "tokens-node"


class PodTokenSyncer(
    Syncer[PodTokenConfig],
    SyncDown[PodTokenConfig],
    Sync[PodTokenConfig],
    Excludes[PodTokenConfig],
):
    """Keeps a host Secret for each virtual Pod that mounts tokens of its ServiceAccount.

    Each token has the lifetime and the audience that the Pod asks for. It is bound to the virtual
    Pod, so it becomes invalid with it. The Secret is created before the host pod, and deleted after
    the virtual Pod is gone.
    """

    name = "pod-tokens"
    section = "toHost.podTokens"
    resource = PODS
    host_resource = SECRETS
    own_deletion = True
    reads = (
        Source(Side.VIRTUAL, NODES),
        Source(Side.VIRTUAL, SERVICE_ACCOUNTS),
        Source(Side.HOST, PODS, marked=True),
    )
    rights = (Right(Side.VIRTUAL, SERVICE_ACCOUNTS, ("create",), "token"),)

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return a name that no copy of a Secret can have."""
        return tokens_key(settings, key)

    def predicate(self, virtual: Obj) -> bool:
        """Return True if the Pod mounts a token.

        A Pod's volumes never change, so others never need a Secret.
        """
        return bool(token_files(virtual))

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        """Leave Pods alone that are never run on the host."""
        if side is Side.VIRTUAL and lifecycle.is_mirror(obj):
            return reasons.STATIC_POD()
        return None

    def sync_down(self, ctx: Context[PodTokenConfig], virtual: Obj) -> Decision:
        """Request the tokens of a Pod that is about to run, or that runs and has lost them."""
        if not token_files(virtual):
            return skip(reasons.NO_TOKEN())
        if _ends(virtual):
            return skip(reasons.POD_OVER())
        if ctx.host_of(PODS, key_of(virtual)) is None and not _is_to_run(ctx, virtual):
            return skip(reasons.NOT_RUN())
        if missing := _missing_account(ctx, virtual):
            return wait(reasons.NO_SERVICE_ACCOUNT(missing.key.name), on=(missing,))
        return _renewed(ctx, virtual, reason="the Pod needs tokens of its ServiceAccount")

    def sync(self, ctx: Context[PodTokenConfig], pair: Pair) -> Decision:
        """Renew the tokens in time while the Pod runs."""
        if is_deleting(pair.host):
            return wait(reasons.REMADE("Secret"))
        if _ends(pair.virtual):
            return skip(reasons.POD_OVER())
        if not lifecycle.is_selected(ctx, pair.virtual):
            return delete(host=pair.host, reason="the Pod is no longer synced")
        left = _seconds_left(ctx, pair)
        node = _unnamed_node(ctx, pair)
        if left > 0 and not node:
            return apply(reason="the tokens are still valid").look_again(left)
        if left > 0 and ctx.virtual(NODES, Key("", node)) is None:
            there = ObjectRef(Side.VIRTUAL, NODES, Key("", node))
            return wait(reasons.TOKEN_WITHOUT_NODE(), after=left, on=(there,))

        if missing := _missing_account(ctx, pair.virtual):
            why = f"its ServiceAccount {missing.key.name} is not there"
            why = f"{why}, so its token can't be renewed; create the ServiceAccount again"
            raise Refused(why, reason="ServiceAccountNotFound")
        reason = "a token is about to end, or is missing"
        if left > 0:
            reason = "its tokens must name its Node"
        return _renewed(ctx, pair.virtual, reason=reason)


def _is_to_run(ctx: Context, virtual: Obj) -> bool:
    """Return True if the host should run a Pod that has no copy yet."""
    return lifecycle.is_selected(ctx, virtual) and not lifecycle.not_to_run(ctx, virtual)


def _ends(virtual: Obj) -> bool:
    return is_deleting(virtual) or lifecycle.is_finished(virtual)


def _missing_account(ctx: Context, virtual: Obj) -> ObjectRef | None:
    """Return the ServiceAccount if it is missing: no token can be issued then."""
    account = Key(key_of(virtual).namespace, service_account(virtual))
    there = ctx.virtual(SERVICE_ACCOUNTS, account) is not None
    if there:
        return None
    return ObjectRef(Side.VIRTUAL, SERVICE_ACCOUNTS, account)


def _unnamed_node(ctx: Context[PodTokenConfig], pair: Pair) -> str:
    """Return the Node of a Pod if its tokens are to name it and don't yet; ``""`` otherwise.

    The API server puts the node that the Pod is bound to at the time into a token.
    """
    if not ctx.config.name_node:
        return ""
    node: str = pair.virtual["spec"].get("nodeName") or ""
    if annotations_of(pair.host).get(f"{ctx.marks.prefix}/{NODE}") == node:
        return ""
    return node


def _renewed(ctx: Context[PodTokenConfig], virtual: Obj, *, reason: str) -> Decision:
    return apply(host=_secret(ctx, virtual), tokens=_tokens(virtual), reason=reason)


def _secret(ctx: Context[PodTokenConfig], virtual: Obj) -> Obj:
    """Return the Secret without its tokens.

    The tenant's labels and annotations on the Pod are not repeated on it.
    """
    host = ctx.host_copy(virtual)
    key = key_of(virtual)
    host["metadata"]["labels"] = ctx.marks.labels(ctx.identity, key)
    annotations = ctx.marks.annotations(ctx.resource, virtual, key_of(host))
    annotations[f"{ctx.marks.prefix}/{ASKED}"] = times.written(ctx.now)
    if ctx.config.name_node and (node := virtual["spec"].get("nodeName")):
        annotations[f"{ctx.marks.prefix}/{NODE}"] = node
    host["metadata"]["annotations"] = annotations
    return {**host, "type": "Opaque"}


def _tokens(virtual: Obj) -> tuple[Token, ...]:
    """Return the tokens of a Pod.

    Raises:
        TooLarge: There are too many.
    """
    files = token_files(virtual)
    if len(files) > MOST_TOKENS:
        why = f"it mounts {len(files)} tokens of its ServiceAccount, and {MOST_TOKENS} are accepted"
        how = "mount a volume with a token in several containers"
        raise TooLarge(f"{why}; {how}", path="spec.volumes")

    metadata = {"name": virtual["metadata"]["name"], "uid": uid_of(virtual)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    tokens = []
    for file in files:
        token = Token(
            field=file.field,
            service_account=service_account(virtual),
            namespace=key_of(virtual).namespace,
            seconds=file.seconds,
            audiences=file.audiences,
            bound_to=pod,
        )
        tokens.append(token)
    return tuple(tokens)


def _seconds_left(ctx: Context[PodTokenConfig], pair: Pair) -> float:
    """Return the seconds until the tokens must be renewed.

    0 if a token is missing, or its age is unknown. The granted lifetime counts, which an API server
    may have shortened.
    """
    fields = {file.field for file in token_files(pair.virtual)}
    if not fields <= (pair.host.get("data") or {}).keys():
        return 0
    asked = _time(pair.host, f"{ctx.marks.prefix}/{ASKED}")
    ends = _time(pair.host, ctx.marks.token_expires)
    if asked is None or ends is None:
        return 0
    due = max(ends - _LEFT * (ends - asked), asked + _SELDOM)
    return (due - ctx.now).total_seconds()


def _time(secret: Obj, annotation: str) -> datetime | None:
    """Return the time in an annotation; None if there is none that can be read."""
    try:
        return times.read(annotations_of(secret).get(annotation, ""))
    except ValueError:
        return None
