"""A transport that waits for as long as an API server asks, around another one."""

from contextlib import AbstractAsyncContextManager

from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from syncer.api.errors import TooMany
from syncer.clusters import errors
from syncer.clusters.errors import FailedRequest
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport

#: Most seconds that a request waits in all. The API server of a CRD that is seconds old asks for a
#: second, some times.
PATIENCE = 60.0
#: Least seconds between two attempts, whatever the server says.
LEAST_WAIT = 0.5


class Patient:
    """Sends a request again that was answered with 429, or with 503 and Retry-After, when the
    answer says.

    An API server answers so in place of carrying the request out. It is for requests that nothing
    else tries again: those of a start, of discovery and of commands. Queues, reflectors and Leases
    go on with other things meanwhile.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request; return the last answer if the server still asks to come back after
        :data:`PATIENCE`.
        """
        retrying = AsyncRetrying(
            retry=retry_if_result(lambda response: _seconds(response) is not None),
            wait=_wait,
            stop=lambda state: state.idle_for + state.upcoming_sleep > PATIENCE,
            retry_error_callback=_last,
        )
        response: HttpResponse = await retrying(self._transport.send, request)
        return response

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Open a stream: whoever watches has a loop of its own."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()


def _seconds(response: HttpResponse) -> float | None:
    """Return the seconds after which an answer asks to come back; None if it doesn't."""
    if response.status not in (429, 503):
        return None
    error = errors.from_response(response, FailedRequest("", None, ""))
    return max(error.retry_after, LEAST_WAIT) if isinstance(error, TooMany) else None


def _wait(state: RetryCallState) -> float:
    return _seconds(_last(state)) or LEAST_WAIT


def _last(state: RetryCallState) -> HttpResponse:
    assert state.outcome is not None
    response: HttpResponse = state.outcome.result()
    return response
