"""The CPU and memory that a tenant's Pods use, from the host's ``metrics.k8s.io``.

The host is asked only when somebody asks here, and at most once in :data:`KEPT_SECONDS`.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncer.api.context import Settings
from syncer.api.durations import seconds
from syncer.api.errors import ClusterError, Forbidden, NotFound
from syncer.api.objects import Key, Obj, key_of
from syncer.api.paths import dig
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.kubelet.errors import RefusedRequest
from syncer.resources.kinds import POD_METRICS
from syncer.resources.pods.fields import CONTAINERS
from syncer.steps import STEP_OBJECTS
from syncer.translate import times
from syncer.translate.messages import LONGEST_QUOTE
from syncer.translate.quantities import quantity

#: Seconds for which the host's figures are kept; a metrics-server measures every 15 s.
KEPT_SECONDS = 10.0
#: Seconds after which the host is asked again when it gave no figures.
AGAIN_SECONDS = 5.0
#: The least CPU time of a container that has run, in seconds: to a metrics-server, 0 is a missing
#: figure.
LEAST_SECONDS = 0.001

#: Nano-units of a unit.
NANO = 10**9
#: The least number that is too large for a quantity.
TOO_LARGE = 1 << 63

#: The reasons why there are no figures, in words for a tenant.
ABSENT = "the host cluster does not measure Pods: it has no metrics.k8s.io"
FORBIDDEN = (
    "the syncer has no right to list pods.metrics.k8s.io on the host; its operator has to grant it"
)
SILENT = "the host cluster's metrics.k8s.io does not answer"


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """What a container uses: CPU in billionths of a core, memory in bytes.

    ``seconds`` is the CPU time used since the daemon first saw the container, ``started`` its start
    as an RFC 3339 time; ``""`` if that is unknown.
    """

    name: str
    cpu: int
    memory: int
    seconds: float
    started: str


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What a virtual Pod uses.

    ``time`` is when it was measured, over a ``window`` such as ``15.1s``.
    """

    key: Key
    uid: str
    node: str
    time: datetime
    window: str
    containers: tuple[ContainerUsage, ...]
    started: str

    @property
    def cpu(self) -> int:
        """Billionths of a core."""
        return sum(container.cpu for container in self.containers)

    @property
    def memory(self) -> int:
        """Bytes."""
        return sum(container.memory for container in self.containers)

    @property
    def seconds(self) -> float:
        """The CPU time of all containers since the daemon first observed them."""
        return sum(container.seconds for container in self.containers)


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What the tenant's Pods on a node use together; ``seconds`` is the CPU time since the first
    look.
    """

    cpu: int
    memory: int
    seconds: float
    time: datetime
    window: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A virtual Pod, by its key and uid, that has a copy, and the containers that were sent."""

    key: Key
    uid: str
    copy: Obj
    containers: frozenset[str]


class Usages:
    """Reads figures of the host, and keeps them for a moment.

    ``copied`` returns a host pod with its virtual Pod, by the host key; None for a pod of others.
    ``say`` is called with the reason why there are no figures, in words for everybody and in
    detail; both are empty if there are figures.
    """

    def __init__(
        self,
        settings: Settings,
        host: SideClient,
        copied: Callable[[Key], Copied | None],
        say: Callable[[str, str], None],
    ) -> None:
        self._settings = settings
        self._host = host
        self._copied = copied
        self._say = say
        self._lock = asyncio.Lock()
        self._until = 0.0
        self._why = ""
        self._pods: Mapping[Key, PodUsage] = {}
        self._nodes: Mapping[str, NodeUsage] = {}

    async def pods(self) -> Mapping[Key, PodUsage]:
        """Return the figures of all measured Pods, by virtual key.

        Raises:
            RefusedRequest: The host gives no figures.
        """
        await self._refresh()
        return self._pods

    async def nodes(self) -> Mapping[str, NodeUsage]:
        """Return the figures of all nodes with measured Pods, by name.

        Raises:
            RefusedRequest: The host gives no figures.
        """
        await self._refresh()
        return self._nodes

    async def is_served(self) -> bool:
        """Return True if the host has the API, whether or not it answers at the moment.

        Raises:
            ClusterError: The host doesn't answer.
        """
        try:
            await self._host.fetch(f"/apis/{POD_METRICS.api_version}")
        except NotFound as error:
            self._say(ABSENT, str(error))
            return False
        if self._why in ("", ABSENT):
            self._say("", "")
        return True

    async def _refresh(self) -> None:
        async with self._lock:
            clock = asyncio.get_running_loop().time
            if clock() >= self._until:
                try:
                    await self._read()
                except ClusterError as error:
                    self._why = _why(error)
                    details = str(error)
                    kept = AGAIN_SECONDS
                else:
                    self._why = ""
                    details = ""
                    kept = KEPT_SECONDS
                self._until = clock() + kept
                self._say(self._why, details)
            if self._why:
                raise RefusedRequest(503, self._why)

    async def _read(self) -> None:
        """Read the figures from the host.

        Raises:
            ClusterError: The host gives none.
        """
        found: dict[Key, PodUsage] = {}
        selector = self._settings.marks.selector(self._settings.identity)
        for namespace in self._settings.names.host_namespaces() or ("",):
            number = 0
            async for page in self._host.list_pages(
                POD_METRICS,
                namespace=namespace,
                selector=selector,
            ):
                for raw in page.items:
                    number += 1
                    if number % STEP_OBJECTS == 0:
                        await asyncio.sleep(0)
                    if usage := self._usage(codec.decode(raw)):
                        found[usage.key] = usage
        self._pods = found
        self._nodes = _by_node(found, self._nodes)

    def _usage(self, figures: Obj) -> PodUsage | None:
        """Return the figures of a Pod of the tenant, with only the containers that it was sent
        with.

        Return None for other Pods, and if the figures are malformed or have none of the containers.
        """
        copied = self._copied(key_of(figures))
        if copied is None:
            return None
        node = dig(copied.copy, "spec.nodeName")
        if not node:
            return None

        earlier = self._pods.get(copied.key)
        if earlier is not None and earlier.uid != copied.uid:
            earlier = None
        own = _starts(copied)
        containers = []
        try:
            time = times.read(figures["timestamp"])
            window = str(figures["window"])
            passed = 0.0
            if earlier is not None:
                passed = (time - earlier.time).total_seconds()
            for each in figures["containers"]:
                if each["name"] in own:
                    started = own[each["name"]]
                    containers.append(_container(each, started, window, passed, earlier))
        except (KeyError, TypeError, ValueError):
            return None
        if not containers:
            return None

        started = dig(copied.copy, "status.startTime") or ""
        own_containers = tuple(containers)
        return PodUsage(copied.key, copied.uid, node, time, window, own_containers, started)


def _container(
    figures: Obj,
    started: str,
    window: str,
    passed: float,
    before: PodUsage | None,
) -> ContainerUsage:
    """Return the figures of a container.

    Its CPU time continues from the figures ``before``, which are ``passed`` seconds old.
    """
    cpu = amount(figures["usage"]["cpu"], NANO)
    memory = amount(figures["usage"]["memory"])
    name = figures["name"]
    earlier = None
    if before is not None:
        earlier = next((each for each in before.containers if each.name == name), None)
    if earlier is None or earlier.started != started:
        used = _at_first(cpu, window)
    else:
        used = earlier.seconds + max(passed, 0.0) * cpu / NANO
    return ContainerUsage(name, cpu, memory, used, started)


def amount(text: str, unit: int = 1) -> int:
    """Return a quantity in parts of its unit, rounded up: ``amount("250m", NANO)`` is 250,000,000.

    Raises:
        ValueError: ``text`` is no quantity, or a negative or too large one.
    """
    number = quantity(text)
    if number is None or not 0 <= number < TOO_LARGE:
        raise ValueError(f"{text[:LONGEST_QUOTE]!r} is no quantity")
    return math.ceil(number * unit)


def _at_first(cpu: int, window: str) -> float:
    """Return the CPU seconds used within a window; a counter begins with them."""
    return max(cpu * seconds(window) / NANO, LEAST_SECONDS)


def _starts(copied: Copied) -> dict[str, str]:
    """Return the containers of a Pod that were sent to the host, each with the time of its start.

    Containers that the host has added are left out.
    """
    own = dict.fromkeys(copied.containers, "")
    for kind in CONTAINERS:
        statuses = dig(copied.copy, f"status.{kind.removesuffix('s')}Statuses") or ()
        for status in statuses:
            if status.get("name") in own:
                own[status["name"]] = dig(status, "state.running.startedAt") or ""
    return own


def _by_node(pods: Mapping[Key, PodUsage], before: Mapping[str, NodeUsage]) -> dict[str, NodeUsage]:
    """Return the sums by node; their CPU time continues from ``before``."""
    on_node: dict[str, list[PodUsage]] = {}
    for pod in pods.values():
        on_node.setdefault(pod.node, []).append(pod)
    found = {}
    for node, of_node in on_node.items():
        latest = max(of_node, key=lambda pod: pod.time)
        earlier = before.get(node)
        cpu = sum(pod.cpu for pod in of_node)
        memory = sum(pod.memory for pod in of_node)
        if earlier is None:
            used = _at_first(cpu, latest.window)
        else:
            passed = (latest.time - earlier.time).total_seconds()
            used = earlier.seconds + max(passed, 0.0) * cpu / NANO
        found[node] = NodeUsage(cpu, memory, used, latest.time, latest.window)
    return found


def _why(error: ClusterError) -> str:
    if isinstance(error, NotFound):
        return ABSENT
    if isinstance(error, Forbidden):
        return FORBIDDEN
    return SILENT
