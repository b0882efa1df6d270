"""``syncer run``, and ``syncer --config FILE``: the daemon."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncer.cli.options import GivenOptions, modes, pass_given, settings
from syncer.plain_texts import plain

if TYPE_CHECKING:
    import asyncio

    from syncer.config import SyncerConfig


#: Allocations before a garbage collection, and collections before one of the next generation. Our
#: objects are hardly ever cyclic, so rare collections of all of them cost no memory, and save a
#: twentieth of the CPU of a start. Those of young ones are the longest steps of the event loop with
#: many objects, and their time goes with the number of allocations.
GC_THRESHOLD = (5_000, 1, 1_600)
#: mallopt(3) of glibc: its names for parameters.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
#: Unused bytes at the end of the heap that are given back. To take them again costs a fault for
#: each 4 KiB.
TRIMMED_FROM = 1 << 20


@click.command()
@settings()
@modes
@pass_given
@click.pass_context
def run(ctx: click.Context, given: GivenOptions) -> None:
    """Keep virtual clusters in step with the host cluster.

    The daemon ends on SIGTERM or Ctrl-C, or with --once when both sides are in step.

    \b
    Examples:
      syncer run --config syncer.yaml
      syncer run --config syncer.yaml --once --dry-run    # show the writes that it would make
    """
    ctx.exit(start(given))


def start(given: GivenOptions) -> int:
    """Load the configuration, run the daemon, and return the exit status."""
    import asyncio

    spare_memory()

    from syncer.cli.loading import loaded

    config = loaded(given)[0].config

    from syncer.daemon.fleet.config_file import ConfigFile
    from syncer.daemon.runner import run as daemon
    from syncer.observe.logs import configure
    from syncer.observe.loop_errors import report_loop_error

    configure(config.log.level, config.log.format)

    def load() -> "SyncerConfig":
        return loaded(given)[0].config

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.get_loop().set_exception_handler(report_loop_error)
        file = ConfigFile(Path(given.file), load) if given.file else None
        summary = runner.run(daemon(config, once=given.once, dry_run=given.dry_run, file=file))
    for line in summary.lines():
        click.echo(plain(line))
    # A daemon ends only when it is stopped, and its successor goes on with the remaining requests.
    return summary.exit_code if given.once or given.dry_run else 0


def spare_memory() -> None:
    """Set what the interpreter and the allocator do about memory that is no longer used."""
    import ctypes
    import gc

    from syncer.clusters.codec import MAPPED

    gc.set_threshold(*GC_THRESHOLD)
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, MAPPED)
        set_option(M_TRIM_THRESHOLD, TRIMMED_FROM)


def _loop_factory() -> "Callable[[], asyncio.AbstractEventLoop] | None":
    """Return uvloop's loop factory, which uses less CPU, or None for asyncio's own if uvloop is not
    installed.
    """
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
