"""A kubeconfig that changes while it is in use: tokens and certificates in place, another server not."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from cluster_servers import Answer, Call, Peer, serve, server_context

from syncer.api.errors import ConfigError, Unauthorized
from syncer.api.objects import Side
from syncer.clusters import credentials as credentials_module
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.clusters.login_files import LoginFiles
from syncer.clusters.transport import HttpRequest

pytestmark = pytest.mark.real_time

CA = trustme.CA()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def write(path: Path, server: str, *, ca: bytes = CA.cert_pem.bytes(), current: str = "c", **user: Any) -> None:
    """Write a kubeconfig with the context c, and d, which leads to another server."""
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": current,
                "contexts": [
                    {"name": "c", "context": {"cluster": "k", "user": "u"}},
                    {"name": "d", "context": {"cluster": "else", "user": "u"}},
                ],
                "clusters": [
                    {"name": "k", "cluster": {"server": server, "certificate-authority-data": b64(ca)}},
                    {"name": "else", "cluster": {"server": "https://10.9.9.9:6443"}},
                ],
                "users": [{"name": "u", "user": user}],
            }
        )
    )


def certificate(name: str) -> dict[str, Any]:
    leaf = CA.issue_cert(name)
    chain = b"".join(each.bytes() for each in leaf.cert_chain_pems)
    return {"client-certificate-data": b64(chain), "client-key-data": b64(leaf.private_key_pem.bytes())}


class Moved:
    """How often a client was told that its server is another."""

    number = 0

    def __call__(self) -> None:
        self.number += 1


@contextlib.asynccontextmanager
async def using(
    answer: Answer, path: Path, moved: Moved, monkeypatch: pytest.MonkeyPatch, **user: Any
) -> AsyncIterator[tuple[Peer, SideClient, str]]:
    """Yield a server over TLS, a client with a kubeconfig at ``path``, and the server's URL."""
    monkeypatch.setattr(credentials_module, "CHECK_SECONDS", 0.0)
    async with serve(answer, server_context(CA.issue_cert("127.0.0.1"), CA)) as peer:
        url = f"https://127.0.0.1:{peer.port}"
        write(path, url, **user)
        client = connect(ConnectionSettings(str(path)), side=Side.HOST, environ={}, moved=moved)
        try:
            yield peer, client, url
        finally:
            await client.close()


async def output(client: SideClient) -> Any:
    return (await client.fetch("/"))["said"]


async def answer_json(call: Call) -> None:
    """Tell the token and the name in the client's certificate."""
    shown = call.writer.get_extra_info("ssl_object").getpeercert() or {}
    name = next((value for kind, value in shown.get("subjectAltName", ()) if kind == "DNS"), "")
    token = (call.header("Authorization") or "").removeprefix("Bearer ")
    await call.reply(200, f'{{"said": "{token or name}"}}'.encode())


@pytest.mark.parametrize(
    ("before", "after", "connections"),
    [
        pytest.param({"token": "old"}, {"token": "new"}, 1, id="inline token, on the same connection"),
        pytest.param(certificate("old"), certificate("new"), 2, id="inline certificate, on a new connection"),
        pytest.param(certificate("old"), {"token": "new"}, 2, id="token in place of a certificate"),
    ],
)
async def test_changed_login_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], after: dict[str, Any], connections: int
) -> None:
    path, moved = tmp_path / "k", Moved()
    async with using(answer_json, path, moved, monkeypatch, **before) as (peer, client, url):
        assert await output(client) == "old"
        write(path, url, **after)
        assert [await output(client) for _ in range(2)] == ["new", "new"]
        assert (peer.connections, moved.number) == (connections, 0)


async def test_refused_token_is_read_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k"

    async def answer(call: Call) -> None:
        await call.reply(200 if call.header("Authorization") == "Bearer new" else 401)

    async with using(answer, path, Moved(), monkeypatch, token="old") as (_, client, url):
        monkeypatch.setattr(credentials_module, "CHECK_SECONDS", 3600.0)
        with pytest.raises(Unauthorized):
            await client.fetch("/")
        write(path, url, token="new")
        await client.fetch("/")


async def test_watch_goes_on_while_tokens_and_certificates_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, moved = tmp_path / "k", Moved()
    go_on = asyncio.Event()

    async def answer(call: Call) -> None:
        if call.path != "/watch":
            return await answer_json(call)
        await call.start_chunked()
        await go_on.wait()
        await call.chunk(b"still here\n")
        await call.chunk(b"")
        return None

    async with (
        using(answer, path, moved, monkeypatch, token="old") as (_, client, url),
        client.transport.stream(HttpRequest("GET", "/watch")) as stream,
    ):
        write(path, url, token="new")
        assert await output(client) == "new"
        write(path, url, **certificate("new.example"))
        assert await output(client) == "new.example"
        go_on.set()
        assert [batch async for batch in stream] == [[b"still here"]]


@pytest.mark.parametrize("ca", [CA.cert_pem.bytes() + trustme.CA().cert_pem.bytes(), CA.cert_pem.bytes() + b"\n"])
async def test_ca_bundle_may_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ca: bytes) -> None:
    path, moved = tmp_path / "k", Moved()
    async with using(answer_json, path, moved, monkeypatch, token="old") as (_, client, url):
        await output(client)
        write(path, url, ca=ca, token="new")
        assert await output(client) == "new"
        assert moved.number == 0


@pytest.mark.parametrize("what", ["server", "ca", "program", "file"])
async def test_login_with_another_server_ca_program_or_file_is_reported_and_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path, moved = tmp_path / "k", Moved()
    async with using(answer_json, path, moved, monkeypatch, token="old") as (_, client, url):
        await output(client)
        if what == "server":
            write(path, "https://127.0.0.1:1", token="new")
        elif what == "program":
            write(path, url, exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "steal"})
        elif what == "file":
            write(path, url, tokenFile="/var/run/secrets/kubernetes.io/serviceaccount/token")
        else:
            write(path, url, ca=trustme.CA().cert_pem.bytes(), token="new")
        assert [await output(client) for _ in range(3)] == ["old"] * 3
        assert moved.number == 1


async def test_broken_kubeconfig_leaves_the_former_in_use_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "k"
    async with using(answer_json, path, Moved(), monkeypatch, token="old") as (_, client, url):
        await output(client)
        path.write_text("half: {written")
        assert await output(client) == "old"
        assert "can't be renewed, the old ones stay in use" in caplog.text
        path.unlink()
        assert await output(client) == "old"
        write(path, url, token="new")
        assert await output(client) == "new"


def test_context_is_chosen_once(tmp_path: Path) -> None:
    path = tmp_path / "k"
    write(path, "https://10.0.0.1:6443", token="old")
    files = LoginFiles(str(path), context="", environ={})
    assert files.reread() is None
    write(path, "https://10.0.0.1:6443", current="d", token="new")
    login = files.reread()
    assert login is not None
    assert (login.endpoint.host, login.token) == ("10.0.0.1", "new")
    assert files.reread() is None
    path.write_text("[]")
    with pytest.raises(ConfigError, match="not a kubeconfig"):
        files.reread()


def test_given_server_stays_when_the_files_change(tmp_path: Path) -> None:
    path = tmp_path / "k"
    write(path, "https://10.0.0.1:6443", token="old")
    files = LoginFiles(str(path), context="", environ={}, server="https://10.0.0.2:6443")
    assert files.login.endpoint.host == "10.0.0.2"
    write(path, "https://10.0.0.3:6443", token="new")
    login = files.reread()
    assert login is not None
    assert (login.endpoint.host, login.token) == ("10.0.0.2", "new")


def test_service_account_of_a_pod_needs_no_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no service account token"):
        LoginFiles("", context="", environ={"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "h"})
