"""The control API answers with metrics and health, of all virtual clusters or of one."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from syncer.daemon.pages import monitoring
from syncer.daemon.pages.monitoring import CutText, first_lines
from syncer.observe.control import Control
from syncer.observe.health import Checks
from syncer.observe.metrics import Metrics


def answer(path: str, **given: Any) -> Any:
    """Return the answer about virtual clusters bank and shop."""
    metrics = Metrics(version="1.2.3")
    for cluster in ("", "bank", "shop"):
        metrics.watch_restarted(cluster, "host", "pods")
    metrics.syncer("bank", "configmaps").reconciled("success", 0.1)
    checks = Checks()
    checks.live("loop", lambda: None)
    checks.ready("host", lambda: None)
    checks.ready_by_cluster("virtual", lambda: {"bank": "Unreachable", "shop": None})
    checks.remark("degraded", lambda: {"bank/pods": "slow", "shop/pods": "no right", "lease": "another holds it"})
    checks.remark("paused", lambda: {"bank": "go on", "shop": "go on"})
    control = Control()
    monitoring.add(control, metrics.registry, checks, lambda: ["bank", "shop"])
    status, found = asyncio.run(control.answer("GET", path, given))
    assert status is HTTPStatus.OK
    return found


def test_metrics_are_those_of_all_virtual_clusters() -> None:
    found = answer("/metrics")
    assert found["leftOut"] == 0
    for part in ('cluster="bank"', 'cluster="shop"', 'cluster=""', 'syncer_build_info{python="'):
        assert part in found["text"]


def test_metrics_of_a_virtual_cluster_are_its_own_and_those_that_all_share() -> None:
    text = answer("/metrics", cluster="shop")["text"]
    assert "bank" not in text
    assert 'syncer_watch_restarts_total{cluster="shop",resource="pods",side="host"} 1.0' in text
    for part in ('cluster=""', "syncer_build_info{", "# TYPE syncer_watch_restarts_total counter"):
        assert part in text


def test_health_has_a_line_for_each_check_and_remark() -> None:
    assert answer("/livez")["text"] == "[+]ping ok\n[+]loop ok\n"
    assert answer("/readyz")["text"].splitlines() == [
        "[+]ping ok",
        "[+]host ok",
        "[!]virtual/bank degraded: Unreachable",
        "[+]virtual/shop ok",
        "[!]bank/pods degraded: slow",
        "[!]shop/pods degraded: no right",
        "[!]lease degraded: another holds it",
        "[!]bank paused: go on",
        "[!]shop paused: go on",
    ]


def test_health_of_a_virtual_cluster_names_no_other() -> None:
    assert answer("/readyz", cluster="shop")["text"].splitlines() == [
        "[+]ping ok",
        "[+]host ok",
        "[+]virtual/shop ok",
        "[!]shop/pods degraded: no right",
        "[!]lease degraded: another holds it",
        "[!]shop paused: go on",
    ]
    bank = answer("/readyz", cluster="bank")["text"]
    assert "[!]virtual/bank degraded: Unreachable" in bank, "another one has no problem, so the daemon is ready"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("ab\ncd\n", CutText("ab\ncd\n", 0)),
        ("ab\ncd\nef\n", CutText("ab\ncd\n", 3)),
        ("ab\ncdefgh\n", CutText("ab\n", 7)),
        ("ab\nä\nö\n", CutText("ab\nä\n", 3)),
        ("abcdefgh\n", CutText("", 9)),
    ],
)
def test_text_is_cut_after_the_lines_that_fit(monkeypatch: pytest.MonkeyPatch, text: str, cut: CutText) -> None:
    monkeypatch.setattr(monitoring, "MOST_BYTES", 6)
    assert first_lines(text) == cut
