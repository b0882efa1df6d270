"""The rights follow from roles, sources and a syncer's own declarations."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from syncer.api import (
    Config,
    Context,
    Decision,
    FakeSyncUp,
    Index,
    Indexes,
    Key,
    Mirror,
    Networking,
    Obj,
    Pair,
    Patch,
    Patches,
    Resource,
    Right,
    Settings,
    Side,
    Source,
    Sync,
    Syncer,
    SyncFromHost,
    Watch,
    Watches,
    skip,
)
from syncer.names import SingleNamespace
from syncer.resources.pods.syncer import PodSyncer
from syncer.rights.rbac import LEASES, Share, Subject, allows, daemon_manifests, manifests, needed, rights, sources

MAPS = Resource("v1", "ConfigMap", "configmaps")
PODS = Resource("v1", "Pod", "pods")
NODES = Resource("v1", "Node", "nodes", namespaced=False)
EVENTS = Resource("v1", "Event", "events")
INGRESSES = Resource("networking.k8s.io/v1", "Ingress", "ingresses")


class Maps(Mirror, Indexes, Watches):
    """Copies; finds the Pods and Ingresses that use them."""

    name = "maps"
    resource = MAPS
    down = ("data",)

    def indexes(self) -> Sequence[Index]:
        return [Index(Source(Side.VIRTUAL, PODS), "uses", lambda obj: ())]

    def watches(self) -> Sequence[Watch]:
        return [Watch(Source(Side.VIRTUAL, INGRESSES), lambda obj, settings: (), optional_with="ingresses")]


class Pods(Mirror):
    """Copies, with status back and rights of its own."""

    name = "pods"
    resource = PODS
    down = ("spec",)
    up = ("status",)
    reads = (Source(Side.VIRTUAL, NODES),)
    rights = (Right(Side.VIRTUAL, PODS, ("create",), "binding"), Right(Side.VIRTUAL, PODS, ("delete",)))


class Nodes(Syncer, FakeSyncUp):
    """Stands in for what exists nowhere."""

    name = "nodes"
    resource = NODES

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        return skip("")

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return skip("")


class Events(Syncer, SyncFromHost, Sync):
    """Begins on the host."""

    name = "events"
    resource = EVENTS

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        return None

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        return skip("")

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        return skip("")


class Ingresses(Mirror):
    """Both sides own something of the spec."""

    name = "ingresses"
    resource = INGRESSES
    up = ("status", "spec.rules")


def verbs(syncer: Any, side: Side, resource: Resource, subresource: str = "") -> set[str]:
    wanted = (side, resource, subresource)
    found = [right.verbs for right in rights(syncer) if (right.side, right.resource, right.subresource) == wanted]
    return {verb for each in found for verb in each}


READ = {"get", "list", "watch"}
WRITE = {"create", "patch", "delete"}


def test_mirror_reads_both_sides_and_writes_the_host() -> None:
    assert verbs(Maps(), Side.HOST, MAPS) == READ | WRITE
    assert verbs(Maps(), Side.VIRTUAL, MAPS) == READ
    assert verbs(Maps(), Side.HOST, PODS) == set()


def test_sources_of_indexes_watches_and_reads_are_read() -> None:
    assert verbs(Maps(), Side.VIRTUAL, PODS) == READ
    assert verbs(Maps(), Side.VIRTUAL, INGRESSES) == READ
    assert verbs(Pods(), Side.VIRTUAL, NODES) == READ


def test_sources_for_a_disabled_syncer_are_left_out() -> None:
    assert Source(Side.VIRTUAL, INGRESSES) in sources(Maps())
    assert Source(Side.VIRTUAL, INGRESSES) in sources(Maps(), {"maps", "ingresses"})
    assert Source(Side.VIRTUAL, INGRESSES) not in sources(Maps(), {"maps"})
    assert not allows(needed([Maps()]), Side.VIRTUAL, INGRESSES, "get")
    assert allows(needed([Maps(), Ingresses()]), Side.VIRTUAL, INGRESSES, "get")


def test_status_that_goes_up_is_patched_through_its_subresource_only() -> None:
    assert verbs(Pods(), Side.VIRTUAL, PODS, "status") == {"patch"}
    assert "patch" not in verbs(Pods(), Side.VIRTUAL, PODS)
    assert verbs(Ingresses(), Side.VIRTUAL, INGRESSES) == READ | {"patch"}


def test_syncers_own_rights_are_added() -> None:
    assert verbs(Pods(), Side.VIRTUAL, PODS) == READ | {"delete"}
    assert verbs(Pods(), Side.VIRTUAL, PODS, "binding") == {"create"}


def test_stand_in_is_written_on_the_virtual_side_and_nothing_is_asked_of_the_host() -> None:
    assert verbs(Nodes(), Side.VIRTUAL, NODES) == READ | WRITE
    assert verbs(Nodes(), Side.VIRTUAL, NODES, "status") == {"patch"}
    assert {right.side for right in rights(Nodes())} == {Side.VIRTUAL}


def test_host_object_is_only_read_on_the_host() -> None:
    assert verbs(Events(), Side.HOST, EVENTS) == READ
    assert verbs(Events(), Side.VIRTUAL, EVENTS) == READ | WRITE
    assert Source(Side.HOST, EVENTS, marked=False) in sources(Events())


def test_tenants_get_events_and_the_lease_serves_elections_only() -> None:
    assert allows(needed([]), Side.VIRTUAL, EVENTS, "create")
    assert not allows(needed([]), Side.HOST, LEASES, "create")
    assert allows(needed([], leader_election=True), Side.HOST, LEASES, "create")


def test_pauses_are_read_on_the_virtual_side_whatever_is_synced() -> None:
    granted = needed([])
    for plural in ("configmaps", "namespaces"):
        found = [right for right in granted if right.resource.plural == plural and right.side is Side.VIRTUAL]
        assert {"list", "watch"} <= {verb for right in found for verb in right.verbs}


def test_rules_name_each_resource_once_with_its_verbs_in_order() -> None:
    found = needed([Maps(), Pods()])
    targets = [(right.side, right.resource, right.subresource) for right in found]
    assert len(targets) == len(set(targets))
    [pods] = [right for right in found if (right.side, right.resource, right.subresource) == (Side.VIRTUAL, PODS, "")]
    assert pods.verbs == ("get", "list", "watch", "delete")


def test_right_that_is_not_granted_is_not_allowed() -> None:
    granted = needed([Maps()])
    assert allows(granted, Side.HOST, MAPS, "delete")
    assert not allows(granted, Side.VIRTUAL, MAPS, "delete")
    assert not allows(granted, Side.HOST, MAPS, "update")
    assert not allows(granted, Side.HOST, MAPS, "patch", "status")


def lease_rules(name: str) -> list[Obj]:
    """Return the rules for a Lease of this name: RBAC can't narrow `create` to it."""
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return [{**leases, "verbs": ["create"]}, {**leases, "verbs": ["get", "patch"], "resourceNames": [name]}]


def made(*syncers: Any, namespaces: Sequence[str] | None = ("vc",), **kwargs: Any) -> dict[Side, list[Obj]]:
    granted = needed(syncers, leader_election=True)
    return manifests(granted, cluster="shop", home="vc", host_namespaces=namespaces, **kwargs)


def test_role_in_the_host_namespace_is_enough_where_nothing_is_cluster_wide() -> None:
    [lease, role] = made(Maps())[Side.HOST]
    assert (lease["kind"], lease["metadata"]) == ("Role", {"name": "vsyncer-shop.lease", "namespace": "vc"})
    assert lease["rules"] == lease_rules("vsyncer-shop")
    assert (role["kind"], role["metadata"]) == ("Role", {"name": "vsyncer-shop", "namespace": "vc"})
    all_verbs = ["get", "list", "watch", "create", "patch", "delete"]
    assert {"apiGroups": [""], "resources": ["configmaps"], "verbs": all_verbs} in role["rules"]


def test_cluster_scoped_resource_of_the_host_needs_a_cluster_role_named_for_its_home() -> None:
    class HostNodes(Mirror):
        name = "hostnodes"
        resource = NODES

    kinds = [(each["kind"], each["metadata"]["name"]) for each in made(HostNodes(), Maps())[Side.HOST]]
    assert kinds == [("ClusterRole", "vsyncer-shop.vc"), ("Role", "vsyncer-shop.lease"), ("Role", "vsyncer-shop")]


def test_unknown_host_namespaces_need_a_cluster_role_and_the_lease_still_a_role() -> None:
    cluster, role = made(Maps(), namespaces=None)[Side.HOST]
    assert cluster["kind"] == "ClusterRole"
    assert role["rules"] == lease_rules("vsyncer-shop")


def test_host_namespaces_get_a_role_each() -> None:
    assert [each["metadata"]["namespace"] for each in made(Maps(), namespaces=("a", "b"))[Side.HOST]] == [
        "vc",
        "a",
        "b",
    ]


class Elsewhere(Events):
    """Begins in other namespaces of the host."""

    namespaces: ClassVar[tuple[str, ...] | None] = ("infra",)

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        return [Right(Side.VIRTUAL, MAPS, ("delete",))]


def namespaces_of(*syncers: Syncer) -> set[str]:
    settings = Settings("shop", "vc", SingleNamespace(cluster="shop", namespace="vc"))
    roles = manifests(needed(syncers, settings=settings), cluster="shop", home="vc", host_namespaces=("vc",))
    events = [role for role in roles[Side.HOST] if any("events" in rule["resources"] for rule in role["rules"])]
    return {role["metadata"].get("namespace", "") for role in events}


def test_host_source_in_another_namespace_needs_a_role_there() -> None:
    assert namespaces_of(Elsewhere()) == {"infra"}


class ElsewhereTwice(Elsewhere):
    """Begins in two other namespaces."""

    namespaces = ("infra", "shared")


def test_source_in_several_namespaces_takes_a_role_in_each() -> None:
    assert namespaces_of(ElsewhereTwice()) == {"infra", "shared"}
    assert namespaces_of(Elsewhere(), Events()) == {"infra", "vc"}


class Named(Elsewhere):
    """Shows a whole namespace and two objects, of which one is in that namespace."""

    def host_names(self, settings: Settings) -> tuple[Key, ...]:
        return (Key("shared", "b"), Key("shared", "a"), Key("infra", "c"))


def test_listed_names_take_the_right_to_these_names() -> None:
    settings = Settings("shop", "vc", SingleNamespace(cluster="shop", namespace="vc"))
    read = [
        right for right in needed([Named()], settings=settings) if right.resource == EVENTS and right.side is Side.HOST
    ]
    assert {(right.namespaces, right.names, right.verbs) for right in read} == {
        (("infra",), (), ("get", "list", "watch")),
        (("shared",), ("a", "b"), ("get", "list", "watch")),
    }


class Looks(Maps):
    """Reads what is in another namespace of the host."""

    reads = (Source(Side.HOST, EVENTS, namespaces=("infra",)),)


def test_source_that_is_only_read_in_another_namespace_needs_a_role_there() -> None:
    assert namespaces_of(Looks()) == {"infra"}
    assert namespaces_of(Looks(), Events()) == {"infra", "vc"}


class Labelled(Elsewhere):
    """Is watched by a label, and looks at all in one more namespace."""

    reads = (Source(Side.HOST, EVENTS, namespaces=("more",)), Source(Side.VIRTUAL, EVENTS))

    def host_selector(self, settings: Settings) -> str:
        return "public=true"


def test_host_objects_are_watched_as_their_syncer_says() -> None:
    settings = Settings("shop", "vc", SingleNamespace(cluster="shop", namespace="vc"))
    assert {source for source in sources(Labelled(), settings=settings) if source.side is Side.HOST} == {
        Source(Side.HOST, EVENTS, selector="public=true", namespaces=("infra",)),
        Source(Side.HOST, EVENTS, namespaces=("more",)),
    }


def test_service_in_front_of_the_api_server_needs_a_role_in_its_namespace() -> None:
    names, front = SingleNamespace(cluster="shop", namespace="vc"), {"apiServer": {"service": "infra/api"}}
    settings = Settings("shop", "vc", names, networking=Networking.model_validate(front))
    roles = manifests(needed([PodSyncer()], settings=settings), cluster="shop", home="vc", host_namespaces=("vc",))
    [role] = [each for each in roles[Side.HOST] if each["metadata"].get("namespace") == "infra"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["services"], "verbs": ["get"], "resourceNames": ["api"]}]


def test_rights_may_depend_on_the_configuration() -> None:
    settings = Settings("shop", "vc", SingleNamespace(cluster="shop", namespace="vc"))
    assert allows(needed([Elsewhere()], settings=settings), Side.VIRTUAL, MAPS, "delete")
    assert not allows(needed([Events()], settings=settings), Side.VIRTUAL, MAPS, "delete")


def test_patches_of_the_virtual_side_need_rights() -> None:
    patches = Patches(up=(Patch(path="metadata.labels.tier", cel="'gold'"),))
    sections = {"maps": Config(patches=patches)}
    names = SingleNamespace(cluster="shop", namespace="vc")
    plain, patched = (Settings("shop", "vc", names, sections=each) for each in ({"maps": Config()}, sections))
    assert not allows(needed([Maps()], settings=plain), Side.VIRTUAL, MAPS, "patch")
    assert allows(needed([Maps()], settings=patched), Side.VIRTUAL, MAPS, "patch")


def test_virtual_side_is_a_cluster_role() -> None:
    [role] = made(Maps())[Side.VIRTUAL]
    assert (role["kind"], role["metadata"]) == ("ClusterRole", {"name": "vsyncer-shop"})


def test_subject_gets_bindings() -> None:
    subjects = {Side.HOST: Subject("syncer", "vc"), Side.VIRTUAL: Subject("syncer")}
    roles = made(Maps(), subjects=subjects)
    assert [each["kind"] for each in roles[Side.HOST]] == ["Role", "RoleBinding"] * 2
    binding = roles[Side.HOST][3]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "vsyncer-shop"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "syncer", "namespace": "vc"}]
    assert roles[Side.VIRTUAL][1]["kind"] == "ClusterRoleBinding"
    assert roles[Side.VIRTUAL][1]["subjects"][0]["kind"] == "User"


# -- several virtual clusters ----------------------------------------------------------------------


class HostNodes(Mirror):
    """Copies what has no namespace."""

    name = "hostnodes"
    resource = NODES


def test_daemon_role_has_lease_and_host_rights_once_and_clusters_the_rest() -> None:
    shares = [
        Share("a", needed([Maps(), HostNodes()], leader_election=True), ("vc-a",)),
        Share("b", needed([Pods(), HostNodes()], leader_election=True), ("vc-b",)),
    ]
    daemon = daemon_manifests(shares, name="fleet", home="syncers")
    assert [(each["kind"], each["metadata"]) for each in daemon] == [
        ("ClusterRole", {"name": "fleet.syncers"}),
        ("Role", {"name": "fleet.lease", "namespace": "syncers"}),
    ]
    assert [rule["resources"] for rule in daemon[0]["rules"]] == [["nodes"]]
    assert daemon[1]["rules"] == lease_rules("fleet")
    for share, plural, other in ((shares[0], "configmaps", "pods"), (shares[1], "pods", "configmaps")):
        [role] = share.manifests()[Side.HOST]
        assert role["metadata"] == {"name": f"vsyncer-{share.cluster}", "namespace": f"vc-{share.cluster}"}
        resources = {resource for rule in role["rules"] for resource in rule["resources"]}
        assert plural in resources
        assert not {other, "nodes", "leases"} & resources


def test_daemon_without_anything_of_its_own_needs_no_role() -> None:
    assert daemon_manifests([Share("a", needed([Maps()]), ("vc-a",))], name="fleet", home="syncers") == []


def test_daemon_role_for_the_whole_host_joins_rights_of_virtual_clusters() -> None:
    reads, writes = (Right(Side.HOST, NODES, verbs) for verbs in (("list", "get"), ("patch", "get")))
    [role] = daemon_manifests([Share("a", [reads], ()), Share("b", [writes], ())], name="fleet", home="")
    assert role["metadata"] == {"name": "fleet"}
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]}]


def test_replicas_that_share_a_fleet_may_list_and_delete_leases() -> None:
    [role] = daemon_manifests(
        [Share("a", needed([Maps()], leader_election=True), ("vc-a",))], name="fleet", home="syncers", is_shared=True
    )
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert role["rules"] == [{**leases, "verbs": ["create", "delete", "get", "list", "patch"]}]
