"""Flags that commands share.

Each has an environment variable ``SYNCER_…``, and each value remembers its origin.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])


class Flag(NamedTuple):
    """A flag that sets an option of the configuration."""

    name: str
    path: str
    metavar: str | None
    help: str


#: Flags win over variables, which win over the file. No flag may be called `--port` or
#: `--service-host`: a Service named ``syncer`` makes Kubernetes set SYNCER_PORT and
#: SYNCER_SERVICE_HOST in every pod of its namespace.
FLAGS = (
    Flag(
        "--cluster",
        "cluster",
        "NAME",
        "The virtual cluster: its name, or one of the configuration.",
    ),
    Flag(
        "--virtual-kubeconfig",
        "virtual.kubeconfig",
        "FILE",
        "Kubeconfig file of the virtual cluster.",
    ),
    Flag(
        "--virtual-context",
        "virtual.context",
        "NAME",
        "Context in that file, or in kubectl's default.",
    ),
    Flag(
        "--host-kubeconfig",
        "host.kubeconfig",
        "FILE",
        "Kubeconfig file of the host. Default: kubectl's, or in-cluster.",
    ),
    Flag("--host-context", "host.context", "NAME", "Context in that file."),
    Flag("--host-namespace", "host.namespace", "NAME", "The host namespace for the copies."),
    Flag(
        "--name-translator",
        "names.translator",
        "NAME",
        "How names are translated between the sides.",
    ),
    Flag("--log-level", "log.level", "LEVEL", "debug, info, warning or error."),
    Flag("--log-format", "log.format", "FORMAT", "auto, json or console."),
    Flag(
        "--metrics-address",
        "metrics.address",
        "ADDRESS",
        "Address for metrics; 0 turns them off.",
    ),
    Flag("--health-address", "health.address", "ADDRESS", "Address for health; 0 turns it off."),
    Flag(
        "--page-address",
        "page.address",
        "ADDRESS",
        "Loopback address for the page; 0 turns it off.",
    ),
    Flag(
        "--leader-elect/--no-leader-elect",
        "leaderElection.enabled",
        None,
        "Work only while holding the Lease.",
    ),
    Flag("--workers", "workers", "NUMBER", "Maximum number of requests worked on at once."),
    Flag("--grace-period", "gracePeriod", "DURATION", "Time to finish begun requests at the end."),
)


class Setting(NamedTuple):
    """A value from a flag or an environment variable.

    A flag wins over a variable, wherever it stands.
    """

    value: Any
    origin: str
    flag: bool


@dataclass(slots=True)
class GivenOptions:
    """The options that the command line and the environment set."""

    file: str | None = None
    settings: dict[str, Setting] = field(default_factory=dict)
    once: bool = False
    dry_run: bool = False

    def put(self, path: str, setting: Setting) -> None:
        """Set a value. A variable does not replace the value of a flag."""
        before = self.settings.get(path)
        if setting.flag or before is None or not before.flag:
            self.settings[path] = setting
        self.file = self.settings["--config"].value if "--config" in self.settings else None


def variable(name: str) -> str:
    """Return the environment variable of a flag: ``--log-level`` → ``SYNCER_LOG_LEVEL``."""
    return "SYNCER_" + name.partition("/")[0].lstrip("-").replace("-", "_").upper()


def option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """Decorate a command with a flag and its environment variable.

    The last name with dashes is the long one; one without dashes is that of the parameter.
    """
    flags = [name for name in names if name.startswith("-")]
    return click.option(*names, envvar=variable(flags[-1]), show_envvar=True, **attributes)


def _setting(name: str, path: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return a callback that stores the value of a flag, if it was given."""

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        source = ctx.get_parameter_source(parameter.name or "")
        flag = source is ParameterSource.COMMANDLINE
        if flag or source is ParameterSource.ENVIRONMENT:
            origin = name.partition("/")[0] if flag else variable(name)
            ctx.ensure_object(GivenOptions).put(path, Setting(value, origin, flag))

    return keep


def settings(*, hidden: bool = False, shown: Collection[str] = ()) -> Callable[[F], F]:
    """Decorate a command with the flags that set options of the configuration.

    ``hidden`` leaves all but ``--config`` and those of ``shown`` out of the help.
    """

    def decorate(command: F) -> F:
        for flag in reversed(FLAGS):
            command = option(
                flag.name,
                default=None,
                metavar=flag.metavar,
                help=flag.help,
                hidden=hidden and flag.name not in shown,
                expose_value=False,
                callback=_setting(flag.name, flag.path),
            )(command)
        decorate_config = option(
            "-c",
            "--config",
            metavar="FILE",
            help="The configuration file.",
            expose_value=False,
            callback=_setting("--config", "--config"),
        )
        return decorate_config(command)

    return decorate


#: Decorates a command that queries a daemon: of these flags, its help has only two.
query_settings = settings(hidden=True, shown=("--cluster",))


def _mode(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        setattr(ctx.ensure_object(GivenOptions), parameter.name or "", True)


def modes(command: F) -> F:
    """Add the flags ``--once`` and ``--dry-run``."""
    dry_run = option(
        "--dry-run",
        is_flag=True,
        help="Show the writes that would be made, and make none.",
        expose_value=False,
        callback=_mode,
    )
    once = option(
        "--once",
        is_flag=True,
        help="End when both sides are in step, and print a summary.",
        expose_value=False,
        callback=_mode,
    )
    return once(dry_run(command))


def output(*formats: str) -> Callable[[F], F]:
    """Decorate a command with ``-o``, and with ``--no-headers`` if a table is among the formats.

    The first format is the default.
    """

    def decorate(command: F) -> F:
        if "table" in formats:
            command = option(
                "--no-headers",
                is_flag=True,
                help="Leave out the header of the table.",
            )(command)
        kinds = click.Choice(formats)
        return option(
            "-o",
            "--output",
            type=kinds,
            default=formats[0],
            show_default=True,
            help="Output format.",
        )(command)

    return decorate


pass_given = click.make_pass_decorator(GivenOptions, ensure=True)
