"""Listed CRDs of the tenant on the host, both directions at once, and their rights."""

from crd_scene import CRDS, NAME, NAMED, ON, PUBLIC, WEBHOOK, configured, copy, daemon, public, status, there, widget
from harness import CLUSTER, HOME, Two, until, writes

from syncer.api import Obj, Side
from syncer.api.reasons import RequestState
from syncer.config import SyncerConfig
from syncer.rights.rbac import Subject, manifests, needed
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import crd, crd_version


async def test_named_crd_of_the_tenant_is_on_the_host_and_stays_there(two: Two) -> None:
    two.virtual.put(crd("gadgets.example.com"))
    async with daemon(two, None, NAMED) as running:
        two.virtual.put(crd(NAME, spec={"conversion": WEBHOOK}))
        assert await until(lambda: two.host.get(CRDS, NAME)) <= 2
        await running.settled()
        assert there(two.host)["spec"] == crd(NAME)["spec"]
        two.virtual.put(crd(NAME, spec={"names": {"shortNames": ["w"]}}))
        await until(lambda: there(two.host)["spec"]["names"].get("shortNames") == ["w"])
        two.virtual.delete(CRDS, NAME)
        await running.settled()
        assert [one["metadata"]["name"] for one in two.host.objects(CRDS)] == [NAME]


async def test_tenant_that_recreates_its_crd_finds_the_hosts_objects(two: Two) -> None:
    two.virtual.put(crd(NAME))
    async with daemon(two, None, NAMED) as running:
        await running.settled()
        before = two.host.put(widget("w"))
        two.virtual.delete(CRDS, NAME)
        await running.settled()
        two.virtual.put(crd(NAME, spec={"names": {"shortNames": ["w"]}}))
        await until(lambda: there(two.host)["spec"]["names"].get("shortNames") == ["w"])
        await running.settled()
        assert two.host.get("widgets.example.com", "shop/w") == before


async def test_hosts_crd_is_deleted_only_if_configured_and_unused(two: Two) -> None:
    two.virtual.put(crd(NAME))
    async with daemon(two, None, {**NAMED, "onRemoval": "delete-if-unused"}) as running:
        await running.settled()
        two.host.put(widget("somebody-elses"))
        two.virtual.delete(CRDS, NAME)
        await running.settled()
        assert there(two.host)
        two.host.delete("widgets.example.com", "shop/somebody-elses")
        await until(lambda: two.host.get(CRDS, NAME) is None, within=400)


async def test_crd_of_two_tenants_belongs_to_the_first(two: Two) -> None:
    second = ApiServer(seed="second")
    two.virtual.put(crd(NAME))
    async with daemon(two, None, NAMED, others={"second": second}) as running:
        await running.settled()
        before = there(two.host)
        second.put(crd(NAME, [crd_version("v7", storage=True)]))
        await running.settled()
        found = status(running, "tenant-crds")
        assert found
        assert found.state is RequestState.PARKED
        assert there(two.host) == before


async def test_directions_do_not_chase_one_another(two: Two) -> None:
    two.host.put(public("gadgets.example.com"))
    two.virtual.put(public())
    both = {**NAMED, "names": [NAME, "gadgets.example.com"]}
    async with daemon(two, {**ON, "onRemoval": "delete"}, {**both, "onRemoval": "delete"}) as running:
        await running.settled()
        created = f"create /apis/apiextensions.k8s.io/v1/{CRDS.partition('.')[0]}"
        assert (writes(two.virtual), writes(two.host)) == ([created], [created])
        two.host.put(merged(there(two.host), PUBLIC))
        await running.settled()
        two.host.put(crd("gadgets.example.com"))
        await until(lambda: copy(two, "gadgets.example.com") is None)
        await running.settled()
        assert there(two.virtual)
        assert there(two.host, "gadgets.example.com")
        two.virtual.delete(CRDS, NAME)
        await until(lambda: two.host.get(CRDS, NAME) is None)


# -- rights ----------------------------------------------------------------------------------------


async def test_generated_rights_are_enough() -> None:
    two = Two(rbac=True)
    two.virtual = ApiServer(seed="virtual", rbac=True)
    up = {**ON, "onRemoval": "delete-if-unused"}
    down = {"enabled": True, "names": ["gadgets.example.com"], "onRemoval": "delete-if-unused"}
    for side, objects in roles(configured(up, down)).items():
        for obj in objects:
            (two.virtual if side is Side.VIRTUAL else two.host).put(obj)
    two.host.put(public())
    two.virtual.put(crd("gadgets.example.com"))
    async with daemon(two, up, down, user="daemon") as running:
        await until(lambda: copy(two) and two.host.get(CRDS, "gadgets.example.com"))
        two.host.put(public(spec={"names": {"shortNames": ["w"]}}))
        await running.settled()
        two.host.put(crd(NAME))
        two.virtual.delete(CRDS, "gadgets.example.com")
        await until(lambda: not copy(two) and not two.host.get(CRDS, "gadgets.example.com"))
    assert [one.path for server in (two.virtual, two.host) for one in server.requests if one.status == 403] == []


def roles(config: SyncerConfig) -> dict[Side, list[Obj]]:
    """Return the roles that ``syncer rbac`` would print for a user."""
    cluster = config.cluster()
    granted = needed([each.syncer for each in cluster.enabled()], settings=cluster.settings())
    subjects = {side: Subject("daemon") for side in Side}
    return manifests(granted, cluster=CLUSTER, home=HOME, host_namespaces=[HOME], subjects=subjects)
