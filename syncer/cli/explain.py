"""``syncer explain``: why an object is, or isn't, on the other side."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, output, pass_given, query_settings
from syncer.cli.parked import age

if TYPE_CHECKING:
    from syncer.config import Loaded

#: The width of the names of fields.
_WIDTH = 12


@click.command()
@click.argument("kind")
@click.argument("key", metavar="NAMESPACE/NAME")
@option(
    "--once",
    is_flag=True,
    help="Decide here, from fresh lists of both sides, instead of asking the daemon.",
)
@query_settings
@output("text", "json", "yaml")
@pass_given
def explain(given: GivenOptions, kind: str, key: str, once: bool, output: str) -> None:
    """Explain why an object is, or isn't, on the other side.

    KIND is a kind, a plural or the name of a syncer. The object is named as on either side; if both
    sides have one of that name, the virtual one is meant. The answer has the state with its reason
    and the way out, the policies that decided, what the decision read and waits for, who owns which
    fields, the latest writers, and drift. Without a daemon, the command decides once by itself and
    writes nothing.

    \b
    Examples:
      syncer explain configmaps shop/db
      syncer explain pod shop/web -o yaml
    """
    from syncer.cli.loading import loaded

    found = _found(loaded(given)[0], kind, key, once=once)
    if output != "text":
        show.value(found, output)
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        for line in lines(one):
            click.echo(line)


def _found(configured: "Loaded", kind: str, key: str, *, once: bool) -> list[dict[str, Any]]:
    from syncer.cli.daemon import NoDaemon, ask

    if not once:
        try:
            found: list[dict[str, Any]] = ask(
                configured, "GET", "/explain", {"kind": kind, "key": key}
            )
        except NoDaemon as error:
            click.echo(f"{error}\nSo this command decides once by itself.", err=True)
        else:
            return found

    import asyncio

    from syncer.cli.loading import selected
    from syncer.daemon.explain_once import explain_once
    from syncer.observe.logs import configure

    log = configured.config.log
    level = "error" if log.level == "info" else log.level
    configure(level, log.format)

    async def decide() -> list[dict[str, Any]]:
        cluster = await selected(configured)
        return await explain_once(configured.config, cluster, kind=kind, key=key)

    return asyncio.run(decide())


def lines(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of an explanation for people."""
    yield show.one_line(f"{one['kind']} {one['key']} in virtual cluster {one['cluster']}")
    for name, text in _fields(one):
        yield f"  {name + ':':{_WIDTH}} {show.one_line(text)}"
    yield from _section(
        "decided by", [f"{step['policy']}: {step['what']}" for step in _of(one, "steps")]
    )
    writes = _of(one.get("decision", {}), "writes")
    yield from _section("writes", [_write(each) for each in writes])
    yield from _section("waits for", _of(one, "wakes") if one["code"] else ())
    yield from _section("reads", [_read(each) for each in _of(one, "reads")])
    owners = one.get("owners", {})
    yield from _section("owners", [f"{who}: {', '.join(paths)}" for who, paths in owners.items()])
    yield from _section("left out", _of(one, "leftOut"))
    yield from _section("frozen", [_frozen(each) for each in _of(one, "frozen")])
    yield from _section("drift", [_drift(each) for each in _of(one, "drift")])
    yield from _section("writers", [_manager(each) for each in _of(one, "managers")])


def _fields(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    state = one["state"].replace("_", " ")
    if one["code"]:
        state = f"{state} ({one['code']})"
    if one.get("since"):
        state = f"{state} for {age(one['seconds'])}, {one['tried']} attempts"
    yield "syncer", one["syncer"]
    yield "state", state
    if one["reason"]:
        yield "reason", one["reason"]
    if one["wayOut"]:
        yield "way out", one["wayOut"]
    if one.get("nextTry") is not None:
        yield "next try", f"in {age(max(one['nextTry'], 0))}"
    yield "virtual", _side(one["key"], exists=one["onVirtual"])
    if one["hostKey"]:
        yield "host", _side(one["hostKey"], exists=one["onHost"])


def _side(key: str, *, exists: bool) -> str:
    return key if exists else f"{key} (not there)"


def _of(one: Mapping[str, Any], name: str) -> Sequence[Any]:
    found: Sequence[Any] = one.get(name) or ()
    return found


def _section(name: str, found: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(found):
        title = "" if number else f"{name}:"
        yield f"  {title:{_WIDTH}} {show.one_line(text)}"


def _write(each: Mapping[str, Any]) -> str:
    if each["calls"]:
        return f"{each['verb']} {each['object']}: {each['calls']} API calls"
    return f"{each['verb']} {each['object']}: nothing to change"


def _read(each: Mapping[str, Any]) -> str:
    text: str = each["object"]
    return text if each["exists"] else f"{text} (not there)"


def _frozen(each: Mapping[str, str]) -> str:
    other = each["other"] or "somebody else"
    return f"{each['field']} of {each['object']} until {each['until']}, as {other} writes it, too"


def _drift(each: Mapping[str, Any]) -> str:
    paths = ", ".join(each["paths"])
    text = f"{each['class']} of {each['object']}"
    return f"{text}: {paths}" if paths else text


def _manager(each: Mapping[str, Any]) -> str:
    who = f"{each['manager']} (this daemon)" if each["ours"] else each["manager"]
    through = f" through {each['subresource']}" if each["subresource"] else ""
    return f"{each['side']}: {who}{through} at {each['time']}"
