"""A dry run reads from the cluster, sends no write, and answers as if each had been made."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from syncer.api import AlreadyExists, Conflict, Invalid, Key, NotFound, Obj, Resource, Side
from syncer.clusters.client import SideClient
from syncer.clusters.dry_run import LATEST, DryRun, UnsentWrite
from syncer.clusters.paths import Target
from syncer.clusters.transport import HttpRequest
from syncer.testing import ApiServer
from syncer.testing.objects import configmap, pod

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
PODS = Resource("v1", "Pod", "pods")
SERVICE_ACCOUNTS = Resource("v1", "ServiceAccount", "serviceaccounts")
A, WEB = Key("shop", "a"), Key("shop", "web")
TARGET = Target("/api/v1", "", "configmaps", A)


@asynccontextmanager
async def dry(*objects: Obj) -> AsyncIterator[tuple[SideClient, DryRun]]:
    """Yield a cluster through a dry run, on a server that has these objects; nothing may be written to it."""
    server = ApiServer(seed="dry", controllers=False)
    for obj in objects:
        server.put(obj)
    revision = server.revision
    run = DryRun(server.transport())
    yield SideClient("", Side.HOST, run), run
    assert server.revision == revision
    assert {logged.verb for logged in server.requests if "review" not in logged.path} <= {"get", "list"}


async def test_planned_creation_is_visible_to_later_reads() -> None:
    async with dry() as (cluster, run):
        obj = configmap("a")
        made = await cluster.create(CONFIG_MAPS, obj)
        assert made["metadata"]["uid"].startswith("dry-run-")
        assert int(made["metadata"]["resourceVersion"]) >= LATEST, "later than any that was listed"
        assert {**made, "metadata": obj["metadata"]} == obj
        assert await cluster.get(CONFIG_MAPS, A) == made
        with pytest.raises(AlreadyExists):
            await cluster.create(CONFIG_MAPS, obj)
        assert run.writes == [UnsentWrite("create", TARGET, obj, None, obj)]


async def test_object_that_exists_cannot_be_created() -> None:
    async with dry(configmap("a")) as (cluster, run):
        with pytest.raises(AlreadyExists):
            await cluster.create(CONFIG_MAPS, configmap("a"))
        assert run.writes == []


async def test_patch_answers_with_the_object_as_it_would_be() -> None:
    async with dry(configmap("a", {"color": "blue", "size": "1"})) as (cluster, run):
        live = await cluster.get(CONFIG_MAPS, A)
        same = await cluster.patch(CONFIG_MAPS, A, {"data": {"color": "blue"}})
        assert same == live
        changed = await cluster.patch(CONFIG_MAPS, A, {"data": {"color": "red", "size": None}})
        assert changed["data"] == {"color": "red"}
        assert changed["metadata"]["uid"] == live["metadata"]["uid"]
        assert changed["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]
        assert await cluster.get(CONFIG_MAPS, A) == changed
        assert [str(write) for write in run.writes] == ["patch configmaps shop/a"] * 2


@pytest.mark.parametrize("guard", ["uid", "resourceVersion"])
async def test_write_that_means_another_object_is_a_conflict(guard: str) -> None:
    async with dry(configmap("a")) as (cluster, run):
        with pytest.raises(Conflict):
            await cluster.patch(CONFIG_MAPS, A, {"metadata": {guard: "other"}, "data": {}})
        with pytest.raises(Conflict):
            await cluster.delete(CONFIG_MAPS, A, **{"uid" if guard == "uid" else "resource_version": "other"})  # type: ignore[arg-type]
        assert run.writes == []


async def test_strategic_patch_merges_conditions_by_type() -> None:
    conditions = [{"type": "Ready", "status": "False"}, {"type": "Mine", "status": "True"}]
    async with dry(pod("web", status={"conditions": conditions})) as (cluster, run):
        patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        changed = await cluster.patch(PODS, WEB, patch, kind="strategic", subresource="status")
        found = {one["type"]: one["status"] for one in changed["status"]["conditions"]}
        assert found == {"Ready": "True", "Mine": "True"}
        assert str(run.writes[0]) == "patch pods/status shop/web"


async def test_json_patch_answers_with_the_object_or_the_reason() -> None:
    async with dry(configmap("a", {"color": "blue", "size": "1"})) as (cluster, run):
        remove = {"op": "remove", "path": "/data/size"}
        add = {"op": "add", "path": "/data/a~1b", "value": "x"}
        changed = await cluster.patch(CONFIG_MAPS, A, [remove, add], kind="json")
        assert changed["data"] == {"color": "blue", "a/b": "x"}
        with pytest.raises(Invalid, match="there is nothing at /data/size"):
            await cluster.patch(CONFIG_MAPS, A, [remove], kind="json")
        assert [str(write) for write in run.writes] == ["patch configmaps shop/a"] * 2


async def test_planned_deletion_is_visible_to_later_reads() -> None:
    async with dry(configmap("a")) as (cluster, run):
        uid = (await cluster.get(CONFIG_MAPS, A))["metadata"]["uid"]
        assert await cluster.delete(CONFIG_MAPS, A, uid=uid, grace=0) is None
        for _ in range(2):
            with pytest.raises(NotFound):
                await cluster.delete(CONFIG_MAPS, A)
        made = await cluster.create(CONFIG_MAPS, configmap("a"))
        assert made["metadata"]["uid"] != uid
        options = {"preconditions": {"uid": uid}, "gracePeriodSeconds": 0}
        assert run.writes[0].content == {"apiVersion": "v1", "kind": "DeleteOptions", **options}


async def test_object_with_finalizers_would_only_be_marked() -> None:
    async with dry(configmap("a", metadata={"finalizers": ["example.org/x"]})) as (cluster, _):
        left = await cluster.delete(CONFIG_MAPS, A)
        assert left is not None
        assert "deletionTimestamp" in left["metadata"]
        assert await cluster.get(CONFIG_MAPS, A) == left


async def test_put_replaces_the_object_or_its_status() -> None:
    async with dry(pod("web")) as (cluster, run):
        live = await cluster.get(PODS, WEB)
        changed = await cluster.replace(PODS, {**live, "status": {"phase": "Running"}}, subresource="status")
        assert (changed["status"], changed["spec"]) == ({"phase": "Running"}, live["spec"])
        assert str(run.writes[0]) == "update pods/status shop/web"


async def test_tokens_are_made_up() -> None:
    async with dry() as (cluster, run):
        asked = {"kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        answer = await cluster.create(SERVICE_ACCOUNTS, asked, subresource="token", key=A)
        assert answer["status"]["token"] == "dry-run"
        assert answer["status"]["expirationTimestamp"].endswith("Z")
        await cluster.create(PODS, {"target": {}}, subresource="binding", key=WEB)
        assert [str(write) for write in run.writes] == [
            "create serviceaccounts/token shop/a",
            "create pods/binding shop/web",
        ]


async def test_name_that_the_server_would_make_is_made_up() -> None:
    async with dry() as (cluster, run):
        nameless = {"kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "shop"}}
        made = [(await cluster.create(CONFIG_MAPS, nameless))["metadata"]["name"] for _ in range(2)]
        assert all(name.startswith("a-dry-run-") for name in made)
        assert made[0] != made[1]
        assert [str(write) for write in run.writes] == [f"create configmaps shop/{name}" for name in made]


async def test_applied_object_that_is_not_there_is_created() -> None:
    async with dry() as (cluster, run):
        made = await cluster.patch(CONFIG_MAPS, A, configmap("a", {"color": "red"}), kind="apply")
        assert made == await cluster.get(CONFIG_MAPS, A)
        assert [str(write) for write in run.writes] == ["patch configmaps shop/a"]


async def test_review_is_sent_and_is_no_write() -> None:
    async with dry() as (cluster, run):
        reviews = Resource("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
        asked = {"resourceAttributes": {"verb": "get", "resource": "configmaps"}}
        review = {"apiVersion": reviews.api_version, "kind": reviews.kind, "spec": asked}
        assert (await cluster.create(reviews, review))["status"]["allowed"] is True
        assert run.writes == []


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (HttpRequest("DELETE", "/api/v1/namespaces/shop/configmaps"), 200),
        (HttpRequest("POST", "/some/page", b"{}"), 405),
        (HttpRequest("PATCH", "/api/v1/namespaces/shop/configmaps/a", b"a: b", "application/apply-patch+yaml"), 415),
    ],
)
async def test_write_that_the_daemon_never_makes_is_not_sent_either(request_: HttpRequest, status: int) -> None:
    async with dry(configmap("a")) as (_, run):
        assert (await run.send(request_)).status == status
        output = ["deletecollection configmaps shop/"] if status == 200 else []
        assert [str(write) for write in run.writes] == output
