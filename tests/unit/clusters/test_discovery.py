"""Discovery: both forms of the documents give the same answers, and changes are noticed."""

import asyncio
import contextlib
import gc
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from cluster_servers import Call, Peer, plain_transport, serve

from syncer.api.errors import NotFound, Unreachable
from syncer.api.objects import LONGEST_NAME, Resource, Side
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Changes, Discovery, _answers

pytestmark = pytest.mark.real_time

#: group → versions, preferred first → (plural, kind, namespaced, subresources, short names)
Table = dict[str, dict[str, list[tuple[str, str, bool, list[str], list[str]]]]]
TABLE: Table = {
    "": {"v1": [("pods", "Pod", True, ["status", "binding"], ["po"]), ("events", "Event", True, [], ["ev"])]},
    "events.k8s.io": {"v1": [("events", "Event", True, [], ["ev"])]},
    "cert-manager.io": {
        "v1": [("certificates", "Certificate", True, ["status"], ["cert"]), ("issuers", "Issuer", False, [], [])],
        "v1alpha2": [("certificates", "Certificate", True, [], [])],
    },
}
LONG = "x" * (LONGEST_NAME + 1)
VERBS = ["get", "list", "watch"]
PODS = Resource("v1", "Pod", "pods")
CERTIFICATES = Resource("cert-manager.io/v1", "Certificate", "certificates")


class Server:
    """An API server's discovery documents, aggregated or one by one."""

    def __init__(self, *, aggregated: bool) -> None:
        self.aggregated = aggregated
        self.table: Table = {group: dict(versions) for group, versions in TABLE.items()}
        self.down: set[str] = set()
        self.status = 200
        #: Replaces parts of the documents.
        self.lie: Callable[[dict[str, Any]], Any] = lambda document: document
        self.version: dict[str, str] | None = {"major": "1", "minor": "36"}

    async def answer(self, call: Call) -> None:
        if call.path == "/version" and self.version is None:
            await call.reply(403, b"{}")
            return
        aggregated = self.aggregated and "as=APIGroupDiscoveryList" in (call.header("Accept") or "")
        document = self.groups(core=call.path == "/api") if aggregated else self.document(call.path)
        if document is None:
            await call.reply(503, b"service unavailable")
        else:
            await call.reply(self.status, json.dumps(self.lie(document)).encode())

    def groups(self, *, core: bool) -> dict[str, Any]:
        items = [self.group(name) for name in self.table if (name == "") == core]
        return {"kind": "APIGroupDiscoveryList", "items": items}

    def group(self, group: str) -> dict[str, Any]:
        versions = []
        for version, resources in self.table[group].items():
            down = f"{group}/{version}" in self.down
            entries = [] if down else [self.entry(group, version, *row) for row in resources]
            versions.append({"version": version, "resources": entries, "freshness": "Stale" if down else "Current"})
        return {"metadata": {"name": group} if group else {}, "versions": versions}

    def entry(
        self, group: str, version: str, plural: str, kind: str, namespaced: bool, subs: list[str], short: list[str]
    ) -> dict[str, Any]:
        return {
            "resource": plural,
            "responseKind": {"group": group, "version": version, "kind": kind},
            "scope": "Namespaced" if namespaced else "Cluster",
            "singularResource": kind.lower(),
            "shortNames": short,
            "verbs": VERBS,
            "subresources": [{"subresource": sub, "verbs": ["get"]} for sub in subs],
        }

    def document(self, path: str) -> dict[str, Any] | None:
        match path.strip("/").split("/"):
            case ["version"]:
                return dict(self.version or {})
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"]}
            case ["apis"]:
                return {"kind": "APIGroupList", "groups": [self.plain_group(name) for name in self.table if name]}
            case ["api", version]:
                return self.resource_list("", version)
            case ["apis", group, version]:
                return None if f"{group}/{version}" in self.down else self.resource_list(group, version)
        raise AssertionError(path)

    def plain_group(self, group: str) -> dict[str, Any]:
        names = [f"{group}/{version}" for version in self.table[group]]
        versions = [{"groupVersion": name} for name in reversed(names)]
        return {"name": group, "versions": versions, "preferredVersion": {"groupVersion": names[0]}}

    def resource_list(self, group: str, version: str) -> dict[str, Any]:
        found = []
        for plural, kind, namespaced, subs, short in self.table[group][version]:
            common = {"namespaced": namespaced, "kind": kind, "verbs": VERBS}
            found.append({"name": plural, "singularName": kind.lower(), "shortNames": short, **common})
            found.extend({"name": f"{plural}/{sub}", **common} for sub in subs)
        return {"kind": "APIResourceList", "resources": found}


@pytest.fixture(params=[True, False], ids=["aggregated", "one-by-one"])
def server(request: pytest.FixtureRequest) -> Server:
    return Server(aggregated=request.param)


@contextlib.asynccontextmanager
async def discovering(server: Server) -> AsyncIterator[tuple[Discovery, Peer]]:
    """Yield the discovery of this server, and the server of its requests."""
    async with serve(server.answer) as peer:
        cluster = SideClient("vc", Side.VIRTUAL, plain_transport(peer.endpoint()))
        yield Discovery(cluster), peer
        await cluster.close()


async def test_resources_are_found_by_all_their_names(server: Server) -> None:
    async with discovering(server) as (discovery, peer):
        await discovery.refresh()
        for name in ("pods", "pod", "po", "Pod", "pods/v1"):
            assert discovery.find(name) == PODS, name
        for name in ("certificates", "cert", "Certificate.cert-manager.io", "certificates.cert-manager.io/v1"):
            assert discovery.find(name) == CERTIFICATES, name
        assert discovery.find("certificates.cert-manager.io/v1alpha2").version == "v1alpha2"
        assert discovery.find("events").group == ""
        assert discovery.find("events.events.k8s.io").group == "events.k8s.io"
        assert not discovery.find("issuers").namespaced
    assert len(peer.calls) == (3 if server.aggregated else 7)


async def test_verbs_and_subresources(server: Server) -> None:
    async with discovering(server) as (discovery, _):
        assert discovery.verbs(PODS) == frozenset()
        await discovery.refresh()
        assert discovery.verbs(PODS) == frozenset(VERBS)
        assert discovery.has_status(PODS)
        assert discovery.has_subresource(PODS, "binding")
        assert not discovery.has_subresource(PODS, "scale")
        assert not discovery.has_status(Resource("v1", "Event", "events"))
        assert discovery.has_status(CERTIFICATES)
        assert not discovery.has_status(Resource("cert-manager.io/v1alpha2", "Certificate", "certificates"))
        assert discovery.served(Resource("x/v1", "X", "xs")) is None


async def test_equal_answers_of_several_clusters_are_kept_once_and_while_they_are_served() -> None:
    server = Server(aggregated=True)
    async with discovering(server) as (discovery, _):
        other = Discovery(discovery.cluster)
        await discovery.refresh()
        pods = discovery.served(PODS)
        certificates = discovery.served(CERTIFICATES)
        server.table["cert-manager.io"] = {"v1": [("certificates", "Certificate", True, [], [])]}
        await other.refresh()
        assert other.served(PODS) is pods
        changed = other.served(CERTIFICATES)
        assert changed is not certificates
        assert changed is not None
        assert not changed.subresources

        assert any(certificates in known for known in _answers.values())
        await discovery.refresh()
        gc.collect()
        assert not any(certificates in known for known in _answers.values())


async def test_missing_name_is_reported_with_similar_ones(server: Server) -> None:
    async with discovering(server) as (discovery, _):
        await discovery.refresh()
        with pytest.raises(NotFound) as caught:
            discovery.find("certificats.cert-manager.io")
        assert str(caught.value) == (
            "virtual cluster vc: there is no resource certificats.cert-manager.io. "
            "Did you mean certificates.cert-manager.io?"
        )
        with pytest.raises(NotFound, match=r"gizmos\.example\.com\. Is its CustomResourceDefinition installed\?"):
            discovery.find("gizmos.example.com")


async def test_new_and_removed_resources_are_returned_once(server: Server) -> None:
    async with discovering(server) as (discovery, _):
        first = await discovery.refresh()
        assert (len(first.added), first.removed) == (6, ())
        assert not await discovery.refresh()
        server.table["example.com"] = {"v1": [("gizmos", "Gizmo", True, ["status"], [])]}
        del server.table["cert-manager.io"]["v1alpha2"]
        gizmos = Resource("example.com/v1", "Gizmo", "gizmos")
        old = Resource("cert-manager.io/v1alpha2", "Certificate", "certificates")
        assert await discovery.refresh() == Changes((gizmos,), (old,))
        assert discovery.find("gizmos.example.com") == gizmos
        assert not await discovery.refresh()


async def test_resource_that_is_not_served_now_keeps_its_subresources(server: Server) -> None:
    """An API server that starts serves custom resources last, and writes of those may come before the next look."""
    async with discovering(server) as (discovery, _):
        await discovery.refresh()
        custom = server.table.pop("cert-manager.io")
        assert (await discovery.refresh()).removed
        assert discovery.served(CERTIFICATES) is None
        assert discovery.has_status(CERTIFICATES)
        server.table["cert-manager.io"] = {"v1": [(*row[:3], [], row[4]) for row in custom["v1"]]}
        await discovery.refresh()
        assert not discovery.has_status(CERTIFICATES)


async def test_aggregated_api_that_is_down_keeps_its_resources(server: Server) -> None:
    async with discovering(server) as (discovery, _):
        await discovery.refresh()
        server.down.add("cert-manager.io/v1")
        assert not await discovery.refresh()
        assert discovery.find("certificates") == CERTIFICATES
        assert list(discovery.silent) == ["cert-manager.io/v1"]
        server.down.clear()
        await discovery.refresh()
        assert not discovery.silent


def spoil(value: Any, *, field: str, lie: Any) -> Any:
    """Return a document of an API server in which cert-manager's has another value of a field."""
    if isinstance(value, list):
        return [spoil(each, field=field, lie=lie) for each in value]
    if not isinstance(value, dict):
        return value
    text = json.dumps(value)
    found = {name: spoil(each, field=field, lie=lie) for name, each in value.items()}
    return {**found, field: lie} if field in value and "Certificate" in text and "items" not in value else found


@pytest.mark.parametrize(
    ("field", "lie"),
    [
        ("resources", "text"),
        ("resources", [None]),
        ("resources", [{}]),
        ("resources", [[]]),
        ("verbs", "get"),
        ("verbs", [5]),
        ("shortNames", {"a": 1}),
        ("kind", 5),
        ("kind", ["Certificate"]),
        pytest.param("verbs", [LONG], id="long verb"),
        pytest.param("shortNames", [LONG], id="long short name"),
        pytest.param("kind", LONG, id="long kind"),
    ],
)
async def test_malformed_document_of_a_group_costs_that_group(server: Server, field: str, lie: Any) -> None:
    """Its resources count as those of an API server that is down; others are served."""
    server.lie = partial(spoil, field=field, lie=lie)
    async with discovering(server) as (discovery, _):
        await discovery.refresh()
        assert discovery.find("pods") == PODS
        assert "cert-manager.io/v1" in discovery.silent
        assert {resource.group for resource in discovery.resources()} >= {"", "events.k8s.io"}
        server.lie = lambda document: document
        await discovery.refresh()
        assert discovery.find("certificates") == CERTIFICATES


@pytest.mark.parametrize("name", ["../secrets", "", "a b", "a?b", 5, pytest.param(LONG, id="long")])
async def test_resource_that_no_url_can_have_costs_its_group(server: Server, name: Any) -> None:
    server.lie = lambda document: json.loads(json.dumps(document).replace('"issuers"', json.dumps(name)))
    async with discovering(server) as (discovery, _):
        await discovery.refresh()
        assert (discovery.find("pods"), discovery.silent) == (PODS, ("cert-manager.io/v1",))


@pytest.mark.parametrize("document", [[], 5, {"kind": "APIGroupDiscoveryList", "items": "a"}, {"groups": 5}])
async def test_unreadable_list_of_groups_is_a_failure_that_is_tried_again(server: Server, document: Any) -> None:
    async with discovering(server) as (discovery, _):
        await discovery.refresh()
        server.lie = lambda known: document
        with pytest.raises(Unreachable, match="can't be read"):
            await discovery.refresh()
        assert discovery.find("pods") == PODS


async def test_failed_discovery_keeps_the_known_resources(server: Server) -> None:
    async with discovering(server) as (discovery, _):
        await discovery.refresh()
        server.status = 500
        with pytest.raises(Unreachable):
            await discovery.refresh()
        assert discovery.find("pods") == PODS


async def test_calls_that_wait_share_one_look() -> None:
    async with discovering(Server(aggregated=True)) as (discovery, peer):
        changes = await asyncio.gather(*(discovery.refresh() for _ in range(10)))
        assert [len(change.added) for change in changes] == [6] + [0] * 9
    assert len(peer.calls) == 5


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ({"major": "1", "minor": "35"}, 35),
        ({"major": "1", "minor": "36+"}, 36),
        ({"major": "1", "minor": "34"}, 34),
        ({"major": "1", "minor": "9"}, 9),
        ({"major": "2", "minor": "0"}, 0),
        ({"major": "1", "minor": ""}, 0),
        ({"major": "1", "minor": "v36"}, 0),
        ({"major": "1", "minor": "\N{ARABIC-INDIC DIGIT FOUR}0"}, 0),
        ({}, 0),
        (None, 0),
    ],
)
async def test_version_of_the_server_decides_whether_resource_versions_are_ordered(
    version: dict[str, str] | None, minor: int
) -> None:
    server = Server(aggregated=True)
    server.version = version
    async with discovering(server) as (discovery, _):
        assert not discovery.orders_versions
        await discovery.refresh()
        assert discovery.minor == minor
        assert discovery.orders_versions is (minor >= 35)
