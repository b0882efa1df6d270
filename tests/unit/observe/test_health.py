"""The health pages, as a kubelet and a person ask for them."""

import asyncio
from collections.abc import Callable
from wsgiref.util import setup_testing_defaults

import pytest

from hack.side_tasks import helped_by
from syncer.observe.health import BEAT, DEADLINE, Checks, Heartbeat, at_most


def ask(checks: Checks, path: str, query: str = "") -> tuple[int, str]:
    environ = {"PATH_INFO": path, "QUERY_STRING": query}
    setup_testing_defaults(environ)
    statuses: list[str] = []

    def start_response(status: str, *_: object) -> Callable[[bytes], object]:
        statuses.append(status)
        return len

    body = b"".join(checks.app()(environ, start_response))
    return int(statuses[0].split()[0]), body.decode()


def raising() -> str | None:
    raise LookupError("token abc")


@pytest.mark.parametrize(
    ("path", "query", "status", "body"),
    [
        ("/livez", "", 200, "ok"),
        ("/livez", "verbose", 200, "[+]ping ok\n[+]loop ok\nlivez check passed\n"),
        ("/healthz", "", 200, "ok"),
        ("/healthz", "verbose=true", 200, "[+]ping ok\n[+]loop ok\nhealthz check passed\n"),
        ("/readyz", "", 500, "[+]ping ok\n[-]host failed: no answer\nreadyz check failed\n"),
        ("/readyz", "exclude=host", 200, "ok"),
        ("/readyz", "verbose&exclude=host", 200, "[+]ping ok\n[+]host excluded: ok\nreadyz check passed\n"),
        ("/readyz/ping", "", 200, "ok"),
        ("/readyz/host", "", 500, "[-]host failed: no answer\nreadyz check failed\n"),
        ("/readyz/guest", "", 404, "no check guest; there are ping, host\n"),
    ],
)
def test_page_shows_its_own_checks(path: str, query: str, status: int, body: str) -> None:
    checks = Checks()
    checks.live("loop", lambda: None)
    checks.ready("host", lambda: "no answer")
    assert ask(checks, path, query) == (status, body)


def by_cluster(**problems: str | None) -> Checks:
    checks = Checks()
    checks.ready_by_cluster("virtual", lambda: problems)
    return checks


def test_cluster_with_a_problem_costs_no_readiness_while_another_has_none() -> None:
    checks = by_cluster(bank="Unreachable", shop=None)
    body = "[+]ping ok\n[!]virtual/bank degraded: Unreachable\n[+]virtual/shop ok\nreadyz check passed\n"
    assert ask(checks, "/readyz", "verbose") == (200, body)
    assert ask(checks, "/readyz") == (200, "ok")
    assert ask(checks, "/readyz/virtual/bank")[0] == 500


def test_degraded_syncer_is_named_and_does_not_cost_readiness() -> None:
    checks = Checks()
    checks.remark("degraded", lambda: {"shop/ingresses": "may not list ingresses on the host"})
    body = "[+]ping ok\n[!]shop/ingresses degraded: may not list ingresses on the host\nreadyz check passed\n"
    assert ask(checks, "/readyz", "verbose") == (200, body)
    assert ask(checks, "/readyz") == (200, "ok")
    assert "ingresses" not in ask(checks, "/livez", "verbose")[1]


def test_paused_part_is_named_after_the_degraded_ones_and_does_not_cost_readiness() -> None:
    checks = Checks()
    checks.remark("degraded", lambda: {"shop/maps": "slow"})
    checks.remark("paused", lambda: {"bank": "remove the annotation"})
    rows = ["[+]ping ok", "[!]shop/maps degraded: slow", "[!]bank paused: remove the annotation"]
    assert ask(checks, "/readyz", "verbose") == (200, "\n".join([*rows, "readyz check passed\n"]))
    assert ask(checks, "/readyz") == (200, "ok")


def test_check_of_each_virtual_cluster_is_named_for_it() -> None:
    found: dict[str, str | None] = {"shop": "no answer", "bank": "Forbidden"}
    checks = Checks()
    checks.ready_by_cluster("virtual", lambda: found)
    body = "[+]ping ok\n[-]virtual/shop failed: no answer\n[-]virtual/bank failed: Forbidden\nreadyz check failed\n"
    assert ask(checks, "/readyz") == (500, body)
    assert ask(checks, "/readyz", "exclude=virtual/shop&exclude=virtual/bank") == (200, "ok")
    found["bank"] = None
    assert ask(checks, "/readyz/virtual/bank") == (200, "ok")
    del found["shop"]
    assert ask(checks, "/readyz", "verbose") == (200, "[+]ping ok\n[+]virtual/bank ok\nreadyz check passed\n")


def test_check_of_the_virtual_clusters_that_breaks_has_failed() -> None:
    checks = Checks()
    checks.ready_by_cluster("virtual", lambda: {"shop": raising()})
    assert ask(checks, "/readyz")[0] == 500
    assert "[-]virtual failed: the check itself failed: LookupError\n" in ask(checks, "/readyz")[1]


def test_raising_check_has_failed_without_showing_the_error() -> None:
    checks = Checks()
    checks.ready("host", raising)
    status, body = ask(checks, "/readyz")
    assert status == 500
    assert "[-]host failed: the check itself failed: LookupError\n" in body
    assert "abc" not in body


def test_heartbeat_that_stops_is_noticed_after_the_deadline() -> None:
    now = 0.0
    heart = Heartbeat("the watch of pods", deadline=60, clock=lambda: now)
    now = 60.0
    assert heart() is None
    now = 61.0
    assert heart() == "the watch of pods has given no sign of life for 61 s"
    heart.beat()
    assert heart() is None


async def test_heartbeat_goes_on_while_the_loop_turns() -> None:
    heart = Heartbeat(deadline=2 * BEAT, clock=asyncio.get_running_loop().time)
    async with helped_by(heart.keep()):
        await asyncio.sleep(10 * DEADLINE)
        assert heart() is None
    await asyncio.sleep(10 * DEADLINE)
    assert heart() is not None


def test_age_may_not_pass_its_limit() -> None:
    age = 10.0
    check = at_most(10, lambda: age, "a request has been worked on")
    assert check() is None
    age = 10.6
    assert check() == "a request has been worked on for 11 s, more than 10 s"
