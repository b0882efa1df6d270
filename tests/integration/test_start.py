"""A daemon whose clusters don't answer yet: it is alive, not ready, names the awaited cluster, and ends on SIGTERM."""

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from hack.ports import free_port

#: Seconds, after which the test gives up.
PATIENCE = 120.0


def status(url: str) -> int:
    """Return the status of a page; 0 without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            return int(page.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def kubeconfig(path: Path) -> str:
    cluster = {"server": f"https://127.0.0.1:{free_port()}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def test_daemon_that_waits_for_its_clusters_answers_probes_and_ends_on_sigterm(tmp_path: Path) -> None:
    health, log = free_port(), tmp_path / "log"
    config = {
        "apiVersion": "vsyncer.dev/v1alpha1",
        "kind": "SyncerConfig",
        "cluster": "shop",
        "virtual": {"kubeconfig": kubeconfig(tmp_path / "virtual")},
        "host": {"kubeconfig": kubeconfig(tmp_path / "host"), "namespace": "vc-shop"},
        "networking": {"apiServer": {"host": "10.96.0.1"}},
        "metrics": {"address": "0"},
        "health": {"address": f"127.0.0.1:{health}"},
    }
    (tmp_path / "syncer.yaml").write_text(yaml.safe_dump(config))
    with log.open("wb") as out:
        command = [sys.executable, "-m", "syncer", "--config", str(tmp_path / "syncer.yaml")]
        process = subprocess.Popen(command, stderr=out)
    try:
        deadline = time.monotonic() + PATIENCE
        while status(f"http://127.0.0.1:{health}/livez") != 200 or b"no answer yet" not in log.read_bytes():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        assert status(f"http://127.0.0.1:{health}/readyz") == 500
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
