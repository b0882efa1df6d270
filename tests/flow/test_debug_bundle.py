"""A debug bundle of a running daemon, and of none, has what it is for, and no secret."""

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands_scene import NO_PODS, Commands, commands
from harness import namespace

from syncer.testing.merge import merged
from syncer.testing.objects import configmap, secret

pytestmark = pytest.mark.real_time

PLANTED = "swordfish4711"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def bundled(scene: Commands, *arguments: str) -> dict[str, str]:
    """Return the texts of a new bundle, by name."""
    path = scene.folder / "made.tar.gz"
    path.unlink(missing_ok=True)
    ended = await scene.run("debug", "bundle", "-o", str(path), *arguments)
    assert ended.status == 0, ended.error
    found: dict[str, str] = {}
    with tarfile.open(path) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert file
            found[Path(member.name).name] = file.read().decode()
    return found


def changed(path: Path, *, cluster: Mapping[str, Any] | None = None, user: Mapping[str, Any] | None = None) -> None:
    """Add to the cluster of a kubeconfig, or replace its user; one that is not used has a password."""
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"].update(cluster or {})
    if user is not None:
        config["users"][0]["user"] = user
    other = {"username": "other", "password": PLANTED, "client-key-data": PLANTED}
    config["users"].append({"name": "other", "user": other})
    path.write_text(yaml.safe_dump(config))


async def test_bundle_of_a_daemon_has_its_state(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        server = scene.virtual["shop"]
        server.put(namespace("shop"))
        server.put(configmap("taken"))
        scene.host.put(configmap("taken-x-shop-x-shop", namespace=scene.home("shop")))
        async with scene.daemon():
            await scene.until("list", says=["shop/taken", "NameCollision"])
            found = await bundled(scene)
            assert "MISSING" not in found["index.txt"]
            assert '"served"' in found["clusters.json"]
            assert '"syncer": "configmaps"' in found["status.json"]
            assert "NameCollision" in found["list.json"]
            assert "is not ours" in found["list.json"], "a refusal in our own words is shown"
            assert '"rights on the host side"' in found["doctor.json"]
            assert "syncer_build_info{" in found["metrics.txt"]
            assert 'syncer_parked{cluster="shop",' in found["metrics.txt"]
            assert "[+]virtual/shop ok" in found["readyz.txt"]
            assert "[+]loop ok" in found["livez.txt"]
            assert "daemon-token" not in str(found)


async def test_bundle_without_a_daemon_lists_both_sides_and_writes_nothing_to_them(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        server = scene.virtual["shop"]
        server.put(namespace("shop"))
        server.put(configmap("waiting"))
        found = await bundled(scene)
        assert '"shop/waiting"' in found["list.json"]
        assert '"rights on the host side"' in found["doctor.json"]
        assert found["index.txt"].count("MISSING: no daemon answers at the control socket") == 5
        assert scene.written() == []
        assert scene.refused() == []


@pytest.mark.parametrize("has_daemon", [True, False], ids=["daemon", "no daemon"])
async def test_secret_that_is_planted_everywhere_is_nowhere_in_a_bundle(tmp_path: Path, has_daemon: bool) -> None:
    patches = {"down": [{"op": "add", "path": "/data/planted", "value": PLANTED}]}
    sync = merged(dict(NO_PODS), {"toHost": {"configMaps": {"patches": patches}}})
    async with commands(tmp_path, "shop", "proxied", "programmed", sync=sync) as scene:
        server = scene.virtual["shop"]
        server.put(namespace("shop"))
        applied: dict[str, Any] = {"metadata": {"annotations": {APPLIED: f'{{"data": "{PLANTED}"}}'}}}
        server.put(secret("creds", {"password": PLANTED}, **applied))
        server.put(secret("taken", {"password": PLANTED}, **applied))
        server.put(configmap("settings", {"password": PLANTED}, **applied))
        scene.host.put(secret("taken-x-shop-x-shop", {"password": PLANTED}, namespace=scene.home("shop")))
        proxy = {"proxy-url": f"http://user:{PLANTED}@127.0.0.1:9"}
        changed(tmp_path / "proxied.kubeconfig", cluster=proxy)
        program = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", f"echo {PLANTED} >&2; exit 1"],
            "env": [{"name": "PASSWORD", "value": PLANTED}],
            "interactiveMode": "Never",
        }
        changed(tmp_path / "programmed.kubeconfig", user={"exec": program})
        listed = yaml.safe_load((tmp_path / "syncer.yaml").read_text())["virtualClusters"]
        listed[1]["server"] = f"https://user:{PLANTED}@127.0.0.1:9"
        scene.configure("syncer.yaml", sync=sync, virtualClusters=listed)
        if has_daemon:
            async with scene.daemon():
                await scene.until("list", "--cluster", "shop", says=["shop/taken", "NameCollision"])
                found = [await bundled(scene), await bundled(scene, "--cluster", "shop")]
        else:
            found = [await bundled(scene), await bundled(scene, "--cluster", "shop")]
        for each in found:
            assert "shop" in each["config.json"]
            assert "shop" in each["doctor.json"]
        assert "it printed: (hidden)" in found[0]["doctor.json"], "the program for credentials has failed"
        assert "shop/taken" in found[1]["list.json"]
        assert PLANTED not in str(found)


async def test_bundle_about_a_virtual_cluster_names_no_other(tmp_path: Path) -> None:
    async with commands(tmp_path, "bank", "shop") as scene:
        for server in scene.virtual.values():
            server.put(namespace("web"))
        scene.virtual["bank"].put(configmap("ledger", namespace="web"))
        async with scene.daemon():
            await scene.until("list", "--state", "all", says=["web/ledger"])
            whole = await bundled(scene)
            assert "bank" in whole["metrics.txt"]
            found = await bundled(scene, "--cluster", "shop")
            assert {name for name, text in found.items() if "bank" in text} == set()
            assert "[+]virtual/shop ok" in found["readyz.txt"]
        found = await bundled(scene, "--cluster", "shop")
        assert {name for name, text in found.items() if "bank" in text} == set()


async def test_names_of_all_objects_are_listed_with_a_daemon_and_without_one(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        server = scene.virtual["shop"]
        server.put(namespace("web"))
        server.put(configmap("settings", namespace="web"))
        home = scene.home("shop")
        command = ("names", "list", "configmaps", "-n", "web")
        alone = await scene.run(*command, "-o", "json")
        async with scene.daemon():
            await scene.until("list", "configmaps", "--state", "in-step", says=["web/settings"])
            asked = await scene.run(*command, "-o", "json")
            names = await scene.run(*command, "-o", "name")
        assert "So this command decides once by itself." in alone.error
        [row] = [each for each in asked.json if each["virtual"] == "web/settings"]
        assert row == {
            "cluster": "shop",
            "syncer": "configmaps",
            "virtual": "web/settings",
            "host": f"{home}/settings-x-web-x-shop",
            "kind": "ConfigMap",
            "onVirtual": True,
            "onHost": True,
        }
        assert {**row, "onHost": False} in alone.json
        assert f"{home}/settings-x-web-x-shop" in names.output.splitlines()
