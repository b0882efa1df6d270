"""Plugin packages in a temporary folder, as real distributions."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a distribution with one module and its entry points where Python finds it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def put(package: str, code: str, *, version: str = "1.2", **points: str) -> None:
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(dedent(code))
        info = tmp_path / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        group = points.pop("group", "syncer.syncers")
        lines = [f"{name.replace('_', '-')} = {module}:{value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")

    yield put
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
