"""Commands configure logging for their process; the next test begins with logging as it was."""

from collections.abc import Iterator

import pytest

from syncer.observe import logs


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """Configure logging by default again."""
    yield
    logs.configure()
