"""Errors that the event loop reports because no task is there to raise them."""

import asyncio
from typing import Any

from syncer.observe.logs import get_logger

log = get_logger(__name__)


def report_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop, by asyncio's own handler unless it is known to be harmless.

    uvloop reports a TLS connection that was closed while uvloop still had bytes to send for it
    (https://github.com/MagicStack/uvloop/issues/506), for example when a process goes on after it
    was frozen. The request of such a connection has failed by itself, and is tried again.
    """
    error = context.get("exception")
    message = context.get("message", "")
    is_of_tls = message.startswith("Fatal error on SSL protocol")
    if is_of_tls and isinstance(error, RuntimeError) and "the handler is closed" in str(error):
        log.debug("TLS connection closed before all bytes were sent", error=str(error))
        return
    loop.default_exception_handler(context)
