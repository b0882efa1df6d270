"""The event loop's own errors: a closed connection is no alarm, and all others are."""

import asyncio
from typing import Any
from unittest.mock import Mock, call

import pytest

from syncer.observe.loop_errors import report_loop_error

CLOSED = RuntimeError("unable to perform operation on <TCPTransport closed=True reading=False>; the handler is closed")
OF_TLS = "Fatal error on SSL protocol"


@pytest.mark.parametrize(
    ("context", "reported"),
    [
        ({"message": OF_TLS, "exception": CLOSED}, False),
        ({"message": OF_TLS, "exception": RuntimeError("a bug of a protocol")}, True),
        ({"message": OF_TLS, "exception": ValueError("the handler is closed")}, True),
        ({"message": "Exception in callback f()", "exception": CLOSED}, True),
        ({"message": OF_TLS}, True),
        ({"message": "Task was destroyed but it is pending!"}, True),
    ],
)
def test_loop_error_is_reported_unless_connection_closed(context: dict[str, Any], reported: bool) -> None:
    loop = Mock(spec=asyncio.AbstractEventLoop)
    report_loop_error(loop, context)
    assert loop.default_exception_handler.call_args_list == ([call(context)] if reported else [])
