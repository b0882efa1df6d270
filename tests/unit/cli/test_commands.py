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
import yaml
from click.testing import CliRunner, Result

from syncer.api import ConfigError, Problem, Refused, Unreachable
from syncer.cli.app import app
from syncer.cli.options import variable

CONFIG = """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
cluster: shop
host: {namespace: vc-shop}
"""
#: The same in list form.
LIST = """\
apiVersion: vsyncer.dev/v1alpha1
kind: SyncerConfig
virtualClusters: [{name: shop, hostNamespace: vc-shop}]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A good configuration, ``syncer.yaml`` in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("syncer.yaml").write_text(CONFIG)
    return "syncer.yaml"


def call(*arguments: str, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(app, arguments, env=env, prog_name="syncer")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def good(*arguments: str, env: dict[str, str] | None = None) -> str:
    result = call(*arguments, env=env)
    assert result.exit_code == 0, result.output
    return result.stdout


def bad(*arguments: str, code: int) -> str:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    return result.stderr


# -- the whole tree --------------------------------------------------------------------------------


def commands(command: click.Command, path: str = "syncer") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


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
    result = call("drain", "--help")
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
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_for_the_command_syncer(shell: str) -> None:
    script = good("completion", shell)
    assert "_SYNCER_COMPLETE" in script
    assert "_syncer_completion" in script


def test_completion_completes() -> None:
    environment = os.environ | {"_SYNCER_COMPLETE": "bash_complete", "COMP_WORDS": "syncer config v", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "syncer"]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout
    assert output.split() == ["plain,validate", "plain,view"]


# -- config ----------------------------------------------------------------------------------------


def test_validate_names_the_syncers_that_are_on(file: str) -> None:
    assert good("config", "validate", file).startswith("syncer.yaml is fine.\nshop: configmaps, ")
    assert good("config", "validate", "--config", file) == good("--config", file, "config", "validate")


def test_validate_reports_all_problems_and_that_nothing_was_started(file: str) -> None:
    Path(file).write_text(CONFIG + "workrs: 3\nlog: {level: inof}\n")
    assert bad("config", "validate", file, code=2) == (
        "syncer.yaml:5: workrs: no such option. Did you mean workers?\n"
        "syncer.yaml:6: log.level: 'inof' is not one of debug, info, warning, error. Did you mean info?\n"
        "2 problems. Nothing was started.\n"
    )


def test_missing_file_is_named() -> None:
    assert bad("run", "--config", "nowhere.yaml", code=2) == (
        "nowhere.yaml: cannot be read: No such file or directory\n1 problem. Nothing was started.\n"
    )


def test_schema_accepts_the_configuration(file: str) -> None:
    import jsonschema

    jsonschema.validate(yaml.safe_load(CONFIG), json.loads(good("config", "schema")))


def test_defaults_validate_once_the_names_are_filled_in(file: str) -> None:
    text = (
        good("config", "defaults")
        .replace('    name: ""', "    name: shop")
        .replace('hostNamespace: ""', "hostNamespace: x")
    )
    Path(file).write_text(text)
    good("config", "validate", file)


def test_explain_shows_an_option_and_what_is_below_it() -> None:
    text = good("config", "explain", "leaderElection")
    assert text.startswith("leaderElection  <section>\n")
    assert '  leaseDuration  <duration>  default "15s"\n' in text
    assert good("config", "explain").startswith("SyncerConfig  <section>\n")


def test_explain_guesses_what_was_meant() -> None:
    assert "there is no option log.levl. Did you mean level?" in bad("config", "explain", "log.levl", code=2)


def test_view_shows_each_value_with_its_origin(file: str) -> None:
    env = {"SYNCER_WORKERS": "7", "SYNCER_LOG_LEVEL": "debug", "SYNCER_CONFIG": file}
    found = good("config", "view", "--log-level", "error", env=env)
    rows = {line.split()[0]: line.split()[1:] for line in found.splitlines()}
    assert rows["PATH"] == ["VALUE", "ORIGIN"]
    assert rows["virtualClusters[0].name"] == ["shop", "syncer.yaml:3"]
    assert rows["workers"] == ["7", "SYNCER_WORKERS"]
    assert rows["log.level"] == ["error", "--log-level"]
    assert rows["log.format"] == ["auto", "default"]


def test_view_as_yaml_is_a_file_with_the_same_meaning(file: str) -> None:
    text = good("config", "view", "-c", file, "-o", "yaml", "--workers", "3")
    Path(file).write_text(text)
    assert good("config", "view", "-c", file, "-o", "yaml") == text
    assert yaml.safe_load(text)["workers"] == 3


def test_table_without_headers(file: str) -> None:
    assert good("config", "view", "-c", file, "--no-headers").startswith("apiVersion ")


@pytest.mark.parametrize("arguments", [["--workers", "3", "config", "view"], ["config", "view", "--workers", "3"]])
def test_flag_may_stand_before_or_after_the_command_and_beats_the_variable(file: str, arguments: list[str]) -> None:
    env = {"SYNCER_WORKERS": "7", "SYNCER_CONFIG": file}
    assert json.loads(good(*arguments, "-o", "json", env=env))["workers"] == 3


def test_flag_nearer_to_the_command_wins(file: str) -> None:
    arguments = ["-c", file, "--workers", "3", "config", "view", "--workers", "4", "-o", "json"]
    assert json.loads(good(*arguments))["workers"] == 4


def test_switch_can_be_set_both_ways(file: str) -> None:
    Path(file).write_text(CONFIG + "leaderElection: {enabled: true}\n")

    def elects(*arguments: str) -> Any:
        return json.loads(good("config", "view", "-c", file, "-o", "json", *arguments))["leaderElection"]["enabled"]

    assert [elects(), elects("--no-leader-elect"), elects("--leader-elect")] == [True, False, True]


# -- names, plugins, rbac --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["secret", "Secret", "secrets"])
def test_names_go_there_and_back(file: str, kind: str) -> None:
    host = good("names", "to-host", kind, "web/db", "-c", file).strip()
    assert host.startswith("vc-shop/")
    assert good("names", "to-virtual", kind, host, "-c", file) == "web/db\n"


def test_names_need_no_file(file: str) -> None:
    flags = ["--cluster", "shop", "--host-namespace", "vc-shop"]
    assert good("names", "to-host", "secret", "web/db", *flags) == good(
        "names", "to-host", "secret", "web/db", "-c", file
    )


def test_names_of_custom_resources_follow_their_template(tmp_path: Path) -> None:
    custom = {"widgets.example.org": {"name": "w-{namespace}-{name}"}, "gadgets.example.org": {"scope": "Cluster"}}
    config = {"cluster": "shop", "host": {"namespace": "vc-shop"}, "sync": {"custom": custom}}
    file = tmp_path / "custom.yaml"
    file.write_text(json.dumps({"apiVersion": "vsyncer.dev/v1alpha1", "kind": "SyncerConfig", **config}))
    assert good("names", "to-host", "widgets.example.org", "web/db", "-c", str(file)) == "vc-shop/w-web-db\n"
    assert good("names", "to-host", "gadgets", "big", "-c", str(file)).strip().startswith("big-x-")


def test_names_as_a_record(file: str) -> None:
    record = {"host": "vc-shop/db-x-web-x-shop", "virtual": "web/db", "resource": "secrets"}
    assert json.loads(good("names", "to-host", "secret", "web/db", "-c", file, "-o", "json")) == [record]


def test_name_that_shows_nothing_points_to_the_marks(file: str) -> None:
    assert "vsyncer.dev/virtual-name" in bad("names", "to-virtual", "secret", "vc-shop/db", "-c", file, code=1)


@pytest.mark.parametrize(
    ("kind", "key", "said"),
    [
        ("secert", "web/db", "no syncer is for 'secert'. There are configmaps, "),
        ("secret", "db", "'db' is not of the form NAMESPACE/NAME"),
        ("secret", "a/b/c", "'a/b/c' is not of the form NAMESPACE/NAME"),
        ("node", "a/b", "'a/b' is not of the form NAME"),
    ],
)
def test_wrong_names_are_usage_errors(file: str, kind: str, key: str, said: str) -> None:
    assert said in bad("names", "to-host", kind, key, "-c", file, code=2)


def test_plugins_are_listed_with_what_they_do(file: str) -> None:
    Path(file).write_text(CONFIG + "sync: {toHost: {services: {enabled: false}}}\n")
    plugins = {each["name"]: each for each in json.loads(good("plugins", "list", "-c", file, "-o", "json"))}
    assert plugins["configmaps"]["roles"] == ["SyncDown", "Sync"]
    assert plugins["configmaps"]["section"] == "toHost.configMaps"
    assert (plugins["configmaps"]["enabled"], plugins["services"]["enabled"]) == ("yes", "no")
    assert plugins["single-namespace"]["enabled"] == "yes"
    assert "configmaps" in good("plugins", "list", "-o", "name").splitlines()


def test_rbac_is_what_kubectl_takes(file: str) -> None:
    documents = list(yaml.safe_load_all(good("rbac", "-c", file, "--leader-elect")))
    assert {each["kind"] for each in documents} <= {"Role", "ClusterRole"}
    assert {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]} in [
        rule for each in documents for rule in each["rules"]
    ]


def test_rbac_of_the_daemon_alone_and_of_virtual_clusters_alone(file: str) -> None:
    Path(file).write_text(LIST + "leaderElection: {enabled: true, namespace: syncers, name: fleet}\n")

    def roles(*arguments: str) -> list[tuple[str, str, str]]:
        documents = yaml.safe_load_all(good("rbac", "-c", file, *arguments))
        found = [(each["kind"], each["metadata"]) for each in documents]
        return [(kind, metadata.get("namespace", ""), metadata["name"]) for kind, metadata in found]

    daemon = [("Role", "syncers", "fleet.lease")]
    cluster = [("Role", "vc-shop", "vsyncer-shop")]
    virtual = [("ClusterRole", "", "vsyncer-shop")]
    assert roles() == roles("--cluster", "shop") == virtual + daemon + cluster
    assert roles("--only", "daemon") == daemon
    assert roles("--only", "cluster", "--cluster", "shop") == virtual + cluster
    assert roles("--only", "cluster", "--side", "host") == cluster


def test_rbac_of_one_side_with_bindings(file: str) -> None:
    text = good("rbac", "-c", file, "--side", "virtual", "--service-account", "vc/syncer", "-o", "json")
    items = json.loads(text)["items"]
    assert [each["kind"] for each in items] == ["ClusterRole", "ClusterRoleBinding"]
    assert items[1]["subjects"] == [{"kind": "ServiceAccount", "name": "syncer", "namespace": "vc"}]


def test_rbac_follows_the_syncers_that_are_on(file: str) -> None:
    assert "- ingresses\n" not in good("rbac", "-c", file, "--side", "host")
    Path(file).write_text(CONFIG + "sync: {toHost: {ingresses: {enabled: true}}}\n")
    assert "- ingresses\n" in good("rbac", "-c", file, "--side", "host")


@pytest.mark.parametrize("subject", [["--service-account", "syncer"], ["--service-account", "a/b", "--user", "c"]])
def test_rbac_refuses_a_wrong_subject(file: str, subject: list[str]) -> None:
    assert "--service-account" in bad("rbac", "-c", file, *subject, code=2)


# -- run -------------------------------------------------------------------------------------------


class FakeSummary:
    """What a run has done."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code

    def lines(self) -> list[str]:
        return ["configmaps: 2 created"]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Stands in for the daemon: what it was called with. With one worker it leaves something undone."""
    import syncer.engine.runner

    calls: list[dict[str, Any]] = []

    async def run(config: Any, *, once: bool = False, dry_run: bool = False) -> FakeSummary:
        cluster = config.cluster().name
        calls.append({"cluster": cluster, "once": once, "dry_run": dry_run, "level": config.log.level})
        return FakeSummary(exit_code=1 if config.workers == 1 else 0)

    monkeypatch.setattr(syncer.engine.runner, "run", run)
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
    assert call("run", "-c", file, "--workers", "1", mode).exit_code == 1


def test_daemon_that_was_stopped_exits_0_whatever_was_not_in_step(file: str, runs: list[dict[str, Any]]) -> None:
    assert "configmaps: 2 created" in good("run", "-c", file, "--workers", "1")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Unreachable("the host cluster does not answer"), 1, "syncer: the host cluster does not answer\n"),
        (Refused("no"), 1, "syncer: no\n"),
        (ConfigError(Problem("port in use", path="metrics.address")), 2, "metrics.address: port in use\n1 problem."),
    ],
)
def test_error_of_ours_is_a_message_without_a_traceback(
    file: str, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    import syncer.engine.runner

    async def run(config: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(syncer.engine.runner, "run", run)
    monkeypatch.setattr("syncer.observe.logs.configure", lambda level, form: None)
    message = bad("run", "-c", file, code=code)
    assert message.startswith(said)
    assert "Traceback" not in message


def test_fault_in_the_program_keeps_its_traceback(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import syncer.engine.runner

    async def run(config: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(syncer.engine.runner, "run", run)
    monkeypatch.setattr("syncer.observe.logs.configure", lambda level, form: None)
    with pytest.raises(ZeroDivisionError):
        call("run", "-c", file)


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
