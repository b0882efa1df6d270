"""``syncer drain``: take away all that is ours, on both sides."""

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
@option("--yes", is_flag=True, help="Carry it out; without it the plan is printed.")
@option("--keep", is_flag=True, help="Leave the objects, and only take our marks off them.")
@settings()
@output("table", "wide", "json", "yaml")
@pass_given
@click.pass_context
def drain(ctx: click.Context, given: Given, yes: bool, keep: bool, output: str, no_headers: bool) -> None:
    """Remove all that was synced: the copies on the host, and what the daemon put into the virtual cluster.

    Stop the daemons first. The tenant's own objects stay as they are, and so does what others have put into a namespace
    or made of a CRD of ours, with that namespace or CRD. Pauses do not count here. Cut short, it is carried on by
    running it again. It needs more rights than the daemon has: to delete the note in kube-system and the Lease.

    With --keep the copies go on running unmanaged; Pods and Services keep two labels, as others select them by these.

    Exit status: 0 all is done or the plan is complete, 1 something could not be looked at or be done.
    """
    import asyncio

    from syncer.cli.loading import loaded
    from syncer.observe.logs import configure

    configured = loaded(given)[0]
    log = configured.config.log
    configure("error" if log.level == "info" else log.level, log.format)
    if yes:
        _refuse_beside_a_daemon(configured)
    report = asyncio.run(_drained(configured, yes=yes, keep=keep))
    show.records(list(_records(report, keep=keep, each=output != "table")), _form(output), headers=not no_headers)
    for line in (*report.remarks, *_end(report, yes=yes)):
        click.echo(line, err=output in ("json", "yaml"))
    for line in report.problems:
        click.echo(show.red(line), err=True)
    ctx.exit(report.exit_code)


async def _drained(configured: "Loaded", *, yes: bool, keep: bool) -> "Report":
    from syncer.engine.runner import connected
    from syncer.engine.uninstall.uninstall import drain as drained

    config, cluster = configured.config, configured.cluster
    async with connected(config, cluster) as clusters:
        return await drained(config, cluster, clusters, yes=yes, keep=keep)


def _refuse_beside_a_daemon(configured: "Loaded") -> None:
    """Without a Lease, the socket is all that tells of a daemon, and only on this machine."""
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
    """What is ours: by kind how many objects, or ``each`` object."""
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
        yield "not finished: run it again when what is said below is mended"
    elif report.items:
        yield "nothing was written; --yes carries it out"
    else:
        yield "there is nothing to remove"
