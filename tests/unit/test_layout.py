"""The rules of the source tree: module docstrings, annotations, no grab-bags."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("syncer", "plugins", "hack", "examples") for path in (ROOT / folder).rglob("*.py"))
GRAB_BAGS = {"utils", "util", "helpers", "common", "manager", "misc", "tools"}


class Function(NamedTuple):
    """A function of ours: where it is, and what lacks an annotation."""

    location: str
    bare: list[str]


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            optional = [star for star in (given.vararg, given.kwarg) if star]
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *optional]
            bare = [arg.arg for arg in every if not arg.annotation and arg.arg not in ("self", "cls")]
            if not node.returns and node.name != "__init__":
                bare.append("return")
            location = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            yield Function(location, bare)


FUNCTIONS = [function for path in FILES for function in functions(path)]


def test_functions_are_all_annotated() -> None:
    assert [f"{location}: {bare}" for location, bare in FUNCTIONS if bare] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_begins_with_a_sentence_and_has_a_specific_name(path: Path) -> None:
    sentence = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
    assert sentence.endswith((".", ":")), "the first thing in a file is a sentence that says what it is for"
    assert path.stem not in GRAB_BAGS, "name a module for what it does"


def test_charts_have_no_links_which_get_lost_in_archives() -> None:
    found = [path for path in (ROOT / "charts").rglob("*") if path.is_symlink() or path.is_file()]
    files = [path for path in found if path.suffix != ".tgz"]  # `helm dependency build` makes these
    assert len(files) > 50
    assert [path for path in files if path.is_symlink() or path.read_text().startswith("../")] == []


def imported(module: str, path: Path, modules: set[str]) -> set[str]:
    """Return the modules of ``modules`` that a file imports anywhere, also for types or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports of syncer are absolute"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in modules else str(node.module))
    return (found & modules) - {module}


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the modules that lead back to themselves, by circle."""
    left = {module: set(others) for module, others in imports.items()}
    while ends := [module for module, others in left.items() if not others & left.keys()]:
        for module in ends:
            del left[module]
    reached = {module: reachable(module, left) for module in left}
    found = []
    for module, others in reached.items():
        circle = sorted(other for other in others if module in reached[other])
        if circle and circle not in found:
            found.append(circle)
    return found


def reachable(start: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = (imports[ahead.pop()] & imports.keys()) - found
        found |= new
        ahead.extend(new)
    return found


def test_circles_of_imports_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a"}}
    assert circles(imports) == [["b", "c"]]


def test_no_module_of_syncer_is_in_a_circle_of_imports() -> None:
    paths = {}
    for path in (ROOT / "syncer").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        paths[name.removesuffix(".__init__")] = path
    imports = {module: imported(module, path, set(paths)) for module, path in paths.items()}
    assert circles(imports) == []


def type_names(path: Path) -> Iterator[str]:
    """Yield the classes of a module, and its aliases of types, which are written as classes are."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and not name.isupper():
                yield name


def test_name_of_a_type_means_one_type() -> None:
    modules: dict[str, list[str]] = {}
    for path in sorted((ROOT / "syncer").rglob("*.py")):
        for name in type_names(path):
            modules.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(modules) > 500
    assert {name: files for name, files in modules.items() if len(files) > 1} == {}
