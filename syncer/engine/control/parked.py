"""What is parked, why, since when, and what wakes it; and how a person has it tried again."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from syncer.api.objects import Request
from syncer.engine.control.chosen import is_chosen, syncers
from syncer.engine.controllers.request_status import Standing, State
from syncer.engine.engine import Engine
from syncer.translate.times import written


def listed(engine: Engine, *, kind: str = "", key: str = "") -> list[dict[str, Any]]:
    """All that is parked of what is meant, the longest first. Raises ``Refused`` for an unknown kind."""
    found = sorted(_parked(engine, kind, key), key=lambda each: (each[1].since, each[0].syncer, each[0].key))
    return [_said(engine, request, standing) for request, standing in found]


def retried(engine: Engine, *, kind: str = "", key: str = "") -> list[dict[str, Any]]:
    """Have what is parked of what is meant tried again now; gives it as :func:`listed` does."""
    found = listed(engine, kind=kind, key=key)
    for request, _ in list(_parked(engine, kind, key)):
        engine.queue.add(request)
    return found


def _parked(engine: Engine, kind: str, key: str) -> Iterator[tuple[Request, Standing]]:
    chosen = syncers(engine, kind)
    for request, standing in engine.ledger.troubles():
        if standing.state is State.PARKED and is_chosen(request, syncers=chosen, key=key):
            yield request, standing


def _said(engine: Engine, request: Request, standing: Standing) -> dict[str, Any]:
    now = engine.clock()
    seconds, due = max(now - standing.since, 0.0), engine.queue.delayed().get(request, now)
    return {
        "syncer": request.syncer,
        "key": str(request.key),
        "cluster": request.cluster,
        "since": written(engine.utcnow() - timedelta(seconds=seconds)),
        "seconds": round(seconds),
        "tried": standing.tried,
        "class": standing.error,
        "reason": standing.reason,
        "wakes": ["a change of the object or its copy", *engine.workers.waking.reasons(request)],
        "nextTry": round(due - now),
    }
