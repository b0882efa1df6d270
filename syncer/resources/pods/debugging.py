"""Ephemeral containers: those that a tenant adds to a running Pod, as ``kubectl debug`` does.

They are translated as other containers are, each is checked and sent by itself, and no refusal
holds up another one or the rest of the Pod: an ephemeral container can't be changed or removed once
it is there. See https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/.
"""

from functools import partial

from syncer.api import Context, Decision, Marks, NotYet, Obj, Pair, Refused, merge, wait
from syncer.resources.pods import policy, record
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.env import pod_variables, with_env
from syncer.resources.pods.fields import CONTAINERS
from syncer.resources.pods.references import PATHS

#: The subresource that they are added through, and the field that they are in.
SUBRESOURCE = "ephemeralcontainers"
FIELD = "ephemeralContainers"
#: Why a container is refused whose name the host pod has already, though it wasn't sent.
TAKEN = "the host has a container of this name in the pod already; choose another name"


def added(ctx: Context[PodConfig], pair: Pair, sent: record.PodRecord) -> Decision | None:
    """Return the merges of the ephemeral containers that the host pod lacks; None if it has all.

    Each is recorded once the host has accepted it: only then is it the tenant's. A decision without
    writes warns of those that are refused, or waits for an object that one names.
    """
    wanted = pair.virtual["spec"].get(FIELD)
    if not wanted:
        return None
    unsent = [container for container in wanted if not sent.has(FIELD, container["name"])]
    if not unsent:
        return None
    there = set()
    for part in CONTAINERS:
        there |= {container["name"] for container in pair.host["spec"].get(part) or ()}
    refused = [f"{each['name']}: {TAKEN}" for each in unsent if each["name"] in there]
    missing = [each for each in unsent if each["name"] not in there]

    most = ctx.config.max_ephemeral_containers
    room = max(most - len(wanted) + len(missing), 0)
    if len(missing) > room:
        refused.append(f"a Pod may have {most} of them here, and it has {len(wanted)}")

    variables: list[Obj] = []
    if room:
        variables = pod_variables(ctx, pair.virtual).env
    decision = Decision()
    latest = sent
    for container in missing[:room]:
        name = container["name"]
        try:
            _refuse_parts_of_host(container, sent)
            further = latest.with_container(FIELD, container).bounded()
            translated = with_env(_translated(ctx, pair, container), variables)
        except Refused as error:
            why = f"{name}: {error}"
            if error.reason == "PodSecurity":
                why = f"{why}; kubectl debug takes --profile={ctx.config.pod_security}"
            refused.append(why)
        except NotYet as error:
            decision = decision.then(wait(error.why, on=(error.on,)))
        else:
            latest = further
            decision = decision.then(_merged(ctx, pair, sent, translated))

    if refused:
        why = f"ephemeral containers that are not started: {policy.joined(refused)}"
        decision = decision.warn("EphemeralContainerRefused", why)
    return decision


def _merged(
    ctx: Context[PodConfig],
    pair: Pair,
    sent: record.PodRecord,
    container: Obj,
) -> Decision:
    """Return the merge of an ephemeral container into the host pod, and then into the record."""
    name = container["name"]
    host = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pair.host["metadata"],
        "spec": {FIELD: [container]},
    }
    reason = f"its owner adds the ephemeral container {name}"
    note = partial(_note, ctx.marks, sent, container)
    return merge(host=host, subresource=SUBRESOURCE, reason=reason, afterwards=note)


def _note(marks: Marks, sent: record.PodRecord, container: Obj, host: Obj) -> Obj:
    """Return the annotation that records an ephemeral container which the host has accepted."""
    latest = sent
    if record.has_record(marks, host):
        latest = record.recorded(marks, host)
    return {record.mark(marks): latest.with_container(FIELD, container).written()}


def _refuse_parts_of_host(container: Obj, sent: record.PodRecord) -> None:
    """Refuse a container that gets at what of the host pod isn't the tenant's.

    Raises:
        Refused: It shares the processes of a container, or mounts a volume, that wasn't sent.
    """
    target = container.get("targetContainerName")
    if target and target not in sent.names:
        raise Refused(f"its target {target} is no container of this Pod; choose one of them")
    record.refuse_others({"spec": {FIELD: [container]}}, {"volume": sent.volumes})


def _translated(ctx: Context[PodConfig], pair: Pair, container: Obj) -> Obj:
    """Return a container for the host.

    Raises:
        Refused: It breaks the Pod Security level, or names an object that it may not.
        NotYet: It names an object whose place on the host isn't known yet.
    """
    spec = pair.host["spec"]
    alone = {name: spec[name] for name in policy.AROUND_CONTAINERS if name in spec}
    alone[FIELD] = [container]
    policy.refuse_insecure(ctx, {"metadata": pair.host["metadata"], "spec": alone})

    made = PATHS.to_host(ctx, pair.virtual, {"spec": {FIELD: [container]}})
    translated: Obj = made["spec"][FIELD][0]
    return translated
