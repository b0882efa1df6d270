"""Children in another cluster, which go with their parents; and objects that are decorated."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from fleet_scene import PODS, SECRETS, Site, eventually, running

from kube_envtest import Rule
from syncer.api import Key, Obj
from syncer.multicluster import (
    ADMIRALTY_FINALIZER,
    ADMIRALTY_PARENT_LABEL,
    ADMIRALTY_REFERENCE_ANNOTATION,
    FINALIZER,
    PARENT_LABEL,
    REFERENCE_ANNOTATION,
    Children,
    Client,
    Cluster,
    ControllerOptions,
    Decorator,
    Manager,
    WatchOptions,
)
from syncer.testing.objects import pod, secret

WEB = Key("shop", "web")


def made(parent: Obj) -> Obj:
    metadata = {"namespace": "ghosts", "labels": {"kept": "yes"}}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}


def updated(parent: Obj, child: Obj) -> Obj:
    child["metadata"]["labels"]["app"] = parent["metadata"]["labels"]["app"]
    return child


def reported(child: Obj, parent: Obj) -> Obj:
    parent["metadata"].setdefault("annotations", {})["child"] = child["metadata"]["name"]
    return parent


class Scene:
    """Parents in eu, children in us."""

    def __init__(self) -> None:
        self.eu, self.us = Site("eu"), Site("us", secret("s", namespace="ghosts"))
        self.children = Children(
            parents=PODS,
            children=SECRETS,
            child_cluster=lambda parent: "us",
            make=made,
            update=updated,
            update_parent=reported,
        )
        self.children.watch_parents(self.eu.cluster)
        self.children.watch_children(self.us.cluster)
        self.manager = Manager()
        self.manager.add(self.children.controller)
        self.eu.server.put(pod("web", metadata={"labels": {"app": "web"}, "finalizers": ["example.org/foreign"]}))

    @property
    def parent(self) -> Obj | None:
        return self.eu.server.get("pods", WEB)

    def child_objects(self) -> list[Obj]:
        return [
            each for each in self.us.server.objects("secrets") if PARENT_LABEL in each["metadata"].get("labels", {})
        ]

    @contextlib.asynccontextmanager
    async def settled(self) -> AsyncIterator[Obj]:
        async with running(self.manager):
            await eventually(
                lambda: self.child_objects() and "child" in (self.parent or pod("x"))["metadata"]["annotations"]
            )
            await asyncio.sleep(10)
            [child] = self.child_objects()
            yield child

    async def delete_parent(self) -> None:
        await self.eu.new_client().delete(PODS, WEB, grace=0)


async def test_parent_gets_a_finalizer_and_a_child_that_names_it() -> None:
    scene = Scene()
    async with scene.settled() as child:
        parent = scene.parent
        assert parent is not None
        assert parent["metadata"]["finalizers"] == ["example.org/foreign", FINALIZER]
        assert parent["metadata"]["annotations"]["child"] == child["metadata"]["name"]
        assert child["metadata"]["name"].startswith("web-")
        assert child["metadata"]["labels"] == {PARENT_LABEL: parent["metadata"]["uid"], "app": "web", "kept": "yes"}
        reference = json.loads(child["metadata"]["annotations"][REFERENCE_ANNOTATION])
        assert (reference["clusterName"], reference["namespace"], reference["name"]) == ("eu", "shop", "web")
        writes = len([one for one in scene.us.server.requests if one.verb in ("create", "update", "patch")])
        assert writes == 2, "it is made and updated once"


async def test_keys_are_our_own_or_those_of_admiralty() -> None:
    assert {FINALIZER, PARENT_LABEL, REFERENCE_ANNOTATION} == {
        "vsyncer.dev/children",
        "vsyncer.dev/parent-uid",
        "vsyncer.dev/controller-reference",
    }
    scene = Scene()
    children = Children(
        parents=PODS,
        children=SECRETS,
        child_cluster=lambda parent: "us",
        make=made,
        finalizer=ADMIRALTY_FINALIZER,
        label=ADMIRALTY_PARENT_LABEL,
        options=ControllerOptions(annotation=ADMIRALTY_REFERENCE_ANNOTATION),
    )
    children.watch_parents(scene.eu.cluster)
    children.watch_children(scene.us.cluster)
    async with running(scene.eu, scene.us, children.controller):
        await eventually(lambda: len(scene.us.server.objects("secrets")) == 2)
        [child] = [each for each in scene.us.server.objects("secrets") if each["metadata"]["name"] != "s"]
        parent = scene.parent
        assert parent is not None
        foreign = "multicluster.admiralty.io/multiclusterForegroundDeletion"
        assert parent["metadata"]["finalizers"] == ["example.org/foreign", foreign]
        assert child["metadata"]["labels"]["multicluster.admiralty.io/parent-uid"] == parent["metadata"]["uid"]
        assert list(child["metadata"]["annotations"]) == ["multicluster.admiralty.io/controller-reference"]


async def test_child_is_repaired_and_made_again() -> None:
    scene = Scene()
    async with scene.settled() as child:
        key = Key("ghosts", child["metadata"]["name"])
        scene.us.server.put(
            {
                **child,
                "metadata": {
                    **child["metadata"],
                    "labels": {PARENT_LABEL: child["metadata"]["labels"][PARENT_LABEL], "app": "x"},
                },
            }
        )
        await eventually(lambda: scene.child_objects()[0]["metadata"]["labels"]["app"] == "web")
        scene.us.server.delete("secrets", key)
        await eventually(lambda: scene.child_objects() and scene.child_objects()[0]["metadata"]["name"] != key.name)
        assert len(scene.child_objects()) == 1


async def test_parent_goes_after_its_child_and_keeps_foreign_finalizers() -> None:
    scene = Scene()
    async with scene.settled() as child:
        with_finalizer = {**child, "metadata": {**child["metadata"], "finalizers": ["example.org/slow"]}}
        scene.us.server.put(with_finalizer)
        await asyncio.sleep(5)
        await scene.delete_parent()
        await eventually(lambda: "deletionTimestamp" in scene.child_objects()[0]["metadata"])
        await asyncio.sleep(20)
        parent = scene.parent
        assert parent is not None
        assert FINALIZER in parent["metadata"]["finalizers"], "its child is still there"
        current = scene.child_objects()[0]
        current["metadata"]["finalizers"] = []
        await scene.us.new_client().replace(SECRETS, current)
        await eventually(lambda: (scene.parent or {})["metadata"]["finalizers"] == ["example.org/foreign"])
        assert scene.child_objects() == []


async def test_parent_stays_while_the_cluster_of_its_child_does_not_answer() -> None:
    scene = Scene()
    async with scene.settled():
        scene.us.server.faults.add(down := Rule(reset="before"))
        await scene.delete_parent()
        await asyncio.sleep(200)
        assert scene.parent is not None
        assert FINALIZER in scene.parent["metadata"]["finalizers"]
        scene.us.server.faults.remove(down)
        await eventually(lambda: FINALIZER not in (scene.parent or {})["metadata"]["finalizers"])
        assert scene.child_objects() == []


async def test_duplicate_children_are_left_to_a_person() -> None:
    scene = Scene()
    async with scene.settled() as child:
        second = {**child, "metadata": {**child["metadata"], "name": "second"}}
        second["metadata"].pop("uid")
        second["metadata"].pop("resourceVersion")
        scene.us.server.put(second)
        await asyncio.sleep(30)
        await scene.delete_parent()
        await asyncio.sleep(60)
        assert len(scene.child_objects()) == 2
        assert FINALIZER in (scene.parent or {})["metadata"]["finalizers"]
        scene.us.server.delete("secrets", Key("ghosts", "second"))
        await eventually(lambda: not scene.child_objects())


async def test_child_that_the_cache_does_not_show_is_not_made_twice() -> None:
    scene = Scene()
    async with scene.settled() as child:
        scene.us.server.faults.add(Rule(verb="watch", drop=True))
        scene.us.cluster.informer(SECRETS).gone_live(Key("ghosts", child["metadata"]["name"]))
        scene.eu.server.put({**(scene.parent or {}), "status": {"phase": "Running"}})
        await asyncio.sleep(30)
        assert len(scene.child_objects()) == 1


async def test_parents_of_alike_joined_names_have_their_own_children() -> None:
    scene = Scene()
    for namespace, name in (("foo-bar", "baz"), ("foo", "bar-baz")):
        scene.eu.server.put(pod(name, namespace=namespace, metadata={"labels": {"app": name}}))
    async with running(scene.manager):
        await eventually(lambda: len(scene.child_objects()) == 3)


async def test_children_are_written_by_the_writer_of_their_parents_cluster() -> None:
    scene = Scene()
    asked: list[tuple[str, str]] = []
    deputy = Client("us", scene.us.server.transport("deputy"))

    def writer(cluster: Cluster, parent_cluster: str) -> Client:
        asked.append((cluster.name, parent_cluster))
        return deputy

    children = Children(
        parents=PODS, children=SECRETS, child_cluster=lambda parent: "us", make=made, update=updated, writer=writer
    )
    children.watch_parents(scene.eu.cluster)
    children.watch_children(scene.us.cluster)
    scene.manager = Manager()
    scene.manager.add(children.controller)
    async with running(scene.manager):
        await eventually(lambda: [each for each in scene.child_objects() if "app" in each["metadata"]["labels"]])
        await scene.delete_parent()
        await eventually(lambda: not scene.child_objects())
    assert set(asked) == {("us", "eu")}
    writers = {one.user for one in scene.us.server.requests if one.verb in ("create", "update", "delete")}
    assert writers == {"deputy"}


async def test_decorated_objects_are_written_once_and_only_the_selected_ones() -> None:
    def labelled(obj: Obj) -> Obj:
        obj["metadata"].setdefault("labels", {})["seen"] = "yes"
        obj["status"]["message"] = "seen"
        return obj

    site = Site("eu", pod("a"), pod("b", namespace="bank"))
    decorator = Decorator(PODS, labelled)
    decorator.watch(site.cluster, WatchOptions(namespaces=("shop",)))
    manager = Manager()
    manager.add(decorator.controller)

    def seen(key: Key) -> tuple[object, object]:
        obj = site.server.get("pods", key) or {}
        return obj["metadata"].get("labels", {}).get("seen"), obj["status"].get("message")

    async with running(manager):
        await eventually(lambda: seen(Key("shop", "a")) == ("yes", "seen"))
        await asyncio.sleep(30)
        assert seen(Key("bank", "b")) == (None, None)
        assert [one.verb for one in site.server.requests if one.verb not in ("get", "list", "watch")] == ["update"] * 2
