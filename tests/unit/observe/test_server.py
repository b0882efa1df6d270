"""The HTTP server behind metrics and health."""

import socket
import threading
import urllib.error
import urllib.request
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from syncer.api import ConfigError
from syncer.observe.metrics import Metrics
from syncer.observe.server import (
    FREE_WITHIN,
    MOST_CLIENTS,
    HostPort,
    Server,
    metrics_app,
    parse_address,
    reply,
    routes,
    serve,
)

#: Timeout of a kubelet's probe by default, in seconds.
PROBE_SECONDS = 1.0
#: Seconds, after which a test gives up.
PATIENCE = 60.0


@pytest.fixture
def no_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server end no connection because of its age, however slow the machine is."""
    monkeypatch.setattr("syncer.observe.server._Handler.timeout", 10 * PATIENCE)
    monkeypatch.setattr("syncer.observe.server.REQUEST_SECONDS", 10 * PATIENCE)


def get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", HostPort("", 8080)),
        ("127.0.0.1:9090", HostPort("127.0.0.1", 9090)),
        ("[::1]:9090", HostPort("::1", 9090)),
        ("localhost:0", HostPort("localhost", 0)),
        ("", None),
        ("0", None),
    ],
)
def test_address_is_read(text: str, address: HostPort | None) -> None:
    assert parse_address(text, setting="metrics.address") == address


@pytest.mark.parametrize("text", ["8080", "host:", ":http", ":65536", "::1:80", "http://host:80/", ":-1", ":١"])
def test_address_that_is_none_names_the_setting_and_the_right_form(text: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.address: .*':8080'"):
        parse_address(text, setting="metrics.address")


def test_metrics_are_served_under_their_path_alone() -> None:
    server = serve("127.0.0.1:0", metrics_app(Metrics(version="9").registry), setting="metrics.address")
    assert server
    try:
        status, text = get(server.port, "/metrics")
        assert status == 200
        assert "syncer_build_info{" in text
        assert get(server.port, "/") == (404, "no such page; there are /metrics\n")
        assert get(server.port, "/metricsx")[0] == 404
    finally:
        server.close()


def test_address_without_host_is_every_address() -> None:
    server = serve(":0", routes({"/x": lambda _, start: reply(start, "200 OK", "x")}), setting="health.address")
    assert server
    try:
        assert get(server.port, "/x") == (200, "x")
    finally:
        server.close()


def test_server_that_is_off_is_none() -> None:
    assert serve("0", routes({}), setting="metrics.address") is None


def test_port_in_use_is_one_clear_error_and_is_free_again_after_close() -> None:
    first = Server(HostPort("127.0.0.1", 0), routes({}), setting="metrics.address")
    with pytest.raises(ConfigError, match=r"health\.address: can't listen on 127\.0\.0\.1:\d+: the port is in use"):
        Server(HostPort("127.0.0.1", first.port), routes({}), setting="health.address")
    port = first.port
    first.close()
    Server(HostPort("127.0.0.1", port), routes({}), setting="health.address").close()


def test_address_of_another_machine_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"health\.address: can't listen on 192\.0\.2\.1:0"):
        Server(HostPort("192.0.2.1", 0), routes({}), setting="health.address")


def test_client_waits_less_for_a_thread_than_a_probe_does() -> None:
    assert FREE_WITHIN < PROBE_SECONDS


@pytest.mark.usefixtures("no_timeouts")
def test_oldest_client_makes_way_for_a_new_one_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.observe.server.FREE_WITHIN", PATIENCE)
    server = serve(
        "127.0.0.1:0", routes({"/x": lambda _, start: reply(start, "200 OK", "x")}), setting="health.address"
    )
    assert server
    silent: list[socket.socket] = []
    try:
        for number in range(3 * MOST_CLIENTS):
            silent.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
            silent[-1].sendall(b"GET /x HTT" if number % 2 else b"GET /x HTTP/1.1\r\n")
        for _ in range(3):
            assert get(server.port, "/x") == (200, "x")
        assert silent[2 * MOST_CLIENTS].recv(100) == b"", "the server has disconnected the oldest"
        silent[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            silent[-1].recv(100)
    finally:
        for each in silent:
            each.close()
        server.close()


@pytest.mark.usefixtures("no_timeouts")
def test_client_that_is_being_answered_keeps_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.observe.server.FREE_WITHIN", 0.1)
    go_on = threading.Event()
    entered = threading.Semaphore(0)

    def app(_: WSGIEnvironment, start: StartResponse) -> list[bytes]:
        entered.release()
        go_on.wait(10 * PATIENCE)
        return reply(start, "200 OK", "x")

    server = serve("127.0.0.1:0", routes({"/x": app}), setting="metrics.address")
    assert server
    busy: list[socket.socket] = []
    try:
        for _ in range(MOST_CLIENTS):
            busy.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
            busy[-1].sendall(b"GET /x HTTP/1.0\r\n\r\n")
            assert entered.acquire(timeout=PATIENCE)
        with pytest.raises(OSError, match=r"reset|closed|refused|Remote end"):
            get(server.port, "/x")
        monkeypatch.setattr("syncer.observe.server.FREE_WITHIN", PATIENCE)
        go_on.set()
        assert busy[-1].recv(100).startswith(b"HTTP/1.0 200")
        assert get(server.port, "/x") == (200, "x")
    finally:
        go_on.set()
        for each in busy:
            each.close()
        server.close()


@pytest.mark.usefixtures("no_timeouts")
def test_slow_client_is_disconnected_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.observe.server.REQUEST_SECONDS", 0.5)
    server = serve("127.0.0.1:0", routes({}), setting="health.address")
    assert server
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as slow:
            slow.sendall(b"GET /x HTT")
            assert slow.recv(100) == b"", "the server has disconnected it"
    finally:
        server.close()
