"""YAML with the lines of its values."""

from pathlib import Path

import pytest

from syncer.api import ConfigError
from syncer.config import dotted, parse, read


def test_value_has_the_line_of_its_key() -> None:
    document = parse("a: 1\nb:\n  c:\n    - x\n    - d: 2\n", "f.yaml")
    assert document.data == {"a": 1, "b": {"c": ["x", {"d": 2}]}}
    assert document.line(("b", "c")) == 3
    assert document.line(("b", "c", 1, "d")) == 5


def test_missing_value_is_reported_at_the_nearest_value_around_it() -> None:
    assert parse("a: 1\nb:\n  c: 1\n").line(("b", "nothing", "at", "all")) == 2


def test_duplicate_key_is_a_problem_that_names_both_lines() -> None:
    [problem] = parse("a:\n  b: 1\n  c: 2\n  b: 3\n", "f.yaml").problems
    assert str(problem) == "f.yaml:4: a.b: is given twice, first in line 2."


def test_duplicate_keys_are_found_in_lists_and_at_any_depth() -> None:
    assert [problem.path for problem in parse("a: [{b: 1, b: 2}]\nc: 1\nc: 2\n").problems] == ["c", "a[0].b"]


def test_merged_mapping_is_no_duplicate_and_own_keys_win() -> None:
    document = parse("base: &base {x: 1, y: 2}\nuse:\n  <<: *base\n  x: 5\n")
    assert document.problems == []
    assert document.data["use"] == {"x": 5, "y": 2}


def test_mapping_that_contains_itself_is_a_problem_and_no_endless_loop() -> None:
    [problem] = parse("a: &a\n  b: *a\n").problems
    assert problem.path == "a.b"


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n"])
def test_empty_file_has_no_values(text: str) -> None:
    assert parse(text).data == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "f.yaml:2: is not YAML"),
        ("a: 1\n b: 2\n", "f.yaml:2: is not YAML"),
        ("- a\n", "f.yaml:1: expected a mapping"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: is not YAML"),
    ],
)
def test_text_that_is_no_mapping_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yaml")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", ["!!python/object:os.system {}", "!secret [x]", "!!set {x}"])
def test_tag_is_refused_with_its_line(value: str) -> None:
    [problem] = parse(f"a: {value}\n", "f.yaml").problems
    assert str(problem).startswith("f.yaml:1: a: has the tag ")


def test_tagged_scalar_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"f.yaml:1: is not YAML: could not determine a constructor for the tag"):
        parse("a: !vault x\n", "f.yaml")


def test_syntax_error_does_not_quote_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("password: hunter2 : : [\n  x: {hunter2\n", "f.yaml")
    assert "hunter2" not in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.yaml: cannot be read: No such file or directory"):
        read(str(tmp_path / "nowhere.yaml"))


def test_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read(str(path))


def test_dotted_path_shows_positions_in_lists() -> None:
    assert dotted(("sync", "toHost", "rules", 0, "name")) == "sync.toHost.rules[0].name"
