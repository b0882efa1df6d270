"""``syncer names …``: translate the name of an object to the other side, or list all names."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.listing import ALL, listed, of_objects, query_of
from syncer.cli.options import GivenOptions, output, pass_given, query_settings, settings

if TYPE_CHECKING:
    from syncer.api import Key, Settings, Syncer


@click.group()
def names() -> None:
    """Translate names, from the virtual side to the host and back, or list all."""


@names.command("to-host")
@settings()
@output("name", "table", "json", "yaml")
@click.argument("kind")
@click.argument("key")
@pass_given
def to_host(given: GivenOptions, kind: str, key: str, output: str, no_headers: bool) -> None:
    """Print the namespace and name of the host copy of a virtual object.

    \b
    Example:
      syncer names to-host secret shop/db
    """
    syncer, configured = _syncer(given, kind)
    virtual = _key(key, namespaced=syncer.resource.namespaced)
    _print(
        virtual,
        syncer.host_key(configured, virtual),
        syncer,
        output,
        headers=not no_headers,
        side="host",
    )


@names.command("to-virtual")
@settings()
@output("name", "table", "json", "yaml")
@click.argument("kind")
@click.argument("key")
@pass_given
def to_virtual(given: GivenOptions, kind: str, key: str, output: str, no_headers: bool) -> None:
    """Print the namespace and name of the virtual object that a host object is a copy of.

    Fails for a hashed host name, from which the virtual name can't be computed.

    \b
    Example:
      syncer names to-virtual secret vc-shop/db-x-shop-x-shop
    """
    syncer, configured = _syncer(given, kind)
    host = _key(key, namespaced=syncer.host_resource.namespaced)
    virtual = configured.names.to_virtual(syncer.host_resource, host)
    if virtual is None:
        marks = configured.marks
        show.fail(
            f"the virtual name can't be computed from {host}. If this is a copy, the virtual name "
            f"is in its annotations {marks.namespace} and {marks.name}"
        )
    _print(virtual, host, syncer, output, headers=not no_headers, side="virtual")


@names.command("list")
@click.argument("kind", default="")
@of_objects
@query_settings
@output("table", "wide", "json", "yaml", "name")
@pass_given
def list_names(
    given: GivenOptions,
    kind: str,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    once: bool,
    output: str,
    no_headers: bool,
) -> None:
    """List the names of objects on both sides.

    KIND restricts the list to a kind. An object without a copy has the name that a copy would have:
    `-o wide` says on which sides it is. `-o name` prints host names. Objects that the host never
    has, such as stand-in Nodes, are left out. Without a daemon, the command lists both sides by
    itself and writes nothing.

    \b
    Examples:
      syncer names list                       # whatever the daemon knows
      syncer names list pods -n shop -o name  # what to look for on the host
    """
    from syncer.cli.loading import loaded

    query = query_of(
        kind, ALL, namespace=namespace, all_namespaces=all_namespaces, selector=selector
    )
    found = [each for each in listed(loaded(given)[0], query, once=once) if each["hostKey"]]
    match output:
        case "name":
            show.records([{"host": each["hostKey"]} for each in found], output)
        case "table" | "wide":
            rows = [_row(each, wide=output == "wide") for each in found]
            show.records(rows, "table", headers=not no_headers)
            if not rows:
                click.echo("there is no such object", err=True)
        case _:
            show.value([_record(each) for each in found], output)


def _row(each: Mapping[str, Any], *, wide: bool) -> dict[str, Any]:
    row = {
        "cluster": each["cluster"],
        "syncer": each["syncer"],
        "virtual": each["key"],
        "host": each["hostKey"],
    }
    if not wide:
        return row
    return {**row, "on-virtual": each["onVirtual"], "on-host": each["onHost"]}


def _record(each: Mapping[str, Any]) -> dict[str, Any]:
    names = _row(each, wide=False)
    more = {name: each[name] for name in ("kind", "onVirtual", "onHost")}
    return {**names, **more}


def _syncer(given: GivenOptions, kind: str) -> "tuple[Syncer, Settings]":
    """Return the syncer of a kind, and the settings of the virtual cluster."""
    import asyncio

    from syncer.cli.loading import loaded, selected
    from syncer.directions import resources_of

    cluster = asyncio.run(selected(loaded(given)[0], login=False))
    known = [syncer() for syncer in cluster.syncers if resources_of(syncer)]
    for entry in cluster.custom_entries():
        known += entry.assumed()[:1]

    found = [syncer for syncer in known if kind.lower() in _words_for(syncer)]
    if not found:
        plurals = sorted({syncer.resource.plural for syncer in known})
        raise click.UsageError(f"no syncer is for {kind!r}. There are {', '.join(plurals)}")
    copied = [syncer for syncer in found if _is_copied(syncer)]
    return (copied or found)[0], cluster.settings()


def _is_copied(syncer: "Syncer") -> bool:
    """Return True unless a syncer shows objects of the host, copies to another resource, or makes
    objects under names of the operator's.
    """
    from syncer.directions import direction_of

    direction = direction_of(syncer)
    is_another = direction.comes_up or direction.made_for
    return syncer.host_resource == syncer.resource and not is_another


def _words_for(syncer: "Syncer") -> set[str]:
    """Return the words for a resource: ``secret``, ``secrets``, ``ingresses.networking.k8s.io``."""
    resource = syncer.resource
    return {resource.kind.lower(), resource.plural.lower(), str(resource).lower()}


def _key(text: str, *, namespaced: bool) -> "Key":
    from syncer.api import Key

    parts = text.split("/")
    if not all(parts) or len(parts) != (2 if namespaced else 1):
        form = "NAMESPACE/NAME" if namespaced else "NAME"
        raise click.UsageError(f"{text!r} is not of the form {form}")
    return Key.parse(text)


def _print(
    virtual: "Key",
    host: "Key",
    syncer: "Syncer",
    form: str,
    *,
    headers: bool,
    side: str,
) -> None:
    record = {"virtual": str(virtual), "host": str(host), "resource": str(syncer.resource)}
    # The first value of a record is its name.
    show.records([{side: record[side]} | record], form, headers=headers)
