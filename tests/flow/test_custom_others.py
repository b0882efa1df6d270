"""Further popular kinds, from configuration alone: how they come and go, and their peculiarities."""

from collections.abc import Mapping
from typing import Any

import pytest
from custom_scene import (
    CERTIFICATES,
    CLUSTER_ISSUERS,
    DATABASES,
    ISSUERS,
    MONITORS,
    cert_manager,
    certificate,
    custom,
    define,
    definition,
    example,
    issue,
    owned_by,
    running,
    there,
)
from harness import CLUSTER, HOME, NAMESPACE, Two, host_path, until, writes
from sampled import config_model, registry

from syncer.api import Obj, Resource
from syncer.config import SyncerConfig
from syncer.daemon.pages.status import waiting
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, crd_version, secret, service

# -- coming and going ------------------------------------------------------------------------------


async def test_entry_waits_for_its_crd_with_a_reason_and_begins_by_itself(two: Two) -> None:
    two.virtual.put(definition(CERTIFICATES))
    define(two, ISSUERS)
    for server in (two.virtual, two.host):
        server.put(definition(CLUSTER_ISSUERS, scope="Cluster"))
    two.virtual.put(certificate())
    two.virtual.put(custom(ISSUERS, "ca", spec={}))
    async with running(two, example("cert-manager")) as daemon:
        await until(lambda: two.copy(ISSUERS, "ca"))
        assert waiting(daemon.process)["vc", CERTIFICATES] == (
            f"the host cluster does not serve {CERTIFICATES} yet; its CRD is missing there"
        )
        two.host.put(definition(CERTIFICATES))
        await until(lambda: two.copy(CERTIFICATES, "db"))
        assert ("vc", CERTIFICATES) not in waiting(daemon.process)


async def test_another_version_of_a_kind_is_followed_by_all_that_has_to_do_with_it(two: Two) -> None:
    older = [crd_version("v1beta1", storage=True)]
    newer = [crd_version("v1", storage=True), crd_version("v1beta1", served=False)]
    beta = Resource("cert-manager.io/v1beta1", "Certificate", "certificates")
    define(two, ISSUERS)
    for server in (two.virtual, two.host):
        server.put(definition(CLUSTER_ISSUERS, scope="Cluster"))
        server.put(definition(CERTIFICATES, versions=older))
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put({**certificate(), "apiVersion": "cert-manager.io/v1beta1"})
        await until(lambda: two.host.get(beta, host_path("db")))
        for server in (two.virtual, two.host):
            server.put(definition(CERTIFICATES, versions=newer))
        two.virtual.put(certificate("later", "later-tls"))
        await until(lambda: two.copy(CERTIFICATES, "later"))
        issue(two, there(two.host, CERTIFICATES, host_path("later")))
        await until(lambda: two.original("secrets", "later-tls"))
        await daemon.settled()
        assert not list(daemon.process.statuses.troubles())


async def test_operators_clean_up_is_waited_for_before_the_next_object_of_that_name(two: Two) -> None:
    cert_manager(two)
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db"))
        copy = there(two.host, CERTIFICATES, host_path("db"))
        two.host.put(merged(copy, {"metadata": {"finalizers": ["cert-manager.io/clean-up"]}}))
        two.virtual.delete(CERTIFICATES, "shop/db")
        await until(lambda: "deletionTimestamp" in there(two.host, CERTIFICATES, host_path("db"))["metadata"])
        assert two.original(CERTIFICATES, "db") is None
        two.virtual.put(certificate(to="next"))
        await daemon.settled()
        assert there(two.host, CERTIFICATES, host_path("db"))["spec"]["secretName"].startswith("db-tls")
        ending = there(two.host, CERTIFICATES, host_path("db"))
        two.host.put({**ending, "metadata": {**ending["metadata"], "finalizers": []}})
        two.host.delete(CERTIFICATES, host_path("db"))
        await until(lambda: (two.copy(CERTIFICATES, "db") or copy)["spec"]["secretName"].startswith("next"))


# -- prometheus-operator ---------------------------------------------------------------------------


async def test_service_monitor_goes_down_with_its_secrets_and_selects_services(two: Two) -> None:
    define(two, MONITORS)
    endpoints = [
        {"port": "web", "basicAuth": {"username": {"name": "login", "key": "user"}}},
        {"port": "web", "tlsConfig": {"ca": {"configMap": {"name": "bundle", "key": "ca.crt"}}}},
    ]
    selectors = {"selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {"any": True}}
    for obj in (secret("login"), secret("idle"), configmap("bundle"), service("web")):
        two.virtual.put(obj)
    two.virtual.put(custom(MONITORS, "web", spec={"endpoints": endpoints, **selectors}))
    async with running(two, example("prometheus-operator")) as daemon:
        await until(lambda: two.copy(MONITORS, "web"))
        await daemon.settled()
        spec = there(two.host, MONITORS, host_path("web"))["spec"]
        names = [
            spec["endpoints"][0]["basicAuth"]["username"]["name"],
            spec["endpoints"][1]["tlsConfig"]["ca"]["configMap"]["name"],
        ]
        assert two.host.get("secrets", f"{HOME}/{names[0]}")
        assert two.host.get("configmaps", f"{HOME}/{names[1]}")
        assert two.copy("secrets", "idle") is None
        assert "namespaceSelector" not in spec
        assert spec["selector"]["matchLabels"]["app"] == "web"
        assert spec["selector"]["matchLabels"]["vsyncer.dev/namespace"] == NAMESPACE
        assert ("vc", "podmonitors.monitoring.coreos.com") in waiting(daemon.process)
        two.virtual.delete(MONITORS, "shop/web")
        await until(lambda: two.copy("secrets", "login") is None)


# -- without namespaces ----------------------------------------------------------------------------


def databases(two: Two) -> None:
    """Two versions of a kind without namespaces; the sides store different ones."""
    for server, stored in ((two.virtual, "v1"), (two.host, "v1beta1")):
        versions = [crd_version(version, storage=version == stored) for version in ("v1beta1", "v1")]
        server.put(definition(DATABASES, versions=versions, scope="Cluster"))


def database(**parts: object) -> Obj:
    spec = {"size": "10Gi", "writeConnectionSecretToRef": {"name": "db", "namespace": NAMESPACE}}
    return custom(DATABASES, "main", namespace="", **merged({"spec": spec}, parts))


async def test_kind_without_namespaces_with_its_status_and_the_secret_that_it_writes(two: Two) -> None:
    databases(two)
    two.virtual.put(database())
    async with running(two, example("cluster-scoped")) as daemon:
        await until(lambda: two.host.get(DATABASES, "vc.main"))
        copy = there(two.host, DATABASES, "vc.main")
        to = copy["spec"]["writeConnectionSecretToRef"]
        assert to == {"name": host_path("db").partition("/")[2], "namespace": HOME}
        two.host.put(secret(to["name"], namespace=HOME, metadata=owned_by(copy)))
        two.host.put(merged(copy, {"status": {"phase": "Running"}}))
        await until(lambda: two.original("secrets", "db"))
        await until(lambda: there(two.virtual, DATABASES, "main").get("status") == {"phase": "Running"})
        await daemon.settled()
        assert [path for path in writes(two.virtual) if "status" in path] == [
            "patch /apis/example.com/v1/databases/main/status"
        ]


async def test_retained_copy_outlives_its_object_and_is_taken_over_by_the_next(two: Two) -> None:
    databases(two)
    two.virtual.put(database())
    async with running(two, example("cluster-scoped")) as daemon:
        await until(lambda: two.host.get(DATABASES, "vc.main"))
        before = there(two.host, DATABASES, "vc.main")
        two.virtual.delete(DATABASES, "main")
        await daemon.settled()
        assert there(two.host, DATABASES, "vc.main")["metadata"]["uid"] == before["metadata"]["uid"]
        two.virtual.put(database(spec={"size": "20Gi"}))
        await until(lambda: there(two.host, DATABASES, "vc.main")["spec"]["size"] == "20Gi")
        assert there(two.host, DATABASES, "vc.main")["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("first", ["secret", "name"])
async def test_object_that_the_status_names_comes_up_in_any_order(two: Two, first: str) -> None:
    """The Service Binding convention: the operator makes a Secret under a name of its own, which its status names."""
    related = {"resource": "secrets", "origin": "host", "by": {"reference": "status.binding.name"}}
    entry = {"down": ["spec"], "up": ["status"], "related": [related]}
    define(two, DATABASES)
    two.virtual.put(custom(DATABASES, "db", spec={"size": 1}))
    async with running(two, configured({"sync": {"custom": {DATABASES: entry}}})) as daemon:
        copy = await appeared(two, DATABASES, "db")
        named = merged(copy, {"status": {"binding": {"name": "binding-7"}}})
        made = secret("binding-7", {"user": "me"}, namespace=HOME)
        for obj in (made, named) if first == "secret" else (named, made):
            two.host.put(obj)
            await daemon.settled()
        assert there(two.virtual, "secrets", f"{NAMESPACE}/binding-7")["data"] == made["data"]
        two.host.put(merged(there(two.host, DATABASES, host_path("db")), {"status": {"binding": None}}))
        await until(lambda: two.original("secrets", "binding-7") is None)


def configured(options: Mapping[str, Any]) -> SyncerConfig:
    given = {"cluster": CLUSTER, "host": {"namespace": HOME}, **options}
    return config_model(registry()).model_validate(given)


async def appeared(two: Two, resource: str, name: str) -> Obj:
    await until(lambda: two.copy(resource, name))
    return there(two.host, resource, host_path(name))
