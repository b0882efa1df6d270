"""The tree of bytes: what counts above, what a part may take, and which part ends."""

import pytest

from syncer.byte_budget import ByteBudget


def divided(most: int) -> ByteBudget:
    return ByteBudget(most, divided=True)


def test_bytes_count_at_the_part_and_at_all_above_until_they_are_given_back() -> None:
    process = ByteBudget()
    cluster = ByteBudget(parent=process, divided=True)
    cluster.of("a").take(5)
    cluster.of("b").take(2)
    cluster.of("a").give_back(4)
    assert (process.used, cluster.used, cluster.of("a").used, cluster.of("b").used) == (3, 3, 1, 2)


def test_part_alone_may_take_three_quarters() -> None:
    budget = divided(400)
    assert (budget.of("a").has_room(300), budget.of("a").has_room(301)) == (True, False)
    budget.of("a").take(200)
    assert (budget.of("a").has_room(100), budget.of("a").has_room(101)) == (True, False)


def test_part_that_takes_all_it_may_leaves_room_for_others() -> None:
    budget = divided(400)
    budget.of("a").take(300)
    assert (budget.of("b").has_room(75), budget.of("b").has_room(76)) == (True, False)
    budget.of("b").take(75)
    assert [budget.of(each).has_room(1) for each in "abc"] == [False, False, True]


def test_bytes_taken_beside_the_parts_are_none_of_theirs() -> None:
    above = ByteBudget(800)
    budget = ByteBudget(400, parent=above, divided=True)
    above.take(400)
    assert budget.of("a").has_room(300)


def test_part_may_always_become_smaller_and_without_a_limit_larger() -> None:
    budget = divided(10)
    part = budget.of("a")
    part.take(10)
    assert (part.has_room(0), part.has_room(-5), part.has_room(1)) == (True, True, False)
    budget.most = 0
    assert part.has_room(1 << 40)


def test_part_that_has_given_all_back_is_forgotten() -> None:
    budget = divided(10)
    for number in range(100):
        part = budget.of(f"n{number}")
        part.take(5)
        part.give_back(5)
    assert budget.parts == {}


def test_part_is_refused_bytes_that_its_parent_lacks() -> None:
    process = divided(400)
    namespaces = ByteBudget(1000, parent=process.of("cluster"), divided=True)
    assert (namespaces.of("a").has_room(300), namespaces.of("a").has_room(301)) == (True, False)


def test_undivided_budget_below_a_part_refuses_nothing() -> None:
    process = divided(400)
    copies = ByteBudget(1, parent=process.of("cluster"))
    assert copies.has_room(1 << 40)


class Fleet:
    """A process of 1200 bytes, and what has ended."""

    def __init__(self) -> None:
        self.process = ByteBudget(1200, divided=True, ends_largest=True)
        self.ended: list[str] = []

    def cluster(self, owner: str, name: str, taken: int) -> ByteBudget:
        made = self.process.of(owner, divided=True).of(name)
        made.over = lambda: self.ended.append(name)
        made.take(taken)
        return made


def test_largest_part_of_the_largest_part_ends_when_all_is_taken() -> None:
    fleet = Fleet()
    fleet.cluster("bank", "bank", 500)
    fleet.cluster("team", "one", 300)
    two = fleet.cluster("team", "two", 350)
    assert fleet.ended == []
    fleet.cluster("pets", "pets", 60)
    assert fleet.ended == ["two"]
    two.close()
    assert fleet.process.used == 860


def test_bytes_in_passing_take_room_from_others_and_end_nothing() -> None:
    fleet = Fleet()
    bank = fleet.cluster("bank", "bank", 500)
    team = fleet.cluster("team", "one", 400)
    work = ByteBudget(parent=bank, divided=True, passing=True).of("work")
    work.take(900)
    team.take(50)
    assert fleet.ended == []
    assert not fleet.cluster("pets", "pets", 1).has_room(500)
    team.take(300)
    assert fleet.ended == ["one"], "what bank works on doesn't make it the largest"
    work.give_back(900)
    bank.take(300)
    assert fleet.ended == ["one", "bank"]
    work.take(10)
    bank.close()
    work.give_back(10)
    assert (fleet.process.used, bank.used) == (751, 800)
    team.take(449)
    assert fleet.ended == ["one", "bank"]


def test_part_within_its_equal_share_always_has_room() -> None:
    fleet = Fleet()
    bank = fleet.cluster("bank", "bank", 100)
    for number in range(20):
        fleet.cluster("team", f"c{number}", 54)
    assert (bank.has_room(500), bank.has_room(501)) == (True, False)
    assert not fleet.cluster("team", "late", 1).has_room(1)


def test_bytes_of_a_closed_part_count_nowhere_else() -> None:
    fleet = Fleet()
    closed = fleet.cluster("bank", "bank", 100)
    closed.close()
    closed.take(5)
    closed.give_back(105)
    assert (closed.used, fleet.process.used, fleet.process.parts) == (0, 0, {})


@pytest.mark.parametrize("most", [0, 400])
def test_limit_calls_when_it_is_exceeded_and_never_without_one(most: int) -> None:
    calls: list[str] = []
    budget = ByteBudget(most, over=lambda: calls.append("over"))
    budget.take(400)
    assert calls == []
    budget.take(1)
    assert len(calls) == bool(most)
