"""Times in Kubernetes' format: RFC 3339 in UTC."""

from datetime import UTC, datetime


def utcnow() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(UTC)


def written(time: datetime) -> str:
    """Format a time in whole seconds, like ``metav1.Time``."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written_in_micros(time: datetime) -> str:
    """Format a time in microseconds, like ``metav1.MicroTime``."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read(text: str) -> datetime:
    """Parse a time.

    Raises:
        ValueError: The text is not a time.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    return time
