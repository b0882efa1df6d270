"""``syncer config`` validates, explains and shows a configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_scene import CONFIG, bad, good, typed

from kube_envtest import BackgroundApiServer
from syncer.testing.objects import namespace


def test_validate_names_the_syncers_that_are_on(file: str) -> None:
    assert good("config", "validate", file).startswith("syncer.yaml is fine.\nshop: configmaps, ")
    assert good("config", "validate", "--config", file) == good("--config", file, "config", "validate")


KUBECONFIG = """
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "true"}}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


@pytest.mark.parametrize(
    ("virtual", "content", "why"),
    [
        ("", "", "kubeconfig of virtual cluster shop: is not given"),
        ("gone", "", "kubeconfig of virtual cluster shop: gone: "),
        ("virtual", "{}", "kubeconfig of virtual cluster shop: virtual: "),
        ("virtual", KUBECONFIG, "kubeconfig of virtual cluster shop: the kubeconfig runs a program"),
    ],
)
def test_validate_says_why_it_has_compared_nothing(file: str, virtual: str, content: str, why: str) -> None:
    Path("virtual").write_text(content.replace("127.0.0.1", "192.0.2.1"))
    Path("host").write_text(KUBECONFIG.replace("exec", "none"))
    flags = ["--host-kubeconfig", "host", *(["--virtual-kubeconfig", virtual] if virtual else [])]
    result = typed(*flags, "config", "validate", file)
    assert result.exit_code == 0
    assert f"shop: not compared with its host: {why}" in result.stderr
    assert "not compared" not in typed(*flags, "config", "validate", "--offline", file).stderr


def test_validate_refuses_a_program_where_none_may_run(file: str) -> None:
    Path("virtual").write_text(KUBECONFIG.replace("127.0.0.1", "192.0.2.1"))
    Path("host").write_text(KUBECONFIG)
    Path(file).write_text(CONFIG + "virtual: {allowExec: false}\n")
    flags = ["--host-kubeconfig", "host", "--virtual-kubeconfig", "virtual"]
    result = typed(*flags, "config", "validate", file)
    assert result.exit_code == 2
    assert "kubeconfig of virtual cluster shop: it runs a program" in result.stderr
    assert "allowExec of this virtual cluster is false" in result.stderr


@pytest.mark.parametrize("side", ["host", "virtual"])
@pytest.mark.parametrize("has_both", [True, False], ids=["both sides", "one side"])
def test_validate_ends_with_1_if_a_cluster_does_not_accept_the_credentials(
    side: str, has_both: bool, file: str
) -> None:
    Path(file).write_text(CONFIG + "networking: {apiServer: {host: 10.0.0.1}}\n")
    with BackgroundApiServer(seed="v") as virtual, BackgroundApiServer(seed="h") as host:
        host.put(namespace("vc-shop"))
        flags: list[str] = []
        for server, name in ((virtual, "virtual"), (host, "host")):
            if has_both or name == side:
                server.kubeconfig(name)
                flags += [f"--{name}-kubeconfig", name]
        assert typed(*flags, "config", "validate", file).exit_code == 0
        kubeconfig = Path(side)
        kubeconfig.write_text(kubeconfig.read_text().replace("admin-token", "former-token"))
        result = typed(*flags, "config", "validate", file)
        assert result.exit_code == 1
        assert result.stdout.startswith("syncer.yaml is valid, but can't be used yet.\nshop: ")
        assert f"{side} cluster" in result.stderr
        assert f"answers 401: the credentials from {side}, context" in result.stderr
        assert good(*flags, "config", "validate", "--offline", file).startswith("syncer.yaml is fine.")


@pytest.mark.parametrize("flags", [[], ["--offline"]])
def test_validate_names_the_option_if_pods_cannot_reach_their_api_server(file: str, flags: list[str]) -> None:
    Path("virtual").write_text(KUBECONFIG)
    result = typed("--virtual-kubeconfig", "virtual", "config", "validate", *flags, file)
    assert result.exit_code == 2
    assert "networking.apiServer of virtual cluster shop: is required" in result.stderr


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


def test_explain_shows_an_option_and_those_below_it() -> None:
    text = good("config", "explain", "leaderElection")
    assert text.startswith("leaderElection  <section>\n")
    assert '  leaseDuration  <duration>  default "15s"\n' in text
    assert good("config", "explain").startswith("SyncerConfig  <section>\n")


@pytest.mark.parametrize("name", ["single-namespace", "per-namespace", "unchanged", "vcluster-compat"])
def test_explain_names_each_translator_that_is_built_in(name: str) -> None:
    assert name in good("config", "explain", "names.translator").partition("default")[2].partition("\n")[2]


def test_explain_suggests_a_similar_option() -> None:
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
