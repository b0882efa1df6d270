"""Syncers join and leave a running pair with what the clusters serve, and so do their reflectors."""

import asyncio
from collections.abc import Sequence

import pytest
from engine_fakes import WIDGETS, Widgets
from lifecycle_scene import (
    GADGETS,
    HG,
    HOST,
    HW,
    NAME,
    OLD,
    SOON,
    VG,
    VIRTUAL,
    VW,
    AllConfigMaps,
    Bench,
    Claims,
    GadgetsWithSecrets,
    Late,
    Prepared,
    UsedSecrets,
    WidgetsPerhapsWithGadgets,
    WidgetsWithGadgets,
    WidgetsWithSecrets,
    WidgetsWithWidgetSecrets,
    custom,
    not_served,
)

from kube_envtest import Rule
from syncer.api import (
    Conflict,
    Index,
    Indexes,
    Resource,
    Side,
    Source,
    Syncer,
)
from syncer.cache import newcomers
from syncer.cache.newcomers import MANY
from syncer.engine.controllers.lifecycle import DOUBT_SECONDS, LateSyncers
from syncer.resources.kinds import CONFIG_MAPS, SECRETS
from syncer.testing.objects import build, crd, crd_version, secret

# -- joining -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", [pytest.param((VW, HW), id="virtual side first"), pytest.param((HW, VW), id="host first")]
)
async def test_syncer_joins_when_its_resource_appears_on_both_sides(order: Sequence[tuple[Side, Resource]]) -> None:
    first, second = order
    bench = Bench(Widgets(), AllConfigMaps())
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


async def test_custom_entry_joins_in_the_version_that_both_sides_come_to_prefer() -> None:
    bench = Bench(entries=[custom()])
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
async def test_syncer_leaves_when_discovery_and_watch_lack_its_resource(
    side: Side, discovered: bool, watch: int, leaves: bool
) -> None:
    bench = Bench(Widgets())
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


async def test_syncer_stays_when_only_its_optional_source_is_gone() -> None:
    bench = Bench(WidgetsPerhapsWithGadgets(), enabled=["gadgets"])
    bench.define(VW, HW, HG)
    async with bench.running():
        bench.refuse(HOST, 404, GADGETS)
        bench.transports[HOST].hides = True
        await asyncio.sleep(SOON)
        assert (await bench.look(), bench.controllers(), bench.gone) == (False, ["widgets"], [])


async def test_syncer_leaves_when_a_source_is_gone() -> None:
    bench = Bench(WidgetsWithGadgets())
    bench.define(VW, HW, HG)
    async with bench.running():
        bench.undefine(HOST, GADGETS)
        await asyncio.sleep(SOON)
        assert (await bench.look(), bench.controllers(), bench.gone) == (True, [], ["widgets"])


async def test_definition_that_goes_takes_its_syncer_along_and_brings_it_back() -> None:
    bench = Bench(Widgets())
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


# -- reflectors ----------------------------------------------------------------------------------------------------


async def test_reflectors_wait_for_the_start_and_end_with_the_stop() -> None:
    bench = Bench(Widgets())
    bench.define(VW, HW)
    await bench.look()
    await asyncio.sleep(SOON)
    assert (bench.reflected(), bench.asked(VIRTUAL), bench.asked(HOST)) == ({VW, HW}, [], [])
    async with bench.running():
        assert (bench.asked(VIRTUAL), bench.asked(HOST)) == (["list", "watch"], ["list", "watch"])
    bench.forget()
    await asyncio.sleep(1000)
    assert (bench.asked(VIRTUAL), bench.asked(HOST)) == ([], [])


async def test_reflectors_of_a_syncer_begin_and_end_with_it() -> None:
    bench = Bench(Widgets())
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


async def test_reflector_of_a_shared_store_stays_until_its_last_owner_leaves() -> None:
    bench = Bench(WidgetsWithSecrets(), GadgetsWithSecrets())
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


async def test_index_of_a_syncer_that_joins_has_caught_up_with_a_full_store_before_the_syncer_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(newcomers, "STEP_BYTES", 1000)

    class Indexed(GadgetsWithSecrets, Indexes):
        def indexes(self) -> list[Index]:
            return [Index(Source(VIRTUAL, SECRETS), "data", lambda obj: [obj["metadata"]["name"]])]

    bench = Bench(WidgetsWithSecrets(), Indexed())
    bench.define(VW, HW)
    for number in range(MANY):
        bench.servers[VIRTUAL].put(secret(f"s{number}"))
    async with bench.running():
        store = bench.pair.informers.store(VIRTUAL, SECRETS)
        bench.define(VG, HG)
        joining = asyncio.create_task(bench.look())
        while "gadgets" not in bench.pair.controllers:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
        assert store in bench.pair.lacks(bench.pair.controllers["gadgets"])
        await joining
        assert store not in bench.pair.lacks(bench.pair.controllers["gadgets"])
        assert len(store.indexer.values("data")) == MANY


async def test_store_is_filled_again_when_it_must_hold_more() -> None:
    bench = Bench(WidgetsWithWidgetSecrets(), GadgetsWithSecrets())
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


async def test_reflector_begins_only_when_the_one_before_it_has_ended() -> None:
    bench = Bench(WidgetsWithWidgetSecrets(), GadgetsWithSecrets())
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


async def test_syncer_repeats_decisions_once_a_missing_store_is_there() -> None:
    class MaybeSecrets(Widgets):
        reads = (Source(VIRTUAL, SECRETS, selector="for=widgets", optional_with="gadgets"),)

    bench = Bench(MaybeSecrets(), GadgetsWithSecrets())
    bench.define(VW, HW)
    async with bench.running():
        widgets, store = bench.pair.controllers["widgets"], bench.pair.informers.store(VIRTUAL, SECRETS)
        assert (widgets.ready, widgets.missed) == (True, set())
        bench.define(VG, HG)
        await bench.look()
        assert widgets.missed == {store}


async def test_reflector_that_got_a_404_tries_again_at_once_after_a_discovery() -> None:
    bench = Bench(Widgets())
    bench.define(VW, HW)
    bench.servers[HOST].faults.add(Rule(resource="widgets", status=404, count=1))
    async with bench.running():
        assert not bench.pair.controllers["widgets"].ready, "it would wait for 15 s and more"
        bench.forget()
        assert not await bench.look()
        await asyncio.sleep(1)
        assert bench.asked(HOST) == ["list", "watch"]
        assert bench.pair.controllers["widgets"].ready


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
async def test_secret_counts_as_unused_only_after_the_seconds_of_doubt(
    syncers: list[Syncer],
    entries: list[LateSyncers],
    served: list[tuple[Side, Resource]],
    seconds: float,
    used: bool | None,
) -> None:
    bench = Bench(*syncers, UsedSecrets(), entries=entries)
    bench.define(*served)
    await bench.look()
    await asyncio.sleep(seconds)
    await bench.look()
    assert bench.pair.references.of(SECRETS, secret("db")) is used


async def test_doubt_begins_again_when_a_syncer_has_left() -> None:
    bench = Bench(Claims())
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


async def test_doubt_ends_at_once_when_the_syncer_joins() -> None:
    bench = Bench(Claims(), UsedSecrets())
    async with bench.running():
        assert bench.pair.references.doubted == {SECRETS, CONFIG_MAPS}
        bench.define(VW, HW)
        await bench.look()
        assert bench.pair.references.doubted == frozenset()
        assert bench.pair.references.of(SECRETS, secret("db")) is None, "its store isn't filled"
        await asyncio.sleep(SOON)
        assert bench.pair.references.of(SECRETS, secret("db")) is False


async def test_doubt_that_ends_requeues_the_objects_that_may_be_unused() -> None:
    bench = Bench(Claims(), UsedSecrets(), AllConfigMaps())
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


# -- init ----------------------------------------------------------------------------------------------------------

NOT_YET = "its init raised ConnectionError: not yet"


async def test_init_is_called_before_its_syncer_joins_and_again_only_when_it_joins_again() -> None:
    prepared = Prepared()
    bench = Bench(prepared)
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


async def test_init_that_raises_lets_its_syncer_wait_and_the_others_work() -> None:
    prepared = Prepared(ConnectionError("not yet"), ConnectionError("not yet"))
    bench = Bench(prepared, AllConfigMaps())
    bench.define(VW, HW)
    async with bench.running():
        assert (bench.controllers(), bench.waiting()) == (["configmaps"], {"widgets": NOT_YET})
        assert bench.reflected() == {(HOST, CONFIG_MAPS)}
        assert (await bench.look(), bench.waiting()) == (False, {"widgets": NOT_YET})
        assert (await bench.look(), bench.waiting()) == (True, {})
        assert (bench.controllers(), bench.gone) == (["configmaps", "widgets"], [])
        assert len(prepared.calls) == 3


async def test_raising_init_leaves_references_of_its_syncer_in_doubt() -> None:
    class PreparedClaims(Prepared, Claims):
        pass

    bench = Bench(PreparedClaims(ConnectionError("not yet")))
    bench.define(VW, HW)
    await bench.look()
    assert bench.pair.references.doubted == {SECRETS, CONFIG_MAPS}


@pytest.mark.parametrize(
    ("failures", "logged"),
    [
        pytest.param(["a"], 1, id="once"),
        pytest.param(["a", "a", "a"], 1, id="the same again and again"),
        pytest.param(["a", "b", "b"], 2, id="another"),
    ],
)
async def test_init_that_raises_is_logged_once_for_each_reason(
    failures: list[str], logged: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(Prepared(*map(ConnectionError, failures)))
    bench.define(VW, HW)
    for _ in failures:
        await bench.look()
    assert capsys.readouterr().err.count("a syncer can't start") == logged


async def test_init_that_a_cluster_refuses_is_a_warning_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(Prepared(Conflict("the object has changed", side=Side.HOST)))
    bench.define(VW, HW)
    await bench.look()
    logged = capsys.readouterr().err
    assert "warning" in logged
    assert "a syncer can't start yet" in logged
    assert "Traceback" not in logged
