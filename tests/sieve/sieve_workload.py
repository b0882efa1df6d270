"""The parts of a workload: a script of both sides' people, and the controllers of the host."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness import CLUSTER, HOME, NAMESPACE, Two, admin, built_in, host_path, namespace
from sampled import config_model

from syncer.api import Key, NameTranslator, NotFound, Obj, Side, is_deleting
from syncer.config import SyncerConfig
from syncer.names import SingleNamespace
from syncer.resources.kinds import PODS
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import node


class Stage(Two):
    """Both API servers, and the Pods that the tenant's controllers are to make as soon as their names are free."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = CLUSTER
        self.due: dict[str, Obj] = {}

    def beside(self, cluster: str) -> "Stage":
        """Return the stage of another virtual cluster with the same host namespace."""
        other = Stage()
        other.cluster, other.host, other.virtual = cluster, self.host, ApiServer(seed=cluster)
        other.virtual.put(namespace(NAMESPACE))
        return other

    def host_path(self, name: str) -> str:
        """Return where the copy of an object of the shop lies."""
        return host_path(name, self.cluster)


#: One thing that somebody does, with all that they see; a coroutine is run at once.
Act = Callable[[Stage], object]

#: Seconds after a change in which those who work on the host see to it.
REACTION = 0.3


def always(two: Stage, original: Obj, copy: Obj) -> bool:
    """Every virtual object is to have its copy for as long as it is there."""
    return True


@dataclass(frozen=True, slots=True)
class Workload:
    """A script for some syncers. Its steps wait for time, and never for the syncers.

    ``reactions`` are what works on the host (a kubelet, an operator): each looks at all there is whenever something
    changes, and does one step. ``wanted`` says of a virtual object and its host copy whether the copy is to be there
    as things stand; ``shown`` says the same of a virtual object that begins on the host.
    """

    name: str
    config: SyncerConfig
    steps: tuple[Act, ...]
    given: Sequence[Act] = ()
    reactions: Sequence[Act] = ()
    wanted: Callable[[Stage, Obj, Obj], bool] = always
    shown: Callable[[Stage, Obj], bool] = lambda two, virtual: False


@dataclass(slots=True)
class Reactions:
    """Runs the reactions of a workload after changes on the host."""

    two: Stage
    acts: Sequence[Act]
    _due: asyncio.TimerHandle | None = field(default=None, init=False)

    def start(self) -> None:
        """Follow both sides from now on."""
        self.two.virtual.follow(lambda change: self._soon() if self.two.due else None)
        if self.acts:
            self.two.host.follow(lambda change: self._soon())
            self._soon()

    def _soon(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(REACTION, self._react)

    def _react(self) -> None:
        self._due = None
        for act in (controller, *self.acts):
            act(self.two)


def configured(
    *syncers: str,
    translator: type[NameTranslator] = SingleNamespace,
    **sections: Any,
) -> SyncerConfig:
    """A configuration of some built-in syncers; ``sections`` are those below ``sync``."""
    host = {"namespace": HOME} if translator is SingleNamespace else {}
    model = config_model(built_in(*syncers), translator)
    return model.model_validate({"cluster": CLUSTER, "host": host, "sync": sections})


# -- what people do --------------------------------------------------------------------------------


def put(obj: Obj) -> Act:
    """The tenant makes an object, or replaces what there is of it."""
    return lambda two: two.virtual.put(obj)


def start(*pods: Obj) -> Act:
    """The tenant's controllers make Pods: those of the same names that still end go first."""

    def started(two: Stage) -> None:
        two.due.update({pod["metadata"]["name"]: pod for pod in pods})
        controller(two)

    return started


def edit(resource: str, name: str, parts: Mapping[str, Any]) -> Act:
    """The tenant changes parts of an object of the shop."""
    return lambda two: _changed(two.virtual, resource, f"{NAMESPACE}/{name}", parts)


def drop(resource: str, name: str, namespace: str = NAMESPACE) -> Act:
    """The tenant deletes an object, at once."""
    return lambda two: two.virtual.delete(resource, f"{namespace}/{name}")


def stop(name: str) -> Act:
    """The tenant deletes a Pod of the shop as ``kubectl delete`` does: it goes when its kubelet has stopped it."""

    async def stopped(two: Stage) -> None:
        two.due.pop(name, None)
        with contextlib.suppress(NotFound):
            await admin(two.virtual, Side.VIRTUAL).delete(PODS, Key(NAMESPACE, name))

    return stopped


def edit_copy(resource: str, name: str, parts: Mapping[str, Any]) -> Act:
    """A user edits the host copy of an object of the shop by hand, if it is there."""
    return lambda two: _changed(two.host, resource, two.host_path(name), parts)


def drop_copy(resource: str, name: str) -> Act:
    """A user deletes the host copy of an object of the shop by hand, if it is there."""
    return lambda two: two.host.delete(resource, two.host_path(name))


def both(*acts: Act) -> Act:
    """Several things at once."""

    async def done(two: Stage) -> None:
        for act in acts:
            await perform(act, two)

    return done


async def perform(act: Act, two: Stage) -> None:
    """Do it."""
    result = act(two)
    if isinstance(result, Coroutine):
        await result


def on_host(obj: Obj) -> Act:
    """A user of the host makes an object, or replaces what there is of it."""
    return lambda two: two.host.put(obj)


def edit_host(resource: str, key: str, parts: Mapping[str, Any]) -> Act:
    """A user of the host changes parts of an object."""
    return lambda two: _changed(two.host, resource, key, parts)


def drop_host(resource: str, key: str) -> Act:
    """A user of the host deletes an object."""
    return lambda two: two.host.delete(resource, key)


def _changed(server: Any, resource: str, key: str, parts: Mapping[str, Any]) -> None:
    found = server.get(resource, key)
    if found is not None and not is_deleting(found):
        server.put(merged(found, parts))


# -- who works on the host -------------------------------------------------------------------------


def controller(two: Stage) -> None:
    """Make the Pods that are due and whose names are free."""
    for name in list(two.due):
        if two.virtual.get("pods", f"{NAMESPACE}/{name}") is None:
            two.virtual.put(two.due.pop(name))


def kubelet(two: Stage) -> None:
    """Place each Pod on a node, start it, and stop it when it is to go. ``done…`` finish, ``doomed…`` get lost."""
    for pod in two.host.objects("pods"):
        name, metadata = pod["metadata"]["name"], pod["metadata"]
        key, status = f"{metadata['namespace']}/{name}", pod.get("status") or {}
        if is_deleting(pod) or (name.startswith("doomed") and status.get("phase") == "Running"):
            two.host.delete("pods", key)
        elif not pod["spec"].get("nodeName"):
            node = {"nodeName": "n2" if name.startswith("far") else "n1"}
            two.host.put(merged(pod, {"spec": node, "status": {"conditions": [SCHEDULED]}}))
        elif not status.get("startTime"):
            two.host.put(merged(pod, {"status": _running(name)}))
        elif name.startswith("done") and status.get("phase") == "Running":
            two.host.put(merged(pod, {"status": {"phase": "Succeeded"}}))


#: What a scheduler notes on a Pod that it places.
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:04Z"}


def _running(name: str) -> Obj:
    address = f"10.1.0.{sum(name.encode()) % 250}"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
    started = {"name": "app", "ready": True, "restartCount": 0, "image": "x", "imageID": "x", "started": True}
    return {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:05Z",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [SCHEDULED, ready],
        "containerStatuses": [started],
    }


def nodes(two: Two) -> None:
    """The host has two nodes."""
    for name in ("n1", "n2"):
        two.host.put(node(name))


def balancer(resource: str) -> Act:
    """Give each object of a kind an address."""
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}

    def answer(two: Stage) -> None:
        for obj in two.host.objects(resource, HOME):
            needs = resource != "services" or obj["spec"].get("type") == "LoadBalancer"
            if needs and not is_deleting(obj) and not dict(obj.get("status") or {}).get("loadBalancer"):
                two.host.put(merged(obj, {"status": status}))

    return answer
