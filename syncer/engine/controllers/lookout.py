"""Looks at what both sides serve when that may have changed, and for as long as a syncer waits for its resource."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from syncer.api.errors import ClusterError
from syncer.clusters.discovery import Discovery
from syncer.observe.logs import get_logger

#: Seconds between looks while a syncer waits for its resource: the first wait, doubled up to the last.
FIRST_LOOK, LAST_LOOK = 0.25, 30.0
#: Seconds between two looks at the least, so that many changes cost one look.
LOOK_PAUSE = 0.25

log = get_logger(__name__)


class Lookout:
    """Refreshes discoveries; ``looked`` is called after each look, ``waiting`` says whether somebody waits."""

    def __init__(
        self,
        discoveries: Callable[[], Iterable[Discovery]],
        *,
        waiting: Callable[[], bool],
        looked: Callable[[], Awaitable[None]],
    ) -> None:
        self._discoveries, self._waiting, self._looked = discoveries, waiting, looked
        self._wanted = asyncio.Event()

    def soon(self) -> None:
        """Look soon: what is served may be something else now."""
        self._wanted.set()

    async def run(self) -> None:
        """Run until cancelled."""
        wait = FIRST_LOOK
        while True:
            try:
                async with asyncio.timeout(wait if self._waiting() else None):
                    await self._wanted.wait()
                wait = FIRST_LOOK
            except TimeoutError:
                wait = min(wait * 2, LAST_LOOK)
            self._wanted.clear()
            await self._look()
            await asyncio.sleep(LOOK_PAUSE)

    async def _look(self) -> None:
        for discovery in self._discoveries():
            try:
                await discovery.refresh()
            except ClusterError as error:
                log.warning("can't see what a cluster serves", error=str(error))
        await self._looked()
