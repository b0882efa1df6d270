"""The control socket: only its user may connect, a dead daemon's is replaced, and each client is limited."""

import asyncio
import contextlib
import io
import json
import os
import select
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from syncer.api import ConfigError, SyncerError
from syncer.cli.daemon import NoDaemon, Unanswered, ask
from syncer.config import Loaded, config_with
from syncer.names import SingleNamespace
from syncer.observe import logs
from syncer.observe.control import MOST_ANSWERS, MOST_CLIENTS, Control, is_peer_trusted

pytestmark = pytest.mark.real_time


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


def configured(path: Path | str) -> Loaded:
    given = {"cluster": "vc", "host": {"namespace": "home"}, "control": {"socket": str(path)}}
    return Loaded(config_with([], translator=SingleNamespace).model_validate(given))


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


SLOW = b"GET /slow HTTP/1.1\r\n\r\n"
#: Seconds, after which a test gives up.
PATIENCE = 60.0


async def eventually(look: Callable[[], bool]) -> None:
    """Wait until this is true."""
    async with asyncio.timeout(PATIENCE):
        while not look():  # noqa: ASYNC110  # there are several things to look at
            await asyncio.sleep(0.01)


def slow(room: asyncio.Event) -> tuple[Control, list[bool], list[bool]]:
    """Answer ``GET /slow`` when there is room; the lists grow with each answer that has begun, and that has ended."""
    begun: list[bool] = []
    ended: list[bool] = []

    async def wait(given: Mapping[str, Any]) -> Any:
        begun.append(True)
        try:
            await room.wait()
            return {"error": "none"}
        finally:
            ended.append(True)

    made = Control()
    made.add("GET", "/slow", wait)
    return made, begun, ended


async def asked(path: Path, method: str, question: str, given: Mapping[str, Any] | None = None) -> Any:
    return await asyncio.to_thread(ask, configured(path), method, question, given)


async def raw(path: Path, *sent: bytes) -> tuple[int, Any]:
    """Send these bytes as they are; return the status and the answer, ``(0, None)`` where the daemon hangs up."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    for part in sent:
        writer.write(part)
        await writer.drain()
    try:
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    except ConnectionResetError:
        head = body = b""
    writer.close()
    return (int(head.split()[1]), json.loads(body)["error"]) if head else (0, None)


def test_question_is_answered_on_the_event_loop(path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        asked_on: list[asyncio.AbstractEventLoop] = []

        async def note(given: Mapping[str, Any]) -> Any:
            asked_on.append(asyncio.get_running_loop())

        made = control()
        made.add("GET", "/note", note)
        async with made.serving(str(path)):
            given = {"kind": "pods", "key": "shop/ä b"}
            assert await asked(path, "GET", "/echo", given) == {"cluster": "vc", **given}
            assert await asked(path, "POST", "/echo", {"all": True}) == {"cluster": "vc", "all": True}
            await asked(path, "GET", "/note")
        assert asked_on == [loop]

    asyncio.run(scenario())
    assert not path.exists()


@pytest.mark.parametrize(
    ("method", "question", "message"),
    [
        ("POST", "/refuse", "not today"),
        ("POST", "/break", "RuntimeError; the daemon's log has the details"),
        ("GET", "/nothing", r"GET /nothing is not known to this daemon; it answers GET /echo, POST /echo"),
    ],
)
async def test_refused_request_has_the_reason(path: Path, method: str, question: str, message: str) -> None:
    async with control().serving(str(path)):
        with pytest.raises(Unanswered, match=message):
            await asked(path, method, question)


@pytest.mark.parametrize(
    ("holder", "message"), [("bob_1", "bob_1 leads; run the command there"), ("", "no replica leads")]
)
def test_candidate_names_the_leader(holder: str, message: str) -> None:
    async def nothing(given: Mapping[str, Any]) -> Any:
        raise AssertionError

    made = Control(led_by=lambda: holder)
    made.add("GET", "/parked", nothing)
    status, answer = asyncio.run(made.answer("GET", "/parked", {}))
    assert status == 503
    assert message in answer["error"]


async def test_socket_is_for_its_own_user_alone_and_the_umask_stays(path: Path) -> None:
    modes, before = [], os.umask(0o022)
    try:
        async with control().serving(str(path)):
            modes = [mode(path), os.umask(0o022)]
    finally:
        os.umask(before)
    assert modes == [0o600, 0o022]


async def test_socket_of_a_dead_daemon_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with control().serving(str(path)):
        assert await asked(path, "GET", "/echo") == {"cluster": "vc"}


async def test_socket_of_a_live_daemon_is_left_alone(path: Path) -> None:
    async with control().serving(str(path)):
        with pytest.raises(ConfigError, match=r"control\.socket: .*another daemon listens there"):
            await control().serving(str(path)).__aenter__()
        assert await asked(path, "GET", "/echo") == {"cluster": "vc"}


def test_socket_of_a_daemon_that_is_too_busy_is_left_alone(path: Path) -> None:
    async def scenario() -> None:
        with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as first:
            busy.bind(str(path))
            busy.listen(0)
            first.connect(str(path))  # the only place in the backlog
            with pytest.raises(ConfigError, match="too busy to answer"):
                await control().serving(str(path)).__aenter__()

    asyncio.run(scenario())
    assert path.exists()


def test_file_that_is_no_socket_is_left_alone(path: Path) -> None:
    path.write_text("mine")

    async def scenario() -> None:
        with pytest.raises(ConfigError, match="a file that is no socket"):
            await control().serving(str(path)).__aenter__()

    asyncio.run(scenario())
    assert path.read_text() == "mine"


async def test_daemon_that_closes_late_leaves_the_socket_of_the_next(path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with control().serving(str(path)):
            remove(path)
            await stack.enter_async_context(control().serving(str(path)))
        assert await asked(path, "GET", "/echo") == {"cluster": "vc"}


@pytest.mark.parametrize("name", ["no-such-folder/s", "x" * 120])
def test_socket_that_cant_be_made_is_a_warning(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with control().serving(str(tmp_path / name)):
            pass

    stream = io.StringIO()
    logs.configure("warning", "json", stream=stream)
    try:
        asyncio.run(scenario())
    finally:
        logs.configure()
    assert "no control socket" in stream.getvalue()


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\n[1]", 400, "expected a JSON object"),
        (b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\n{]", 400, "expected a JSON object"),
        (b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\n\xff\xfe", 400, "expected a JSON object"),
        (b"POST /echo HTTP/1.1\r\nContent-Length: -3\r\n\r\n", 400, "expected a Content-Length"),
        ("POST /echo HTTP/1.1\r\nContent-Length: ٣\r\n\r\n".encode(), 400, "expected a Content-Length"),
        (b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "expected a Content-Length"),
        (b"POST /echo HTTP/1.1\r\ncontent-length: 65537\r\n\r\n", 413, "more than 65536 bytes"),
        (b"POST /echo HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413, "more than 65536 bytes"),
        (b"GET /echo HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431, "more than 16384 bytes"),
        (b"hello\r\n\r\n", 400, "expected HTTP/1.1"),
        (b"GET /echo SPDY\r\n\r\n", 400, "expected HTTP/1.1"),
        (b"GET http://[::1/echo HTTP/1.1\r\n\r\n", 400, "expected HTTP/1.1"),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_malformed_question_is_refused(path: Path, sent: bytes, status: int, message: str) -> None:
    async with control().serving(str(path)):
        found, why = await raw(path, sent)
        assert (found, message in why) == (status, True), why
        assert await asked(path, "GET", "/echo") == {"cluster": "vc"}


@pytest.mark.parametrize("sent", [b"", b"GET /echo HT", b"POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\n{"])
async def test_client_that_sends_no_whole_question_is_refused_in_time(
    path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr("syncer.observe.control.CLIENT_SECONDS", 0.05)
    async with control().serving(str(path)):
        assert await raw(path, sent) == (408, "the request was not complete after 0.05 s")


async def test_client_that_reads_no_answer_is_hung_up_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.observe.control.CLIENT_SECONDS", 0.05)

    async def much(given: Mapping[str, Any]) -> Any:
        return "x" * 10_000_000

    made = Control()
    made.add("GET", "/much", much)
    async with made.serving(str(path)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))
            client.sendall(b"GET /much HTTP/1.1\r\n\r\n")
            hung_up = select.poll()
            hung_up.register(client, select.POLLHUP)
            assert await asyncio.to_thread(hung_up.poll, PATIENCE * 1000)
            client.settimeout(PATIENCE)
            with contextlib.suppress(ConnectionResetError):
                assert len(await asyncio.to_thread(client.makefile("rb").read)) < 10_000_000


async def test_answer_that_takes_too_long_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.observe.control.ANSWER_SECONDS", 0.05)
    made, _, ended = slow(asyncio.Event())
    async with made.serving(str(path)):
        with pytest.raises(Unanswered, match=r"gave no answer in 0\.05 s"):
            await asked(path, "GET", "/slow")
        assert ended == [True]


async def test_requests_beyond_the_most_are_refused_for_now(path: Path) -> None:
    room = asyncio.Event()
    made, begun, ended = slow(room)
    async with made.serving(str(path)):
        answers = [asyncio.create_task(raw(path, SLOW)) for _ in range(MOST_ANSWERS + 2)]
        await eventually(lambda: len(begun) + sum(task.done() for task in answers) == len(answers))
        done = [task for task in answers if task.done()]
        waiting = [task for task in answers if not task.done()]
        assert {task.result() for task in done} == {
            (503, f"the daemon answers {MOST_ANSWERS} requests already; try again later")
        }
        assert (len(done), len(waiting)) == (2, MOST_ANSWERS)
        room.set()
        await asyncio.wait(waiting)
        assert len(ended) == MOST_ANSWERS
        assert await raw(path, SLOW) != (0, None)


async def test_clients_beyond_the_most_are_hung_up_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.observe.control.CLIENT_SECONDS", 10 * PATIENCE)
    async with control().serving(str(path)):
        silent = [await asyncio.open_unix_connection(str(path)) for _ in range(MOST_CLIENTS)]
        assert await raw(path, b"GET /echo HTTP/1.1\r\n\r\n") == (0, None)
        for _, writer in silent:
            writer.close()
        async with asyncio.timeout(PATIENCE):
            while await raw(path, b"GET /refused HTTP/1.1\r\n\r\n") == (0, None):
                pass
        assert await asked(path, "GET", "/echo") == {"cluster": "vc"}


async def test_clients_are_hung_up_on_at_the_end(path: Path) -> None:
    made, begun, ended = slow(asyncio.Event())
    async with made.serving(str(path)):
        waiting = asyncio.create_task(raw(path, SLOW))
        await eventually(lambda: len(begun) == 1)
    assert ended == [True]
    assert await waiting == (0, None)


def test_missing_daemon_is_an_error_with_the_path_of_its_socket(path: Path) -> None:
    with pytest.raises(NoDaemon, match=r"no daemon of virtual cluster vc answers at .*kubectl -n NAMESPACE exec"):
        ask(configured(path), "GET", "/parked")
    with pytest.raises(NoDaemon, match="can't be queried"):
        ask(configured("0"), "GET", "/parked")


def test_silent_daemon_is_not_taken_for_a_missing_daemon(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands go on by themselves where there is none: without the deletion breaker, or to uninstall."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        hanging_up = Thread(target=lambda: listening.accept()[0].close())
        hanging_up.start()
        with pytest.raises(Unanswered, match=r"a daemon listens at .*gave no answer"):
            ask(configured(path), "GET", "/parked")
        hanging_up.join()
        monkeypatch.setattr("syncer.cli.daemon.PATIENCE", 0.01)
        with pytest.raises(Unanswered, match="gave no answer"):
            ask(configured(path), "GET", "/parked")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("syncer.cli.daemon._Connection.connect", refused)
    with pytest.raises(Unanswered, match="belongs to another user"):
        ask(configured(path), "GET", "/parked")


@pytest.mark.parametrize("folder", ["/tmp", "/var/lib/some/where"])
def test_usual_path_is_short_enough_for_every_name(folder: str) -> None:
    def usual(cluster: str, namespace: str) -> str:
        given = {"cluster": cluster, "host": {"namespace": namespace}}
        made = config_with([], translator=SingleNamespace).model_validate(given)
        return made.control_socket({"TMPDIR": folder})

    assert usual("vc", "home") == f"{folder}/vsyncer-{os.geteuid()}/vc.home.sock"
    paths = {usual("c" * 40, "n" * 62 + last) for last in "ab"}
    assert len(paths) == 2
    assert all(len(path) < 104 for path in paths)


def test_folder_of_the_usual_path_is_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / f"vsyncer-{os.geteuid()}"

    async def scenario() -> None:
        async with Control().serving(str(folder / "vc.sock")):
            assert mode(folder) == 0o700
            assert mode(folder / "vc.sock") == 0o600

    asyncio.run(scenario())
    folder.chmod(0o755)
    with pytest.raises(ConfigError, match="not a folder of this user alone"):
        asyncio.run(scenario())
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="not a folder of this user alone"):
        asyncio.run(scenario())


def test_peer_of_another_user_is_not_trusted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert is_peer_trusted(one)
        monkeypatch.setattr("struct.unpack", lambda *_: (1, 4711, 4711))
        assert not is_peer_trusted(one)
