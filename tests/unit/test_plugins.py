"""Finding, loading and refusing plugins, with real distributions in a temporary folder."""

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distribution, entry_points
from pathlib import Path
from textwrap import dedent

import pytest

from syncer.api import PluginError, Syncer
from syncer.plugins import SYNCERS, TRANSLATORS, Installed, installed

#: A module with a good syncer, to be varied.
GOOD = """
from syncer.api import *

class Widgets(Mirror):
    \"\"\"Copies widgets.\"\"\"

    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a distribution with one module and its entry points where Python finds it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def put(package: str, code: str, *, version: str = "1.2", **points: str) -> None:
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(dedent(code))
        info = tmp_path / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        group = points.pop("group", SYNCERS)
        lines = [f"{name.replace('_', '-')} = {module}:{value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")

    yield put
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def plugins(*own: str) -> Installed:
    """What is installed, with these packages for the built-in ones."""
    points = [point for package in own for point in distribution(package).entry_points]
    return Installed(points, lambda group: [p for p in entry_points(group=group) if p.dist and p.dist.name not in own])


def fault(section: str = "toHost.widgets") -> str:
    with pytest.raises(PluginError) as caught:
        plugins().syncers([section])
    return str(caught.value)


def test_built_in_syncers_are_there_without_being_named(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    [widgets] = plugins("own-plugins").syncers()
    assert widgets.name == "widgets"


def test_a_plugin_is_imported_only_when_its_section_is_named(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    found = plugins()
    assert list(found.syncers(["toHost.gadgets"])) == []
    assert "acme_widgets" not in sys.modules
    assert [syncer.name for syncer in found.syncers(["toHost.widgets", "toHost.widgets"])] == ["widgets"]
    assert str(found.origin(found.syncers(["toHost.widgets"])[0])) == "acme-widgets 1.2"


def test_a_plugin_whose_section_is_elsewhere_is_not_taken(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    assert list(plugins().syncers(["fromHost.widgets"])) == []


def test_what_is_installed_is_known_by_name(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    install("acme-gadgets", "", gadgets="Gadgets")
    assert {"widgets", "gadgets"} <= set(plugins("own-plugins").known_syncers())


def test_an_import_error_names_package_version_and_line(install: Install, tmp_path: Path) -> None:
    install("acme-widgets", "x = 1\n\nimport no_such_thing\n", widgets="Widgets")
    assert fault() == (
        "plugin widgets (from acme-widgets 1.2): cannot be imported: ModuleNotFoundError: "
        f"No module named 'no_such_thing' ({tmp_path}/acme_widgets.py:3)"
    )


def test_a_syntax_error_names_its_line(install: Install, tmp_path: Path) -> None:
    install("acme-widgets", "x = 1\ny = = 2\n", widgets="Widgets")
    assert fault().endswith(f"({tmp_path}/acme_widgets.py:2)")


def test_a_missing_class_names_the_entry_point(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Wodgets")
    assert "has no attribute 'Wodgets' (acme_widgets:Wodgets)" in fault()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("Widgets = 5", "5 is not a subclass of syncer.api.Syncer"),
        ("class Widgets: pass", "is not a subclass of syncer.api.Syncer"),
        (GOOD + "    api_version = 2\n", "was written for version 2 of the plugin API; this is version 1"),
        ("from syncer.api import *\nclass Widgets(Mirror):\n    pass\n", "Widgets doesn't set name, resource, section"),
        (
            GOOD.replace("(Mirror)", "(Syncer, SyncDown, SyncUp)"),
            "Widgets lacks the method sync_down, sync_up",
        ),
        (GOOD.replace("(Mirror)", "(Syncer)"), "Widgets has no role; derive it from SyncDown, Sync"),
        (GOOD + "    section = 'widgets'\n", "its section 'widgets' is not of the form toHost.name"),
        (GOOD + "    config = dict\n", "is not a subclass of syncer.api.Config"),
    ],
)
def test_what_is_wrong_with_a_class_is_said_with_its_package(install: Install, code: str, said: str) -> None:
    install("acme-widgets", code, widgets="Widgets")
    message = fault()
    assert message.startswith("plugin widgets (from acme-widgets 1.2): ")
    assert said in message


def test_a_faulty_class_is_named_with_file_and_line(install: Install, tmp_path: Path) -> None:
    install("acme-widgets", GOOD + "    api_version = 2\n", widgets="Widgets")
    assert fault().endswith(f"({tmp_path}/acme_widgets.py:4)")


def test_two_packages_with_one_plugin_are_refused_and_both_named(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    install("other-widgets", GOOD, widgets="Widgets", version="3")
    message = fault()
    assert "acme-widgets 1.2" in message
    assert "other-widgets 3" in message
    assert "Uninstall all but one" in message


def test_two_syncers_for_one_resource_and_direction_are_refused_and_both_named(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    other = GOOD.replace('"widgets"\n', '"others"\n')
    install("acme-others", other, others="Widgets")
    found = plugins("own-plugins")
    with pytest.raises(PluginError) as caught:
        found.refuse_conflicts(found.syncers(["toHost.others"]))
    assert str(caught.value) == (
        "plugin others (from acme-others 1.2): syncs widgets.example.org in toHost, and so does widgets (from "
        "own-plugins 1.2). Set sync.toHost.others.enabled or sync.toHost.widgets.enabled to false"
    )


def test_one_resource_in_two_directions_is_no_conflict(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    other = GOOD.replace('"widgets"\n', '"others"\n') + "    section = 'fromHost.others'\n"
    install("acme-others", other, others="Widgets")
    found = plugins("own-plugins")
    syncers = found.syncers(["fromHost.others"])
    assert len(syncers) == 2
    found.refuse_conflicts(syncers)


def test_two_syncers_of_one_name_are_refused(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    other = GOOD.replace("example.org", "other.org") + "    section = 'toHost.others'\n"
    install("acme-others", other, others="Widgets")
    found = plugins("own-plugins")
    with pytest.raises(PluginError, match="is called widgets, and so does"):
        found.refuse_conflicts(found.syncers(["toHost.others"]))


def test_a_section_may_be_shared_by_those_who_agree_on_its_options(install: Install) -> None:
    second = (
        "\nclass More(Mirror):\n    name = 'more'\n    section = 'toHost.widgets'\n    resource = Widgets.resource\n"
    )
    install("own-plugins", GOOD + second, widgets="Widgets", more="More")
    assert len(plugins("own-plugins").syncers()) == 2
    disagreeing = GOOD + second + "    class config(Config): pass\n"
    install("bad-plugins", disagreeing, widgets="Widgets", more="More")
    with pytest.raises(PluginError, match=r"more: has the section toHost\.widgets, which belongs to widgets"):
        plugins("bad-plugins").syncers()


TRANSLATOR = """
class Upper:
    def __init__(self, *, cluster, namespace): pass
    def to_host(self, resource, key): return key
    def to_virtual(self, resource, key): return key
    def host_namespaces(self): return None
"""


def test_a_translator_is_found_by_name(install: Install) -> None:
    install("acme-upper", TRANSLATOR, group=TRANSLATORS, upper_case="Upper")
    found = plugins().translator("upper-case")
    assert found is not None
    assert found.__name__ == "Upper"
    assert "upper-case" in plugins().known_translators()
    assert plugins().translator("lower-case") is None


def test_a_translator_without_a_method_is_refused(install: Install) -> None:
    code = TRANSLATOR.replace("to_virtual", "to_vitrual")
    install("acme-upper", code, group=TRANSLATORS, upper="Upper")
    with pytest.raises(PluginError, match=r"upper \(from acme-upper 1.2\): Upper lacks the method to_virtual"):
        plugins().translator("upper")


def test_two_translators_of_one_name_are_refused(install: Install) -> None:
    install("acme-upper", TRANSLATOR, group=TRANSLATORS, upper="Upper")
    install("other-upper", TRANSLATOR, group=TRANSLATORS, upper="Upper")
    with pytest.raises(PluginError, match="is offered by"):
        plugins().translator("upper")


def test_every_built_in_plugin_is_sound() -> None:
    found = installed()
    syncers = found.syncers()
    assert {"configmaps", "secrets", "services", "pods", "nodes", "events"} <= {syncer.name for syncer in syncers}
    found.refuse_conflicts(syncers)
    assert all(issubclass(syncer, Syncer) for syncer in syncers)
    assert found.translator("single-namespace") is not None


def test_other_distributions_are_not_read_for_the_built_in_ones() -> None:
    def never(group: str) -> list[object]:
        raise AssertionError(group)

    found = Installed(distribution("vsyncer").entry_points, never)  # type: ignore[arg-type]
    assert found.syncers(["toHost.configMaps"])
    assert found.translator("single-namespace")
