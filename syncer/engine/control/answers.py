"""What the daemon answers on its control socket."""

from collections.abc import Mapping
from typing import Any

from syncer.engine.control.chosen import syncers
from syncer.engine.control.parked import listed, retried
from syncer.engine.control.thawing import thaw
from syncer.engine.engine import Engine
from syncer.engine.patrol.patrollers import confirm, report
from syncer.observe.control import Control


def add(control: Control, engine: Engine) -> None:
    """Let everything be asked that there is."""

    async def parked(given: Mapping[str, Any]) -> Any:
        return listed(engine, kind=str(given.get("kind") or ""), key=str(given.get("key") or ""))

    async def tried(given: Mapping[str, Any]) -> Any:
        return retried(engine, kind=str(given.get("kind") or ""), key=str(given.get("key") or ""))

    async def thawed(given: Mapping[str, Any]) -> Any:
        return thaw(engine, kind=str(given.get("kind") or ""), key=str(given.get("key") or ""))

    async def patrols(given: Mapping[str, Any]) -> Any:
        chosen = {name for kind in str(given.get("kinds") or "").split(",") for name in syncers(engine, kind)}
        patrolled = [(one.link, one.patroller) for one in engine.served.values()]
        return [report(made, each, lambda name: name in chosen) for made, each in patrolled if each is not None]

    async def confirmed(given: Mapping[str, Any]) -> Any:
        kinds = given.get("kinds") or [""]
        chosen = {name for kind in kinds for name in syncers(engine, str(kind))}
        held = confirm(engine, lambda name: name in chosen)
        return [{"syncer": one.syncer, "side": str(one.side), "deletions": len(one.objects)} for one in held]

    control.add("GET", "/parked", parked)
    control.add("POST", "/retry", tried)
    control.add("POST", "/thaw", thawed)
    control.add("GET", "/patrol", patrols)
    control.add("POST", "/confirm", confirmed)
