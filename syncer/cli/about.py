"""``syncer version`` and ``syncer completion``."""

import platform

import click
from click.shell_completion import get_completion_class

from syncer.cli import show
from syncer.cli.options import output
from syncer.version import VERSION


@click.command("version")
@output("text", "json", "yaml", "name")
def show_version(output: str) -> None:
    """Print the version."""
    match output:
        case "text":
            click.echo(f"syncer {VERSION} (Python {platform.python_version()})")
        case "name":
            click.echo(VERSION)
        case _:
            show.value(about(), output)


def about() -> dict[str, str]:
    """Return the version, and what it runs on."""
    return {
        "version": VERSION,
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example, for ~/.bashrc:
      source <(syncer completion bash)
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "syncer", "_SYNCER_COMPLETE").source())
