"""A node that can't start leaves nothing but its logs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hack.realnode import builds, outside
from hack.realnode.node_site import NodeSite


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeSite:
    """Return a place in a folder of the test, where a node could run."""
    monkeypatch.setattr(NodeSite, "folder", tmp_path / "node")
    monkeypatch.setattr(outside, "why_not", lambda: "")
    monkeypatch.setattr(outside, "install", lambda: None)
    monkeypatch.setattr(outside, "KUBELET_SETTINGS", ())
    monkeypatch.setattr("hack.realnode.node_site.hierarchies", list)
    if not shutil.which("ip"):  # which deletes the link of a node that ran
        monkeypatch.setattr("subprocess.run", lambda *_, **__: None)
    return NodeSite("0badcafe")


def test_node_with_failed_image_builds_leaves_nothing(site: NodeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise RuntimeError("no Go here")

    monkeypatch.setattr(builds, "write_images", broken)
    with pytest.raises(RuntimeError, match="no Go here"):
        outside.up(site)
    assert not site.folder.exists()


def test_shell_that_is_still_to_become_the_node_has_not_begun(site: NodeSite) -> None:
    """In the middle of it, a process has no command line, which would pass for a node that has ended."""
    site.folder.mkdir()
    assert not outside.has_begun(site)
    noted = 'echo $$ >"$1"; read -r _; exec sleep 60'
    command = ["sh", "-c", noted, "node", str(site.folder / "pid")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as shell:
        while not (site.folder / "pid").exists() or not (site.folder / "pid").read_text():
            assert shell.poll() is None
        assert not outside.has_begun(site)
        assert shell.stdin is not None
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        while not outside.has_begun(site):
            assert shell.poll() is None
        assert b"sleep" in Path(f"/proc/{shell.pid}/cmdline").read_bytes()
        shell.kill()
    assert outside.has_begun(site), "those who wait for more recognise its end"
