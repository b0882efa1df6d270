"""``syncer config …``: check, explain and show the configuration."""

import json
import textwrap
from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, Setting, option, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.config import Option, SyncerConfig
    from syncer.daemon.start.comparison import Comparison


@click.group()
def config() -> None:
    """Check, explain and show the configuration."""


@config.command()
@settings()
@click.argument("file", required=False)
@option("--offline", is_flag=True, help="Connect to no cluster.")
@pass_given
def validate(given: GivenOptions, file: str | None, offline: bool) -> None:
    """Check a configuration file, and report every problem with its line.

    If pods are synced, the address of their API server must be known: from the virtual kubeconfig,
    if that file exists, or from networking.apiServer.

    If both kubeconfigs exist and run no program, the command checks that they lead to two different
    clusters; otherwise a line says why it doesn't. The credentials of each kubeconfig that exists,
    and runs no program, are tried.

    \b
    Example:
      syncer config validate syncer.yaml

    Exit status: 0 valid, 1 valid, but a cluster doesn't accept the credentials, 2 a problem in the
    file, 3 a plugin that the file names can't be used.
    """
    from syncer.api.errors import SyncerError
    from syncer.cli.loading import loaded
    from syncer.daemon.start.comparison import check_api_servers

    if file:
        given.put("--config", Setting(file, "FILE", flag=True))
    config = loaded(given)[0].config
    check_api_servers(config)
    clusters = config.clusters()
    notes: list[str] = []
    refusals: list[str] = []
    if not offline:
        notes, refusals = _compared(config)
    how = "is valid, but can't be used yet" if refusals else "is fine"
    click.echo(f"{given.file or 'the configuration'} {how}.")
    for each in clusters:
        enabled = [one.syncer.name for one in each.enabled()]
        enabled += [entry.name for entry in each.custom_entries()]
        click.echo(f"{each.name}: {', '.join(enabled) or 'nothing is synced'}")
    for entry in config.virtual_cluster_secrets:
        limit = f"{entry.max_clusters} virtual clusters at most"
        click.echo(f"Secrets in {entry.namespace}: {limit}, in {', '.join(entry.host_namespaces)}")
    for line in notes:
        click.echo(line, err=True)
    if refusals:
        raise SyncerError("\n".join(refusals))


def _compared(config: "SyncerConfig") -> "Comparison":
    import asyncio

    from syncer.daemon.start.comparison import compare
    from syncer.observe.logs import configure

    configure("error", config.log.format)
    return asyncio.run(compare(config))


@config.command()
@settings()
@pass_given
def schema(given: GivenOptions) -> None:
    """Print the JSON schema, for editors and CI."""
    from syncer.cli.loading import model
    from syncer.config.render import schema as made

    show.value(made(model(given)), "json")


@config.command()
@settings()
@pass_given
def defaults(given: GivenOptions) -> None:
    """Print a complete file: every option with its default and its help.

    The options that every kind has are shown for the first kind alone.

    \b
    Example:
      syncer config defaults > syncer.yaml
    """
    from syncer.cli.loading import model
    from syncer.config.render import defaults as made

    click.echo(made(model(given)), nl=False)


@config.command()
@settings()
@click.argument("path", default="")
@pass_given
def explain(given: GivenOptions, path: str) -> None:
    """Explain the option at a dotted PATH, or the options at the top.

    To explain the options of a plugin, give a file that names its section with --config.

    \b
    Examples:
      syncer config explain virtualClusters
      syncer config explain sync.toHost.pods
    """
    from syncer.cli.loading import model
    from syncer.config import nearest, option_at, options

    made = model(given)
    option = option_at(made, path)
    if option is None:
        raise click.UsageError(
            f"there is no option {path}. {_unnamed(path) or nearest(made, path)}".strip(),
        )
    click.echo(f"{option.path or 'SyncerConfig'}  <{option.takes}>{_default(option)}")
    click.echo(_indented(option.help, "  "))
    below = option.model or option.item
    for each in options(below, path) if below else ():
        click.echo(f"\n  {each.path.rpartition('.')[2]}  <{each.takes}>{_default(each)}")
        click.echo(_indented(each.help, "    "))


def _unnamed(path: str) -> str:
    """Return a hint if a path may be of a plugin that isn't loaded.

    A plugin is loaded only if the file names its section.
    """
    from syncer.plugins import installed

    steps = path.split(".")
    if len(steps) < 3 or steps[0] != "sync":
        return ""
    name = steps[2]
    if name not in [plugin.name for plugin in installed().others]:
        return ""
    section = ".".join(steps[:3])
    return f"The plugin {name} is installed: give --config FILE, with a file that names {section}."


def _default(option: "Option") -> str:
    if option.model is not None:
        return ""
    return "  required" if option.required else f"  default {json.dumps(option.default)}"


def _indented(text: str, indent: str) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        100,
        initial_indent=indent,
        subsequent_indent=indent,
    )


@config.command()
@settings()
@output("table", "yaml", "json", "name")
@pass_given
def view(given: GivenOptions, output: str, no_headers: bool) -> None:
    """Show the configuration in force, with the origin of each value.

    \b
    Example:
      syncer config view --config syncer.yaml --log-level debug
    """
    from syncer.cli.loading import loaded
    from syncer.config.render import rows

    config, _ = loaded(given)
    if output in ("yaml", "json"):
        show.value(config.config.model_dump(mode="json", by_alias=True), output)
        return
    show.records([row._asdict() for row in rows(config)], output, headers=not no_headers)
