"""The command ``syncer`` and its subcommands."""

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, modes, option, pass_given, settings
from syncer.cli.plugins_folder import search
from syncer.cli.run import start
from syncer.version import VERSION

#: Module and name of each subcommand. A subcommand is imported when it is called, so the daemon has
#: none in memory.
COMMANDS = {
    "clusters": ("syncer.cli.clusters", "clusters"),
    "completion": ("syncer.cli.about", "completion"),
    "config": ("syncer.cli.config", "config"),
    "debug": ("syncer.cli.debug", "debug"),
    "diff": ("syncer.cli.diff", "diff"),
    "doctor": ("syncer.cli.doctor", "doctor"),
    "etcd": ("syncer.cli.etcd", "etcd"),
    "explain": ("syncer.cli.explain", "explain"),
    "list": ("syncer.cli.listing", "list_objects"),
    "names": ("syncer.cli.names", "names"),
    "parked": ("syncer.cli.parked", "parked"),
    "patrol": ("syncer.cli.patrol", "patrol"),
    "pki": ("syncer.cli.pki", "pki"),
    "plugins": ("syncer.cli.plugins", "plugins"),
    "rbac": ("syncer.cli.rbac", "rbac"),
    "run": ("syncer.cli.run", "run"),
    "status": ("syncer.cli.status", "status"),
    "thaw": ("syncer.cli.thaw", "thaw"),
    "uninstall": ("syncer.cli.uninstall", "uninstall"),
    "version": ("syncer.cli.about", "show_version"),
}
#: Former names of commands, accepted for one version, with their new names.
RENAMED = {"drain": "uninstall"}


class App(click.Group):
    """The command ``syncer``.

    Our errors end it with a message and an exit status, without a traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand, or None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a subcommand, also by its former name.

        Returns its name, the command, and the remaining arguments.
        """
        old, *rest = args
        if old not in RENAMED:
            return super().resolve_command(ctx, args)
        if not ctx.resilient_parsing:  # not while a shell completes a word
            notice = f"`syncer {old}` is now `syncer {RENAMED[old]}`"
            click.echo(f"{notice}; the next version no longer knows the old word.", err=True)
        return super().resolve_command(ctx, [RENAMED[old], *rest])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn our errors into exit statuses."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            show.end_with(error)
            raise


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"syncer {VERSION}")
        ctx.exit()


@click.group(
    cls=App,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@settings(hidden=True)
@modes
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Print the version.",
)
@option(
    "--plugins-folder",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with packages of plugins in its subfolders, as `pip install --target` writes.",
)
@pass_given
@click.pass_context
def app(ctx: click.Context, given: GivenOptions, plugins_folder: Path | None) -> None:
    """Keep virtual Kubernetes clusters in step with a host cluster.

    `syncer --config FILE` runs the daemon, as `syncer run --config FILE` does, with all flags of
    `run`.

    Exit status: 0 success, 1 failure, 2 wrong usage or configuration, 3 a plugin can't be used.
    """
    if plugins_folder:
        search(plugins_folder)
    if ctx.invoked_subcommand is not None:
        return
    if not given.settings and not given.once and not given.dry_run:
        click.echo(ctx.get_help())
        return
    ctx.exit(start(given))
