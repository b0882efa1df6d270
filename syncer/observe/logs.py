"""Logging: constant messages with keys, as JSON in a pod and as text on a terminal.

Never the content of an object.

The keys are ``cluster`` (the virtual cluster; ``""`` for the connection to the host, which all of
them share), ``syncer``, ``side``, ``key``, ``what``, ``reason``, and ``error`` for a failure, as
they apply. A line without ``cluster`` is about the process.

Each line about a request, from whichever module, has the keys of :class:`KeySource`: ``cluster``,
``syncer``, ``resource``, ``key``, ``host_key`` and ``reconcile_id``.
"""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TextIO


@contextlib.contextmanager
def _without_rich() -> Iterator[None]:
    """Keep structlog from importing rich: it would take 4 MB and 34 ms of CPU, and isn't used."""
    if "rich" in sys.modules:
        yield
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["rich"]


with _without_rich():
    import structlog

LogLevel = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "json", "console"]

#: Longest value of a key, in characters; an API server's message can be as long as the object that
#: it is about.
VALUE_LIMIT = 2000


class _Sink:
    """The destination and the format of log lines.

    The process has a single sink, as it has a single standard error.
    """

    def __init__(self) -> None:
        self.threshold = logging.INFO
        self.stream: TextIO | None = None
        self.processors: list[Any] = []

    def write(self, text: str) -> None:
        """Write and flush; without a stream of its own, to the current standard error."""
        stream = self.stream or sys.stderr
        stream.write(text)
        stream.flush()

    def flush(self) -> None:
        """Do nothing: each write is flushed."""

    def line(self, text: str) -> None:
        """Write a line that structlog has rendered."""
        self.write(text + "\n")

    debug = line
    info = line
    warning = line
    error = line


_SINK = _Sink()


class KeySource(Protocol):
    """Has the keys of all lines that are logged during some work."""

    def log_keys(self) -> Mapping[str, Any]:
        """Return the keys; none once the work is over, though a task that it began may go on.

        It is called only for a line that is written.
        """
        ...


#: The work that the present task is at, or that began the task.
WORK: ContextVar[KeySource | None] = ContextVar("WORK", default=None)


class Logger(structlog.BoundLoggerBase):
    """A module's logger. ``bind(**keys)`` adds keys to each line, and :data:`WORK` has more.

    A disabled level costs 0.2 µs.
    """

    @property
    def is_verbose(self) -> bool:
        """True if debug lines are logged; otherwise their values needn't be computed."""
        return _SINK.threshold <= logging.DEBUG

    def debug(self, event: str, **keys: Any) -> None:
        """Log for an operator who follows single decisions."""
        if _SINK.threshold <= logging.DEBUG:
            self._write("debug", event, keys)

    def info(self, event: str, **keys: Any) -> None:
        """Log for the operator of the daemon."""
        if _SINK.threshold <= logging.INFO:
            self._write("info", event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Log a failure that the daemon survives."""
        if _SINK.threshold <= logging.WARNING:
            self._write("warning", event, keys)

    def error(self, event: str, **keys: Any) -> None:
        """Log a failure that needs a person."""
        self._write("error", event, keys)

    def exception(self, event: str, **keys: Any) -> None:
        """Log an unexpected exception with its traceback. Call it in the exception handler."""
        self._write("error", event, {"exc_info": True, **keys})

    def _write(self, method: str, event: str, keys: Mapping[str, Any]) -> None:
        work = WORK.get()
        if work is not None:
            keys = {**work.log_keys(), **keys}
        self._proxy_to_logger(method, event, **keys)


def get_logger(name: str) -> Logger:
    """Return a module's logger. :meth:`configure` applies to it, called before or after."""
    return Logger(_SINK, _SINK.processors, {"module": name.removeprefix("syncer.")})


def configure(
    level: LogLevel = "info",
    format: Format = "auto",  # noqa: A002  # the name of the setting
    *,
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Configure logging, for our own lines and those of libraries.

    Args:
        level: The lowest level that is logged.
        format: ``auto`` is console on a terminal and JSON elsewhere.
        stream: The destination; None for standard error.
        environ: Colours are disabled if ``NO_COLOR`` is set here.
    """
    _SINK.threshold = logging.getLevelNamesMapping()[level.upper()]
    _SINK.stream = stream
    renderers = _renderers(format, stream or sys.stderr, environ)
    _SINK.processors[:] = [_keep_content_out, *_STAMPS, *renderers]
    _route_libraries(renderers)


def _renderers(chosen: Format, stream: TextIO, environ: Mapping[str, str]) -> list[Any]:
    terminal = stream.isatty()
    if chosen == "console" or (chosen == "auto" and terminal):
        colors = terminal and not environ.get("NO_COLOR")
        return [
            _printable_values,
            structlog.dev.ConsoleRenderer(
                colors=colors,
                timestamp_key="time",
                exception_formatter=_printable_traceback,
            ),
        ]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
        _in_reading_order,
        structlog.processors.JSONRenderer(),
    ]


def _printable_values(
    logger: Any,
    method: str,
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    """Escape characters that control a terminal: an API server may send any text."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = _printable(value)
    return event


def _printable_traceback(stream: TextIO, exc_info: structlog.typing.ExcInfo) -> None:
    """Write a traceback line by line, as the message of an exception may be any text."""
    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, exc_info)
    stream.write("\n".join(map(_printable, plain.getvalue().split("\n"))))


def _printable(text: str) -> str:
    """Return a text with each character that isn't printable escaped, as in a Python string."""
    if text.isprintable():
        return text
    shown: list[str] = []
    for character in text:
        if character.isprintable():
            shown.append(character)
        else:
            shown.append(character.encode("unicode_escape").decode())
    return "".join(shown)


def _in_reading_order(
    logger: Any,
    method: str,
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    first = {key: event.pop(key) for key in ("time", "level", "message") if key in event}
    return {**first, **event}


def _keep_content_out(
    logger: Any,
    method: str,
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    """Keep names, numbers and sentences; replace any container by its type and size."""
    for key, value in event.items():
        if key != "exc_info":
            event[key] = _shown(value)
    return event


def _shown(value: Any) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case dict() | bytes() | bytearray() | memoryview():
            return f"<{type(value).__name__} of {len(value)}>"
        case list() | set() | frozenset():
            return ", ".join(str(_shown(part)) for part in value)
        case _:
            text = str(value)
            if len(text) <= VALUE_LIMIT:
                return text
            return f"{text[:VALUE_LIMIT]}… ({len(text)} characters)"


def _stamp_level(
    logger: Any,
    method: str,
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    event["level"] = method
    return event


def _stamp_library(
    logger: Any,
    method: str,
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    event["module"] = event["_record"].name
    return event


_STAMPS: list[Any] = [
    _stamp_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
]


def _route_libraries(renderers: list[Any]) -> None:
    """Send the lines of standard logging to the same sink, from level info on.

    At level debug, libraries log whole bodies.
    """
    unmeta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler = logging.StreamHandler(_SINK)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_stamp_library, *_STAMPS],
            processors=[unmeta, *renderers],
        ),
    )
    logging.basicConfig(handlers=[handler], level=max(_SINK.threshold, logging.INFO), force=True)


_SINK.processors[:] = [
    _keep_content_out,
    *_STAMPS,
    *_renderers("console", sys.stderr, {"NO_COLOR": "1"}),
]
