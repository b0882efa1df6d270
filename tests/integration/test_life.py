"""The daemon starts, stands by, takes over and ends."""

import random
import signal
import sys
import time
from collections.abc import Callable

import pytest
from api import eventually
from load import Load
from scene import Scene

from hack.bench.daemon import Process
from syncer.api import Key, Obj, dig, key_of
from syncer.testing.objects import configmap

pytestmark = pytest.mark.controlplane

#: Short, so that a takeover can be waited for; in the same proportion as the defaults. How soon it comes is tested in
#: virtual time: a daemon that is denied the CPU for some seconds loses the lease, and rightly so.
ELECTION = {"enabled": True, "leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}
LEASE_SECONDS = 6.0


def leads(daemon: Process) -> bool:
    return daemon.total("leader_election_master_status") == 1


def lease(scene: Scene) -> Obj:
    found = scene.host.get("Lease", Key(scene.host_namespace, f"vsyncer-{scene.name}"))
    assert found is not None
    return found


def must_not_both_lead(scene: Scene, *daemons: Process) -> list[Process]:
    """Return those that lead, of which there must not be two while the lease stays with one."""
    before = dig(lease(scene), "spec.leaseTransitions")
    leading = [each for each in daemons if leads(each)]
    assert len(leading) < 2 or dig(lease(scene), "spec.leaseTransitions") != before
    return leading


def two(scene: Scene) -> tuple[Process, Process]:
    """Return a leader and one that stands by."""
    config = scene.config(leaderElection=ELECTION)
    first = scene.start(config)
    eventually(lambda: leads(first), "the first one leads")
    second = scene.start(config)
    [leader] = eventually(lambda: must_not_both_lead(scene, first, second), "one leads")[:1]
    return (first, second) if leader is first else (second, first)


def has_led(daemon: Process) -> bool:
    return '"message":"leading"' in daemon.log_text().replace(": ", ":")


def copied(scene: Scene, namespace: str, name: str) -> None:
    """One more object arrives on the host."""
    scene.virtual.create(configmap(name, namespace=namespace))
    scene.copied("ConfigMap", Key(namespace, name))


def writes(daemon: Process) -> float:
    return daemon.requests("syncer_writes_total")


def wait_for_writes(daemon: Process) -> None:
    eventually(lambda: writes(daemon) > 30, "it works")


def test_when_the_leader_is_killed_the_other_takes_over(scene: Scene, figure: Callable[[str], None]) -> None:
    namespace = scene.namespace()
    first, second = two(scene)
    copied(scene, namespace, "a")
    assert writes(first) + writes(second) > 0
    assert writes(second) == 0 or has_led(second)
    first.kill()
    start = time.monotonic()
    scene.virtual.create(configmap("b", namespace=namespace))
    eventually(lambda: leads(second), "the second one leads")
    scene.copied("ConfigMap", Key(namespace, "b"))
    figure(f"took over after {time.monotonic() - start:.1f} s of a lease of {LEASE_SECONDS:g} s")
    scene.agree()


def test_a_leader_releases_the_lease_on_sigterm_and_the_other_takes_over(
    scene: Scene, figure: Callable[[str], None]
) -> None:
    namespace = scene.namespace()
    first, second = two(scene)
    first.send(signal.SIGTERM)
    assert first.wait() == 0, first.log_text()
    start = time.monotonic()
    assert "released the Lease" in first.log_text()
    eventually(lambda: leads(second), "the second one leads")
    figure(f"took over after {time.monotonic() - start:.1f} s")
    copied(scene, namespace, "a")


def test_a_leader_that_loses_the_lease_stands_by_and_leads_again_later(scene: Scene) -> None:
    namespace = scene.namespace()
    first, second = two(scene)
    first.send(signal.SIGSTOP)
    eventually(lambda: leads(second), "the second one leads")
    first.send(signal.SIGCONT)
    eventually(lambda: "no longer leading, standing by" in first.log_text(), "the first one says that it stands by")
    copied(scene, namespace, "a")
    assert first.process is not None
    assert first.process.poll() is None
    must_not_both_lead(scene, first, second)
    assert first.readyz()[0] == 200
    before = writes(first)
    assert has_led(second)
    second.send(signal.SIGTERM)
    assert second.wait() == 0
    eventually(lambda: leads(first), "the first one leads again")
    copied(scene, namespace, "b")
    eventually(lambda: writes(first) > before, "the first one counts the write, once it has its response")
    assert dig(lease(scene), "spec.leaseTransitions") >= 2


def test_sigterm_under_load_finishes_begun_requests(scene: Scene, figure: Callable[[str], None]) -> None:
    namespaces = [scene.namespace() for _ in range(2)]
    load = Load(scene.virtual, random.Random(2), namespaces, ("ConfigMap", "Service"), rate=120, names=40)
    with load.running():
        for round_ in range(3):
            daemon = scene.start(scene.config(gracePeriod="1h"))
            wait_for_writes(daemon)
            start = time.monotonic()
            daemon.send(signal.SIGTERM)
            assert daemon.wait() == 0, daemon.log_text()
            figure(f"round {round_}: ended {time.monotonic() - start:.2f} s after SIGTERM")
            assert "grace period over" not in daemon.log_text()
            assert "Traceback" not in daemon.log_text()
    for kind in ("ConfigMap", "Service"):
        for host in scene.host.list(kind, selector=scene.selector):
            assert scene.is_copy(host), f"half made: {kind} {key_of(host)}"
    scene.start()
    scene.agree()


def test_python_m_syncer_is_the_same_daemon(scene: Scene) -> None:
    namespace = scene.namespace()
    daemon = scene.daemon()
    daemon.command = (sys.executable, "-m", "syncer", "run")
    daemon.start()
    copied(scene, namespace, "a")
    daemon.send(signal.SIGINT)
    assert daemon.wait() == 0
    assert "configmaps: create on the host side: " in daemon.log_text()
