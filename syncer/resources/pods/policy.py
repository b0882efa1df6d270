"""The operator's policy for Pods: the requests that a Pod may make of the host, and its defaults.

It applies when the host pod is created. Of these fields, only ephemeral containers and tolerations
can be added later: the former are checked then, the latter are without those of enforced taints.
"""

import math
from collections.abc import Iterator, Mapping

from syncer.api import Context, Obj, Refused, Side
from syncer.resources.pods import tolerations
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.security import violations
from syncer.translate.messages import MOST_LISTED

#: Volume types that name only the tenant's own objects. ``hostPath`` is for the Pod Security level
#: to allow.
_VOLUMES = frozenset(
    [
        "configMap",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "hostPath",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
#: Sources of projected volumes that do so. A ``podCertificate`` would be one of the host pod's
#: identity, a ``clusterTrustBundle`` the host's.
_SOURCES = frozenset(["configMap", "downwardAPI", "secret", "serviceAccountToken"])
#: The first minor version of Kubernetes 1 in which Pod Security lifts rules for Pods with users of
#: their own.
USER_NAMESPACES_SINCE = 35
#: The fields of a Pod that rules about its containers read.
AROUND_CONTAINERS = ("hostUsers", "os", "securityContext")


def applied(ctx: Context[PodConfig], host: Obj, node_labels: Mapping[str, str]) -> Obj:
    """Return the host pod with the fields that the operator gives each Pod.

    ``node_labels`` are those of the nodes that appear in the virtual cluster.

    Raises:
        Refused: The Pod asks for more than it may.
        TooLarge: It has too many tolerations.
    """
    config = ctx.config
    spec = host["spec"]
    if spec.get("nodeName") and not config.allow_node_name:
        why = "the host's scheduler chooses the node: leave it out, or use nodeSelector or affinity"
        raise Refused(why, path="spec.nodeName", reason="NodeNameRefused")
    unknown = dict.fromkeys(_unknown_volumes(spec, frozenset(config.allow_volumes)))
    if unknown:
        why = f"these types of volumes are not allowed here: {joined(list(unknown))}"
        raise Refused(why, path="spec.volumes", reason="VolumeRefused")
    refuse_insecure(ctx, host)
    given = _given(config, spec, node_labels)
    if not given:
        return host
    return {**host, "spec": {**spec, **given}}


def refuse_insecure(ctx: Context[PodConfig], host: Obj) -> None:
    """Check a host pod by the Pod Security level, as strictly as a host of its version would.

    Raises:
        Refused: It breaks the level.
    """
    level = ctx.config.pod_security
    is_isolated = ctx.minor_version(Side.HOST) >= USER_NAMESPACES_SINCE
    if broken := violations(level, host, user_namespaces=is_isolated):
        why = f"it breaks the Pod Security level {level}, which holds here: {joined(broken)}"
        raise Refused(why, path="spec", reason="PodSecurity")


def _unknown_volumes(spec: Obj, allowed: frozenset[str]) -> Iterator[str]:
    """Yield the types of volumes, and of sources in projected ones, that are not allowed."""
    for volume in spec.get("volumes") or ():
        yield from volume.keys() - _VOLUMES - allowed - {"name"}
        for source in (volume.get("projected") or {}).get("sources") or ():
            for each in source.keys() - _SOURCES:
                kind = f"projected.{each}"
                if kind not in allowed:
                    yield kind


def joined(phrases: list[str]) -> str:
    """Return phrases for a message, of many the first ones."""
    text = "; ".join(phrases[:MOST_LISTED])
    if len(phrases) > MOST_LISTED:
        return f"{text} and {len(phrases) - MOST_LISTED} more"
    return text


def _given(config: PodConfig, spec: Obj, node_labels: Mapping[str, str]) -> Obj:
    """Return the fields of the spec that the operator sets."""
    fields: Obj = {}
    if config.node_selector or node_labels:
        fields["nodeSelector"] = {
            **(spec.get("nodeSelector") or {}),
            **config.node_selector,
            **node_labels,
        }
    # Also checks their number, whether or not the operator gives any.
    own = tolerations.own(spec)
    if config.tolerations or config.enforced_taints:
        own = tolerations.allowed(own, config.enforced_taints)
        ours = [one.model_dump(by_alias=True, exclude_defaults=True) for one in config.tolerations]
        fields["tolerations"] = [*own, *tolerations.missing(ours, own)]
    if config.runtime_class_name:
        fields["runtimeClassName"] = config.runtime_class_name
    grace = spec.get("terminationGracePeriodSeconds")
    bounded = bounded_grace(config, grace)
    if bounded != grace:
        fields["terminationGracePeriodSeconds"] = bounded
    return fields


def bounded_grace(config: PodConfig, grace: int | None) -> int | None:
    """Return a grace period in seconds, at most the one that the operator allows.

    None stands for the default.
    """
    longest = math.ceil(config.max_termination_grace_period)
    if grace is not None and 0 < longest < grace:
        return longest
    return grace
