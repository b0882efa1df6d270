"""Which syncers can work, why the others wait, and when they join and leave a running pair."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from engine_fakes import SETTINGS, WIDGETS, Widgets

from kube_envtest import Rule, virtual_time
from syncer.api import (
    Config,
    Initialize,
    Live,
    Mirror,
    Refers,
    Request,
    Resource,
    Side,
    Source,
    Syncer,
    SyncerError,
    Watch,
    Watches,
)
from syncer.clusters.client import Cluster
from syncer.clusters.discovery import Discovery
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport
from syncer.config import config_with
from syncer.engine.cache.informers import Place
from syncer.engine.cache.reflector import Reflector
from syncer.engine.controllers.builder import build_pair
from syncer.engine.controllers.lifecycle import DOUBT_SECONDS, Entry, Find, Lifecycle, Roster
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.workqueue.queue import Queue
from syncer.names import SingleNamespace
from syncer.plugins import installed
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES, SECRETS
from syncer.testing import ApiServer
from syncer.testing.objects import build, crd, crd_version, namespace, secret

VIRTUAL, HOST = Side.VIRTUAL, Side.HOST
GADGETS = Resource("example.org/v1", "Gadget", "gadgets")
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
#: Seconds in which a reflector has listed, or has found out that it can't.
SOON = 5.0
#: Virtual seconds that a test may take.
LONGEST = 3600.0


class Gadgets(Mirror[Config]):
    """Another custom resource."""

    name = "gadgets"
    resource = GADGETS
    down = ("spec",)


class WidgetsWithSecrets(Widgets):
    """Reads Secrets of the tenant."""

    reads = (Source(VIRTUAL, SECRETS),)


class GadgetsWithSecrets(Gadgets):
    """Reads Secrets of the tenant, too."""

    reads = (Source(VIRTUAL, SECRETS),)


class WidgetsWithWidgetSecrets(Widgets):
    """Reads only some Secrets of the tenant."""

    reads = (Source(VIRTUAL, SECRETS, selector="for=widgets"),)


class WidgetsWithGadgets(Widgets):
    """Reads the host's Gadgets."""

    reads = (Source(HOST, GADGETS),)


class WidgetsPerhapsWithGadgets(Widgets):
    """Reads the host's Gadgets if they are there."""

    reads = (Source(HOST, GADGETS, optional_with="gadgets"),)


class WidgetsThatWatchGadgets(Widgets, Watches):
    """Is woken by Gadgets if their syncer is enabled."""

    def watches(self) -> Sequence[Watch]:
        return [Watch(Source(VIRTUAL, GADGETS), lambda obj, settings: (), optional_with="gadgets")]


class Claims(Widgets, Refers):
    """Widgets that may refer to Secrets, and own ConfigMaps."""

    refers_to = (SECRETS,)
    owns = (CONFIG_MAPS,)


class UsedSecrets(Mirror[Config]):
    """Secrets, while something refers to them."""

    name = "secrets"
    resource = SECRETS
    down = ("data",)
    when_used = True


class AllConfigMaps(Mirror[Config]):
    """ConfigMaps, whether or not something refers to them."""

    name = "configmaps"
    resource = CONFIG_MAPS
    down = ("data",)


class Prepared(Widgets, Initialize):
    """Widgets that need something before they begin."""

    #: What the next calls of ``init`` raise; then none.
    failures: list[Exception]
    #: The syncers that were initialised, by the names that their clients have.
    calls: list[str]

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.calls = list(failures), []

    async def init(self, live: Live) -> None:
        self.calls.append(live.syncer)
        if self.failures:
            raise self.failures.pop(0)


@dataclass
class Late:
    """An entry that becomes the syncers of a test."""

    made: Sequence[Syncer] | str
    name: str = "late"
    #: The names that it looks for, and what it found last.
    asks: Sequence[tuple[Side, str]] = ()
    found: list[Resource | None] = field(default_factory=list)
    #: The options of all its syncers.
    config: Config = field(default_factory=lambda: Config(concurrency=3))
    #: The syncers as if everything was served.
    presumed: Sequence[Syncer] = ()

    def sections(self) -> Mapping[str, Config]:
        return {} if isinstance(self.made, str) else {syncer.name: self.config for syncer in self.made}

    def syncers(self, find: Find) -> Sequence[Syncer] | str:
        self.found = [find(side, name) for side, name in self.asks]
        return self.made

    def assumed(self) -> Sequence[Syncer]:
        return self.presumed


def custom(**options: Any) -> Entry:
    """Return the entry of ``sync.custom`` for widgets."""
    model = config_with(installed().syncers(), translator=SingleNamespace)
    sync = {"custom": {str(WIDGETS): options}}
    [entry] = (
        model.model_validate({"cluster": "vc", "host": {"namespace": "vc-ns"}, "sync": sync}).cluster().custom_entries()
    )
    return entry


class Notes(Queue):
    """A queue that only writes down what it is given."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0.0)
        self.noted: list[Request] = []

    def add(self, request: Request, *, after: float = 0.0, low: bool = False) -> None:
        self.noted.append(request)

    def taken(self) -> set[str]:
        """Return the syncers of the new requests."""
        noted, self.noted = self.noted, []
        return {request.syncer for request in noted}


class Incomplete:
    """A transport to a server whose discovery leaves out custom resources while ``hides`` is set,
    and whose streams take some seconds to be closed.
    """

    def __init__(self, server: ApiServer) -> None:
        self._inner: Transport = server.transport()
        self.hides = False
        self.closing_seconds = 0.0

    async def send(self, request: HttpRequest) -> HttpResponse:
        reply = await self._inner.send(request)
        if not (self.hides and request.path.startswith("/apis") and reply.status == 200):
            return reply
        document = json.loads(reply.body)
        if document.get("kind") != "APIGroupDiscoveryList":
            return reply
        document["items"] = [group for group in document["items"] if group["metadata"]["name"] != WIDGETS.group]
        return HttpResponse(200, reply.headers, json.dumps(document).encode())

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            try:
                yield stream
            finally:
                await asyncio.sleep(self.closing_seconds)

    async def close(self) -> None:
        await self._inner.close()


class Bench:
    """A pair between two API servers in memory, and the lifecycle of its syncers."""

    def __init__(self, *syncers: Syncer, entries: Sequence[Entry] = (), enabled: Sequence[str] = ()) -> None:
        self.loop = asyncio.get_running_loop()
        self.servers = {side: ApiServer(seed=side.value) for side in Side}
        self.transports = {side: Incomplete(server) for side, server in self.servers.items()}
        for side, name in ((VIRTUAL, "shop"), (HOST, "vc-ns")):
            self.servers[side].put(namespace(name))
        self.clusters = {side: Cluster(side.value, side, self.transports[side]) for side in Side}
        self.discoveries = {side: Discovery(self.clusters[side]) for side in Side}
        sections = {name: Config() for name in (*enabled, *(syncer.name for syncer in syncers))}
        settings = replace(SETTINGS, sections=sections)
        self.queue = Notes()
        self.pair: ClusterPair = build_pair(
            settings,
            (),
            virtual=self.clusters[VIRTUAL],
            host=self.clusters[HOST],
            queue=self.queue,
            clock=self.loop.time,
            utcnow=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            has_status=lambda side, resource: self.discoveries[side].has_status(resource),
            may_write=lambda: True,
        )
        self.roster = Roster(
            settings,
            [(syncer, sections[syncer.name]) for syncer in syncers],
            entries,
            self.discoveries[VIRTUAL],
            self.discoveries[HOST],
        )
        #: The names of the syncers that have left.
        self.gone: list[str] = []
        self.lifecycle = Lifecycle(
            self.pair,
            self.roster,
            self,
            live=lambda name: Live("vc", name, self.clusters[VIRTUAL], self.clusters[HOST]),
            rng=random.Random("lifecycle"),
            left=self.gone.append,
        )

    # -- what reflectors tell --------------------------------------------------------------------------

    def synced(self, reflector: Reflector) -> None:
        self._begin()

    def watching(self, reflector: Reflector) -> None: ...

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        self._begin()

    def went_back(self, reflector: Reflector) -> None: ...

    def working(self, reflector: Reflector) -> None: ...

    def _begin(self) -> None:
        for controller in self.pair.controllers.values():
            if not controller.ready and not self.pair.lacks(controller):
                self.pair.begin(controller)

    # -- what a test does ------------------------------------------------------------------------------

    def define(self, *places: tuple[Side, Resource]) -> None:
        """Serve custom resources, each in its version alone."""
        for side, resource in places:
            self.servers[side].put(crd(str(resource), [crd_version(resource.version, storage=True)]))

    def undefine(self, side: Side, resource: Resource = WIDGETS) -> None:
        self.servers[side].delete(CRDS, str(resource))

    async def discover(self) -> None:
        for discovery in self.discoveries.values():
            await discovery.refresh()

    async def look(self) -> bool:
        """Discover both sides, update, and return whether that changed anything."""
        await self.discover()
        changed = await self.lifecycle.update()
        self._begin()
        return changed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look once, and run the reflectors while the block runs."""
        await self.look()
        async with asyncio.TaskGroup() as tasks:
            self.lifecycle.start(tasks)
            try:
                await asyncio.sleep(SOON)
                yield
            finally:
                self.lifecycle.stop()

    def refuse(self, side: Side, status: int, resource: Resource = WIDGETS) -> None:
        """Let all requests about a resource fail, and the running watches end."""
        self.servers[side].faults.add(Rule(resource=resource.plural, status=status))
        self.servers[side].cut_watches()

    # -- what a test sees ------------------------------------------------------------------------------

    def able(self) -> list[str]:
        return sorted(self.roster.able())

    def controllers(self) -> list[str]:
        return sorted(self.pair.controllers)

    def waiting(self) -> Mapping[str, str]:
        return dict(self.roster.waiting)

    def reflected(self) -> set[Place]:
        """Return the stores that have reflectors, without those that pauses are read from."""
        return set(self.pair.reflectors) - {(VIRTUAL, NAMESPACES), (VIRTUAL, CONFIG_MAPS)}

    def asked(self, side: Side, resource: Resource = WIDGETS) -> list[str]:
        """Return the verbs of the requests about a resource since the last :meth:`forget`."""
        return [one.verb for one in self.servers[side].requests if one.resource == resource.plural]

    def forget(self) -> None:
        """Forget the requests of both servers."""
        for server in self.servers.values():
            server.requests.clear()


def play(
    scenario: Callable[[Bench], Coroutine[Any, Any, None]],
    *syncers: Syncer,
    entries: Sequence[Entry] = (),
    enabled: Sequence[str] = (),
) -> None:
    async def main() -> None:
        async with asyncio.timeout(LONGEST):
            await scenario(Bench(*syncers, entries=entries, enabled=enabled))

    virtual_time.run(main())


def not_served(*places: tuple[Side, Resource]) -> str:
    lacking = "; ".join(f"the {side} cluster does not serve {resource}" for side, resource in places)
    return f"waits: {lacking}"


VW, HW, VG, HG = (VIRTUAL, WIDGETS), (HOST, WIDGETS), (VIRTUAL, GADGETS), (HOST, GADGETS)
OLD = replace(WIDGETS, api_version="example.org/v1beta1")

# -- who can work --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("syncer", "served", "waits"),
    [
        pytest.param(AllConfigMaps(), [], "", id="built-in kind"),
        pytest.param(Widgets(), [VW, HW], "", id="both sides serve it"),
        pytest.param(Widgets(), [HW], not_served(VW), id="virtual side lacks it"),
        pytest.param(Widgets(), [VW], not_served(HW), id="host lacks it"),
        pytest.param(Widgets(), [], not_served(HW, VW), id="both sides lack it"),
        pytest.param(Widgets(), [VG, HG], not_served(HW, VW), id="both sides serve another"),
        pytest.param(Widgets(), [VW, (HOST, OLD)], not_served(HW), id="host serves another version"),
        pytest.param(WidgetsWithGadgets(), [VW, HW, HG], "", id="source is served"),
        pytest.param(WidgetsWithGadgets(), [VW, HW, VG], not_served(HG), id="source is served on the other side"),
        pytest.param(WidgetsWithGadgets(), [VW], not_served(HG, HW), id="source is lacking, too"),
        pytest.param(WidgetsPerhapsWithGadgets(), [VW, HW], "", id="optional source is lacking"),
        pytest.param(WidgetsPerhapsWithGadgets(), [VW], not_served(HW), id="optional source is no reason"),
        pytest.param(WidgetsThatWatchGadgets(), [VW, HW], not_served(VG), id="watched source is lacking"),
    ],
)
def test_syncer_is_able_when_both_sides_serve_what_it_needs(
    syncer: Syncer, served: Sequence[tuple[Side, Resource]], waits: str
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(*served)
        await bench.discover()
        assert bench.able() == ([] if waits else [syncer.name])
        assert bench.waiting() == ({syncer.name: waits} if waits else {})

    play(scenario, syncer, enabled=["gadgets"])


def test_watch_for_a_disabled_syncer_does_not_count() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        await bench.discover()
        assert (bench.able(), bench.waiting()) == (["widgets"], {})

    play(scenario, WidgetsThatWatchGadgets())


def test_reason_of_a_syncer_is_forgotten_when_it_is_able() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.discover()
        assert bench.able() == ["configmaps"]
        assert list(bench.waiting()) == ["widgets"]
        bench.define(VW, HW)
        await bench.discover()
        assert (bench.able(), bench.waiting()) == (["configmaps", "widgets"], {})

    play(scenario, Widgets(), AllConfigMaps())


@pytest.mark.parametrize(
    ("waiting", "resources"),
    [
        pytest.param([], set(), id="none waits"),
        pytest.param(["widgets"], {SECRETS, CONFIG_MAPS}, id="what it refers to and owns"),
        pytest.param(["late"], {NAMESPACES}, id="what the entry would refer to"),
        pytest.param(["widgets", "late"], {SECRETS, CONFIG_MAPS, NAMESPACES}, id="of both"),
        pytest.param(["configmaps", "other"], set(), id="others"),
    ],
)
def test_roster_knows_what_waiting_syncers_may_refer_to(waiting: list[str], resources: set[Resource]) -> None:
    class Homes(Gadgets, Refers):
        refers_to = (NAMESPACES,)

    async def scenario(bench: Bench) -> None:
        assert bench.roster.referred_to(waiting) == resources

    play(scenario, Claims(), AllConfigMaps(), entries=[Late("waits", presumed=[Homes()])])


# -- entries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "name", "found"),
    [
        pytest.param(HOST, "widgets.example.org", WIDGETS, id="plural and group: preferred version"),
        pytest.param(HOST, "widgets.example.org/v1", WIDGETS, id="preferred version, asked for"),
        pytest.param(HOST, "widgets.example.org/v1beta1", OLD, id="another version"),
        pytest.param(HOST, "widgets.example.org/v2", None, id="version that is not served"),
        pytest.param(VIRTUAL, "widgets.example.org", None, id="the other side lacks it"),
        pytest.param(HOST, "widgets.example.com", None, id="another group"),
        pytest.param(HOST, "widget.example.org", None, id="singular and group"),
        pytest.param(HOST, "gadgets.example.org", None, id="short name of another kind"),
        pytest.param(HOST, "widget", WIDGETS, id="singular"),
        pytest.param(HOST, "gadgets", WIDGETS, id="short name"),
        pytest.param(VIRTUAL, "Secret", SECRETS, id="kind"),
        pytest.param(VIRTUAL, "secrets/v1", SECRETS, id="plural in a version"),
        pytest.param(VIRTUAL, "nonsense", None, id="nothing like it"),
    ],
)
def test_entry_finds_resources_by_name(side: Side, name: str, found: Resource | None) -> None:
    entry = Late("waits", asks=[(side, name)])

    async def scenario(bench: Bench) -> None:
        versions = [crd_version("v1", storage=True), crd_version("v1beta1")]
        bench.servers[HOST].put(crd(str(WIDGETS), versions, spec={"names": {"shortNames": ["gadgets"]}}))
        await bench.discover()
        bench.roster.able()
        assert entry.found == [found]

    play(scenario, entries=[entry])


NAME = str(WIDGETS)


@pytest.mark.parametrize(
    ("options", "virtual", "host", "version", "waits"),
    [
        pytest.param({}, ["v1"], ["v1"], "v1", "", id="same version"),
        pytest.param({}, ["v1", "v1beta1"], ["v1", "v1beta1"], "v1", "", id="preferred version"),
        pytest.param({}, ["v1beta1"], ["v1", "v1beta1"], "v1beta1", "", id="version that both serve"),
        pytest.param({"version": "v1beta1"}, ["v1", "v1beta1"], ["v1", "v1beta1"], "v1beta1", "", id="version option"),
        pytest.param({}, ["v1"], [], "", f"the host cluster does not serve {NAME} yet", id="host lacks it"),
        pytest.param({}, [], ["v1"], "", f"the virtual cluster does not serve {NAME} yet", id="virtual side lacks it"),
        pytest.param(
            {}, ["v1"], ["v1beta1"], "", f"no version of {NAME} that both sides serve", id="no version of both"
        ),
        pytest.param({"version": "v2"}, ["v1"], ["v1"], "", "in version v2", id="version that is not served"),
        pytest.param({"scope": "Cluster"}, ["v1"], ["v1"], "", "scope is Cluster, but", id="another scope"),
    ],
)
def test_custom_entry_becomes_a_syncer_or_says_why_not(
    options: Mapping[str, Any], virtual: list[str], host: list[str], version: str, waits: str
) -> None:
    async def scenario(bench: Bench) -> None:
        for side, versions in ((VIRTUAL, virtual), (HOST, host)):
            if versions:
                made = [crd_version(one, storage=one == versions[0]) for one in versions]
                bench.servers[side].put(crd(NAME, made))
        await bench.discover()
        able = bench.roster.able()
        assert [syncer.resource.version for syncer, _ in able.values()] == ([version] if version else [])
        assert list(bench.waiting()) == ([NAME] if waits else [])
        assert waits in bench.waiting().get(NAME, "")

    play(scenario, entries=[custom(**options)])


def test_syncers_of_an_entry_have_its_options_and_wait_each_for_itself() -> None:
    entry = Late([Widgets(), Gadgets()])

    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        await bench.look()
        assert {name: each.config for name, each in bench.pair.controllers.items()} == {"widgets": entry.config}
        assert bench.waiting() == {"gadgets": not_served(HG, VG)}

    play(scenario, entries=[entry])


# -- joining -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", [pytest.param((VW, HW), id="virtual side first"), pytest.param((HW, VW), id="host first")]
)
def test_syncer_joins_when_its_resource_appears_on_both_sides(order: Sequence[tuple[Side, Resource]]) -> None:
    first, second = order

    async def scenario(bench: Bench) -> None:
        async with bench.running():
            assert (bench.controllers(), await bench.look()) == (["configmaps"], False)
            bench.define(first)
            assert (await bench.look(), bench.controllers()) == (False, ["configmaps"])
            assert bench.waiting() == {"widgets": not_served(second)}
            bench.define(second)
            assert (await bench.look(), bench.controllers()) == (True, ["configmaps", "widgets"])
            assert bench.waiting() == {}
            assert not bench.pair.controllers["widgets"].ready, "its stores are empty"
            bench.servers[VIRTUAL].put(build(WIDGETS, "w"))
            await asyncio.sleep(SOON)
            assert bench.pair.controllers["widgets"].ready
            assert "widgets" in bench.queue.taken()
            assert (await bench.look(), bench.gone) == (False, [])

    play(scenario, Widgets(), AllConfigMaps())


def test_custom_entry_joins_in_the_version_that_both_sides_come_to_prefer() -> None:
    async def scenario(bench: Bench) -> None:
        for side in Side:
            bench.servers[side].put(crd(NAME, [crd_version("v1beta1", storage=True)]))
        async with bench.running():
            assert bench.reflected() == {(VIRTUAL, OLD), (HOST, OLD)}
            bench.servers[VIRTUAL].put(crd(NAME, [crd_version("v1"), crd_version("v1beta1", storage=True)]))
            assert (await bench.look(), bench.gone) == (False, [])
            bench.servers[HOST].put(crd(NAME, [crd_version("v1"), crd_version("v1beta1", storage=True)]))
            assert await bench.look()
            assert (bench.gone, bench.controllers()) == ([NAME], [NAME])
            assert bench.pair.controllers[NAME].syncer.resource.version == "v1"
            assert bench.reflected() == {VW, HW}

    play(scenario, entries=[custom()])


# -- leaving -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [pytest.param(side, id=side.value) for side in Side])
@pytest.mark.parametrize(
    ("discovered", "watch", "leaves"),
    [
        pytest.param(True, 200, False, id="both have it"),
        pytest.param(False, 200, False, id="discovery lacks it"),
        pytest.param(False, 403, False, id="discovery lacks it, watch is forbidden"),
        pytest.param(False, 500, False, id="discovery lacks it, watch fails"),
        pytest.param(True, 404, False, id="watch lacks it"),
        pytest.param(False, 404, True, id="both lack it"),
    ],
)
def test_syncer_leaves_when_discovery_and_watch_lack_its_resource(
    side: Side, discovered: bool, watch: int, leaves: bool
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        async with bench.running():
            bench.transports[side].hides = not discovered
            if watch != 200:
                bench.refuse(side, watch)
            await asyncio.sleep(SOON)
            for _ in range(3):
                changed = await bench.look()
                assert ("widgets" in bench.controllers()) is not leaves
                assert bench.waiting() == ({"widgets": not_served((side, WIDGETS))} if leaves else {})
                assert bench.gone == (["widgets"] if leaves else [])
                await asyncio.sleep(SOON)
            assert not changed, "it leaves only once"

    play(scenario, Widgets())


def test_syncer_stays_when_only_its_optional_source_is_gone() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW, HG)
        async with bench.running():
            bench.refuse(HOST, 404, GADGETS)
            bench.transports[HOST].hides = True
            await asyncio.sleep(SOON)
            assert (await bench.look(), bench.controllers(), bench.gone) == (False, ["widgets"], [])

    play(scenario, WidgetsPerhapsWithGadgets(), enabled=["gadgets"])


def test_syncer_leaves_when_a_source_is_gone() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW, HG)
        async with bench.running():
            bench.undefine(HOST, GADGETS)
            await asyncio.sleep(SOON)
            assert (await bench.look(), bench.controllers(), bench.gone) == (True, [], ["widgets"])

    play(scenario, WidgetsWithGadgets())


def test_definition_that_goes_takes_its_syncer_along_and_brings_it_back() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        async with bench.running():
            for turn in (1, 2):
                bench.undefine(HOST)
                assert (await bench.look(), bench.controllers()) == (False, ["widgets"]), "the watch hasn't said so"
                await asyncio.sleep(SOON)
                assert (await bench.look(), bench.controllers()) == (True, [])
                assert bench.gone == ["widgets"] * turn
                assert bench.waiting() == {"widgets": not_served(HW)}
                bench.define(HW)
                assert (await bench.look(), bench.controllers()) == (True, ["widgets"])
                bench.servers[VIRTUAL].put(build(WIDGETS, f"w{turn}"))
                bench.queue.taken()
                await asyncio.sleep(SOON)
                assert bench.pair.controllers["widgets"].ready
                assert "widgets" in bench.queue.taken()

    play(scenario, Widgets())


# -- reflectors ----------------------------------------------------------------------------------------------------


def test_reflectors_wait_for_the_start_and_end_with_the_stop() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        await bench.look()
        await asyncio.sleep(SOON)
        assert (bench.reflected(), bench.asked(VIRTUAL), bench.asked(HOST)) == ({VW, HW}, [], [])
        async with bench.running():
            assert (bench.asked(VIRTUAL), bench.asked(HOST)) == (["list", "watch"], ["list", "watch"])
        bench.forget()
        await asyncio.sleep(1000)
        assert (bench.asked(VIRTUAL), bench.asked(HOST)) == ([], [])

    play(scenario, Widgets())


def test_reflectors_of_a_syncer_begin_and_end_with_it() -> None:
    async def scenario(bench: Bench) -> None:
        async with bench.running():
            assert bench.reflected() == set()
            bench.define(VW, HW)
            await bench.look()
            assert bench.reflected() == {VW, HW}
            await asyncio.sleep(SOON)
            assert (bench.asked(VIRTUAL), bench.asked(HOST)) == (["list", "watch"], ["list", "watch"])
            bench.undefine(HOST)
            await asyncio.sleep(SOON)
            await bench.look()
            assert bench.reflected() == set()
            await asyncio.sleep(SOON)
            bench.forget()
            await asyncio.sleep(1000)
            assert (bench.asked(VIRTUAL), bench.asked(HOST)) == ([], [])

    play(scenario, Widgets())


def test_reflector_of_a_shared_store_stays_until_its_last_owner_leaves() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW, VG, HG)
        async with bench.running():
            shared = bench.pair.reflectors[VIRTUAL, SECRETS]
            bench.undefine(HOST, GADGETS)
            await asyncio.sleep(SOON)
            await bench.look()
            assert bench.controllers() == ["widgets"]
            assert bench.reflected() == {VW, HW, (VIRTUAL, SECRETS)}
            assert bench.pair.reflectors[VIRTUAL, SECRETS] is shared
            bench.servers[VIRTUAL].put(secret("db"))
            await asyncio.sleep(SOON)
            assert list(map(str, bench.pair.informers.keys(VIRTUAL, SECRETS))) == ["shop/db"], "it still watches"
            assert bench.asked(VIRTUAL, SECRETS).count("list") == 1
            bench.undefine(HOST)
            await asyncio.sleep(SOON)
            await bench.look()
            assert (bench.controllers(), bench.reflected()) == ([], set())

    play(scenario, WidgetsWithSecrets(), GadgetsWithSecrets())


def test_store_is_filled_anew_when_it_must_hold_more() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        bench.servers[VIRTUAL].put(secret("for-widgets", metadata={"labels": {"for": "widgets"}}))
        bench.servers[VIRTUAL].put(secret("other"))
        async with bench.running():
            store = bench.pair.informers.store(VIRTUAL, SECRETS)
            before = bench.pair.reflectors[VIRTUAL, SECRETS]
            assert (before.selector, store.synced, len(store)) == ("for=widgets", True, 1)
            bench.define(VG, HG)
            await bench.look()
            after = bench.pair.reflectors[VIRTUAL, SECRETS]
            assert (after is before, after.selector, store.synced) == (False, "", False)
            assert not bench.pair.controllers["gadgets"].ready
            await asyncio.sleep(SOON)
            assert (store.synced, len(store), bench.pair.controllers["gadgets"].ready) == (True, 2, True)
            bench.undefine(HOST, GADGETS)
            await asyncio.sleep(SOON)
            await bench.look()
            assert bench.pair.reflectors[VIRTUAL, SECRETS].selector == "for=widgets"
            assert store.synced, "all that it must hold is there"

    play(scenario, WidgetsWithWidgetSecrets(), GadgetsWithSecrets())


def test_reflector_begins_only_when_the_one_before_it_has_ended() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        async with bench.running():
            bench.define(VG, HG)
            bench.transports[VIRTUAL].closing_seconds = 2.0
            bench.forget()
            await bench.look()
            await asyncio.sleep(1.0)
            assert bench.asked(VIRTUAL, SECRETS) == []
            await asyncio.sleep(2.0)
            assert bench.asked(VIRTUAL, SECRETS) == ["list", "watch"]

    play(scenario, WidgetsWithWidgetSecrets(), GadgetsWithSecrets())


def test_syncer_decides_anew_what_it_decided_without_a_store_that_grows() -> None:
    class MaybeSecrets(Widgets):
        reads = (Source(VIRTUAL, SECRETS, selector="for=widgets", optional_with="gadgets"),)

    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        async with bench.running():
            widgets, store = bench.pair.controllers["widgets"], bench.pair.informers.store(VIRTUAL, SECRETS)
            assert (widgets.ready, widgets.missed) == (True, set())
            bench.define(VG, HG)
            await bench.look()
            assert widgets.missed == {store}

    play(scenario, MaybeSecrets(), GadgetsWithSecrets())


def test_reflector_that_got_a_404_tries_again_at_once_after_a_discovery() -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        bench.servers[HOST].faults.add(Rule(resource="widgets", status=404, count=1))
        async with bench.running():
            assert not bench.pair.controllers["widgets"].ready, "it would wait for 15 s and more"
            bench.forget()
            assert not await bench.look()
            await asyncio.sleep(1)
            assert bench.asked(HOST) == ["list", "watch"]
            assert bench.pair.controllers["widgets"].ready

    play(scenario, Widgets())


# -- doubt ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "used"),
    [
        pytest.param(0.0, None, id="at once"),
        pytest.param(DOUBT_SECONDS - 1, None, id="shortly before"),
        pytest.param(DOUBT_SECONDS, False, id="afterwards"),
        pytest.param(DOUBT_SECONDS * 10, False, id="long after"),
    ],
)
@pytest.mark.parametrize(
    ("syncers", "entries", "served"),
    [
        pytest.param([Claims()], [], [], id="kind not served"),
        pytest.param([], [Late("waits", presumed=[Claims()])], [VW, HW], id="entry waits"),
    ],
)
def test_secret_counts_as_unused_only_after_the_seconds_of_doubt(
    syncers: list[Syncer],
    entries: list[Entry],
    served: list[tuple[Side, Resource]],
    seconds: float,
    used: bool | None,
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(*served)
        await bench.look()
        await asyncio.sleep(seconds)
        await bench.look()
        assert bench.pair.references.of(SECRETS, secret("db")) is used

    play(scenario, *syncers, UsedSecrets(), entries=entries)


def test_doubt_begins_again_when_a_syncer_has_left() -> None:
    async def scenario(bench: Bench) -> None:
        async with bench.running():
            await asyncio.sleep(DOUBT_SECONDS)
            await bench.look()
            assert bench.pair.references.doubted == frozenset()
            bench.define(VW, HW)
            await bench.look()
            assert bench.pair.references.doubted == frozenset()
            await asyncio.sleep(SOON)
            bench.undefine(HOST)
            await asyncio.sleep(SOON)
            await bench.look()
            assert bench.pair.references.doubted == {SECRETS, CONFIG_MAPS}

    play(scenario, Claims())


def test_doubt_ends_at_once_when_the_syncer_joins() -> None:
    async def scenario(bench: Bench) -> None:
        async with bench.running():
            assert bench.pair.references.doubted == {SECRETS, CONFIG_MAPS}
            bench.define(VW, HW)
            await bench.look()
            assert bench.pair.references.doubted == frozenset()
            assert bench.pair.references.of(SECRETS, secret("db")) is None, "its store isn't filled"
            await asyncio.sleep(SOON)
            assert bench.pair.references.of(SECRETS, secret("db")) is False

    play(scenario, Claims(), UsedSecrets())


def test_doubt_that_ends_requeues_the_objects_that_may_be_unused() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers[VIRTUAL].put(secret("db"))
        bench.servers[VIRTUAL].put(build(CONFIG_MAPS, "settings"))
        async with bench.running():
            assert bench.queue.taken() == {"secrets", "configmaps"}
            await bench.look()
            assert bench.queue.taken() == set()
            await asyncio.sleep(DOUBT_SECONDS)
            await bench.look()
            assert bench.queue.taken() == {"secrets"}, "ConfigMaps are copied whether or not they are used"
            await bench.look()
            assert bench.queue.taken() == set(), "only once"

    play(scenario, Claims(), UsedSecrets(), AllConfigMaps())


# -- init ----------------------------------------------------------------------------------------------------------

NOT_YET = "its init raised ConnectionError: not yet"


def test_init_is_called_before_its_syncer_joins_and_again_only_when_it_joins_again() -> None:
    prepared = Prepared()

    async def scenario(bench: Bench) -> None:
        async with bench.running():
            assert prepared.calls == [], "its resource isn't served"
            bench.define(VW, HW)
            await bench.look()
            await bench.look()
            assert (prepared.calls, bench.controllers()) == (["widgets"], ["widgets"])
            await asyncio.sleep(SOON)
            bench.undefine(HOST)
            await asyncio.sleep(SOON)
            await bench.look()
            bench.define(HW)
            await bench.look()
            assert (prepared.calls, bench.controllers()) == (["widgets"] * 2, ["widgets"])

    play(scenario, prepared)


def test_init_that_raises_lets_its_syncer_wait_and_the_others_work() -> None:
    prepared = Prepared(ConnectionError("not yet"), ConnectionError("not yet"))

    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        async with bench.running():
            assert (bench.controllers(), bench.waiting()) == (["configmaps"], {"widgets": NOT_YET})
            assert bench.reflected() == {(HOST, CONFIG_MAPS)}
            assert (await bench.look(), bench.waiting()) == (False, {"widgets": NOT_YET})
            assert (await bench.look(), bench.waiting()) == (True, {})
            assert (bench.controllers(), bench.gone) == (["configmaps", "widgets"], [])
            assert len(prepared.calls) == 3

    play(scenario, prepared, AllConfigMaps())


def test_init_that_raises_leaves_in_doubt_what_its_syncer_refers_to() -> None:
    class PreparedClaims(Prepared, Claims):
        pass

    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        await bench.look()
        assert bench.pair.references.doubted == {SECRETS, CONFIG_MAPS}

    play(scenario, PreparedClaims(ConnectionError("not yet")))


@pytest.mark.parametrize(
    ("failures", "logged"),
    [
        pytest.param(["a"], 1, id="once"),
        pytest.param(["a", "a", "a"], 1, id="the same again and again"),
        pytest.param(["a", "b", "b"], 2, id="another"),
    ],
)
def test_init_that_raises_is_logged_once_for_each_reason(
    failures: list[str], logged: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.define(VW, HW)
        for _ in failures:
            await bench.look()
        assert capsys.readouterr().err.count("a syncer can't start") == logged

    play(scenario, Prepared(*map(ConnectionError, failures)))
