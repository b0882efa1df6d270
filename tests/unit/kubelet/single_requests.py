"""The transport of an API server that is asked in single requests."""

from typing import Any

from syncer.clusters.transport import HttpRequest


class SingleRequests:
    """The part of a transport that isn't used: it opens no stream."""

    def stream(self, request: HttpRequest) -> Any:
        raise AssertionError(f"a stream of {request.path}")

    async def close(self) -> None: ...
