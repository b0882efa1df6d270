"""``syncer thaw``: write again the fields that are left alone because another manager sets them back."""

import click

from syncer.cli import show
from syncer.cli.options import Given, output, pass_given, settings


@click.command()
@click.argument("kind", default="")
@click.argument("key", default="")
@settings()
@output("table", "json", "yaml")
@pass_given
def thaw(given: Given, kind: str, key: str, output: str, no_headers: bool) -> None:
    """Let the daemon write frozen fields again.

    Without KIND those of all objects, else of a kind, or of the object with a KEY, its namespace and name. A field is
    frozen when another manager sets it back again and again, and is frozen again if that goes on.

    \b
    Example:
      syncer thaw services shop/web
    """
    from syncer.cli.daemon import ask
    from syncer.cli.loading import loaded

    found = ask(loaded(given)[0], "POST", "/thaw", {"kind": kind, "key": key})
    if not found and output == "table":
        click.echo("nothing of that is frozen" if kind else "nothing is frozen")
        return
    show.records(found, output, headers=not no_headers)
