"""One run of a workload, with at most one thing going wrong in it: what went over the wires, and what came of it."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from harness import Daemon, between
from sieve_end import End, differences, end_of
from sieve_safety import Safety
from sieve_wire import DAEMON, Came, Crash, Sent, Traffic, Unseen
from sieve_workload import Reactions, Stage, Workload, perform

from hack.side_tasks import helped_by
from kube_envtest import Change, Lag, virtual_time
from syncer.api import Side
from syncer.testing import ApiServer

#: Seconds between two steps of a script; half of them before something is done to the daemon.
STEP = 3.0
#: Seconds for which a server shows an older state: beyond the next step, and less than the syncer mistrusts a list.
BEHIND = 3.0
#: Seconds in which nothing may be written once both sides are in step.
QUIET = 60.0
#: Seconds for what fails or waits before the end counts.
PATIENCE = 60.0
#: Virtual seconds, and seconds of CPU, that a run may take.
LIMIT, CPU_LIMIT = 2000.0, 20.0


@dataclass(frozen=True, slots=True)
class Restart:
    """After a step the daemon is restarted, while one side shows an older state for some seconds."""

    step: int
    side: Side
    revision: int


@dataclass(frozen=True, slots=True)
class Travel:
    """After a step the daemon's watch of one resource restarts from an older state, for some seconds."""

    step: int
    side: Side
    resource: str
    revision: int


#: What happens to a replica.
Loss = Literal["killed", "frozen", "cut off"]


@dataclass(frozen=True, slots=True)
class Lost:
    """The replica that makes a write is lost just before or just after it."""

    write: int
    how: Loss
    after: bool


#: What may go wrong in a run.
Point = Crash | Unseen | Restart | Travel | Lost


@dataclass(frozen=True, slots=True)
class Noted:
    """A change in the undisturbed run: after how many steps it was, and the revision before it."""

    step: int
    side: Side
    resource: str
    before: int


@dataclass(slots=True)
class Trace:
    """The steps of a run that can be disturbed."""

    writes: list[Sent] = field(default_factory=list)
    events: list[Came] = field(default_factory=list)
    reads: set[tuple[Side, str]] = field(default_factory=set)
    changes: list[Noted] = field(default_factory=list)
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a run."""

    trace: Trace
    end: End
    problems: list[str]


def run(workload: Workload, point: Point | None = None, expected: End | None = None) -> Ran:
    """Run a workload in virtual time; ``expected`` is the end of the undisturbed run."""
    return in_time(_Run(workload, point, expected))


class Playing(Protocol):
    """A run."""

    trace: Trace
    #: What went wrong so far.
    problems: list[str]

    async def play(self) -> Ran:
        """Run from beginning to end."""


def in_time(one: Playing) -> Ran:
    """Play a run in virtual time, for so much of it and of CPU at most."""
    signal.signal(signal.SIGVTALRM, _stuck)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_LIMIT)
    try:
        return virtual_time.run(_bounded(one))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class Stuck(BaseException):
    """A run goes round in a circle in which no virtual time passes. No ``except Exception`` of the daemon holds it."""


def _stuck(*_: object) -> None:
    raise Stuck(f"{CPU_LIMIT:g} s of CPU and no end: it goes round in a circle in which no virtual time passes")


async def _bounded(one: Playing) -> Ran:
    try:
        async with asyncio.timeout(LIMIT):
            return await one.play()
    except TimeoutError:
        return Ran(one.trace, {}, [*one.problems, f"it has not come to rest within {LIMIT:g} s"])


class _Run:
    def __init__(self, workload: Workload, point: Point | None, expected: End | None) -> None:
        self.workload, self.point, self.expected = workload, point, expected
        self.two = Stage()
        self.traffic = Traffic(point)
        self.trace = Trace(steps=len(workload.steps))
        self.safety = Safety(self.two, workload, self.traffic)
        self.problems = self.safety.problems
        self._step = 0
        self._away = point.away if isinstance(point, Crash) else 0.0
        self._daemon: Daemon | None = None
        self._started = asyncio.Event()

    def server(self, side: Side) -> ApiServer:
        return self.two.virtual if side is Side.VIRTUAL else self.two.host

    async def play(self) -> Ran:
        for act in self.workload.given:
            await perform(act, self.two)
        self.safety.start()
        self._note_changes()
        Reactions(self.two, self.workload.reactions).start()
        async with self._alive():
            await self._script()
            await self._recover()
            problems = [*self.safety.problems, *await self._rest()]
        self.trace.writes, self.trace.events = self.traffic.writes, self.traffic.events
        self.trace.reads = set(self.traffic.reads)
        end = end_of(self.two)
        return Ran(self.trace, end, problems + (differences(self.expected, end) if self.expected else []))

    def _note_changes(self) -> None:
        def noting(side: Side) -> None:
            def note(change: Change) -> None:
                noted = Noted(self._step, side, change.resource.partition(".")[0], self.server(side).revision - 1)
                self.trace.changes.append(noted)

            self.server(side).follow(note)

        noting(Side.VIRTUAL)
        noting(Side.HOST)

    # -- the daemon --------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _alive(self) -> AsyncIterator[None]:
        """Keep a daemon running while the block does: whenever one has died, another is started."""
        async with helped_by(self._keep()):
            yield

    async def _keep(self) -> None:
        while True:
            self.traffic.death = death = asyncio.Event()
            virtual, host = (self.traffic.line(self.server(side), side) for side in (Side.VIRTUAL, Side.HOST))
            served = [(self.workload.config, virtual)]
            async with between(host, served, user=DAEMON, tenant=DAEMON) as daemon:
                daemon.process.frozen_objects._clusters.add("vc")  # a run's objects are not to stay for ever
                self._daemon = daemon
                self._started.set()
                await death.wait()
                self._started.clear()
            await asyncio.sleep(self._away)

    # -- the script and what goes wrong ------------------------------------------------------------

    async def _script(self) -> None:
        await asyncio.sleep(1)
        for number, act in enumerate(self.workload.steps):
            self._step = number
            await perform(act, self.two)
            await asyncio.sleep(STEP / 2)
            self._disturb(number)
            await asyncio.sleep(STEP / 2)

    def _disturb(self, step: int) -> None:
        match self.point:
            case Restart(step=when, side=side, revision=revision) if when == step:
                self._behind(self.server(side).lag(revision, user=DAEMON))
                self.traffic.death.set()
            case Travel(step=when, side=side, revision=revision, resource=resource) if when == step:
                self._behind(self.server(side).lag(revision, user=DAEMON, resource=resource, relist=True))
            case _:
                pass

    def _behind(self, lag: Lag) -> None:
        asyncio.get_running_loop().call_later(BEHIND, lag.end)

    async def _recover(self) -> None:
        """End the disturbance: list all objects without an event."""
        await asyncio.sleep(max(BEHIND, self._away))
        if isinstance(self.point, Unseen):
            for side in Side:
                self.server(side).expire_watches()
            await asyncio.sleep(1)
            self.traffic.blind = False

    async def _rest(self) -> list[str]:
        """Wait until both sides are in step, and then for nothing to be written any more."""
        await self._started.wait()
        assert self._daemon is not None
        await self._daemon.settled(patience=PATIENCE)
        since = len(self.traffic.writes)
        await asyncio.sleep(QUIET)
        return [f"in step, but written again: {sent}" for sent in self.traffic.writes[since:]]
