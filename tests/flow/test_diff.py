"""``syncer diff`` shows a patch for each object that differs, and what another configuration would do."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from commands_scene import NO_PODS, Commands, commands
from harness import NAMESPACE, namespace

from syncer.api import Obj
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, secret

pytestmark = pytest.mark.real_time

BLUE = {"color": "blue"}
HEAD = "configmaps {home}/{name}-x-shop-x-shop on the host side, of shop/{name}"


def head(scene: Commands, verb: str, name: str) -> str:
    """Return the line above the patch of the copy of a ConfigMap."""
    return f"{verb} {HEAD.format(home=scene.home('shop'), name=name)}"


async def synced(scene: Commands, *objs: Obj) -> None:
    """Put objects into the shop, and let a daemon bring both sides in step once."""
    server = scene.virtual["shop"]
    server.put(namespace(NAMESPACE))
    for obj in objs:
        server.put(obj)
    ended = await scene.run("run", "--once")
    assert ended.status == 0, ended.output
    for each in scene.servers().values():
        each.requests.clear()


def copy_path(scene: Commands, name: str) -> str:
    return f"{scene.home('shop')}/{name}-x-shop-x-shop"


def edit(scene: Commands, name: str, patch: Obj, plural: str = "configmaps") -> None:
    """Change a copy on the host."""
    copy = scene.host.get(plural, copy_path(scene, name))
    assert copy
    scene.host.put(merged(copy, patch))


async def test_nothing_differs_and_exits_0_when_both_sides_are_in_step(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, configmap("x", BLUE), secret("s"))
        ended = await scene.run("diff")
        assert (ended.status, ended.output.splitlines()) == (0, ["nothing differs"])


async def test_each_object_that_differs_has_a_patch_and_the_exit_status_is_1(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, *(configmap(name, BLUE) for name in ("edited", "deleted", "left")))
        edit(scene, "edited", {"data": {"color": "red"}})
        scene.host.delete("configmaps", copy_path(scene, "deleted"))
        scene.virtual["shop"].delete("configmaps", f"{NAMESPACE}/left")
        ended = await scene.run("diff", "configmaps")
        assert ended.status == 1
        lines = ended.output.splitlines()
        patch = lines[lines.index(head(scene, "patch", "edited")) :]
        assert patch[1:3] == ["--- live", "+++ wanted"]
        assert "-  color: red" in patch
        assert "+  color: blue" in patch
        created = lines[lines.index(head(scene, "create", "deleted")) :]
        assert created[1:3] == ["--- none", "+++ wanted"]
        assert head(scene, "delete", "left") in lines
        assert lines[-1] == "1 to create, 1 to patch, 1 to delete"
        assert scene.refused() == [], "no right is needed that the daemon hasn't"
        assert scene.written() == []


async def test_diff_shows_the_writes_of_a_later_run(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, *(configmap(name, BLUE) for name in ("edited", "deleted")))
        edit(scene, "edited", {"data": {"color": "red"}, "metadata": {"labels": {"vsyncer.dev/namespace": "y"}}})
        scene.host.delete("configmaps", copy_path(scene, "deleted"))
        assert (await scene.run("diff")).status == 1
        await synced(scene)
        ended = await scene.run("diff")
        assert (ended.status, ended.output) == (0, "nothing differs\n")


async def test_one_object_is_chosen_by_the_key_of_either_side(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, configmap("a", BLUE), configmap("b", BLUE))
        for name in ("a", "b"):
            edit(scene, name, {"data": {"color": "red"}})
        for key in ("shop/a", copy_path(scene, "a")):
            found = (await scene.run("diff", "ConfigMap", key, "-o", "json")).json
            assert [each["of"] for each in found["changes"]] == ["shop/a"]


async def test_values_of_secrets_are_hidden_and_a_change_is_seen(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        made = secret("s", {"password": "secret"})
        made["metadata"]["annotations"] = {"example.org/last": "plain-secret"}
        await synced(scene, made)
        edit(scene, "s", {"data": {"password": "b3RoZXJz"}}, "secrets")
        for form in ("text", "json"):
            ended = await scene.run("diff", "secrets", "-o", form)
            assert ended.status == 1
            assert "(8 bytes), before" in ended.output
            assert "(8 bytes), after" in ended.output
            assert not any(value in ended.output for value in ("c2VjcmV0", "b3RoZXJz", "plain-secret"))


async def test_refused_object_is_named_and_differs(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene)
        scene.host.put({**configmap("x"), "metadata": {"name": "taken-x-shop-x-shop", "namespace": scene.home("shop")}})
        scene.virtual["shop"].put(configmap("taken", BLUE))
        ended = await scene.run("diff", "configmaps")
        assert ended.status == 1
        assert "not kept in step: configmaps shop/taken: " in ended.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gizmos",), "nothing that is synced is called 'gizmos'"),
        (("--cluster", "zoo"), "zoo"),
    ],
)
async def test_what_cannot_be_compared_exits_2_with_the_reason(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene)
        ended = await scene.run("diff", *arguments)
        assert (ended.status, ended.output) == (2, "")
        assert words in ended.error


async def test_server_that_cannot_be_listed_exits_2(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, configmap("x", BLUE))
        role = scene.host.get("roles.rbac.authorization.k8s.io", f"{scene.home('shop')}/vsyncer-shop")
        assert role
        for rule in role["rules"]:
            rule["resources"] = [each for each in rule["resources"] if each != "configmaps"] or ["none"]
        scene.host.put(role)
        ended = await scene.run("diff", "configmaps")
        assert ended.status == 2
        assert "not compared: configmaps" in ended.error


async def test_diff_of_one_cluster_shows_nothing_of_another(tmp_path: Path) -> None:
    async with commands(tmp_path, "shop", "bank") as scene:
        for name, server in scene.virtual.items():
            server.put(namespace(NAMESPACE))
            server.put(configmap(f"of-{name}", BLUE))
        assert (await scene.run("diff")).status == 2, "which of the two?"
        for server in scene.servers().values():
            server.requests.clear()
        ended = await scene.run("diff", "--cluster", "bank")
        assert ended.status == 1
        assert "of-bank" in ended.output
        assert "of-shop" not in ended.output
        assert list(scene.virtual["shop"].requests) == []


# -- another configuration -------------------------------------------------------------------------


def narrowed(**labels: str) -> dict[str, Any]:
    """Return the options with a selector for ConfigMaps."""
    maps = {"all": True, "selector": {"matchLabels": labels}}
    return {"sync": {"toHost": {**NO_PODS["toHost"], "configMaps": maps}}}


def labelled(name: str, **labels: str) -> Obj:
    made = configmap(name, BLUE)
    made["metadata"]["labels"] = labels
    return made


async def test_new_configuration_shows_its_writes_and_deletions_beyond_the_old(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, labelled("kept", tier="web"), labelled("gone"), labelled("drifted", tier="web"))
        edit(scene, "drifted", {"data": {"color": "red"}})
        scene.configure("new.yaml", **narrowed(tier="web"))
        ended = await scene.run("diff", "--against", str(tmp_path / "syncer.yaml"), file="new.yaml")
        assert ended.status == 1, ended.error
        heads = [line for line in ended.output.splitlines() if " on the host side" in line]
        assert heads[0].startswith(head(scene, "delete", "gone"))
        assert len(heads) == 1, "drift is no effect of the new configuration"
        assert scene.written() == []


async def test_reasons_with_codes_are_plain_texts_in_yaml(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, labelled("gone"))
        scene.configure("new.yaml", **narrowed(tier="web"))
        ended = await scene.run("diff", "configmaps", "-o", "yaml", file="new.yaml")
        assert ended.status == 1, ended.error
        [change] = yaml.safe_load(ended.output)["changes"]
        assert (change["verb"], change["of"]) == ("delete", "shop/gone")
        assert change["reason"]


async def test_kind_that_is_switched_off_leaves_its_copies_and_says_how_many(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, configmap("a"), configmap("b"))
        off = {"toHost": {**NO_PODS["toHost"], "configMaps": {"enabled": False}}}
        scene.configure("new.yaml", sync=off)
        found = await scene.run("diff", "--against", str(tmp_path / "syncer.yaml"), "-o", "json", file="new.yaml")
        assert found.status == 1
        assert found.json["noLongerSynced"]["configmaps"] >= 2
        assert found.json["changes"] == []


async def test_configuration_of_the_environment_is_the_one_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, labelled("gone"))
        monkeypatch.setenv("SYNCER_CONFIG", str(tmp_path / "syncer.yaml"))
        same = await scene.run("diff")
        assert (same.status, same.output) == (0, "nothing differs\n")
        scene.configure("new.yaml", **narrowed(tier="web"))
        ended = await scene.run("diff", file="new.yaml")
        assert head(scene, "delete", "gone") in ended.output
        assert ended.output.splitlines()[-1].endswith(f"beyond {tmp_path}/syncer.yaml")


async def test_missing_configuration_beside_that_of_the_environment_exits_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with commands(tmp_path) as scene:
        monkeypatch.setenv("SYNCER_CONFIG", str(tmp_path / "syncer.yaml"))
        ended = await scene.run("diff", file="absent.yaml")
        assert ended.status == 2
        assert "absent.yaml" in ended.error


async def test_same_configuration_twice_has_no_effect_whatever_has_drifted(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, configmap("x", BLUE))
        edit(scene, "x", {"data": {"color": "red"}})
        scene.configure("new.yaml")
        ended = await scene.run("diff", "--against", str(tmp_path / "syncer.yaml"), file="new.yaml")
        assert ended.status == 0, ended.output


# -- a dry run -------------------------------------------------------------------------------------


async def test_dry_run_shows_the_content_of_each_write_and_hides_secrets(tmp_path: Path) -> None:
    async with commands(tmp_path) as scene:
        await synced(scene, configmap("x", BLUE))
        edit(scene, "x", {"data": {"color": "red"}})
        scene.virtual["shop"].put(secret("s", {"password": "secret"}))
        ended = await scene.run("run", "--once", "--dry-run")
        lines = ended.output.splitlines()
        first = lines.index(f"would patch configmaps {copy_path(scene, 'x')} on the host side")
        assert "    -  color: red" in lines[first:]
        assert "    +  color: blue" in lines[first:]
        assert "    +  password: (8 bytes)" in lines
        assert "c2VjcmV0" not in ended.output
        assert not any("resourceVersion" in line or "managedFields" in line for line in lines)
        assert scene.written() == []
