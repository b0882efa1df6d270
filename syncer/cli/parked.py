"""``syncer parked``: objects that can't be synced at present, with the reason."""

from collections.abc import Mapping
from typing import Any

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, output, pass_given, query_settings


@click.command()
@click.argument("kind", default="")
@click.argument("key", default="")
@option(
    "--retry",
    is_flag=True,
    help="Try parked objects again now, but none that is Paused, Contended or Unreadable.",
)
@query_settings
@output("table", "wide", "json", "yaml")
@pass_given
def parked(
    given: GivenOptions,
    kind: str,
    key: str,
    retry: bool,
    output: str,
    no_headers: bool,
) -> None:
    """List parked objects, with the reason of each.

    KIND restricts the list to a kind, and KEY (namespace/name) to a single object. A parked object
    failed for a reason that does not pass by itself. It is tried again when something that it
    depends on changes, when the quota has room, when the missing right is there, and every few
    minutes in any case.

    \b
    Examples:
      syncer parked -o wide                  # with the objects that each waits for
      syncer parked --retry pods shop/web    # try this pod again now
    """
    from syncer.cli.daemon import ask
    from syncer.cli.loading import loaded

    method, path = ("POST", "/retry") if retry else ("GET", "/parked")
    found = ask(loaded(given)[0], method, path, {"kind": kind, "key": key})
    if output not in ("table", "wide"):
        show.value(found, output)
    elif not found and retry:
        click.echo("nothing to try again; `syncer explain` has an object's state and the reason")
    elif not found and kind:
        click.echo("no such object is parked; `syncer explain` has its state and the reason")
    elif not found:
        click.echo("nothing is parked")
    else:
        show.records(
            [_row(each, wide=output == "wide") for each in found],
            "table",
            headers=not no_headers,
        )
        if retry:
            click.echo("They are tried again now.")


def _row(each: Mapping[str, Any], *, wide: bool) -> dict[str, Any]:
    row = {
        "cluster": each["cluster"],
        "syncer": each["syncer"],
        "key": each["key"],
        "since": age(each["seconds"]),
        "tried": each["tried"],
        "class": each["class"],
        "next": "" if each["nextTry"] is None else age(each["nextTry"]),
        "reason": " ".join(each["reason"].split()),
    }
    return {**row, "wakes": "; ".join(each["wakes"])} if wide else row


def age(seconds: float) -> str:
    """Format seconds as kubectl formats an age: ``45s``, ``12m``, ``3h``, ``2d``."""
    for unit, size, most in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{round(seconds) // size}{unit}"
    return f"{round(seconds) // 86_400}d"
