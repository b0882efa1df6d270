"""The command ``syncer`` and its subcommands."""

from typing import Any

import click

from syncer.cli import show
from syncer.cli.about import completion, show_version
from syncer.cli.config import config
from syncer.cli.names import names
from syncer.cli.options import Given, modes, pass_given, settings
from syncer.cli.parked import parked
from syncer.cli.patrol import patrol
from syncer.cli.plugins import plugins
from syncer.cli.rbac import rbac
from syncer.cli.run import run, start
from syncer.cli.status import status
from syncer.cli.thaw import thaw
from syncer.cli.uninstall import uninstall
from syncer.version import VERSION

#: Former names of commands, accepted for one version, with their new names.
RENAMED = {"drain": "uninstall"}


class App(click.Group):
    """The command ``syncer``.

    Our errors end it with a message and an exit status, without a traceback.
    """

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
            notice = f"`syncer {old}` is now `syncer {RENAMED[old]}`; the next version no longer knows the old word."
            click.echo(notice, err=True)
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


@click.group(cls=App, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@settings(hidden=True)
@modes
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
@pass_given
@click.pass_context
def app(ctx: click.Context, given: Given) -> None:
    """Keep virtual Kubernetes clusters in step with a host cluster.

    `syncer --config FILE` runs the daemon, as `syncer run --config FILE` does; it takes all flags of `run`.

    Exit status: 0 success, 1 failure, 2 wrong usage or configuration, 3 a plugin can't be used.
    """
    if ctx.invoked_subcommand is not None:
        return
    if not given.settings and not given.once and not given.dry_run:
        click.echo(ctx.get_help())
        return
    ctx.exit(start(given))


for command in (run, status, parked, patrol, thaw, uninstall, config, names, plugins, rbac, show_version, completion):
    app.add_command(command)
