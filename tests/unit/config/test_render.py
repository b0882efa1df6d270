"""Rendering of the configuration: defaults, rows, schema, help."""

from typing import Any

import jsonschema
import pytest
import yaml
from config_fakes import Gadgets, Straight, WidgetConfig, Widgets

from syncer.config import Override, SyncerConfig, build, config_with, nearest, option_at, options, parse
from syncer.config.render import defaults, markdown, rows, schema

MODEL: type[SyncerConfig] = config_with([Widgets, Gadgets], translator=Straight)
GIVEN = {"virtualClusters[].name": "shop", "virtualClusters[].hostNamespace": "vc-shop"}


def test_defaults_are_a_file_that_loads_to_the_defaults(plugins: Any) -> None:
    config = build(parse(defaults(MODEL, GIVEN), "f.yaml"), plugins).config
    plain = MODEL.model_validate({"cluster": "shop", "host": {"namespace": "vc-shop"}})
    assert config.model_dump() == plain.model_dump()


def test_defaults_explain_each_option() -> None:
    text = defaults(MODEL)
    assert "      # How large.\n      size: 3\n" in text
    assert "  # Time after which another daemon may take over from a silent leader. (duration)\n" in text
    assert '    name: ""\n' in text
    assert max(map(len, text.splitlines())) <= 120


def test_defaults_show_the_options_of_every_kind_for_the_first_one_alone() -> None:
    text = defaults(MODEL)
    assert text.count("maxRetryDelay: 1m\n") == 1
    assert text.index("    # Every kind has") < text.index("    widgets:\n") < text.index("maxRetryDelay")
    assert "    gadgetParts: {}\n" in text


def test_schema_accepts_files_that_load_and_refuses_others() -> None:
    validator = jsonschema.Draft202012Validator(schema(MODEL))
    jsonschema.Draft202012Validator.check_schema(schema(MODEL))
    good = yaml.safe_load(defaults(MODEL, GIVEN))
    assert list(validator.iter_errors(good)) == []
    for wrong in (
        {"clustre": "x"},
        {"workers": "x"},
        {"gracePeriod": "20"},
        {"sync": {"toHost": {"widgets": {"a": 1}}}},
    ):
        assert list(validator.iter_errors(good | wrong)), wrong


def test_schema_shows_help_and_defaults_as_they_are_written() -> None:
    made = schema(MODEL)
    assert made["required"] == ["apiVersion", "kind"]
    assert made["properties"]["gracePeriod"]["default"] == "20s"
    assert "default" not in made["properties"]["log"]
    assert made["$defs"]["WidgetConfig"]["properties"]["size"]["description"] == "How large."


def test_rows_show_every_value_in_force_with_its_origin(plugins: Any) -> None:
    text = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: x}\n"
    text += "sync: {toHost: {widgets: {password: hunter2}}}\n"
    found = rows(build(parse(text, "f.yaml"), plugins, [Override("gracePeriod", "1m", "--grace-period")]))
    by_path = {row.path: (row.value, row.origin) for row in found}
    assert by_path["virtualClusters[0].name"] == ("shop", "f.yaml:3")
    assert by_path["gracePeriod"] == ("1m", "--grace-period")
    assert by_path["sync.toHost.widgets.size"] == (3, "default")
    assert by_path["sync.toHost.widgets.labels"] == ({}, "default")
    assert "hunter2" not in str(found)


def test_option_has_the_type_of_its_value_and_its_default() -> None:
    lease = option_at(MODEL, "leaderElection.leaseDuration")
    assert lease is not None
    assert (lease.takes, lease.default, lease.required) == ("duration", "15s", False)
    takes = {option.path.rpartition(".")[2]: option.takes for option in options(Widgets.config)}
    assert takes == {
        "enabled": "true or false",
        "selector": "section",
        "metadata": "section",
        "patches": "section",
        "drift": "section",
        "maxRetryDelay": "duration",
        "concurrency": "whole number",
        "writesPerSecond": "number",
        "patrolInterval": "duration",
        "authority": "mapping of virtual | host | both",
        "onHostDeletion": "recreate | propagate | report",
        "size": "whole number",
        "clusterIp": "true or false",
        "labels": "mapping of text",
        "limits": "list of whole number",
        "password": "value",
        "selectors": "list of section",
    }


def test_section_help_is_its_own_or_its_syncers_first_sentence() -> None:
    widgets, gadgets = option_at(MODEL, "sync.toHost.widgets"), option_at(MODEL, "sync.fromHost.gadgetParts")
    assert widgets is not None
    assert gadgets is not None
    assert (widgets.help, gadgets.help) == ("How widgets are synced.", "Copies gadgets.")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("metrcs", "Did you mean metrics?"),
        ("log.levl", "Did you mean level?"),
        ("log.qqqq", "Known here: level, format."),
        ("workers.x", ""),
    ],
)
def test_path_that_leads_nowhere_gets_a_guess(path: str, message: str) -> None:
    assert option_at(MODEL, path) is None
    assert nearest(MODEL, path) == message


def test_table_has_a_line_for_each_option() -> None:
    table = markdown(MODEL)
    assert "| `leaderElection.leaseDuration` | duration | `15s` |" in table
    assert "| `virtualClusters[].name` | DNS label | required |" in table
    assert "| `log.level` | debug \\| info \\| warning \\| error | `info` |" in table


def test_table_has_the_options_of_every_kind_once() -> None:
    common, others = markdown(MODEL).split("\n## Other options\n")
    assert "\n| `maxRetryDelay` | duration | `1m` |" in common
    assert "\n| `patches.down[].rename` |" in common
    assert "maxRetryDelay" not in others
    assert "`sync.fromHost.gadgetParts.enabled`" not in others


def test_table_shows_an_option_of_every_kind_where_a_kind_has_another_default() -> None:
    class Off(WidgetConfig):
        enabled: bool = False

    class Lonely(Widgets):
        config = Off

    table = markdown(config_with([Lonely], translator=Straight))
    assert "\n| `sync.toHost.widgets.enabled` | true or false | `false` |" in table
