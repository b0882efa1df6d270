"""The same script in several virtual clusters at once, which replicas share by shards: at a write, one of them is lost.

The clusters share a host namespace. Only the holder of the Lease of a cluster's shard may write for it, and in the end
all is as where no replica was lost.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from chaos.daemons import DAEMONS, OURS, SYSTEM, Cast, Daemon
from chaos.servers import Server, Wire
from harness import CLUSTER, namespace
from sieve_end import End, differences, end_of
from sieve_run import QUIET, Loss, Lost, Ran, Trace, in_time
from sieve_safety import Safety, cluster_of
from sieve_wire import Sent, Traffic, is_question
from sieve_workload import Reactions, Stage, Workload, perform

from kube_envtest import Change
from kube_envtest.apiserver.faults import Rule
from syncer.api import Side, annotations_of, uid_of
from syncer.clusters.transport import HttpRequest, HttpResponse
from syncer.config import SyncerConfig
from syncer.daemon.process import Process

#: Virtual clusters: the script's own, and others. The first three are in a shard each, and ann leads that of red.
NAMES = (CLUSTER, "red", "blue", "green", "white")
#: Workloads whose copies have one place for all virtual clusters, so that whoever is first has it.
CONTESTED = frozenset({"published-services", "tenant-crds"})
#: Shards.
SHARDS = 3
#: Seconds between two steps of a script, and for which a replica is lost: longer than its Lease.
STEP, LOST = 6.0, 20.0
#: Seconds in which all comes right after the script: the rest of the loss, a take-over, and retries.
HEALING = 90.0


def cast(clusters: int, replicas: int) -> Cast:
    """Return so many virtual clusters, and replicas that share them."""
    return Cast(NAMES[:clusters], DAEMONS[:replicas], SHARDS)


def points(trace: Trace) -> Iterator[Lost]:
    """All points of a run, in the order in which they would be reached."""
    for write in range(len(trace.writes)):
        yield from (Lost(write, how, after) for how in get_args(Loss) for after in (False, True))


def run(workload: Workload, cast: Cast, point: Lost | None = None, expected: End | None = None) -> Ran:
    """Run a workload in virtual time; ``expected`` is the end of the undisturbed run."""
    return in_time(_Run(workload, cast, point, expected))


class _Wire(Wire):
    """The way of a process to a server, on which one write is its last for a while."""

    def __init__(self, server: Any, replica: "_Replica", thawed: asyncio.Event) -> None:
        super().__init__(server, replica.user, thawed)
        self._server, self._replica = server, replica

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.method == "GET" or is_question(request.path) or "/leases" in request.path:
            return await super().send(request)
        point = self._replica.scene.met(self._server, request)
        if point and not point.after:
            self._replica.lose(point.how)
        response = await super().send(request)
        if point and point.after:
            self._replica.lose(point.how)
        return response


class _Replica(Daemon):
    """A replica that can be lost."""

    def __init__(self, name: str, scene: "_Run", cast: Cast, served: Sequence[tuple[SyncerConfig, Any]]) -> None:
        super().__init__(name, scene.host, served, scene.problems.append, shards=cast.shards)
        self.scene = scene
        self._losing: asyncio.Task[None] | None = None

    def _wire(self, server: Server) -> Wire:
        wire = _Wire(server, self, self._thawed)
        self._wires.append(wire)
        return wire

    def _watch_workers(self, process: Process) -> None:
        super()._watch_workers(process)
        process.frozen_objects._clusters.update(NAMES)  # a run's objects are not to stay for ever

    def lose(self, how: Loss) -> None:
        """Let it be lost from now on, for some seconds."""
        match how:
            case "killed":
                for wire in self._wires:
                    wire.die(land=True)
            case "frozen":
                self.freeze()
            case "cut off":
                self._cut = self.scene.host.faults.add(Rule(user=self.user, reset="before"))
        self._losing = asyncio.create_task(self._lost(how))

    async def _lost(self, how: Loss) -> None:
        if how == "killed":
            await self.kill(land=True)
        await asyncio.sleep(LOST)
        match how:
            case "killed":
                self.start()
            case "frozen":
                self.thaw()
            case "cut off":
                self.scene.host.faults.remove(self._cut)


class _Run:
    def __init__(self, workload: Workload, cast: Cast, point: Lost | None, expected: End | None) -> None:
        self.workload, self.point, self.expected = workload, point, expected
        self.trace, self.problems = Trace(steps=len(workload.steps)), list[str]()
        main = Stage()
        self.host: Any = main.host
        self.stages = [main, *(main.beside(name) for name in NAMES[1 : len(cast.tenants)])]
        names = [stage.cluster for stage in self.stages]
        self.safety = [Safety(each, workload, Traffic(), {*names} - {each.cluster}) for each in self.stages]
        self._cast = cast
        #: The virtual cluster of each uid.
        self._clusters: dict[str, str] = {}
        self._replicas: list[_Replica] = []

    def met(self, server: Any, request: HttpRequest) -> Lost | None:
        """Note a write; gives what is to happen at it."""
        number, point = len(self.trace.writes), self.point
        side = Side.HOST if server is self.host else Side.VIRTUAL
        self.trace.writes.append(Sent(side, request.method, request.path.partition("?")[0]))
        return point if point and point.write == number else None

    async def play(self) -> Ran:
        self.host.put(namespace(SYSTEM))
        await self._all(*self.workload.given)
        for stage, safety in zip(self.stages, self.safety, strict=True):
            safety.start()
            stage.virtual.follow(self._on_virtual(stage.cluster))
            Reactions(stage, self.workload.reactions if stage is self.stages[0] else ()).start()
        self.host.follow(self._on_host)
        served = [(_named(self.workload.config, stage.cluster), stage.virtual) for stage in self.stages]
        self._replicas = [_Replica(name, self, self._cast, served) for name in self._cast.daemons]
        for replica in self._replicas:
            replica.start()
        try:
            await self._script()
            problems = [*self.problems, *(each for safety in self.safety for each in safety.problems)]
            problems += await self._written_again()
        finally:
            for replica in self._replicas:
                replica._losing and replica._losing.cancel()
                await replica.kill(land=False)
        end = {f"{stage.cluster}: {identity}": obj for stage in self.stages for identity, obj in self._end(stage)}
        return Ran(self.trace, end, problems + (differences(self.expected, end) if self.expected else []))

    async def _all(self, *acts: Any) -> None:
        for act in acts:
            for stage in self.stages:
                await perform(act, stage)

    async def _script(self) -> None:
        await asyncio.sleep(STEP)
        for act in self.workload.steps:
            await self._all(act)
            await asyncio.sleep(STEP)
        await asyncio.sleep(LOST + HEALING)

    async def _written_again(self) -> list[str]:
        since = len(self.trace.writes)
        await asyncio.sleep(QUIET)
        return [f"in step, but written again: {sent}" for sent in self.trace.writes[since:]]

    def _end(self, stage: Stage) -> Iterator[tuple[str, Any]]:
        others = {each.cluster for each in self.stages} - {stage.cluster}
        for identity, obj in end_of(stage).items():
            is_lease = " leases." in identity
            if not is_lease and not (isinstance(obj, dict) and "metadata" in obj and cluster_of(obj) in others):
                yield identity, obj

    # -- what must hold at each write --------------------------------------------------------------

    def _on_virtual(self, cluster: str) -> Any:
        def changed(change: Change) -> None:
            self._clusters[uid_of(change.obj)] = cluster
            self._check_leader(change, cluster)

        return changed

    def _on_host(self, change: Change) -> None:
        if not change.user.startswith(OURS) or change.resource.startswith(("leases", "events")):
            return
        cluster = cluster_of(change.before or change.obj)
        uid = annotations_of(change.obj).get("vsyncer.dev/virtual-uid")
        self._check_leader(change, cluster)
        if uid and self._clusters.get(uid, cluster) != cluster:
            self.problems.append(f"{_described(change)} is of {self._clusters[uid]}, and has the mark of {cluster}")

    def _check_leader(self, change: Change, cluster: str) -> None:
        """Check that a user that writes holds the Lease of the virtual cluster."""
        if not change.user.startswith(OURS) or change.resource.startswith("events"):
            return
        lease = self.host.get("leases.coordination.k8s.io", f"{SYSTEM}/{self._cast.lease(cluster)}")
        holder = (lease or {"spec": {}})["spec"].get("holderIdentity")
        if holder != change.user:
            self.problems.append(f"{_described(change)} of {cluster} was written by {change.user} while {holder} led")


def _described(change: Change) -> str:
    metadata = change.obj["metadata"]
    return f"{change.resource} {metadata.get('namespace', '')}/{metadata['name']}"


def _named(config: SyncerConfig, cluster: str) -> SyncerConfig:
    """Return the same configuration for another virtual cluster."""
    given = config.model_dump(by_alias=True, exclude_unset=True)
    given["virtualClusters"] = [{**given["virtualClusters"][0], "name": cluster}]
    return type(config).model_validate(
        {name: value for name, value in given.items() if name not in ("cluster", "host")}
    )
