"""Versions are compared as numbers of any size, and not at all where they are none."""

import pytest

from syncer.cache.versions import is_decimal, is_later


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("9", "9", False),
        ("1", "", True),
        ("", "1", False),
        ("", "", False),
        ("2345678901234567890123456789012345678901", "345678901234567890123456789012345678901", True),
        ("b", "a", False),
        ("10", "a", False),
        ("a", "1", False),
        ("010", "9", False),
        ("10", "09", False),
        ("-1", "", False),
        ("1.5", "1", False),
        ("\N{SUPERSCRIPT TWO}", "1", False),
        ("\N{ARABIC-INDIC DIGIT TWO}", "1", False),
        ("2\n", "1", False),
    ],
)
def test_version_is_later_only_where_both_are_decimal_numbers(one: str, other: str, later: bool) -> None:
    assert is_later(one, other) is later


@pytest.mark.parametrize(("text", "decimal"), [("1", True), ("0", False), ("", False), ("01", False), ("1a", False)])
def test_version_is_decimal_without_leading_zero(text: str, decimal: bool) -> None:
    assert bool(is_decimal(text)) is decimal
