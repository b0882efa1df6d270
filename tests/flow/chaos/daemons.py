"""The daemons of a play, each of which can be killed, frozen, stopped and started again.

They are candidates for one Lease, or replicas that share the virtual clusters by shards.
"""

import asyncio
import functools
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from harness import built_in, utcnow
from sampled import config_model, to_host

from chaos.servers import Server, Wire
from syncer.api import Key, Side, SyncerError, SyncRequest
from syncer.clusters.client import SideClient
from syncer.config import SyncerConfig
from syncer.daemon.fleet.fleet import ServedFleet
from syncer.daemon.fleet.shared_fleet import SharedFleet
from syncer.daemon.process import Process
from syncer.daemon.tasks import beside
from syncer.leaderelection.lease import Lease
from syncer.leaderelection.rendezvous import shard_of
from syncer.leaderelection.shards import Shards, lease_name
from syncer.observe.metrics import Metrics
from syncer.testing.merge import merged

#: Names for virtual clusters and daemons.
TENANTS, DAEMONS = ("red", "blue", "green", "white", "black"), ("ann", "bob", "cat", "dan")
#: Where the Lease is, apart from the tenants' host namespaces.
SYSTEM, LEASE = "vsyncer-system", "vsyncer"
#: How the names of all our users begin; people's don't.
OURS = "vsyncer-"
#: Seconds before a process that could not start is started again.
CRASH_SECONDS = 5.0
#: Shards of replicas: the first and third tenant are in one, which ann takes at first; the second is in one of bob.
SHARDS = 5
EXAMPLES = Path(__file__).parents[3] / "examples" / "custom"


@functools.cache
def configured(cluster: str, home: str, *, everything: bool) -> SyncerConfig:
    """All kinds for one tenant; ``everything``: ConfigMaps and Secrets that nothing uses, too, and patrolled.

    Of the other tenant no test looks after what an event should have brought.
    """
    model = config_model(built_in())
    custom = yaml.safe_load((EXAMPLES / "cert-manager.yaml").read_text())["sync"]["custom"]
    unused = {"configMaps": {"all": everything}, "secrets": {"all": everything}}
    sync = {
        "toHost": merged(dict(to_host()), unused),
        "fromHost": {"customResourceDefinitions": {"enabled": True}},
        "custom": custom,
    }
    patrol = {"enabled": everything}
    return model.model_validate({"cluster": cluster, "host": {"namespace": home}, "sync": sync, "patrol": patrol})


@dataclass(frozen=True, slots=True)
class Cast:
    """The virtual clusters and daemons of a play. With one shard the daemons are candidates for one Lease."""

    tenants: tuple[str, ...] = TENANTS[:3]
    daemons: tuple[str, ...] = DAEMONS[:2]
    shards: int = 1

    @classmethod
    def of(cls, clusters: int, replicas: int) -> "Cast":
        """Return so many virtual clusters, and replicas that share them; 0: two candidates for one Lease."""
        return cls(TENANTS[:clusters], DAEMONS[: replicas or 2], SHARDS if replicas else 1)

    def lease(self, tenant: str) -> str:
        """Return the name of the Lease whose holder may write for a virtual cluster."""
        return LEASE if self.shards == 1 else lease_name(LEASE, shard_of(tenant, self.shards))


#: Two candidates for one Lease.
CANDIDATES = Cast()


class _Served(ServedFleet):
    """The virtual clusters of a replica, all of which it serves from its start to its end."""

    def __init__(self, process: Process, names: Collection[str]) -> None:
        super().__init__(process, ())
        self._names = names

    @property
    def wanted(self) -> Collection[str]:
        """Return the names of all."""
        return self._names

    def serve_only(self, keeps: Callable[[str], bool]) -> None:
        """Keep all, whoever is to."""

    def assign(self) -> None:
        """Keep all."""


class Daemon:
    """One candidate or replica, in one process after the other."""

    def __init__(
        self,
        name: str,
        host: Server,
        tenants: Sequence[tuple[SyncerConfig, Server]],
        wrong: Callable[[str], None],
        *,
        shards: int,
    ) -> None:
        self.name, self.started = name, 0
        #: Seconds by which its wall clock is wrong.
        self.skew = 0.0
        self.process: Process | None = None
        self._host, self._tenants, self._wrong = host, tenants, wrong
        self._shards, self._stopped, self._thawed = shards, asyncio.Event(), asyncio.Event()
        self._thawed.set()
        self._wires: list[Wire] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def user(self) -> str:
        """The user of the present process, on all servers and in the Lease."""
        return f"{OURS}{self.name}-{self.started}"

    @property
    def running(self) -> bool:
        """True if there is a process."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start a process, if there is none."""
        if not self.running:
            self._task = asyncio.create_task(self._live())

    async def kill(self, *, land: bool) -> None:
        """As SIGKILL: nothing more goes out; requests under way are still done by the servers, or are not."""
        for wire in self._wires:
            wire.die(land=land)
        self.thaw()
        await self._end()

    def freeze(self) -> None:
        """As SIGSTOP: nothing goes out and no answer is read until it is thawed. What was sent is done."""
        self._thawed.clear()

    def thaw(self) -> None:
        """As SIGCONT."""
        self._thawed.set()

    async def stop(self) -> None:
        """As SIGTERM: it finishes what it has begun and gives the Lease up, or is killed after some time."""
        self.thaw()
        self._stopped.set()
        if self.process and self._shards == 1:
            self.process.queue.close()
        if self._task:
            await asyncio.wait({self._task}, timeout=20)
        await self.kill(land=False)

    async def _end(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=60)
            if not self._task.done():
                self._wrong(f"the daemon {self.user} was cancelled and lives on")
        self._task = self.process = None
        self._wires.clear()

    async def _live(self) -> None:
        while True:
            self.started += 1
            try:
                await self._serve()
            except SyncerError:
                me = asyncio.current_task()
                if me is not None and me.cancelling():
                    return  # asyncio.gather gives the error of a child, and forgets that it was cancelled
                await asyncio.sleep(CRASH_SECONDS)  # it could not start; whoever runs it starts it again
            except Exception as error:
                self._wrong(f"the daemon {self.user} died: {_all_of(error)}")
                return
            else:
                return

    async def _serve(self) -> None:
        here = SideClient("host", Side.HOST, self._wire(self._host))
        rng = random.Random(self.user)
        lease = Lease(here, key=Key(SYSTEM, LEASE), identity=self.user, random=rng.random, utcnow=self._utcnow)
        shards = self._shards_of(here, rng) if self._shards > 1 else None
        process = self.process = Process(
            host=here,
            metrics=Metrics(version="test"),
            workers=8,
            leads=shards.leads if shards else lambda cluster: True,
            until=shards.until if shards else lambda cluster: lease.until,
            utcnow=self._utcnow,
            rng=rng,
        )
        self._stopped.clear()
        shared = SharedFleet(process, self._fleet(process), shards) if shards else None
        for config, server in self._tenants:
            cluster = config.cluster()
            process.add(
                cluster.settings(),
                [(each.syncer, each.section) for each in cluster.enabled()],
                virtual=SideClient(cluster.name, Side.VIRTUAL, self._wire(server)),
                entries=cluster.custom_entries(),
            )
        self._watch_workers(process)
        await process.prepare()
        if shared:
            await self._share(process, shared)
            return
        async with process.running():
            await lease.lead(process.work)

    def _fleet(self, process: Process) -> ServedFleet:
        return _Served(process, [config.cluster().name for config, _ in self._tenants])

    def _shards_of(self, host: SideClient, rng: random.Random) -> Shards:
        return Shards(
            host,
            fleet=Key(SYSTEM, LEASE),
            number=self._shards,
            identity=self.user,
            random=rng.random,
            utcnow=self._utcnow,
        )

    async def _share(self, process: Process, shared: SharedFleet) -> None:
        """Work on the shards that this replica leads, until it is stopped; then hand them over, as the daemon does."""
        async with process.running(), beside(process.work()) as working:
            async with beside(shared.run()) as sharing, beside(self._stopped.wait()) as stopped:
                await asyncio.wait({working, sharing, stopped}, return_when=asyncio.FIRST_COMPLETED)
            process.queue.close()
            await asyncio.wait({working}, timeout=10)
        if not sharing.cancelled():
            sharing.result()

    def _wire(self, server: Server) -> Wire:
        wire = Wire(server, self.user, self._thawed)
        self._wires.append(wire)
        return wire

    def _utcnow(self) -> datetime:
        return utcnow() + timedelta(seconds=self.skew)

    def _watch_workers(self, process: Process) -> None:
        """Say so where two workers are at one request, or an error isn't one of those that may happen."""
        busy: Counter[SyncRequest] = Counter()
        handle = process.workers.handle

        async def handled(request: SyncRequest, *args: Any, **kwargs: Any) -> tuple[int, float]:
            busy[request] += 1
            if busy[request] > 1:
                self._wrong(f"two workers are at {request}")
            try:
                return await handle(request, *args, **kwargs)
            finally:
                busy[request] -= 1

        process.workers.handle = handled  # type: ignore[method-assign]


def _all_of(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_all_of(each) for each in error.exceptions)
    return repr(error)


def bugs(process: Process) -> Iterable[str]:
    """Return the errors of syncers outside of the error tree; nothing that happens here may cause any."""
    known = _names(SyncerError)
    for request, status in process.statuses.troubles():
        if status.error and status.error not in known:
            yield f"{request} of {request.cluster} raised {status.error}: {status.reason}"


def _names(error: type[BaseException]) -> set[str]:
    return {error.__name__}.union(*(_names(each) for each in error.__subclasses__()))
