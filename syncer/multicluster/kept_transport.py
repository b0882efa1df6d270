"""A transport whose requests say, once it is closed, that their cluster isn't connected."""

import contextlib
from collections.abc import AsyncIterator

from syncer.api.errors import NotConnected
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse, Stream, Transport


class KeptTransport:
    """Passes on the requests to a cluster of a :class:`~syncer.multicluster.ClusterCache`.

    Those that fail after it was closed raise :class:`~syncer.multicluster.NotConnected`, so that
    who still has the client of a cluster that was disconnected gets the same error as from the
    cache.
    """

    def __init__(self, transport: Transport, cluster: str) -> None:
        self._transport = transport
        self._cluster = cluster
        self._is_closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request.

        Raises:
            ConnectionFailed: There is no answer.
            NotConnected: There is none, as the transport was closed.
        """
        try:
            return await self._transport.send(request)
        except ConnectionFailed as error:
            self._unless_closed(error)
            raise

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        """Open a stream.

        Raises:
            ConnectionFailed: There is no answer.
            NotConnected: There is none, as the transport was closed.
        """
        try:
            async with self._transport.stream(request) as stream:
                yield stream
        except ConnectionFailed as error:
            self._unless_closed(error)
            raise

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        await self._transport.close()

    def _unless_closed(self, error: ConnectionFailed) -> None:
        if self._is_closed:
            message = f"the connection to cluster {self._cluster} was closed"
            raise NotConnected(message, cluster=self._cluster) from error
