"""``syncer config …``: check, explain and show the configuration."""

import json
import textwrap
from typing import TYPE_CHECKING

import click

from syncer.cli import show
from syncer.cli.options import Given, Setting, output, pass_given, settings

if TYPE_CHECKING:
    from syncer.config import Option


@click.group()
def config() -> None:
    """Check, explain and show the configuration."""


@config.command()
@settings()
@click.argument("file", required=False)
@pass_given
def validate(given: Given, file: str | None) -> None:
    """Check a configuration file, and report every problem with its line.

    \b
    Example:
      syncer config validate syncer.yaml

    Exit status: 0 valid, 2 a problem in the file, 3 a plugin that it names can't be used.
    """
    from syncer.cli.loading import loaded

    if file:
        given.put("--config", Setting(file, "FILE", flag=True))
    clusters = loaded(given)[0].config.clusters()
    click.echo(f"{given.file or 'the configuration'} is fine.")
    for each in clusters:
        on = [enabled.syncer.name for enabled in each.enabled()] + [entry.name for entry in each.custom_entries()]
        click.echo(f"{each.name}: {', '.join(on) or 'nothing is synced'}")


@config.command()
@settings()
@pass_given
def schema(given: Given) -> None:
    """Print the JSON schema, for editors and CI."""
    from syncer.cli.loading import model
    from syncer.config.render import schema as made

    show.value(made(model(given)), "json")


@config.command()
@settings()
@pass_given
def defaults(given: Given) -> None:
    """Print a complete file: every option with its default and its help.

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
def explain(given: Given, path: str) -> None:
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
        raise click.UsageError(f"there is no option {path}. {_unnamed(path) or nearest(made, path)}".strip())
    click.echo(f"{option.path or 'SyncerConfig'}  <{option.takes}>{_default(option)}")
    click.echo(_indented(option.help, "  "))
    below = option.model or option.item
    for each in options(below, path) if below else ():
        click.echo(f"\n  {each.path.rpartition('.')[2]}  <{each.takes}>{_default(each)}")
        click.echo(_indented(each.help, "    "))


def _unnamed(path: str) -> str:
    """Return a hint if a path may belong to a plugin, which is loaded only if the file names its section."""
    from syncer.plugins import installed

    steps = path.split(".")
    if len(steps) < 3 or steps[0] != "sync" or steps[2] not in [plugin.name for plugin in installed().others]:
        return ""
    return f"The plugin {steps[2]} is installed: say --config FILE, with a file that names {'.'.join(steps[:3])}."


def _default(option: "Option") -> str:
    if option.model is not None:
        return ""
    return "  required" if option.required else f"  default {json.dumps(option.default)}"


def _indented(text: str, indent: str) -> str:
    return textwrap.fill(" ".join(text.split()), 100, initial_indent=indent, subsequent_indent=indent)


@config.command()
@settings()
@output("table", "yaml", "json", "name")
@pass_given
def view(given: Given, output: str, no_headers: bool) -> None:
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
