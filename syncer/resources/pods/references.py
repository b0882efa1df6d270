"""The references in a Pod: a single table for the index and the translation.

Images are among them, so that each list of containers and each volume has those of the host.
"""

from syncer.api import Context, ReferencePaths, References, Resource, Rewritten
from syncer.resources.kinds import (
    CONFIG_MAPS,
    ENDPOINTS,
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SECRETS,
)
from syncer.resources.pods.config import PodConfig
from syncer.resources.pods.fields import CONTAINERS, FIELD_REFERENCES, host_field

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
    "glusterfs.endpoints": ENDPOINTS,
    "iscsi.secretRef.name": SECRETS,
    "rbd.secretRef.name": SECRETS,
    "scaleIO.secretRef.name": SECRETS,
    "storageos.secretRef.name": SECRETS,
}


def _host_field(ctx: Context, field: str) -> str:
    return host_field(field, ctx.marks)


def _host_image(ctx: Context, name: str) -> str:
    pods = ctx.settings.section("pods", PodConfig)
    if pods is None or not pods.images:
        return name
    return pods.image_names.on_host(name)


def _references() -> References:
    found: dict[str, Resource | Rewritten] = {}
    image = Rewritten(_host_image)
    for part in CONTAINERS:
        for path, kind in _CONTAINER.items():
            found[f"spec.{part}[].{path}"] = kind
        found[f"spec.{part}[].image"] = image
    for path, kind in _VOLUME.items():
        found[f"spec.volumes[].{path}"] = kind
    found["spec.volumes[].image.reference"] = image
    found["spec.imagePullSecrets[].name"] = SECRETS
    found["spec.resourceClaims[].resourceClaimName"] = RESOURCE_CLAIMS
    found["spec.resourceClaims[].resourceClaimTemplateName"] = RESOURCE_CLAIM_TEMPLATES
    for path in FIELD_REFERENCES:
        found[path] = Rewritten(_host_field)
    return found


#: Names of other objects and of images in a Pod, and field references to the Pod itself, by path.
REFERENCES: References = _references()

PATHS = ReferencePaths(REFERENCES)
