"""A watch of a transport, for tests that do something with its lines."""

from collections.abc import Mapping

from syncer.clusters.transport import Stream


class WrappedStream:
    """Passes a stream on, but for its lines."""

    def __init__(self, inner: Stream) -> None:
        self.inner = inner

    @property
    def status(self) -> int:
        """The HTTP status of the reply."""
        return self.inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The reply's headers."""
        return self.inner.headers

    async def body(self) -> bytes:
        """The whole body, for a status other than 200."""
        return await self.inner.body()
