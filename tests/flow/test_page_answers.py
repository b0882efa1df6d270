"""The page's answers: the same as those of commands, in pages, and in steps of the event loop."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from harness import CLUSTER, NAMESPACE, Daemon, Two, built_in, host_path, play
from patrol_scene import RED, in_step, scanned
from shop_scene import edit_by, many, settled

from syncer.api import Key, SyncRequest
from syncer.api.reasons import INVALID, UNUSED, RequestState
from syncer.daemon.pages import control as control_api
from syncer.daemon.pages import listing, page_handlers
from syncer.daemon.pages.explain import status_of
from syncer.daemon.pages.history import History
from syncer.daemon.pages.page import QUESTIONS, page_html
from syncer.engine.controllers.pair import Condition
from syncer.observe.control import Control
from syncer.testing.objects import configmap


def control_of(daemon: Daemon) -> Control:
    """Return what answers commands and the page."""
    process = daemon.process
    control = Control()
    control_api.add(control, process)
    page_handlers.add(control, process, History(process.metrics, lambda: list(process.pairs)))
    return control


async def answer(daemon: Daemon, question: str, **given: str) -> Any:
    """Return the answer to a question of the page."""
    status, found = await control_of(daemon).answer("GET", QUESTIONS[f"/api/{question}"], given)
    assert status == 200, found
    return found


async def pages(daemon: Daemon, question: str, **given: str) -> list[list[dict[str, Any]]]:
    """Return the items of all pages."""
    found: list[list[dict[str, Any]]] = []
    begin = ""
    while True:
        part = await answer(daemon, question, **given, begin=begin)
        found.append(part["items"])
        begin = part["next"]
        if not begin:
            return found


async def test_each_question_of_the_page_has_a_handler() -> None:
    async with settled(Two().daemon(built_in("configmaps"))) as daemon:
        for question in QUESTIONS:
            given = {"kind": "configmaps", "key": "shop/x"} if question.endswith("explain") else {}
            await answer(daemon, question.removeprefix("/api/"), **given)


async def test_search_answers_as_the_command(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        for key in (f"{NAMESPACE}/x", host_path("x"), f"{NAMESPACE}/nothing"):
            given = {"cluster": CLUSTER, "kind": "configmap", "key": key}
            status, found = await control_of(daemon).answer("GET", "/explain", given)
            assert (int(status), await answer(daemon, "explain", **given)) == (200, found)


async def test_page_shows_all_that_an_explanation_has(two: Two) -> None:
    two.virtual.put(configmap("x"))
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        [found] = await answer(daemon, "explain", kind="configmap", key=f"{NAMESPACE}/x")
        script = page_html()
        assert [name for name in found if f"one.{name}" not in script] == []


async def test_kinds_have_the_counts_of_the_command(two: Two) -> None:
    many(two, 3)
    two.host.put(configmap(host_path("c0").partition("/")[2], namespace="vc-ns"))
    async with settled(two.daemon(built_in("configmaps", "secrets"))) as daemon:
        _, status = await control_of(daemon).answer("GET", "/status", {})
        kinds = await answer(daemon, "kinds", cluster=CLUSTER)
        assert [{name: row[name] for name in each} for each, row in zip(kinds, status, strict=True)] == kinds
        [maps] = [each for each in kinds if each["syncer"] == "configmaps"]
        assert (maps["parked"], maps["state"]) == (1, "ready")
        [parked] = (await answer(daemon, "list", states="parked"))["items"]
        assert (parked["code"], parked["key"]) == ("NameCollision", f"{NAMESPACE}/c0")


async def test_virtual_clusters_come_in_pages() -> None:
    async with settled(Two().daemon(built_in("configmaps"))) as daemon:
        process = daemon.process
        for number in range(7):
            process.unserved.failed(f"absent-{number}", Condition("it is away", "away"))
        _, whole = await control_of(daemon).answer("GET", "/clusters", {})
        found = await pages(daemon, "clusters", limit="3")
        assert [len(each) for each in found] == [3, 3, 2]
        names = [each["cluster"] for each in itertools.chain(*found)]
        assert names == [each["cluster"] for each in whole] == sorted(names)


async def test_question_about_one_of_several_virtual_clusters_needs_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async with settled(Two().daemon(built_in("configmaps"))) as daemon:
        pair = daemon.process.pairs[CLUSTER]
        chosen = control_api.CommandSelection([pair, pair], frozenset())
        monkeypatch.setattr(page_handlers, "selection", lambda process, cluster: chosen)
        status, found = await control_of(daemon).answer("GET", "/page/kinds", {})
        assert (status, found) == (409, {"error": "this daemon leads 2 virtual clusters: name one"})


@pytest.mark.parametrize(
    ("question", "given", "error"),
    [
        ("list", {"limit": "0"}, "limit: '0' is no number from 1 to 500"),
        ("list", {"limit": "x"}, "limit: 'x' is no number"),
        ("list", {"limit": "²"}, "limit: '²' is no number"),
        ("drift", {"begin": "-1"}, "begin: '-1' is no number of a row"),
        ("drift", {"begin": "9" * 5000}, "begin:"),
        ("list", {"states": "odd"}, "there is no state 'odd'"),
    ],
)
async def test_bad_question_is_refused(question: str, given: dict[str, str], error: str) -> None:
    async with settled(Two().daemon(built_in("configmaps"))) as daemon:
        status, found = await control_of(daemon).answer("GET", QUESTIONS[f"/api/{question}"], given)
        assert int(status) == 409
        assert found["error"].startswith(error)


async def test_page_of_a_list_is_as_small_as_asked_and_never_larger_than_the_limit(two: Two) -> None:
    many(two, 12)
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        found = await pages(daemon, "list", states="in_step", limit="5")
        assert {len(each) for each in found[:-1]} == {5}
        names = [each["key"] for each in itertools.chain(*found)]
        assert len({*names} & {f"{NAMESPACE}/c{number}" for number in range(12)}) == 12
        assert listing.limit_of({"limit": "99999999"}) == listing.PAGE


async def test_drift_names_the_fields_and_who_wrote_them_and_no_value(two: Two) -> None:
    two.virtual.put(configmap("x", {"color": "blue"}))
    two.virtual.put(configmap("y", {"color": "blue"}))
    async with in_step(two, drift={"field": "report"}) as daemon:
        for name in ("x", "y"):
            namespace, _, copy = host_path(name).partition("/")
            await edit_by(two.host, f"/api/v1/namespaces/{namespace}/configmaps/{copy}", {"data": RED})
        await scanned(daemon)
        [[first], [second]] = await pages(daemon, "drift", limit="1")
        assert [each["of"] for each in (first, second)] == [f"{NAMESPACE}/x", f"{NAMESPACE}/y"]
        assert (first["class"], first["outcome"]) == ("field", "reported")
        [field] = first["fields"]
        assert (field["path"], bool(field["at"])) == ("data.color", True)
        assert field["changedBy"] == "kubectl-edit"
        assert "red" not in json.dumps([first, second])
        assert "blue" not in json.dumps([first, second])


# -- what a step does ------------------------------------------------------------------------------


@pytest.mark.parametrize("states", ["in_step", "parked", "pending", "skipped,parked", ""])
def test_no_step_of_a_list_looks_at_more_than_some_objects(monkeypatch: pytest.MonkeyPatch, states: str) -> None:
    monkeypatch.setattr(listing, "SORTED", 20)
    monkeypatch.setattr(listing, "STEP", 5)
    looked: list[int] = [0]
    shown: list[int] = [0]
    sleep = asyncio.sleep
    looks = listing._looks

    async def next_step(seconds: float) -> None:
        looked.append(0)
        shown.append(0)
        await sleep(seconds)

    def counted_looks(*given: Any) -> Iterator[SyncRequest | None]:
        for each in looks(*given):
            looked[-1] += 1
            yield each

    def counted_status(*given: Any) -> Any:
        shown[-1] += 1
        return status_of(*given)

    async def scenario() -> None:
        two = Two()
        many(two, 100)
        async with settled(two.daemon(built_in("configmaps"))) as daemon:
            statuses = daemon.process.statuses
            for number in range(100):
                request = SyncRequest(CLUSTER, "configmaps", Key(NAMESPACE, f"gone-{number}"))
                statuses.note(request, RequestState.PARKED, INVALID("no"))
                request = SyncRequest(CLUSTER, "configmaps", Key(NAMESPACE, f"left-{number}"))
                statuses.note(request, RequestState.SKIPPED, UNUSED("ConfigMap", "all"))
            with monkeypatch.context() as patched:
                patched.setattr(asyncio, "sleep", next_step)
                patched.setattr(listing, "_looks", counted_looks)
                patched.setattr("syncer.daemon.pages.listing.status_of", counted_status)
                await answer(daemon, "list", states=states)

    play(scenario)
    assert sum(looked) >= 200, "each request that isn't in step was looked at"
    assert max(looked) <= 20
    assert max(shown) <= 5


async def test_list_of_what_waits_looks_at_no_object_in_step(two: Two) -> None:
    """There may be 100,000 of them, and a page asks every minute."""
    many(two, 30)
    async with settled(two.daemon(built_in("configmaps"))) as daemon:
        process = daemon.process
        controller = process.pairs[CLUSTER].controllers["configmaps"]
        process.queue.pause(CLUSTER, "so that no worker takes it")
        process.queue.add(controller.request(Key(NAMESPACE, "c7")))
        wanted = listing.ObjectFilter(("pending", "parked"))
        looks = [each for each in listing._looks(process, controller, wanted) if each is not None]
        assert [str(each.key) for each in looks] == [f"{NAMESPACE}/c7"]
        [found] = (await answer(daemon, "list", states="pending"))["items"]
        assert (found["key"], found["code"]) == (f"{NAMESPACE}/c7", "Queued")
