"""``syncer list``: objects by their state, with reasons."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import F, GivenOptions, option, output, pass_given, query_settings
from syncer.cli.parked import age

if TYPE_CHECKING:
    from syncer.config import Loaded

#: The states of a list without ``--state``: all but those in step.
OUT_OF_STEP = ("pending", "skipped", "failing", "parked", "paused", "frozen")
ALL = ("in-step", *OUT_OF_STEP)
#: Seconds between two looks of ``--watch``.
_LOOK_SECONDS = 2.0


def _states(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> list[str]:
    """Return the states that are given one by one, or with commas between them."""
    states: list[str] = []
    for each in given:
        states += each.split(",")
    for state in states:
        if state not in (*ALL, "all"):
            raise click.BadParameter(
                f"there is no state {state!r}; there are all, {', '.join(ALL)}", ctx, parameter
            )
    if "all" in states:
        return list(ALL)
    return states or list(OUT_OF_STEP)


def of_objects(command: F) -> F:
    """Decorate a command with the flags that choose objects, and who decides about them."""
    namespace = option(
        "-n", "--namespace", default="", metavar="NAME", help="Only this virtual namespace."
    )
    all_namespaces = option(
        "-A", "--all-namespaces", is_flag=True, help="All namespaces, which is the default."
    )
    selector = option(
        "-l", "--selector", default="", metavar="SELECTOR", help="Only objects with these labels."
    )
    once = option(
        "--once",
        is_flag=True,
        help="Decide here, from fresh lists of both sides, instead of asking the daemon.",
    )
    return namespace(all_namespaces(selector(once(command))))


def query_of(
    kind: str, states: Sequence[str], *, namespace: str, all_namespaces: bool, selector: str
) -> dict[str, str]:
    """Return the query for the objects that the flags of a command choose.

    Raises:
        UsageError: Both a namespace and all of them are chosen.
    """
    if all_namespaces and namespace:
        raise click.UsageError("give either -n or -A", click.get_current_context())
    return {
        "kind": kind,
        "states": ",".join(states).replace("-", "_"),
        "namespace": namespace,
        "selector": selector,
    }


@click.command("list")
@click.argument("kind", default="")
@option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE,…",
    callback=_states,
    help="in-step, pending, skipped, failing, parked, paused, frozen or all. Default: all but"
    " in-step.",
)
@of_objects
@option("-w", "--watch", is_flag=True, help="After the list, print each object that changes.")
@query_settings
@output("table", "wide", "json", "yaml", "name")
@pass_given
@click.pass_context
def list_objects(
    ctx: click.Context,
    given: GivenOptions,
    kind: str,
    states: list[str],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    once: bool,
    watch: bool,
    output: str,
    no_headers: bool,
) -> None:
    """List objects by their state, with the reason of each.

    KIND restricts the list to a kind. Without --state, it has all objects that are not in step.
    Without a daemon, the command decides about each object once by itself and writes nothing.

    \b
    Examples:
      syncer list                                  # everything that isn't in step
      syncer list secrets --state skipped -n shop  # what was left out, and why
      syncer list --state parked,failing -w        # and what changes
    """
    from syncer.cli.loading import loaded

    query = query_of(
        kind, states, namespace=namespace, all_namespaces=all_namespaces, selector=selector
    )
    if watch and once:
        raise click.UsageError("--watch asks the daemon, so it takes no --once", ctx)
    if watch and output in ("json", "yaml"):
        raise click.UsageError("--watch takes no -o json or yaml", ctx)
    configured = loaded(given)[0]
    found = listed(configured, query, once=once, watch=watch)
    if output in ("json", "yaml"):
        show.value(found, output)
        return
    _print(found, output, headers=not no_headers)
    if not found and not watch and output != "name":
        click.echo("there is no such object", err=True)
    before = {_name(each): each for each in found}
    while watch:
        time.sleep(_LOOK_SECONDS)
        now = {_name(each): each for each in _of_daemon(configured, query)[0]}
        changed = [each for name, each in now.items() if _differs(before.get(name), each)]
        for name, each in before.items():
            if name not in now:
                changed.append({**each, "state": "left the list", "code": "", "reason": ""})
        _print(changed, output, headers=False)
        before = now


def listed(
    configured: "Loaded", query: Mapping[str, str], *, once: bool, watch: bool = False
) -> list[dict[str, Any]]:
    """Return the objects, and print which syncers' objects aren't known.

    Without a daemon, each is decided here, unless changes are to be watched.

    Raises:
        NoDaemon: Changes are to be watched, and no daemon answers.
    """
    from syncer.cli.daemon import NoDaemon

    if not once:
        try:
            found, unlisted = _of_daemon(configured, query)
        except NoDaemon as error:
            if watch:
                raise
            show.no_daemon(error)
        else:
            _print_unlisted(unlisted)
            return found

    from syncer.cli.without_daemon import decided_here
    from syncer.daemon.answer_once import list_once

    page = decided_here(configured, partial(list_once, query=query))
    _print_unlisted(page.unlisted)
    return page.items


def _of_daemon(
    configured: "Loaded", query: Mapping[str, str]
) -> tuple[list[dict[str, Any]], Mapping[str, str]]:
    """Return the objects of all pages of the daemon's answer, and what isn't listed, with reasons.

    Raises:
        NoDaemon: No daemon answers.
    """
    found: list[dict[str, Any]] = []
    unlisted: Mapping[str, str] = {}
    for page in pages(configured, query):
        found += page["items"]
        unlisted = page["unlisted"]
    return found, unlisted


def pages(configured: "Loaded", query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of the daemon's answer; the last one names what isn't listed, with reasons.

    Raises:
        NoDaemon: No daemon answers.
    """
    from syncer.cli.daemon import ask

    begin = ""
    while True:
        page = ask(configured, "GET", "/list", {**query, "begin": begin})
        yield page
        begin = page["next"]
        if not begin:
            return


def _print_unlisted(reasons: Mapping[str, str]) -> None:
    for syncer, reason in reasons.items():
        click.echo(show.one_line(f"not listed: {syncer}: {reason}"), err=True)


def _name(each: Mapping[str, Any]) -> str:
    return f"{each['cluster']}/{each['syncer']}/{each['key']}/{each['hostKey']}"


def _differs(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    if before is None:
        return True
    return any(before[name] != now[name] for name in ("state", "code", "reason"))


def _print(found: list[dict[str, Any]], form: str, *, headers: bool) -> None:
    if form == "name":
        for each in found:
            click.echo(show.one_line(f"{each['syncer']}/{each['key']}"))
        return
    rows = [_row(each, wide=form == "wide") for each in found]
    show.records(rows, "table", headers=headers)


def _row(each: Mapping[str, Any], *, wide: bool) -> dict[str, Any]:
    row = {
        "cluster": each["cluster"],
        "syncer": each["syncer"],
        "key": each["key"],
        "state": each["state"].replace("_", "-"),
        "since": age(each["seconds"]) if each.get("since") else "-",
        "code": each["code"] or "-",
        "reason": " ".join(each["reason"].split()) or "-",
    }
    if not wide:
        return row
    return {
        **row,
        "host": each["hostKey"] or "-",
        "way out": each["wayOut"] or "-",
        "wakes": "; ".join(each.get("wakes", ())) or "-",
    }
