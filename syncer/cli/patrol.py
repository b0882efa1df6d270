"""``syncer patrol``: drift, who caused it, and whether it was repaired."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, pass_given, settings
from syncer.plain_texts import plain_values

if TYPE_CHECKING:
    from syncer.config import Loaded

#: Outcomes that leave no drift behind.
_DONE = ("repaired", "ignored")

ClusterReport = Mapping[str, Any]


@click.command()
@click.argument("kinds", metavar="[KIND]...", nargs=-1)
@option(
    "--once",
    is_flag=True,
    help="Scan now, from fresh lists of both sides, instead of asking the daemon.",
)
@option(
    "--diff",
    is_flag=True,
    help="Show each field: wanted and found value, who changed it, and when.",
)
@option(
    "--report",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the reports as JSON.",
)
@option(
    "--confirm",
    is_flag=True,
    help="Make the deletions that are held because there are too many.",
)
@settings()
@pass_given
@click.pass_context
def patrol(
    ctx: click.Context,
    given: GivenOptions,
    kinds: Sequence[str],
    once: bool,
    diff: bool,
    report: str | None,
    confirm: bool,
) -> None:
    """Report drift, and repair it.

    KIND restricts this to some kinds. The option patrol.drift says which drift is repaired. Without
    --once, the running daemon reports its latest scans. With --once, the command scans and repairs
    by itself; while a daemon holds the Lease, it only reports. --confirm releases the deletions
    that the daemon holds; if no daemon runs, the command scans by itself and holds no deletions
    (without leader election: only with --once).

    \b
    Examples:
      syncer patrol --once --diff services   # scan now; who changed which field
      syncer patrol --confirm configmaps     # make the held deletions

    Exit status: 0 no drift, or all of it was repaired; 1 drift is left, or nothing was scanned yet.
    """
    from syncer.cli.loading import loaded

    if report and not Path(report).absolute().parent.is_dir():
        raise click.BadParameter(f"the folder of {report} isn't there", ctx, param_hint="--report")
    configured = loaded(given)[0]
    if confirm and _confirmed(configured, kinds, here=once):
        return
    scans = once or confirm
    found = _scanned(configured, kinds, confirm=confirm) if scans else _latest(configured, kinds)
    if report:
        Path(report).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    for each in found:
        prefix = f"{each['cluster']}: " if len(found) > 1 else ""
        for line in lines(plain_values(each), diff=diff):
            click.echo(prefix + line)
    is_clean = all(each["kinds"] and not is_left(each) for each in found)
    status = 0 if is_clean else 1
    ctx.exit(status)


def _confirmed(configured: "Loaded", kinds: Sequence[str], *, here: bool) -> bool:
    """Release the deletions that the daemon holds. Return False if no daemon answers.

    Without a Lease, a daemon may run elsewhere unnoticed; then the command goes on only if it may
    scan ``here``.
    """
    from syncer.cli.daemon import NoDaemon, ask

    try:
        confirmed = ask(configured, "POST", "/confirm", {"kinds": list(kinds)}, one=True)
    except NoDaemon as error:
        if not (here or configured.config.leader_election.enabled):
            way_out = "To scan here and hold nothing, beside a daemon that may run elsewhere"
            show.fail(f"{error}\n{way_out}, add --once")
        click.echo(f"{error}\nSo this command scans by itself, and holds no deletions.", err=True)
        return False
    for one in confirmed:
        syncer = f"{one['cluster']}/{one['syncer']}"
        click.echo(f"{syncer}: {one['deletions']} deletions on the {one['side']} side are made now")
    if not confirmed:
        click.echo("nothing is held")
    return True


def _scanned(configured: "Loaded", kinds: Sequence[str], *, confirm: bool) -> list[ClusterReport]:
    from syncer.cli.without_daemon import decided_here
    from syncer.daemon.patrol_once import patrol_once

    return [decided_here(configured, partial(patrol_once, kinds=kinds, confirm=confirm))]


def _latest(configured: "Loaded", kinds: Sequence[str]) -> list[ClusterReport]:
    from syncer.cli.daemon import ask

    found: list[ClusterReport] = ask(configured, "GET", "/patrol", {"kinds": ",".join(kinds)})
    return found


# -- for people ------------------------------------------------------------------------------------


def is_left(report: ClusterReport) -> bool:
    """Return True if an object is not in step, or could not be checked."""
    if report["held"]:
        return True
    for kind in report["kinds"]:
        if kind["problem"] or kind["troubles"]:
            return True
        if any(outcome not in _DONE for outcome in _outcomes(kind)):
            return True
    return False


def _outcomes(kind: ClusterReport) -> Counter[str]:
    """Count the findings of a kind by outcome."""
    return Counter(one["outcome"] for one in kind["found"]) + Counter(kind.get("omitted", {}))


def lines(report: ClusterReport, *, diff: bool) -> Iterator[str]:
    """Yield a line for each finding, with ``diff`` also for each of its fields, and a summary."""
    outcomes: Counter[str] = Counter()
    for kind in report["kinds"]:
        outcomes.update(_outcomes(kind))
        yield from _kind(kind, diff=diff)
    yield from (show.red(text) for text in report["held"])
    if report.get("reportedOnly"):
        yield f"nothing was written: {report['reportedOnly']}"
    looked = sum(kind["verified"] + kind["skipped"] for kind in report["kinds"])
    if not report["kinds"]:
        yield "no scan yet"
    elif outcomes:
        counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        yield f"{outcomes.total()} drifted of {looked} looked at: {counts}"
    else:
        yield f"nothing has drifted of {looked} looked at"
    if busy := sum(kind.get("busy", 0) for kind in report["kinds"]):
        yield f"{busy} more are worked on, wait or fail already; `syncer parked` says why they fail"


def _kind(kind: ClusterReport, *, diff: bool) -> Iterator[str]:
    if kind["problem"]:
        yield f"{kind['syncer']}: not looked at: {kind['problem']}"
    for corrected in kind["corrected"]:
        yield f"{kind['syncer']}: the daemon had {corrected} otherwise than the API server"
    for request, why in kind["troubles"].items():
        yield f"{request}: not in step: {why}"
    for one in kind["found"]:
        yield _line(one)
        if diff:
            yield from (f"    {text}" for text in _fields(one.get("changes", ())))
    if omitted := sum(kind.get("omitted", {}).values()):
        yield f"{kind['syncer']}: {omitted} more, which are only counted"


def _line(found: ClusterReport) -> str:
    reason = f" ({found['reason']})" if found.get("reason") else ""
    paths = ", ".join(change["path"] for change in found.get("changes", ()))
    what = f"{found['class']}: {paths}" if paths else found["class"]
    return f"{found['outcome']}: {found['object']}, of {found['of']}: {what}{reason}"


def _fields(changes: Iterable[Mapping[str, str]]) -> Iterator[str]:
    for change in changes:
        who = f"  changed by {change['changedBy']}" if "changedBy" in change else ""
        when = f" at {change['at']}" if change.get("at") else ""
        yield f"{change['path']}: {change['wanted']} -> {change['found']}{who}{when}"
