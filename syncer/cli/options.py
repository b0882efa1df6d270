"""The flags that commands share. Each has its ``SYNCER_…`` variable, and each setting remembers its origin."""

from collections.abc import Callable
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


#: Flags over variables over the file. A Service called ``syncer`` makes Kubernetes set SYNCER_PORT and
#: SYNCER_SERVICE_HOST in every pod near it: no flag may be called so.
FLAGS = (
    Flag("--cluster", "cluster", "NAME", "The virtual cluster: its name, or which of those in the configuration."),
    Flag("--virtual-kubeconfig", "virtual.kubeconfig", "FILE", "How to reach the virtual cluster."),
    Flag("--virtual-context", "virtual.context", "NAME", "Context in that file, or in the file that kubectl uses."),
    Flag("--host-kubeconfig", "host.kubeconfig", "FILE", "How to reach the host; else as kubectl does, or in-cluster."),
    Flag("--host-context", "host.context", "NAME", "Context in that file."),
    Flag("--host-namespace", "host.namespace", "NAME", "The namespace on the host for the copies."),
    Flag("--name-translator", "names.translator", "NAME", "How names become names on the other side."),
    Flag("--log-level", "log.level", "LEVEL", "debug, info, warning or error."),
    Flag("--log-format", "log.format", "FORMAT", "auto, json or console."),
    Flag("--metrics-address", "metrics.address", "ADDRESS", "Where to serve metrics; 0 is off."),
    Flag("--health-address", "health.address", "ADDRESS", "Where to serve health; 0 is off."),
    Flag("--leader-elect/--no-leader-elect", "leaderElection.enabled", None, "Work only while holding the Lease."),
    Flag("--workers", "workers", "NUMBER", "How many objects are worked on at once."),
    Flag("--grace-period", "gracePeriod", "DURATION", "How long to go on with begun requests at the end."),
)


class Setting(NamedTuple):
    """A value from a flag or a variable; the flag wins wherever it stands."""

    value: Any
    origin: str
    flag: bool


@dataclass(slots=True)
class Given:
    """Options of the configuration that the command line and the environment give."""

    file: str | None = None
    settings: dict[str, Setting] = field(default_factory=dict)
    once: bool = False
    dry_run: bool = False

    def put(self, path: str, setting: Setting) -> None:
        """Take a value. One from the environment does not replace a flag's."""
        before = self.settings.get(path)
        if setting.flag or before is None or not before.flag:
            self.settings[path] = setting
        self.file = self.settings["--config"].value if "--config" in self.settings else None


def variable(name: str) -> str:
    """Return the variable of a flag: ``--log-level`` → ``SYNCER_LOG_LEVEL``."""
    return "SYNCER_" + name.partition("/")[0].lstrip("-").replace("-", "_").upper()


def option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """Return the decorator for a flag with its variable. The last of the names is the long one."""
    return click.option(*names, envvar=variable(names[-1]), show_envvar=True, **attributes)


def _setting(name: str, path: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return the callback that keeps the value of a flag, if it was given."""

    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        source = ctx.get_parameter_source(parameter.name or "")
        flag = source is ParameterSource.COMMANDLINE
        if flag or source is ParameterSource.ENVIRONMENT:
            origin = name.partition("/")[0] if flag else variable(name)
            ctx.ensure_object(Given).put(path, Setting(value, origin, flag))

    return keep


def settings(*, hidden: bool = False) -> Callable[[F], F]:
    """Return the decorator for the flags that set options of the configuration.

    ``hidden`` leaves all of them but ``--config`` out of the help.
    """

    def decorate(command: F) -> F:
        for flag in reversed(FLAGS):
            command = option(
                flag.name,
                default=None,
                metavar=flag.metavar,
                help=flag.help,
                hidden=hidden,
                expose_value=False,
                callback=_setting(flag.name, flag.path),
            )(command)
        keep = _setting("--config", "--config")
        text = "The configuration file."
        return option("-c", "--config", metavar="FILE", help=text, expose_value=False, callback=keep)(command)

    return decorate


def _mode(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        setattr(ctx.ensure_object(Given), parameter.name or "", True)


def modes(command: F) -> F:
    """Add the flags ``--once`` and ``--dry-run``."""
    dry = "Decide, show what would be written, and write nothing."
    command = option("--dry-run", is_flag=True, help=dry, expose_value=False, callback=_mode)(command)
    once = "End when both sides are in step, and say what was done."
    return option("--once", is_flag=True, help=once, expose_value=False, callback=_mode)(command)


def output(*formats: str) -> Callable[[F], F]:
    """Return the decorator for ``-o``, whose default is the first format, and ``--no-headers`` for a table."""

    def decorate(command: F) -> F:
        if "table" in formats:
            command = option("--no-headers", is_flag=True, help="Leave out the first line of the table.")(command)
        kinds = click.Choice(formats)
        return option("-o", "--output", type=kinds, default=formats[0], show_default=True, help="Format.")(command)

    return decorate


pass_given = click.make_pass_decorator(Given, ensure=True)
