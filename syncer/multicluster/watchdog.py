"""Names code of users that blocks the event loop, from a thread.

What isn't async runs in threads, where it may take its time; but async code that computes, or waits
without ``await``, stops everything else in its process, and nothing in the event loop can say so.
So each step of such code, from one ``await`` to the next, is noted, and a thread looks for one that
goes on.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from syncer.observe.logs import get_logger

T = TypeVar("T")

#: Seconds that a step may take.
PATIENCE = 1.0
#: Number of times that the thread looks at steps in these seconds.
LOOKS = 4


class Step:
    """A step of a user's code, which is noted while the block runs."""

    __slots__ = ("_dog", "_outer", "_thread", "report_after", "since", "what")

    def __init__(self, dog: "Watchdog", what: str) -> None:
        self._dog = dog
        self.what = what
        #: When the step began, and the seconds after which it is reported, again.
        self.since = 0.0
        self.report_after = dog.patience

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        self._outer = self._dog.steps.get(self._thread)
        self.since = self._dog.clock()
        self._dog.steps[self._thread] = self

    def __exit__(self, *_: object) -> None:
        if self._outer is None:
            del self._dog.steps[self._thread]
        else:
            self._dog.steps[self._thread] = self._outer


class Watchdog:
    """Looks from a thread for steps of users' code that block an event loop, and names them in the
    log.

    A step is reported after ``patience`` seconds, and again whenever the time has doubled. The
    thread takes nothing from the event loop: it reads the noted steps, four times in that time.
    ``clock`` returns seconds.
    """

    def __init__(
        self,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        log: Any = None,
    ) -> None:
        self.patience = patience
        self.clock = clock
        #: The innermost step of each thread.
        self.steps: dict[int, Step] = {}
        self._log = log or get_logger(__name__)
        self._lock = threading.Lock()
        self._users = 0
        self._end = threading.Event()

    def step(self, what: str) -> Step:
        """Return a step, to be entered, of what isn't async but is called in the event loop."""
        return Step(self, what)

    async def steps_of(self, awaitable: Awaitable[T], what: str) -> T:
        """Await something of a user, each step of which is noted."""
        return await _Watched(self, awaitable, what)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Look while the block runs; one thread serves all blocks."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._end = threading.Event()
                threading.Thread(
                    target=self._run,
                    args=[self._end],
                    daemon=True,
                    name="watchdog",
                ).start()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._end.set()

    def look(self) -> None:
        """Name the steps that go on for too long."""
        now = self.clock()
        for thread, step in list(self.steps.items()):
            seconds = now - step.since
            if seconds >= step.report_after:
                step.report_after = 2 * seconds
                about = {
                    "what": step.what,
                    "seconds": round(seconds, 1),
                    "at": _location_of(thread),
                }
                self._log.warning("async code blocks the event loop", **about)

    def _run(self, end: threading.Event) -> None:
        while not end.wait(self.patience / LOOKS):
            self.look()


class _Watched(Generic[T]):
    """Awaits something step by step."""

    def __init__(self, dog: Watchdog, awaitable: Awaitable[T], what: str) -> None:
        self._dog = dog
        self._awaitable = awaitable
        self._what = what

    def __await__(self) -> Generator[Any, Any, T]:
        dog = self._dog
        what = self._what
        inner: Any = self._awaitable.__await__()
        go_on = next
        given = [inner]
        while True:
            try:
                with Step(dog, what):
                    waits_for = go_on(*given)
            except StopIteration as done:
                result: T = done.value
                return result
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 — it is the awaited code's
                go_on = inner.throw
                given = [error]
            else:
                if sent is None:
                    go_on = next
                    given = [inner]
                else:
                    go_on = inner.send
                    given = [sent]


def _location_of(thread: int) -> str:
    """Return the file and the line that a thread is at."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


#: The watchdog of the process; its ``patience`` may be set.
WATCHDOG = Watchdog()
