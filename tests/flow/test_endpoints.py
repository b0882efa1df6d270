"""Metrics, health pages and the control socket of a running engine, asked over their sockets, in real time."""

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import Daemon, Tenant, Two, built_in, configured, serving

from hack.ports import free_port
from syncer.config import SyncerConfig
from syncer.engine import endpoints
from syncer.observe.health import Heartbeat

MAPS = built_in("configmaps")


def page(address: str, path: str) -> tuple[int, str]:
    """The status and the text of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def shown(
    two: Two,
    tmp_path: Path,
    scene: Callable[[Daemon, SyncerConfig], Coroutine[Any, Any, None]],
    *,
    deadline: float = 60.0,
) -> None:
    """Play a scene with an engine that serves all its endpoints; ``deadline`` is the heartbeat's."""
    given = {
        "metrics": {"address": f"127.0.0.1:{free_port()}"},
        "health": {"address": f"127.0.0.1:{free_port()}"},
        "control": {"socket": str(tmp_path / "s")},
    }

    async def scenario() -> None:
        tenant = Tenant(two.virtual)
        plain = configured(tenant, MAPS)
        config = type(plain).model_validate(plain.model_dump(by_alias=True, exclude_unset=True) | given)
        heartbeat = Heartbeat(deadline=deadline)
        async with (
            serving(two.host, [tenant], MAPS) as daemon,
            endpoints.serving(daemon.engine, config, heartbeat, None),
        ):
            beating = asyncio.create_task(heartbeat.keep())
            await scene(daemon, config)
            beating.cancel()

    asyncio.run(scenario())


def test_livez_answers_and_fails_while_the_event_loop_hangs(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncer.observe.health.BEAT", 0.05)

    async def scene(daemon: Daemon, config: SyncerConfig) -> None:
        with ThreadPoolExecutor() as kubelet:
            assert await asyncio.to_thread(page, config.health.address, "/livez") == (200, "ok")
            probes = [kubelet.submit(later, 1.0, config.health.address, name) for name in ("/livez", "/healthz")]
            scrape = kubelet.submit(later, 1.0, config.metrics.address, "/metrics")
            time.sleep(2.0)  # noqa: ASYNC251 — the loop hangs
            for probe in probes:
                assert probe.done()
                status, text = probe.result()
                assert status == 500
                assert "[-]loop failed: the event loop has given no sign of life for" in text
            assert scrape.done()
            assert scrape.result()[0] == 200
            await asyncio.sleep(0.2)
            assert await asyncio.to_thread(page, config.health.address, "/livez") == (200, "ok")

    shown(two, tmp_path, scene, deadline=0.5)


def later(seconds: float, address: str, path: str) -> tuple[int, str]:
    """The page, so many seconds from now."""
    time.sleep(seconds)
    return page(address, path)
