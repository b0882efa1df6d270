"""``syncer status``: the state of each syncer."""

from collections.abc import Mapping
from typing import Any

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, output, pass_given, query_settings

#: Counts of objects by column.
_COUNTS = {
    "in-step": "inStep",
    "pending": "pending",
    "skipped": "skipped",
    "failing": "failing",
    "parked": "parked",
    "paused": "paused",
    "frozen": "frozen",
    "collisions": "collisions",
}


@click.command()
@query_settings
@output("table", "json", "yaml")
@pass_given
def status(given: GivenOptions, output: str, no_headers: bool) -> None:
    """Show the state of each syncer, and the number of its objects.

    A syncer is ready, starting, waiting for its resource to be served, degraded or paused. MAPPED
    are its objects that have a counterpart on the other side, and COLLISIONS the parked objects
    with a name that another object has.

    \b
    Example:
      syncer status -o json
    """
    from syncer.cli.daemon import ask
    from syncer.cli.loading import loaded

    found = ask(loaded(given)[0], "GET", "/status")
    if output == "table":
        found = list(map(_row, found))
    show.records(found, output, headers=not no_headers)


def _row(each: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cluster": each["cluster"],
        "syncer": each["syncer"],
        "state": each["state"],
        "mapped": "-" if each["mapped"] is None else each["mapped"],
        **{column: each[name] for column, name in _COUNTS.items()},
        "reason": each["reason"] or "-",
    }
