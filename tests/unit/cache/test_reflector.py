"""The reflector's state machine: its next request, and when, whatever an API server answers."""

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from informer_scene import A, B, obj
from reflector_scene import (
    LIFE,
    LOST,
    Answer,
    Later,
    Opening,
    Scene,
    Step,
    bookmark,
    line,
    page,
    play,
    refusal,
    running,
    status,
)

from syncer.api import Key, Obj
from syncer.api.errors import Forbidden, SyncerError, Unreachable
from syncer.cache.reflector import (
    FIRST_WAIT,
    LAST_WAIT,
    LATE_SECONDS,
    SILENCE_SECONDS,
    SLOW_WAIT,
    ReflectorState,
)
from syncer.clusters import codec
from syncer.clusters.transport import ConnectionFailed
from syncer.steps import STEP_BYTES

Asked = list[tuple[float, str]]

EXPIRED = refusal(410, "Expired")
GONE_IN_STREAM = [line("ERROR", status(410, "Expired"))]
FAILED_IN_STREAM = [line("ERROR", status(500, "InternalError"))]
CUT = ConnectionFailed("cut")

#: After one failure, or one watch that brought nothing; after two; after three.
ONE, TWO, THREE = FIRST_WAIT * 2, FIRST_WAIT * 4, FIRST_WAIT * 8


@pytest.mark.parametrize(
    ("lists", "watches", "asked"),
    [
        pytest.param(
            [page("5", obj(1))],
            [[LIFE]],
            [(0, "list"), (0, "watch 5"), (LIFE + FIRST_WAIT, "watch 5")],
            id="watch that ends in its time goes on from the list",
        ),
        pytest.param(
            [page("5", obj(1))],
            [[1.0, [line("MODIFIED", obj(7))], LIFE - 1]],
            [(0, "list"), (0, "watch 5"), (LIFE + FIRST_WAIT, "watch 7")],
            id="watch goes on from the latest event",
        ),
        pytest.param(
            [page("5", obj(1))],
            [[1.0, [line("MODIFIED", obj(7)), bookmark("9")], LIFE - 1]],
            [(0, "list"), (0, "watch 5"), (LIFE + FIRST_WAIT, "watch 9")],
            id="watch goes on from the latest bookmark",
        ),
        pytest.param(
            [page("5", obj(1), token="more"), page("5", obj(2, B))],
            [],
            [(0, "list"), (0, "next page"), (0, "watch 5")],
            id="list comes in pages",
        ),
        pytest.param(
            [page("5", obj(1), token="more"), EXPIRED, page("8", obj(1))],
            [],
            [(0, "list"), (0, "next page"), (ONE, "list"), (ONE, "watch 8")],
            id="list whose later pages have expired begins again",
        ),
        pytest.param(
            [page("5", obj(1)), page("9", obj(1))],
            [EXPIRED],
            [(0, "list"), (0, "watch 5"), (ONE, "list"), (ONE, "watch 9")],
            id="watch that is refused with 410 is followed by a list",
        ),
        pytest.param(
            [page("5", obj(1)), page("9", obj(1))],
            [[3.0, GONE_IN_STREAM]],
            [(0, "list"), (0, "watch 5"), (3 + ONE, "list"), (3 + ONE, "watch 9")],
            id="watch that says 410 in its stream is followed by a list",
        ),
        pytest.param(
            [page("5", obj(1)), page("9")],
            [[3.0, FAILED_IN_STREAM]],
            [(0, "list"), (0, "watch 5"), (3 + FIRST_WAIT, "check"), (3 + FIRST_WAIT, "watch 5")],
            id="watch with any other error goes on where it was",
        ),
        pytest.param(
            [page("5", obj(1)), page("9")],
            [[3.0, [line("MODIFIED", obj(7))], CUT]],
            [(0, "list"), (0, "watch 5"), (3 + FIRST_WAIT, "check"), (3 + FIRST_WAIT, "watch 7")],
            id="watch that is cut goes on where it was",
        ),
        pytest.param(
            [page("5", obj(1)), page("9")],
            [[3.0]],
            [(0, "list"), (0, "watch 5"), (3 + FIRST_WAIT, "check"), (3 + FIRST_WAIT, "watch 5")],
            id="watch that ends before its time goes on where it was",
        ),
        pytest.param(
            [page("5", obj(1)), page("9")],
            [],
            [
                (0, "list"),
                (0, "watch 5"),
                (SILENCE_SECONDS + FIRST_WAIT, "check"),
                (SILENCE_SECONDS + FIRST_WAIT, "watch 5"),
            ],
            id="watch without a byte is given up",
        ),
        pytest.param(
            [page("5", obj(1)), page("9")],
            [[10_000.0]],
            [
                (0, "list"),
                (0, "watch 5"),
                (LIFE + LATE_SECONDS + FIRST_WAIT, "check"),
                (LIFE + LATE_SECONDS + FIRST_WAIT, "watch 5"),
            ],
            id="watch that the server does not end is ended",
        ),
        pytest.param(
            [page("5", obj(1)), page("9"), page("9"), page("9")],
            [[0.0], [0.0], [0.0]],
            [
                (0, "list"),
                (0, "watch 5"),
                (ONE, "check"),
                (ONE, "watch 5"),
                (ONE + TWO, "check"),
                (ONE + TWO, "watch 5"),
                (ONE + TWO + THREE, "check"),
                (ONE + TWO + THREE, "watch 5"),
            ],
            id="watches that bring nothing come later each time",
        ),
        pytest.param(
            [page("5", obj(1)), page("9"), page("9")],
            [[0.0], [[line("MODIFIED", obj(7))], CUT]],
            [
                (0, "list"),
                (0, "watch 5"),
                (ONE, "check"),
                (ONE, "watch 5"),
                (ONE + FIRST_WAIT, "check"),
                (ONE + FIRST_WAIT, "watch 7"),
            ],
            id="watch that brings something counts as none of the failures",
        ),
        pytest.param(
            [LOST, LOST, LOST, page("5")],
            [],
            [
                (0, "list"),
                (ONE, "list"),
                (ONE + TWO, "list"),
                (ONE + TWO + THREE, "list"),
                (ONE + TWO + THREE, "watch 5"),
            ],
            id="list without an answer comes later each time",
        ),
        pytest.param(
            [refusal(403, "Forbidden"), page("5")],
            [refusal(404, "NotFound")],
            [(0, "list"), (SLOW_WAIT, "list"), (SLOW_WAIT, "watch 5"), (2 * SLOW_WAIT, "check")],
            id="missing right and missing resource are asked for slowly",
        ),
        pytest.param(
            [page("5", obj(1)), LOST, page("9")],
            [[3.0, CUT]],
            [
                (0, "list"),
                (0, "watch 5"),
                (3 + FIRST_WAIT, "check"),
                (3 + FIRST_WAIT + ONE, "check"),
                (3 + FIRST_WAIT + ONE, "watch 5"),
            ],
            id="version is checked until there is an answer",
        ),
        pytest.param(
            [page("50", obj(40)), page("30", obj(20)), page("31", obj(31))],
            [[3.0, CUT], [4.0, [line("MODIFIED", obj(33))]]],
            [
                (0, "list"),
                (0, "watch 50"),
                (3 + FIRST_WAIT, "check"),
                (3 + FIRST_WAIT + ONE, "list"),
                (3 + FIRST_WAIT + ONE, "watch 31"),
            ],
            id="versions that have gone back are followed by a list",
        ),
    ],
)
async def test_reflector_asks_next(lists: Sequence[Answer], watches: Sequence[Opening], asked: Asked) -> None:
    async with running(Scene(lists, watches)) as scene:
        await asyncio.sleep(asked[-1][0] + FIRST_WAIT / 2)
        assert [request for _, request in scene.asked] == [request for _, request in asked]
        assert [when for when, _ in scene.asked] == pytest.approx([when for when, _ in asked])


async def test_reflector_fills_the_informer() -> None:
    events = [line("ADDED", obj(7, B)), line("MODIFIED", obj(8)), line("DELETED", obj(9, B))]
    async with running(Scene([page("5", obj(1))], [[2.0, events[:2], 2.0, events[2:], LIFE]])) as scene:
        await asyncio.sleep(1)
        assert scene.informer.synced
        assert scene.versions() == {"a": "1"}
        await asyncio.sleep(2)
        assert scene.versions() == {"a": "8", "b": "7"}
        await asyncio.sleep(2)
        assert scene.versions() == {"a": "8"}
        assert scene.informer.saw_go(B)
        assert scene.reflector.state is ReflectorState.WATCHING


async def test_reflector_never_waits_longer_than_its_bound() -> None:
    async with running(Scene([LOST] * 20)) as scene:
        await asyncio.sleep(400)
        times = [when for when, _ in scene.asked]
        waits = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert len(waits) > 12
        assert waits == [pytest.approx(min(FIRST_WAIT * 2**number, LAST_WAIT)) for number in range(1, len(waits) + 1)]


async def test_waits_of_two_reflectors_differ_by_chance() -> None:
    scenes = [Scene([LOST] * 8, rng=random.Random(seed)) for seed in (1, 2)]
    async with running(scenes[0]), running(scenes[1]):
        await asyncio.sleep(10)
    first, second = ([when for when, _ in scene.asked] for scene in scenes)
    assert first != second
    for times in (first, second):
        waits = [later - earlier for earlier, later in itertools.pairwise(times)]
        shares = [wait / (FIRST_WAIT * 2**number) for number, wait in enumerate(waits, 1)]
        assert all(0.75 <= share <= 1.25 for share in shares)


async def test_lives_of_two_watches_differ_by_chance() -> None:
    lives = set()
    for seed in range(5):
        scene = Scene([page("5")], rng=random.Random(seed))
        async with running(scene):
            await asyncio.sleep(1)
            lives.add(scene.server.life)
    assert len(lives) > 1
    assert all(300 <= life <= 600 for life in lives)


async def test_hurry_ends_the_wait_and_the_count_of_failures() -> None:
    async with running(Scene([LOST] * 12)) as scene:
        await asyncio.sleep(60)
        before = len(scene.asked)
        scene.reflector.hurry()
        await asyncio.sleep(FIRST_WAIT)
        assert len(scene.asked) == before + 1
        await asyncio.sleep(ONE)
        assert len(scene.asked) == before + 2, "as after a first failure"


async def test_listener_hears_of_lists_watches_and_failures() -> None:
    lists: list[Answer] = [
        refusal(500, "InternalError"),
        page("5"),
        page("5"),
        LOST,
        page("5"),
        refusal(403, "Forbidden"),
    ]
    async with running(Scene(lists, [[3.0, CUT], [3.0, CUT], [3.0, CUT]])) as scene:
        await asyncio.sleep(12)
        assert scene.heard.calls == [
            "failed: ServerFailed",
            "working",
            "synced",
            "watching",
            "watching",  # a watch that is cut is no failure
            "failed: Unreachable",
            "watching",
            "working",
            "failed: Forbidden",
        ]
        assert isinstance(scene.reflector.error, Forbidden)
        assert scene.reflector.restarts == 3


async def test_answer_that_cannot_be_read_is_a_failure_that_is_tried_again() -> None:
    unreadable = page("5", obj(1))._replace(body=b"[]")
    async with running(Scene([unreadable, page("6", obj(1))])) as scene:
        await asyncio.sleep(FIRST_WAIT)
        assert "sent what can't be read" in str(scene.reflector.error)
        await asyncio.sleep(1)
        assert scene.versions() == {"a": "1"}
        assert scene.reflector.error is None


@pytest.mark.parametrize("failure", [refusal(403, "Forbidden"), LOST], ids=["refused", "lost"])
async def test_failed_read_keeps_no_object_read_before(failure: Answer) -> None:
    async with running(Scene([page("5", obj(1), token="more"), failure])) as scene:
        await asyncio.sleep(ONE / 2)
        error = scene.reflector.error
        assert error is not None
        assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)


async def test_versions_that_went_back_are_reported_and_taken() -> None:
    lists = [page("50", obj(40), obj(41, B)), page("30"), page("30", obj(20))]
    async with running(Scene(lists, [[3.0, CUT]])) as scene:
        await asyncio.sleep(4)
        assert scene.versions() == {"a": "20"}
        assert scene.informer.age < 2, "what was listed so may be older still"
        assert scene.heard.calls == ["synced", "watching", "went back", "synced", "watching"]


async def test_version_is_not_checked_where_versions_have_no_order() -> None:
    async with running(Scene([page("50")], [[3.0, CUT]], ordered=False)) as scene:
        await asyncio.sleep(5)
        assert [request for _, request in scene.asked] == ["list", "watch 50", "watch 50"]


# -- lists beside the watch ------------------------------------------------------------------------


@pytest.fixture
def wrong() -> list[Key]:
    return []


async def test_relist_goes_beside_the_watch(wrong: list[Key]) -> None:
    async with running(Scene([page("5", obj(1)), page("20", obj(3), obj(15, B))], [[[bookmark("10")], LIFE]])) as scene:
        await asyncio.sleep(1)
        assert await scene.reflector.relist(wrong.append)
        assert scene.versions() == {"a": "3", "b": "15"}
        assert wrong == [A], "the watch had come past version 3"
        assert scene.heard.calls == ["synced", "watching", "synced"]
        assert scene.server.open == 1
        await asyncio.sleep(LIFE)
        assert scene.asked[-1][1] == "watch 20", "from the list on, which is later than what the watch has shown"


@pytest.mark.parametrize(
    ("ordered", "lists"),
    [
        pytest.param(True, [page("50", obj(40)), page("30", obj(20)), Later(3, page("31", obj(31)))], id="older list"),
        pytest.param(False, [page("50", obj(40)), Later(3, page("31", obj(31)))], id="no order"),
    ],
)
async def test_relist_that_cannot_be_compared_ends_the_watch(
    ordered: bool, lists: Sequence[Answer], wrong: list[Key]
) -> None:
    watches: list[list[Step]] = [[1000.0], [2.0, [line("MODIFIED", obj(33))], LIFE]]
    async with running(Scene(lists, watches, ordered=ordered)) as scene:
        await asyncio.sleep(10)
        assert await scene.reflector.relist(wrong.append)
        assert scene.versions() == {"a": "31"}
        assert scene.server.beside[-1] == 0, "nothing is shown beside a list that replaces all"
        assert wrong == []
        await asyncio.sleep(1)
        assert scene.asked[-1][1] == "watch 31"
        assert scene.asked[-2][1] == "list"
        assert scene.server.open == 1
        await asyncio.sleep(2)
        assert scene.versions() == {"a": "33"}
        notified = ["went back"] if ordered else []
        assert scene.heard.calls == ["synced", "watching", *notified, "synced", "watching"]


async def test_relist_waits_only_for_the_first_list(wrong: list[Key]) -> None:
    async with running(Scene([LOST, page("5")])) as scene:
        assert not await scene.reflector.relist(wrong.append)
        await asyncio.sleep(1)
        assert scene.asked == [(0, "list"), (ONE, "list"), (ONE, "watch 5")]


@pytest.mark.parametrize("ordered", [True, False])
async def test_relist_that_fails_raises_and_the_reflector_goes_on(ordered: bool, wrong: list[Key]) -> None:
    async with running(Scene([page("5", obj(1)), LOST, page("9", obj(7))], [[1000.0]], ordered=ordered)) as scene:
        await asyncio.sleep(1)
        with pytest.raises(Unreachable):
            await scene.reflector.relist(wrong.append)
        assert scene.versions() == {"a": "1"}
        await asyncio.sleep(1)
        assert scene.server.open == 1
        assert scene.versions() == {"a": "1" if ordered else "7"}


async def test_relist_while_the_watch_is_away_leaves_it_to_come_back(wrong: list[Key]) -> None:
    lists: list[Answer] = [page("5", obj(1)), LOST, LOST, LOST, LOST, page("9", obj(7)), page("9")]
    async with running(Scene(lists, [[3.0, CUT]])) as scene:
        await asyncio.sleep(3 + FIRST_WAIT + ONE + TWO + THREE + ONE)
        assert scene.reflector.state is ReflectorState.LISTED
        assert await scene.reflector.relist(wrong.append)
        assert scene.versions() == {"a": "7"}
        await asyncio.sleep(5)
        assert scene.asked[-1][1] == "watch 9"


async def test_relist_while_the_version_is_checked_opens_no_watch_beside_it(wrong: list[Key]) -> None:
    lists: list[Answer] = [page("50", obj(40)), Later(2, page("50")), page("30"), Later(4, page("31", obj(31)))]
    async with running(Scene(lists, [[3.0, CUT]])) as scene:
        await asyncio.sleep(4)
        assert scene.asked[-1][1] == "check"
        assert await scene.reflector.relist(wrong.append)
        assert scene.versions() == {"a": "31"}
        await asyncio.sleep(5)
        assert [request for _, request in scene.asked] == ["list", "watch 50", "check", "list", "list", "watch 31"]


async def test_relist_of_two_at_once_is_two_lists(wrong: list[Key]) -> None:
    async with running(Scene([page("5"), page("6"), page("7", obj(7))], [[1000.0], [1000.0]], ordered=False)) as scene:
        await asyncio.sleep(1)
        relists = [scene.reflector.relist(wrong.append) for _ in range(2)]
        assert await asyncio.gather(*relists) == [True, True]
        await asyncio.sleep(1)
        assert scene.versions() == {"a": "7"}
        assert [request for _, request in scene.asked] == ["list", "watch 5", "list", "list", "watch 7"]


@pytest.mark.parametrize(
    ("lists", "watches"),
    [
        pytest.param([page("5", obj(1), obj(4, B, data={"a": "x" * (STEP_BYTES + 1)}))], [[LIFE]], id="list"),
        pytest.param(
            [page("5")], [[1.0, [line("ADDED", obj(7, B, data={"a": "x" * (STEP_BYTES + 1)}))], LIFE]], id="watch"
        ),
        pytest.param(
            [page("5", obj(4, B))],
            [[1.0, [line("MODIFIED", obj(7, B, data={"a": "x" * (STEP_BYTES + 1)}))], LIFE]],
            id="change of a stored one",
        ),
    ],
)
def test_large_object_is_decoded_in_a_step_of_its_own(
    lists: Sequence[Answer], watches: Sequence[Opening], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def counted(raw: codec.Raw, observed: Callable[[codec.Raw], Obj] = codec.observed) -> Obj:
        if codec.size(raw) > STEP_BYTES:
            order.append("decoded")
            asyncio.get_running_loop().call_soon(order.append, "another task")
        return observed(raw)

    monkeypatch.setattr(codec, "observed", counted)

    async def scenario() -> None:
        scene = Scene(lists, watches)
        scene.informer.add_handler(lambda key, obj: order.append("stored") if key == B and "data" in obj else None)
        async with running(scene):
            await asyncio.sleep(2.0)
        assert scene.informer.get(B)

    play(scenario)
    assert order == ["decoded", "another task", "stored"]


async def test_silence_of_a_watch_is_that_since_its_begin_or_what_it_brought() -> None:
    loop = asyncio.get_running_loop()
    watch: list[Step] = [50.0, [bookmark("6")], 40.0]
    async with running(Scene([Later(20.0, page("5")), refusal(500, "InternalError")], [watch])) as scene:
        silences = {}
        for second in (10, 21, 60, 75, 109, 111):
            await asyncio.sleep(second - loop.time())
            silences[second] = round(scene.reflector.silence(loop.time()))
        assert silences == {10: 0, 21: 1, 60: 40, 75: 5, 109: 39, 111: 0}


async def test_reflector_is_described_by_its_resource() -> None:
    scene = Scene()
    assert str(scene.reflector) == "configmaps"
    scene.reflector.namespace = "shop"
    assert str(scene.reflector) == "configmaps in shop"
    assert isinstance(scene.reflector.error, SyncerError | None)
