"""The memory that the objects of a virtual cluster take, as its stores count it."""

import pytest
from informer_scene import of_namespaces

from syncer.api.objects import Key, Obj
from syncer.byte_budget import ByteBudget
from syncer.cache.budget import OVERHEAD, NoRoom
from syncer.cache.informer import Informer
from syncer.clusters.codec import UNREADABLE
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap


def stored(budget: ByteBudget) -> Informer:
    """Return a store with a budget."""
    return Informer(CONFIG_MAPS, clock=lambda: 0.0, budget=budget)


def whole(name: str, data: dict[str, str]) -> Obj:
    return configmap(name, data, metadata={"resourceVersion": "1"})


def text(size: int) -> dict[str, str]:
    return {"k": "x" * size}


def test_budget_counts_bytes_and_overhead_of_each_object() -> None:
    budget = ByteBudget()
    one, other = stored(budget), stored(budget)
    for number, store in enumerate((one, other, one)):
        store.keep(Key("shop", f"x{number}"), whole(f"x{number}", text(1000)))
    small = sum(len(entry.raw) for store in (one, other) for key in list(store.keys()) if (entry := store.entry(key)))
    assert budget.used == small + 3 * OVERHEAD
    one.keep(Key("shop", "x0"), whole("x0", text(5000)))
    assert budget.used == small + 4000 + 3 * OVERHEAD
    for store in (one, other):
        for key in list(store.keys()):
            store.drop(key)
    one.drop(Key("shop", "x0"))
    assert budget.used == 0


def test_store_that_is_emptied_takes_nothing() -> None:
    budget = ByteBudget()
    store = stored(budget)
    store.keep(Key("shop", "x"), whole("x", text(1000)))
    store.empty()
    assert (budget.used, len(store)) == (0, 0)


def test_budget_reports_when_it_is_exceeded_and_never_without_a_limit() -> None:
    used = list[int]()
    budget = ByteBudget(most=2000)
    budget.over = lambda: used.append(budget.used)
    store = stored(budget)
    store.keep(Key("shop", "x"), whole("x", text(100)))
    assert used == []
    store.keep(Key("shop", "x"), whole("x", text(3000)))
    assert len(used) == 1
    budget.most = 0
    store.keep(Key("shop", "y"), whole("y", text(3000)))
    assert len(used) == 1


def test_store_without_room_refuses_and_stays_unchanged() -> None:
    shares = of_namespaces(10_000)
    store = stored(shares)
    store.keep(Key("shop", "x"), whole("x", text(100)))
    used = shares.used
    for name in ("x", "y"):
        with pytest.raises(NoRoom, match=r"no room for its \d+ bytes in the daemon's memory \(maxMegabytes\)"):
            store.keep(Key("shop", name), whole(name, text(4000)))
    assert (shares.used, list(store.keys())) == (used, [Key("shop", "x")])
    store.keep(Key("shop", "y"), whole("y", text(4000)) | {UNREADABLE: "for a reason"})
    assert shares.used > used + 4000
    store.empty()
    assert (shares.used, shares.parts) == (0, {})
