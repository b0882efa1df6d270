"""From a file, variables and flags to a configuration, or to all problems at once."""

from pathlib import Path
from typing import Any

import pytest
from config_fakes import Widgets, problems

from syncer.api import ConfigError, PluginError
from syncer.config import Loaded, Override, build, load, parse
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\n"


def loaded(plugins: Any, text: str, *overrides: Override) -> Loaded:
    return build(parse(HEAD + text, "f.yaml"), plugins, overrides)


def below(plugins: Any, text: str) -> str:
    """Return the one problem of what stands from line 5 on."""
    [problem] = problems(plugins, HEAD + text)
    return problem.removeprefix("f.yaml:5: ")


def test_defaults_are_those_of_the_design(plugins: Any) -> None:
    config = loaded(plugins, "").config
    assert (config.metrics.address, config.health.address) == (":8080", ":8081")
    election = config.leader_election
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (15, 10, 2)
    assert config.lease_name == "vsyncer-shop"
    assert (config.workers, config.grace_period, config.log.format) == (32, 20, "auto")


def test_file_values_are_taken(plugins: Any) -> None:
    config = loaded(plugins, "leaderElection: {leaseDuration: 1m30s}\nmetrics: {address: '0'}\nworkers: 4\n").config
    assert config.leader_election.lease_duration == 90
    assert config.metrics.address == ""
    assert config.workers == 4


def test_empty_section_has_all_its_defaults(plugins: Any) -> None:
    found = loaded(plugins, "metrics:\nsync:\n  toHost:\n    widgets:\n")
    assert found.config.metrics.address == ":8080"
    assert [enabled.syncer.name for enabled in found.cluster.enabled()] == ["widgets", "gadgets"]


def test_sections_that_the_file_names_are_asked_of_the_plugins(plugins: Any) -> None:
    loaded(plugins, "sync: {toHost: {widgets: {}}, fromHost: {gadgetParts: {}}}\n")
    assert plugins.named == ["toHost.widgets", "fromHost.gadgetParts"]


def test_syncer_gets_its_own_section_and_can_be_switched_off(plugins: Any) -> None:
    cluster = loaded(
        plugins, "sync: {toHost: {widgets: {size: 9}}, fromHost: {gadgetParts: {enabled: false}}}\n"
    ).cluster
    [widgets] = cluster.enabled()
    assert widgets.section.model_dump()["size"] == 9
    assert set(cluster.settings().sections) == {"widgets"}
    assert [syncer.name for syncer in plugins.checked] == ["widgets"]


def test_syncer_that_does_not_apply_to_the_settings_is_not_enabled(
    plugins: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = lambda self, settings: settings.names.host_namespaces() is None  # noqa: E731
    monkeypatch.setattr(Widgets, "applies_to", unknown, raising=False)
    assert [enabled.syncer.name for enabled in loaded(plugins, "").cluster.enabled()] == ["gadgets"]


def test_syncer_with_a_raising_applies_to_is_a_faulty_plugin(plugins: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Widgets, "applies_to", lambda self, settings: settings.nothing, raising=False)
    with pytest.raises(PluginError, match=r"widgets.*`applies_to` raised AttributeError"):
        loaded(plugins, "")


def test_settings_carry_cluster_namespace_marks_and_translator(plugins: Any) -> None:
    settings = loaded(plugins, "marks: {prefix: acme.example}\n").cluster.settings()
    assert (settings.cluster, settings.host_namespace) == ("shop", "vc-shop")
    assert settings.marks.cluster == "acme.example/cluster"
    assert settings.names.host_namespaces() == ("vc-shop",)


def test_problem_has_line_path_and_guess(plugins: Any) -> None:
    text = HEAD + "sync:\n  toHost:\n    widgets:\n      sizee: 3\nlog: {level: inof}\n"
    assert problems(plugins, text) == [
        "f.yaml:8: sync.toHost.widgets.sizee: no such option. Did you mean size?",
        "f.yaml:9: log.level: 'inof' is not one of debug, info, warning, error. Did you mean info?",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workers: many\n", "workers: expected a whole number, found 'many'."),
        ("workers: 3.5\n", "workers: expected a whole number, found 3.5."),
        ("workers: 0\n", "workers: expected at least 1, found 0."),
        ("workers: [1]\n", "workers: expected a whole number, found a list."),
        ("workers:\n", "workers: expected a whole number, found nothing."),
        ("workrs: 1\n", "workrs: no such option. Did you mean workers?"),
        ("virtual: 5\n", "virtual: expected a mapping, found 5."),
        ("virtual: {context: 5}\n", "virtual.context: expected text, found 5. Put it in quotes."),
        ("virtual: {context: {a: b}}\n", "virtual.context: expected text, found a mapping."),
        (
            "gracePeriod: 20\n",
            "gracePeriod: expected a duration such as 15s, 5m or 1h30m, found 20. Did you mean 20s?",
        ),
        ("gracePeriod: 1x\n", "gracePeriod: expected a duration such as 15s, 5m or 1h30m, found '1x'."),
        (
            "metrics: {address: '8080'}\n",
            'metrics.address: expected an address such as ":8080" or "127.0.0.1:8080", or "" for none, found \'8080\'.',
        ),
        (
            "networking: {dns: {service: dns}}\n",
            "networking.dns.service: expected a Service as namespace/name, found 'dns'.",
        ),
        ("sync: {toHost: {widgets: {enabled: 7}}}\n", "sync.toHost.widgets.enabled: expected true or false, found 7."),
        ("sync: {toHost: {widgets: {labels: [a]}}}\n", "sync.toHost.widgets.labels: expected a mapping, found a list."),
        (
            "sync: {toHost: {widgets: {limits: [1, x]}}}\n",
            "sync.toHost.widgets.limits[1]: expected a whole number, found 'x'.",
        ),
        (
            "sync: {toHost: {widgets: {selectors: [{oprator: In}]}}}\n",
            "sync.toHost.widgets.selectors[0].oprator: no such option. Did you mean operator?",
        ),
        (
            "sync: {toHost: {widgets: {labels: {a: 1}}}}\n",
            "sync.toHost.widgets.labels.a: expected text, found 1. Put it in quotes.",
        ),
        ("sync: {toHoost: {}}\n", "sync.toHoost: no such option. Did you mean toHost?"),
        (
            "sync: {toHost: {widgts: {}}}\n",
            "sync.toHost.widgts: no syncer, built in or installed, has this section. Did you mean widgets?",
        ),
        (
            "sync: {toHost: {kettles: {}}}\n",
            (
                "sync.toHost.kettles: no syncer, built in or installed, has this section. "
                "If it is a plugin's, install its package; `syncer plugins list` shows the plugins."
            ),
        ),
        (
            "sync: {fake: {sprockets: {}}}\n",
            (
                "sync.fake.sprockets: no syncer, built in or installed, has this section. "
                "The plugin sprockets is installed; its section is elsewhere below sync, see `syncer plugins list`."
            ),
        ),
        (
            "names: {translator: singel-namespace}\n",
            (
                "names.translator: no name translator is called 'singel-namespace'; "
                "there are anywhere, single-namespace. Did you mean single-namespace?"
            ),
        ),
        (
            "page: {address: '127.0.0.1:8081'}\n",
            "page.address: has the port of health.address, ':8081': each needs one of its own.",
        ),
        (
            "page: {address: ':8082'}\n",
            (
                'page.address: expected a loopback address such as "127.0.0.1:8082", as a page has no login, '
                "or \"\" for none, found ':8082'."
            ),
        ),
        (
            "health: {address: ':8080'}\n",
            "health.address: has the port of metrics.address, ':8080': each needs one of its own.",
        ),
        (
            "sync: {toHost: {widgets: {patrolInterval: 10ms}}}\n",
            "sync.toHost.widgets: patrolInterval must be at least 1s; 0 stands for patrol.interval.",
        ),
        (
            "leaderElection: {renewDeadline: 15s}\n",
            (
                "leaderElection: renewDeadline must be shorter than leaseDuration, "
                "or two daemons could both believe that they lead."
            ),
        ),
        (
            "leaderElection: {retryPeriod: 10s}\n",
            "leaderElection: retryPeriod must be shorter than renewDeadline, or there is no second try to renew.",
        ),
        (
            "leaderElection: {leaseDuration: 500ms, renewDeadline: 300ms, retryPeriod: 1ms}\n",
            (
                "leaderElection: leaseDuration must be at least 1s, as a Lease can't hold less, "
                "and retryPeriod above 0s."
            ),
        ),
    ],
)
def test_problem_says_the_expected_and_the_found_value(plugins: Any, text: str, message: str) -> None:
    assert below(plugins, text) == message


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("Shop", "expected a DNS label: lower-case letters, digits and -, beginning and ending with a letter or digit"),
        ("shop-", "expected a DNS label"),
        ("x" * 41, "expected at most 40 characters, found 41"),
        ('""', "must not be empty."),
        ("no", "expected text, found false. Put it in quotes."),
    ],
)
def test_cluster_name_is_a_dns_label_of_40_characters(plugins: Any, cluster: str, message: str) -> None:
    [problem] = problems(plugins, HEAD.replace("cluster: shop", f"cluster: {cluster}"))
    assert problem.startswith(f"f.yaml:3: cluster: {message}")


def test_problems_come_all_at_once_in_the_order_of_the_file(plugins: Any) -> None:
    text = "kind: Pod\ncluster: X\nlog: {level: a}\nlog: {level: b}\nhost: {}\nworkers: no\n"
    assert [problem.split(": ")[:2] for problem in problems(plugins, text)] == [
        ["f.yaml:1", "kind"],
        ["f.yaml:1", "apiVersion"],
        ["f.yaml:2", "cluster"],
        ["f.yaml:4", "log.level"],
        ["f.yaml:4", "log"],
        ["f.yaml:5", "host.namespace"],
        ["f.yaml:6", "workers"],
    ]


def test_file_must_say_its_format(plugins: Any) -> None:
    assert problems(plugins, "cluster: shop\nhost: {namespace: x}\n") == [
        "f.yaml:1: apiVersion: is required and not given. Write `apiVersion: vsyncer.dev/v1alpha1`.",
        "f.yaml:1: kind: is required and not given. Write `kind: SyncerConfig`.",
    ]


def test_host_namespace_is_required_unless_the_translator_needs_none(plugins: Any) -> None:
    text = HEAD.replace("vc-shop", "''")
    [problem] = problems(plugins, text)
    assert problem.startswith("f.yaml:4: host.namespace: is required")
    config = build(parse(text + "names: {translator: anywhere}\n", "f.yaml"), plugins).config
    assert config.cluster().host_namespace == ""


@pytest.mark.parametrize(
    "text",
    [
        "virtual: {kubeconfig: 'apiVersion: v1\n\n  token: hunter2', qps: -1}\n",
        "sync: {toHost: {widgets: {password: [hunter2]}}}\n",
        "sync: {toHost: {widgets: {passwrd: hunter2}}}\n",
        "sync: {toHost: {widgets: {password: 0x9e3779b9}}}\n",  # an int by YAML's rules
        "virtual: {token: hunter2}\n",
        "log: {level: 'hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2'}\n",
    ],
)
def test_value_that_may_be_a_secret_is_never_shown(plugins: Any, text: str) -> None:
    found = problems(plugins, HEAD + text)
    assert found
    assert not any("hunter2" in problem or "2654435769" in problem for problem in found)


def test_flag_beats_variable_beats_file_beats_default(plugins: Any) -> None:
    variable = Override("workers", "5", "SYNCER_WORKERS")
    flag = Override("workers", "6", "--workers")
    assert loaded(plugins, "workers: 4\n").config.workers == 4
    assert loaded(plugins, "workers: 4\n", variable).config.workers == 5
    both = loaded(plugins, "workers: 4\n", variable, flag)
    assert (both.config.workers, both.origin("workers")) == (6, "--workers")


def test_value_remembers_its_origin(plugins: Any) -> None:
    found = loaded(plugins, "log:\n  level: debug\n", Override("log.format", "json", "SYNCER_LOG_FORMAT"))
    assert found.origin("log.level") == "f.yaml:6"
    assert found.origin("log.format") == "SYNCER_LOG_FORMAT"
    assert found.origin("workers") == "default"


def test_wrong_flag_is_named_instead_of_a_line(plugins: Any) -> None:
    assert problems(plugins, HEAD, Override("workers", "x", "--workers")) == [
        "--workers: workers: expected a whole number, found 'x'."
    ]


def test_override_does_not_hide_that_the_file_has_no_section_there(plugins: Any) -> None:
    [problem] = problems(plugins, HEAD + "log: debug\n", Override("log.level", "info", "--log-level"))
    assert problem == "f.yaml:5: log: expected a mapping, found 'debug'."


@pytest.mark.parametrize(
    ("names", "location"),
    [
        ("names: {translator: unchanged}", "f.yaml:4: names"),
        ("virtualClusters:\n- name: vc\n  names: {translator: unchanged}", "f.yaml:5: virtualClusters[0].names"),
        ("names: {translator: unchanged, trustTenant: false}", "f.yaml:4: names"),
    ],
)
def test_unchanged_names_need_a_trusted_tenant(names: str, location: str) -> None:
    head = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\n" + ("" if "- name" in names else "cluster: vc\n")
    with pytest.raises(ConfigError) as caught:
        build(parse(head + names, "f.yaml"), INSTALLED)
    [problem] = map(str, caught.value.problems)
    assert problem.startswith(f"{location}.translator: leaves names and namespaces as the tenant chooses them")
    assert "Set names.trustTenant to true" in problem


def test_unchanged_names_are_fine_for_a_trusted_tenant() -> None:
    head = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: vc\n"
    assert build(parse(f"{head}names: {{translator: unchanged, trustTenant: true}}\n", "f.yaml"), INSTALLED)


@pytest.mark.parametrize(
    ("head", "key"), [("", "vsyncer.dev/cluster"), ("marks: {prefix: a.example}\n", "a.example/x")]
)
@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_mark_is_no_label_for_host_namespaces(head: str, key: str, part: str) -> None:
    head += "names: {translator: per-namespace}\n"
    text = HEAD + head + f"sync: {{toHost: {{namespaces: {{{part}: {{{key}: x}}}}}}}}\n"
    with pytest.raises(ConfigError) as caught:
        build(parse(text, "f.yaml"), INSTALLED)
    [problem] = map(str, caught.value.problems)
    assert f"sync.toHost.namespaces.{part}: {key} is a mark" in problem


@pytest.mark.parametrize("kind", ["toHost: {pods", "custom: {foos.example.org"])
def test_mark_can_not_be_allowed_to_cross(kind: str) -> None:
    text = f"sync: {{{kind}: {{metadata: {{labels: {{allow: [team, vsyncer.dev/cluster]}}}}}}}}}}\n"
    with pytest.raises(ConfigError) as caught:
        build(parse(HEAD + text, "f.yaml"), INSTALLED)
    [problem] = map(str, caught.value.problems)
    assert "metadata.labels.allow: vsyncer.dev/cluster is a mark" in problem
    assert build(parse(HEAD + text.replace("vsyncer.dev/cluster", "example.org/*"), "f.yaml"), INSTALLED)


def test_translator_can_be_chosen_by_a_flag(plugins: Any) -> None:
    flag = Override("names.translator", "anywhere", "--name-translator")
    assert type(loaded(plugins, "", flag).cluster.translator).__name__ == "Anywhere"


def test_overrides_alone_are_enough(plugins: Any) -> None:
    overrides = [Override("cluster", "shop", "--cluster"), Override("host.namespace", "x", "--host-namespace")]
    assert load(None, plugins, overrides).cluster.name == "shop"
    with pytest.raises(ConfigError, match="cluster: is required and not given"):
        load(None, plugins)


def test_file_is_named_as_it_was_given(plugins: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(HEAD)
    assert load("my.yaml", plugins).origin("virtualClusters[0].name") == "my.yaml:3"
