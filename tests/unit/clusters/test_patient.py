"""Whoever is patient waits for as long as an API server asks, and no longer than a minute."""

import asyncio
import json

import pytest

from kube_envtest import virtual_time
from syncer.clusters.patient import LEAST_WAIT, PATIENCE, Patient
from syncer.clusters.transport import HttpRequest, HttpResponse

LIST = HttpRequest("GET", "/apis/example.test/v1/widgets")
DONE = HttpResponse(200, {}, b"{}")


def later(status: int, seconds: str | None = None, **details: int) -> HttpResponse:
    body = {"kind": "Status", "status": "Failure", "message": "storage is initializing", "details": details}
    return HttpResponse(status, {"retry-after": seconds} if seconds else {}, json.dumps(body).encode())


class Server:
    """Gives these answers, the last of them for ever, and notes when it was asked."""

    def __init__(self, *answers: HttpResponse) -> None:
        self.answers, self.asked = list(answers), list[float]()

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(asyncio.get_running_loop().time())
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def sent(server: Server) -> HttpResponse:
    return virtual_time.run(Patient(server).send(LIST))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (later(429, "7"), 7.0),
        (later(429), 1.0),
        (later(429, retryAfterSeconds=3), 3.0),
        (later(503, "2"), 2.0),
        (later(429, "0"), LEAST_WAIT),
        (later(429, "0.2"), LEAST_WAIT),
    ],
    ids=["429", "429 without a time", "429 with a time in its body", "503", "429 at once", "429 soon"],
)
def test_answer_that_asks_to_come_back_is_waited_for(answer: HttpResponse, seconds: float) -> None:
    server = Server(answer, answer, DONE)
    assert sent(server) is DONE
    assert server.asked == [0.0, seconds, 2 * seconds]


@pytest.mark.parametrize("answer", [later(503), later(500, "1"), later(404), DONE], ids=lambda one: str(one.status))
def test_any_other_answer_is_returned(answer: HttpResponse) -> None:
    server = Server(answer)
    assert sent(server) is answer
    assert server.asked == [0.0]


@pytest.mark.parametrize("seconds", [1, 7, 50, 3600])
def test_answer_is_returned_once_patience_is_over(seconds: int) -> None:
    answer = later(429, str(seconds))
    server = Server(answer)
    assert sent(server) is answer
    assert len(server.asked) == 1 + PATIENCE // min(seconds, PATIENCE)
    assert server.asked[-1] <= PATIENCE
