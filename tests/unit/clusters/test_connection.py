"""From settings to a client, and the messages of a failed first contact."""

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from cluster_servers import Call, free_port, serve, server_context

from syncer.api.errors import ConfigError, Unauthorized, Unreachable
from syncer.api.objects import Side
from syncer.clusters.connection import ConnectionSettings, connect, first_contact
from syncer.clusters.diagnose import why_not_for
from syncer.clusters.discovery import ServerVersion
from syncer.clusters.login import Login, Material
from syncer.clusters.transport import Endpoint

pytestmark = pytest.mark.real_time


def kubeconfig(path: Path, server: str, *, ca: trustme.CA | None = None, **user: Any) -> str:
    cluster = {"server": server}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca.cert_pem.bytes()).decode()
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return str(path)


async def test_first_contact_returns_the_version_of_the_server(tmp_path: Path) -> None:
    ca = trustme.CA()

    async def answer(call: Call) -> None:
        good = call.path == "/version" and call.header("Authorization") == "Bearer t"
        await call.reply(200 if good else 401, b'{"gitVersion": "v1.36.3"}')

    async with serve(answer, server_context(ca.issue_cert("127.0.0.1"))) as peer:
        path = kubeconfig(tmp_path / "k", f"https://127.0.0.1:{peer.port}", ca=ca, token="t")
        settings = ConnectionSettings(kubeconfig=path)
        cluster = connect(settings, side=Side.HOST, environ={})
        assert (cluster.name, cluster.side) == ("host", Side.HOST)
        assert await first_contact(cluster) == ServerVersion("v1.36.3")
        await cluster.close()


async def test_credentials_that_are_not_accepted_are_named(tmp_path: Path) -> None:
    async with serve(lambda call: call.reply(401, b'{"kind":"Status","code":401}')) as peer:
        path = kubeconfig(tmp_path / "k", f"http://127.0.0.1:{peer.port}", token="t")
        settings = ConnectionSettings(kubeconfig=path)
        cluster = connect(settings, side=Side.VIRTUAL, name="vc-1", environ={})
        with pytest.raises(Unauthorized) as caught:
            await first_contact(cluster)
        assert str(caught.value) == (
            f"virtual cluster vc-1 answers 401: the credentials from {path}, context c, user u (token) "
            "are not accepted. Renew them."
        )
        await cluster.close()


async def test_expired_client_certificate_is_named(tmp_path: Path) -> None:
    ca, ends = trustme.CA(), datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
    leaf = ca.issue_cert("u", not_before=ends - timedelta(days=1), not_after=ends)
    certificate, key = tmp_path / "u.crt", tmp_path / "u.key"
    leaf.cert_chain_pems[0].write_to_path(str(certificate))
    leaf.private_key_pem.write_to_path(str(key))
    context = server_context(ca.issue_cert("127.0.0.1"))
    async with serve(lambda call: call.reply(401, b'{"kind":"Status","code":401}'), context) as peer:
        user = {"client-certificate": "u.crt", "client-key": "u.key"}
        path = kubeconfig(tmp_path / "k", f"https://127.0.0.1:{peer.port}", ca=ca, **user)
        settings = ConnectionSettings(kubeconfig=path)
        cluster = connect(settings, side=Side.HOST, environ={})
        with pytest.raises(Unauthorized) as caught:
            await first_contact(cluster)
        assert str(caught.value) == (
            f"host cluster answers 401: the credentials from {path}, context c, user u (client certificate from "
            f"{certificate}) are not accepted; the client certificate ({certificate}) "
            "expired at 2025-03-04 05:06:07Z. Renew them."
        )
        await cluster.close()


async def test_server_that_is_not_there_is_named_with_the_file(tmp_path: Path) -> None:
    port = await free_port()
    path = kubeconfig(tmp_path / "k", f"https://127.0.0.1:{port}")
    settings = ConnectionSettings(kubeconfig=path)
    cluster = connect(settings, side=Side.VIRTUAL, environ={})
    with pytest.raises(Unreachable) as caught:
        await first_contact(cluster)
    message = str(caught.value)
    assert message.startswith(f"virtual cluster: get /version from the API: no connection to 127.0.0.1:{port}: ")
    assert message.endswith(f"(from {path}, context c, user u)")
    await cluster.close()


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[]", b"null"])
async def test_server_that_is_no_api_server_is_unreachable(tmp_path: Path, body: bytes) -> None:
    async with serve(lambda call: call.reply(200, body)) as peer:
        path = kubeconfig(tmp_path / "k", f"http://127.0.0.1:{peer.port}")
        cluster = connect(ConnectionSettings(kubeconfig=path), side=Side.HOST, environ={})
        with pytest.raises(Unreachable, match="doesn't answer as an API server: "):
            await first_contact(cluster)
        await cluster.close()


async def test_plugin_that_gives_nothing_is_unauthorized_and_nothing_is_sent(tmp_path: Path) -> None:
    async with serve(Call.reply) as peer:
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "no-such-plugin",
            "installHint": "Get it.",
        }
        path = kubeconfig(tmp_path / "k", f"http://127.0.0.1:{peer.port}", exec=plugin)
        cluster = connect(ConnectionSettings(kubeconfig=path), side=Side.HOST, environ={})
        with pytest.raises(Unauthorized) as caught:
            await first_contact(cluster)
        assert str(caught.value) == (
            f"host cluster: there are no usable credentials in {path}, context c, user u: "
            "exec plugin no-such-plugin can't be started: No such file or directory. Get it."
        )
        assert not peer.calls
        await cluster.close()


async def test_limit_of_requests_is_around_the_transport(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "k", "https://h")

    async def chosen(settings: ConnectionSettings) -> str:
        cluster = connect(settings, side=Side.HOST, environ={})
        await cluster.close()
        return type(cluster.transport).__name__

    assert await chosen(ConnectionSettings(kubeconfig=path)) == "HttpTransport"
    assert await chosen(ConnectionSettings(kubeconfig=path, qps=5, burst=10)) == "RateLimited"


def test_insisting_on_the_service_account(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "k", "https://h")
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is not set"):
        connect(ConnectionSettings(in_cluster=True), side=Side.HOST, environ={"KUBECONFIG": path})


def test_other_address_is_checked_there_or_else_in_the_certificate() -> None:
    ca, other = trustme.CA(), trustme.CA()

    async def why(certificate: trustme.LeafCert, own: str, host: str, port: int = 0) -> str:
        async with serve(lambda call: call.reply(200), server_context(certificate)) as peer:
            login = Login(Endpoint(own, peer.port), ca=Material(ca.cert_pem.bytes()))
            return await why_not_for(login, host, port or peer.port)

    def asked(*arguments: Any) -> str:
        return asyncio.run(why(*arguments))

    both = ca.issue_cert("127.0.0.1", "192.0.2.1", "api.example.org")
    assert asked(both, "localhost", "127.0.0.1") == ""
    missing = "the certificate of the virtual API server doesn't name localhost, which pods use"
    assert asked(both, "127.0.0.1", "localhost") == missing
    foreign = asked(other.issue_cert("127.0.0.1"), "127.0.0.1", "127.0.0.1")
    assert foreign.startswith("the server at 127.0.0.1:")
    assert "is not trusted: unable to get local issuer certificate" in foreign
    # Nothing listens there, so the certificate at the own address tells.
    closed = asyncio.run(free_port())
    assert asked(both, "127.0.0.1", "localhost", closed) == missing
    assert asked(ca.issue_cert("127.0.0.1", "localhost"), "127.0.0.1", "localhost", closed) == ""
