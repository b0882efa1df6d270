"""Run the stages and give a verdict: ``python -m hack.gate check [--fast]`` or ``test``;
see hack/check.
"""

import os
import platform
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from hack.endings import interrupt_on_sigterm
from hack.gate import stages
from hack.gate.run import NICE, Beside, Ran, run
from hack.gate.stages import TOP, Stage
from hack.gate.verdict import Verdict


def main(arguments: Sequence[str]) -> int:
    """Run the chosen stages; return the exit status."""
    match arguments:
        case ["check"]:
            chosen = stages.check_stages()
            is_all = False
        case ["check", "--fast"]:
            chosen = stages.check_stages(fast=True)
            is_all = False
        case ["test"]:
            os.environ["ENVTEST_REQUIRED"] = "1"
            chosen = stages.all_stages()
            is_all = True
        case _:
            print("usage: hack/check [--fast], or hack/test", file=sys.stderr)
            return 2
    _print_environment()
    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        verdict = Verdict(list(_run(chosen, Path(folder))), is_all=is_all)
        verdict.try_again(Path(folder))
        print(verdict.text(), flush=True)
    return 0 if verdict.is_green else 1


def _print_environment() -> None:
    """Print the conditions that a run may depend on."""
    names = ("CI", "HOME", "TMPDIR", "KUBEBUILDER_ASSETS", "ENVTEST_DOCKER")
    settings = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {load}",
        *settings,
        sep=", ",
        flush=True,
    )


def _run(chosen: Sequence[Stage], folder: Path) -> Iterator[Ran]:
    """Run the stages in their order; those that mostly wait run beside them until the stage that
    they end before.

    Each lets those beside it go first that were started before.
    """
    besides: list[Beside] = []
    try:
        for number, stage in enumerate(chosen):
            for beside in [each for each in besides if each.stage.before == stage.name]:
                yield _shown(beside.stage, beside.ran)
                besides.remove(beside)
            run_folder = folder / str(number)
            run_folder.mkdir()
            nice = NICE * len(besides)
            if stage.before:
                how = f"runs beside the next ones, and is shown before: {stage.before}"
                print(f"── {stage.name}: {how}", flush=True)
                besides.append(Beside(stage, run_folder, nice=nice))
            else:
                yield _shown(stage, partial(run, stage, run_folder, nice=nice))
        while besides:
            yield _shown(besides[0].stage, besides[0].ran)
            besides.pop(0)
    finally:
        for beside in besides:
            beside.end()


def _shown(stage: Stage, run: Callable[[], Ran]) -> Ran:
    print(f"── {stage.name}", flush=True)
    ran = run()
    print(f"   {ran.seconds:.0f} s, CPU {ran.cpu:.0f} s", flush=True)
    return ran


def guarded(arguments: Sequence[str]) -> int:
    """Run the chosen stages; however the run ends, its processes end with it,
    and the last line is a verdict.
    """
    os.chdir(TOP)
    interrupt_on_sigterm()
    # The stages are ended by it; a job in the background of a shell, and all that it starts, would
    # ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return main(arguments)
    except KeyboardInterrupt:
        print("gate: interrupted\nVERDICT red", file=sys.stderr)
        return 130
    except Exception as error:  # noqa: BLE001 — whatever it is
        traceback.print_exc()
        print(f"gate: {error}\nVERDICT red", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(guarded(sys.argv[1:]))
