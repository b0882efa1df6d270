"""The own controllers of a virtual cluster's syncers: each runs while its syncer may.

One that raised an exception is run again. None runs twice at once, however long it takes to end.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential

from syncer.api.optional_roles import Live, OwnController
from syncer.engine.controllers.pair import ClusterPair
from syncer.observe.logs import get_logger

#: Seconds before a controller that raised is run again, for the first time; doubled each time.
FIRST_RERUN = 1.0
#: Maximum seconds before a controller that raised is run again.
LAST_RERUN = 300.0

log = get_logger(__name__)


class OwnControllers:
    """Runs the own controllers of a virtual cluster's syncers while this process works on it.

    None runs while its syncer is paused.
    """

    def __init__(
        self,
        pair: ClusterPair,
        *,
        live: Callable[[str], Live],
        is_worked_on: Callable[[], bool],
    ) -> None:
        """Create it for the syncers of a pair, also those that join later.

        Args:
            pair: The virtual cluster.
            live: Returns the live clients of a syncer.
            is_worked_on: Returns True while this process works on the virtual cluster.
        """
        self._pair = pair
        self._live = live
        self._is_worked_on = is_worked_on
        #: True from :meth:`begin` to :meth:`stop`.
        self._has_begun = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: Those that were cancelled and haven't ended yet, by syncer.
        self._ending: dict[str, asyncio.Task[None]] = {}
        #: Why a controller doesn't run at present, by its syncer.
        self.broken: dict[str, str] = {}

    def begin(self) -> None:
        """Run those that may run, now and later, until :meth:`stop`."""
        self._has_begun = True
        self.run()

    def run(self) -> None:
        """Run those that may run and don't yet. One that still ends is run again afterwards."""
        if not (self._has_begun and self._is_worked_on()):
            return
        for controller in list(self._pair.controllers.values()):
            name = controller.name
            syncer = controller.syncer
            if not isinstance(syncer, OwnController) or name in self._tasks or name in self._ending:
                continue
            if self._pair.may_run(name):
                self._tasks[name] = asyncio.create_task(self._rerun(syncer, self._live(name)))

    def pause(self) -> None:
        """Stop those of paused syncers, and run them again afterwards."""
        for name, task in list(self._tasks.items()):
            if not task.done() and not self._pair.may_run(name):
                self._end(name)
        self.run()

    def stop(self) -> list["asyncio.Task[None]"]:
        """Stop all; return the tasks that haven't ended yet, for their caller to await."""
        self._has_begun = False
        for name in list(self._tasks):
            self._end(name)
        return list(self._ending.values())

    def drop(self, syncer: str) -> None:
        """Stop the controller of a syncer that has stopped, and forget what was wrong with it."""
        self.broken.pop(syncer, None)
        if syncer in self._tasks:
            self._end(syncer)

    def _end(self, syncer: str) -> None:
        """Cancel a controller, and keep it until it has ended."""
        task = self._tasks.pop(syncer)
        task.cancel()
        self._ending[syncer] = task
        task.add_done_callback(partial(self._ended, syncer))

    def _ended(self, syncer: str, _task: "asyncio.Task[None]") -> None:
        del self._ending[syncer]
        self.run()

    async def _rerun(self, syncer: OwnController, live: Live) -> None:
        """Run a controller until it returns; if it raises, run it again with increasing delays."""
        task = asyncio.current_task()

        def is_stopped() -> bool:
            return task is not None and task.cancelling() > 0

        async def register() -> None:
            self.broken.pop(live.syncer, None)
            try:
                await syncer.register(live)
            except Exception as error:
                if is_stopped():
                    failure = "a syncer's own controller raised an exception while it was stopped"
                    log.exception(failure, cluster=live.cluster, syncer=live.syncer)
                    return
                failure = "a syncer's own controller raised an exception; restarting it"
                log.exception(failure, cluster=live.cluster, syncer=live.syncer)
                reason = f"{type(error).__name__}: {error}"
                self.broken[live.syncer] = f"its own controller raised {reason}"
                raise

        wait = wait_exponential(multiplier=FIRST_RERUN, max=LAST_RERUN)
        await AsyncRetrying(retry=retry_if_exception_type(Exception), wait=wait)(register)
