"""Times as Kubernetes writes them: RFC 3339 in UTC."""

from datetime import UTC, datetime


def written(time: datetime) -> str:
    """Return a time in whole seconds, as ``metav1.Time`` is written."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(text: str) -> datetime:
    """Return the time that is written there. Raises ValueError where it is none."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
