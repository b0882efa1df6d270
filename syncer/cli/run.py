"""``syncer run``, and ``syncer --config FILE``: the daemon."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from syncer.cli.options import Given, modes, pass_given, settings

if TYPE_CHECKING:
    import asyncio


#: Objects made before a collection, and collections before one of the next generation. Next to nothing of ours is
#: cyclic garbage, so to look for it seldom costs no memory and saves a twentieth of the CPU of a start.
GC_THRESHOLD = (20_000, 20, 20)


@click.command()
@settings()
@modes
@pass_given
@click.pass_context
def run(ctx: click.Context, given: Given) -> None:
    """Keep the virtual and the host cluster in step.

    Ends on SIGTERM or Ctrl-C, or with --once when both sides are in step.
    """
    ctx.exit(start(given))


def start(given: Given) -> int:
    """Load the configuration and run the daemon; gives the exit code."""
    import asyncio
    import gc

    gc.set_threshold(*GC_THRESHOLD)

    from syncer.cli.loading import loaded

    config = loaded(given)[0].config

    from syncer.engine.runner import run as daemon
    from syncer.observe.logs import configure

    configure(config.log.level, config.log.format)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        summary = runner.run(daemon(config, once=given.once, dry_run=given.dry_run))
    for line in summary.lines():
        click.echo(line)
    # A daemon ends only because it was told to, and the next one goes on with what was not in step.
    return summary.exit_code if given.once or given.dry_run else 0


def _loop_factory() -> "Callable[[], asyncio.AbstractEventLoop] | None":
    """uvloop's, which cost less CPU; where it isn't to be had, None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
