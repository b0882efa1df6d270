"""A configuration with anything anywhere: it is read, or every problem is reported; no other
exception is raised.
"""

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from odd_objects import JUNK, nested, replaced

from syncer.api import ConfigError, SyncerError
from syncer.cli.app import app
from syncer.config import Document, build, parse
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

EXAMPLES = Path(__file__).parents[3] / "examples"
WHOLE = [
    yaml.safe_load(path.read_text()) for path in (EXAMPLES / "full.yaml", *sorted((EXAMPLES / "custom").glob("*.yaml")))
]


def paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return every place in a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for step, below in steps for found in ((*path, step), *paths(below, (*path, step)))]


ODD = [(whole, found) for whole in WHOLE for found in paths(whole)]


@example(({"sync": {"custom": {"widgets.example.org": {}}}}, ("sync", "custom", "widgets.example.org")), "null")
@given(st.sampled_from(ODD), st.sampled_from(sorted(JUNK)))
@settings(max_examples=40)
def test_configuration_with_any_contents_loads_or_has_all_problems_named(
    odd: tuple[Any, tuple[str | int, ...]], junk: str
) -> None:
    whole, found = odd
    message = "read"
    try:
        build(Document("odd.yaml", data=replaced(whole, found, JUNK[junk])), INSTALLED)
    except SyncerError as error:
        message = str(error)
    assert message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "- a",
        "? [a]\n: b",
        "a: *b",
        "a: &a [*a]",
        "a: &a {b: *a}",
        "<<: 1",
        "a: !!python/object:os.system x",
        "\0",
        "{" * 2000,
    ],
    ids=str,
)
def test_text_of_any_characters_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        build(parse(text, "odd.yaml"), INSTALLED)


def test_file_of_any_bytes_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    for contents in (b"\xff\xfe\x00", b"\x80" * 9, b"cluster: x\n" * 3, yaml.dump({"sync": nested(300)}).encode()):
        file.write_bytes(contents)
        ended = CliRunner().invoke(app, ["config", "validate", str(file)])
        assert ended.exit_code == 2, ended.output
        assert "Traceback" not in ended.output
