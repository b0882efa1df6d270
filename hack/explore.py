"""New seeds for all that hack/test tries with fixed ones, until the time is over: examples, plays,
steps, kills.

A line of JSON for each try on standard output; the output of a failed try, on standard error. Exit
status 1 if any failed. Its line has the command that repeats it; a finding belongs in a fixed test.
"""

import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import click

from hack.endings import interrupt_on_sigterm
from hack.gate.stages import TOP
from hack.planes import BINARY

#: Points of hack/sieve that a turn leaves out between two.
EVERY = 97
#: Where Hypothesis looks for examples.
EXAMPLES = (
    "tests/laws",
    "tests/unit",
    "tests/flow/test_fuzz.py",
    "plugins/envtest/tests/apiserver",
)


@dataclass(frozen=True)
class Try:
    """A command that a seed decides about."""

    name: str
    command: Sequence[str]
    #: Added to the environment.
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it as it is typed."""
        names = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join([*names, shlex.join(self.command)])


def turn(seed: int) -> Iterator[Try]:
    """Yield the tries of a seed."""
    yield Try("plays", ("hack/chaos", "--minutes=0.3", f"--seed={seed}"))
    yield Try(
        "plays of replicas", ("hack/chaos", "--minutes=0.2", f"--seed={seed}", "--replicas=2")
    )
    yield Try("disturbed steps", ("hack/sieve", f"--every={EVERY}", f"--first={seed % EVERY}"))
    for example in EXAMPLES:
        chosen = (
            "--hypothesis-profile=explore",
            f"--hypothesis-seed={seed}",
            "--numprocesses=2",
            "--dist=worksteal",
        )
        yield Try(
            f"examples of {example}",
            (".venv/bin/pytest", "-q", *chosen, example),
            {"PYTHONHASHSEED": "0"},
        )
    if BINARY.exists():
        kills = (".venv/bin/pytest", "-q", "tests/integration/test_crashes.py")
        yield Try("kills on real API servers", kills, {"SYNCER_TEST_SEED": str(seed)})


@click.command()
@click.option("--minutes", default=5.0, show_default=True, help="How long to begin with new tries.")
@click.option(
    "--seed", type=int, help="The first seed; the others count up from it. By default random."
)
def main(minutes: float, seed: int | None) -> None:
    """Try new seeds until the time is over."""
    interrupt_on_sigterm()
    first = seed if seed is not None else random.SystemRandom().randrange(10**6) * 1000
    end = time.monotonic() + minutes * 60
    failed = 0
    number = first
    while True:
        for each in turn(number):
            if time.monotonic() >= end:
                sys.exit(min(failed, 1))
            failed += not _succeeds(number, each)
        number += 1


def _succeeds(seed: int, chosen: Try) -> bool:
    started = time.monotonic()
    done = subprocess.run(
        chosen.command,
        cwd=TOP,
        env={**os.environ, **chosen.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    row = {"seed": seed, "tried": chosen.name, "seconds": round(time.monotonic() - started, 1)}
    click.echo(json.dumps({**row, "failed": done.returncode != 0, "again": str(chosen)}))
    if done.returncode:
        click.echo(done.stdout, err=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
