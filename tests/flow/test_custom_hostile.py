"""Attacks with custom objects by a tenant with all rights in their virtual cluster."""

import asyncio

from custom_scene import (
    CERTIFICATES,
    CLUSTER_ISSUERS,
    PUBLIC,
    cert_manager,
    certificate,
    custom,
    define,
    example,
    issue,
    running,
    there,
)
from harness import CLUSTER, HOME, NAMESPACE, Two, host_path, until, verbs

from syncer.api import Key, Side
from syncer.config import SyncerConfig, build, parse
from syncer.plugins import installed
from syncer.testing.merge import merged
from syncer.testing.objects import crd, secret

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

WIDGETS = "widgets.example.com"
OURS = {"metadata": {"labels": {"vsyncer.dev/cluster": f"{CLUSTER}.{HOME}"}}}


def config_of(entry: str) -> SyncerConfig:
    """Return a configuration with one entry for custom resources."""
    text = f"cluster: {CLUSTER}\nhost: {{namespace: {HOME}}}\nsync: {{custom: {{{entry}}}}}\n"
    head = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\n"
    return build(parse(f"{head}{text}", "f.yaml"), INSTALLED).config


async def test_issuer_that_the_host_does_not_show_can_not_be_used_until_it_does(two: Two) -> None:
    cert_manager(two)
    two.host.put(custom(CLUSTER_ISSUERS, "internal", namespace="", spec={"ca": {}}))
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate(issuer="internal", kind="ClusterIssuer"))
        await daemon.settled()
        assert two.copy(CERTIFICATES, "db") is None
        two.host.put(merged(custom(CLUSTER_ISSUERS, "internal", namespace="", spec={"ca": {}}), PUBLIC))
        assert await until(lambda: two.copy(CERTIFICATES, "db")) <= 2


async def test_issuer_with_a_forged_mark_opens_no_issuer_of_the_host(two: Two) -> None:
    """Its finalizer keeps it there, although it is no issuer of the host's and is deleted."""
    cert_manager(two)
    internal = custom(CLUSTER_ISSUERS, "internal", namespace="", spec={"ca": {}})
    two.host.put(internal)
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(merged(internal, merged(OURS, {"metadata": {"finalizers": ["example.org/mine"]}})))
        await daemon.settled()
        two.virtual.put(certificate(issuer="internal", kind="ClusterIssuer"))
        await daemon.settled()
        assert two.virtual.get(CLUSTER_ISSUERS, "internal"), "it is still there to be named"
        assert two.copy(CERTIFICATES, "db") is None


async def test_issuers_of_the_host_are_watched_only_if_they_are_shown(two: Two) -> None:
    cert_manager(two)
    for name, labels in (("internal", {}), ("public", PUBLIC)):
        two.host.put(merged(custom(CLUSTER_ISSUERS, name, namespace="", spec={"ca": {}}), labels))
    async with running(two, example("cert-manager")) as daemon:
        await daemon.settled()
        informers = daemon.process.pairs[CLUSTER].informers
        [issuers] = [store for store in informers if (store.side, str(store.resource)) == (Side.HOST, CLUSTER_ISSUERS)]
        assert list(issuers.keys()) == [Key("", "public")]


async def test_namespaces_of_the_host_are_watched_only_if_they_are_mapped(two: Two) -> None:
    define(two, WIDGETS)
    for name in ("infra", "other"):
        two.host.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        two.host.put(custom(WIDGETS, f"of-{name}", namespace=name, spec={}))
    entry = f"{WIDGETS}: {{direction: fromHost, namespaces: {{infra: {NAMESPACE}}}}}"
    async with running(two, config_of(entry)) as daemon:
        assert await until(lambda: two.original(WIDGETS, "of-infra")) <= 2
        informers = daemon.process.pairs[CLUSTER].informers
        [widgets] = [store for store in informers if (store.side, str(store.resource)) == (Side.HOST, WIDGETS)]
        assert list(widgets.keys()) == [Key("infra", "of-infra")]


async def test_forged_mark_shows_no_secret_of_the_host(two: Two) -> None:
    """The Certificate has no copy on the host, so that there is nothing that the Secret could belong to."""
    cert_manager(two)
    two.host.put(secret(host_path("db-tls").partition("/")[2], {"password": "the host's"}, namespace=HOME))
    notes = {"made-for": f"{CERTIFICATES}:secrets", "made-from": host_path("db-tls")}
    forged = {"metadata": {"annotations": {f"vsyncer.dev/{name}": text for name, text in notes.items()}}}
    two.virtual.put(merged(secret("db-tls", {"a": "b"}), merged(OURS, forged)))
    two.host.put(custom(CERTIFICATES, host_path("db").partition("/")[2], namespace=HOME, spec={}))
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate())
        await daemon.settled()
        found = two.original("secrets", "db-tls")
        assert found is None or "password" not in found["data"]


async def test_finalizer_on_an_object_we_made_is_waited_for_without_a_storm(two: Two) -> None:
    cert_manager(two)
    two.host.put(merged(custom(CLUSTER_ISSUERS, "public", namespace="", spec={"ca": {}}), PUBLIC))
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db") and two.virtual.get(CLUSTER_ISSUERS, "public"))
        issue(two, there(two.host, CERTIFICATES, host_path("db")))
        await until(lambda: two.original("secrets", "db-tls"))
        await daemon.settled()
        with_finalizer = {"metadata": {"finalizers": ["example.org/mine"]}}
        two.virtual.put(merged(there(two.virtual, "secrets", "shop/db-tls"), with_finalizer))
        two.virtual.put(merged(there(two.virtual, CLUSTER_ISSUERS, "public"), with_finalizer))
        await daemon.settled()
        since = len(two.virtual.requests)
        two.virtual.delete(CERTIFICATES, "shop/db")
        two.host.delete(CLUSTER_ISSUERS, "public")
        await asyncio.sleep(600)
        assert verbs(two.virtual, since)["delete"] <= 4
        for resource, key in (("secrets", "shop/db-tls"), (CLUSTER_ISSUERS, "public")):
            two.virtual.put(merged(there(two.virtual, resource, key), {"metadata": {"finalizers": None}}))
        await until(lambda: not two.original("secrets", "db-tls") and not two.virtual.get(CLUSTER_ISSUERS, "public"))


async def test_kind_is_not_found_by_the_short_name_of_another(two: Two) -> None:
    for server in (two.virtual, two.host):
        server.put(crd("alikes.example.com", spec={"names": {"shortNames": ["widgets"]}}))
    async with running(two, config_of(f"{WIDGETS}: {{}}")) as daemon:
        two.virtual.put(custom("alikes.example.com", "x", spec={}))
        await daemon.settled()
        assert WIDGETS not in daemon.process.pairs[CLUSTER].controllers
