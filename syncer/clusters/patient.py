"""A transport that waits for as long as an API server asks, around another one."""

from contextlib import AbstractAsyncContextManager

from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from syncer.api.errors import TooMany
from syncer.clusters import errors
from syncer.clusters.errors import FailedRequest
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport

#: Most seconds that a request waits in all. For a new CRD, an API server asks for a second several
#: times.
PATIENCE = 60.0
#: Least seconds between two attempts, also if the server asks for less.
LEAST_WAIT = 0.5


class Patient:
    """Retries a request that was answered with 429, or with 503 and Retry-After.

    With these answers an API server has not carried the request out. This is for requests that
    nothing else retries: those of a start, of discovery and of commands. Queues, reflectors and
    Leases continue with other work in the meantime.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request, and retry it for :data:`PATIENCE` seconds; return the last answer."""
        retrying = AsyncRetrying(
            retry=retry_if_result(_asks_to_wait),
            wait=_wait,
            stop=_is_patience_over,
            retry_error_callback=_last,
        )
        response: HttpResponse = await retrying(self._transport.send, request)
        return response

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Open a stream without retries: watches have a loop of their own."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()


def _seconds(response: HttpResponse) -> float | None:
    """Return the seconds that an answer asks to wait; None if it doesn't."""
    if response.status not in (429, 503):
        return None
    error = errors.from_response(response, FailedRequest("", None, ""))
    if not isinstance(error, TooMany):
        return None
    return error.retry_after


def _asks_to_wait(response: HttpResponse) -> bool:
    return _seconds(response) is not None


def _wait(state: RetryCallState) -> float:
    return max(_seconds(_last(state)) or 0.0, LEAST_WAIT)


def _is_patience_over(state: RetryCallState) -> bool:
    return state.idle_for + state.upcoming_sleep > PATIENCE


def _last(state: RetryCallState) -> HttpResponse:
    assert state.outcome is not None
    response: HttpResponse = state.outcome.result()
    return response
