"""Every point at which a run of a workload can be disturbed, by what the undisturbed run has shown."""

from collections.abc import Iterator, Mapping
from typing import get_args

from sieve_run import Lost, Noted, Point, Restart, Trace, Travel
from sieve_wire import Crash, How, Unseen

#: Seconds for which a daemon that has died is away: it is back at once, or misses the next step of the script.
AWAY = (0.2, 4.0)

#: Sieve's names of what is done to a run, by the class of its points.
PERTURBATIONS: Mapping[type[Point], str] = {
    Crash: "intermediate",
    Restart: "stale",
    Travel: "stale (time travel)",
    Unseen: "unobserved",
}


#: How many steps of the script an older state is old, besides that of the very beginning.
RECENT = 2


def points(trace: Trace, recent: int = RECENT) -> Iterator[Point]:
    """All points, in the order in which they would be reached, perturbation by perturbation.

    Older states are those of before each change in the ``recent`` latest steps, and of before the first change of each
    resource (where one resource alone is old, only after the last step).
    """
    for write in range(len(trace.writes)):
        for after in (False, True):
            yield from (Crash(write, after, away) for away in AWAY)
    for step in range(trace.steps):
        yield from _older(trace, step, recent)
    for event in range(len(trace.events)):
        yield from (Unseen(event, how) for how in get_args(How))


def _older(trace: Trace, step: int, recent: int) -> Iterator[Point]:
    """The older states of what the daemon reads: as it was before changes until then."""
    known = [noted for noted in trace.changes if noted.step <= step and (noted.side, noted.resource) in trace.reads]
    late = [noted for noted in known if step - noted.step < recent]
    first = list({(noted.side, noted.resource): noted for noted in reversed(known)}.values())
    for side, revision in dict.fromkeys((noted.side, noted.before) for noted in (*first, *late)):
        yield Restart(step, side, revision)
    for noted in dict.fromkeys((*first, *late) if step == trace.steps - 1 else late):
        yield Travel(step, noted.side, noted.resource, noted.before)


def described(point: Point, trace: Trace) -> str:
    """A point in words."""
    match point:
        case Crash(write, after, away):
            moment = "just after" if after else "just before"
            return f"dies {moment} write {write} ({trace.writes[write]}), away for {away:g} s"
        case Unseen(event, how):
            return f"never sees event {event} ({trace.events[event]}): {how}"
        case Lost(write, how, after):
            return f"a replica is {how} just {'after' if after else 'before'} write {write} ({trace.writes[write]})"
        case Restart(step, side, revision):
            return f"restarted after step {step} while the {side} cluster is as of {_change(trace, side, revision)}"
        case Travel(step, side, resource, revision):
            return f"after step {step} the {side} {resource} are as of {_change(trace, side, revision)}"


def _change(trace: Trace, side: object, revision: int) -> str:
    found: list[Noted] = [noted for noted in trace.changes if (noted.side, noted.before) == (side, revision)]
    return f"revision {revision}, before a change of {found[0].resource} in step {found[0].step}"
