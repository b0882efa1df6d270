"""The contract of a syncer class: each violation is reported with its line and a way out."""

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from syncer.api import PluginError
from syncer.plugins import Installed

#: The class begins in the third line.
GOOD = """\
from syncer.api import *

class Widgets(Mirror):
    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
    down = ("spec",)
"""
RESOURCE = 'Resource("example.org/v1", "Widget", "widgets")'

WAY_OUT = ". Take sync.toHost.widgets out of the configuration to start without it"

Install = Callable[..., None]


def refusal(install: Install, code: str) -> str:
    install("acme-widgets", code, widgets="Widgets")
    with pytest.raises(PluginError) as caught:
        Installed([], lambda group: entry_points(group=group)).syncers(["toHost.widgets"])
    message = str(caught.value)
    assert message.startswith("plugin widgets (from acme-widgets 1.2): ")
    return message


def with_(*lines: str) -> str:
    return GOOD + "".join(f"    {line}\n" for line in lines)


def derived(*bases: str) -> str:
    return GOOD.replace("(Mirror)", f"({', '.join(bases)})")


@pytest.mark.parametrize(
    "code",
    [
        "class Widgets(Syncer, Initialize):\n    name = 'widgets'\n    async def init(self, live): pass\n",
        "class Widgets(Syncer, Indexes):\n    name = 'widgets'\n    def indexes(self): return ()\n",
        "class Widgets(Syncer, OwnController):\n    name = 'widgets'\n    async def register(self, live): pass\n",
        derived("Mirror", "FakeSyncUp")
        + "    fake_sync_up = lambda self, ctx, key: None\n"
        + "    fake_sync = lambda self, ctx, virtual: None\n",
    ],
)
def test_roles_that_may_be_alone_or_together_are_accepted(install: Install, code: str) -> None:
    install("acme-widgets", "from syncer.api import *\n" + code, widgets="Widgets")
    [widgets] = Installed([], lambda group: entry_points(group=group)).syncers(["toHost.widgets"])
    assert widgets.__name__ == "Widgets"


def test_valid_plugin_is_loaded(install: Install) -> None:
    install("acme-widgets", GOOD, widgets="Widgets")
    [widgets] = Installed([], lambda group: entry_points(group=group)).syncers(["toHost.widgets"])
    assert widgets.__name__ == "Widgets"


@pytest.mark.parametrize(
    ("code", "expected", "line"),
    [
        ("class Widgets: pass\n", "is not a subclass of syncer.api.Syncer; derive it from", 1),
        (GOOD + "Widgets = Widgets()\n", "an object of Widgets, not a class; name the class itself", 3),
        (with_("api_version = 2"), "version 2 of the plugin API; this is version 1: upgrade vsyncer", 7),
        (with_("api_version = 0"), "version 0 of the plugin API; this is version 1: upgrade the plugin", 7),
        ("from syncer.api import *\n\nclass Widgets(Mirror):\n    pass\n", "doesn't set name, resource", 3),
        (derived("Syncer", "SyncDown", "SyncUp"), "Widgets lacks the method sync_down, sync_up", 3),
        (derived("Mirror", "SyncFromHost"), "Widgets lacks the method sync_from_host, virtual_key", 3),
        (
            derived("Mirror", "SyncFromHost") + "    sync_from_host = virtual_key = lambda self, ctx, host: None\n",
            "Widgets has SyncFromHost beside SyncDown or SyncUp; make two syncers of it",
            3,
        ),
        (
            derived("Syncer", "SyncUp") + "    sync_up = lambda self, ctx, host: None\n",
            "for objects that begin on the host, derive it from SyncFromHost and rename sync_up to sync_from_host",
            3,
        ),
        (
            derived("Syncer", "SyncUp", "Sync") + "    sync_up = sync = lambda self, *args: None\n",
            "Widgets has SyncUp without SyncDown",
            3,
        ),
        (derived("Syncer"), "Widgets has no role; derive it from SyncDown, Sync", 3),
        (with_("def heeds(self, virtual): return True"), "its heeds is called predicate now; rename it", 7),
        (with_("def concerns(self, settings): return True"), "its concerns is called applies_to now", 7),
        (with_("restores = True"), "its restores is called reverts_virtual_changes now", 7),
        (with_("section = 'widgets'"), "its section 'widgets' is not of the form toHost.name", 7),
        (with_("section = 5"), "its section 5 is not of the form toHost.name", 7),
        (with_("section = 'toHost.copy'"), "its section 'toHost.copy' can't be called so", 7),
        (with_("section = 'toHost.modelConfig'"), "its section 'toHost.modelConfig' can't be called so", 7),
        (with_("config = dict"), "its config <class 'dict'> is not a subclass of syncer.api.Config", 7),
        (with_("config = Config()"), "is not a subclass of syncer.api.Config", 7),
        (with_("class config(Config):", "    selector: str = ''"), "its config has an option `selector` of its own", 7),
        (
            with_("class config(Config):", "    metadata: int = 1"),
            "its config has an option `metadata` of its own",
            7,
        ),
        (with_("metadata = ('a',)"), "its metadata ('a',) is not MetadataRules of labels and annotations", 7),
        (with_("class config(Config):", "    size: int"), "made of defaults alone: size: Field required", 7),
        (GOOD.replace('"widgets"\n', '"My Widgets"\n    section = "toHost.widgets"\n'), "its name 'My Widgets' is", 4),
        (GOOD.replace(RESOURCE, '"widgets"'), "its resource 'widgets' is not a Resource", 5),
        (with_('host_resource = "widgets"'), "its host_resource 'widgets' is not a Resource", 7),
        (GOOD.replace('"Widget", "widgets"', '"widgets", "Widget"'), "has the kind 'widgets', which can't be one", 5),
        (GOOD.replace('"example.org/v1"', '"example.org"'), "has the api_version 'example.org', which can't", 5),
        (GOOD.replace('("spec",)', '"spec"'), "its down 'spec' is not a tuple of dotted paths", 6),
        (with_("up = ['status']"), "its up ['status'] is not a tuple of dotted paths", 7),
        (with_("exact = 'status'"), "its exact 'status' is not a tuple of dotted paths", 7),
        (with_("exact = ('status', '.x')"), "its exact ('status', '.x') is not a tuple of dotted paths", 7),
        (with_("up = ('metadata.labels',)"), "its up has 'metadata.labels'; labels and annotations of the tenant's", 7),
        (GOOD.replace("spec", "/metadata/labels/a"), "its down has '/metadata/labels/a'; labels and annotations", 6),
        (with_("create_only = ('status.a',)"), "its create_only has 'status.a', which is neither in down nor", 7),
        (with_("exact = ('spec.a', 'data')"), "its exact has 'data', which is neither in down nor in up", 7),
        (with_("both = ('data',)", "exact = ('data',)"), "its exact has 'data', which is neither in down nor in up", 8),
        (with_("deletion = 'later'"), "its deletion 'later' is not one of whenMarked, whenGone", 7),
        (
            with_("own_deletion = True", "deletion = 'whenGone'"),
            "its deletion is whenGone, but own_deletion handles it",
            8,
        ),
        (with_("references = ('spec.x',)"), "its references is not a mapping of paths to Resource", 7),
        (with_("references = {'spec.x': 'Secret'}"), "its references is not a mapping of paths to Resource", 7),
        (with_(f"references = {{'spec..x': {RESOURCE}}}"), "its references can't be: expected a path such as", 7),
        (with_(f"references = {{'status.x': {RESOURCE}}}"), "has 'status.x', which is in none of down, both and", 7),
        (
            with_("both = ('spec.x',)", f"references = {{'spec.x': Reference({RESOURCE}, kind='kind')}}"),
            "its both has 'spec.x', but what stands beside it says what it is the name of; put spec there",
            7,
        ),
        (with_("reads = Source(Side.HOST, Resource('v1', 'Pod', 'pods'))"), "its reads is not a tuple of Source", 7),
        (with_("rights = ('get',)"), "its rights is not a tuple of Right", 7),
        (with_("def __init__(self, size): pass"), "missing 1 required positional argument: 'size'; it is made", 7),
        (
            with_("def translate(self, virtual): pass"),
            "its translate can't be called with (ctx, virtual), as Mirror",
            7,
        ),
        (with_("async def sync(self, ctx, pair): pass"), "its sync is async; a syncer decides without waiting", 7),
        (derived("Mirror", "Initialize") + "    def init(self, live): pass\n", "its init is not async", 7),
        (derived("Mirror", "Indexes") + "    def indexes(self): return 5\n", "its indexes() raises TypeError", 7),
        (derived("Mirror", "Indexes") + "    def indexes(self): return ['x']\n", "which is no Index of a Source", 7),
        (derived("Mirror", "Watches") + "    def watches(self): 1 / 0\n", "its watches() raises ZeroDivisionError", 7),
        (
            derived("Syncer", "Sync") + "    sync = lambda self, ctx, pair: None\n",
            "has Sync alone, which is never asked",
            3,
        ),
        (
            derived("Syncer", "SyncFromHost", "FakeSyncUp")
            + "    sync_from_host = virtual_key = lambda self, ctx, host: None\n"
            + "    fake_sync_up = lambda self, ctx, key: None\n"
            + "    fake_sync = lambda self, ctx, virtual: None\n",
            "has FakeSyncUp beside SyncFromHost; set reverts_virtual_changes and host_key, so that a virtual key leads",
            3,
        ),
    ],
)
def test_problem_is_reported_with_its_line(
    install: Install, tmp_path: Path, code: str, expected: str, line: int
) -> None:
    message = refusal(install, code)
    assert expected in message
    assert f"({tmp_path}/acme_widgets.py:{line})" in message
    assert message.endswith(WAY_OUT)


def test_watch_needs_a_function(install: Install) -> None:
    watches = "    def watches(self):\n        return [Watch(Source(Side.HOST, self.resource), keys='name')]\n"
    assert "its watches() gives a Watch without a function" in refusal(install, derived("Mirror", "Watches") + watches)


def test_faults_are_reported_all_at_once(install: Install, tmp_path: Path) -> None:
    message = refusal(install, with_("up = 'status'", "exact = 'status'", "rights = None"))
    assert message.splitlines()[1:] == [
        f"  its up 'status' is not a tuple of dotted paths, such as (\"spec\",) ({tmp_path}/acme_widgets.py:7)",
        f"  its exact 'status' is not a tuple of dotted paths, such as (\"spec\",) ({tmp_path}/acme_widgets.py:8)",
        f"  its rights is not a tuple of Right ({tmp_path}/acme_widgets.py:9){WAY_OUT}",
    ]


def test_line_of_an_inherited_fault_is_where_it_was_made(install: Install, tmp_path: Path) -> None:
    code = GOOD.replace("class Widgets(Mirror)", "class Base(Mirror)").replace('("spec",)', '"spec"')
    assert f"({tmp_path}/acme_widgets.py:6)" in refusal(install, f"{code}\nclass Widgets(Base):\n    up = ()\n")
