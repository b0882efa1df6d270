"""Times in Kubernetes' format."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from syncer.translate import times


def test_time_is_written_in_utc_and_read_back() -> None:
    noon_in_paris = datetime(2026, 1, 1, 13, 0, 5, 999, tzinfo=timezone(timedelta(hours=1)))
    assert times.written(noon_in_paris) == "2026-01-01T12:00:05Z"
    assert times.written_in_micros(noon_in_paris) == "2026-01-01T12:00:05.000999Z"
    assert times.read("2026-01-01T12:00:05Z") == datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)
    assert times.read("2026-01-01T13:00:05.5+01:00").astimezone(UTC).microsecond == 500000


def test_invalid_time_is_refused() -> None:
    with pytest.raises(ValueError):
        times.read("")
