"""World: it shows a syncer what a daemon would show it, and carries out what a daemon would."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from syncer.api import (
    Config,
    Conflict,
    Context,
    Decision,
    Index,
    Indexes,
    Key,
    Mirror,
    Obj,
    Pair,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    Watch,
    Watches,
    apply,
    bind,
    delete,
    key_of,
    set_conditions,
    skip,
)
from syncer.names import PerNamespace
from syncer.testing.objects import build, configmap, host_copy, pod, pod_mounting, secret, service
from syncer.testing.world import NOON, World

CONFIGMAPS = Resource("v1", "ConfigMap", "configmaps")
SECRETS = Resource("v1", "Secret", "secrets")
PODS = Resource("v1", "Pod", "pods")
SERVICES = Resource("v1", "Service", "services")
POD_SOURCE = Source(Side.VIRTUAL, PODS)


class ColorConfig(Config):
    """Options."""

    color: str = "blue"
    """A color."""


class ConfigMaps(Mirror[ColorConfig], Indexes, Watches):
    """Copies ConfigMaps, in the configured color, and looks again when a pod begins to use one."""

    name = "colors"
    resource = CONFIGMAPS
    config = ColorConfig
    down = ("data",)
    exact = ("data",)

    def indexes(self) -> Sequence[Index]:
        return [Index(POD_SOURCE, "colors", lambda pod: [str(key) for key in _used(pod)])]

    def watches(self) -> Sequence[Watch]:
        return [Watch(POD_SOURCE, lambda pod, settings: _used(pod))]

    def translate(self, ctx: Context[ColorConfig], virtual: Obj) -> Obj:
        host = super().translate(ctx, virtual)
        users = ctx.reader.indexed(Side.VIRTUAL, PODS, "colors", str(key_of(virtual)))
        return {**host, "data": {**virtual["data"], "color": ctx.config.color, "users": str(len(users))}}


def _used(pod: Obj) -> list[Key]:
    volumes = pod["spec"].get("volumes") or ()
    return [Key(pod["metadata"]["namespace"], one["configMap"]["name"]) for one in volumes if "configMap" in one]


class Pods(Mirror):
    """Copies Pods."""

    name = "pods-plain"
    resource = PODS
    down = ("spec",)
    up = ("status",)


class Services(Mirror):
    """Copies Services."""

    name = "services-plain"
    resource = SERVICES
    down = ("spec.ports", "spec.type")


class Nosy(ConfigMaps):
    """Reads what it has not declared."""

    name = "nosy"

    def translate(self, ctx: Context[ColorConfig], virtual: Obj) -> Obj:
        ctx.virtual(SECRETS, Key("shop", "db"))
        return super().translate(ctx, virtual)


def test_decision_is_a_value_and_changes_nothing() -> None:
    world = World([ConfigMaps]).given(virtual=[configmap("db")])
    [write] = world.decide(ConfigMaps, "shop/db").writes
    assert write.obj["metadata"]["name"] == "db-x-shop-x-vc"
    assert world.copy_of(ConfigMaps, "shop/db") is None
    assert world.sent == []


def test_carried_out_it_is_there_and_nothing_is_left_to_do() -> None:
    world = World([ConfigMaps]).given(virtual=[configmap("db")])
    assert [str(sent) for sent in world.settle(ConfigMaps, "shop/db")] == [
        "create host configmaps vc-ns/db-x-shop-x-vc"
    ]
    found = world.host("ConfigMap", "vc-ns/db-x-shop-x-vc")
    assert found is not None
    assert found["data"] == {"color": "blue", "users": "0"}
    assert found["metadata"]["creationTimestamp"] == "2026-01-01T12:00:00Z"
    assert world.apply(world.decide(ConfigMaps, "shop/db")) == []


def test_indexes_are_honoured_and_watches_wake() -> None:
    world = World([ConfigMaps]).given(virtual=[configmap("db")])
    world.settle(ConfigMaps, "shop/db")
    world.woken()
    world.given(virtual=[pod_mounting("web", configmap="db")])
    assert [str(request) for request in world.woken()] == ["colors shop/db"]
    world.settle(ConfigMaps, "shop/db")
    assert (world.copy_of(ConfigMaps, "shop/db") or {})["data"]["users"] == "1"
    world.gone(virtual=[pod("web")])
    assert [str(request) for request in world.woken()] == ["colors shop/db"]


def test_objects_given_and_returned_are_private_copies() -> None:
    mine = configmap("db")
    world = World([ConfigMaps]).given(virtual=[mine])
    mine["data"]["color"] = "red"
    taken = world.virtual("ConfigMap", "shop/db")
    assert taken is not None
    assert taken["data"]["color"] == "blue"
    taken["data"]["color"] = "green"
    assert (world.virtual("ConfigMap", "shop/db") or {})["data"]["color"] == "blue"


def test_syncer_reads_only_its_declared_kinds_even_if_others_read_more() -> None:
    class Secrets(Mirror):
        """Declares Secrets."""

        name = "secrets-plain"
        resource = SECRETS

    world = World([Nosy, Secrets]).given(virtual=[configmap("db"), secret("db")])
    with pytest.raises(KeyError, match="Nosy reads secrets of the virtual side, which it does not declare"):
        world.decide(Nosy, "shop/db")


def test_host_shows_only_marked_objects_and_others_block_names() -> None:
    squatter = build(CONFIGMAPS, "db-x-shop-x-vc", namespace="vc-ns", data={"a": "b"})
    world = World([ConfigMaps]).given(virtual=[configmap("db")], host=[squatter])
    decision = world.decide(ConfigMaps, "shop/db")
    with pytest.raises(Refused):
        world.apply(decision)
    assert (world.host("ConfigMap", "vc-ns/db-x-shop-x-vc") or {})["data"] == {"a": "b"}


def test_configuration_as_in_the_file() -> None:
    world = World([ConfigMaps], config={"sync": {"toHost": {"colors": {"color": "red"}}}})
    world.given(virtual=[configmap("db")])
    world.settle("colors", "shop/db")
    assert (world.copy_of(ConfigMaps, "shop/db") or {})["data"]["color"] == "red"
    world.configure({"sync": {"toHost": {"colors": {"color": "green"}}}}).settle("colors", "shop/db")
    assert (world.copy_of(ConfigMaps, "shop/db") or {})["data"]["color"] == "green"


def test_syncer_that_is_off_or_unknown_cannot_be_asked() -> None:
    world = World([ConfigMaps, Pods], config={"sync": {"toHost": {"colors": {"enabled": False}}}})
    for name in ("colors", "colours"):
        with pytest.raises(ValueError, match=f"no syncer '{name}' is switched on in this world; there are: pods-plain"):
            world.decide(name, "shop/db")


def test_syncer_joins_when_it_is_first_asked() -> None:
    world = World([]).given(virtual=[configmap("db")])
    assert world.decide(ConfigMaps(), "shop/db").writes


def test_fixture_has_the_built_in_syncers(world: World) -> None:
    world.given(virtual=[configmap("db")])
    assert "no synced object refers to this ConfigMap" in world.decide("configmaps", "shop/db").reason


def test_another_translator_and_other_names() -> None:
    world = World([ConfigMaps], translator=PerNamespace, cluster="blue", host_namespace="home")
    world.given(virtual=[configmap("db")]).settle(ConfigMaps, "shop/db")
    assert world.host("ConfigMap", "shop-x-blue-x-home/db") is not None


def test_copy_with_another_name_is_decided_by_its_host_key() -> None:
    moved = host_copy(configmap("db"), metadata={"name": "old", "annotations": {"vsyncer.dev/host-name": "old"}})
    world = World([ConfigMaps]).given(virtual=[configmap("db")], host=[moved])
    with pytest.raises(Refused, match="old"):
        world.decide(ConfigMaps, "shop/db", host_key="vc-ns/old")


def test_time_is_that_of_the_world() -> None:
    world = World([ConfigMaps])
    assert world.context(ConfigMaps).now == NOON
    world.now += timedelta(hours=1)
    assert world.context(ConfigMaps).now.hour == 13


def test_key_that_never_rests_is_found() -> None:
    class Restless(ConfigMaps):
        name = "restless"

        def sync(self, ctx: Context[ColorConfig], pair: Pair) -> Decision:
            return delete(host=pair.host, reason="again")

    world = World([Restless]).given(virtual=[configmap("db")])
    with pytest.raises(AssertionError, match="shop/db still needs writes after 8 rounds"):
        world.settle(Restless, "shop/db")


def test_pods_on_a_node_end_with_time_and_others_at_once() -> None:
    world = World([Pods]).given(virtual=[pod("web")])
    world.settle(Pods, "shop/web")
    world.given(host=[host_copy(pod("web"), spec={"nodeName": "n1", "containers": []}, metadata={"uid": "h-1"})])
    copied = world.copy_of(Pods, "shop/web")
    assert copied is not None
    world.apply(delete(host=copied, reason="over"), by=Pods)
    assert (world.copy_of(Pods, "shop/web") or {})["metadata"]["deletionGracePeriodSeconds"] == 30
    world.apply(delete(host=copied, reason="over", grace=0), by=Pods)
    assert world.copy_of(Pods, "shop/web") is None


def test_finalizer_keeps_a_deleted_object() -> None:
    world = World([ConfigMaps]).given(virtual=[configmap("db")])
    with_finalizer = host_copy(configmap("db"), metadata={"finalizers": ["example.org/wait"]})
    world.given(host=[with_finalizer])
    world.apply(delete(host=world.copy_of(ConfigMaps, "shop/db"), reason="over"), by=ConfigMaps)
    assert "deletionTimestamp" in (world.copy_of(ConfigMaps, "shop/db") or {})["metadata"]


def test_status_and_binding_go_their_own_ways() -> None:
    world = World([Pods]).given(virtual=[pod("web")])
    world.settle(Pods, "shop/web")
    world.given(host=[{**(world.copy_of(Pods, "shop/web") or {}), "status": {"phase": "Running"}}])
    assert [str(sent) for sent in world.settle(Pods, "shop/web")] == ["patch virtual pods/status shop/web"]
    virtual = world.virtual("Pod", "shop/web")
    assert virtual is not None
    assert virtual["status"] == {"phase": "Running"}
    world.apply(bind(virtual=virtual, node="n1"), by=Pods)
    assert (world.virtual("Pod", "shop/web") or {})["spec"]["nodeName"] == "n1"


def test_conditions_are_merged_by_type() -> None:
    world = World([Pods]).given(virtual=[pod("web")])
    kubelets = {"type": "Ready", "status": "True"}
    world.given(host=[host_copy(pod("web"), spec={"containers": []}, status={"conditions": [kubelets]})])
    copied = world.copy_of(Pods, "shop/web")
    assert copied is not None
    ours = {"type": "example.org/gate", "status": "True"}
    world.apply(set_conditions(host={**copied, "status": {"conditions": [ours]}}), by=Pods)
    assert (world.copy_of(Pods, "shop/web") or {})["status"]["conditions"] == [kubelets, ours]


def test_service_gets_addresses_and_node_ports_which_are_then_left_alone() -> None:
    world = World([Services]).given(virtual=[service("web", spec={"type": "NodePort"})])
    world.settle(Services, "shop/web")
    copied = world.copy_of(Services, "shop/web")
    assert copied is not None
    assert copied["spec"]["clusterIP"].startswith("10.0.")
    assert copied["spec"]["ports"][0]["nodePort"] >= 30000


def test_another_object_of_the_name_is_not_changed_by_mistake() -> None:
    world = World([ConfigMaps]).given(virtual=[configmap("db")])
    world.settle(ConfigMaps, "shop/db")
    copied = world.copy_of(ConfigMaps, "shop/db")
    assert copied is not None
    deletion = world._sides[Side.HOST].delete(CONFIGMAPS, key_of(copied), uid="another")
    with pytest.raises(Conflict):
        deletion.send(None)


def test_apply_needs_the_syncer_of_a_decision() -> None:
    with pytest.raises(AssertionError, match="say whose decision it is"):
        World([ConfigMaps]).apply(skip("nothing"))


def test_settings_are_those_of_a_daemon() -> None:
    settings = World([ConfigMaps]).settings
    assert isinstance(settings, Settings)
    assert (settings.cluster, settings.host_namespace, settings.identity) == ("vc", "vc-ns", "vc.vc-ns")
    assert set(settings.sections) == {"colors"}


def test_writes_to_the_virtual_side_of_other_kinds() -> None:
    class Teller(ConfigMaps):
        """Writes a Secret beside."""

        name = "teller"
        reads = (Source(Side.VIRTUAL, SECRETS),)

        def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
            return apply(virtual=secret("told"), resource=SECRETS)

    world = World([Teller]).given(virtual=[configmap("db")])
    world.apply(world.decide(Teller, "shop/db"))
    assert world.virtual("Secret", "shop/told") is not None
