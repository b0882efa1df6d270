"""``syncer explain``: why an object is, or isn't, on the other side."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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
    fields, the latest writers, drift, what holds an object that is being deleted, and the host's
    latest Events about the copy. Without a daemon, the command decides once by itself and
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
            show.no_daemon(error)
        else:
            return found

    from syncer.cli.without_daemon import decided_here
    from syncer.daemon.answer_once import explain_once

    return decided_here(configured, partial(explain_once, kind=kind, key=key))


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
    yield from _section("lacks", [_lacked(each) for each in _of(one, "lacks")])
    owners = one.get("owners", {})
    yield from _section("ending", [_ending(each) for each in _of(one, "ending")])
    yield from _section("host events", [_event(each) for each in _of(one, "hostEvents")])
    yield from _section("owners", [f"{who}: {', '.join(paths)}" for who, paths in owners.items()])
    yield from _section("left out", _of(one, "leftOut"))
    yield from _section("not kept", [_not_kept(each) for each in _of(one, "notKept")])
    yield from _section("frozen", [_frozen(each) for each in _of(one, "frozen")])
    yield from _section("drift", [_drift(each) for each in _of(one, "drift")])
    yield from _section("writers", [_manager(each) for each in _of(one, "managers")])


def _fields(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    state = one["state"].replace("_", " ")
    if one["code"]:
        state = f"{state} ({one['code']})"
    if one.get("since"):
        attempts = show.counted(one["tried"], "attempt")
        state = f"{state} for {age(one['seconds'])}, {attempts}"
    if one["syncer"]:
        yield "syncer", one["syncer"]
    yield "state", state
    if one["reason"]:
        yield "reason", one["reason"]
    if one["wayOut"]:
        yield "way out", one["wayOut"]
    decided = one.get("decision", {}).get("reason", "")
    if decided and decided != one["reason"]:
        yield "decision", decided
    if one.get("nextTry") is not None:
        yield "next try", f"in {age(max(one['nextTry'], 0))}"
    yield from _last(one)
    yield "virtual", _side(one["key"], exists=one["onVirtual"])
    if one["hostKey"]:
        yield "host", _side(one["hostKey"], exists=one["onHost"])


def _last(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the last write, and the last error unless it is the reason."""
    wrote = one.get("lastWrite")
    if wrote:
        yield "last write", f"to the {wrote['side']} side at {wrote['time']}"
    failed = one.get("lastError")
    if failed and failed["message"] != one["reason"]:
        yield "last error", f"{age(failed['seconds'])} ago: {failed['message']}"


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
        return f"{each['verb']} {each['object']}: {show.counted(each['calls'], 'API call')}"
    return f"{each['verb']} {each['object']}: nothing to change"


def _read(each: Mapping[str, Any]) -> str:
    text: str = each["object"]
    return text if each["exists"] else f"{text} (not there)"


def _not_kept(each: Mapping[str, Any]) -> str:
    return f"{each['field']} of {each['object']}: its API server drops or rewrites it"


def _ending(each: Mapping[str, Any]) -> str:
    parts = [f"{each['object']} is being deleted, with the deletionTimestamp {each['time']}"]
    if each["finalizers"]:
        parts.append(f"held by the finalizers {', '.join(each['finalizers'])}")
    return "; ".join([*parts, *each["conditions"]])


def _event(each: Mapping[str, Any]) -> str:
    times = f" ({each['count']} times)" if each["count"] > 1 else ""
    return f"{each['type']} {each['reason']} at {each['time']}{times}: {each['message']}"


def _lacked(each: Mapping[str, str]) -> str:
    return f"{each['object']}: {each['state']} ({each['code']}): {each['reason']}"


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
