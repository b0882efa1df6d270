"""The faults: each goes wrong, lasts for its time, and is mended, in the ``with`` of it."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from kube_envtest import ControlPlane
from real_chaos.network import Cable
from real_chaos.script import Fault, Step
from real_chaos.stage import Stage, leads, until
from syncer.api import Side

#: What is begun by these gives the side that answers nobody meanwhile.
Inflict = Callable[[Stage, Step], AbstractContextManager[Side | None]]


def inflicted(stage: Stage, step: Step) -> AbstractContextManager[Side | None]:
    """The fault of a step; gives the side where no edit is possible while it lasts."""
    return _FAULTS[step.fault](stage, step)


@contextmanager
def _killed(stage: Stage, _step: Step) -> Iterator[None]:
    daemon = stage.leader
    stage.count_futile(daemon)
    daemon.kill()
    stage.daemons.remove(daemon)
    yield
    if stage.pair:
        until(lambda: leads(stage.daemons[0]), "the other daemon leads")
    stage.daemons.append(daemon)
    daemon.spawn()


@contextmanager
def _ended(stage: Stage, _step: Step) -> Iterator[None]:
    daemon = stage.leader
    stage.count_futile(daemon)
    stage.daemons.remove(daemon)
    daemon.send(signal.SIGTERM)
    yield
    code = daemon.wait()
    if code != 0:
        stage.violations.append(f"the daemon ended by SIGTERM with {code}: {daemon.log_text()[-2000:]}")
    stage.daemons.append(daemon)
    daemon.spawn()


@contextmanager
def _frozen(stage: Stage, step: Step) -> Iterator[None]:
    """With a second daemon, until that one leads: what the first one then does, it does too late."""
    daemon = stage.leader
    daemon.send(signal.SIGSTOP)
    stage.daemons.remove(daemon)
    try:
        if stage.pair:
            until(lambda: leads(stage.daemons[0]), "the other daemon leads")
        yield
        _last(step)
    finally:
        daemon.send(signal.SIGCONT)
        stage.daemons.append(daemon)
    if stage.pair:
        stage.edit(step.before)  # once more: now there is something that both could do
        until(lambda: daemon.readyz()[0] == 200 and not leads(daemon), "the daemon that was frozen stands by")


@contextmanager
def _server_killed(stage: Stage, step: Step) -> Iterator[Side | None]:
    plane = _plane(stage, step)
    with _mended(plane.kill_apiserver, plane.restart_apiserver):
        yield step.side
        stage.ready(500, str(step.side))


def _server_frozen(stage: Stage, step: Step) -> AbstractContextManager[Side | None]:
    plane = _plane(stage, step)
    return _lasting(step, plane.freeze, plane.thaw, away=step.side)


def _etcd_killed(stage: Stage, step: Step) -> AbstractContextManager[Side | None]:
    plane = _plane(stage, step)
    return _lasting(step, plane.kill_etcd, plane.restart_etcd, away=step.side)


def _disk_full(stage: Stage, step: Step) -> AbstractContextManager[Side | None]:
    plane = _plane(stage, step)
    return _lasting(step, plane.fill_disk, plane.free_disk)


@contextmanager
def _forgotten(stage: Stage, step: Step) -> Iterator[None]:
    """The watches of the daemon go on from where the API server has no history any more."""
    plane, cable = _plane(stage, step), _cable(stage, step)
    with _mended(cable.cut, cable.plug):
        yield
        plane.compact_etcd()
        plane.restart_apiserver()


@contextmanager
def _cut(stage: Stage, step: Step) -> Iterator[None]:
    cable = _cable(stage, step)
    with _mended(cable.cut, cable.plug):
        yield
        stage.ready(500, str(step.side))
        _last(step)


def _silent(stage: Stage, step: Step) -> AbstractContextManager[Side | None]:
    cable = _cable(stage, step)
    return _lasting(step, cable.silence, partial(cable.speak, reset=step.reset))


def _plane(stage: Stage, step: Step) -> ControlPlane:
    """The cluster that a step breaks."""
    assert step.side
    return stage.planes.apis[step.side].plane


def _cable(stage: Stage, step: Step) -> Cable:
    """The network that a step breaks."""
    assert step.side
    return stage.planes.cables[step.side]


@contextmanager
def _mended(start: Callable[[], object], end: Callable[[], object]) -> Iterator[None]:
    """Begin a fault, and end it after the block, whatever happens meanwhile."""
    start()
    try:
        yield
    finally:
        end()


@contextmanager
def _lasting(
    step: Step, start: Callable[[], object], end: Callable[[], object], *, away: Side | None = None
) -> Iterator[Side | None]:
    """A fault that is mended when its time is over."""
    with _mended(start, end):
        yield away
        _last(step)


def _last(step: Step) -> None:
    """Wait for as long as the fault lasts: there is nothing that could be waited for instead."""
    time.sleep(step.seconds)


_FAULTS: dict[Fault, Inflict] = {
    Fault.KILLED: _killed,
    Fault.ENDED: _ended,
    Fault.FROZEN: _frozen,
    Fault.SERVER_KILLED: _server_killed,
    Fault.SERVER_FROZEN: _server_frozen,
    Fault.ETCD_KILLED: _etcd_killed,
    Fault.DISK_FULL: _disk_full,
    Fault.FORGOTTEN: _forgotten,
    Fault.CUT: _cut,
    Fault.SILENT: _silent,
}
