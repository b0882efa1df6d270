"""``syncer diff``: a patch for each object that differs, also under another configuration."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, output, pass_given, settings, variable
from syncer.plain_texts import plain

if TYPE_CHECKING:
    from syncer.engine.patrol.survey import Effects


@click.command()
@click.argument("kind", default="")
@click.argument("key", default="")
@option(
    "--against",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Show what --config does beyond this configuration.",
)
@settings()
@output("text", "json", "yaml")
@pass_given
@click.pass_context
def diff(
    ctx: click.Context,
    given: GivenOptions,
    kind: str,
    key: str,
    against: str | None,
    output: str,
) -> None:
    """Show what the daemon would write now: a patch for each object that differs.

    KIND restricts this to a kind, and KEY (namespace/name, of either side) to a single object. Both
    sides are listed, and each object is decided again, as a patrol does. Nothing is written, no
    daemon needs to run, and no right is needed that the daemon hasn't. Values of Secrets are
    hidden.

    With --against, two configurations are compared: what would that of --config write, delete or
    take away beyond the other? If --config names another file than SYNCER_CONFIG does, the latter
    is the other one.

    \b
    Examples:
      syncer diff                                  # what is out of step
      syncer diff configmaps shop/web
      syncer diff --config new.yaml --against syncer.yaml

    Exit status: 0 nothing differs, 1 something does, 2 something can't be compared.
    """
    from syncer.api import SyncerError
    from syncer.cli.loading import loaded

    new = loaded(given)[0]
    other = against or _in_force(given)
    prefix = new.config.marks.prefix
    try:
        found = asyncio.run(_compared(given, other, kind, key))
    except SyncerError as error:
        show.fail(f"{show.red('syncer:')} {plain(str(error))}", 2)

    if output == "text":
        _print(found, prefix, other)
    else:
        show.value(found.json(prefix), output)
    if found.problems:
        ctx.exit(2)
    ctx.exit(1 if found else 0)


def _in_force(given: GivenOptions) -> str:
    """Return the configuration of the environment, if ``--config`` names another one."""
    config = given.settings.get("--config")
    named = os.environ.get(variable("--config"), "")
    if config is None or not config.flag or not named or not Path(named).exists():
        return ""
    return "" if Path(named).samefile(config.value) else named


async def _compared(given: GivenOptions, other: str, kind: str, key: str) -> "Effects":
    from syncer.cli.loading import loaded, selected
    from syncer.daemon.diff_once import Configured, diff_once, effects_once
    from syncer.observe.logs import configure

    new = loaded(given)[0]
    configure("error", new.config.log.format)
    configured = Configured(new.config, await selected(new))
    kinds = (kind,) if kind else ()
    if not other:
        return await diff_once(configured, kinds=kinds, key=key)
    old = loaded(replace(given, file=other))[0]
    before = Configured(old.config, await selected(old))
    return await effects_once(before, configured, kinds=kinds, key=key)


def _print(found: "Effects", prefix: str, other: str) -> None:
    """Print a patch for each object, then a summary."""
    for change in found.changes:
        click.echo(show.one_line(str(change)))
        for line in change.patch(prefix):
            colored = plain(line)
            if line.startswith("-"):
                colored = show.red(colored)
            click.echo(colored)
    for request, reason in found.left.items():
        click.echo(show.one_line(f"not kept in step: {request}: {reason}"))
    for syncer, number in found.off.items():
        click.echo(f"no longer synced: {syncer}: {number} objects, whose copies stay")
    for syncer, problem in found.problems.items():
        click.echo(show.one_line(f"not compared: {syncer}: {problem}"), err=True)
    click.echo(f"{found.summary()}{f', beyond {other}' if other else ''}")
