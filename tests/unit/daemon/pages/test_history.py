"""The numbers of the last hour: what each minute adds, and no more than the last sixty of them."""

import pytest

from syncer.daemon.pages.history import SAMPLES, History
from syncer.observe.metrics import BOUNDS, Metrics, quantile


def counts(**seconds: int) -> list[int]:
    """Return the counts of the buckets, each by its upper bound: ``b0_1`` for 0.1."""
    found = [0] * (len(BOUNDS) + 1)
    for name, number in seconds.items():
        found[BOUNDS.index(float(name[1:].replace("_", ".")))] = number
    return found


@pytest.mark.parametrize(
    ("given", "share", "expected"),
    [
        (counts(), 0.5, None),
        (counts(b0_1=100), 0.5, 0.075),
        (counts(b0_1=100), 1.0, 0.1),
        (counts(b0_005=50, b1_0=50), 0.5, 0.005),
        (counts(b0_005=50, b1_0=50), 0.75, 0.75),
        ([0] * len(BOUNDS) + [7], 0.99, BOUNDS[-1]),
    ],
)
def test_quantile_is_that_of_prometheus(given: list[int], share: float, expected: float | None) -> None:
    assert quantile(given, share) == pytest.approx(expected)


def written(metrics: Metrics, cluster: str, number: int, lag: float = 0.01) -> None:
    syncer = metrics.syncer(cluster, "pods")
    for _ in range(number):
        syncer.wrote("host", "create")
        syncer.lag("down", lag)


def test_sample_has_what_was_done_since_the_last_one() -> None:
    metrics = Metrics(version="test")
    written(metrics, "a", 7)
    history = History(metrics, lambda: ["a", "b"])
    written(metrics, "a", 3, lag=0.3)
    history.sample()
    history.sample()
    written(metrics, "a", 5)
    written(metrics, "b", 1)
    history.sample()
    assert history.of("a")["writes"] == [3, 0, 5]
    assert history.of("b")["writes"] == [0, 0, 1]
    assert history.of("a")["lag50"] == [pytest.approx(0.375, abs=1e-3), None, pytest.approx(0.0075, abs=1e-3)]
    assert history.of("a")["lag99"][0] == pytest.approx(0.4975, abs=1e-3)


def test_history_is_bounded_and_goes_with_its_virtual_cluster() -> None:
    metrics = Metrics(version="test")
    names = ["a", "b"]
    history = History(metrics, lambda: names)
    for number in range(2 * SAMPLES):
        written(metrics, "a", number)
        history.sample()
    assert history.of("a")["writes"] == list(range(SAMPLES, 2 * SAMPLES))
    names.remove("a")
    metrics.drop("a")
    history.sample()
    assert history.of("a")["writes"] == []
    assert history.of("b")["writes"] == [0] * SAMPLES


def test_virtual_cluster_that_comes_back_begins_at_nothing() -> None:
    metrics = Metrics(version="test")
    history = History(metrics, lambda: ["a"])
    written(metrics, "a", 9)
    history.sample()
    metrics.drop("a")
    written(metrics, "a", 2)
    history.sample()
    assert history.of("a")["writes"] == [9, 2]
    assert history.of("a")["lag50"][1] is not None
