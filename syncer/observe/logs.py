"""Log lines: a constant message and keys, as JSON in a pod and readable on a terminal. Never an object's content.

The keys are ``cluster`` (the virtual cluster; ``""`` for the connection to the host, which all of them share),
``syncer``, ``side``, ``key`` and ``what`` where they apply, ``reason``, and ``error`` for a failure. A line without
``cluster`` is about the process.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Literal, TextIO


@contextlib.contextmanager
def _without_rich() -> Iterator[None]:
    """Keep structlog from importing rich where it is installed: 4 MB and 34 ms of CPU for no use here."""
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

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "json", "console"]

#: The longest value of a key; an API server's message can be as long as the object that it complains about.
VALUE_LIMIT = 2000


class _Sink:
    """Where lines go, and how they look. The process has one sink, as it has one standard error."""

    def __init__(self) -> None:
        self.threshold = logging.INFO
        self.stream: TextIO | None = None
        self.processors: list[Any] = []

    def write(self, text: str) -> None:
        """Write and flush; without a stream of its own, to the present standard error."""
        stream = self.stream or sys.stderr
        stream.write(text)
        stream.flush()

    def flush(self) -> None:
        """Do nothing: each write is flushed."""

    def line(self, text: str) -> None:
        """Write a line that structlog has rendered."""
        self.write(text + "\n")

    debug = info = warning = error = line


_SINK = _Sink()


class Logger(structlog.BoundLoggerBase):
    """The logger of a module; a level that is off costs 0.2 µs. ``bind(**keys)`` adds keys to each line."""

    def debug(self, event: str, **keys: Any) -> None:
        """Log for an operator who follows single decisions."""
        if _SINK.threshold <= logging.DEBUG:
            self._proxy_to_logger("debug", event, **keys)

    def info(self, event: str, **keys: Any) -> None:
        """Log for the operator of the daemon."""
        if _SINK.threshold <= logging.INFO:
            self._proxy_to_logger("info", event, **keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Log a failure after which the daemon goes on."""
        if _SINK.threshold <= logging.WARNING:
            self._proxy_to_logger("warning", event, **keys)

    def error(self, event: str, **keys: Any) -> None:
        """Log a failure that a person must see to."""
        self._proxy_to_logger("error", event, **keys)

    def exception(self, event: str, **keys: Any) -> None:
        """Log an unexpected exception with its traceback. Call this where the exception is handled."""
        self._proxy_to_logger("error", event, exc_info=True, **keys)


def get_logger(name: str) -> Logger:
    """Return the logger of a module. :func:`configure` holds for it, whether called before or after."""
    return Logger(_SINK, _SINK.processors, {"module": name.removeprefix("syncer.")})


def configure(
    level: Level = "info",
    format: Format = "auto",  # noqa: A002  # the name of the setting
    *,
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Send log lines from ``level`` on to ``stream``, by default to standard error.

    ``auto`` is console on a terminal, else JSON.

    Lines that libraries log come out the same way. Colours are left out where ``NO_COLOR`` is set.
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
        traceback = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=colors, timestamp_key="time", exception_formatter=traceback)]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
        _in_reading_order,
        structlog.processors.JSONRenderer(),
    ]


def _in_reading_order(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    first = {key: event.pop(key) for key in ("time", "level", "message") if key in event}
    return {**first, **event}


def _keep_content_out(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Show names, numbers and sentences as they are, and anything with an inside by its type and size alone."""
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
            return text if len(text) <= VALUE_LIMIT else f"{text[:VALUE_LIMIT]}… ({len(text)} characters)"


def _stamp_level(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["level"] = method
    return event


def _stamp_library(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["module"] = event["_record"].name
    return event


_STAMPS: list[Any] = [_stamp_level, structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")]


def _route_libraries(renderers: list[Any]) -> None:
    """Send the lines of standard logging the same way, from info on: libraries log whole bodies on debug."""
    unmeta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler = logging.StreamHandler(_SINK)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_stamp_library, *_STAMPS], processors=[unmeta, *renderers]
        )
    )
    logging.basicConfig(handlers=[handler], level=max(_SINK.threshold, logging.INFO), force=True)


_SINK.processors[:] = [_keep_content_out, *_STAMPS, *_renderers("console", sys.stderr, {"NO_COLOR": "1"})]
