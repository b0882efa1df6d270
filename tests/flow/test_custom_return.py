"""A kind that goes and comes back, and the objects of operators meanwhile."""

import asyncio

from crd_scene import CRDS
from custom_scene import (
    CERTIFICATES,
    ISSUERS,
    cert_manager,
    certificate,
    custom,
    definition,
    example,
    issue,
    running,
    there,
)
from harness import Two, host_path, until, writes

from kube_envtest import Rule
from syncer.daemon.pages.status import waiting
from syncer.testing.objects import secret


async def test_object_of_an_operator_stays_while_its_kind_goes_and_comes_back(two: Two) -> None:
    """The Secrets of the host are watched again then, all of them: until they are known, none is gone."""
    cert_manager(two)
    async with running(two, example("cert-manager")) as daemon:
        two.virtual.put(secret("other"))
        two.virtual.put(certificate())
        await until(lambda: two.copy(CERTIFICATES, "db"))
        issue(two, there(two.host, CERTIFICATES, host_path("db")))
        await until(lambda: two.original("secrets", "db-tls"))
        await daemon.settled()
        since = len(two.virtual.requests)
        two.host.delete(CRDS, CERTIFICATES)
        await until(lambda: ("vc", CERTIFICATES) in waiting(daemon.process), within=90)
        await asyncio.sleep(5)
        two.host.faults.add(Rule(verb="list", resource="secrets", status=503, count=3))
        two.host.put(definition(CERTIFICATES))
        await until(lambda: two.copy(CERTIFICATES, "db"), within=90)
        await daemon.settled()
        assert [line for line in writes(two.virtual, since) if "secrets" in line] == []


async def issuing(two: Two) -> None:
    """Create an Issuer and its key on both sides, and no daemon."""
    cert_manager(two)
    two.virtual.put(secret("ca-key"))
    two.virtual.put(custom(ISSUERS, "ca", spec={"ca": {"secretName": "ca-key"}}))
    async with running(two, example("cert-manager")):
        await until(lambda: two.copy("secrets", "ca-key") and two.copy(ISSUERS, "ca"))


async def test_objects_that_a_kind_uses_stay_if_it_is_not_served_yet(two: Two) -> None:
    await issuing(two)
    since = len(two.host.requests)
    two.host.delete(CRDS, ISSUERS)
    async with running(two, example("cert-manager")) as daemon:
        await asyncio.sleep(20)
        assert ("vc", ISSUERS) in waiting(daemon.process)
        two.virtual.put(secret("ca-key", {"renewed": "x"}))
        await until(lambda: "renewed" in there(two.host, "secrets", host_path("ca-key"))["data"])
        two.host.put(definition(ISSUERS))
        await until(lambda: two.copy(ISSUERS, "ca"), within=90)
        await daemon.settled()
    assert [line for line in writes(two.host, since) if "delete" in line] == []


async def test_objects_that_a_kind_used_go_if_the_kind_does_not_come_back(two: Two) -> None:
    await issuing(two)
    two.host.delete(CRDS, ISSUERS)
    async with running(two, example("cert-manager")):
        await until(lambda: two.copy("secrets", "ca-key") is None, within=200)
