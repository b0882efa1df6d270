"""``syncer plugins …``: which syncers and name translators are there, and what each does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from syncer.cli import show
from syncer.cli.options import Given, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.config import SyncerConfig
    from syncer.plugins import Installed


@click.group()
def plugins() -> None:
    """Show the plugins."""


@plugins.command("list")
@settings()
@output("table", "json", "yaml", "name")
@pass_given
def list_(given: Given, output: str, no_headers: bool) -> None:
    """List syncers and name translators.

    Built-in ones are always loaded. A plugin that is installed is imported only where the configuration names it.
    """
    show.records(list(_records(given)), output, headers=not no_headers)


def _records(given: Given) -> Iterator[dict[str, Any]]:
    from syncer.cli.loading import loaded, model
    from syncer.plugins import installed, origin_of, roles_of

    config = loaded(given)[0].config if given.settings else None
    plugins = installed()
    known = (type(config) if config else model(given)).syncers
    plugins.syncers(syncer.section for syncer in known)
    for syncer in known:
        yield {
            "name": syncer.name,
            "section": syncer.section,
            "resource": str(syncer.resource),
            "roles": roles_of(syncer),
            "enabled": "yes" if (config.section_of(syncer) if config else syncer.config()).enabled else "no",
            "from": str(plugins.origin(syncer)),
        }
    sections = {syncer.section.partition(".")[2] for syncer in known}
    for point in plugins.others:
        if point.name not in sections:
            yield _record(point.name, "?", "not named in the configuration", str(origin_of(point)))
    yield from _translators(plugins, config)


def _translators(plugins: "Installed", config: "SyncerConfig | None") -> Iterator[dict[str, Any]]:
    for name, origin in plugins.translators():
        used = config is not None and config.names.translator == name
        yield _record(name, "names.translator", "yes" if used else "no", str(origin))


def _record(name: str, section: str, enabled: str, origin: str) -> dict[str, Any]:
    return {"name": name, "section": section, "resource": "-", "roles": ["-"], "enabled": enabled, "from": origin}
