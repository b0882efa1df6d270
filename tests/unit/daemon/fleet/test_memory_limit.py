"""The limit of memory, as a control group shows it."""

from pathlib import Path

import pytest

from syncer.daemon.fleet import memory_limit


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory.max": "536870912\n"}, 512 << 20),
        ({"memory.max": "max\n"}, 0),
        ({"memory.limit_in_bytes": "536870912\n"}, 512 << 20),
        ({"memory.limit_in_bytes": "9223372036854771712\n"}, 0),
        ({}, 0),
    ],
)
def test_limit_is_read_as_both_versions_show_it(
    files: dict[str, str], limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(memory_limit, "FILES", tuple(tmp_path / each.name for each in memory_limit.FILES))
    assert memory_limit.memory_limit() == limit
