"""The table of limits has each number that bounds something, with its present value."""

import re
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml

from hack.limits_table import BEGIN, END, NO_LIMITS, Number, bare_numbers, constants, faults, shown, with_values
from syncer.config import SyncerConfig, config_with, option_at
from syncer.observe.catalogue import CATALOGUE
from syncer.plugins import OURS, Installed

ROOT = Path(__file__).parents[2]
_METRIC = re.compile(r"`((?:syncer|workqueue|rest_client|controller_runtime|leader_election)_\w+)`")
#: What moves a limit and is no option of the configuration.
_NO_OPTIONS = {"syncer thaw", "--wait", "--cluster"}


def page() -> str:
    return (ROOT / "docs" / "architecture" / "limits.md").read_text()


@cache
def known() -> dict[tuple[str, str], Number]:
    return constants(ROOT)


@cache
def model() -> type[SyncerConfig]:
    plugins = Installed(distribution(OURS).entry_points, lambda group: ())
    return config_with(plugins.syncers(), translators=plugins.translator)


def rows() -> list[list[str]]:
    table = page().partition(END)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:3] == "| `"]


def test_each_limit_has_a_row() -> None:
    assert list(faults(page(), known(), model())) == []


def test_rows_have_the_present_values() -> None:
    assert with_values(page(), known(), model()) == page(), "run hack/generate"


def test_numbers_that_bound_something_have_names() -> None:
    assert list(bare_numbers(ROOT)) == [], "make a constant of each, with a row in docs/architecture/limits.md"


def test_options_and_metrics_of_the_rows_exist() -> None:
    table = page()
    names = {f"{name}_total" if metric.kind == "counter" else name for name, metric in CATALOGUE.items()}
    assert set(_METRIC.findall(table)) - names == set()
    moved = {name for row in rows() for name in re.findall(r"`([^`]+)`", row[-1])} - _NO_OPTIONS
    assert [name for name in sorted(moved) if option_at(model(), name) is None] == []
    assert "limits" in yaml.safe_load((ROOT / "charts" / "syncer" / "values.yaml").read_text())["resources"]


def test_every_form_of_a_constant_is_found() -> None:
    found = known()
    assert found["cache/reflector.py", "LAST_WAIT"] == 30.0, "the second of a pair"
    assert found["cache/reflector.py", "WATCH_SECONDS"] == (300.0, 600.0), "a tuple"
    assert found["cache/parts.py", "FEW_PARTS_BYTES"] == 12_000, "a product"
    assert found["clusters/transport.py", "LineSplitter.OVERHEAD"] == 64, "of a class"
    assert ("clusters/transport.py", "LineSplitter.LONGEST") not in found, "another name for a constant"
    assert ("clusters/http1.py", "NEVER") not in found, "an infinite number bounds nothing"


def table(*lines: str) -> str:
    return "\n".join((BEGIN, *lines, END))


def test_a_constant_without_a_row_is_named_with_the_row_to_add() -> None:
    [fault] = [each for each in faults(table(), {("cache/new.py", "MOST"): 5}, model()) if "new.py" in each]
    assert fault.startswith("MOST of syncer/cache/new.py has no row")
    assert "add `| `MOST` of `cache/new.py` | s | … |` to docs/architecture/limits.md" in fault


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["| `GONE` of `cache/new.py` | 5 | |"], "has a row for GONE of cache/new.py, which isn't a numeric constant"),
        (["| `MOST` of `cache/new.py` | 5 | |"] * 2, "has two rows for MOST of cache/new.py"),
        (["| option `patrol.gone` | 5 | |"], "has a row for the option patrol.gone, which doesn't exist"),
    ],
)
def test_a_row_without_a_constant_is_a_fault(lines: list[str], fault: str) -> None:
    assert any(fault in each for each in faults(table(*lines), {("cache/new.py", "MOST"): 5}, model()))


def test_a_form_of_no_constant_is_a_fault() -> None:
    found = list(faults(table("| `MOST` of `cache/new.py` | 5 | |"), {("cache/new.py", "MOST"): 5}, model()))
    assert len(found) == len(NO_LIMITS)


def test_a_changed_value_is_written_in_the_unit_of_the_row() -> None:
    before = table(
        "| `MOST` of `cache/new.py` | 512 KiB | a |", "| option `patrol.interval` | s | b |", "| c | 1 | d |"
    )
    after = table(
        "| `MOST` of `cache/new.py` | 3 MiB | a |", "| option `patrol.interval` | 10 min | b |", "| c | 1 | d |"
    )
    assert with_values(before, {("cache/new.py", "MOST"): 3 << 20}, model()) == after


@pytest.mark.parametrize(
    ("value", "cell", "text"),
    [
        (1 << 20, "B", "1 MiB"),
        (1000, "KiB", "1,000 B"),
        (60.0, "s", "60 s"),
        (120.0, "60 s", "2 min"),
        (4 * 3600.0, "s", "4 h"),
        (0.05, "s", "50 ms"),
        (2.0, "50 ms", "2 s"),
        (0, "s", "0 s"),
        ((300.0, 90.0), "s", "5 min, 90 s"),
        (10.0, "/s", "10 /s"),
        (64 << 20, "B/s", "64 MiB/s"),
        (4096, "1 characters", "4,096 characters"),
        (0.25, "", "0.25"),
        (10_000, "5", "10,000"),
    ],
)
def test_values_are_shown_with_their_units(value: Number, cell: str, text: str) -> None:
    assert shown(value, cell) == text


@pytest.mark.parametrize(
    ("code", "is_bound"),
    [
        ("lru_cache(maxsize=64)", True),
        ("asyncio.timeout(5)", True),
        ("TTLCache(MOST, 10.0)", True),
        ("wait(task, timeout=2.0)", True),
        ("text[:60]", True),
        ("text[-60:]", True),
        ('f"{text:.60}"', True),
        ("lru_cache(maxsize=MOST)", False),
        ("asyncio.sleep(0)", False),
        ("text[:2]", False),
        ("sha256(text).hexdigest()[:16]", False),
        ('f"{text:.{MOST}}"', False),
        ('f"{number:.2f}"', False),
    ],
)
def test_bare_numbers_that_bound_something_are_found(tmp_path: Path, code: str, is_bound: bool) -> None:
    (tmp_path / "syncer").mkdir()
    (tmp_path / "syncer" / "new.py").write_text(code)
    assert list(bare_numbers(tmp_path)) == (["new.py:1"] if is_bound else [])
