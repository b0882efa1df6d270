"""The log lines of a request: names of both sides and an identity of the attempt, whatever module logs them."""

import asyncio
import io
import json
import uuid
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from worker_bench import Bench, play

from syncer.api import Decision, Obj, Refused, apply
from syncer.observe import logs

#: The log of a module that knows nothing of requests.
log = logs.get_logger("syncer.elsewhere")

A_KEYS = {
    "cluster": "vc",
    "syncer": "maps",
    "resource": "configmaps",
    "key": "shop/a",
    "host_key": "vc-ns/a-x-shop-x-vc",
}


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    logs.configure()


def shown(level: logs.LogLevel = "debug") -> io.StringIO:
    """Log from this level on to a stream, as JSON."""
    stream = io.StringIO()
    logs.configure(level, "json", stream=stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def named(line: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a line that name its request."""
    return {name: line.get(name) for name in A_KEYS}


def test_all_lines_of_an_attempt_name_the_request_and_the_attempt() -> None:
    stream = shown()

    async def scenario(bench: Bench) -> None:
        def act(virtual: Obj, host: Obj | None) -> Decision:
            log.info("elsewhere")
            raise Refused("no")

        bench.does(act)
        for _ in range(2):
            await bench.work()

    play(scenario)
    found = [line for line in lines(stream) if line["message"] in ("elsewhere", "parked")]
    assert [line["message"] for line in found] == ["elsewhere", "parked", "elsewhere"]
    assert [named(line) for line in found] == 3 * [A_KEYS]
    first, parked, second = [uuid.UUID(line["reconcile_id"]) for line in found]
    assert first == parked
    assert first != second


def test_line_keeps_a_key_that_it_was_given() -> None:
    stream = shown()

    async def scenario(bench: Bench) -> None:
        def act(virtual: Obj, host: Obj | None) -> Decision:
            log.info("elsewhere", key="shop/other")
            return apply(host=virtual)

        bench.does(act)
        await bench.work()

    play(scenario)
    [line] = [line for line in lines(stream) if line["message"] == "elsewhere"]
    assert named(line) == {**A_KEYS, "key": "shop/other"}


def test_line_after_the_end_of_a_request_does_not_name_it() -> None:
    stream = shown()

    async def scenario(bench: Bench) -> None:
        async def later() -> None:
            await asyncio.sleep(1)
            log.info("a task of its own")

        tasks: list[asyncio.Task[None]] = []

        def act(virtual: Obj, host: Obj | None) -> Decision:
            tasks.append(asyncio.create_task(later()))
            raise Refused("no")

        bench.does(act)
        await bench.work()
        log.info("the worker again")
        await asyncio.gather(*tasks)

    play(scenario)
    after = [line for line in lines(stream) if line["message"] != "parked"]
    assert [line["message"] for line in after] == ["the worker again", "a task of its own"]
    assert [line.keys() & {*A_KEYS, "reconcile_id"} for line in after] == [set(), set()]


def test_keys_are_not_made_for_a_level_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked() -> NoReturn:
        raise AssertionError("nothing is logged")

    shown("error")

    async def scenario(bench: Bench) -> None:
        monkeypatch.setattr(uuid, "uuid4", unasked)
        await bench.work()
        assert bench.status() is None
        bench.does(Refused("no"))
        await bench.work()
        assert bench.status()

    play(scenario)
