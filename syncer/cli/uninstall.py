"""``syncer uninstall``: remove all that is ours, on both sides."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import Given, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.config import Loaded
    from syncer.engine.uninstall.uninstall import Report


@click.command()
@option("--yes", is_flag=True, help="Carry it out. Without it the plan is printed.")
@option("--keep", is_flag=True, help="Keep the objects, and only remove our marks from them.")
@settings()
@output("table", "wide", "json", "yaml")
@pass_given
@click.pass_context
def uninstall(ctx: click.Context, given: Given, yes: bool, keep: bool, output: str, no_headers: bool) -> None:
    """Remove all that was synced, on both sides.

    These are the copies on the host, and the daemon's objects in the virtual cluster. Stop the daemons first. The
    tenant's own objects stay as they are. A namespace or CRD of ours stays if it holds objects of others, and so do
    these. Pauses do not count. An uninstall that was cut short is carried on by running it again. It needs more
    rights than the daemon has: to delete the note in kube-system and the Lease.

    With --keep the copies go on running unmanaged; Pods and Services keep two labels, as others select them by these.

    \b
    Examples:
      syncer uninstall --config syncer.yaml          # print the plan
      syncer uninstall --config syncer.yaml --yes    # carry it out

    Exit status: 0 all is done, or the plan is complete; 1 something could not be looked at or done.
    """
    import asyncio

    from syncer.cli.loading import loaded
    from syncer.observe.logs import configure

    configured = loaded(given)[0]
    log = configured.config.log
    configure("error" if log.level == "info" else log.level, log.format)
    if yes:
        _refuse_beside_a_daemon(configured)
    report = asyncio.run(_report(configured, yes=yes, keep=keep))
    show.records(list(_records(report, keep=keep, each=output != "table")), _form(output), headers=not no_headers)
    for line in (*report.remarks, *_end(report, yes=yes)):
        click.echo(line, err=output in ("json", "yaml"))
    for line in report.problems:
        click.echo(show.red(line), err=True)
    ctx.exit(report.exit_code)


async def _report(configured: "Loaded", *, yes: bool, keep: bool) -> "Report":
    from syncer.engine.runner import connected
    from syncer.engine.uninstall import uninstall as engine

    config, cluster = configured.config, configured.cluster
    async with connected(config, cluster) as clusters:
        return await engine.uninstall(config, cluster, clusters, yes=yes, keep=keep)


def _refuse_beside_a_daemon(configured: "Loaded") -> None:
    """End the command if a daemon runs. Without a Lease only its socket shows it, and only on this machine."""
    from syncer.cli.daemon import NoDaemon, Unanswered, ask

    if configured.config.leader_election.enabled:
        return
    try:
        ask(configured, "GET", "/parked")
    except NoDaemon:
        return
    except Unanswered:
        pass
    show.fail("a daemon of this configuration runs on this machine; nothing was written. Stop it first")


def _form(output: str) -> str:
    return "table" if output == "wide" else output


def _records(report: "Report", *, keep: bool, each: bool) -> Iterator[dict[str, Any]]:
    """Yield a record of each object of ours, or, without ``each``, of how many there are by kind."""
    verb = "strip the marks" if keep else "delete"
    does = {item: f"leave: {report.left[item]}" if item in report.left else verb for item in report.items}
    if each:
        for item, what in does.items():
            yield {"side": item.side.value, "kind": str(item.resource), "object": str(item.key), "what": what}
        return
    numbers = Counter((item.side.value, str(item.resource), what) for item, what in does.items())
    for (side, kind, what), number in sorted(numbers.items()):
        yield {"side": side, "kind": kind, "objects": number, "what": what}


def _end(report: "Report", *, yes: bool) -> Iterator[str]:
    if report.done:
        yield "done"
    elif yes:
        yield "not finished: mend what is said below, then run it again"
    elif report.items:
        yield "nothing was written; --yes carries it out"
    else:
        yield "there is nothing to remove"
