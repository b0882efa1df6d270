"""Lifecycles of clusters by name: each cluster is run in a task of its own until it is removed.

::

             ┌── ended ──┐
             v           │       removed, or put with another version
    put ──> Running ─────┴────────────────────────────────────────────> Ending ──> (removed)
             │   ^                                                       ^  │
      failed │   │ after a delay                                         │  └────> Running
             v   │                                                       │    (put meanwhile)
            Waiting ─────────────────────────────────────────────────────┘

What ran under a name has ended before the same name is run again, so two runs never share what the
name stands for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from syncer.observe.logs import get_logger

T = TypeVar("T")

#: Failures in a row after which their number no longer prolongs the delay, whatever its maximum.
MOST_FAILURES = 30
#: Seconds for which a cluster must have run until its next failure counts as the first one again.
GOOD_SECONDS = 300.0
#: Least seconds between two begins of a cluster whose run returns.
RERUN_SECONDS = 1.0

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The delay before another attempt, in seconds: random, and longer from failure to failure.

    After n failures in a row the delay is between ``least_part`` of ``first * 2**n`` and the whole
    of that. It is never longer than ``last``, nor shorter than ``least``.
    """

    first: float
    last: float
    least: float = 0.0
    least_part: float = 0.0

    def delay(self, failures: int, vary: Callable[[float, float], float]) -> float:
        """Return the delay after some failures in a row. ``vary`` returns a random number between
        two.
        """
        longest = min(self.last, self.first * 2.0 ** min(failures, MOST_FAILURES))
        return max(self.least, vary(self.least_part * longest, longest))


@dataclass(slots=True)
class _Lifecycle:
    """A task that runs a cluster."""

    task: asyncio.Task[None]
    version: object
    is_ending: bool = False


class Lifecycles(Generic[T]):
    """Runs an async function for each cluster of a changing set.

    ``run`` gets the name and what was put under it. When it returns, it is called again, at once or
    :data:`RERUN_SECONDS` after its last begin. When it raises, the failure is reported to
    ``failed``, with the name, what was put, the error and the seconds for which it had run; then
    ``run`` is called again after ``retry_delay`` seconds, which depend on the number of failures in
    a row. A failure after a run of :data:`GOOD_SECONDS` is no failure in a row: the number is 0
    then, otherwise 1 for the first. If ``failed`` raises, that is logged, and nothing else changes.

    Names and clusters are independent of each other: one that fails or ends slowly delays no other
    name.
    """

    def __init__(
        self,
        run: Callable[[str, T], Awaitable[None]],
        *,
        failed: Callable[[str, T, Exception, float], None],
        retry_delay: Callable[[int], float],
    ) -> None:
        self._run = run
        self._failed = failed
        self._retry_delay = retry_delay
        #: What is to be run, with its version. It is read at each begin.
        self._wanted: dict[str, tuple[T, object]] = {}
        #: What runs, waits for its next attempt, or is ending.
        self._lifecycles: dict[str, _Lifecycle] = {}

    @property
    def names(self) -> Collection[str]:
        """The names that were put and not removed."""
        return self._wanted.keys()

    def put(self, name: str, cluster: T, *, version: object = None) -> bool:
        """Run a cluster, in a running event loop; return True if what runs under its name ends for
        that.

        While the version stays the same, what runs goes on undisturbed, and the cluster is that of
        its next begin. Another version ends it, and then the cluster begins.
        """
        self._wanted[name] = (cluster, version)
        lifecycle = self._lifecycles.get(name)
        if lifecycle is None:
            self._begin(name)
            return False
        if lifecycle.is_ending or lifecycle.version == version:
            return False
        self._end(lifecycle)
        return True

    def remove(self, name: str) -> bool:
        """End what runs under a name, without waiting; return False if the name is unknown."""
        if self._wanted.pop(name, None) is None:
            return False
        self._end(self._lifecycles[name])
        return True

    async def removed(self, name: str) -> None:
        """Wait until what was removed, or replaced, under a name has ended; return at once if
        nothing is ending.
        """
        lifecycle = self._lifecycles.get(name)
        if lifecycle is not None and lifecycle.is_ending:
            await asyncio.wait({lifecycle.task})

    async def close(self) -> None:
        """Remove all, and wait until everything has ended."""
        for name in list(self._wanted):
            self.remove(name)
        ending = [lifecycle.task for lifecycle in self._lifecycles.values()]
        if ending:
            await asyncio.wait(ending)

    def _begin(self, name: str) -> None:
        _, version = self._wanted[name]
        task = asyncio.create_task(self._keep(name))
        self._lifecycles[name] = _Lifecycle(task, version)
        task.add_done_callback(lambda task: self._has_ended(name, task))

    def _end(self, lifecycle: _Lifecycle) -> None:
        if not lifecycle.is_ending:
            lifecycle.is_ending = True
            lifecycle.task.cancel()

    def _has_ended(self, name: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("a cluster has ended badly", cluster=name, exc_info=error)
        lifecycle = self._lifecycles.pop(name)
        if not lifecycle.is_ending:
            self._wanted.pop(name, None)  # the event loop is closing
        elif name in self._wanted:
            self._begin(name)

    async def _keep(self, name: str) -> None:
        """Run a cluster again and again, until the task is cancelled.

        A run that hides the cancellation, by returning or by another error, is the last one all the
        same.
        """
        lifecycle = self._lifecycles[name]
        loop = asyncio.get_running_loop()
        failures = 0
        while not lifecycle.task.cancelling():
            cluster, _ = self._wanted[name]
            begun = loop.time()
            try:
                await self._run(name, cluster)
            except asyncio.CancelledError as error:
                if lifecycle.task.cancelling():
                    raise
                failure: Exception = RuntimeError("something for which it waited was cancelled")
                failure.__cause__ = error
            except Exception as error:
                if lifecycle.task.cancelling():
                    raise
                failure = error
            else:
                failures = 0
                await asyncio.sleep(begun + RERUN_SECONDS - loop.time())
                continue
            seconds = loop.time() - begun
            if seconds > GOOD_SECONDS:
                failures = 0
            else:
                failures += 1
            self._report(name, cluster, failure, seconds)
            await asyncio.sleep(self._retry_delay(failures))

    def _report(self, name: str, cluster: T, failure: Exception, seconds: float) -> None:
        try:
            self._failed(name, cluster, failure, seconds)
        except Exception:  # its cluster must run again all the same
            text = "the report of a failed cluster raised"
            log.exception(text, cluster=name, failure=str(failure))
