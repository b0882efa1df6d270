"""The laws of syncer.testing.laws, over every built-in syncer."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from syncer.api import Key, Obj, Side, key_of
from syncer.names import PerNamespace, Unchanged
from syncer.plugins import installed
from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.definitions.public import PublicDefinitionSyncer
from syncer.resources.definitions.tenant import TenantDefinitionSyncer
from syncer.resources.events import EventSyncer
from syncer.resources.ingresses import IngressSyncer
from syncer.resources.namespaces import NamespaceSyncer
from syncer.resources.nodes import NodeSyncer
from syncer.resources.pods.fields import service_account
from syncer.resources.pods.spec import DROPPED
from syncer.resources.pods.syncer import PodSyncer
from syncer.resources.pods.tokens import PodTokenSyncer
from syncer.resources.secrets import SecretSyncer
from syncer.resources.serviceaccounts import ServiceAccountSyncer
from syncer.resources.services import ServiceSyncer
from syncer.testing import strategies
from syncer.testing.laws import Scene, Trial, laws_for
from syncer.testing.merge import merged
from syncer.testing.objects import host_copy, ingress, namespace, node, pod_mounting, serviceaccount
from syncer.testing.pod_strategies import pods

OURS = {"metadata": {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}}}
RUNNING = {
    "phase": "Running",
    "podIP": "10.1.0.7",
    "podIPs": [{"ip": "10.1.0.7"}],
    "startTime": "2026-01-01T12:00:05Z",
    "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [{"name": "c0", "ready": True, "restartCount": 0, "image": "i:1", "imageID": "sha256:1"}],
}


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


def _on_node(virtual: Obj) -> Scene:
    return Scene(Key("", "n1"), (virtual,), (host_copy(virtual, spec={"nodeName": "n1"}),))


def _told(virtual: Obj) -> st.SearchStrategy[Scene]:
    copied = host_copy(virtual, metadata={"uid": "copy-1"})
    scene = st.builds(lambda event: (event, copied), strategies.events(st.just(copied)))
    return scene.map(lambda pair: Scene(_virtual_name(virtual, *pair), (virtual,), pair))


def _virtual_name(virtual: Obj, event: Obj, copied: Obj) -> Key:
    name = event["metadata"]["name"].replace(copied["metadata"]["name"], virtual["metadata"]["name"], 1)
    return Key(virtual["metadata"]["namespace"], name)


def _runnable(virtual: Obj) -> Scene:
    return Scene(key_of(virtual), (virtual, namespace(key_of(virtual).namespace), node("n1", **OURS)))


def _with_token(virtual: Obj) -> Scene:
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]
    volume = {"name": "kube-api-access", "projected": {"sources": sources}}
    spec = virtual["spec"]
    scene = _runnable(
        merged(virtual, {"spec": {"volumes": [*spec.get("volumes", ()), volume], "schedulingGates": None}})
    )
    account = serviceaccount(service_account(virtual), namespace=scene.key.namespace)
    return replace(scene, virtual=(*scene.virtual, account))


def _public(host: Obj) -> Scene:
    labelled = merged(host, {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}})
    return Scene(key_of(host), (), (labelled,))


def _placed(trial: Trial) -> None:
    trial.change_copy({"spec": {"nodeName": "n1"}})


def _runs(trial: Trial) -> None:
    _placed(trial)
    trial.change_copy({"status": RUNNING})


def _ends(side: Side) -> Any:
    def end(trial: Trial) -> None:
        found = trial.sources()[0] if side is Side.VIRTUAL and trial.sources() else trial.copied()
        if found is not None:
            mark = {"deletionTimestamp": "2026-01-01T12:30:00Z", "deletionGracePeriodSeconds": 30}
            trial.world.given(**{side.value: [merged(found, {"metadata": mark})]})

    return end


#: Selectors of namespaces become selectors of pods.
FOLDED = [
    f"spec.affinity.{part}.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector"
    for part in ("podAffinity", "podAntiAffinity")
]

LIFE = {
    "the host places the pod": _placed,
    "the host runs the pod": _runs,
    "the tenant deletes the pod": _ends(Side.VIRTUAL),
    "the host deletes the pod": _ends(Side.HOST),
}

SHARING = {
    "the host changes what both own": _shares(Side.HOST, {"data": {"a": "theirs", "b": "theirs"}}),
    "the host changes what it owns": _shares(Side.HOST, {"binaryData": {"c": "AA=="}}),
    "the tenant changes what both own": _shares(Side.VIRTUAL, {"data": {"a": "ours"}, "binaryData": {"c": "AQ=="}}),
}

TestConfigMaps = laws_for(
    ConfigMapSyncer, objects=strategies.configmaps().map(_mounted_configmap), together=[PodSyncer]
)
TestAllConfigMaps = laws_for(ConfigMapSyncer, objects=strategies.configmaps(), config=on("toHost.configMaps", all=True))
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
TestSecrets = laws_for(SecretSyncer, objects=strategies.secrets(), config=on("toHost.secrets", all=True))
TestSecretsOfIngresses = laws_for(
    SecretSyncer,
    objects=strategies.secrets().map(_secret_of_ingress),
    together=[IngressSyncer],
    config=on("toHost.ingresses", enabled=True),
)
TestServiceAccounts = laws_for(ServiceAccountSyncer, objects=strategies.serviceaccounts())
TestServiceAccountsInNamespacesOfTheirOwn = laws_for(
    ServiceAccountSyncer, objects=strategies.serviceaccounts(), translator=PerNamespace
)
TestConfigMapsUnderTheirNames = laws_for(
    ConfigMapSyncer,
    objects=strategies.configmaps().map(_mounted_configmap),
    together=[PodSyncer],
    translator=Unchanged,
)
TestServices = laws_for(ServiceSyncer, objects=strategies.services())
TestServicesWithTheSameAddress = laws_for(
    ServiceSyncer, objects=strategies.services(), config=on("toHost.services", clusterIP="same")
)
TestNamespaces = laws_for(
    NamespaceSyncer,
    objects=strategies.objects(NamespaceSyncer.resource, st.just({}), names=strategies.LABELS),
    translator=PerNamespace,
)
TestIngresses = laws_for(IngressSyncer, objects=strategies.ingresses(), config=on("toHost.ingresses", enabled=True))
TestNodes = laws_for(NodeSyncer, objects=pods().map(_on_node))
TestEvents = laws_for(
    EventSyncer, objects=pods().flatmap(_told), together=[PodSyncer], dropped=["involvedObject", "related"]
)
TestPods = laws_for(
    PodSyncer,
    objects=pods().map(_runnable),
    config={"networking": {"dns": {"service": ""}}},
    dropped=[*(f"spec.{name}" for name in DROPPED), *FOLDED],
    events=LIFE,
)
TestPublicDefinitions = laws_for(
    PublicDefinitionSyncer,
    objects=strategies.crds("widgets.example.com", "a.b.example.com").map(_public),
    config=on("fromHost.customResourceDefinitions", enabled=True, onRemoval="delete", deny=["*.b.*"]),
    dropped=["spec.conversion"],
)
TestTenantDefinitions = laws_for(
    TenantDefinitionSyncer,
    objects=strategies.crds("widgets.example.com", "a.b.example.com"),
    config=on("toHost.customResourceDefinitions", enabled=True, onRemoval="delete", names=["widgets.example.com"]),
    dropped=["spec.conversion"],
)
TestPodTokens = laws_for(PodTokenSyncer, objects=pods().map(_with_token), events=LIFE)


def test_every_built_in_syncer_is_under_the_laws() -> None:
    under = {value.__name__ for name, value in globals().items() if name.startswith("Test")}
    assert under == {f"LawsOf{syncer.name.title().replace('-', '')}" for syncer in installed().syncers()}
