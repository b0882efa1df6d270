"""Run the command `syncer` and record the calls of its package between two points of its traffic.

    python -I probe.py RECORDS PATTERN syncer-argument...

This file runs in the interpreter of the installation that is measured. So it imports the standard
library alone, and of that installation it knows only the command's entry point and the folder of
its package. A recording begins when an asyncio protocol of the daemon receives bytes that match
PATTERN. The match is the recording's name, and each name is recorded once. It ends when the daemon
next writes a POST of ConfigMaps. RECORDS is written as JSON when the command ends.

A call is the start of a function, method or lambda of the package, outside `syncer/testing`.
Generators and coroutines start once, at their first step; a later step is a resumption, which is
recorded and isn't a call. Comprehensions and generator expressions are part of the function that
they are written in, as comprehensions are since Python 3.12. Methods that dataclasses generate have
no file and don't count.
"""

import asyncio
import dis
import importlib.metadata
import importlib.util
import itertools
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol, cast

#: Code objects of expressions, which are no calls.
EXPRESSIONS = frozenset({"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"})
#: The request that ends a recording.
END = re.compile(rb"POST \S*/configmaps[ ?]")

Start = Callable[[FrameType, bool], None]


@dataclass(frozen=True, slots=True)
class Step:
    """A function that starts or, if `resumed`, resumes, with the place that it is called from.

    `depth` is the number of functions of the package below it on the stack. Files are relative to
    the package. `caller` is None for calls by asyncio.
    """

    function: str
    file: str
    line: int
    resumed: bool
    depth: int
    caller: str | None
    caller_line: int


class Tracer(Protocol):
    """A facility of the interpreter that reports starts and resumptions of Python functions."""

    name: str

    def start(self, report: Start) -> None:
        """Start to report, for this thread."""

    def stop(self) -> None:
        """Stop reporting."""


class Monitoring:
    """`sys.monitoring`, in Python since 3.12."""

    name = "sys.monitoring"

    def __init__(self) -> None:
        self._monitoring: Any = getattr(sys, "monitoring", None)

    def start(self, report: Start) -> None:
        """Start to report, for this thread."""
        monitoring = self._monitoring
        thread = threading.get_ident()

        def reporter(resumed: bool) -> Callable[..., None]:
            def reported(*_: object) -> None:
                if threading.get_ident() == thread:
                    report(sys._getframe(1), resumed)

            return reported

        events = monitoring.events
        tool = monitoring.PROFILER_ID
        resumptions = (events.PY_RESUME, events.PY_THROW)
        monitoring.use_tool_id(tool, "hack/measure")
        monitoring.register_callback(tool, events.PY_START, reporter(False))
        for event in resumptions:
            monitoring.register_callback(tool, event, reporter(True))
        monitoring.set_events(tool, events.PY_START | sum(resumptions))

    def stop(self) -> None:
        """Stop reporting."""
        tool = self._monitoring.PROFILER_ID
        self._monitoring.set_events(tool, 0)
        self._monitoring.free_tool_id(tool)


class Profiling:
    """`sys.setprofile`, for Python 3.11. A frame that has passed its first RESUME is resumed."""

    name = "sys.setprofile"

    def start(self, report: Start) -> None:
        """Start to report, for this thread."""

        def profile(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                report(frame, frame.f_lasti > _first_resume(frame.f_code))

        sys.setprofile(profile)

    def stop(self) -> None:
        """Stop reporting."""
        sys.setprofile(None)


@cache
def _first_resume(code: CodeType) -> int:
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


def tracer() -> Tracer:
    """Return the tracer for this interpreter."""
    return Monitoring() if sys.version_info >= (3, 12) else Profiling()


@dataclass
class Recorder:
    """Records the steps of the package in `folder`, once for each name."""

    folder: Path
    tracer: Tracer
    records: dict[str, list[Step]] = field(default_factory=dict)
    _below: frozenset[FrameType] = frozenset()
    _files: dict[CodeType, str | None] = field(default_factory=dict)

    def begin(self, name: str) -> None:
        """Begin a recording, unless there is one of this name or one in progress.

        Functions on the stack at this moment, such as those of the event loop, count neither as
        callers nor in depth.
        """
        if self._below or name in self.records:
            return
        self._below = frozenset(_stack(sys._getframe(1)))
        steps = self.records[name] = []
        self.tracer.start(lambda frame, resumed: self._step(steps, frame, resumed))

    def end(self) -> None:
        """End the recording in progress, if any."""
        if self._below:
            self.tracer.stop()
            self._below = frozenset()

    def _step(self, steps: list[Step], frame: FrameType, resumed: bool) -> None:
        code = frame.f_code
        file = self._file(code)
        if file is None or code.co_name in EXPRESSIONS:
            return
        below = itertools.takewhile(lambda one: one not in self._below, _stack(frame.f_back))
        callers = [(name, one.f_lineno) for one in below if (name := self._file(one.f_code))]
        caller, line = callers[0] if callers else (None, 0)
        location = (code.co_qualname, file, code.co_firstlineno)
        steps.append(Step(*location, resumed, len(callers), caller, line))

    def _file(self, code: CodeType) -> str | None:
        """Return the file of a code object, relative to the package; None for code outside."""
        if code not in self._files:
            path = Path(code.co_filename)
            testing = self.folder / "testing"
            inside = path.is_relative_to(self.folder) and not path.is_relative_to(testing)
            self._files[code] = str(path.relative_to(self.folder)) if inside else None
        return self._files[code]


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, its caller, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


class ObservedProtocol(asyncio.Protocol):
    """The daemon's protocol of a connection, whose traffic a recorder sees."""

    def __init__(self, inner: Any, recorder: Recorder, pattern: re.Pattern[bytes]) -> None:
        self.inner = inner
        self._recorder = recorder
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Give the daemon an observed transport."""
        self.inner.connection_made(ObservedTransport(transport, self, self._recorder))

    def data_received(self, data: bytes) -> None:
        """Begin a recording if these bytes match."""
        if found := self._pattern.search(data):
            self._recorder.begin(found[0].decode())
        if not hasattr(self.inner, "get_buffer"):
            self.inner.data_received(data)
            return
        rest = memoryview(data)
        while rest:
            buffer = memoryview(self.inner.get_buffer(len(rest)))
            size = min(len(buffer), len(rest))
            buffer[:size] = rest[:size]
            self.inner.buffer_updated(size)
            rest = rest[size:]

    def eof_received(self) -> Any:
        """Pass it on to the daemon's protocol."""
        return self.inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on to the daemon's protocol."""
        self.inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on to the daemon's protocol."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on to the daemon's protocol."""
        self.inner.resume_writing()


class ObservedTransport:
    """A transport of asyncio whose first bytes of a POST end the recording."""

    def __init__(
        self, inner: asyncio.BaseTransport, protocol: ObservedProtocol, recorder: Recorder
    ) -> None:
        self._inner = inner
        self._protocol = protocol
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: bytes) -> None:
        """End the recording if this is the request that ends it."""
        if END.match(data):
            self._recorder.end()
        cast("asyncio.WriteTransport", self._inner).write(data)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Pass on to another protocol of the daemon from now on."""
        self._protocol.inner = protocol

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """Write all pieces at once."""
        self.write(b"".join(pieces))


def observe(loop: Any, recorder: Recorder, pattern: re.Pattern[bytes]) -> None:
    """Observe all connections that event loops of this class open from now on."""
    connect = loop.create_connection

    async def create_connection(
        self: Any,
        factory: Callable[[], Any],
        *given: Any,
        **options: Any,
    ) -> tuple[Any, Any]:
        def observed() -> ObservedProtocol:
            return ObservedProtocol(factory(), recorder, pattern)

        transport, protocol = await connect(self, observed, *given, **options)
        return ObservedTransport(transport, protocol, recorder), protocol.inner

    loop.create_connection = create_connection


def main() -> None:
    """Run the command, and write the recordings."""
    _, records, pattern, *arguments = sys.argv
    spec = importlib.util.find_spec("syncer")
    if spec is None or not spec.origin:
        raise SystemExit(f"{sys.executable} has no package syncer")
    recorder = Recorder(Path(spec.origin).parent, tracer())
    loops: list[type] = [asyncio.BaseEventLoop]
    if importlib.util.find_spec("uvloop"):
        loops.append(importlib.import_module("uvloop").Loop)
    for loop in loops:
        observe(loop, recorder, re.compile(pattern.encode()))
    [command] = importlib.metadata.entry_points(group="console_scripts", name="syncer")
    sys.argv = ["syncer", *arguments]
    try:
        command.load()()
    finally:
        found = {name: [asdict(step) for step in steps] for name, steps in recorder.records.items()}
        written = json.dumps({"counted_with": recorder.tracer.name, "records": found})
        Path(records).write_text(written)


if __name__ == "__main__":
    main()
