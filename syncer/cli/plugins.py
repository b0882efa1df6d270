"""``syncer plugins …``: list syncers and name translators with their roles, and check them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import Given, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.api import Problem
    from syncer.config import VirtualCluster
    from syncer.plugins import Found, Installed


@click.group()
def plugins() -> None:
    """Show and check the plugins."""


@plugins.command("list")
@settings()
@output("table", "json", "yaml", "name")
@pass_given
def list_(given: Given, output: str, no_headers: bool) -> None:
    """List syncers and name translators.

    Built-in plugins are always loaded. An installed plugin is imported only if the configuration names it.
    """
    show.records(list(_records(given)), output, headers=not no_headers)


def _records(given: Given) -> Iterator[dict[str, Any]]:
    from syncer.cli.loading import loaded, model
    from syncer.directions import resources_of
    from syncer.plugins import installed, origin_of, roles_of

    cluster = loaded(given)[0].cluster if given.settings else None
    plugins = installed()
    known = cluster.syncers if cluster else model(given).syncers
    plugins.syncers(syncer.section for syncer in known)
    for syncer in known:
        yield {
            "name": syncer.name,
            "section": syncer.section,
            "resource": str(next(iter(resources_of(syncer)), "-")),
            "roles": roles_of(syncer),
            "enabled": "yes" if (cluster.section_of(syncer) if cluster else syncer.config()).enabled else "no",
            "from": str(plugins.origin(syncer)),
        }
    sections = {syncer.section.partition(".")[2] for syncer in known}
    for point in plugins.others:
        if point.name not in sections:
            yield _record(point.name, "?", "not named in the configuration", str(origin_of(point)))
    yield from _translators(plugins, cluster)


def _translators(plugins: "Installed", cluster: "VirtualCluster | None") -> Iterator[dict[str, Any]]:
    for name, origin in plugins.translators():
        used = cluster is not None and cluster.names.translator == name
        yield _record(name, "names.translator", "yes" if used else "no", str(origin))


def _record(name: str, section: str, enabled: str, origin: str) -> dict[str, Any]:
    return {"name": name, "section": section, "resource": "-", "roles": ["-"], "enabled": enabled, "from": origin}


@plugins.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@output("table", "json", "yaml", "name")
@option("--laws", is_flag=True, help="Also test the laws that every syncer must obey. Needs `vsyncer[testing]`.")
def check(names: tuple[str, ...], output: str, no_headers: bool, laws: bool) -> None:
    """Import plugins, and report the problems of each.

    NAMEs restrict this to some plugins. Needs neither a cluster nor a configuration. The laws are
    tested with generated objects; if these can't resemble real objects, use syncer.testing.laws in
    the plugin's own tests.

    \b
    Example:
      syncer plugins check --laws widgets

    Exit status: 0 all plugins are sound, 3 a plugin is not.
    """
    from syncer.cli import plugin_check, plugin_laws
    from syncer.plugins import installed

    if laws:
        plugin_laws.must_be_there()
    there = installed()
    found = plugin_check.checked(there, _known(names, there.names()), plugin_laws.broken_laws if laws else _no_more)
    show.records(list(_results(found, there, laws=laws)), output, headers=not no_headers)
    if wrong := sum(1 for each in found if each.problems):
        show.fail(f"not sound: {wrong} of {len(found)}.", 3)


def _no_more(found: "Found") -> "Sequence[Problem]":
    return ()


def _known(names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """Return the names, or all if none is given.

    Raises:
        UsageError: No plugin has such a name.
    """
    from syncer.config.problems import guess

    for name in names:
        if name not in known:
            raise click.UsageError(f"no plugin is called {name!r}. {guess(name, known)}".strip())
    return names or known


def _results(found: "Sequence[Found]", there: "Installed", *, laws: bool) -> Iterator[dict[str, Any]]:
    """Yield a record for each problem of a plugin, and for each sound plugin."""
    from syncer.cli.plugin_check import note
    from syncer.cli.plugin_laws import can_be_tried

    for each in found:
        for problem in each.problems:
            place = ":".join(str(part) for part in (problem.file, problem.line) if part)
            yield {"name": each.name, "from": str(each.origin), "ok": "no", "at": place or "-", "what": problem.message}
        if not each.problems:
            tried = not laws or can_be_tried(each)
            what = note(each, there) or ("fine" if tried else "fine; not tried under the laws")
            yield {"name": each.name, "from": str(each.origin), "ok": "yes", "at": "-", "what": what}
