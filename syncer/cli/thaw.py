"""``syncer thaw``: fields that are left alone because somebody else sets them back are written again."""

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
    """Let the daemon write frozen fields again: of all objects, of a KIND, or of one object.

    KEY is the virtual object's name, with its namespace: `syncer thaw services shop/web`. What somebody else still
    sets back is frozen again.
    """
    from syncer.cli.daemon import ask
    from syncer.cli.loading import loaded

    found = ask(loaded(given)[0], "POST", "/thaw", {"kind": kind, "key": key})
    if not found and output == "table":
        click.echo("nothing of that is frozen" if kind else "nothing is frozen")
        return
    show.records(found, output, headers=not no_headers)
