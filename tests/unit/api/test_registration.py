"""Syncers that a program registers without an entry point."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from syncer.api import (
    Config,
    Decision,
    FakeSyncUp,
    Key,
    Mirror,
    Obj,
    PluginError,
    Resource,
    Syncer,
    register_fake_syncer,
    register_syncer,
    registrations,
    skip,
)
from syncer.api.registration import registered
from syncer.plugins import installed

pytestmark = pytest.mark.slow

WIDGETS = Resource("example.org/v1", "Widget", "widgets")


class Widgets(Mirror):
    """Copies widgets."""

    name = "widgets"
    resource = WIDGETS


class Fakes(Syncer[Config], FakeSyncUp):
    """Makes widgets up."""

    name = "fakes"
    section = "fake.widgets"
    resource = WIDGETS

    def fake_sync_up(self, ctx: Any, key: Key) -> Decision:
        return skip("never")

    def fake_sync(self, ctx: Any, virtual: Obj) -> Decision:
        return skip("never")


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    with registrations():
        yield
    assert not registered()


def test_registered_syncers_keep_their_order_and_class() -> None:
    assert register_syncer(Widgets) is Widgets
    assert register_fake_syncer(Fakes) is Fakes
    register_syncer(Widgets)
    assert list(registered()) == [Widgets, Fakes]
    assert [syncer.name for syncer in installed().syncers()][-2:] == ["widgets", "fakes"]


def test_register_syncer_is_a_decorator() -> None:
    @register_syncer
    class Gadgets(Mirror):
        name = "gadgets"
        resource = WIDGETS

    assert list(registered()) == [Gadgets]


def test_registrations_of_a_block_are_undone_at_its_end_even_after_an_error() -> None:
    register_syncer(Widgets)
    with pytest.raises(ZeroDivisionError), registrations():
        register_fake_syncer(Fakes)
        raise ZeroDivisionError
    assert list(registered()) == [Widgets]


@pytest.mark.parametrize(
    ("register", "syncer", "expected"),
    [
        (
            register_syncer,
            Fakes,
            "Fakes has none of the roles SyncDown, Sync, SyncUp, SyncFromHost, OwnController, Initialize,",
        ),
        (register_fake_syncer, Widgets, "Widgets has none of the roles FakeSyncUp; use register_syncer for it"),
        (register_syncer, Widgets(), "an object of Widgets, not a class"),
        (register_syncer, dict, "<class 'dict'> is not a subclass of syncer.api.Syncer"),
        (register_syncer, type("Odd", (Widgets,), {"down": "spec"}), "its down 'spec' is not a tuple of dotted paths"),
        (register_syncer, type("Old", (Widgets,), {"api_version": 0}), "was written for version 0 of the plugin API"),
    ],
)
def test_unusable_syncer_is_refused_at_the_call(register: Any, syncer: Any, expected: str) -> None:
    with pytest.raises(PluginError) as caught:
        register(syncer)
    assert expected in str(caught.value)
    assert "registered by " in str(caught.value)
    assert not registered()


def test_conflict_with_a_built_in_syncer_is_refused_with_the_configuration() -> None:
    class Maps(Mirror):
        name = "maps"
        resource = Resource("v1", "ConfigMap", "configmaps")

    register_syncer(Maps)
    found = installed()
    # Either of the two syncers of nodes is at work.
    together = [each for each in found.syncers() if each.name != "host-nodes"]
    with pytest.raises(PluginError) as caught:
        found.refuse_conflicts(together)
    message = str(caught.value)
    assert message.startswith(
        f"plugin maps: registered by {__name__}: makes the host copies of configmaps, as does conf"
    )


PROGRAM = """
from syncer.api import Config, Mirror, Resource, register_syncer
from syncer.cli import main

class Options(Config):
    size: int = 3

@register_syncer
class Widgets(Mirror):
    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
    config = Options

main()
"""


def test_program_of_ones_own_has_all_commands_with_its_syncer() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    listed = run("plugins", "list")
    assert "registered by __main__" in next(line for line in listed.stdout.splitlines() if line.startswith("widgets"))
    assert "default 3" in run("config", "explain", "sync.toHost.widgets.size").stdout
    checked = run("plugins", "check", "widgets", "-o", "json")
    assert (checked.returncode, '"ok": "yes"' in checked.stdout) == (0, True)
