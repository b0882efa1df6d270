"""What a Pod refers to by name, as one table: it serves the indexes, the watches and the translation alike."""

from collections.abc import Iterable

from syncer.api import Key, Obj, Paths, Resource, annotations_of
from syncer.resources.kinds import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SECRETS,
)

#: The annotation of the kubelet on a Pod that only mirrors a manifest on a node's disk.
MIRROR = "kubernetes.io/config.mirror"

_CONTAINER: dict[str, Resource] = {
    "env[].valueFrom.configMapKeyRef.name": CONFIG_MAPS,
    "env[].valueFrom.secretKeyRef.name": SECRETS,
    "envFrom[].configMapRef.name": CONFIG_MAPS,
    "envFrom[].secretRef.name": SECRETS,
}

_VOLUME: dict[str, Resource] = {
    "configMap.name": CONFIG_MAPS,
    "secret.secretName": SECRETS,
    "persistentVolumeClaim.claimName": PERSISTENT_VOLUME_CLAIMS,
    "projected.sources[].configMap.name": CONFIG_MAPS,
    "projected.sources[].secret.name": SECRETS,
    "azureFile.secretName": SECRETS,
    "cephfs.secretRef.name": SECRETS,
    "cinder.secretRef.name": SECRETS,
    "csi.nodePublishSecretRef.name": SECRETS,
    "flexVolume.secretRef.name": SECRETS,
    "iscsi.secretRef.name": SECRETS,
    "rbd.secretRef.name": SECRETS,
    "scaleIO.secretRef.name": SECRETS,
    "storageos.secretRef.name": SECRETS,
}

#: Paths below a Pod's ``spec`` whose strings are names in the Pod's namespace, with what they name.
NAMES: dict[str, Resource] = {
    **{f"{part}[].{path}": kind for part in ("containers", "initContainers") for path, kind in _CONTAINER.items()},
    **{f"volumes[].{path}": kind for path, kind in _VOLUME.items()},
    "imagePullSecrets[].name": SECRETS,
    "resourceClaims[].resourceClaimName": RESOURCE_CLAIMS,
    "resourceClaims[].resourceClaimTemplateName": RESOURCE_CLAIM_TEMPLATES,
}

_REFERENCES = Paths(NAMES)


def references(pod: Obj) -> Iterable[tuple[Resource, Key]]:
    """Everything that a Pod's spec names, in its own namespace; nothing where it is never synced."""
    if MIRROR in annotations_of(pod):
        return ()
    namespace = pod["metadata"].get("namespace", "")
    return {(kind, Key(namespace, name)) for kind, name in _REFERENCES.found(pod.get("spec") or {})}
