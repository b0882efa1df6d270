"""Credentials: their headers, their renewal, and the messages when there are none."""

import asyncio
import base64
import json
import logging
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from syncer.clusters.credentials import Access, LoginCredentials
from syncer.clusters.exec_plugin import issue, parse
from syncer.clusters.login import ExecPlugin, Impersonation, LegacyProvider, Login, Material, PluginFailed
from syncer.clusters.transport import CredentialsAwaited, CredentialsFailed, Endpoint

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

PLAIN = Login(Endpoint("h", 1, tls=False, source="kube.yaml, context c, user u"))
#: Seconds, after which a test gives up.
PATIENCE = 120.0
V1 = "client.authentication.k8s.io/v1"


class Clock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def headers_of(login: Login) -> list[tuple[str, str]]:
    return list(asyncio.run(LoginCredentials(login).access()).headers)


def test_login_becomes_headers(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    assert headers_of(PLAIN) == []
    assert headers_of(replace(PLAIN, token="t")) == [("Authorization", "Bearer t")]
    assert headers_of(replace(PLAIN, token="t", token_file=file)) == [("Authorization", "Bearer from-file")]
    basic = base64.b64encode("jürgen:pä:ss".encode()).decode()
    assert headers_of(replace(PLAIN, username="jürgen", password="pä:ss")) == [("Authorization", f"Basic {basic}")]
    who = Impersonation("jane", "7", ("dev", "ops"), {"scopes/x": ("a", "b")})
    assert headers_of(replace(PLAIN, impersonation=who)) == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-scopes%2Fx", "a"),
        ("Impersonate-Extra-scopes%2Fx", "b"),
    ]


def test_line_break_in_a_token_is_refused() -> None:
    with pytest.raises(CredentialsFailed, match="line break"):
        headers_of(replace(PLAIN, token="t\r\nX-Evil: 1"))


def test_secrets_do_not_appear_in_texts() -> None:
    login = replace(PLAIN, token="s3cret", password="s3cret", username="u")
    access = asyncio.run(LoginCredentials(login).access())
    assert "s3cret" not in f"{login!r} {login} {access!r}"


async def test_token_file_is_checked_every_ten_seconds(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", Clock()
    file.write_text("one")
    credentials = LoginCredentials(replace(PLAIN, token_file=file), clock=clock)
    first = await credentials.access()
    file.write_text("two")
    clock.now += 9
    assert await credentials.access() is first
    clock.now += 2
    assert (await credentials.access()).headers == (("Authorization", "Bearer two"),)


async def test_same_content_is_the_same_access(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", Clock()
    file.write_text("one")
    credentials = LoginCredentials(replace(PLAIN, token_file=file), clock=clock)
    first = await credentials.access()
    clock.now += 11
    assert await credentials.access() is first
    assert not await credentials.refused(first)


async def test_token_file_that_goes_away_leaves_the_old_token_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, clock = tmp_path / "token", Clock()
    file.write_text("one")
    credentials = LoginCredentials(replace(PLAIN, token_file=file), clock=clock)
    first = await credentials.access()
    file.unlink()
    clock.now += 11
    with caplog.at_level(logging.WARNING):
        assert await credentials.access() is first
    assert str(file) in caplog.text


def test_credentials_without_any_token_fail(tmp_path: Path) -> None:
    with pytest.raises(CredentialsFailed, match=str(tmp_path / "none")):
        headers_of(replace(PLAIN, token_file=tmp_path / "none"))


def test_broken_certificate_is_named_and_an_expired_one_complained_of(tmp_path: Path) -> None:
    ca, ends = trustme.CA(), datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    leaf = ca.issue_cert("u", not_before=ends - timedelta(days=9), not_after=ends)
    path = tmp_path / "client.crt"
    leaf.cert_chain_pems[0].write_to_path(str(path))
    login = replace(PLAIN, certificate=Material(path=path), key=Material(data=leaf.private_key_pem.bytes()))
    credentials = LoginCredentials(login)
    assert credentials.complaint() == f"the client certificate ({path}) expired at 2020-01-02 03:04:05Z"
    assert credentials.ends() == ends.timestamp()
    path.write_text("nonsense")
    assert credentials.complaint() == f"the client certificate ({path}) can't be read: no certificate in PEM form"
    assert credentials.ends() is None
    assert LoginCredentials(PLAIN).complaint() == ""
    assert LoginCredentials(PLAIN).ends() is None


def script(tmp_path: Path, text: str, **options: object) -> ExecPlugin:
    """Return an exec plugin written in Python; ``count`` beside it counts its runs."""
    file = tmp_path / "plugin.py"
    file.write_text(
        "import json, os, sys, pathlib, time\n"
        f"count = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        "def give(**status):\n"
        f"    print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': status}}))\n" + text
    )
    return ExecPlugin(sys.executable, (str(file),), **options)  # type: ignore[arg-type]


def runs(tmp_path: Path) -> int:
    return int((tmp_path / "count").read_text() or 0)


async def begun(tmp_path: Path, count: int) -> None:
    """Wait until the plugin has been run so many times."""
    async with asyncio.timeout(PATIENCE):
        while not (tmp_path / "count").exists() or runs(tmp_path) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_plugin_is_run_once_and_again_when_its_token_ends(tmp_path: Path) -> None:
    clock = Clock()
    ends = datetime.fromtimestamp(clock.now + 100, UTC).isoformat().replace("+00:00", "Z")
    plugin = script(tmp_path, f"give(token=f't{{n}}', expirationTimestamp={ends!r})")
    credentials = LoginCredentials(replace(PLAIN, plugin=plugin), clock=clock)
    accesses = await asyncio.gather(*(credentials.access() for _ in range(5)))
    assert {access.headers for access in accesses} == {(("Authorization", "Bearer t1"),)}
    clock.now += 60
    await credentials.access()
    assert runs(tmp_path) == 1
    clock.now += 11
    assert (await credentials.access()).headers == (("Authorization", "Bearer t1"),), "it is accepted for a while"
    await eventually(credentials, "t2")
    assert runs(tmp_path) == 2


async def eventually(credentials: LoginCredentials, token: str) -> None:
    """Wait until requests have this token."""
    async with asyncio.timeout(PATIENCE):
        while (await credentials.access()).headers != (("Authorization", f"Bearer {token}"),):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_request_waits_for_a_plugin_until_its_deadline_and_the_plugin_is_named(tmp_path: Path) -> None:
    clock = Clock()
    plugin = script(tmp_path, "time.sleep(1000)")
    named = f"exec plugin {plugin.command} of kube.yaml, context c, user u has given no answer for 12 s"
    credentials = LoginCredentials(replace(PLAIN, plugin=plugin), clock=clock)
    soon = asyncio.get_running_loop().time() + 0.1
    with pytest.raises(CredentialsAwaited):
        await credentials.access(soon)
    clock.now += 12
    await begun(tmp_path, 1)
    with pytest.raises(CredentialsAwaited) as caught:
        await credentials.access(soon)
    assert str(caught.value) == credentials.complaint() == named
    assert runs(tmp_path) == 1, "the plugin goes on"


async def test_credentials_that_have_not_ended_are_used_while_a_plugin_hangs(tmp_path: Path) -> None:
    clock = Clock()
    ends = datetime.fromtimestamp(clock.now + 100, UTC).isoformat().replace("+00:00", "Z")
    plugin = script(tmp_path, f"give(token='t', expirationTimestamp={ends!r}) if n == 1 else time.sleep(1000)")
    credentials = LoginCredentials(replace(PLAIN, plugin=plugin), clock=clock)
    access = await credentials.access()
    clock.now += 99
    assert await credentials.access(0.0) is access
    assert "has given no answer" in credentials.complaint()
    clock.now += 1
    with pytest.raises(CredentialsAwaited):
        await credentials.access(0.0)
    await begun(tmp_path, 2)


@pytest.mark.parametrize("turns", range(1, 8))
def test_plugin_that_is_being_started_ends_with_the_event_loop(tmp_path: Path, turns: int) -> None:
    """``asyncio.run`` cancels every task at its end, also those that asyncio starts a program by."""
    plugin = script(tmp_path, "time.sleep(1000)")
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        asyncio.ensure_future(issue(plugin))  # noqa: RUF006 — it is found by `all_tasks`
        for _ in range(turns):
            await asyncio.sleep(0)

    try:
        loop.run_until_complete(begin())
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        _, pending = loop.run_until_complete(asyncio.wait(tasks, timeout=60)) if tasks else (set(), set())
        assert not pending
    finally:
        loop.close()


async def test_refused_credentials_stay_refused_while_a_plugin_hangs(tmp_path: Path) -> None:
    clock = Clock()
    plugin = script(tmp_path, "give(token='t') if n == 1 else time.sleep(1000)")
    credentials = LoginCredentials(replace(PLAIN, plugin=plugin), clock=clock)
    access = await credentials.access()
    clock.now += 11
    assert not await credentials.refused(access, 0.0)
    assert "has given no answer" in credentials.complaint()
    await begun(tmp_path, 2)


async def test_refused_token_is_renewed_but_not_by_every_request(tmp_path: Path) -> None:
    clock = Clock()
    plugin = script(tmp_path, "give(token='same' if n < 3 else 'new')")
    credentials = LoginCredentials(replace(PLAIN, plugin=plugin), clock=clock)
    access = await credentials.access()
    clock.now += 11
    assert await asyncio.gather(*(credentials.refused(access) for _ in range(5))) == [False] * 5
    assert runs(tmp_path) == 2
    clock.now += 11
    assert await asyncio.gather(*(credentials.refused(access) for _ in range(5))) == [True] * 5
    assert runs(tmp_path) == 3


async def test_failing_plugin_is_not_run_again_at_once(tmp_path: Path) -> None:
    clock = Clock()
    plugin = script(tmp_path, "sys.exit('no network') if n == 1 else give(token='t')")
    credentials = LoginCredentials(replace(PLAIN, plugin=plugin), clock=clock)
    for _ in range(3):
        with pytest.raises(CredentialsFailed, match="exit status 1; it printed: no network"):
            await credentials.access()
    assert runs(tmp_path) == 1
    clock.now += 11
    assert (await credentials.access()).headers == (("Authorization", "Bearer t"),)


def test_plugin_may_give_a_client_certificate(tmp_path: Path) -> None:
    leaf = trustme.CA().issue_cert("u")
    pair = {
        "clientCertificateData": leaf.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": leaf.private_key_pem.bytes().decode(),
    }
    plugin = script(tmp_path, f"give(**{pair!r})")
    login = Login(Endpoint("h", 1), plugin=plugin, insecure=True)

    async def main() -> tuple[Access, str]:
        credentials = LoginCredentials(login)
        return await credentials.access(), credentials.complaint()

    access, complaint = asyncio.run(main())
    assert access.tls is not None
    assert complaint == ""


def test_plugin_gets_the_cluster_and_its_environment(tmp_path: Path) -> None:
    plugin = script(
        tmp_path,
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "give(token=json.dumps([info, os.environ['MINE'], sys.stdin.read()]))",
        cluster={"server": "https://h:1"},
        env={"MINE": "yes"},
    )
    info, mine, stdin = json.loads(asyncio.run(issue(plugin)).token)
    assert info == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://h:1"}},
    }
    assert (mine, stdin) == ("yes", "")


def test_long_output_of_a_plugin_is_read_and_its_end_kept(tmp_path: Path) -> None:
    plugin = script(tmp_path, "sys.stderr.write('x' * 3_000_000 + ' the end'); sys.exit(3)")
    with pytest.raises(PluginFailed) as caught:
        asyncio.run(issue(plugin))
    assert str(caught.value).endswith("x the end")
    assert len(str(caught.value)) < 3000


def test_plugin_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    plugin = script(tmp_path, "import subprocess\nsubprocess.run(['sleep', '1000'])")
    with pytest.raises(PluginFailed, match=r"gave no answer in 1\.5 s"):
        asyncio.run(issue(plugin, seconds=1.5))


#: Waits until the plugin has exited, which isn't reaped yet, and keeps its output open.
_LEFT = """
until grep -q "^State:.Z" /proc/$PPID/status; do sleep 0.01; done
echo $$ >child.new; mv child.new child; exec sleep 1000
"""


def test_child_that_a_plugin_leaves_with_its_output_is_ended(tmp_path: Path) -> None:
    start = f"import subprocess\nsubprocess.Popen(['sh', '-c', {_LEFT!r}], cwd={str(tmp_path)!r})"
    plugin = script(tmp_path, start)
    child = tmp_path / "child"

    async def main() -> None:
        task = asyncio.create_task(issue(plugin))
        while not child.exists():  # noqa: ASYNC110 — another process makes it
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    status = Path(f"/proc/{child.read_text().strip()}/status")
    while _runs(status):
        time.sleep(0.01)


def _runs(status: Path) -> bool:
    try:
        return "State:\tZ" not in status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_plugin_that_is_not_installed_shows_the_hint() -> None:
    plugin = ExecPlugin("no-such-plugin-here", install_hint="Install it with: brew install it\n")
    with pytest.raises(PluginFailed) as caught:
        asyncio.run(issue(plugin))
    assert str(caught.value) == (
        "exec plugin no-such-plugin-here can't be started: No such file or directory. Install it with: brew install it"
    )


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (b"", "printed no ExecCredential"),
        (b"[]", "printed no ExecCredential"),
        (b'{"apiVersion": "client.authentication.k8s.io/v1"}', "printed no ExecCredential"),
        (b'{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "t"}}', "answered as"),
        (b'{"apiVersion": "client.authentication.k8s.io/v1", "status": {}}', "neither a token nor"),
        (b'{"apiVersion": "client.authentication.k8s.io/v1", "status": {"clientCertificateData": "x"}}', "neither"),
    ],
)
def test_output_of_a_plugin_is_checked(output: bytes, complaint: str) -> None:
    with pytest.raises(PluginFailed, match=f"exec plugin p .*{complaint}"):
        parse(ExecPlugin("p"), output)


def test_legacy_provider_is_left_to_the_kubernetes_package() -> None:
    claims = base64.urlsafe_b64encode(b'{"exp": 99999999999}').decode().rstrip("=")
    token = f"h.{claims}.s"
    assert asyncio.run(issue(LegacyProvider("oidc", {"id-token": token}))).token == token
    with pytest.raises(PluginFailed, match="auth provider oidc gave no token"):
        asyncio.run(issue(LegacyProvider("oidc", {"id-token": "not a token"})))
