"""The roster says which syncers can work, and why the others wait."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from engine_fakes import WIDGETS, Widgets
from lifecycle_scene import (
    HG,
    HOST,
    HW,
    NAME,
    OLD,
    VG,
    VIRTUAL,
    VW,
    AllConfigMaps,
    Bench,
    Claims,
    Gadgets,
    Late,
    WidgetsPerhapsWithGadgets,
    WidgetsThatWatchGadgets,
    WidgetsWithGadgets,
    custom,
    not_served,
)

from syncer.api import (
    Refers,
    Resource,
    Side,
    Syncer,
)
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES, SECRETS
from syncer.testing.objects import crd, crd_version

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
async def test_syncer_is_able_when_both_sides_serve_its_resources(
    syncer: Syncer, served: Sequence[tuple[Side, Resource]], waits: str
) -> None:
    bench = Bench(syncer, enabled=["gadgets"])
    bench.define(*served)
    await bench.discover()
    assert bench.able() == ([] if waits else [syncer.name])
    assert bench.waiting() == ({syncer.name: waits} if waits else {})


async def test_watch_for_a_disabled_syncer_does_not_count() -> None:
    bench = Bench(WidgetsThatWatchGadgets())
    bench.define(VW, HW)
    await bench.discover()
    assert (bench.able(), bench.waiting()) == (["widgets"], {})


async def test_reason_of_a_syncer_is_forgotten_when_it_is_able() -> None:
    bench = Bench(Widgets(), AllConfigMaps())
    await bench.discover()
    assert bench.able() == ["configmaps"]
    assert list(bench.waiting()) == ["widgets"]
    bench.define(VW, HW)
    await bench.discover()
    assert (bench.able(), bench.waiting()) == (["configmaps", "widgets"], {})


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
async def test_roster_knows_possible_references_of_waiting_syncers(
    waiting: list[str], resources: set[Resource]
) -> None:
    class Homes(Gadgets, Refers):
        refers_to = (NAMESPACES,)

    bench = Bench(Claims(), AllConfigMaps(), entries=[Late("waits", presumed=[Homes()])])
    assert bench.roster.referred_to(waiting) == resources


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
async def test_entry_finds_resources_by_name(side: Side, name: str, found: Resource | None) -> None:
    entry = Late("waits", asks=[(side, name)])
    bench = Bench(entries=[entry])
    versions = [crd_version("v1", storage=True), crd_version("v1beta1")]
    bench.servers[HOST].put(crd(str(WIDGETS), versions, spec={"names": {"shortNames": ["gadgets"]}}))
    await bench.discover()
    bench.roster.able()
    assert entry.found == [found]


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
async def test_custom_entry_becomes_a_syncer_or_says_why_not(
    options: Mapping[str, Any], virtual: list[str], host: list[str], version: str, waits: str
) -> None:
    bench = Bench(entries=[custom(**options)])
    for side, versions in ((VIRTUAL, virtual), (HOST, host)):
        if versions:
            made = [crd_version(one, storage=one == versions[0]) for one in versions]
            bench.servers[side].put(crd(NAME, made))
    await bench.discover()
    able = bench.roster.able()
    assert [syncer.resource.version for syncer, _ in able.values()] == ([version] if version else [])
    assert list(bench.waiting()) == ([NAME] if waits else [])
    assert waits in bench.waiting().get(NAME, "")


async def test_syncers_of_an_entry_have_its_options_and_wait_each_for_itself() -> None:
    entry = Late([Widgets(), Gadgets()])
    bench = Bench(entries=[entry])
    bench.define(VW, HW)
    await bench.look()
    assert {name: each.config for name, each in bench.pair.controllers.items()} == {"widgets": entry.config}
    assert bench.waiting() == {"gadgets": not_served(HG, VG)}
