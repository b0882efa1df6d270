"""ConfigMaps and Secrets are on the host only while a synced object needs them."""

from typing import Any

import pytest

from syncer.api import Key, NameTaken, Obj, Outcome, Refused, Verb
from syncer.engine.reconcile.policies import staleness
from syncer.engine.stores.references import References
from syncer.names import Unchanged
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, ingress, namespace, pod, pod_mounting, secret

COPY = "vc-ns/db-x-shop-x-vc"
FORCED: dict[str, Any] = {"metadata": {"annotations": {"vsyncer.dev/force-sync": "true"}}}
INGRESSES_ON = {"sync": {"toHost": {"ingresses": {"enabled": True}}}}


def test_object_that_a_pod_mounts_is_copied(world: World) -> None:
    world.given(virtual=[secret("db"), pod_mounting("web", secret="db")])
    [write] = world.decide("secrets", "shop/db").writes
    assert (write.obj["metadata"]["name"], write.obj["type"]) == ("db-x-shop-x-vc", "Opaque")
    assert write.obj["data"] == secret("db")["data"]


RELEASE = "helm.sh/release.v1"


def _release(kind: str, owner: str, by: str) -> Obj:
    metadata = {"labels": {owner: by, "name": "syncer", "status": "deployed"}, **FORCED["metadata"]}
    return secret("db", metadata=metadata, type=RELEASE) if kind == "secrets" else configmap("db", metadata=metadata)


@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
@pytest.mark.parametrize(("owner", "by"), [("owner", "helm"), ("OWNER", "TILLER")])
def test_release_of_a_tenant_is_none_for_helm_on_the_host(world: World, kind: str, owner: str, by: str) -> None:
    world.given(virtual=[_release(kind, owner, by)])
    [write] = world.decide(kind, "shop/db").writes
    assert owner not in write.obj["metadata"]["labels"], "Helm finds releases by it alone"
    assert write.obj["metadata"]["labels"]["name"] == "syncer"
    assert write.obj.get("type") == ("Opaque" if kind == "secrets" else None)
    assert f"metadata.labels[{owner}]" in world.left_out(kind, "shop/db")


def test_copy_with_a_type_from_a_patch_stays() -> None:
    patch = {"op": "replace", "path": "/type", "value": "example.org/odd"}
    world = World(config={"sync": {"toHost": {"secrets": {"all": True, "patches": {"down": [patch]}}}}})
    world.given(virtual=[secret("db")])
    world.settle("secrets", "shop/db")
    assert (world.copy_of("secrets", "shop/db") or {})["type"] == "example.org/odd"
    assert not world.decide("secrets", "shop/db").deletes


def test_copy_with_a_control_plane_type_is_replaced(world: World) -> None:
    world.given(virtual=[_release("secrets", "owner", "helm")]).settle("secrets", "shop/db")
    world.given(host=[merged(world.copy_of("secrets", "shop/db") or {}, {"type": RELEASE})])
    sent = [str(each) for each in world.settle("secrets", "shop/db")]
    assert sent == [f"delete host secrets {COPY}", f"create host secrets {COPY}"]
    assert (world.copy_of("secrets", "shop/db") or {})["type"] == "Opaque"


def test_object_that_nothing_uses_is_skipped_with_a_hint(world: World) -> None:
    world.given(virtual=[configmap("db"), pod_mounting("web", configmap="db", namespace="other")])
    decision = world.decide("configmaps", "shop/db")
    assert (decision.outcome, decision.writes) == (Outcome.SKIPPED, ())
    assert "sync.toHost.configMaps.all" in decision.reason
    assert "vsyncer.dev/force-sync" in decision.reason


def test_annotation_copies_an_unused_object_only_if_the_operator_lets_it() -> None:
    world = World().given(virtual=[configmap("db", **FORCED)])
    world.settle("configmaps", "shop/db")
    assert world.copy_of("configmaps", "shop/db")
    world.configure({"sync": {"toHost": {"configMaps": {"forceSync": False}}}})
    world.settle("configmaps", "shop/db")
    assert world.copy_of("configmaps", "shop/db") is None
    assert "force-sync" not in world.decide("configmaps", "shop/db").reason


@pytest.mark.reason("UsersUnknown")
def test_object_waits_while_its_users_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(References, "of", lambda references, resource, virtual: None)
    world = World().given(virtual=[configmap("db")])
    assert world.decide("configmaps", "shop/db").outcome is Outcome.PENDING


@pytest.mark.reason("ListedJustNow")
def test_unused_copy_stays_while_a_list_may_be_old(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.given(virtual=[pod_mounting("web", configmap="db"), configmap("db")])
    world.settle("configmaps", "shop/db")
    world.gone(virtual=[pod_mounting("web", configmap="db")])
    monkeypatch.setattr(staleness, "_doubt", lambda observed: 3.0)
    decision = world.decide("configmaps", "shop/db")
    assert (decision.outcome, decision.after) == (Outcome.PENDING, 3.0)


def test_copy_goes_with_the_last_user(world: World) -> None:
    user = pod_mounting("web", configmap="db")
    world.given(virtual=[configmap("db"), user]).settle("configmaps", "shop/db")
    world.gone(virtual=[user])
    assert [str(sent) for sent in world.settle("configmaps", "shop/db")] == [f"delete host configmaps {COPY}"]


def test_pod_that_begins_or_ceases_to_name_one_wakes_it(world: World) -> None:
    world.given(virtual=[configmap("db")]).woken()
    user = pod_mounting("web", configmap="db")
    world.given(virtual=[user])
    assert "configmaps shop/db" in map(str, world.woken())
    world.given(virtual=[merged(user, {"metadata": {"labels": {"a": "b"}}})])
    assert "configmaps shop/db" not in map(str, world.woken())
    world.gone(virtual=[user])
    assert "configmaps shop/db" in map(str, world.woken())


def test_copy_can_be_forced(world: World) -> None:
    world.given(virtual=[configmap("db", **FORCED)])
    assert world.decide("configmaps", "shop/db").writes[0].verb is Verb.APPLY


def test_option_all_copies_every_object_but_the_root_ca(world: World) -> None:
    world.configure({"sync": {"toHost": {"configMaps": {"all": True}}}})
    world.given(virtual=[configmap("db"), configmap("kube-root-ca.crt")])
    assert world.decide("configmaps", "shop/db").writes
    assert not world.decide("configmaps", "shop/kube-root-ca.crt").writes
    world.given(virtual=[pod_mounting("web", configmap="kube-root-ca.crt")])
    assert world.decide("configmaps", "shop/kube-root-ca.crt").writes


def test_changes_and_removed_keys_go_down_and_host_edits_are_undone(world: World) -> None:
    world.given(virtual=[configmap("db", {"a": "1", "b": "2"}, **FORCED)]).settle("configmaps", "shop/db")
    changed = configmap("db", {"a": "3"}, **FORCED)
    world.given(virtual=[changed]).settle("configmaps", "shop/db")
    assert (world.host("ConfigMap", COPY) or {})["data"] == {"a": "3"}
    host = world.host("ConfigMap", COPY) or {}
    world.given(host=[{**host, "data": {"a": "3", "added": "on the host"}}]).settle("configmaps", "shop/db")
    assert (world.host("ConfigMap", COPY) or {})["data"] == {"a": "3"}


def test_immutable_copy_with_other_contents_is_replaced(world: World) -> None:
    world.given(virtual=[configmap("db", {"a": "1"}, immutable=True, **FORCED)]).settle("configmaps", "shop/db")
    host = world.host("ConfigMap", COPY) or {}
    assert host["immutable"] is True
    world.given(host=[{**host, "data": {"a": "0"}}])
    calls = [str(sent) for sent in world.settle("configmaps", "shop/db")]
    assert calls == [f"delete host configmaps {COPY}", f"create host configmaps {COPY}"]


@pytest.mark.parametrize("kind", ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"])
def test_credentials_of_the_control_plane_are_opaque_on_the_host_and_only_there_when_used(
    world: World, kind: str
) -> None:
    world.configure({"sync": {"toHost": {"secrets": {"all": True}}}})
    world.given(virtual=[secret("db", type=kind)])
    assert not world.decide("secrets", "shop/db").writes
    world.given(virtual=[pod_mounting("web", secret="db")])
    [write] = world.decide("secrets", "shop/db").writes
    assert write.obj["type"] == "Opaque"


def test_ingress_keeps_its_certificate_only_where_ingresses_are_synced(world: World) -> None:
    world.given(virtual=[secret("db"), ingress("web", tls_secret="db")])
    assert not world.decide("secrets", "shop/db").writes
    assert world.configure(INGRESSES_ON).decide("secrets", "shop/db").writes


def test_ingress_that_begins_to_name_one_wakes_it(world: World) -> None:
    world.configure(INGRESSES_ON).given(virtual=[secret("db")]).woken()
    world.given(virtual=[ingress("web", tls_secret="db")])
    assert "secrets shop/db" in map(str, world.woken())


def test_names_of_pod_tokens_are_kept_free(world: World) -> None:
    world.given(virtual=[secret("web.pod-tokens", **FORCED)])
    with pytest.raises(Refused, match="kept for the tokens of Pods"):
        world.decide("secrets", "shop/web.pod-tokens")


@pytest.mark.parametrize(
    "spec",
    [
        {"imagePullSecrets": [{"name": "db"}]},
        {"initContainers": [{"name": "i", "image": "x", "envFrom": [{"secretRef": {"name": "db"}}]}]},
        {"containers": [{"name": "c", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db"}}}]}]},
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "db"}}]}}]},
        {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "db"}}}]},
        {"volumes": [{"name": "v", "azureFile": {"secretName": "db", "shareName": "s"}}]},
    ],
)
def test_references_of_every_kind_to_a_secret_count(world: World, spec: Obj) -> None:
    world.given(virtual=[secret("db"), pod("web", spec=spec)])
    assert world.decide("secrets", "shop/db").writes


def test_mirror_of_a_static_pod_uses_nothing(world: World) -> None:
    mirror: dict[str, Any] = {"metadata": {"annotations": {"kubernetes.io/config.mirror": "1"}}}
    world.given(virtual=[secret("db"), pod_mounting("web", secret="db", **mirror)])
    assert not world.decide("secrets", "shop/db").writes


def shows(by_name: dict[str, str]) -> dict[str, Any]:
    """Return the options that show Secrets of the host at these virtual keys."""
    return {"sync": {"fromHost": {"secrets": {"enabled": True, "mappings": {"byName": by_name}}}}}


def test_shown_secret_at_the_key_of_its_copy_is_not_copied_onto_itself() -> None:
    world = World(config=shows({"shop/registry": "shop/registry"}), translator=Unchanged)
    world.given(virtual=[namespace("shop"), pod_mounting("web", secret="registry")])
    world.given(host=[secret("registry", namespace="shop")])
    world.settle("host-secrets", "shop/registry")
    assert world.virtual("Secret", "shop/registry")
    decision = world.decide("secrets", "shop/registry")
    assert (decision.outcome, decision.writes) == (Outcome.SKIPPED, ())
    assert "came from the host" in decision.reason


def test_foreign_secret_in_a_namespace_that_is_shown_has_the_name_of_a_copy() -> None:
    world = World(config=shows({"vc-ns/*": "shop"}))
    world.given(virtual=[namespace("shop"), secret("db", **FORCED)])
    world.given(host=[secret("db-x-shop-x-vc", namespace="vc-ns")])
    for _ in range(2):
        with pytest.raises(NameTaken):
            world.apply(world.decide("secrets", "shop/db"))


def test_listed_secret_waits_while_its_namespace_is_being_deleted() -> None:
    ending = {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["kubernetes"]}
    world = World(config=shows({"infra/db": "shop/db"}))
    world.given(virtual=[merged(namespace("shop"), {"metadata": ending})], host=[secret("db", namespace="infra")])
    decision = world.decide("host-secrets", "shop/db")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert [str(each.key) for each in decision.on] == [str(Key("", "shop"))]
    world.gone(virtual=[namespace("shop")]).given(virtual=[namespace("shop")])
    assert world.settle("host-secrets", "shop/db")
