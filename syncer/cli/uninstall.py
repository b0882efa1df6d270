"""``syncer uninstall``: remove everything that we made, on both sides or on the host."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, output, pass_given, settings
from syncer.plain_texts import plain

if TYPE_CHECKING:
    from syncer.api import Side
    from syncer.clusters.client import SideClient
    from syncer.config import Loaded
    from syncer.daemon.uninstall.uninstall import UninstallReport


@click.command()
@option("--yes", is_flag=True, help="Carry out the plan. Without this flag, it is only printed.")
@option(
    "--keep",
    is_flag=True,
    help="Keep the objects, and only remove the daemon's marks from them.",
)
@option(
    "--side",
    type=click.Choice(["host", "host-first"]),
    help="Only the copies on the host; or these first, then what can be in the virtual cluster.",
)
@settings()
@output("table", "wide", "json", "yaml")
@pass_given
@click.pass_context
def uninstall(
    ctx: click.Context,
    given: GivenOptions,
    yes: bool,
    keep: bool,
    side: str | None,
    output: str,
    no_headers: bool,
) -> None:
    """Remove everything that was synced, on both sides.

    These are the copies on the host, and the daemon's objects in the virtual cluster. The tenant's
    own objects stay as they are. Stop the daemons first; replicas with leaderElection.shards may go
    on if the virtual cluster is no longer in their configuration. A namespace or CRD that the
    daemon created stays if it has objects of others, and so do these objects. Pauses are ignored.
    If the uninstall is interrupted, run it again. It needs rights that the daemon doesn't have: to
    delete the ConfigMap vsyncer in kube-system of the virtual cluster, and the Lease.

    With --keep, the copies keep running, unmanaged. Pods and Services keep two labels that other
    objects select them by.

    With --side host, the command doesn't connect to the virtual cluster. Use it for a virtual
    cluster that is gone or broken, or will be deleted: nothing that a tenant did there can then
    stop the uninstall. With --side host-first, the virtual side is tried after the host, for a
    minute at most; a failure there is only a remark.

    Pods end within 60 seconds, even if their own grace period is longer.

    \b
    Examples:
      syncer uninstall --config syncer.yaml          # print the plan
      syncer uninstall --config syncer.yaml --yes    # carry it out
      syncer uninstall --yes --side host             # the virtual cluster doesn't answer

    Exit status: 0 done, or the plan is complete; 1 something could not be read or removed.
    """
    import asyncio

    from syncer.cli.loading import loaded
    from syncer.observe.logs import configure

    configured = loaded(given)[0]
    log = configured.config.log
    level = "error" if log.level == "info" else log.level
    configure(level, log.format)
    if yes:
        _refuse_beside_a_daemon(configured)
    report = asyncio.run(_report(configured, yes=yes, keep=keep, side=side))
    show.records(
        list(_records(report, keep=keep, each=output != "table")),
        _form(output),
        headers=not no_headers,
    )
    for line in (*report.remarks, *_end(report, yes=yes)):
        click.echo(plain(line), err=output in ("json", "yaml"))
    for line in report.problems:
        click.echo(show.red(plain(line)), err=True)
    ctx.exit(report.exit_code)


async def _report(
    configured: "Loaded",
    *,
    yes: bool,
    keep: bool,
    side: str | None,
) -> "UninstallReport":
    from syncer.cli.loading import selected
    from syncer.daemon.start.connecting import connected
    from syncer.daemon.uninstall import uninstall as engine

    config = configured.config
    cluster = await selected(configured, login=side is None)
    later = partial(_connected, configured) if side == "host-first" else None
    async with connected(config, None if side is not None else cluster) as clusters:
        return await engine.uninstall(config, cluster, clusters, yes=yes, keep=keep, later=later)


@asynccontextmanager
async def _connected(configured: "Loaded") -> "AsyncIterator[Mapping[Side, SideClient]]":
    """Yield clients of both sides; a kubeconfig is read only now."""
    from syncer.cli.loading import selected
    from syncer.daemon.start.connecting import connected

    async with connected(configured.config, await selected(configured)) as clusters:
        yield clusters


def _refuse_beside_a_daemon(configured: "Loaded") -> None:
    """Refuse to run beside a daemon.

    Without a Lease, only its socket shows it, and only on this machine.
    """
    from syncer.cli.daemon import NoDaemon, Unanswered, ask

    if configured.config.leader_election.enabled:
        return
    try:
        ask(configured, "GET", "/parked")
    except NoDaemon:
        return
    except Unanswered:
        pass
    show.fail(
        "a daemon of this configuration runs on this machine; nothing was written. Stop it first",
    )


def _form(output: str) -> str:
    return "table" if output == "wide" else output


def _records(report: "UninstallReport", *, keep: bool, each: bool) -> Iterator[dict[str, Any]]:
    """Yield a record for each of our objects; without ``each``, for each kind of them."""
    verb = "strip the marks" if keep else "delete"
    actions: dict[Any, str] = {}
    for item in report.items:
        actions[item] = f"leave: {report.left[item]}" if item in report.left else verb

    if each:
        for item, what in actions.items():
            yield {
                "side": item.side.value,
                "kind": str(item.resource),
                "object": str(item.key),
                "what": what,
            }
        return
    numbers = Counter((item.side.value, str(item.resource), what) for item, what in actions.items())
    for (side, kind, what), number in sorted(numbers.items()):
        yield {"side": side, "kind": kind, "objects": number, "what": what}


def _end(report: "UninstallReport", *, yes: bool) -> Iterator[str]:
    if report.done:
        yield "done"
    elif yes:
        yield "not finished: mend the problems below, then run it again"
    elif report.items:
        yield "nothing was written; --yes carries it out"
    else:
        yield "there is nothing to remove"
