"""The output of commands that pages of docs/operate show is what they print, in a scene like that of the page."""

import asyncio
import contextlib
import json
import re
import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from broken_scene import commands_of_page
from click.testing import CliRunner
from commands_scene import LOOKS, NO_PODS, Commands, Ended
from harness import namespace

from syncer.api import Obj
from syncer.cli.app import app
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, service, serviceaccount

pytestmark = pytest.mark.real_time

FOLDER = Path(__file__).parents[2] / "docs" / "operate"
#: What is another in each run: ages, times, addresses, and the widths of columns.
VARYING = (
    (r"\b\d+(?:s|m|h|d)\b", "AGE"),
    (r"\d{4}-\d\d-\d\d(?!T)", "DATE"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"\b\d+(?:\.\d+){3}:\d+", "ADDRESS"),
    (r"\+inprocess\b", ""),
    (r" +", " "),
)


class Shown(NamedTuple):
    """A command on a page, and the lines of its output there."""

    page: str
    command: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {self.command}"


def shown() -> Iterator[Shown]:
    """Yield the commands of ours that the pages show with output."""
    for page in sorted(FOLDER.glob("*.md")):
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                typed, *lines = part.rstrip("\n").split("\n")
                command = re.sub(r"\s+#.*", "", typed)
                if command.startswith("syncer ") and lines:
                    yield Shown(page.name, command, tuple(lines))


SHOWN = list(shown())
PKI = "syncer pki --namespace shop --service shop-api"


def alike(line: str) -> str:
    """Return a line without what varies."""
    for pattern, word in VARYING:
        line = re.sub(pattern, word, line)
    return line.strip()


def has_all(lines: tuple[str, ...], output: str) -> bool:
    """Return True if the output is these lines; one with an ellipsis alone stands for any number of them."""
    pattern = ""
    for line in lines:
        if line == "…":
            pattern += r"(?:.*\n)*?"
            continue
        parts = [re.escape(part) for part in alike(line).split("…")]
        pattern += ".*".join(parts) + r"\n"
    found = "".join(f"{alike(line)}\n" for line in output.splitlines())
    return re.fullmatch(pattern, found) is not None


async def run(scene: Commands, command: str) -> Ended:
    """Run a command that is typed as on a page."""
    words = shlex.split(command)[1:]
    file = "syncer.yaml"
    if "--config" in words:
        place = words.index("--config")
        file = words[place + 1]
        del words[place : place + 2]
    words = [f"{scene.folder}/{word}" if word.endswith(".yaml") else word for word in words]
    return await scene.run(*words, file=file)


async def typed(scene: Commands, command: str) -> str:
    """Return the output of a command that is typed as on a page."""
    ended = await run(scene, command)
    return ended.output.replace(f"{scene.folder}/", "")


async def check(scene: Commands, *found: Shown) -> None:
    """Compare commands with what the pages show, for which a daemon may need a moment."""
    for each in found:
        output = await typed(scene, each.command)
        for _ in range(LOOKS):
            if has_all(each.lines, output):
                break
            await asyncio.sleep(0.1)
            output = await typed(scene, each.command)
        if not has_all(each.lines, output):
            pytest.fail(f"docs/operate/{each} prints another output:\n{output}")


def of(page: str, *commands: str) -> list[Shown]:
    """Return what a page shows of these commands."""
    found = [each for each in SHOWN if each.page == page and each.command in commands]
    assert [each.command for each in found] == list(commands)
    return found


class Documented(Commands):
    """The scene of the pages, whose host namespaces are ``vc-shop`` and the like."""

    def home(self, cluster: str) -> str:
        return f"vc-{cluster}"

    async def kubectl_creates(self, obj: Obj) -> None:
        """Create a ConfigMap in the shop as kubectl does."""
        client = self.virtual["shop"].client("admin", agent="kubectl/v1.36")
        path = f"/api/v1/namespaces/{obj['metadata']['namespace']}/configmaps?fieldManager=kubectl-create"
        answer = await client.request("POST", path, body=json.dumps(obj).encode(), content_type="application/json")
        assert answer.status == 201


@contextlib.asynccontextmanager
async def documented(folder: Path, *clusters: str, **options: Any) -> AsyncIterator[Documented]:
    """Yield the scene of a page, with these virtual clusters or ``shop`` alone."""
    scene = Documented(folder, *(clusters or ("shop",)))
    try:
        await scene.start(**options)
        scene.grant()
        yield scene
    finally:
        await scene.stop()


def test_each_output_on_the_pages_is_compared() -> None:
    compared = {
        ("certificates.md", PKI),
        ("doctor.md", "syncer diff --config new.yaml --against syncer.yaml"),
        ("doctor.md", "syncer diff"),
        ("doctor.md", "syncer doctor"),
        ("fleet.md", "syncer clusters"),
        ("objects.md", "syncer explain configmaps shop/settings"),
        ("objects.md", "syncer list --state pending,parked,paused"),
        ("state-and-drift.md", "syncer parked"),
        ("state-and-drift.md", "syncer status"),
    }
    assert {(each.page, each.command) for each in SHOWN} == compared


async def test_output_of_a_daemon_about_its_objects(tmp_path: Path) -> None:
    async with documented(tmp_path) as scene:
        server = scene.virtual["shop"]
        paused = {"annotations": {"vsyncer.dev/paused": "true"}}
        server.put(namespace("bank"))
        server.put(merged(namespace("shop"), {"metadata": paused}))
        await scene.kubectl_creates(configmap("settings"))
        server.put(configmap("taken", namespace="bank"))
        scene.host.put(configmap("taken-x-bank-x-shop", namespace=scene.home("shop")))
        async with scene.daemon():
            await scene.until("parked", says=["bank/taken"])
            await scene.until("list", says=["shop/settings"])
            await check(
                scene,
                *of(
                    "objects.md",
                    "syncer explain configmaps shop/settings",
                    "syncer list --state pending,parked,paused",
                ),
                *of("state-and-drift.md", "syncer status", "syncer parked"),
            )


async def test_output_about_virtual_clusters(tmp_path: Path) -> None:
    async with documented(tmp_path, "bank", "shop") as scene:
        kubeconfig = tmp_path / "shop.kubeconfig"
        kubeconfig.write_text(kubeconfig.read_text().replace("daemon-token", "another-token"))
        async with scene.daemon():
            await scene.until("clusters", says=["served", "failing"])
            await check(scene, *of("fleet.md", "syncer clusters"))


async def test_output_of_a_diagnosis(tmp_path: Path) -> None:
    async with documented(tmp_path) as scene:
        home = scene.home("shop")
        scene.take_away("secrets")
        binder = serviceaccount("persistent-volume-binder", namespace="kube-system")
        scene.virtual["shop"].put(binder)
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "tenant", "namespace": home},
            "spec": {"hard": {"pods": "10"}},
            "status": {"hard": {"pods": "10"}, "used": {"pods": "10"}},
        }
        scene.host.put(quota)
        await check(scene, *of("doctor.md", "syncer doctor"))


async def test_output_of_a_comparison(tmp_path: Path) -> None:
    async with documented(tmp_path) as scene:
        server = scene.virtual["shop"]
        server.put(namespace("shop"))
        server.put(configmap("web", {"color": "blue"}))
        server.put(merged(configmap("old"), {"metadata": {"labels": {"tier": "old"}}}))
        ended = await scene.run("run", "--once")
        assert ended.status == 0, ended.output
        narrowed = {"configMaps": {"selector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}}}
        scene.configure("new.yaml", sync=merged(dict(NO_PODS), {"toHost": narrowed}))
        await check(scene, *of("doctor.md", "syncer diff --config new.yaml --against syncer.yaml"))
        copy = scene.host.get("configmaps", f"{scene.home('shop')}/web-x-shop-x-shop")
        assert copy
        scene.host.put(merged(copy, {"data": {"color": "red"}}))
        await check(scene, *of("doctor.md", "syncer diff"))


async def test_command_of_each_symptom_runs(tmp_path: Path) -> None:
    async with documented(tmp_path) as scene:
        scene.virtual["shop"].put(namespace("shop"))
        scene.virtual["shop"].put(configmap("web"))
        scene.configure("old.yaml")
        scene.configure("new.yaml", sync={"toHost": {"pods": {"enabled": False}}})
        async with scene.daemon():
            await scene.until("explain", "configmaps", "shop/web", says=["in step"])
            for command in commands_of_page().values():
                words = command.replace("KIND", "configmaps").replace("NAMESPACE/NAME", "shop/web")
                ended = await run(scene, words)
                assert ended.status in (0, 1), f"{words}: {ended.error}"
                assert ended.output or "there is no such object" in ended.error, f"{words}: {ended.error}"


async def test_output_about_certificates(tmp_path: Path) -> None:
    async with documented(tmp_path) as scene:
        api = service("shop-api", spec={"type": "LoadBalancer"})
        scene.host.put(namespace("shop"))
        scene.host.put(api)
        kubeconfig = str(scene.host.kubeconfig(tmp_path / "admin.kubeconfig", "admin"))
        words = [*shlex.split(PKI)[1:], "--host-kubeconfig", kubeconfig]
        made = await asyncio.to_thread(CliRunner().invoke, app, words)
        assert made.exit_code == 0, made.output
        scene.host.put({**api, "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}})
        renewed = await asyncio.to_thread(CliRunner().invoke, app, words)
        [found] = of("certificates.md", PKI)
        assert has_all(found.lines, renewed.stdout), renewed.output
