"""The pages beside the Go originals name what there is, and their programs compile."""

import ast
import contextlib
import importlib
import re
import time
from pathlib import Path
from typing import Any

import pytest
from programs_scene import example

import syncer.multicluster as package
from kube_envtest import BackgroundApiServer
from syncer.multicluster import PODS, Cluster, Request
from syncer.testing.objects import crd, crd_version, node, secret

FOLDER = Path(__file__).parents[3] / "docs" / "multicluster"
PAGES = sorted(FOLDER.glob("for-users-of-*.md"))
README = FOLDER / "README.md"


#: Seconds after which a program that prints nothing is given up.
PATIENCE = 60.0


def program_of(page: str, file: Path) -> Path:
    """Write the program of a page; return its path."""
    [code] = re.findall(r"```python\n(.*?)```", (FOLDER / page).read_text(), re.DOTALL)
    file.write_text(code)
    return file


def printed(program: Path, text: str) -> bool:
    """Run a program until it prints a text."""
    with example(str(program), folder=program.parent) as output:
        deadline = time.monotonic() + PATIENCE
        while text not in output():
            assert time.monotonic() < deadline, output()
            time.sleep(0.05)
    return True


def test_program_for_users_of_clustercache_lists_nodes_of_each_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = crd("clusters.cluster.x-k8s.io", [crd_version("v1beta2", storage=True)])
    with BackgroundApiServer() as home, BackgroundApiServer(tls=True) as eu:
        home.put(clusters)
        ready = {"initialization": {"infrastructureProvisioned": True}}
        metadata = {"namespace": "fleet", "name": "eu"}
        kind = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}
        home.put({**kind, "metadata": metadata, "spec": {}, "status": ready})
        login = eu.kubeconfig(tmp_path / "eu").read_text()
        labels = {"labels": {"cluster.x-k8s.io/cluster-name": "eu"}}
        home.put(secret("eu-kubeconfig", {"value": login}, namespace="fleet", metadata=labels))
        for name in ("a", "b"):
            eu.put(node(name))
        monkeypatch.setenv("KUBECONFIG", str(home.kubeconfig(tmp_path / "home")))
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
        assert printed(program_of("for-users-of-clustercache.md", tmp_path / "nodes.py"), "eu 2")


def spans_of_here(page: Path) -> list[str]:
    """Return what is code in the second column of the page's table."""
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ") and not line.startswith("| there")]
    return [span for row in rows for span in re.findall(r"`([^`]+)`", row.split(" | ", 1)[1])]


def named_in(span: str) -> list[str] | None:
    """Return the parts of a name of the package, such as of ``Cluster.get(…)``; None for other code."""
    found = re.match(r"[A-Za-z_][\w.]*", span)
    parts = found[0].split(".") if found else []
    return parts if parts and (parts[0][0].isupper() or parts[0] in package.__all__) else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_a_page_exist(page: Path) -> None:
    names = [name for span in spans_of_here(page) if (name := named_in(span)) is not None and name != ["Failed"]]
    assert len(names) > 15
    missing = []
    for first, *rest in names:
        found: object = getattr(package, first) if first in package.__all__ else None
        for part in rest:
            found = getattr(found, part, None)
        if found is None:
            missing.append(".".join([first, *rest]))
    assert missing == []


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.stem)
def test_programs_of_a_page_compile_and_their_imports_exist(page: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert programs
    for program in programs:
        tree = compile(program, str(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for part in ast.walk(tree):
            if isinstance(part, ast.ImportFrom) and part.module:
                module = importlib.import_module(part.module)
                assert [each.name for each in part.names if not hasattr(module, each.name)] == []


@pytest.mark.parametrize("value", ["yes", "no"])
def test_readme_prints_a_test_that_passes_and_can_fail(value: str) -> None:
    async def label(cluster: Cluster, request: Request) -> None:
        patch = {"metadata": {"labels": {"seen": value}}}
        await cluster.patch(PODS, request.key, patch)

    [code] = re.findall(r"## Testing\n.*?```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {"label": label}
    exec(compile(code, str(README), "exec"), names)
    fails = contextlib.nullcontext() if value == "yes" else pytest.raises(AssertionError)
    with fails:
        names["test_pod_is_labelled"]()


def test_readme_links_to_each_page() -> None:
    assert len(PAGES) == 3
    text = README.read_text()
    assert [page.name for page in PAGES if f"({page.name})" not in text] == []
