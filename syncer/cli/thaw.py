"""``syncer thaw``: resume writing fields that were frozen because another manager reverts them."""

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, output, pass_given, query_settings


@click.command()
@click.argument("kind", default="")
@click.argument("key", default="")
@query_settings
@output("table", "json", "yaml")
@pass_given
def thaw(given: GivenOptions, kind: str, key: str, output: str, no_headers: bool) -> None:
    """Let the daemon write frozen fields again.

    KIND restricts this to a kind, and KEY (namespace/name) to a single object. A field is frozen
    when another manager keeps reverting it. It is frozen again if that goes on.

    \b
    Example:
      syncer thaw services shop/web
    """
    from syncer.cli.daemon import ask
    from syncer.cli.loading import loaded

    found = ask(loaded(given)[0], "POST", "/thaw", {"kind": kind, "key": key})
    if not found and output == "table":
        message = "no such object has frozen fields" if kind else "nothing is frozen"
        click.echo(message)
        return
    show.records(found, output, headers=not no_headers)
