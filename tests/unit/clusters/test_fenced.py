"""A fence: writes end before another process may write, and reads always go."""

import asyncio
from dataclasses import fields, replace

import pytest

from kube_envtest import virtual_time
from syncer.api.errors import NotConnected
from syncer.clusters.fenced import Fenced
from syncer.clusters.transport import DeadlineExceeded, HttpRequest, HttpResponse


class Slow:
    """Answers after some seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.sent, self.answered = seconds, 0, 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.sent += 1
        await asyncio.sleep(self.seconds)
        self.answered += 1
        return HttpResponse(200, {}, b"")

    def stream(self, request: HttpRequest) -> None:
        raise AssertionError("nothing is watched")

    async def close(self) -> None:
        """Nothing is open."""


async def test_write_ends_when_another_may_write() -> None:
    slow, clock = Slow(6.0), asyncio.get_running_loop().time
    fenced = Fenced(slow, lambda: 10.0, clock)  # type: ignore[arg-type]
    await fenced.send(HttpRequest("POST", "/api/v1/nodes"))
    with pytest.raises(DeadlineExceeded):
        await fenced.send(HttpRequest("POST", "/api/v1/nodes"))
    assert (clock(), slow.answered) == (10.0, 1)
    for method in ("POST", "PATCH", "PUT", "DELETE"):
        with pytest.raises(NotConnected):
            await fenced.send(HttpRequest(method, "/api/v1/nodes"))
    assert slow.sent == 2
    await fenced.send(HttpRequest("GET", "/api/v1/nodes"))
    await fenced.send(HttpRequest("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"))
    await fenced.send(HttpRequest("POST", "/api/v1/nodes?a=b&dryRun=All"))
    assert slow.sent == 5


def test_write_that_waited_for_a_connection_over_a_freeze_is_not_sent() -> None:
    now, sent = 0.0, []

    class Frozen(Slow):
        """The process is frozen while a write waits for its connection, which is free when it is thawed."""

        async def send(self, request: HttpRequest) -> HttpResponse:
            nonlocal now
            now += 20.0
            request.check_may_send()
            sent.append(request.method)
            return await super().send(request)

    async def scenario() -> None:
        nonlocal now
        fenced = Fenced(Frozen(0.0), lambda: 40.0, lambda: now)  # type: ignore[arg-type]
        await fenced.send(HttpRequest("POST", "/api/v1/nodes"))
        with pytest.raises(DeadlineExceeded, match="nothing was sent"):
            await fenced.send(HttpRequest("DELETE", "/api/v1/nodes/a"))
        await fenced.send(HttpRequest("GET", "/api/v1/nodes"))
        assert sent == ["POST", "GET"]

    virtual_time.run(scenario())


def test_fenced_write_is_the_same_request_otherwise() -> None:
    request = HttpRequest("POST", "/a", b"{}", "text/a", "text/b", 1.0, 2.0, 3, lambda: False, True)
    assert all(getattr(request, each.name) != each.default for each in fields(request))
    assert request.while_allowed(bool) == replace(request, may_send=bool)
