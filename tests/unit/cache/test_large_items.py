"""Large items of lists and watches are decoded only if they are new, and not held once they are processed."""

import asyncio
import json
import tracemalloc
from collections.abc import Iterator, Sequence

import pytest
from informer_scene import A, obj
from reflector_scene import LIFE, Answer, Later, Opening, Scene, line, page, play, running
from shared_scene import host, soon

from syncer.api import Key, Obj
from syncer.clusters import codec
from syncer.steps import STEP_BYTES

#: The contents of an object whose text, and whose decoded form, are large; stored they are small.
LARGE_DATA = {"a": "x" * 2 * STEP_BYTES}
LATER = [1.0, [line("MODIFIED", obj(6))], LIFE]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The versions of the large items that are decoded."""
    found: list[str] = []

    lean_with_text = codec.lean_with_text

    def counted(raw: codec.Raw) -> tuple[Obj, bytes]:
        if codec.size(raw) > STEP_BYTES:
            found.append(codec.version(raw))
        return lean_with_text(raw)

    monkeypatch.setattr(codec, "lean_with_text", counted)
    return found


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def memory_in_use() -> int:
    """Return the bytes of the texts that were received, and of what was decoded from them, that are in use."""
    of_codec = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, codec.__file__)])
    return sum(each.size for each in of_codec.statistics("filename"))


def large(version: int) -> Obj:
    return obj(version, data=LARGE_DATA)


def compact(kind: str, value: Obj) -> bytes:
    """Return a line of a watch as API servers write it."""
    return json.dumps({"type": kind, "object": value}, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("lists", "watches", "versions"),
    [
        pytest.param([page("5", large(4))], [LATER], ["4"], id="once if it is new"),
        pytest.param([page("5", large(4))], [[1.0, [line("MODIFIED", large(6))], LIFE]], ["4", "6"], id="if changed"),
        pytest.param([page("5", large(4))], [[1.0, [line("ADDED", large(4))], LIFE]], ["4"], id="not as it is stored"),
        pytest.param([page("5", large(4))], [[1.0, [line("DELETED", large(7))], LIFE]], ["4"], id="not if it is gone"),
    ],
)
def test_large_item_is_decoded(
    lists: Sequence[Answer], watches: Sequence[Opening], versions: list[str], decoded: list[str]
) -> None:
    async def scenario() -> None:
        async with running(Scene(lists, watches)):
            await asyncio.sleep(2.0)

    play(scenario)
    assert decoded == versions


def test_list_of_stored_objects_decodes_no_large_item(decoded: list[str]) -> None:
    async def scenario() -> None:
        lists = [page(version, large(4)) for version in ("5", "6")]
        async with running(Scene(lists, [[LIFE]])) as scene:
            await asyncio.sleep(1.0)
            await scene.reflector.relist(lambda key: None)

    play(scenario)
    assert decoded == ["4"]


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    "events",
    [
        pytest.param([compact("MODIFIED", large(6))], id="new"),
        pytest.param([compact("DELETED", large(6))], id="gone"),
        pytest.param([compact("MODIFIED", large(4))], id="known"),
    ],
)
async def test_reflector_holds_no_large_item_once_it_is_processed(events: list[bytes]) -> None:
    async with running(Scene([page("5", large(4))], [[1.0, events, LIFE]])):
        await asyncio.sleep(1.5)
        assert memory_in_use() < STEP_BYTES / 4


@pytest.mark.usefixtures("traced")
async def test_reflector_holds_no_large_item_that_was_decoded_for_nothing() -> None:
    watch: Opening = [1.0, [compact("MODIFIED", large(6))], LIFE]
    async with running(Scene([page("5", obj(4))], [watch])) as scene:
        await asyncio.sleep(0.5)
        with scene.informer.writing(A) as writing:
            scene.informer.wrote(A, writing, obj(7))
        await asyncio.sleep(1.0)
        assert scene.versions() == {"a": "7"}
        assert memory_in_use() < STEP_BYTES / 4


@pytest.mark.usefixtures("traced")
async def test_page_is_freed_while_the_next_one_is_awaited() -> None:
    whole = page("5", *(obj(4, Key("shop", name), data=LARGE_DATA) for name in "cdef"), token="more")
    size = len(whole.body)
    scene = Scene([whole, Later(10.0, page("5", obj(4)))], [[LIFE]])
    del whole
    before, _ = tracemalloc.get_traced_memory()
    async with running(scene):
        await asyncio.sleep(5.0)
        assert len(list(scene.informer.keys())) == 4
        assert tracemalloc.get_traced_memory()[0] - before < -size * 3 // 4
        await asyncio.sleep(10.0)
        assert scene.informer.get(A)


@pytest.mark.usefixtures("traced")
async def test_shared_watch_holds_no_large_event_once_it_is_processed() -> None:
    async with host() as scene:
        member = scene.join("a")
        await soon()
        await asyncio.sleep(1)
        scene.put("one", "a", text="x" * 2 * STEP_BYTES)
        await asyncio.sleep(1)
        assert member.names() == {"one"}
        assert memory_in_use() < STEP_BYTES / 4


@pytest.mark.usefixtures("traced")
def test_item_that_is_being_processed_is_kept() -> None:
    """Otherwise the tests above would see nothing."""
    found: list[int] = []

    async def scenario() -> None:
        scene = Scene([page("5")], [[1.0, [compact("ADDED", large(6))], LIFE]])
        scene.informer.add_handler(lambda key, last: found.append(memory_in_use()))
        async with running(scene):
            await asyncio.sleep(2.0)
            assert scene.informer.get(A)

    play(scenario)
    assert found[0] > 2 * STEP_BYTES
