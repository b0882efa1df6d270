"""``syncer uninstall`` prints a plan, and carries it out only with ``--yes``."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cli_scene
import pytest
from cli_scene import asking
from click.testing import Result

from kube_envtest import Rule
from syncer.api import Obj, Side
from syncer.cli import daemon
from syncer.clusters.client import SideClient
from syncer.config import Loaded, SyncerConfig, VirtualCluster
from syncer.daemon.start import connecting
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, host_copy, namespace, secret

NAME = "x-x-shop-x-vc"


class World:
    """Two API servers, and perhaps a daemon on this machine."""

    def __init__(self) -> None:
        self.servers = {Side.VIRTUAL: ApiServer(seed="virtual"), Side.HOST: ApiServer(seed="host")}
        self.daemon = False
        self.host.put(namespace("vc-ns"))
        for virtual in (configmap("x"), configmap("y"), secret("x")):
            self.host.put(host_copy(virtual))

    @property
    def host(self) -> ApiServer:
        return self.servers[Side.HOST]

    def copy(self, plural: str = "configmaps") -> Obj | None:
        return self.host.get(plural, f"vc-ns/{NAME}")

    @asynccontextmanager
    async def connected(
        self, config: SyncerConfig, cluster: VirtualCluster | None
    ) -> AsyncIterator[Mapping[Side, SideClient]]:
        sides = [Side.HOST] if cluster is None else list(Side)
        yield {side: SideClient(side, side, self.servers[side].transport()) for side in sides}

    def ask(self, found: Loaded, method: str, path: str, given: Any = None, *, one: bool = False) -> Any:
        if not self.daemon:
            raise daemon.NoDaemon("no daemon answers")
        return []


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    found = asking(World(), monkeypatch, tmp_path, cluster="vc")
    monkeypatch.setattr(connecting, "connected", found.connected)
    return found


def call(*arguments: str) -> Result:
    return cli_scene.call("uninstall", *arguments)


def test_plan_counts_by_kind_and_writes_nothing(world: World) -> None:
    result = call()
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["SIDE", "KIND", "OBJECTS", "WHAT"],
        ["host", "configmaps", "2", "delete"],
        ["host", "secrets", "1", "delete"],
        ["nothing", "was", "written;", "--yes", "carries", "it", "out"],
    ]
    assert world.copy()


def test_plan_lists_each_object_on_demand(world: World) -> None:
    lines = [line.split() for line in call("-o", "wide", "--keep").stdout.splitlines()]
    assert ["host", "configmaps", f"vc-ns/{NAME}", "strip", "the", "marks"] in lines
    found = json.loads(call("-o", "json").stdout)
    assert {"side": "host", "kind": "secrets", "object": f"vc-ns/{NAME}", "what": "delete"} in found
    assert len(found) == 3


def test_uninstall_with_yes_is_carried_out(world: World) -> None:
    result = call("--yes")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "done")
    assert world.copy() is None
    assert "there is nothing to remove" in call().stdout


def test_uninstall_with_keep_leaves_the_objects(world: World) -> None:
    assert call("--yes", "--keep").exit_code == 0
    for plural in ("configmaps", "secrets"):
        copy = world.copy(plural)
        assert copy
        assert "vsyncer.dev" not in json.dumps({**copy["metadata"], "managedFields": None})


@pytest.mark.parametrize("side", ["host", "host-first"])
def test_uninstall_of_the_host_side_does_not_need_the_virtual_cluster(world: World, side: str) -> None:
    world.servers[Side.VIRTUAL].faults.add(Rule(status=500))
    assert call("--yes").exit_code == 1
    result = call("--yes", "--side", side)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "done")
    assert ("the virtual side is not finished" in result.stdout) == (side == "host-first")
    assert world.copy() is None


def test_uninstall_refuses_beside_a_daemon_on_this_machine(world: World) -> None:
    world.daemon = True
    result = call("--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Stop it first" in result.stderr
    assert world.copy()
    assert call().exit_code == 0, "a plan harms nobody"


def test_uninstall_that_is_not_finished_says_so_and_ends_with_1(world: World) -> None:
    world.host.faults.add(Rule(verb="list", resource="secrets", status=500))
    result = call("--yes")
    assert result.exit_code == 1
    assert "list secrets" in result.stderr
    assert "run it again" in result.stdout
    assert world.copy()


def test_content_of_an_object_is_never_shown(world: World) -> None:
    world.host.put(merged(world.copy("secrets") or {}, {"data": {"password": "c3dvcmRmaXNo"}}))
    for arguments in ((), ("-o", "wide"), ("-o", "json"), ("--yes",)):
        assert "c3dvcmRmaXNo" not in call(*arguments).output
