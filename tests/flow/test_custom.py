"""cert-manager on the host, for tenants: the objects that go down, and those of its operator that come up."""

import asyncio

from custom_scene import (
    CERTIFICATES,
    CLUSTER_ISSUERS,
    ISSUERS,
    PUBLIC,
    cert_manager,
    certificate,
    custom,
    example,
    issue,
    running,
    there,
)
from harness import CLUSTER, HOME, Two, built_in, host_path, until, writes
from sampled import config_model

from syncer.api.reasons import RequestState
from syncer.testing.merge import merged
from syncer.testing.objects import pod_mounting, secret, serviceaccount


async def test_certificate_goes_down_and_its_secret_comes_up_and_a_pod_can_mount_it(two: Two) -> None:
    cert_manager(two)
    two.virtual.put(serviceaccount("default"))
    two.virtual.put(secret("ca-key"))
    two.virtual.put(custom(ISSUERS, "ca", spec={"ca": {"secretName": "ca-key"}}))
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(pod_mounting("web", secret="db-tls"))
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db"))
        copy = there(two.host, CERTIFICATES, host_path("db"))
        assert copy["spec"]["issuerRef"]["name"] == there(two.host, ISSUERS, host_path("ca"))["metadata"]["name"]
        issuer = there(two.host, ISSUERS, host_path("ca"))
        assert two.host.get("secrets", f"{HOME}/{issuer['spec']['ca']['secretName']}")
        made = issue(two, copy)
        assert await until(lambda: two.original("secrets", "db-tls")) <= 2
        await until(lambda: "status" in there(two.virtual, CERTIFICATES, "shop/db"))
        await daemon.settled()
        assert there(two.virtual, "secrets", "shop/db-tls")["data"] == made["data"]
        assert there(two.virtual, CERTIFICATES, "shop/db")["status"]["revision"] == 1
        volumes = there(two.host, "pods", host_path("web"))["spec"]["volumes"]
        assert volumes[0]["secret"]["secretName"] == made["metadata"]["name"] == copy["spec"]["secretName"]
        assert not list(daemon.process.statuses.troubles())


async def test_objects_in_step_cause_no_further_writes(two: Two) -> None:
    cert_manager(two)
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db"))
        issue(two, there(two.host, CERTIFICATES, host_path("db")))
        await until(lambda: two.original("secrets", "db-tls"))
        await daemon.settled()
        sent_before = {server: len(server.requests) for server in (two.virtual, two.host)}
        await asyncio.sleep(600)
        assert [writes(server, since) for server, since in sent_before.items()] == [[], []]
    async with running(two, example("cert-manager")) as daemon:
        await daemon.settled()
        sent_before = {server: len(server.requests) for server in (two.virtual, two.host)}
        await daemon.settled()
        assert daemon.wrote() == {}


async def test_renewed_certificate_reaches_the_tenant_and_their_changes_are_reverted(two: Two) -> None:
    cert_manager(two)
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db"))
        copy = there(two.host, CERTIFICATES, host_path("db"))
        issue(two, copy)
        await until(lambda: two.original("secrets", "db-tls"))
        made = issue(two, copy, **{"tls.crt": "renewed"})
        await until(lambda: there(two.virtual, "secrets", "shop/db-tls")["data"] == made["data"])
        found = there(two.virtual, "secrets", "shop/db-tls")
        two.virtual.put(merged(found, {"data": {"tls.key": "bWluZQ=="}}))
        await until(lambda: there(two.virtual, "secrets", "shop/db-tls")["data"] == made["data"])
        two.virtual.delete("secrets", "shop/db-tls")
        await until(lambda: two.original("secrets", "db-tls"))
        await daemon.settled()
        assert there(two.host, "secrets", host_path("db-tls"))["data"] == made["data"]


async def issued(two: Two, name: str) -> None:
    """Let a Certificate be made, and its Secret be there on both sides."""
    two.virtual.put(certificate(name, f"{name}-tls"))
    await until(lambda: two.copy(CERTIFICATES, name))
    issue(two, there(two.host, CERTIFICATES, host_path(name)))
    await until(lambda: two.original("secrets", f"{name}-tls"))


async def test_secret_goes_with_the_certificate_also_while_the_daemon_is_away(two: Two) -> None:
    cert_manager(two)
    async with running(two, example("cert-manager")):
        for name in ("a", "b"):
            await issued(two, name)
        two.virtual.delete(CERTIFICATES, "shop/a")
        await until(lambda: two.original("secrets", "a-tls") is None)
    two.virtual.delete(CERTIFICATES, "shop/b")
    two.host.delete("secrets", host_path("b-tls"))
    async with running(two, example("cert-manager")) as daemon:
        await until(lambda: two.original("secrets", "b-tls") is None)
        await daemon.settled()
        assert two.copy(CERTIFICATES, "b") is None
        assert two.copy("secrets", "a-tls"), "cert-manager keeps it, and it isn't ours to delete"


async def test_tenant_can_not_read_a_secret_of_the_host_by_naming_it(two: Two) -> None:
    cert_manager(two)
    two.host.put(secret(host_path("db-tls").partition("/")[2], namespace=HOME))
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db"))
        await daemon.settled()
        assert two.original("secrets", "db-tls") is None


async def test_secret_of_that_name_that_the_tenant_made_is_theirs_and_no_fight_begins(two: Two) -> None:
    cert_manager(two)
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(secret("db-tls"))
        two.virtual.put(pod_mounting("web", secret="db-tls"))
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db"))
        await daemon.settled()
        made = issue(two, there(two.host, CERTIFICATES, host_path("db")))
        await daemon.settled()
        assert there(two.virtual, "secrets", "shop/db-tls")["data"] == secret("db-tls")["data"]
        assert there(two.host, "secrets", host_path("db-tls"))["data"] == made["data"]
        status = daemon.status("db-tls", f"{CERTIFICATES}:secrets")
        assert status is not None
        assert status.state is RequestState.PARKED
        assert "not ours" in status.reason


async def test_existing_copy_makes_way_for_the_operators_secret(two: Two) -> None:
    cert_manager(two)
    two.virtual.put(secret("db-tls"))
    two.virtual.put(pod_mounting("web", secret="db-tls"))
    async with running(two, example("cert-manager")) as daemon:
        await until(lambda: two.copy("secrets", "db-tls"))
        two.virtual.put(certificate())
        await until(lambda: two.copy("secrets", "db-tls") is None)
        made = issue(two, there(two.host, CERTIFICATES, host_path("db")))
        await daemon.settled()
        assert there(two.host, "secrets", host_path("db-tls"))["data"] == made["data"]
        assert there(two.virtual, "secrets", "shop/db-tls")["data"] == secret("db-tls")["data"]
        two.virtual.delete("secrets", "shop/db-tls")
        await until(lambda: (two.original("secrets", "db-tls") or {}).get("data") == made["data"])


async def test_issuers_of_the_host_appear_and_are_used_under_their_own_names(two: Two) -> None:
    cert_manager(two)
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"acme": {"privateKeySecretRef": {"name": "of-the-host"}}}
    two.host.put(merged(custom(CLUSTER_ISSUERS, "public", namespace="", spec=spec, status=ready), PUBLIC))
    two.host.put(custom(CLUSTER_ISSUERS, "internal", namespace="", spec=spec))
    async with running(two, example("cert-manager")) as daemon:
        await until(lambda: two.virtual.get(CLUSTER_ISSUERS, "public"))
        two.virtual.put(certificate(issuer="public", kind="ClusterIssuer"))
        await until(lambda: two.copy(CERTIFICATES, "db"))
        await daemon.settled()
        shown = there(two.virtual, CLUSTER_ISSUERS, "public")
        assert (shown["spec"], shown["status"]) == ({"selfSigned": {}}, ready)
        assert two.virtual.get(CLUSTER_ISSUERS, "internal") is None
        assert there(two.host, CERTIFICATES, host_path("db"))["spec"]["issuerRef"]["name"] == "public"
        two.virtual.put(merged(shown, {"spec": {"acme": {}}}))
        await until(lambda: there(two.virtual, CLUSTER_ISSUERS, "public")["spec"].get("acme") is None)
        two.host.delete(CLUSTER_ISSUERS, "public")
        await until(lambda: two.virtual.get(CLUSTER_ISSUERS, "public") is None)


async def test_annotation_of_the_host_comes_up_goes_with_it_and_never_goes_down(two: Two) -> None:
    address = "example.org/address"
    sync = {"custom": {ISSUERS: {"up": ["status", "/metadata/annotations/example.org~1address"]}}}
    given = {"cluster": CLUSTER, "host": {"namespace": HOME}, "sync": sync}
    config = config_model(built_in()).model_validate(given)
    cert_manager(two)
    forged = {"annotations": {address: "forged", "kept": "1"}}
    two.virtual.put(custom(ISSUERS, "ca", spec={"selfSigned": {}}, metadata=forged))
    async with running(two, config) as daemon:
        await until(lambda: two.copy(ISSUERS, "ca"))
        await daemon.settled()
        copy = there(two.host, ISSUERS, host_path("ca"))
        assert address not in copy["metadata"]["annotations"]
        assert there(two.virtual, ISSUERS, "shop/ca")["metadata"]["annotations"] == {"kept": "1"}
        two.host.put(merged(copy, {"metadata": {"annotations": {address: "192.0.2.1"}}}))
        await daemon.settled()
        shown = there(two.virtual, ISSUERS, "shop/ca")["metadata"]["annotations"]
        assert shown == {"kept": "1", address: "192.0.2.1"}
        copy = there(two.host, ISSUERS, host_path("ca"))
        two.host.put(merged(copy, {"metadata": {"annotations": {address: None}}}))
        await daemon.settled()
        assert there(two.virtual, ISSUERS, "shop/ca")["metadata"]["annotations"] == {"kept": "1"}
        sent_before = {server: len(server.requests) for server in (two.virtual, two.host)}
        await asyncio.sleep(600)
        assert [writes(server, since) for server, since in sent_before.items()] == [[], []]
