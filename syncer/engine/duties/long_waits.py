"""An Event for the owner of each object that waits, or is paused, for long.

Retries and further looks don't repeat it, and neither does a daemon that starts again, as the name
of the Event follows from the object and the reason.
"""

import asyncio
from collections.abc import Callable
from itertools import islice

from syncer.api.objects import SyncRequest
from syncer.api.reasons import RequestState
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatus, RequestStatuses
from syncer.observe.events import EventType, NotifyOwner
from syncer.observe.logs import get_logger

#: Seconds that an object waits before its owner is notified; most waits are over sooner.
WAIT_SECONDS = 30.0
#: Seconds between two looks for such objects.
LOOK_SECONDS = 5.0
#: Owners that are notified after a look: half as many as the recorder writes events in that time,
#: so that there is room for events of other reasons.
MOST_AT_ONCE = 25

log = get_logger(__name__)


async def notify_of_long_waits(
    pair: ClusterPair,
    statuses: RequestStatuses,
    notify: NotifyOwner,
    *,
    clock: Callable[[], float],
) -> None:
    """Notify the owners of objects of a cluster pair until cancelled; ``clock`` is the engine's."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        waits = statuses.long_waits(pair.name, pair.controllers, before=clock() - WAIT_SECONDS)
        for request, status in list(islice(waits, MOST_AT_ONCE)):
            statuses.notified(request, pair.uid_of(request))
            try:
                _notify(request, status, notify)
            except Exception as error:  # noqa: BLE001 — a name translator may raise
                log.debug(
                    "an owner can't be notified",
                    cluster=pair.name,
                    what=request,
                    error=repr(error),
                )


def _notify(request: SyncRequest, status: RequestStatus, notify: NotifyOwner) -> None:
    """Notify an owner: by a warning, if there is something to do about the wait."""
    level: EventType = "Normal"
    if status.state is RequestState.PENDING and status.reason.way_out:
        level = "Warning"
    notify(request, status.reason.code.name, str(status.reason), level=level, once=True)
