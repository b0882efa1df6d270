"""API servers that restart, freeze and forget: the daemon converges in the same process, and without a storm.

The planes here are this module's own, since other tests must not meet such trouble. They write audit logs, in which the
daemon is distinguished by its user.
"""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from api import Api, Loop, eventually
from load import Load
from scene import Scene

from hack.bench.daemon import Process
from kube_envtest import ControlPlane, start_all
from syncer.api import NotFound, Side, key_of
from syncer.testing.objects import configmap

pytestmark = pytest.mark.controlplane

#: The user that only daemons are.
USER = "syncer"
#: Copies that a stranger changes or deletes.
MEDDLED = 20
#: Seconds for which an API server is frozen.
FROZEN = 30.0
KINDS = ("ConfigMap", "Secret", "Service")
#: The virtual and host namespaces and kinds that a daemon watches, twice over: what catching up may cost.
CATCHING_UP = 120
#: Requests a second that are no storm: what was refused, or came to nothing, is tried again.
RETRIES = 2

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, Panic]
rules: [{level: Metadata, users: [syncer]}, {level: None}]
"""


class Audit:
    """Return the requests of the daemons to an API server since the last look, by verb and resource."""

    def __init__(self, file: Path) -> None:
        self._file, self._at = file, 0

    def asked(self) -> Counter[str]:
        """Count the requests since the last call; a watch counts when it begins."""
        found: Counter[str] = Counter()
        with self._file.open("rb") as lines:
            lines.seek(self._at)
            for line in lines:
                event = json.loads(line)
                if not (event["verb"] == "watch" and event["stage"] == "ResponseComplete"):
                    found[_described(event)] += 1
            self._at = lines.tell()
        return found


def _described(event: dict[str, object]) -> str:
    target = event.get("objectRef")
    resource = target.get("resource", "") if isinstance(target, dict) else event["requestURI"]
    return f"{event['verb']} {resource}"


@pytest.fixture(scope="module")
def own_planes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, ControlPlane]]:
    """Two planes of this module's own: virtual, host."""
    folder = tmp_path_factory.mktemp("audit")
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    made = []
    for side in Side:
        flags = [f"--audit-policy-file={policy}", f"--audit-log-path={folder / side}", "--audit-log-mode=blocking"]
        plane = ControlPlane(f"own-{side}", apiserver_flags=flags)
        plane.add_user(USER, "system:masters")
        made.append(plane)
    virtual, host = made
    start_all(virtual, host)
    yield virtual, host
    virtual.stop()
    host.stop()


@pytest.fixture(scope="module")
def audits(
    own_planes: tuple[ControlPlane, ControlPlane], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Audit, Audit]:
    """The audit logs: virtual, host."""
    folder = next(tmp_path_factory.getbasetemp().glob("audit*"))
    return Audit(folder / Side.VIRTUAL), Audit(folder / Side.HOST)


@pytest.fixture
def scene(own_planes: tuple[ControlPlane, ControlPlane], loop: Loop, tmp_path: Path) -> Iterator[Scene]:
    """A virtual cluster on the planes of this module."""
    virtual, host = own_planes
    made = Scene(Api(loop, virtual, Side.VIRTUAL), Api(loop, host, Side.HOST), tmp_path)
    yield made
    made.close()
    made.virtual.close()
    made.host.close()


def busy(scene: Scene, *, rate: float = 40) -> Load:
    """Tenants in three namespaces."""
    namespaces = [scene.namespace() for _ in range(3)]
    return Load(scene.virtual, random.Random(1), namespaces, KINDS, rate=rate, names=20)


def started(scene: Scene) -> tuple[Process, int]:
    daemon = scene.start(scene.config(user=USER))
    return daemon, daemon.pid


def meddle(scene: Scene) -> None:
    """Change and delete copies on the host. The daemon may have deleted one since they were listed."""
    copies = scene.host.list("ConfigMap", selector=scene.selector)
    for index, copy in enumerate(copies[:MEDDLED]):
        with suppress(NotFound):
            if index % 2:
                scene.host.delete("ConfigMap", key_of(copy))
            else:
                scene.host.patch("ConfigMap", key_of(copy), {"data": {"meddled": "yes"}})


def check(daemon: Process, pid: int) -> None:
    """It is the process that it was, and it has never written what changed nothing."""
    assert daemon.process is not None
    assert (daemon.process.poll(), daemon.pid) == (None, pid), daemon.log_text()
    assert daemon.readyz()[0] == 200
    assert daemon.requests("syncer_futile_writes_total") == 0


@pytest.mark.parametrize("side", list(Side))
def test_an_api_server_restarts_under_load(scene: Scene, side: Side, figure: Callable[[str], None]) -> None:
    load = busy(scene)
    daemon, pid = started(scene)
    plane = scene.virtual.plane if side is Side.VIRTUAL else scene.host.plane
    with load.running():
        eventually(lambda: load.done["patch"] > 20, "the load runs")
        before, writes, began = daemon.requests(), sum(load.done.values()), time.monotonic()
        plane.kill_apiserver()
        eventually(lambda: daemon.readyz()[0] == 500, "the daemon says that it is not ready")
        assert f"{side}" in daemon.readyz()[1]
        plane.restart_apiserver()
        eventually(lambda: daemon.readyz()[0] == 200, "the daemon is ready again")
    scene.agree()
    check(daemon, pid)
    made, changes = daemon.requests() - before, sum(load.done.values()) - writes
    figure(f"{made:.0f} requests over the restart and {changes} changes")
    assert made <= 2 * changes + CATCHING_UP + RETRIES * (time.monotonic() - began)


@pytest.mark.parametrize("side", list(Side))
def test_an_api_server_is_frozen_for_30_seconds_under_load(
    scene: Scene, side: Side, figure: Callable[[str], None]
) -> None:
    load = busy(scene)
    daemon, pid = started(scene)
    plane = scene.virtual.plane if side is Side.VIRTUAL else scene.host.plane
    with load.running():
        eventually(lambda: load.done["patch"] > 20, "the load runs")
        before, writes = daemon.requests(), sum(load.done.values())
        began = time.monotonic()
        with plane.frozen():
            end = time.monotonic() + FROZEN
            if side is Side.VIRTUAL:
                meddle(scene)
            eventually(lambda: time.monotonic() > end, "the time is over")
            during, frozen = daemon.requests() - before, time.monotonic() - began
    scene.agree()
    check(daemon, pid)
    made, changes = daemon.requests() - before, sum(load.done.values()) - writes
    figure(f"{during:.0f} requests while frozen, {made:.0f} until all agreed, for {changes} changes")
    # There is work for each change of a tenant, and of the stranger.
    assert during <= 2 * changes + MEDDLED + RETRIES * frozen
    assert made <= 2 * changes + CATCHING_UP + RETRIES * (time.monotonic() - began)


def restart(*planes: ControlPlane) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda plane: plane.restart_apiserver(), planes))


@contextmanager
def cut_off(daemon: Process, *planes: ControlPlane) -> Iterator[None]:
    """Within the block the daemon hears nothing, not even later; after it, history has been compacted.

    The daemon is stopped first, and the API servers are restarted, as what they had sent would wait in its sockets.
    """
    daemon.send(signal.SIGSTOP)
    restart(*planes)
    yield
    for plane in planes:
        plane.compact_etcd()
    restart(*planes)
    daemon.send(signal.SIGCONT)


def test_history_is_compacted_while_the_daemon_is_cut_off(
    scene: Scene, audits: tuple[Audit, Audit], figure: Callable[[str], None]
) -> None:
    load = busy(scene)
    daemon, pid = started(scene)
    with load.running():
        eventually(lambda: load.done["patch"] > 20, "the load runs")
    scene.agree()
    namespace = scene.namespaces[0]
    with cut_off(daemon, scene.virtual.plane, scene.host.plane):
        for number in range(30):
            scene.virtual.create(configmap(f"meanwhile-{number}", namespace=namespace))
        for each in scene.virtual.list("Secret", namespace=namespace)[:5]:
            scene.virtual.delete("Secret", key_of(each))
        for each in scene.host.list("Service", namespace=scene.host_namespace)[:5]:
            scene.host.delete("Service", key_of(each))
        for audit in audits:
            audit.asked()
    scene.agree()
    check(daemon, pid)
    virtual, host = (audit.asked() for audit in audits)
    figure(f"virtual {dict(virtual)}, host {dict(host)}")
    assert min(virtual["list configmaps"], host["list services"]) >= 1, "no watch has got a 410"
    # Once or twice, and again where an API server whose caches fill has said 429 or has cut a watch.
    assert max(number for request, number in (virtual + host).items() if request.startswith(("list", "watch"))) <= 40
    # A restarted API server may tell by an Event that it repairs the address of a Service; that goes up.
    asked = {request: number for request, number in (virtual + host).items() if not request.endswith(" events")}
    others = Counter(
        {request: number for request, number in asked.items() if not request.startswith(("list", "watch"))}
    )
    # Nobody saw those Secrets go; a list only lacks them, so each is asked for before its copy is deleted.
    # Each deletion for what a list lacks looks for the virtual object, and for the identity in a ConfigMap.
    looks = {"get secrets": 5, "get configmaps": 5}
    least = Counter({"create configmaps": 30, **looks, "delete secrets": 5, "create services": 5})
    assert least <= others
    writes = {request for request in others if not request.startswith("get")}
    assert writes == {"create configmaps", "delete secrets", "create services"}, "nothing else has changed"
    assert others.total() <= 2 * least.total(), "a write is tried again where it was refused, and now and then only"


def test_idle_daemon_sends_only_watches_and_the_lease(
    scene: Scene, audits: tuple[Audit, Audit], figure: Callable[[str], None]
) -> None:
    namespaces = [scene.namespace() for _ in range(3)]
    for number in range(300):
        scene.virtual.create(configmap(f"c-{number}", namespace=namespaces[number % 3]))
    election = {"enabled": True, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
    daemon = scene.start(scene.config(user=USER, leaderElection=election))
    scene.agree()
    eventually(lambda: daemon.depth() == 0, "nothing waits")
    eventually(
        lambda: "default/kubernetes can't have" in daemon.readyz()[1], "the address of its own Service was refused"
    )
    cpu, start = daemon.cpu(), time.monotonic()
    for audit in audits:
        audit.asked()
    eventually(lambda: time.monotonic() > start + 20, "20 seconds have passed")
    virtual, host = (audit.asked() for audit in audits)
    figure(f"idle for 20 s: virtual {dict(virtual)}, host {dict(host)}, {daemon.cpu() - cpu:.2f} s CPU")
    # A failed renewal looks at the lease, Events may be told again, and each server is probed every ten seconds.
    probes = ("get /readyz", "get /api")
    quiet = ("watch", "get leases", "patch leases", "create events", "patch events")
    assert [request for request in (virtual + host) if not request.startswith(quiet) and request not in probes] == []
    assert virtual["patch leases"] == 0
    assert 1 <= host["patch leases"] <= time.monotonic() - start, "one in two seconds, and again where it failed"
