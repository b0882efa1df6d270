"""``syncer doctor``: check what the daemon needs, and say what to do about each fault."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.config import Loaded
    from syncer.daemon.doctor.diagnosis import Diagnosis


@click.command()
@settings()
@output("text", "json", "yaml")
@pass_given
@click.pass_context
def doctor(ctx: click.Context, given: GivenOptions, output: str) -> None:
    """Check everything that the daemon needs, and say what to do about each fault.

    The configuration; both API servers, their versions and clocks; each right that `syncer rbac`
    prints; a start in a dry run, with the kinds that both sides must serve; controllers of the
    virtual control plane that must be off; quotas, Pod Security and admission in the host
    namespaces. Nothing is written, no daemon needs to run, and no right is needed that the daemon
    hasn't.

    \b
    Examples:
      syncer doctor --config syncer.yaml
      syncer doctor --cluster shop -o json

    Exit status: 0 nothing is broken (there may be warnings), 1 something is, 2 the configuration
    can't be used, 3 a plugin can't be used.
    """
    from syncer.api import ConfigError, PluginError
    from syncer.cli.loading import loaded
    from syncer.daemon.doctor.diagnosis import error, ok
    from syncer.daemon.doctor.doctor import has_errors

    check = "configuration"
    try:
        found = loaded(given)[0]
    except (ConfigError, PluginError) as failure:
        if output == "text":
            raise
        way_out = "Correct it; `syncer config validate` checks it alone."
        show.value([error("", check, str(failure), way_out).json()], output)
        ctx.exit(failure.exit_code)

    results = [ok("", check, f"{given.file or 'the configuration'} is valid")]
    results += examined(found)
    if output == "text":
        _print(results)
    else:
        show.value([each.json() for each in results], output)
    ctx.exit(1 if has_errors(results) else 0)


def examined(found: "Loaded") -> "list[Diagnosis]":
    """Return the results of all checks but that of the configuration.

    Raises:
        SyncerError: The Secret of the selected virtual cluster can't be read, or is refused.
    """
    import asyncio

    from syncer.cli.loading import selected
    from syncer.daemon.doctor.doctor import examine
    from syncer.observe.logs import configure

    config = found.config
    configure("error", config.log.format)

    async def check() -> "list[Diagnosis]":
        clusters = config.clusters()
        if found.chosen:
            clusters = (await selected(found),)
        return await examine(config, clusters, chosen=found.chosen)

    return asyncio.run(check())


def _print(results: "Sequence[Diagnosis]") -> None:
    """Print a line for each result, and what to do below it."""
    counts = Counter[str]()
    for each in results:
        counts[each.state.value] += 1
        subject = f"{each.cluster}: {each.check}" if each.cluster else each.check
        state = f"{each.state.value:<7}"
        if each.state.value == "error":
            state = show.red(state)
        message = show.one_line(each.message)
        click.echo(f"{state}  {show.one_line(subject)}: {message}")
        if each.way_out:
            click.echo(f"         -> {show.one_line(each.way_out)}")
    click.echo(", ".join(f"{number} {state}" for state, number in counts.items()))
