"""Objects that a Pod can't run without, and whose kinds may not be synced."""

from collections.abc import Iterator
from typing import NamedTuple

from syncer.api import Context, Obj, Refused, Resource
from syncer.resources.kinds import (
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)


class Need(NamedTuple):
    """A field of a Pod that names an object which must be there before the Pod is scheduled."""

    path: str
    resource: Resource
    #: The object, in words.
    thing: str


def refuse_unsynced(ctx: Context, virtual: Obj) -> None:
    """Refuse a Pod that needs an object of a kind that no syncer has on the host.

    It would stay pending there for ever, as its object is never made. It is decided again when a
    syncer of that kind begins.

    Raises:
        Refused: There is such an object.
    """
    for need in _needs(virtual["spec"]):
        if not ctx.synced(need.resource):
            kind = need.resource.kind
            why = f"needs {need.thing}, and objects of the kind {kind} are not synced to where"
            how = "the Pod waits until the operator of this virtual cluster enables a syncer of"
            sentence = f"{why} Pods run: {how} {need.resource}"
            raise Refused(sentence, path=need.path, reason="NotSynced")


def _needs(spec: Obj) -> Iterator[Need]:
    """Yield the claims that a Pod names, or that are made for it."""
    for number, volume in enumerate(spec.get("volumes") or ()):
        if claim := volume.get("persistentVolumeClaim"):
            thing = f"the PersistentVolumeClaim {claim.get('claimName')}"
            yield Need(f"spec.volumes[{number}]", PERSISTENT_VOLUME_CLAIMS, thing)
        elif volume.get("ephemeral"):
            thing = f"a PersistentVolumeClaim for its volume {volume.get('name')}"
            yield Need(f"spec.volumes[{number}]", PERSISTENT_VOLUME_CLAIMS, thing)
    for number, claim in enumerate(spec.get("resourceClaims") or ()):
        path = f"spec.resourceClaims[{number}]"
        if name := claim.get("resourceClaimName"):
            yield Need(path, RESOURCE_CLAIMS, f"the ResourceClaim {name}")
        elif name := claim.get("resourceClaimTemplateName"):
            yield Need(path, RESOURCE_CLAIM_TEMPLATES, f"the ResourceClaimTemplate {name}")
