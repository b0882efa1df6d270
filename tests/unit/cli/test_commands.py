"""The commands as a user types them, with the plugins that are built in."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from cli_scene import CONFIG, LIST, bad, good, typed

from syncer.api import ConfigError, Problem, Refused, Unreachable
from syncer.cli.app import app
from syncer.cli.options import variable

# -- the whole tree --------------------------------------------------------------------------------


def commands(command: click.Command, path: str = "syncer") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from commands(inner, f"{path} {name}")


def test_all_commands_are_walked() -> None:
    paths = [path for path, _ in commands(app)]
    assert {"syncer", "syncer run", "syncer config validate", "syncer names to-host"} <= set(paths)


def test_flag_has_its_variable() -> None:
    flags = [
        (path, parameter)
        for path, command in commands(app)
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in ("help", "version")
    ]
    assert flags
    for path, flag in flags:
        assert flag.envvar == variable(flag.opts[-1]), path


def test_variable_is_never_one_that_kubernetes_sets_for_a_service_of_this_name() -> None:
    names = {p.envvar for _, command in commands(app) for p in command.params if isinstance(p, click.Option)}
    assert not {"SYNCER_PORT", "SYNCER_SERVICE_HOST", "SYNCER_SERVICE_PORT"} & names


def test_old_word_of_a_command_still_works_with_a_notice_and_is_not_listed(file: str) -> None:
    result = typed("drain", "--help")
    assert (result.exit_code, result.stderr) == (
        0,
        "`syncer drain` is now `syncer uninstall`; the next version no longer knows the old word.\n",
    )
    assert result.stdout.startswith("Usage: syncer uninstall [OPTIONS]\n")
    assert "drain" not in good("--help")
    assert "drain" not in app.list_commands(click.Context(app))


#: Commands that are about a virtual cluster, and ask no cluster or daemon before they know which.
OF_A_CLUSTER = [
    ["names", "to-host", "secret", "web/db"],
    ["names", "to-virtual", "secret", "vc-shop/db-x-web-x-shop"],
    ["parked"],
    ["thaw"],
    ["patrol"],
    ["patrol", "--once"],
    ["patrol", "--confirm"],
    ["uninstall"],
    ["rbac"],
    ["plugins", "list"],
    ["run"],
    ["config", "validate"],
]


@pytest.mark.parametrize("command", OF_A_CLUSTER, ids=" ".join)
@pytest.mark.parametrize("config", [CONFIG, LIST])
def test_command_with_an_unknown_cluster_lists_those_there_are(file: str, command: list[str], config: str) -> None:
    Path(file).write_text(config)
    assert bad(*command, "-c", file, "--cluster", "shpo", code=2) == (
        "--cluster: no virtual cluster is called 'shpo'; there is shop. Did you mean shop?\n"
        "1 problem. Nothing was started.\n"
    )


@pytest.mark.parametrize("config", [CONFIG, LIST])
def test_command_with_a_known_cluster_is_about_it(file: str, config: str) -> None:
    Path(file).write_text(config)
    arguments = ["names", "to-host", "secret", "web/db", "-c", file]
    assert good(*arguments, "--cluster", "shop") == good(*arguments) == "vc-shop/db-x-web-x-shop\n"
    assert good(*arguments, env={"SYNCER_CLUSTER": "shop"}) == good(*arguments)


def test_command_has_help() -> None:
    for path, command in commands(app):
        assert command.help, path
        assert command.get_short_help_str(60).endswith("."), f"{path}: the list of commands cuts it off"
        assert good(*path.split()[1:], "--help").startswith("Usage: syncer")


def test_command_alone_shows_its_help() -> None:
    assert "Usage: syncer" in good()


def test_unknown_command_is_a_usage_error() -> None:
    assert "No such command 'bogus'" in bad("bogus", code=2)


# -- version, completion ---------------------------------------------------------------------------


def test_version() -> None:
    from syncer.version import VERSION

    assert good("--version") == f"syncer {VERSION}\n"
    assert good("version").startswith(f"syncer {VERSION} (Python ")
    assert json.loads(good("version", "-o", "json"))["version"] == VERSION
    assert json.loads(good("version", env={"SYNCER_OUTPUT": "json"}))["version"] == VERSION


def test_version_loads_nothing_heavy() -> None:
    code = (
        "import sys, syncer.cli.app as a\n"
        "try: a.app(['version'])\n"
        "except SystemExit: pass\n"
        "heavy = ('kubernetes', 'pydantic', 'yaml', 'asyncio', 'syncer.engine', 'syncer.api')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    assert output.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_for_the_command_syncer(shell: str) -> None:
    script = good("completion", shell)
    assert "_SYNCER_COMPLETE" in script
    assert "_syncer_completion" in script


def test_completion_completes() -> None:
    environment = os.environ | {"_SYNCER_COMPLETE": "bash_complete", "COMP_WORDS": "syncer config v", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "syncer"]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600).stdout
    assert output.split() == ["plain,validate", "plain,view"]


# -- run -------------------------------------------------------------------------------------------


class FakeSummary:
    """The summary of a run."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code

    def lines(self) -> list[str]:
        return ["configmaps: 2 created"]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Stands in for the daemon: what it was called with. With one worker it leaves something undone."""
    import syncer.daemon.runner

    calls: list[dict[str, Any]] = []

    async def run(config: Any, *, once: bool = False, dry_run: bool = False, file: Any = None) -> FakeSummary:
        cluster = config.cluster().name
        calls.append({"cluster": cluster, "once": once, "dry_run": dry_run, "level": config.log.level})
        return FakeSummary(exit_code=1 if config.workers == 1 else 0)

    monkeypatch.setattr(syncer.daemon.runner, "run", run)
    monkeypatch.setattr("syncer.observe.logs.configure", lambda level, form: None)
    return calls


@pytest.mark.parametrize("arguments", [[], ["run"]])
def test_daemon_runs_with_and_without_the_word_run(file: str, runs: list[dict[str, Any]], arguments: list[str]) -> None:
    assert good(*arguments, "--config", file, "--log-level", "debug") == "configmaps: 2 created\n"
    assert runs == [{"cluster": "shop", "once": False, "dry_run": False, "level": "debug"}]


def test_daemon_runs_by_variables_alone(file: str, runs: list[dict[str, Any]]) -> None:
    good(env={"SYNCER_CONFIG": file, "SYNCER_ONCE": "1"})
    assert runs[0]["once"] is True


@pytest.mark.parametrize("arguments", [["--once", "--dry-run", "run"], ["run", "--once", "--dry-run"]])
def test_modes_may_stand_before_or_after_the_command(
    file: str, runs: list[dict[str, Any]], arguments: list[str]
) -> None:
    good("--config", file, *arguments)
    assert (runs[0]["once"], runs[0]["dry_run"]) == (True, True)


@pytest.mark.parametrize("mode", ["--once", "--dry-run"])
def test_run_that_left_something_undone_exits_1(file: str, runs: list[dict[str, Any]], mode: str) -> None:
    assert typed("run", "-c", file, "--workers", "1", mode).exit_code == 1


def test_daemon_that_was_stopped_exits_0_whatever_was_not_in_step(file: str, runs: list[dict[str, Any]]) -> None:
    assert "configmaps: 2 created" in good("run", "-c", file, "--workers", "1")


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (Unreachable("the host cluster does not answer"), 1, "syncer: the host cluster does not answer\n"),
        (Refused("no"), 1, "syncer: no\n"),
        (ConfigError(Problem("port in use", path="metrics.address")), 2, "metrics.address: port in use\n1 problem."),
    ],
)
def test_error_of_ours_is_a_message_without_a_traceback(
    file: str, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, expected: str
) -> None:
    import syncer.daemon.runner

    async def run(config: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(syncer.daemon.runner, "run", run)
    monkeypatch.setattr("syncer.observe.logs.configure", lambda level, form: None)
    message = bad("run", "-c", file, code=code)
    assert message.startswith(expected)
    assert "Traceback" not in message


def test_fault_in_the_program_keeps_its_traceback(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import syncer.daemon.runner

    async def run(config: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(syncer.daemon.runner, "run", run)
    monkeypatch.setattr("syncer.observe.logs.configure", lambda level, form: None)
    with pytest.raises(ZeroDivisionError):
        typed("run", "-c", file)


def test_broken_plugin_stops_the_start_with_3(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "acme_widgets.py").write_text("import no_such_thing\n")
    info = tmp_path / "acme_widgets-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-widgets\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[syncer.syncers]\nwidgets = acme_widgets:Widgets\n")
    good("config", "validate", file)
    Path(file).write_text(CONFIG + "sync: {toHost: {widgets: {}}}\n")
    message = bad("config", "validate", file, code=3)
    assert message.startswith("syncer: plugin widgets (from acme-widgets 1.0): cannot be imported: ")
    listed = {each["name"]: each for each in json.loads(good("plugins", "list", "-o", "json"))}
    assert listed["widgets"]["enabled"] == "not named in the configuration"
