"""``syncer run`` decides about the errors of its event loop."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import asyncio
from unittest.mock import patch
from syncer.cli.app import app
from syncer.daemon.runner import Summary

CLOSED = RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")

async def daemon(*_, **__):
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "Fatal error on SSL protocol", "exception": CLOSED})
    loop.call_exception_handler({"message": "a callback failed", "exception": ValueError("a bug")})
    return Summary()

with patch("syncer.daemon.runner.run", daemon):
    app(["run", "--config", "syncer.yaml"])
"""


def test_run_logs_loop_errors_but_closed_connections(file: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "a callback failed" in done.stdout + done.stderr
    assert "SSL" not in done.stdout + done.stderr
