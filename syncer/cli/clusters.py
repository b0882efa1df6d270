"""``syncer clusters``: the virtual clusters of a daemon."""

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, output, pass_given, query_settings


@click.command()
@query_settings
@output("table", "json", "yaml")
@pass_given
def clusters(given: GivenOptions, output: str, no_headers: bool) -> None:
    """Show the virtual clusters that the daemon serves.

    The state of a virtual cluster is served, starting, silent or failing. A silent one or the host
    doesn't answer, or doesn't accept the credentials. A failing one is started again after a minute
    at most, and the reason names the fault. READY of its SYNCERS work; OBJECTS are those that they
    look at. LEADS says whether this daemon works on it; if several replicas share the fleet, a
    standby keeps its caches filled.

    \b
    Example:
      syncer clusters -o json
    """
    from syncer.cli.daemon import ask
    from syncer.cli.loading import loaded

    found = ask(loaded(given)[0], "GET", "/clusters")
    show.records(
        [{**each, "reason": each["reason"] or "-"} for each in found],
        output,
        headers=not no_headers,
    )
