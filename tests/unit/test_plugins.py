"""Finding and loading plugins, and their conflicts, with real distributions in a temporary folder."""

import sys
from collections.abc import Callable
from importlib.metadata import PathDistribution, distribution, entry_points
from pathlib import Path

import pytest

from syncer.api import Mirror, PluginError, Resource, Syncer, register_syncer, registrations
from syncer.api.registration import registered
from syncer.plugins import TRANSLATORS, Installed, installed

#: A module with a good syncer, to be varied.
GOOD = """
from syncer.api import *

class Widgets(Mirror):
    \"\"\"Copies widgets.\"\"\"

    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
"""

Install = Callable[..., None]


def plugins(*own: str) -> Installed:
    """Return the installed plugins, with these packages as the built-in ones."""
    points = [point for package in own for point in distribution(package).entry_points]
    others = lambda group: [p for p in entry_points(group=group) if p.dist and p.dist.name not in own]  # noqa: E731
    return Installed(points, others, registered())


def fault(section: str = "toHost.widgets") -> str:
    with pytest.raises(PluginError) as caught:
        plugins().syncers([section])
    assert caught.value.exit_code == 3
    return str(caught.value)


def refused(found: Installed, *sections: str) -> str:
    with pytest.raises(PluginError) as caught:
        found.refuse_conflicts(found.syncers(sections))
    return str(caught.value)


# -- which are loaded ------------------------------------------------------------------------------


def test_built_in_syncers_are_there_without_being_named(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    [widgets] = plugins("own-plugins").syncers()
    assert widgets.name == "widgets"


def test_metadata_of_a_package_is_read_once_for_all_its_plugins(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("own-plugins", GOOD, widgets="Widgets", gadgets="Widgets", gizmos="Widgets")
    read: list[str] = []
    whole = PathDistribution.metadata.fget  # type: ignore[attr-defined]

    def counted(self: PathDistribution) -> object:
        metadata = whole(self)
        read.append(metadata["Name"])
        return metadata

    found = plugins("own-plugins")
    monkeypatch.setattr(PathDistribution, "metadata", property(counted))
    assert found.built_in
    assert read.count("own-plugins") == 1


def test_plugin_is_imported_only_when_its_section_is_named(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    found = plugins()
    assert list(found.syncers(["toHost.gadgets"])) == []
    assert "acme_widgets" not in sys.modules
    assert [syncer.name for syncer in found.syncers(["toHost.widgets", "toHost.widgets"])] == ["widgets"]
    assert str(found.origin(found.syncers(["toHost.widgets"])[0])) == "acme-widgets 1.2"


def test_plugin_of_another_section_is_not_loaded(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    assert list(plugins().syncers(["fromHost.widgets"])) == []


def test_installed_plugins_are_known_by_name(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    install("acme-gadgets", "", gadgets="Gadgets")
    assert {"widgets", "gadgets"} <= set(plugins("own-plugins").known_syncers())


def test_plugins_of_other_names_are_not_imported(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    install("acme-gadgets", "1/0", gadgets="Gadgets")
    found = plugins()
    assert [(each.name, each.problems) for each in found.found(["widgets"])] == [("widgets", ())]
    assert "acme_gadgets" not in sys.modules


def test_built_in_plugins_are_all_sound() -> None:
    found = installed()
    syncers = found.syncers()
    assert {"configmaps", "secrets", "services", "pods", "nodes", "events"} <= {syncer.name for syncer in syncers}
    found.refuse_conflicts([each for each in syncers if each.name != "host-nodes"])  # it works instead of nodes
    assert all(issubclass(syncer, Syncer) for syncer in syncers)
    assert found.translator("single-namespace") is not None


def test_other_distributions_are_not_read_for_the_built_in_ones() -> None:
    def never(group: str) -> list[object]:
        raise AssertionError(group)

    found = Installed(distribution("vsyncer").entry_points, never)  # type: ignore[arg-type]
    assert found.syncers(["toHost.configMaps"])
    assert found.translator("single-namespace")


# -- what can't be imported ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected", "line"),
    [
        ("x = 1\n\nimport no_such_thing\n", "ModuleNotFoundError: No module named 'no_such_thing'", 3),
        ("x = 1\ny = = 2\n", "SyntaxError: invalid syntax", 2),
        ("def f():\n    1 / 0\n\nf()\n", "ZeroDivisionError: division by zero", 2),
        ("import sys\nsys.exit('no')\n", "SystemExit: no", 2),
    ],
)
def test_exception_of_an_import_is_reported_with_package_version_and_line(
    install: Install, tmp_path: Path, code: str, expected: str, line: int
) -> None:
    install("acme-widgets", code, widgets="Widgets")
    assert fault() == (
        f"plugin widgets (from acme-widgets 1.2): cannot be imported: {expected} ({tmp_path}/acme_widgets.py:{line}). "
        "Take sync.toHost.widgets out of the configuration to start without it"
    )


def test_package_without_its_module_is_reported(install: Install, tmp_path: Path) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    (tmp_path / "acme_widgets.py").unlink()
    assert "cannot be imported: ModuleNotFoundError: No module named 'acme_widgets'" in fault()


def test_entry_point_to_missing_class_is_reported_with_existing_ones(install: Install, tmp_path: Path) -> None:
    install("acme-widgets", GOOD, widgets="Wodgets")
    expected = "its entry point is acme_widgets:Wodgets, but acme_widgets has no Wodgets; it has Widgets"
    assert f"{expected} ({tmp_path}/acme_widgets.py)" in fault()


def test_malformed_entry_point_is_reported(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets and more")
    assert "its entry point 'acme_widgets:Widgets and more' is not of the form module:Class" in fault()


# -- which go together -----------------------------------------------------------------------------


def test_entry_point_named_unlike_its_section_is_reported(install: Install, tmp_path: Path) -> None:
    install("acme-widgets", GOOD + "    section = 'toHost.gadgets'\n", widgets="Widgets")
    expected = "its section is toHost.gadgets, but its entry point is called widgets; call the entry point gadgets"
    assert f"{expected} ({tmp_path}/acme_widgets.py:9)" in fault()


def test_packages_with_the_same_plugin_are_refused_and_named(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    install("other-widgets", GOOD, widgets="Widgets", version="3")
    message = fault()
    assert "acme-widgets 1.2" in message
    assert "other-widgets 3" in message
    assert "Uninstall all but one" in message
    messages = [problem.message for each in plugins().found(["widgets"]) for problem in each.problems]
    assert len(messages) == 2
    assert all("acme-widgets 1.2" in each and "other-widgets 3" in each for each in messages)


@pytest.mark.parametrize("direction", ["toHost", "fromHost"])
def test_syncers_of_the_same_copies_are_refused_and_named(install: Install, direction: str) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    other = GOOD.replace('"widgets"\n', '"others"\n') + f"    section = '{direction}.others'\n"
    install("acme-others", other, others="Widgets")
    assert refused(plugins("own-plugins"), f"{direction}.others") == (
        "plugin others (from acme-others 1.2): makes the host copies of widgets.example.org, as does widgets (from "
        f"own-plugins 1.2). Set sync.{direction}.others.enabled or sync.toHost.widgets.enabled to false"
    )


UP = """
from syncer.api import *

class Up(Syncer, SyncFromHost):
    name = "up"
    section = "fromHost.up"
    resource = Resource("example.org/v1", "Widget", "widgets")

    def virtual_key(self, ctx, host):
        return None

    def sync_from_host(self, ctx, host):
        return skip("never")
"""


def test_resource_in_two_directions_is_no_conflict(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    install("acme-up", UP, up="Up")
    found = plugins("own-plugins")
    syncers = found.syncers(["fromHost.up"])
    assert len(syncers) == 2
    found.refuse_conflicts(syncers)


def test_syncers_of_the_same_virtual_objects_are_refused(install: Install) -> None:
    install("own-plugins", UP, up="Up")
    fake = UP.replace("SyncFromHost)", "FakeSyncUp)").replace('"up"', '"fakes"').replace("fromHost.up", "fake.fakes")
    fake = fake.replace("sync_from_host(self, ctx, host)", "fake_sync_up(self, ctx, key)")
    install("acme-fakes", fake + "\n    def fake_sync(self, ctx, virtual):\n        return skip('never')\n", fakes="Up")
    message = refused(plugins("own-plugins"), "fake.fakes")
    assert "makes the virtual copies of widgets.example.org, as does up (from own-plugins 1.2)" in message


def test_syncers_of_the_same_name_are_refused(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    other = GOOD.replace("example.org", "other.org") + "    section = 'toHost.others'\n"
    install("acme-others", other, others="Widgets")
    message = refused(plugins("own-plugins"), "toHost.others")
    assert "is called widgets, as is widgets (from own-plugins 1.2). Set sync.toHost.others.enabled or" in message


def test_syncers_made_by_configuration_conflict_as_classes_do() -> None:
    class Widgets(Mirror):
        resource = Resource("v1", "ConfigMap", "configmaps")

    made: Syncer = Widgets()
    made.name, made.section = "of-config", "custom.configmaps"  # type: ignore[misc]
    found = installed()
    [built_in] = [syncer for syncer in found.syncers() if syncer.name == "configmaps"]
    with pytest.raises(PluginError, match=r"of-config .*as does configmaps .*Set sync\.custom\.configmaps\.enabled"):
        found.refuse_conflicts([built_in, made])


def test_section_may_be_shared_within_a_package(install: Install) -> None:
    second = (
        "\nclass More(Mirror):\n    name = 'more'\n    section = 'toHost.widgets'\n    resource = Widgets.resource\n"
    )
    install("own-plugins", GOOD + second, widgets="Widgets", more="More")
    assert len(plugins("own-plugins").syncers()) == 2
    disagreeing = GOOD + second + "    class config(Config): pass\n"
    install("bad-plugins", disagreeing, widgets="Widgets", more="More")
    with pytest.raises(PluginError, match=r"more \(from bad-plugins 1\.2\): has the section toHost\.widgets.*options"):
        plugins("bad-plugins").syncers()


def test_sections_that_differ_by_a_dash_or_a_capital_are_one(install: Install) -> None:
    install("own-plugins", GOOD.replace('"widgets"\n', '"fine-things"\n'), fine_things="Widgets")
    other = GOOD.replace('"widgets"\n', '"others"\n') + "    section = 'toHost.fineThings'\n"
    install("acme-others", other, fineThings="Widgets")
    with pytest.raises(
        PluginError, match=r"has the section toHost\.fineThings, and fine-things .* toHost\.fine-things"
    ):
        plugins("own-plugins").syncers(["toHost.fineThings"])


def test_section_of_a_built_in_syncer_can_not_be_taken_over(install: Install) -> None:
    install("own-plugins", GOOD, widgets="Widgets")
    install("acme-widgets", GOOD, widgets="Widgets")
    found = plugins("own-plugins")
    assert [str(found.origin(syncer)) for syncer in found.syncers(["toHost.widgets"])] == ["own-plugins 1.2"]
    [text] = [problem.message for each in found.found(["widgets"]) for problem in each.problems]
    assert text.startswith("has the section toHost.widgets, and widgets (from own-plugins 1.2) has it, too. Give it a")


# -- registered ones -------------------------------------------------------------------------------


def test_registered_syncer_is_available_without_being_named(install: Install) -> None:
    with registrations():
        register_syncer(_widgets())
        found = plugins()
        [widgets] = found.syncers()
        assert str(found.origin(widgets)) == f"registered by {__name__}"
        assert "widgets" in found.known_syncers()
    assert list(plugins().syncers()) == []


def test_registered_and_installed_are_refused_where_they_conflict(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    install("acme-gadgets", GOOD.replace('"widgets"\n', '"gadgets"\n'), gadgets="Widgets")
    with registrations():
        register_syncer(_widgets())
        with pytest.raises(PluginError, match=rf"widgets \(registered by {__name__}\) has it, too"):
            plugins().syncers(["toHost.widgets"])
        assert f"as does widgets (registered by {__name__})" in refused(plugins(), "toHost.gadgets")


def _widgets() -> type[Syncer]:
    class Widgets(Mirror):
        name = "widgets"
        resource = Resource("example.org/v1", "Widget", "widgets")

    return Widgets


# -- name translators ------------------------------------------------------------------------------

TRANSLATOR = """
class Upper:
    def __init__(self, *, cluster, namespace): pass
    def to_host(self, resource, key): return key
    def to_virtual(self, resource, key): return key
    def host_namespaces(self): return None
"""


def test_translator_is_found_by_name(install: Install) -> None:
    install("acme-upper", TRANSLATOR, group=TRANSLATORS, upper_case="Upper")
    found = plugins().translator("upper-case")
    assert found is not None
    assert found.__name__ == "Upper"
    assert "upper-case" in plugins().known_translators()
    assert plugins().translator("lower-case") is None


@pytest.mark.parametrize(
    ("written", "instead", "expected"),
    [
        ("to_virtual", "to_vitrual", "Upper lacks the method to_virtual"),
        ("*, cluster, namespace", "prefix", "Upper can't be made with `cluster` and `namespace` given by keyword"),
        ("class Upper", "def Upper(): pass\nclass Lower", "is not a class; the entry point has to name one"),
    ],
)
def test_translator_that_can_not_be_used_is_refused(
    install: Install, written: str, instead: str, expected: str
) -> None:
    install("acme-upper", TRANSLATOR.replace(written, instead), group=TRANSLATORS, upper="Upper")
    with pytest.raises(
        PluginError, match=r"upper \(from acme-upper 1.2\): .*Set names\.translator to another"
    ) as caught:
        plugins().translator("upper")
    assert expected in str(caught.value)


def test_translators_of_the_same_name_are_refused(install: Install) -> None:
    install("acme-upper", TRANSLATOR, group=TRANSLATORS, upper="Upper")
    install("other-upper", TRANSLATOR, group=TRANSLATORS, upper="Upper")
    with pytest.raises(PluginError, match="is offered by"):
        plugins().translator("upper")
