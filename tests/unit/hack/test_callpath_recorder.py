"""The calls are the same with either facility of the interpreter."""

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hack.callpath.probe import (
    Monitoring,
    ObservedProtocol,
    ObservedTransport,
    Profiling,
    Recorder,
    Step,
    Tracer,
    observe,
)

#: Seconds, after which a test gives up.
PATIENCE = 60.0
PACKAGE = """\
from shop.testing import helper
from shop.parts.items import Item, items, later

def simple():
    return Item(1).double()

def comprehended():
    return [n for n in range(3)], {n for n in range(3)}, list(n for n in range(3))

def iterated():
    return list(items(2))

def given(function):
    return function()

def by_lambda():
    return given(lambda: 1)

def tested():
    return helper(simple)

async def awaited():
    return await later(2)
"""
ITEMS = """\
import asyncio
from dataclasses import dataclass

@dataclass
class Item:
    price: int

    def double(self):
        return self.price * 2

def items(count):
    for n in range(count):
        yield Item(n)

async def later(times):
    for _ in range(times):
        await asyncio.sleep(0)
"""
TESTING = """\
def helper(function):
    return function()
"""

TRACERS: list[Tracer] = [Profiling(), *([Monitoring()] if sys.version_info >= (3, 12) else [])]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package to be recorded."""
    files = {"__init__.py": PACKAGE, "parts/items.py": ITEMS, "testing/__init__.py": TESTING}
    for name, code in files.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop  # type: ignore[import-not-found]

    yield shop
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


@pytest.fixture(params=TRACERS, ids=lambda tracer: tracer.name)
def recorder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Recorder]:
    made = Recorder(tmp_path / "shop", request.param)
    yield made
    made.end()


def recorded(recorder: Recorder, function: Any) -> list[str]:
    """Run a function and return its steps, indented; a resumption begins with ``~``."""
    recorder.begin("it")
    function()
    recorder.end()
    steps = recorder.records["it"]
    return ["  " * step.depth + "~ " * step.resumed + step.function for step in steps]


@pytest.mark.parametrize(
    ("function", "steps"),
    [
        pytest.param("simple", ["simple", "  Item.double"], id="generated init is no call"),
        pytest.param("comprehended", ["comprehended"], id="comprehension is no call"),
        pytest.param("iterated", ["iterated", "  items", "  ~ items", "  ~ items"], id="generator is resumed"),
        pytest.param("by_lambda", ["by_lambda", "  given", "    by_lambda.<locals>.<lambda>"], id="lambda is a call"),
        pytest.param("tested", ["tested", "  simple", "    Item.double"], id="testing folder hides no caller"),
    ],
)
def test_steps_of_a_function_are_recorded(shop: Any, recorder: Recorder, function: str, steps: list[str]) -> None:
    assert recorded(recorder, getattr(shop, function)) == steps


def test_step_has_its_line_and_the_line_of_the_call(shop: Any, recorder: Recorder) -> None:
    recorded(recorder, shop.simple)
    assert recorder.records["it"][1] == Step(
        function="Item.double",
        file="parts/items.py",
        line=8,
        resumed=False,
        depth=1,
        caller="__init__.py",
        caller_line=5,
    )


def test_caller_is_the_nearest_function_of_the_package(shop: Any, recorder: Recorder) -> None:
    recorded(recorder, shop.by_lambda)
    lines = PACKAGE.splitlines()
    called = [lines[step.caller_line - 1].strip() for step in recorder.records["it"] if step.caller]
    assert called == ["return given(lambda: 1)", "return function()"]


def test_coroutine_is_resumed_with_those_that_await_it(shop: Any, recorder: Recorder) -> None:
    async def scene() -> None:
        recorder.begin("it")
        await asyncio.create_task(shop.awaited())
        recorder.end()

    asyncio.run(scene())
    steps = [(step.function, step.resumed, step.depth) for step in recorder.records["it"]]
    resumption = [("awaited", True, 0), ("later", True, 1)]
    assert steps == [("awaited", False, 0), ("later", False, 1), *resumption, *resumption]


def test_function_that_runs_the_event_loop_is_no_caller(shop: Any, recorder: Recorder) -> None:
    async def scene() -> None:
        recorder.begin("it")
        asyncio.get_running_loop().call_soon(shop.simple)
        await asyncio.sleep(0)
        recorder.end()

    shop.given(lambda: asyncio.run(scene()))
    assert [(step.function, step.depth, step.caller) for step in recorder.records["it"]] == [
        ("simple", 0, None),
        ("Item.double", 1, "__init__.py"),
    ]


def test_name_is_recorded_once(shop: Any, recorder: Recorder) -> None:
    recorded(recorder, shop.simple)
    assert recorded(recorder, shop.tested) == ["simple", "  Item.double"]


def test_recording_under_way_is_not_replaced(shop: Any, recorder: Recorder) -> None:
    recorder.begin("it")
    recorder.begin("other")
    shop.simple()
    recorder.end()
    assert {name: len(steps) for name, steps in recorder.records.items()} == {"it": 2}


def test_recorder_records_nothing_after_the_end(shop: Any, recorder: Recorder) -> None:
    recorded(recorder, shop.simple)
    shop.simple()
    assert len(recorder.records["it"]) == 2


# -- the two points of the traffic -----------------------------------------------------------------


class Client(asyncio.Protocol):
    """A daemon's protocol: it answers an event with calls of `work` and two requests."""

    def __init__(self, work: Any) -> None:
        self.work, self.closed = work, asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.work()
        self.transport.write(b"GET /api/v1/configmaps HTTP/1.1\r\n\r\n")
        self.work()
        self.transport.writelines([b"POST /api/v1/namespaces/a/configmaps", b" HTTP/1.1\r\n\r\n"])
        self.work()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


class Server(asyncio.Protocol):
    """A server that sends two events and closes when it has got the last request."""

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.transport.write(b'{"type":"ADDED","object":{"name":"measured-7"}}\n')

    def data_received(self, data: bytes) -> None:
        self.received += data
        if b"POST" in self.received:
            self.transport.close()


def test_recording_lasts_from_event_to_post(shop: Any, recorder: Recorder) -> None:
    class Loop(asyncio.SelectorEventLoop):
        pass

    observe(Loop, recorder, re.compile(rb"measured-\d+"))

    async def scene() -> tuple[Any, Any]:
        loop, sides = asyncio.get_running_loop(), Server()
        server = await loop.create_server(lambda: sides, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport, protocol = await loop.create_connection(lambda: Client(shop.simple), "127.0.0.1", port)
        async with asyncio.timeout(PATIENCE):
            await protocol.closed.wait()
        server.close()
        assert b"GET" in sides.received
        assert b"POST" in sides.received
        return transport, protocol

    with asyncio.Runner(loop_factory=Loop) as runner:
        transport, protocol = runner.run(scene())
    assert isinstance(protocol, Client)
    assert isinstance(transport, ObservedTransport)
    assert {name: len(steps) for name, steps in recorder.records.items()} == {"measured-7": 4}


def test_protocol_with_a_buffer_of_its_own_gets_all_bytes_and_is_recorded(shop: Any, recorder: Recorder) -> None:
    class Buffered(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.buffer, self.got = bytearray(4), b""

        def get_buffer(self, sizehint: int) -> bytearray:
            return self.buffer

        def buffer_updated(self, nbytes: int) -> None:
            self.got += self.buffer[:nbytes]
            shop.simple()

    inner = Buffered()
    ObservedProtocol(inner, recorder, re.compile(rb"measured-\d+")).data_received(b"measured-7")
    recorder.end()
    assert (inner.got, len(recorder.records["measured-7"])) == (b"measured-7", 2 * 3)
