"""``syncer plugins …``: list syncers and name translators with their roles, and check them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.api import Problem
    from syncer.config import Loaded, VirtualCluster
    from syncer.plugins import FoundPlugin, Installed


@click.group()
def plugins() -> None:
    """Show and check the plugins."""


@plugins.command("list")
@settings()
@output("table", "json", "yaml", "name")
@pass_given
def list_(given: GivenOptions, output: str, no_headers: bool) -> None:
    """List syncers and name translators.

    Built-in plugins are always loaded. An installed plugin is imported only if the configuration
    names it. If only some of several virtual clusters have one enabled, these are named; --cluster
    selects a single virtual cluster.
    """
    show.records(list(_records(given)), output, headers=not no_headers)


def _records(given: GivenOptions) -> Iterator[dict[str, Any]]:
    from syncer.cli.loading import loaded, model
    from syncer.directions import resources_of
    from syncer.plugins import installed, origin_of, roles_of

    clusters = _clusters(loaded(given)[0]) if given.settings else []
    plugins = installed()
    known = clusters[0][1].syncers if clusters else model(given).syncers
    plugins.syncers(syncer.section for syncer in known)
    for syncer in known:
        answers = [(name, cluster.section_of(syncer).enabled) for name, cluster in clusters]
        if not answers:
            answers = [("", syncer.config().enabled)]
        yield {
            "name": syncer.name,
            "section": syncer.section,
            "resource": str(next(iter(resources_of(syncer)), "-")),
            "roles": roles_of(syncer),
            "enabled": _enabled(answers),
            "from": str(plugins.origin(syncer)),
        }

    sections = {syncer.section.partition(".")[2] for syncer in known}
    for point in plugins.others:
        if point.name not in sections:
            origin = str(origin_of(point))
            yield _record(point.name, "?", "not named in the configuration", origin)

    for name, translator_origin in plugins.translators():
        answers = [(each, cluster.names.translator == name) for each, cluster in clusters]
        yield _record(name, "names.translator", _enabled(answers), str(translator_origin))


def _clusters(found: "Loaded") -> "list[tuple[str, VirtualCluster]]":
    """Return the selected virtual cluster, or all, with their names.

    A single one stands for those of an entry of ``virtualClusterSecrets``.

    Raises:
        SyncerError: The selected one can't be found.
    """
    import asyncio

    from syncer.cli.loading import selected

    if found.chosen:
        return [(found.chosen, asyncio.run(selected(found, login=False)))]
    config = found.config
    clusters = [(each.name, each) for each in config.clusters()]
    for section in config.virtual_cluster_secrets:
        cluster = config.cluster_of(section, "any", section.host_namespaces[0])
        clusters.append((f"Secrets in {section.namespace}", cluster))
    return clusters


def _enabled(answers: Sequence[tuple[str, bool]]) -> str:
    """Return whether something is enabled: ``yes``, ``no``, or the names of virtual clusters.

    ``answers`` has the names of all virtual clusters, each with whether it is enabled there.
    """
    enabled = list(dict.fromkeys(name for name, is_enabled in answers if is_enabled))
    if not enabled:
        return "no"
    if all(is_enabled for _, is_enabled in answers):
        return "yes"
    return ", ".join(enabled)


def _record(name: str, section: str, enabled: str, origin: str) -> dict[str, Any]:
    return {
        "name": name,
        "section": section,
        "resource": "-",
        "roles": ["-"],
        "enabled": enabled,
        "from": origin,
    }


@plugins.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@output("table", "json", "yaml", "name")
@option(
    "--laws",
    is_flag=True,
    help="Also test the laws that every syncer must obey. Needs `vsyncer[testing]`.",
)
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

    more: Callable[[FoundPlugin], Iterable[Problem]] = _no_laws
    if laws:
        plugin_laws.must_be_there()
        more = plugin_laws.broken_laws
    there = installed()
    found = plugin_check.checked(there, _known(names, there.names()), more)
    show.records(list(_results(found, there, laws=laws)), output, headers=not no_headers)
    if wrong := sum(1 for each in found if each.problems):
        show.fail(f"not sound: {wrong} of {len(found)}.", 3)


def _no_laws(found: "FoundPlugin") -> "Iterable[Problem]":
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


def _results(
    found: "Sequence[FoundPlugin]",
    there: "Installed",
    *,
    laws: bool,
) -> Iterator[dict[str, Any]]:
    """Yield a record for each problem of a plugin, and for each sound plugin."""
    from syncer.cli.plugin_check import note
    from syncer.cli.plugin_laws import can_be_tried

    for each in found:
        for problem in each.problems:
            location = ":".join(str(part) for part in (problem.file, problem.line) if part)
            yield {
                "name": each.name,
                "from": str(each.origin),
                "ok": "no",
                "at": location or "-",
                "what": problem.message,
            }
        if not each.problems:
            tried = not laws or can_be_tried(each)
            what = note(each, there) or ("fine" if tried else "fine; not tried under the laws")
            yield {
                "name": each.name,
                "from": str(each.origin),
                "ok": "yes",
                "at": "-",
                "what": what,
            }
