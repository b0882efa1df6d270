"""The control socket: nobody else may connect, a dead daemon's is replaced, a live one's is not."""

import asyncio
import io
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from syncer.api import ConfigError, SyncerError
from syncer.cli.daemon import NoDaemon, Unanswered, ask
from syncer.config import SyncerConfig, config_with
from syncer.names import SingleNamespace
from syncer.observe import logs
from syncer.observe.control import Control


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


def config(path: Path | str) -> SyncerConfig:
    given = {"cluster": "vc", "host": {"namespace": "home"}, "control": {"socket": str(path)}}
    return config_with([], translator=SingleNamespace).model_validate(given)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def remove(path: Path) -> None:
    path.unlink()


def control() -> Control:
    """Answers with what it was given."""

    async def echo(given: Mapping[str, Any]) -> Any:
        return dict(given)

    async def refuse(given: Mapping[str, Any]) -> Any:
        raise SyncerError("not today")

    async def break_down(given: Mapping[str, Any]) -> Any:
        raise RuntimeError("s3cr3t")

    made = Control()
    made.add("GET", "/echo", echo)
    made.add("POST", "/echo", echo)
    made.add("POST", "/refuse", refuse)
    made.add("POST", "/break", break_down)
    return made


async def asked(path: Path, method: str, question: str, given: Mapping[str, Any] | None = None) -> Any:
    return await asyncio.to_thread(ask, config(path), method, question, given)


def test_questions_are_answered_on_the_event_loop(path: Path) -> None:
    async def scenario() -> None:
        server = control().serve(str(path))
        assert server
        assert await asked(path, "GET", "/echo", {"kind": "pods", "key": "shop/ä b"}) == {
            "kind": "pods",
            "key": "shop/ä b",
        }
        assert await asked(path, "POST", "/echo", {"all": True}) == {"all": True}
        server.close()

    asyncio.run(scenario())
    assert not path.exists()


@pytest.mark.parametrize(
    ("method", "question", "said"),
    [
        ("POST", "/refuse", "not today"),
        ("POST", "/break", "RuntimeError; the daemon's log says more"),
        ("GET", "/nothing", r"GET /nothing is not known to this daemon; it answers GET /echo, POST /echo"),
    ],
)
def test_what_cant_be_done_is_told(path: Path, method: str, question: str, said: str) -> None:
    async def scenario() -> None:
        server = control().serve(str(path))
        assert server
        try:
            with pytest.raises(Unanswered, match=said):
                await asked(path, method, question)
        finally:
            server.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(("holder", "said"), [("bob_1", "bob_1 leads, ask there"), ("", "nobody leads")])
def test_a_daemon_that_stands_by_says_who_leads(holder: str, said: str) -> None:
    async def nothing(given: Mapping[str, Any]) -> Any:
        raise AssertionError

    made = Control(led_by=lambda: holder)
    made.add("GET", "/parked", nothing)
    status, answer = asyncio.run(made.answer("GET", "/parked", {}))
    assert status == 503
    assert said in answer["error"]


def test_only_its_own_user_may_connect_and_the_umask_is_as_before(path: Path) -> None:
    async def scenario() -> None:
        modes, before = [], os.umask(0o022)
        try:
            server = control().serve(str(path))
            assert server
            modes = [mode(path), os.umask(0o022)]
            server.close()
        finally:
            os.umask(before)
        assert modes == [0o600, 0o022]

    asyncio.run(scenario())


def test_the_socket_of_a_dead_daemon_is_replaced(path: Path) -> None:
    async def scenario() -> None:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        server = control().serve(str(path))
        assert server
        assert await asked(path, "GET", "/echo") == {}
        server.close()

    asyncio.run(scenario())


def test_the_socket_of_a_live_daemon_is_left_alone(path: Path) -> None:
    async def scenario() -> None:
        server = control().serve(str(path))
        assert server
        with pytest.raises(ConfigError, match=r"control\.socket: .*another daemon listens there"):
            control().serve(str(path))
        assert await asked(path, "GET", "/echo") == {}
        server.close()

    asyncio.run(scenario())


def test_what_is_no_socket_is_left_alone(path: Path) -> None:
    path.write_text("mine")

    async def scenario() -> None:
        with pytest.raises(ConfigError, match="a file that is no socket"):
            control().serve(str(path))

    asyncio.run(scenario())
    assert path.read_text() == "mine"


def test_who_closes_late_leaves_the_socket_of_the_next_daemon(path: Path) -> None:
    async def scenario() -> None:
        first = control().serve(str(path))
        remove(path)
        second = control().serve(str(path))
        assert first
        assert second
        first.close()
        assert await asked(path, "GET", "/echo") == {}
        second.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("place", ["no-such-folder/s", "x" * 120])
def test_a_socket_that_cant_be_made_is_a_warning(tmp_path: Path, place: str) -> None:
    async def scenario() -> None:
        assert control().serve(str(tmp_path / place)) is None

    said = io.StringIO()
    logs.configure("warning", "json", stream=said)
    try:
        asyncio.run(scenario())
    finally:
        logs.configure()
    assert "no control socket" in said.getvalue()


def test_a_body_that_is_no_object_is_refused(path: Path) -> None:
    async def scenario() -> None:
        server = control().serve(str(path))
        assert server
        try:
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\n[1]")
            head = await reader.readline()
            writer.close()
            assert b" 400 " in head
        finally:
            server.close()

    asyncio.run(scenario())


def test_where_no_daemon_listens_the_way_to_one_is_told(path: Path) -> None:
    with pytest.raises(NoDaemon, match=r"no daemon of virtual cluster vc answers at .*kubectl -n home exec"):
        ask(config(path), "GET", "/parked")
    with pytest.raises(NoDaemon, match="can't be asked"):
        ask(config("0"), "GET", "/parked")


def test_a_daemon_that_is_there_and_does_not_answer_is_not_taken_for_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands go on by themselves where there is none: without the deletion breaker, or to drain."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        hanging_up = Thread(target=lambda: listening.accept()[0].close())
        hanging_up.start()
        with pytest.raises(Unanswered, match=r"a daemon listens at .*gave no answer"):
            ask(config(path), "GET", "/parked")
        hanging_up.join()
        monkeypatch.setattr("syncer.cli.daemon.PATIENCE", 0.01)
        with pytest.raises(Unanswered, match="gave no answer"):
            ask(config(path), "GET", "/parked")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("syncer.cli.daemon._Connection.connect", refused)
    with pytest.raises(Unanswered, match="belongs to another user"):
        ask(config(path), "GET", "/parked")


@pytest.mark.parametrize("folder", ["/tmp", "/var/lib/some/where"])
def test_the_usual_path_is_short_enough_for_every_name(folder: str) -> None:
    def usual(cluster: str, namespace: str) -> str:
        given = {"cluster": cluster, "host": {"namespace": namespace}}
        made = config_with([], translator=SingleNamespace).model_validate(given)
        return made.control_socket({"TMPDIR": folder})

    assert usual("vc", "home") == f"{folder}/vsyncer-vc.home.sock"
    paths = {usual("c" * 40, "n" * 62 + last) for last in "ab"}
    assert len(paths) == 2
    assert all(len(path) < 104 for path in paths)
