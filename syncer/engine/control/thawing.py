"""Ends by command that fields are left alone."""

from typing import Any

from syncer.engine.control.chosen import is_chosen, syncers
from syncer.engine.engine import Engine


def thaw(engine: Engine, *, kind: str = "", key: str = "") -> list[dict[str, Any]]:
    """Let frozen fields of what is meant be written again, now; gives them. Raises ``Refused`` for an unknown kind."""
    chosen, found = syncers(engine, kind), []
    for made in engine.links.values():
        for one in made.carrier.fights.thaw(lambda one: is_chosen(one.request, syncers=chosen, key=key)):
            engine.queue.add(one.request)
            found.append(one)
    return [
        {
            "syncer": one.request.syncer,
            "key": str(one.request.key),
            "side": str(one.place[0]),
            "field": one.field or "(all of it)",
        }
        for one in found
    ]
