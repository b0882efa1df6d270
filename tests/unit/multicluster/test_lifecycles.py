"""Lifecycles of clusters by name: they begin, fail, wait, begin again and end, in virtual time."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from cache_scene import now

from syncer.multicluster import lifecycles
from syncer.multicluster.lifecycles import GOOD_SECONDS, Backoff, Lifecycles


class Scene:
    """Clusters that are texts; what happens to them is recorded with its time."""

    def __init__(self) -> None:
        self.happened: list[tuple[float, str]] = []
        #: The number of failures of each delay that was asked for.
        self.failures: list[int] = []
        #: What a run does after its begin, by name; otherwise it waits until it is cancelled.
        self.does: dict[str, Callable[[], Any]] = {}
        #: Seconds that a run takes to end after its cancellation, by name.
        self.ends_slowly: dict[str, float] = {}
        self.lifecycles = Lifecycles(self._run, failed=self._failed, retry_delay=self._retry_delay)

    async def _run(self, name: str, cluster: str) -> None:
        self._note(f"{name} begins as {cluster}")
        try:
            await self.does.get(name, asyncio.Event().wait)()
        finally:
            await asyncio.sleep(self.ends_slowly.get(name, 0))
            self._note(f"{name} ends as {cluster}")

    def _failed(self, name: str, cluster: str, error: Exception, seconds: float) -> None:
        self._note(f"{name} failed as {cluster} after {seconds:g} s: {error}")

    def _retry_delay(self, failures: int) -> float:
        self.failures.append(failures)
        return 10.0 * failures

    def _note(self, event: str) -> None:
        self.happened.append((now(), event))

    def raises_after(self, seconds: float) -> Callable[[], Any]:
        async def run() -> None:
            await asyncio.sleep(seconds)
            raise RuntimeError("a bug")

        return run

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.happened]


async def test_cluster_that_was_removed_and_put_again_begins_once_it_has_ended() -> None:
    scene = Scene()
    scene.ends_slowly["a"] = 5.0
    assert scene.lifecycles.put("a", "first") is False
    scene.lifecycles.put("b", "only")
    await asyncio.sleep(1)
    assert scene.lifecycles.remove("a") is True
    assert scene.lifecycles.put("a", "second") is False
    await asyncio.sleep(1)
    assert list(scene.lifecycles.names) == ["b", "a"]
    await asyncio.sleep(10)
    assert scene.happened == [
        (0.0, "a begins as first"),
        (0.0, "b begins as only"),
        (6.0, "a ends as first"),
        (6.0, "a begins as second"),
    ]
    await scene.lifecycles.close()
    assert scene.happened[4:] == [(12.0, "b ends as only"), (17.0, "a ends as second")]


async def test_removal_can_be_awaited() -> None:
    scene = Scene()
    scene.ends_slowly["a"] = 5.0
    scene.lifecycles.put("a", "first")
    await scene.lifecycles.removed("a")
    await scene.lifecycles.removed("unknown")
    assert now() == 0.0, "nothing is ending"
    await asyncio.sleep(1)
    scene.lifecycles.remove("a")
    scene.lifecycles.put("a", "second")
    await scene.lifecycles.removed("a")
    assert scene.happened[:2] == [(0.0, "a begins as first"), (6.0, "a ends as first")]
    assert now() == 6.0
    await scene.lifecycles.close()


async def test_another_version_restarts_a_cluster_and_the_same_one_is_for_its_next_begin() -> None:
    scene = Scene()
    scene.does["a"] = scene.raises_after(10)
    scene.lifecycles.put("a", "first", version=1)
    await asyncio.sleep(1)
    assert scene.lifecycles.put("a", "second", version=1) is False
    await asyncio.sleep(20)
    assert scene.texts == [
        "a begins as first",
        "a ends as first",
        "a failed as first after 10 s: a bug",
        "a begins as second",
    ]
    assert scene.lifecycles.put("a", "third", version=2) is True
    assert scene.lifecycles.put("a", "fourth", version=3) is False, "it is ending already"
    await asyncio.sleep(1)
    assert scene.texts[4:] == ["a ends as second", "a begins as fourth"]
    await scene.lifecycles.close()


async def test_failed_cluster_begins_again_after_a_delay_that_counts_the_failures_in_a_row() -> None:
    scene = Scene()
    scene.does["a"] = scene.raises_after(1)
    scene.lifecycles.put("a", "only")
    await asyncio.sleep(60)
    begins = [time for time, text in scene.happened if "begins" in text]
    assert begins == [0.0, 11.0, 32.0]
    scene.does["a"] = scene.raises_after(GOOD_SECONDS + 1)
    await asyncio.sleep(5 + GOOD_SECONDS)
    assert scene.failures == [1, 2, 3, 0]
    scene.does["a"] = scene.raises_after(1)
    await asyncio.sleep(GOOD_SECONDS + 20)
    assert scene.failures[4:] == [0, 1, 2], "one run lasted long, and the others didn't"
    await scene.lifecycles.close()


async def test_run_that_returns_begins_again_at_once() -> None:
    scene = Scene()
    scene.does["a"] = lambda: asyncio.sleep(1)
    scene.lifecycles.put("a", "only")
    await asyncio.sleep(2.5)
    assert [time for time, text in scene.happened if "begins" in text] == [0.0, 1.0, 2.0]
    assert scene.failures == []
    await scene.lifecycles.close()


async def test_failed_cluster_that_waits_for_its_next_attempt_is_removed_at_once() -> None:
    scene = Scene()
    scene.does["a"] = scene.raises_after(1)
    scene.lifecycles.put("a", "only")
    await asyncio.sleep(2)
    scene.lifecycles.remove("a")
    await scene.lifecycles.removed("a")
    assert now() == 2.0
    assert scene.lifecycles.remove("a") is False
    await asyncio.sleep(60)
    assert scene.texts[-1] == "a failed as only after 1 s: a bug"


async def test_cancelled_wait_of_a_run_is_a_failure() -> None:
    scene = Scene()
    waited_for = asyncio.get_running_loop().create_future()
    scene.does["a"] = lambda: waited_for
    scene.lifecycles.put("a", "only")
    await asyncio.sleep(1)
    waited_for.cancel()
    await asyncio.sleep(1)
    assert scene.texts[1:] == [
        "a ends as only",
        "a failed as only after 1 s: something for which it waited was cancelled",
    ]
    scene.does.clear()
    await asyncio.sleep(10)
    assert scene.texts[3:] == ["a begins as only"]
    await scene.lifecycles.close()


async def test_run_that_returns_at_once_begins_once_a_second() -> None:
    scene = Scene()

    async def returns() -> None:
        """Return without awaiting anything."""
        assert len(scene.happened) < 100, "it spins"

    scene.does["a"] = returns
    scene.lifecycles.put("a", "only")
    await asyncio.sleep(2.5)
    assert [time for time, text in scene.happened if "begins" in text] == [0.0, 1.0, 2.0]
    await scene.lifecycles.close()


async def test_cluster_runs_again_though_the_report_of_its_failure_raised() -> None:
    scene = Scene()

    def failed(name: str, cluster: str, error: Exception, seconds: float) -> None:
        raise ValueError(f"no report of {name}")

    scene.lifecycles._failed = failed
    scene.does["a"] = scene.raises_after(1)
    scene.lifecycles.put("a", "only")
    await asyncio.sleep(12)
    assert [time for time, text in scene.happened if "begins" in text] == [0.0, 11.0]
    assert list(scene.lifecycles.names) == ["a"]
    await scene.lifecycles.close()


@pytest.mark.parametrize("raises", [True, False])
async def test_run_that_hides_its_cancellation_is_the_last_one(raises: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of tasks raises the error of one of them, and the cancellation is forgotten."""
    logged: list[str] = []

    async def hides() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if raises:
                raise RuntimeError("a bug") from None

    monkeypatch.setattr(lifecycles.log, "error", lambda text, **_: logged.append(text))
    scene = Scene()
    scene.does["a"] = hides
    scene.lifecycles.put("a", "first")
    await asyncio.sleep(1)
    scene.lifecycles.remove("a")
    await asyncio.sleep(100)
    assert scene.texts == ["a begins as first", "a ends as first"]
    assert logged == ["a cluster has ended badly"] * raises


def test_delay_doubles_up_to_the_last_one_and_varies_between_a_part_and_the_whole() -> None:
    drawn: list[tuple[float, float]] = []

    def shortest(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    backoff = Backoff(first=1.0, last=60.0, least=3.0, least_part=0.5)
    assert [backoff.delay(failures, shortest) for failures in (0, 2, 5, 9, 10_000)] == [3.0, 3.0, 16.0, 30.0, 30.0]
    assert drawn == [(0.5, 1.0), (2.0, 4.0), (16.0, 32.0), (30.0, 60.0), (30.0, 60.0)]
