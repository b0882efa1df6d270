"""Other users of the machine get nothing of the daemon's socket, and a tenant's text nothing of a terminal."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_scene import HostileScene, eventually

from hack.bench.daemon import Process
from syncer.api import Obj, Resource
from syncer.testing.objects import build, crd

ONE = pytest.mark.translators("single-namespace", reason="no translator sees the socket")
PAPERS = Resource("example.org/v1", "Paper", "papers")
ISSUERS = Resource("example.org/v1", "Issuer", "issuers")
#: Listens as another user, and prints what a client sends.
SQUATTER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listening.bind(sys.argv[1])
os.setuid(65534)
listening.listen()
print("listens", flush=True)
client, _ = listening.accept()
print(client.recv(10_000) or "nothing", flush=True)
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the socket, with the name of the default one, where other users find it and its path is short."""
    with tempfile.TemporaryDirectory(dir="/tmp") as host_key:
        Path(host_key).chmod(0o755)
        found = Path(host_key) / f"vsyncer-{os.geteuid()}"
        monkeypatch.setattr(Process, "socket", property(lambda self: found / "control.sock"))
        yield found


@ONE
def test_socket_is_in_a_folder_of_its_own_user(hostile: HostileScene, folder: Path) -> None:
    """On 0aeb964 there is no folder of the daemon's own, and so no socket."""
    hostile.start()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert hostile.daemon.socket.stat().st_mode & 0o777 == 0o600
    assert hostile.parked() == []


@ONE
def test_daemon_puts_no_socket_where_others_may_write(hostile: HostileScene, folder: Path) -> None:
    """On 0aeb964 it does."""
    folder.mkdir()
    folder.chmod(0o777)
    hostile.start(wait=False)
    assert hostile.daemon.wait() == 2
    assert "it is not a folder of this user alone" in hostile.daemon.log_text()


@ONE
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_command_asks_no_daemon_of_another_user(hostile: HostileScene, folder: Path) -> None:
    """On 0aeb964 it sends its request to whoever listens: `assert "b'GET /parked…" == 'nothing'`."""
    folder.mkdir(mode=0o700)
    process = Process(hostile.config(), hostile.folder, command=hostile.cli)
    squatter = subprocess.Popen(
        [sys.executable, "-c", SQUATTER, str(process.socket)], stdout=subprocess.PIPE, text=True
    )
    assert squatter.stdout
    try:
        assert squatter.stdout.readline() == "listens\n"
        result = process.run("parked")
        assert squatter.stdout.readline() == "nothing\n"
    finally:
        squatter.kill()
        squatter.wait()
        squatter.stdout.close()
    assert result.returncode != 0
    assert "belongs to another user" in result.stderr


# -- texts of tenants ------------------------------------------------------------------------------


def _defined(hostile: HostileScene) -> dict[str, Any]:
    """Return a configuration with Papers, which name an Issuer and its kind."""
    for server in (hostile.tenant, hostile.operator):
        for each in (PAPERS, ISSUERS):
            server.put(crd(str(each)))
    papers = {"references": {"spec.ref.name": [str(ISSUERS)]}}
    return {"sync": {"custom": {str(PAPERS): papers, str(ISSUERS): {}}}}


def _paper(name: str, kind: str) -> Obj:
    return build(PAPERS, name, spec={"ref": {"name": "a", "kind": kind}})


@ONE
def test_text_of_a_tenant_moves_no_cursor(hostile: HostileScene) -> None:
    r"""On 0aeb964 the table has the tenant's control characters: `assert ['\x9b', '\x07', '\u202e'] == []`."""
    hostile.start(**_defined(hostile))
    hostile.tenant.put(_paper("red", "\x1b[2J\x9b31m\x07Red\u202e"))
    eventually(hostile.parked, "it is parked")
    for form in ("table", "wide", "json", "yaml"):
        output = hostile.output_of("parked", "-o", form)
        assert "Red" in output
        assert [each for each in output if ord(each) in (0x1B, 0x9B, 0x07, 0x202E)] == []


@ONE
def test_long_text_of_a_tenant_is_cut_before_it_is_searched(hostile: HostileScene) -> None:
    """On 0aeb964 the whole of it is searched and kept: `assert 1200062 < 5000`."""
    hostile.start(**_defined(hostile))
    hostile.tenant.put(_paper("short", "Other"))
    eventually(hostile.parked, "it is parked")
    before = hostile.daemon.cpu()
    for number in range(5):
        hostile.tenant.put(_paper(f"long-{number}", "vc " * 400_000))
    found = eventually(lambda: each if len(each := hostile.parked()) == 6 else None, "all are parked")
    hostile.serves_others()
    assert max(len(each["reason"]) for each in found) < 5000
    events = [each["message"] for each in hostile.tenant.objects("events")]
    assert max(map(len, events)) <= 1024
    assert hostile.daemon.cpu() - before < 4
