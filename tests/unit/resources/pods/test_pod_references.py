"""The objects that a Pod refers to by name."""

from typing import Any

import pytest

from syncer.api import Key, Obj, Resource
from syncer.resources.kinds import CONFIG_MAPS, ENDPOINTS, PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIMS, SECRETS
from syncer.resources.pods.syncer import PodSyncer
from syncer.testing.objects import pod


def references(pod: Obj) -> set[tuple[Resource, Key]]:
    return set(PodSyncer().refers(pod))


def in_volume(source: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def in_container(part: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", **part}]}


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (in_volume({"configMap": {"name": "x"}}), CONFIG_MAPS),
        (in_volume({"projected": {"sources": [{"configMap": {"name": "x"}}]}}), CONFIG_MAPS),
        (in_container({"envFrom": [{"configMapRef": {"name": "x"}}]}), CONFIG_MAPS),
        (in_container({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x"}}}]}), CONFIG_MAPS),
        (in_volume({"secret": {"secretName": "x"}}), SECRETS),
        (in_volume({"projected": {"sources": [{"secret": {"name": "x"}}]}}), SECRETS),
        (in_volume({"azureFile": {"secretName": "x"}}), SECRETS),
        (in_volume({"cephfs": {"secretRef": {"name": "x"}}}), SECRETS),
        (in_volume({"cinder": {"secretRef": {"name": "x"}}}), SECRETS),
        (in_volume({"csi": {"nodePublishSecretRef": {"name": "x"}}}), SECRETS),
        (in_volume({"flexVolume": {"secretRef": {"name": "x"}}}), SECRETS),
        (in_volume({"glusterfs": {"endpoints": "x"}}), ENDPOINTS),
        (in_volume({"iscsi": {"secretRef": {"name": "x"}}}), SECRETS),
        (in_volume({"rbd": {"secretRef": {"name": "x"}}}), SECRETS),
        (in_volume({"scaleIO": {"secretRef": {"name": "x"}}}), SECRETS),
        (in_volume({"storageos": {"secretRef": {"name": "x"}}}), SECRETS),
        (in_container({"envFrom": [{"secretRef": {"name": "x"}}]}), SECRETS),
        (in_container({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x"}}}]}), SECRETS),
        ({"imagePullSecrets": [{"name": "x"}]}, SECRETS),
        (in_volume({"persistentVolumeClaim": {"claimName": "x"}}), PERSISTENT_VOLUME_CLAIMS),
        ({"resourceClaims": [{"name": "r", "resourceClaimName": "x"}]}, RESOURCE_CLAIMS),
    ],
)
def test_references_are_all_known(spec: dict[str, Any], kind: Resource) -> None:
    assert references(pod("web", spec=spec)) == {(kind, Key("shop", "x"))}


def test_init_containers_count_too() -> None:
    spec = {"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]}
    assert references(pod("web", spec=spec)) == {(SECRETS, Key("shop", "x"))}
