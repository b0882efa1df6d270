"""The faults: each goes wrong, lasts for its time, and is mended, in the ``with`` of it."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from real_chaos.script import Fault, Step
from real_chaos.stage import Stage, leads, until
from syncer.api import Side

#: What is begun by these gives the side that answers nobody meanwhile.
Inflict = Callable[[Stage, Step], AbstractContextManager[Side | None]]


def inflicted(stage: Stage, step: Step) -> AbstractContextManager[Side | None]:
    """The fault of a step; gives the side where nobody can edit while it lasts."""
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
        stage.violations.append(f"the daemon that was told to end ended with {code}: {daemon.said()[-2000:]}")
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
    assert step.side
    plane = stage.planes.apis[step.side].plane
    plane.kill_apiserver()
    try:
        yield step.side
        stage.ready(500, str(step.side))
    finally:
        plane.restart_apiserver()


@contextmanager
def _server_frozen(stage: Stage, step: Step) -> Iterator[Side | None]:
    assert step.side
    with stage.planes.apis[step.side].plane.frozen():
        yield step.side
        _last(step)


@contextmanager
def _etcd_killed(stage: Stage, step: Step) -> Iterator[Side | None]:
    assert step.side
    plane = stage.planes.apis[step.side].plane
    plane.kill_etcd()
    try:
        yield step.side
        _last(step)
    finally:
        plane.restart_etcd()


@contextmanager
def _disk_full(stage: Stage, step: Step) -> Iterator[None]:
    assert step.side
    plane = stage.planes.apis[step.side].plane
    plane.fill_disk()
    try:
        yield
        _last(step)
    finally:
        plane.free_disk()


@contextmanager
def _forgotten(stage: Stage, step: Step) -> Iterator[None]:
    """The watches of the daemon go on from where the API server has no history any more."""
    assert step.side
    plane, cable = stage.planes.apis[step.side].plane, stage.planes.cables[step.side]
    cable.cut()
    try:
        yield
        plane.compact_etcd()
        plane.restart_apiserver()
    finally:
        cable.plug()


@contextmanager
def _cut(stage: Stage, step: Step) -> Iterator[None]:
    assert step.side
    cable = stage.planes.cables[step.side]
    cable.cut()
    try:
        yield
        stage.ready(500, str(step.side))
        _last(step)
    finally:
        cable.plug()


@contextmanager
def _silent(stage: Stage, step: Step) -> Iterator[None]:
    assert step.side
    cable = stage.planes.cables[step.side]
    cable.silence()
    try:
        yield
        _last(step)
    finally:
        cable.speak(reset=step.reset)


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
