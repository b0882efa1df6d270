"""``syncer parked``: what can't be synced as things are, why, since when, and what the daemon waits for."""

from collections.abc import Mapping
from typing import Any

import click

from syncer.cli import show
from syncer.cli.options import Given, option, output, pass_given, settings


@click.command()
@click.argument("kind", default="")
@click.argument("key", default="")
@option("--retry", is_flag=True, help="Have it tried again now.")
@settings()
@output("table", "wide", "json", "yaml")
@pass_given
def parked(given: Given, kind: str, key: str, retry: bool, output: str, no_headers: bool) -> None:
    """List what the daemon has parked: everything, a KIND, or one object.

    What is parked failed in a way that does not pass by itself. It is tried again when something changes that it
    depends on, when the quota has room or the right is there, and every few minutes in any case. KEY is the virtual
    object's name, with its namespace: `syncer parked pods shop/web`.
    """
    from syncer.cli.daemon import ask
    from syncer.cli.loading import loaded

    method, path = ("POST", "/retry") if retry else ("GET", "/parked")
    found = ask(loaded(given)[0], method, path, {"kind": kind, "key": key})
    if output not in ("table", "wide"):
        show.value(found, output)
    elif not found:
        click.echo("nothing of that is parked" if kind else "nothing is parked")
    else:
        show.records([_row(each, wide=output == "wide") for each in found], "table", headers=not no_headers)
        if retry:
            click.echo("All of it is tried again now.")


def _row(each: Mapping[str, Any], *, wide: bool) -> dict[str, Any]:
    row = {
        "cluster": each["cluster"],
        "syncer": each["syncer"],
        "key": each["key"],
        "since": _age(each["seconds"]),
        "tried": each["tried"],
        "class": each["class"],
        "next": _age(each["nextTry"]),
        "reason": " ".join(each["reason"].split()),
    }
    return {**row, "wakes": "; ".join(each["wakes"])} if wide else row


def _age(seconds: float) -> str:
    """So many seconds as kubectl shows an age: ``45s``, ``12m``, ``3h``, ``2d``."""
    for unit, size, most in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{round(seconds) // size}{unit}"
    return f"{round(seconds) // 86_400}d"
