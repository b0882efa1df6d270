"""The laws of syncer.testing.laws, over every syncer, and over some with other options."""

from typing import Any

from sampled import SAMPLES, registry

from syncer.api import Obj, Side, key_of
from syncer.names import PerNamespace, Unchanged
from syncer.resources.claims import ClaimSyncer
from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.ingresses import IngressSyncer
from syncer.resources.pods.syncer import PodSyncer
from syncer.resources.secrets import SecretSyncer
from syncer.resources.serviceaccounts import ServiceAccountSyncer
from syncer.resources.services import ServiceSyncer
from syncer.resources.snapshots import SnapshotSyncer
from syncer.testing import strategies
from syncer.testing.laws import Scene, Trial, laws_for
from syncer.testing.merge import merged
from syncer.testing.objects import ingress, namespace, pod_mounting

for _sample in SAMPLES.values():
    _laws = _sample.laws()
    globals()[f"Test{_laws.__name__}"] = _laws


def on(section: str, **options: Any) -> dict[str, Any]:
    direction, _, name = section.partition(".")
    return {"sync": {direction: {name: options}}}


def _mounted_configmap(configmap: Obj) -> Scene:
    key = key_of(configmap)
    return Scene(key, (configmap, pod_mounting("user", configmap=key.name, namespace=key.namespace)))


def _filled(configmap: Obj) -> Obj:
    return merged(configmap, {"data": {"a": "0"}, "immutable": None})


def _shares(side: Side, patch: Obj) -> Any:
    def change(trial: Trial) -> None:
        trial.settle()
        found = trial.copied() if side is Side.HOST else next(iter(trial.sources()), None)
        if found is not None:
            trial.world.given(**{side.value: [merged(found, patch)]})

    return change


def _at_home(configmap: Obj) -> Scene:
    return Scene(key_of(configmap), (configmap,), (namespace("vc-ns"),))


def _secret_of_ingress(secret: Obj) -> Scene:
    key = key_of(secret)
    return Scene(key, (secret, ingress("user", tls_secret=key.name, namespace=key.namespace)))


SHARING = {
    "the host changes what both own": _shares(Side.HOST, {"data": {"a": "theirs", "b": "theirs"}}),
    "the host changes what it owns": _shares(Side.HOST, {"binaryData": {"c": "AA=="}}),
    "the tenant changes what both own": _shares(Side.VIRTUAL, {"data": {"a": "ours"}, "binaryData": {"c": "AQ=="}}),
}

TestMountedConfigMaps = laws_for(
    ConfigMapSyncer, objects=strategies.configmaps().map(_mounted_configmap), together=[PodSyncer]
)
TestSharedConfigMaps = laws_for(
    ConfigMapSyncer,
    objects=strategies.configmaps().map(_filled),
    config=on("toHost.configMaps", all=True, authority={"data": "both", "binaryData": "host"}),
    events=SHARING,
)
TestReportedConfigMaps = laws_for(
    ConfigMapSyncer,
    objects=strategies.configmaps(),
    config=on("toHost.configMaps", all=True, onHostDeletion="report"),
)
TestPropagatedConfigMaps = laws_for(
    ConfigMapSyncer,
    objects=strategies.configmaps().map(_at_home),
    config=on("toHost.configMaps", all=True, onHostDeletion="propagate"),
)
TestConfigMapsWithMetadataRules = laws_for(
    ConfigMapSyncer,
    objects=strategies.configmaps(),
    config=on("toHost.configMaps", all=True, metadata={"labels": {"allow": ["app*"]}, "annotations": {"deny": ["*"]}}),
)
TestConfigMapsUnderTheirNames = laws_for(
    ConfigMapSyncer,
    objects=strategies.configmaps().map(_mounted_configmap),
    together=[PodSyncer],
    translator=Unchanged,
)
TestSecretsOfIngresses = laws_for(
    SecretSyncer,
    objects=strategies.secrets().map(_secret_of_ingress),
    together=[IngressSyncer],
    config=on("toHost.ingresses", enabled=True),
)
TestClaimsMadeFromSnapshots = laws_for(
    ClaimSyncer,
    objects=SAMPLES["persistentvolumeclaims"].objects,
    together=[SnapshotSyncer],
    config=on("toHost.volumeSnapshots", enabled=True),
)
TestServiceAccountsInNamespacesOfTheirOwn = laws_for(
    ServiceAccountSyncer, objects=strategies.serviceaccounts(), translator=PerNamespace
)
TestServicesWithTheSameAddress = laws_for(
    ServiceSyncer, objects=strategies.services(), config=on("toHost.services", clusterIP="same")
)


def test_every_syncer_is_under_the_laws() -> None:
    under = {value.__name__ for name, value in globals().items() if name.startswith("Test")}
    assert under == {f"LawsOf{syncer.name.title().replace('-', '')}" for syncer in registry()}
