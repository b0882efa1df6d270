"""The script of a run, all of it made of a seed: edits by tenants and on the host, and faults."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from syncer.api import Side

KINDS = ("ConfigMap", "Secret", "Service", "Pod", "Gadget")
#: Objects of a kind that may be there at the same time.
SLOTS = 6
#: How often the same copy is changed on the host in a run; what flips back more often counts as a fight, and is frozen.
MEDDLED = 3
#: Seconds for which something stops or can't be reached: at least.
SHORTEST = 3.0


class Verb(StrEnum):
    """An edit of one object."""

    PUT = "put"  # the tenant makes or changes it
    DELETE = "delete"  # the tenant deletes it
    AGAIN = "delete and make"  # the tenant deletes it and makes another of its name at once
    MEDDLE = "meddle with the copy of"  # somebody changes the copy on the host
    LOSE = "delete the copy of"  # somebody deletes the copy on the host
    REPORT = "report on"  # a host controller writes the status of the copy

    @property
    def side(self) -> Side:
        """The side that it is done on."""
        return Side.VIRTUAL if self in (Verb.PUT, Verb.DELETE, Verb.AGAIN) else Side.HOST


_WEIGHTS = {Verb.PUT: 10, Verb.DELETE: 2, Verb.AGAIN: 1, Verb.MEDDLE: 2, Verb.LOSE: 1, Verb.REPORT: 3}


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit."""

    verb: Verb
    kind: str
    slot: int

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.slot}"


class Fault(StrEnum):
    """A fault."""

    KILLED = "kill -9 the daemon"
    ENDED = "end the daemon by SIGTERM"
    FROZEN = "freeze the daemon"
    SERVER_KILLED = "kill the API server"
    SERVER_FROZEN = "freeze the API server"
    ETCD_KILLED = "kill etcd"
    DISK_FULL = "fill the disk of etcd"
    FORGOTTEN = "cut the daemon off while the history is compacted"
    CUT = "cut the network"
    SILENT = "lose all packets"

    @property
    def is_ours(self) -> bool:
        """True if it happens to the daemon and not to a side."""
        return self in (Fault.KILLED, Fault.ENDED, Fault.FROZEN)


@dataclass(frozen=True, slots=True)
class Step:
    """Edits, a fault with edits while it lasts, and perhaps a wait until both sides are in step."""

    fault: Fault
    #: Where it happens; None: to the daemon.
    side: Side | None
    #: How long it lasts at least.
    seconds: float
    #: Whether connections that were silent are reset in the end, instead of going on.
    reset: bool
    before: tuple[Edit, ...]
    during: tuple[Edit, ...]
    settle: bool

    def __str__(self) -> str:
        where = f" on the {self.side} side" if self.side else ""
        edits = f"{_named(self.before)}, then {self.fault}{where} for {self.seconds:.1f} s, meanwhile"
        return f"{edits} {_named(self.during)}{', settle' if self.settle else ''}"


def _named(edits: tuple[Edit, ...]) -> str:
    return f"[{', '.join(map(str, edits))}]"


def script(seed: int, steps: int, *, longest: float) -> list[Step]:
    """The steps of a run. Each fault comes once, on each side, before any of them comes again."""
    rng = random.Random(seed)
    deck, meddled = _deck(rng), Counter[tuple[str, int]]()
    return [_step(rng, next(deck), meddled, longest) for _ in range(steps)]


def _deck(rng: random.Random) -> Iterator[tuple[Fault, Side | None]]:
    cards: list[tuple[Fault, Side | None]] = []
    for fault in Fault:
        cards += [(fault, None)] * 2 if fault.is_ours else [(fault, side) for side in Side]
    while True:
        rng.shuffle(cards)
        yield from cards


def _step(
    rng: random.Random, card: tuple[Fault, Side | None], meddled: Counter[tuple[str, int]], longest: float
) -> Step:
    before, during = (tuple(_edits(rng, meddled, rng.randint(2, 25))) for _ in range(2))
    seconds = rng.uniform(SHORTEST, longest)
    return Step(*card, seconds, rng.random() < 0.5, before, during, rng.random() < 0.3)


def _edits(rng: random.Random, meddled: Counter[tuple[str, int]], count: int) -> Iterator[Edit]:
    for _ in range(count):
        [verb] = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        kind, slot = rng.choice(KINDS), rng.randrange(SLOTS)
        if verb is Verb.MEDDLE:
            meddled[kind, slot] += 1
            verb = verb if meddled[kind, slot] <= MEDDLED else Verb.REPORT
        yield Edit(verb, kind, slot)
