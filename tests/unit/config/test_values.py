"""Durations and addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.api.durations import seconds
from syncer.config import duration_text, listen_on
from syncer.config.values import address, loopback_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [("15s", 15), ("5m", 300), ("1h30m", 5400), ("250ms", 0.25), ("1.5s", 1.5), ("0", 0), (0, 0), ("0s", 0)],
)
def test_durations_are_read(text: object, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "15", "s", "-1s", "1d", "1s ", "1h 5m", "1:30", 15, 1.5, True, None, [], "1s\n"])
def test_wrong_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 15s"):
        seconds(text)


@given(st.integers(0, 10**9))
def test_duration_is_read_as_it_was_written(milliseconds: int) -> None:
    assert seconds(duration_text(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


def test_durations_are_written_as_people_do() -> None:
    assert [duration_text(value) for value in (0, 15, 90, 5400, 0.25)] == ["0s", "15s", "1m30s", "1h30m", "250ms"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", ("", 8080)),
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:8443", ("::1", 8443)),
        ("localhost:0", ("localhost", 0)),
        ("", None),
        ("0", None),
        (0, None),
    ],
)
def test_addresses_are_read(text: object, expected: object) -> None:
    assert listen_on(address(text)) == expected


@pytest.mark.parametrize(
    "text", ["8080", ":", ":x", ":70000", "::1:80", "a b:80", "http://x:80", 8080, False, None, ":80\n"]
)
def test_wrong_address_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected an address"):
        address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:8082", "[::1]:8082", "localhost:0", "", "0", 0])
def test_loopback_address_is_read(text: object) -> None:
    assert loopback_address(text) == address(text)


@pytest.mark.parametrize("text", [":8082", "0.0.0.0:8082", "[::]:8082", "10.0.0.1:8082", "127.0.0.1.example.org:80"])
def test_address_that_others_reach_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected a loopback address"):
        loopback_address(text)
