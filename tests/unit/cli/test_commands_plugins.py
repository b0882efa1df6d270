"""Commands with installed, registered and broken plugins."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cli_scene
import pytest
from cli_scene import typed

from syncer.api import Mirror, Resource, register_syncer, registrations

pytestmark = pytest.mark.slow

CONFIG = cli_scene.CONFIG + "sync:\n  toHost:\n    widgets:\n"
WIDGETS = """\
from typing import Callable, Literal
from syncer.api import *

class Options(Config):
    \"\"\"How widgets are copied.\"\"\"

    color: Literal["red", "blue"] = "red"
    \"\"\"What they are painted with.\"\"\"

class Widgets(Mirror):
    \"\"\"Copies widgets.\"\"\"

    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
    config = Options
    down = ("spec",)
    up = ("status",)
"""

Install = Callable[..., None]


@pytest.fixture
def file(file: str) -> str:
    """Return the name of a configuration that names the plugin."""
    Path(file).write_text(CONFIG)
    return file


def records(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = typed(*arguments, "-o", "json")
    assert result.exit_code == code, result.output
    return {each["name"]: each for each in json.loads(result.stdout)}


# -- its section of the configuration --------------------------------------------------------------


def test_plugin_section_is_validated_like_ours(install: Install, file: str) -> None:
    install("acme-widgets", WIDGETS, widgets="Widgets")
    Path(file).write_text(CONFIG + "      color: bleu\n      colour: red\n      enabled: 5\n")
    result = typed("config", "validate", file)
    assert result.exit_code == 2
    assert result.stderr == (
        "syncer.yaml:8: sync.toHost.widgets.color: 'bleu' is not one of red, blue. Did you mean blue?\n"
        "syncer.yaml:9: sync.toHost.widgets.colour: no such option. Did you mean color?\n"
        "syncer.yaml:10: sync.toHost.widgets.enabled: expected true or false, found 5.\n"
        "3 problems. Nothing was started.\n"
    )


def test_plugin_section_is_on_when_named_and_explained_and_in_the_schema(install: Install, file: str) -> None:
    install("acme-widgets", WIDGETS, widgets="Widgets")
    assert "widgets" in typed("config", "validate", file).stdout
    assert "What they are painted with." in typed("config", "explain", "sync.toHost.widgets.color", "-c", file).stdout
    unnamed = typed("config", "explain", "sync.toHost.widgets").stderr
    assert "The plugin widgets is installed: give --config FILE, with a file that names sync.toHost.widgets." in unnamed
    schema = json.loads(typed("config", "schema", "-c", file).stdout)
    assert "blue" in json.dumps(schema)
    assert "toHost.widgets" in typed("config", "view", "-c", file).stdout


def test_plugin_section_that_is_not_named_is_not_there(install: Install, file: str) -> None:
    install("acme-widgets", WIDGETS, widgets="Widgets")
    Path(file).write_text(CONFIG.partition("sync:")[0])
    assert "widgets" not in typed("config", "validate", file).stdout
    assert "acme_widgets" not in sys.modules


# -- refused at start ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [["--config"], ["run", "--config"], ["config", "validate"], ["plugins", "list", "-c"], ["rbac", "-c"]],
)
def test_broken_plugin_that_is_named_stops_the_start_before_anything_is_touched(
    install: Install, file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    def connect(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a cluster was touched")

    monkeypatch.setattr("syncer.daemon.start.connecting.connect", connect)
    install("acme-widgets", WIDGETS + "    exact = 'status'\n", widgets="Widgets")
    result = typed(*arguments, file)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == (
        "syncer: plugin widgets (from acme-widgets 1.2): its exact 'status' is not a tuple of dotted paths, such as "
        f'("spec",) ({tmp_path}/acme_widgets.py:18). Take sync.toHost.widgets out of the configuration to start '
        "without it\n"
    )


def test_plugin_for_the_kind_of_a_built_in_syncer_is_refused_until_either_is_off(install: Install, file: str) -> None:
    code = WIDGETS.replace('"example.org/v1", "Widget", "widgets"', '"v1", "ConfigMap", "configmaps"')
    install("acme-widgets", code, widgets="Widgets")
    result = typed("config", "validate", file)
    assert result.exit_code == 3
    assert "Set sync.toHost.widgets.enabled or sync.toHost.configMaps.enabled to false" in result.stderr
    printed = records("plugins", "check", "widgets")["widgets"]
    assert printed["what"].endswith("as does configmaps: set sync.toHost.configMaps.enabled to false")
    Path(file).write_text(CONFIG + "    configMaps: {enabled: false}\n")
    assert typed("config", "validate", file).exit_code == 0


def test_plugin_without_a_resource_has_all_commands(install: Install, file: str) -> None:
    code = """\
from syncer.api import *

class Prepares(Syncer, Initialize):
    name = "prepares"
    section = "fake.prepares"
    rights = (Right(Side.VIRTUAL, Resource("a.b/v1", "Thing", "things"), ("create",)),)

    async def init(self, live):
        pass
"""
    install("acme-prepares", code, prepares="Prepares")
    Path(file).write_text(CONFIG.partition("sync:")[0] + "sync: {fake: {prepares: {}}}\n")
    assert records("plugins", "check", "prepares")["prepares"]["what"] == "fine"
    found = records("plugins", "list", "-c", file)["prepares"]
    assert (found["resource"], found["roles"], found["enabled"]) == ("-", ["Initialize"], "yes")
    assert "things" in typed("rbac", "-c", file).stdout
    assert "prepares" in typed("config", "validate", file).stdout
    assert typed("names", "to-host", "secret", "shop/db", "-c", file).exit_code == 0
    assert typed("plugins", "check", "prepares", "--laws").stdout.split()[-1] == "laws"


# -- list and check --------------------------------------------------------------------------------


def test_list_shows_installed_plugins_named_or_not_and_registered_syncers(install: Install, file: str) -> None:
    install("acme-widgets", WIDGETS, widgets="Widgets")
    install("acme-gadgets", "1/0", gadgets="Gadgets")
    with registrations():
        register_syncer(
            type("Things", (Mirror,), {"name": "things", "resource": Resource("a.b/v1", "Thing", "things")})
        )
        found = records("plugins", "list", "-c", file)
    assert (found["widgets"]["from"], found["widgets"]["enabled"]) == ("acme-widgets 1.2", "yes")
    assert (found["gadgets"]["from"], found["gadgets"]["enabled"]) == (
        "acme-gadgets 1.2",
        "not named in the configuration",
    )
    assert found["things"]["from"].startswith("registered by ")


def test_check_says_for_each_plugin_if_it_is_sound(install: Install, tmp_path: Path) -> None:
    install("acme-widgets", WIDGETS, widgets="Widgets")
    install("acme-gadgets", "x = 1\n1/0\n", gadgets="Gadgets")
    result = typed("plugins", "check", "-o", "json")
    found = {each["name"]: each for each in json.loads(result.stdout)}
    assert result.exit_code == 3
    assert result.stderr.startswith("not sound: 1 of ")
    assert found["gadgets"] == {
        "name": "gadgets",
        "from": "acme-gadgets 1.2",
        "ok": "no",
        "at": f"{tmp_path}/acme_gadgets.py:2",
        "what": "cannot be imported: ZeroDivisionError: division by zero",
    }
    sound = {name for name, each in found.items() if each["ok"] == "yes"}
    assert {"widgets", "configmaps", "pods", "single-namespace"} <= sound


def test_check_of_some_plugins_imports_no_others(install: Install) -> None:
    install("acme-widgets", WIDGETS, widgets="Widgets")
    install("acme-gadgets", "1/0\n", gadgets="Gadgets")
    assert list(records("plugins", "check", "widgets")) == ["widgets"]
    assert "acme_gadgets" not in sys.modules


def test_check_as_a_table(install: Install) -> None:
    install("acme-widgets", WIDGETS + "    up = 'status'\n    exact = 'status'\n", widgets="Widgets")
    lines = typed("plugins", "check", "widgets").stdout.splitlines()
    assert lines[0].split() == ["NAME", "FROM", "OK", "AT", "WHAT"]
    assert [line.split()[3] for line in lines[1:]] == ["no", "no"]


def test_check_of_an_unknown_plugin_is_a_usage_error(install: Install) -> None:
    install("acme-widgets", WIDGETS, widgets="Widgets")
    result = typed("plugins", "check", "wigdets")
    assert result.exit_code == 2
    assert "no plugin is called 'wigdets'. Did you mean widgets?" in result.stderr


@pytest.mark.parametrize(
    ("more", "message", "line"),
    [
        (
            "def applies_to(self, settings): return settings.nothing",
            "whether it applies to a virtual cluster: Attri",
            18,
        ),
        ("def rights_with(self, settings): return 5", "the rights that it needs can't be computed: TypeError", 10),
        ("class config(Config): odd: Callable[[], int] = int", "there is no schema of its section: Pydantic", 10),
    ],
)
def test_check_asks_all_that_needs_no_cluster(install: Install, more: str, message: str, line: int) -> None:
    install("acme-widgets", f"{WIDGETS}    {more}\n", widgets="Widgets")
    printed = records("plugins", "check", "widgets", code=3)["widgets"]
    assert message in printed["what"]
    assert printed["at"].endswith(f"acme_widgets.py:{line}")


@pytest.mark.parametrize(
    ("to_host", "to_virtual", "message"),
    [
        ("key", "Key('', key.name)", "to_virtual(pods, shop/web) gives Key(namespace='', name='web'), not shop/web"),
        ("'web'", "key", "to_host(pods, shop/web) gives 'web', not a Key"),
    ],
)
def test_check_tries_a_name_translator(install: Install, to_host: str, to_virtual: str, message: str) -> None:
    code = (
        "from syncer.api import Key\n"
        "class Odd:\n"
        "    def __init__(self, *, cluster, namespace): pass\n"
        f"    def to_host(self, resource, key): return {to_host}\n"
        f"    def to_virtual(self, resource, key): return {to_virtual}\n"
        "    def host_namespaces(self): return None\n"
    )
    install("acme-odd", code, group="syncer.names", odd="Odd")
    assert message in records("plugins", "check", "odd", code=3)["odd"]["what"]


# -- laws ------------------------------------------------------------------------------------------

RESTLESS = """
    count = 0

    def translate(self, ctx, virtual):
        type(self).count += 1
        return {**super().translate(ctx, virtual), "spec": {"n": self.count}}
"""


def test_check_runs_the_laws(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.cli.plugin_laws.EXAMPLES", 3)
    install("acme-widgets", WIDGETS, widgets="Widgets")
    assert records("plugins", "check", "widgets", "events", "--laws")["widgets"]["what"] == "fine"
    assert records("plugins", "check", "events", "--laws")["events"]["what"] == "fine; not tried under the laws"


def test_check_shows_a_broken_law_with_the_object(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    install("acme-widgets", WIDGETS + RESTLESS, widgets="Widgets")
    assert records("plugins", "check", "widgets")["widgets"]["what"] == "fine"
    printed = records("plugins", "check", "widgets", "--laws", code=3)["widgets"]["what"]
    assert "needs writes again and again, and is never in step" in printed
    assert "tried with scene=Scene(key=Key(" in printed
    assert not Path(".hypothesis").exists()


def test_check_names_the_extra_that_the_laws_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    result = typed("plugins", "check", "--laws")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "needs hypothesis. Run `pip install 'vsyncer[testing]'`" in result.stderr
