"""The memory that the objects of a virtual cluster take, as its stores count it."""

import pytest

from syncer.api.objects import Key, Obj
from syncer.cache.budget import OVERHEAD, Account, MemoryBudget, NoRoom, Shares
from syncer.cache.informer import Informer
from syncer.clusters.codec import UNREADABLE
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap


def stored(budget: Account) -> Informer:
    """Return a store with a budget."""
    return Informer(CONFIG_MAPS, clock=lambda: 0.0, budget=budget)


def whole(name: str, data: dict[str, str]) -> Obj:
    return configmap(name, data, metadata={"resourceVersion": "1"})


def text(size: int) -> dict[str, str]:
    return {"k": "x" * size}


def test_budget_has_the_bytes_and_the_overhead_of_each_object_as_they_come_change_and_go() -> None:
    budget = MemoryBudget()
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
    budget = MemoryBudget()
    store = stored(budget)
    store.keep(Key("shop", "x"), whole("x", text(1000)))
    store.empty()
    assert (budget.used, len(store)) == (0, 0)


def test_budget_reports_when_it_is_exceeded_and_never_without_a_limit() -> None:
    notified = list[int]()
    budget = MemoryBudget(most=2000)
    budget.over = lambda: notified.append(budget.used)
    store = stored(budget)
    store.keep(Key("shop", "x"), whole("x", text(100)))
    assert notified == []
    store.keep(Key("shop", "x"), whole("x", text(3000)))
    assert len(notified) == 1
    budget.most = 0
    store.keep(Key("shop", "y"), whole("y", text(3000)))
    assert len(notified) == 1


def test_namespace_alone_may_take_three_quarters_of_the_half_that_is_for_virtual_objects() -> None:
    shares = Shares(MemoryBudget(most=800))
    assert (shares.has_room("a", 300), shares.has_room("a", 301)) == (True, False)
    shares.take("a", 200)
    assert (shares.has_room("a", 100), shares.has_room("a", 101)) == (True, False)


def test_namespace_that_takes_all_it_may_leaves_room_for_others() -> None:
    shares = Shares(MemoryBudget(most=800))
    shares.take("a", 300)
    assert (shares.has_room("b", 75), shares.has_room("b", 76)) == (True, False)
    shares.take("b", 75)
    assert [shares.has_room(each, 1) for each in "abc"] == [False, False, True]


def test_copies_take_no_room_of_virtual_objects() -> None:
    shares = Shares(MemoryBudget(most=800))
    shares.budget.take("a", 400)
    assert shares.has_room("a", 300)


def test_object_may_always_become_smaller_and_without_a_limit_larger() -> None:
    shares = Shares(MemoryBudget(most=10))
    shares.take("a", 10)
    assert (shares.has_room("a", 0), shares.has_room("a", -5), shares.has_room("a", 1)) == (True, True, False)
    shares.budget.most = 0
    assert shares.has_room("a", 1 << 40)


def test_namespace_that_is_empty_again_is_forgotten() -> None:
    shares = Shares(MemoryBudget(most=10))
    for number in range(100):
        shares.take(f"n{number}", 5)
        shares.give(f"n{number}", 5)
    assert shares == Shares(MemoryBudget(most=10))


def test_store_without_room_refuses_and_stays_unchanged() -> None:
    shares = Shares(MemoryBudget(most=10_000))
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
    assert shares == Shares(MemoryBudget(most=10_000))
