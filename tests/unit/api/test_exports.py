"""The exports of `syncer.api`: complete, sorted, documented, and sufficient for the built-in syncers."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import syncer.api

#: Defined in the API's modules for the rest of the daemon; no syncer needs them.
INTERNAL = {"TYPE_CHECKING", "C", "ConfigT", "LAST_APPLIED", "NAMESPACE_NAME", "PREFIX", "kind_mark", "label_value"}
INTERNAL |= {"Role", "Walker", "compiled", "pointer_steps", "reference_of", "RESERVED_ENDINGS", "reserved_ending"}
INTERNAL |= {"CLUSTER_SECRET", "CLUSTER_SECRET_HOME", "CLUSTER_SECRET_NAME"}
INTERNAL |= {"duration_text", "seconds", "value_class", "is_built_in_group"}
INTERNAL |= {"PLURAL_GROUP", "not_empty"}
INTERNAL |= {"ApiServerAccess", "Dns", "Breaker", "LONGEST_MESSAGE", "RequestFields"}
INTERNAL |= {"LONGEST_CLUSTER", "LONGEST_FIELD"}
INTERNAL |= {"HOST", "MOST_TEXT", "MOST_WORDS"}
#: Reached through the module, which is exported.
INTERNAL |= set(vars(syncer.api.selectors)) - set(syncer.api.__all__)
INTERNAL |= set(vars(syncer.api.reasons)) - set(syncer.api.__all__)
INTERNAL |= {"ASKED", "Fault", "ROLES", "registered", "syncer_faults", "translator_faults"}
INTERNAL |= {
    "FAMILIES",
    "Family",
    "KEY_LIMIT",
    "is_note",
    "matcher",
    "of_every_kind",
    "without_keys",
}
#: Names of types, of which the interpreter does not know where they are defined.
ALIASES = (
    "Deletion",
    "Duration",
    "FieldPath",
    "HostDeletion",
    "HostNamespace",
    "HostPattern",
    "Json",
    "Obj",
    "Owner",
    "References",
    "Referred",
    "Steps",
    "Subdomain",
)
#: What syncers and translators may import of the package.
ALLOWED = ("syncer.api", "syncer.translate", "syncer.names", "syncer.resources")


def defined() -> Iterator[str]:
    for module_info in pkgutil.iter_modules(syncer.api.__path__):
        module = importlib.import_module(f"syncer.api.{module_info.name}")
        for name, value in vars(module).items():
            foreign = getattr(value, "__module__", module.__name__) != module.__name__ or inspect.ismodule(value)
            if not name.startswith("_") and not foreign:
                yield name


def test_exports_are_exactly_the_public_names() -> None:
    exported = set(syncer.api.__all__)
    values = {"API_VERSION", "NOTES_OF_TOOLS", "REMEMBERED", "SHARE_TIMES", "reasons", "selectors"}
    assert exported - values - set(ALIASES) <= set(defined()) | {"IndexFunction"}
    assert set(defined()) - exported - INTERNAL == set()
    assert not exported & INTERNAL


def test_list_is_sorted_and_true() -> None:
    assert syncer.api.__all__ == sorted(set(syncer.api.__all__), key=lambda name: (not name.isupper(), name))
    assert [name for name in syncer.api.__all__ if not hasattr(syncer.api, name)] == []


@pytest.mark.parametrize("name", [one for one in syncer.api.__all__ if one not in ("API_VERSION", *ALIASES)])
def test_exported_names_and_methods_all_have_docstrings(name: str) -> None:
    value = getattr(syncer.api, name)
    assert value.__doc__
    assert not value.__doc__.startswith(f"{name}("), "the docstring is the one that dataclass makes up"
    for method, function in vars(value).items() if inspect.isclass(value) else ():
        if inspect.isfunction(function) and not method.startswith("_"):
            assert function.__doc__ or function.__module__ != value.__module__, f"{name}.{method}"


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_built_in_syncers_use_no_more_than_a_plugin_may() -> None:
    root = Path(syncer.api.__file__).parents[1]
    files = [path for folder in ("resources", "translate", "names") for path in (root / folder).rglob("*.py")]
    assert len(files) > 10
    found = {(path.name, name) for path in files for name in imports(path) if name.split(".")[0] == "syncer"}
    wrong = {(file, name) for file, name in found if name.startswith("syncer.api.") or not name.startswith(ALLOWED)}
    assert wrong == set()
