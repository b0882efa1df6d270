"""The types of the plugin API, as a type checker reports them to a plugin's author."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import syncer.api

#: A plugin as its author writes it. Lines that end in ``# wrong`` are refused, all others are fine.
PLUGIN = """
from collections.abc import Iterable
from typing import assert_type

from syncer.api import (
    AroundReconcile, Config, Context, Decision, Excludes, FakeSyncUp, Key, Mirror, Networking, Obj, Pair, Resource,
    Settings, Side, Sync, SyncDown, SyncFromHost, SyncUp, Syncer, apply, skip,
)


class Options(Config):
    size: int = 3


class Copies(Mirror[Options], Excludes[Options], AroundReconcile[Options]):
    name = "copies"
    resource = Resource("v1", "ConfigMap", "configmaps")

    def translate(self, ctx: Context[Options], virtual: Obj) -> Obj:
        assert_type(ctx.config.size, int)
        assert_type(ctx.settings.networking, Networking)
        assert_type(ctx.settings.section("other", Options), Options | None)
        ctx.config.sizes  # wrong
        ctx.settings.networking.dns.servce  # wrong
        return super().translate(ctx, virtual)

    def excluded(self, ctx: Context[Options], side: Side, obj: Obj) -> str | None:
        return str(ctx.config.size)

    def reconcile_start(self, ctx: Context[Options], key: Key) -> str | None:
        return helper(ctx)

    def reconcile_end(self, ctx: Context[Options], key: Key, error: Exception | None) -> None:
        ctx.config.size + "1"  # wrong


class Written(Syncer[Options], SyncDown[Options], Sync[Options], SyncUp[Options], FakeSyncUp[Options]):
    name = "written"
    resource = Resource("v1", "ConfigMap", "configmaps")

    def sync_down(self, ctx: Context[Options], virtual: Obj) -> Decision:
        return apply(host=virtual, reason=str(ctx.config.size))

    def sync(self, ctx: Context[Options], pair: Pair) -> Decision:
        return skip(ctx.config.size)  # wrong

    def sync_up(self, ctx: Context[Options], host: Obj) -> Decision:
        return skip(helper(ctx))

    def fake_sync_up(self, ctx: Context[Options], key: Key) -> Decision:
        return skip(helper(ctx))

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return skip(str(ctx.config.size))  # wrong


class Shown(Syncer[Options], SyncFromHost[Options]):
    name = "shown"
    resource = Resource("v1", "ConfigMap", "configmaps")

    def virtual_key(self, ctx: Context[Options], host: Obj) -> Key | None:
        return Key("", str(ctx.config.size))

    def sync_from_host(self, ctx: Context[Options], host: Obj) -> Decision:
        return skip(str(ctx.config.sized))  # wrong


class Plain(Syncer, SyncDown):
    name = "plain"
    resource = Resource("v1", "ConfigMap", "configmaps")

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        assert_type(ctx.config, Config)
        return skip("no")


class Mixed(Syncer[Options], SyncDown):
    name = "mixed"
    resource = Resource("v1", "ConfigMap", "configmaps")

    def sync_down(self, ctx: Context[Options], virtual: Obj) -> Decision:  # wrong
        return skip("its SyncDown was not told which options it has")


def helper(ctx: Context) -> str:
    return ctx.config.on_host_deletion


def all_of() -> Iterable[Syncer]:
    return [Copies(), Written(), Plain()]
"""


def test_config_is_typed_without_a_cast(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN)
    # In a process of its own: mypy changes the recursion limit of the one it runs in.
    command = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "--no-error-summary", str(plugin)]
    report = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600).stdout
    found = {int(line.split(":")[1]) for line in report.splitlines() if ": error:" in line}
    wrong = {number for number, line in enumerate(PLUGIN.splitlines(), 1) if line.endswith("# wrong")}
    assert found == wrong, report


#: JSON, of which nothing else can be said.
JSON = {"Obj", "Json"}


@pytest.mark.parametrize("name", sorted(set(syncer.api.__all__) - JSON))
def test_any_is_used_only_for_json(name: str) -> None:
    exported = getattr(syncer.api, name)
    if not (inspect.isclass(exported) or inspect.isfunction(exported)):
        assert Any not in _made_of(exported)
        return
    [node] = ast.parse(inspect.getsource(exported)).body
    assert not list(_any_in(node))


def _made_of(alias: object) -> set[object]:
    """Return a name for a type, and all that it has for arguments."""
    return {alias}.union(*(_made_of(each) for each in get_args(alias)))


def _any_in(node: ast.stmt) -> Iterator[str]:
    """Each public annotation with ``Any`` in it, of a class or a function and of what is in it."""
    if isinstance(node, ast.ClassDef):
        for each in node.body:
            if not _is_private(each):
                yield from _any_in(each)
        return
    annotations: list[ast.expr | None] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        taken = node.args
        every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
        annotations = [node.returns, *(each.annotation for each in every if each)]
    elif isinstance(node, ast.AnnAssign):
        annotations = [node.annotation]
    for annotation in filter(None, annotations):
        if any(isinstance(each, ast.Name) and each.id == "Any" for each in ast.walk(annotation)):
            yield f"line {node.lineno}: {ast.unparse(annotation)}"


def _is_private(node: ast.stmt) -> bool:
    name = getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", "")
    return str(name).startswith("_") and not str(name).startswith("__")
