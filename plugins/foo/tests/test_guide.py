"""plugins/README.md and the README of the template are true.

Their code runs, and their commands print what they show.
"""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from vsyncer_foo.foos import FOOS

import syncer.api
from syncer.clusters.client import SideClient
from syncer.testing import ApiServer, World

PLUGINS = Path(__file__).parents[2]
#: All but the chapter whose files are a package of their own; vsyncer's tests/flow/test_new_kind.py
#: is about that.
GUIDE = re.sub(
    r"^## Add a kind\n.*?(?=^## )",
    "",
    (PLUGINS / "README.md").read_text(),
    flags=re.DOTALL | re.MULTILINE,
)
TEMPLATE = (PLUGINS / "template" / "README.md").read_text()
BIN = Path(sys.executable).parent


def blocks(text: str, language: str) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found, f"there is no block of {language} any more"
    return found


def sessions(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with its output."""
    found: list[tuple[str, str]] = re.findall(r"^\$ (.*)\n((?:(?!\$ ).+\n)*)", text, re.MULTILINE)
    return found


def run(command: str, folder: Path) -> str:
    environment = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_every_kind_of_block_in_the_guide_is_tested() -> None:
    assert set(re.findall(r"^```(\w+)", GUIDE, re.MULTILINE)) == {
        "yaml",
        "console",
        "python",
        "ini",
    }


def test_the_class_in_the_guide_is_the_one_of_the_package() -> None:
    assert blocks(GUIDE, "python")[0] in (PLUGINS / "foo/vsyncer_foo/foos.py").read_text()


def test_the_entry_point_in_the_guide_is_the_one_of_the_package() -> None:
    assert blocks(GUIDE, "ini")[0] in (PLUGINS / "foo/setup.cfg").read_text()


def test_the_short_syncer_of_the_guide_passes_its_own_test() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    exec("\n".join(blocks(GUIDE, "python")[1:]), names)
    names["test_a_foo_gets_five_replicas_at_most"]()


def test_the_official_client_of_the_guide_makes_the_limit_once() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    exec("\n".join(blocks(GUIDE, "python")[1:]), names)
    host = ApiServer()
    host.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foos"}})

    async def twice() -> None:
        cluster = SideClient("host", syncer.api.Side.HOST, host.transport())
        live = syncer.api.Live("vc", "foos", cluster, cluster, settings=World().settings)
        for _ in range(2):
            await names["LimitedFooSyncer"]().init(live)

    asyncio.run(twice())
    [made] = host.objects("limitranges")
    assert made["spec"]["limits"][0]["default"] == {"cpu": "1"}
    assert [logged.verb for logged in host.requests] == ["list", "create", "list"]


def test_the_label_in_the_guide_is_the_one_of_the_definition() -> None:
    definition = yaml.safe_load((PLUGINS / "foo/crd.yaml").read_text())
    shown = yaml.safe_load(blocks(GUIDE, "yaml")[0])["metadata"]
    assert shown == {key: definition["metadata"][key] for key in shown}
    assert definition["metadata"]["name"] == str(FOOS)


def test_the_package_is_found_as_the_guide_shows(tmp_path: Path) -> None:
    """The commands that need clusters are those of test_foo_daemon."""
    shown = [
        each
        for block in blocks(GUIDE, "console")
        for each in sessions(block)
        if "syncer run" not in each[0]
    ]
    assert [command for command, _ in shown] == ["syncer plugins check foos"]
    for command, expected in shown:
        assert run(command, tmp_path) == expected


def test_the_names_in_the_tables_are_those_of_the_api() -> None:
    """A name that is called or has a capital letter, in the last column of a table."""
    cells = [
        line.split("|")[-2]
        for line in GUIDE.partition("## Coming from")[2].splitlines()
        if line.startswith("|")
    ]
    shown = {name for cell in cells for name in re.findall(r"`([A-Z]\w+|\w+(?=\())", cell)}
    known = {
        *syncer.api.__all__,
        *dir(syncer.api.Syncer),
        *dir(syncer.api.Context),
        "World",
        "laws_for",
    }
    methods = {method for name in syncer.api.__all__ for method in dir(getattr(syncer.api, name))}
    assert shown - known - methods == set()


def test_the_template_is_renamed_by_the_commands_of_its_readme(tmp_path: Path) -> None:
    shutil.copytree(
        PLUGINS / "template",
        tmp_path / "plugins/template",
        ignore=shutil.ignore_patterns(".*", "__pycache__"),
    )
    commands = [command for command, _ in sessions(blocks(TEMPLATE, "console")[0])]
    run(" && ".join(commands), tmp_path)
    made = tmp_path / "gadgets"
    left = [
        file
        for file in made.rglob("*")
        if file.name != "README.md" and re.search("(?i)widget|template", file.name)
    ]
    left += [
        file
        for file in made.rglob("*.*")
        if file.suffix in (".py", ".cfg", ".yaml") and "idget" in file.read_text()
    ]
    assert left == []
    assert " passed" in run("PYTHONPATH=. pytest -q -p no:cacheprovider", made)
