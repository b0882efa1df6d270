"""The JSON of a large object that repeats itself takes less memory than it is long."""

import asyncio
import gzip

import pytest
from informer_scene import MAPS, A, Watched, obj, of_namespaces
from noise import noise

from syncer.api import Key, Obj
from syncer.byte_budget import ByteBudget
from syncer.cache.budget import OVERHEAD, NoRoom
from syncer.cache.entry import LARGE, Entry, packed
from syncer.cache.newcomers import MANY
from syncer.cache.store import Store
from syncer.clusters import codec
from syncer.steps import STEP_BYTES


def entry_of(store: Store) -> Entry:
    found = store.entry(A)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "is_smaller"),
    [
        ("x" * (LARGE - 200), False),
        ("x" * LARGE, True),
        ("é\u2028" * LARGE, True),
        (noise(LARGE), False),
        (noise(2 * LARGE) + "x" * LARGE + noise(2 * LARGE), False),
        (noise(LARGE) + "x" * 4 * LARGE + noise(LARGE), True),
    ],
    ids=["small", "repeated", "of several bytes", "noise", "mostly noise", "mostly repeated"],
)
def test_object_takes_its_json_or_less_than_half_of_it(text: str, is_smaller: bool) -> None:
    budget = ByteBudget()
    store, whole = Store(MAPS, budget), obj(1, data={"text": text})
    store.keep(A, whole)
    entry, raw = entry_of(store), codec.encode(whole)
    assert (entry.raw, entry.size, store.get(A)) == (raw, len(raw), whole)
    assert len(entry.packed) <= len(raw) // 2 if is_smaller else entry.packed == raw
    assert budget.used == len(entry.packed) + OVERHEAD
    assert store.outline(A) == {"metadata": whole["metadata"]}
    store.keep(A, obj(2, data={"text": "short"}))
    assert budget.used == entry_of(store).size + OVERHEAD
    store.keep(A, whole)
    assert store.drop(A) == whole
    assert budget.used == 0


def test_text_that_does_not_repeat_itself_is_not_compressed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(gzip, "compress")
    assert len(packed(noise(4 * LARGE).encode())) == 4 * LARGE
    with pytest.raises(AttributeError):
        packed(b"x" * LARGE)


def test_room_is_requested_for_the_size_of_an_object() -> None:
    budget = of_namespaces(200_000)
    store, whole = Store(MAPS, budget), obj(1, data={"text": "x" * 1_000_000})
    store.keep(A, whole)
    assert 0 < budget.used < 20_000
    with pytest.raises(NoRoom) as error:
        Store(MAPS, of_namespaces(2000)).keep(A, whole)
    assert error.value.size == budget.used


def test_new_index_sees_large_objects_in_steps_by_their_json() -> None:
    watched = Watched()
    for number in range(MANY):
        watched.event("ADDED", obj(number + 1, Key("shop", f"m{number}"), data={"text": "x" * (STEP_BYTES // 2)}))
    watched.informer.add_index("all", lambda _: ("",))

    async def scenario() -> int:
        catching, rounds = asyncio.ensure_future(watched.informer.newcomers.catch_up()), 0
        while not catching.done():
            rounds += 1
            await asyncio.sleep(0)
        return rounds

    assert asyncio.run(scenario()) >= MANY // 2


def test_variables_in_each_container_take_a_tenth_at_most() -> None:
    env = [{"name": f"S{n}_SERVICE_HOST", "value": f"10.96.{n % 7}.{n % 256}"} for n in range(200)]
    pod: Obj = {"spec": {"containers": [{"name": f"c{number}", "env": env} for number in range(20)]}}
    raw = codec.encode(pod)
    assert len(raw) > STEP_BYTES // 2
    assert 10 * len(packed(raw)) < len(raw)
