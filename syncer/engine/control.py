"""The control API: answers to the commands of an operator on the control socket."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from syncer.api.errors import Refused
from syncer.api.objects import Request
from syncer.engine.controllers.request_status import RequestStatus, State
from syncer.engine.engine import Engine
from syncer.engine.patrol.patrollers import confirm, report
from syncer.engine.reconcile.controller import Controller
from syncer.observe.control import Control
from syncer.translate.times import written


def syncers(engine: Engine, kind: str) -> frozenset[str]:
    """The names of the syncers that are meant: by their own name, a kind, or a plural; all of them by ``""``.

    Raises ``Refused`` where none is called so.
    """
    controllers = [controller for pair in engine.pairs.values() for controller in pair.controllers.values()]
    found = frozenset(
        controller.syncer.name for controller in controllers if not kind or kind.lower() in _names(controller)
    )
    if not found and kind:
        known = ", ".join(sorted({controller.syncer.name for controller in controllers}))
        raise Refused(f"nothing that is synced is called {kind!r}; there are {known}")
    return found


def _names(controller: Controller) -> Iterable[str]:
    for resource in (controller.syncer.resource, controller.syncer.host_resource):
        yield from (str(resource).lower(), resource.plural.lower(), resource.kind.lower())
    yield controller.syncer.name.lower()


def is_chosen(request: Request, *, syncers: frozenset[str], key: str) -> bool:
    """Whether a request is meant by these syncers' names and a key; ``""`` is every key."""
    return request.syncer in syncers and key in ("", str(request.key))


def listed(engine: Engine, *, kind: str = "", key: str = "") -> list[dict[str, Any]]:
    """All that is parked of what is meant, the longest first. Raises ``Refused`` for an unknown kind."""
    found = sorted(_parked(engine, kind, key), key=lambda each: (each[1].since, each[0].syncer, each[0].key))
    return [_said(engine, request, status) for request, status in found]


def retried(engine: Engine, *, kind: str = "", key: str = "") -> list[dict[str, Any]]:
    """Have what is parked of what is meant tried again now; gives it as :func:`listed` does."""
    found = listed(engine, kind=kind, key=key)
    for request, _ in list(_parked(engine, kind, key)):
        engine.queue.add(request)
    return found


def _parked(engine: Engine, kind: str, key: str) -> Iterator[tuple[Request, RequestStatus]]:
    chosen = syncers(engine, kind)
    for request, status in engine.statuses.troubles():
        if status.state is State.PARKED and is_chosen(request, syncers=chosen, key=key):
            yield request, status


def _said(engine: Engine, request: Request, status: RequestStatus) -> dict[str, Any]:
    now = engine.clock()
    seconds, due = max(now - status.since, 0.0), engine.queue.delayed().get(request, now)
    return {
        "cluster": request.cluster,
        "syncer": request.syncer,
        "key": str(request.key),
        "since": written(engine.utcnow() - timedelta(seconds=seconds)),
        "seconds": round(seconds),
        "tried": status.tried,
        "class": status.error,
        "reason": status.reason,
        "wakes": ["a change of the object or its copy", *engine.workers.wakeups.reasons(request)],
        "nextTry": round(due - now),
    }


def thaw(engine: Engine, *, kind: str = "", key: str = "") -> list[dict[str, Any]]:
    """Let frozen fields of what is meant be written again, now; gives them. Raises ``Refused`` for an unknown kind."""
    chosen, found = syncers(engine, kind), []
    for pair in engine.pairs.values():
        for one in pair.policies.contention.thaw(lambda one: is_chosen(one.request, syncers=chosen, key=key)):
            engine.queue.add(one.request)
            found.append(one)
    return [
        {
            "cluster": one.request.cluster,
            "syncer": one.request.syncer,
            "key": str(one.request.key),
            "side": str(one.place[0]),
            "field": one.field or "(all of it)",
        }
        for one in found
    ]


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
        patrolled = [(one.pair, one.patroller) for one in engine.served.values()]
        return [report(pair, each, lambda name: name in chosen) for pair, each in patrolled if each is not None]

    async def confirmed(given: Mapping[str, Any]) -> Any:
        kinds = given.get("kinds") or [""]
        chosen = {name for kind in kinds for name in syncers(engine, str(kind))}
        held = confirm(engine, lambda name: name in chosen)
        return [
            {"cluster": cluster, "syncer": one.syncer, "side": str(one.side), "deletions": len(one.objects)}
            for cluster, one in held
        ]

    control.add("GET", "/parked", parked)
    control.add("POST", "/retry", tried)
    control.add("POST", "/thaw", thawed)
    control.add("GET", "/patrol", patrols)
    control.add("POST", "/confirm", confirmed)
