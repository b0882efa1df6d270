"""Ephemeral containers: those that a tenant adds to a running Pod, as ``kubectl debug`` does.

They are translated as other containers are, each is checked and sent by itself, and no refusal holds
up another one or the rest of the Pod: an ephemeral container can't be changed or removed once it is
there. See https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/.
"""

from functools import partial

from syncer.api import Context, Decision, Marks, NotYet, Obj, Pair, Refused, merge, wait
from syncer.resources.pods import containers, policy
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.env import service_env, with_env
from syncer.resources.pods.fields import CONTAINERS
from syncer.resources.pods.references import PATHS

#: The subresource that they are added through, and the field that they are in.
SUBRESOURCE, FIELD = "ephemeralcontainers", "ephemeralContainers"
#: Why a container is refused whose name the host pod has already, though it wasn't sent.
TAKEN = "the host has another container of this name in the pod; choose another name"


def added(ctx: Context[PodConfig], pair: Pair, sent: containers.Sent) -> Decision | None:
    """Return the merges of the ephemeral containers that the host pod lacks; None if it has all.

    Each is recorded once the host has accepted it: only then is it the tenant's. A decision without
    writes warns of those that are refused, or waits for what one names.
    """
    wanted = pair.virtual["spec"].get(FIELD)
    if not wanted:
        return None
    unsent = [container for container in wanted if container["name"] not in sent.get(FIELD, ())]
    if not unsent:
        return None
    there = {container["name"] for part in CONTAINERS for container in pair.host["spec"].get(part) or ()}
    missing = [container for container in unsent if container["name"] not in there]
    most, decision = ctx.config.max_ephemeral_containers, Decision()
    refused = [f"{each['name']}: {TAKEN}" for each in unsent if each["name"] in there]
    room = max(most - len(wanted) + len(missing), 0)
    if len(missing) > room:
        refused.append(f"a Pod may have {most} of them here, and it has {len(wanted)}")
    variables, _ = service_env(ctx, pair.virtual) if room else ([], "")
    for container in missing[:room]:
        try:
            _refuse_other_target(container, sent)
            spec = {FIELD: [with_env(_translated(ctx, pair, container), variables)]}
        except Refused as error:
            hint = f"; kubectl debug takes --profile={ctx.config.pod_security}" if error.reason == "PodSecurity" else ""
            refused.append(f"{container['name']}: {error}{hint}")
        except NotYet as error:
            decision = decision.then(wait(str(error), on=(error.on,)))
        else:
            reason = f"its owner adds the ephemeral container {container['name']}"
            host = {"apiVersion": "v1", "kind": "Pod", "metadata": pair.host["metadata"], "spec": spec}
            note = partial(_note, ctx.marks, sent, container["name"])
            decision = decision.then(merge(host=host, subresource=SUBRESOURCE, reason=reason, afterwards=note))
    if refused:
        why = f"ephemeral containers that are not started: {policy.told(refused)}"
        decision = decision.warn("EphemeralContainerRefused", why)
    return decision


def _note(marks: Marks, sent: containers.Sent, name: str, host: Obj) -> Obj:
    """Return the annotations of a host pod that record an ephemeral container which it has accepted."""
    latest = containers.recorded(marks, host) if containers.has_record(marks, host) else sent
    return {containers.mark(marks): containers.written(containers.with_further(latest, FIELD, name))}


def _refuse_other_target(container: Obj, sent: containers.Sent) -> None:
    """Refuse a container that looks into one which isn't the tenant's.

    Raises:
        Refused: It does.
    """
    target = container.get("targetContainerName")
    if target and target not in containers.names_of(sent):
        raise Refused(f"its target {target} is no container of this Pod; choose one of them")


def _translated(ctx: Context[PodConfig], pair: Pair, container: Obj) -> Obj:
    """Return a container for the host.

    Raises:
        Refused: It breaks the Pod Security level, or names an object that it may not.
        NotYet: It names an object whose place on the host isn't known yet.
    """
    around = {name: value for name, value in pair.host["spec"].items() if name in policy.AROUND_CONTAINERS}
    policy.refuse_insecure(ctx, {"metadata": pair.host["metadata"], "spec": {**around, FIELD: [container]}})
    translated: Obj = PATHS.to_host(ctx, pair.virtual, {"spec": {FIELD: [container]}})["spec"][FIELD][0]
    return translated
