"""Roles and the context: the interface of a syncer, and the view that it decides with."""

from typing import Any

import pytest
from pydantic import ValidationError

from syncer.api import (
    Config,
    FakeSyncUp,
    Key,
    Mirror,
    Obj,
    Pair,
    Resource,
    Settings,
    Side,
    Source,
    Sync,
    SyncDown,
    Syncer,
    SyncFromHost,
    SyncUp,
)
from syncer.config.types import options
from syncer.testing.objects import build, configmap, host_copy, service
from syncer.testing.world import World

CONFIGMAPS = Resource("v1", "ConfigMap", "configmaps")
SERVICES = Resource("v1", "Service", "services")


class Options(Config):
    """Options."""

    keep_labels: bool = True
    """Whether labels are kept."""


class ConfigMaps(Mirror[Options]):
    """Copies ConfigMaps."""

    name = "maps"
    resource = CONFIGMAPS
    down = ("data",)


class Services(Mirror):
    """Copies Services, and their status back."""

    name = "doors"
    resource = SERVICES
    section = "fromHost.doors"
    down = ("spec.ports", "spec.type")
    up = ("status",)
    reads = (Source(Side.VIRTUAL, CONFIGMAPS), Source(Side.HOST, CONFIGMAPS, marked=True))


TENANTS = {
    "labels": {"app": "web", "vsyncer.dev/cluster": "forged"},
    "annotations": {
        "note": "kept",
        "vsyncer.dev/virtual-uid": "forged",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    },
}


def context(syncer: type[Syncer], **objects: list[Obj]) -> Any:
    return World([syncer]).given(**objects).context(syncer)


@pytest.mark.parametrize("role", [SyncDown, Sync, SyncUp, SyncFromHost, FakeSyncUp])
def test_misspelt_role_fails_when_the_syncer_is_made(role: type) -> None:
    misspelt = type("Misspelt", (Syncer, role), {"name": "x", "resource": CONFIGMAPS, "snyc": lambda self: None})
    with pytest.raises(TypeError, match="abstract method"):
        misspelt()


def test_names_that_follow_from_others() -> None:
    assert ConfigMaps.host_resource is CONFIGMAPS
    assert ConfigMaps.section == "toHost.maps"
    assert Services.section == "fromHost.doors"

    class Elsewhere(ConfigMaps):
        """On the host it is something else."""

        name = "elsewhere"
        resource = SERVICES
        host_resource = CONFIGMAPS

    assert Elsewhere.host_resource is CONFIGMAPS
    assert Elsewhere.section == "toHost.elsewhere"


def test_mirror_copies_its_paths_and_nothing_else() -> None:
    virtual = service("web", spec={"clusterIP": "10.0.0.1"}, metadata=TENANTS)
    host = Services().translate(context(Services), virtual)
    assert host["spec"] == {"ports": virtual["spec"]["ports"], "type": "ClusterIP"}
    assert set(host) == {"apiVersion", "kind", "metadata", "spec"}
    assert Services().reflect(context(Services), Pair(virtual, {**host, "status": {"a": 1}})) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop", "uid": ""},
        "status": {"a": 1},
    }
    assert ConfigMaps().reflect(context(ConfigMaps), Pair(virtual, host)) is None


def test_mirror_without_a_path_in_the_object_copies_nothing_for_it() -> None:
    assert "data" not in ConfigMaps().translate(context(ConfigMaps), build(CONFIGMAPS, "db"))


def test_tenant_cannot_forge_marks() -> None:
    metadata = context(ConfigMaps).host_copy(configmap("db", metadata={"uid": "u-1", **TENANTS}))["metadata"]
    assert metadata["labels"] == {
        "app": "web",
        "vsyncer.dev/cluster": "vc.vc-ns",
        "vsyncer.dev/namespace": "shop",
    }
    assert metadata["annotations"]["vsyncer.dev/virtual-uid"] == "u-1"
    assert metadata["annotations"]["note"] == "kept"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in metadata["annotations"]
    assert (metadata["name"], metadata["namespace"]) == ("db-x-shop-x-vc", "vc-ns")


def test_virtual_object_of_ours_bears_our_mark_only() -> None:
    host = configmap("db", namespace="vc-ns", metadata=TENANTS)
    metadata = context(ConfigMaps).virtual_copy(host, Key("shop", "db"))["metadata"]
    assert metadata == {
        "name": "db",
        "namespace": "shop",
        "labels": {"app": "web", "vsyncer.dev/cluster": "vc.vc-ns"},
        "annotations": {"note": "kept"},
    }
    assert context(ConfigMaps).virtual_copy(build(CONFIGMAPS, "db"), Key("", "n"))["metadata"] == {
        "name": "n",
        "labels": {"vsyncer.dev/cluster": "vc.vc-ns"},
    }


def test_reads_of_both_sides() -> None:
    virtual, host = configmap("db"), host_copy(configmap("db"))
    ctx = context(Services, virtual=[virtual], host=[host])
    assert (ctx.virtual(CONFIGMAPS, Key("shop", "db")) or {})["metadata"]["name"] == "db"
    found = ctx.host_of(CONFIGMAPS, Key("shop", "db"))
    assert found is not None
    assert found == ctx.host(CONFIGMAPS, Key("vc-ns", "db-x-shop-x-vc"))
    assert (ctx.virtual_of(CONFIGMAPS, found) or {})["metadata"]["name"] == "db"
    assert ctx.virtual_of(CONFIGMAPS, {**found, "metadata": {**found["metadata"], "labels": {}}}) is None
    assert ctx.virtual(CONFIGMAPS, Key("shop", "other")) is None


def test_names_of_referenced_objects() -> None:
    ctx = context(Services)
    assert ctx.host_name(CONFIGMAPS, "shop", "db") == "db-x-shop-x-vc"
    classes = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
    assert ctx.host_name(classes, "shop", "gold") == "gold-x-vc-x-vc-ns"
    assert ctx.enabled("doors")
    assert not ctx.enabled("maps")


def test_syncer_may_have_host_keys_of_its_own() -> None:
    class Suffixed(ConfigMaps):
        """Puts its copies beside others."""

        name = "suffixed"

        def host_key(self, settings: Settings, key: Key) -> Key:
            return Key(settings.host_namespace, f"{key.name}.mine")

    ctx = context(Suffixed)
    assert ctx.host_key(Key("shop", "db")) == Key("vc-ns", "db.mine")
    assert ctx.host_copy(configmap("db"))["metadata"]["name"] == "db.mine"


def test_options_are_frozen_camel_case_and_strict() -> None:
    assert Options.model_validate({"keepLabels": False}).keep_labels is False
    with pytest.raises(ValidationError, match="keepLables"):
        Options.model_validate({"keepLables": False})
    with pytest.raises(ValidationError, match="frozen"):
        Options().enabled = False
    assert [option.help for option in options(Options) if option.path == "keepLabels"] == ["Whether labels are kept."]
