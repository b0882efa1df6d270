"""Steps of a play as values: a script is a list of them, and reads as the code that performs it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from custom_scene import CERTIFICATES, CLUSTER_ISSUERS

from chaos.daemons import CANDIDATES, OURS, Cast
from chaos.people import changed, cluster_issuer, defined, issued, lived, made, spoilt
from chaos.stage import CRDS, HOST, Stage
from kube_envtest.apiserver.clock import EPOCH, timestamp
from kube_envtest.apiserver.faults import Rule
from syncer.testing.objects import configmap

_US = f"{OURS}*"
#: What may go wrong with our requests to a server, and with the watches of it, until it is calm again.
FAULTS: Mapping[str, Callable[[], Rule]] = {
    "409": lambda: Rule(user=_US, status=409, probability=0.3),
    "410 lists": lambda: Rule(user=_US, verb="list", status=410, probability=0.5),
    "429": lambda: Rule(user=_US, status=429, probability=0.3),
    "500": lambda: Rule(user=_US, status=500, probability=0.3),
    "503": lambda: Rule(user=_US, status=503, probability=0.3),
    "lost before": lambda: Rule(user=_US, reset="before", probability=0.2),
    "create lost after": lambda: Rule(user=_US, verb="create", reset="after", probability=0.5),
    "patch lost after": lambda: Rule(user=_US, verb="patch", reset="after", probability=0.5),
    "delete lost after": lambda: Rule(user=_US, verb="delete", reset="after", probability=0.5),
    "slow": lambda: Rule(user=_US, latency=0.05),
    "slower": lambda: Rule(user=_US, latency=0.5, probability=0.5),
    "slowest": lambda: Rule(user=_US, latency=3.0, probability=0.5),
    "slow writes": lambda: Rule(user=_US, verb="[cpd]*", latency=1.0, probability=0.5),
    "late watches": lambda: Rule(user=_US, verb="watch", latency=2.0),
    "duplicated events": lambda: Rule(user=_US, verb="watch", duplicate=True, probability=0.5),
    "cut watches": lambda: Rule(user=_US, verb="watch", cut=True, probability=0.2),
    "deaf watches": lambda: Rule(user=_US, verb="watch", drop=True),
}


class Step(ABC):
    """One thing that happens."""

    @abstractmethod
    async def play(self, stage: Stage) -> None:
        """Let it happen."""


@dataclass(frozen=True, slots=True)
class Wait(Step):
    """Seconds pass."""

    seconds: float

    async def play(self, stage: Stage) -> None:
        await asyncio.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class Turn(Step):
    """The loop turns so many times, in which no time passes unless no task has anything to do."""

    times: int

    async def play(self, stage: Stage) -> None:
        for _ in range(self.times):
            await asyncio.sleep(0)


# -- what tenants do -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put(Step):
    """A tenant makes an object, or changes it to another look."""

    tenant: str
    kind: str
    space: str
    name: str
    look: int

    async def play(self, stage: Stage) -> None:
        if not stage.serves(self.tenant, self.kind):
            return
        obj = made(self.kind, self.space, self.name, self.look)
        before = stage.server(self.tenant).get(self.kind, f"{self.space}/{self.name}")
        stage.put(self.tenant, changed(self.kind, before, obj) if before else obj)


@dataclass(frozen=True, slots=True)
class Delete(Step):
    """A tenant deletes an object; with ``again`` another of the name is made at once."""

    tenant: str
    kind: str
    space: str
    name: str
    again: bool = False

    async def play(self, stage: Stage) -> None:
        if stage.serves(self.tenant, self.kind):
            stage.server(self.tenant).end(self.kind, f"{self.space}/{self.name}")
        if self.again:
            await Put(self.tenant, self.kind, self.space, self.name, 1).play(stage)


@dataclass(frozen=True, slots=True)
class DeleteSpace(Step):
    """A tenant deletes a namespace with all that is in it."""

    tenant: str
    space: str

    async def play(self, stage: Stage) -> None:
        stage.server(self.tenant).end("namespaces", self.space)


# -- what happens on the host ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spoil(Step):
    """A user of the host changes a copy."""

    tenant: str
    kind: str
    space: str
    name: str
    how: str

    async def play(self, stage: Stage) -> None:
        copy = stage.copy(self.tenant, self.kind, self.space, self.name)
        if copy is not None:
            stage.put(HOST, spoilt(self.kind, copy, self.how))


@dataclass(frozen=True, slots=True)
class DeleteCopy(Step):
    """A user of the host deletes a copy, a Pod with its grace period unless by ``force``."""

    tenant: str
    kind: str
    space: str
    name: str
    force: bool = False

    async def play(self, stage: Stage) -> None:
        if stage.serves(HOST, self.kind):
            delete = stage.host.delete if self.force else stage.host.end
            delete(self.kind, stage.host_path(self.tenant, self.space, self.name))


@dataclass(frozen=True, slots=True)
class Squat(Step):
    """A user of the host makes a ConfigMap where a copy would be, or removes it again."""

    tenant: str
    space: str
    name: str

    async def play(self, stage: Stage) -> None:
        namespace, _, name = stage.host_path(self.tenant, self.space, self.name).partition("/")
        found = stage.host.get("configmaps", f"{namespace}/{name}")
        if found is None:
            stage.put(HOST, configmap(name, {"of": "somebody"}, namespace=namespace))
        elif (found.get("data") or {}).get("of"):
            stage.host.delete("configmaps", f"{namespace}/{name}")


@dataclass(frozen=True, slots=True)
class Live(Step):
    """A kubelet goes a step on with a pod: ``place``, ``run``, ``Succeeded``, ``Failed``, or ``stop`` what is to."""

    tenant: str
    space: str
    name: str
    act: str

    async def play(self, stage: Stage) -> None:
        copy = stage.copy(self.tenant, "pods", self.space, self.name)
        if self.act == "stop":
            stage.release()
        elif copy is not None:
            after = lived(copy, self.act, timestamp(EPOCH + stage.loop.time()))
            if after:
                stage.put(HOST, after)


@dataclass(frozen=True, slots=True)
class Issue(Step):
    """cert-manager on the host makes or renews the Secret of a Certificate."""

    tenant: str
    space: str
    name: str
    look: int

    async def play(self, stage: Stage) -> None:
        copy = stage.copy(self.tenant, CERTIFICATES, self.space, self.name)
        for obj in issued(copy, self.look) if copy else ():
            stage.put(HOST, obj)


@dataclass(frozen=True, slots=True)
class Offer(Step):
    """A user of the host makes, changes (odd: shown to tenants) or deletes (None) an issuer for all."""

    look: int | None

    async def play(self, stage: Stage) -> None:
        if not stage.serves(HOST, CLUSTER_ISSUERS):
            return
        if self.look is None:
            stage.host.delete(CLUSTER_ISSUERS, "a")
        else:
            stage.put(HOST, cluster_issuer(self.look))


# -- what goes wrong -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Undefine(Step):
    """A CRD goes, with all its objects, or comes back."""

    server: str
    kind: str

    async def play(self, stage: Stage) -> None:
        if stage.serves(self.server, self.kind):
            stage.server(self.server).delete(CRDS, self.kind)
        else:
            stage.put(self.server, defined(self.kind))
        stage.note("crd")


@dataclass(frozen=True, slots=True)
class Fault(Step):
    """Something goes wrong with our requests to a server, until it is calm."""

    server: str
    fault: str

    async def play(self, stage: Stage) -> None:
        stage.server(self.server).faults.add(FAULTS[self.fault]())


@dataclass(frozen=True, slots=True)
class Calm(Step):
    """Nothing more goes wrong with a server's requests, and it answers."""

    server: str

    async def play(self, stage: Stage) -> None:
        stage.calm(self.server)
        stage.server(self.server).thaw()


@dataclass(frozen=True, slots=True)
class Break(Step):
    """``cut`` all watches, ``expire`` them, ``freeze`` the server, or ``restart`` it (down for 3 s)."""

    server: str
    how: str

    async def play(self, stage: Stage) -> None:
        server = stage.server(self.server)
        match self.how:
            case "cut":
                server.cut_watches()
            case "expire":
                server.expire_watches()
            case "freeze":
                server.freeze()
            case _:
                server.restart(down=3)
        stage.note(self.how)


@dataclass(frozen=True, slots=True)
class Part(Step):
    """One candidate doesn't reach a server, until that is calm."""

    daemon: str
    server: str

    async def play(self, stage: Stage) -> None:
        stage.server(self.server).faults.add(Rule(user=f"{OURS}{self.daemon}-*", reset="before"))


@dataclass(frozen=True, slots=True)
class Depose(Step):
    """One candidate can't renew the Lease, and reaches all else, until the host is calm."""

    daemon: str

    async def play(self, stage: Stage) -> None:
        refused = Rule(user=f"{OURS}{self.daemon}-*", resource="leases", status=503)
        stage.server(HOST).faults.add(refused)


@dataclass(frozen=True, slots=True)
class Kill(Step):
    """A candidate is killed after so many turns of the loop; what it has sent is done (``land``) or isn't."""

    daemon: str
    turns: int
    land: bool

    async def play(self, stage: Stage) -> None:
        await Turn(self.turns).play(stage)
        daemon = stage.daemons[self.daemon]
        stage.guards.dead.add(daemon.user)
        await daemon.kill(land=self.land)
        stage.note("kill")


@dataclass(frozen=True, slots=True)
class Freeze(Step):
    """A daemon does nothing for so many seconds, and then goes on as if no time had passed."""

    daemon: str
    seconds: float

    async def play(self, stage: Stage) -> None:
        daemon = stage.daemons[self.daemon]
        daemon.freeze()
        stage.loop.call_later(self.seconds, daemon.thaw)
        stage.note("frozen")


@dataclass(frozen=True, slots=True)
class Stop(Step):
    """A candidate is asked to stop."""

    daemon: str

    async def play(self, stage: Stage) -> None:
        await stage.daemons[self.daemon].stop()
        stage.note("stop")


@dataclass(frozen=True, slots=True)
class Start(Step):
    """A candidate is started, if it isn't there."""

    daemon: str

    async def play(self, stage: Stage) -> None:
        stage.daemons[self.daemon].start()


@dataclass(frozen=True, slots=True)
class Jump(Step):
    """The wall clock of a candidate is set wrong by so many seconds."""

    daemon: str
    seconds: float

    async def play(self, stage: Stage) -> None:
        stage.daemons[self.daemon].skew = self.seconds
        stage.note("clock")


def written(script: Sequence[Step], cast: Cast = CANDIDATES) -> str:
    """A script as the code that performs it."""
    last = [] if cast == CANDIDATES else [f"    cast={cast!r},"]
    return "\n".join(["perform(", *(f"    {step!r}," for step in script), *last, ")"])


def perform(*script: Step, cast: Cast = CANDIDATES) -> None:
    """Perform a script from beginning to end; AssertionError with all that went wrong."""
    wrong = wrong_in(script, cast)
    assert not wrong, "\n".join(wrong)


def wrong_in(script: Sequence[Step], cast: Cast = CANDIDATES) -> list[str]:
    """Return the violations of a script: those of the first step that has any, or of the end."""
    stage = Stage(cast)
    try:
        for step in script:
            stage.run(step.play(stage))
            if stage.look():
                return stage.wrong
        stage.run(stage.heal())
        return list(stage.look())
    finally:
        stage.close()


def shortened(script: Sequence[Step], cast: Cast = CANDIDATES) -> list[Step]:
    """A part of a script that goes wrong as well, in which no step can be left out; all of it where it doesn't."""
    short, size = list(script), max(len(script) // 2, 1)
    while size:
        start, before = 0, len(short)
        while start < len(short):
            without = short[:start] + short[start + size :]
            if wrong_in(without, cast):
                short = without
            else:
                start += size
        size = size if size == 1 and len(short) < before else size // 2
    return short
