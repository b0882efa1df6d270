"""What many virtual clusters ask at their start is asked once, and is no older than a second."""

import asyncio

import pytest

from syncer.clusters.shared_reads import SHARED_SECONDS, SharedReads
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse

GET = HttpRequest("GET", "/api/v1/namespaces/home")
QUESTION = HttpRequest("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", b'{"list":"pods"}')
OTHER_QUESTION = HttpRequest("POST", QUESTION.path, b'{"list":"nodes"}')
WRITE = HttpRequest("POST", "/api/v1/namespaces/home/configmaps?fieldManager=x", b"{}")
DRY_RUN = HttpRequest("POST", f"{WRITE.path}&dryRun=All", b"{}")


class Server:
    """Answers after a second with the number of the request; the faults come first."""

    def __init__(self, *faults: int | Exception) -> None:
        self.faults = list(faults)
        self.asked: list[HttpRequest] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request)
        answer = HttpResponse(200, {}, str(len(self.asked)).encode())
        await asyncio.sleep(0.1)
        if not self.faults:
            return answer
        fault = self.faults.pop(0)
        if isinstance(fault, Exception):
            raise fault
        return answer._replace(status=fault)


def sharing(*faults: int | Exception) -> SharedReads:
    """Return reads of a server with these faults that share its answers."""
    return SharedReads(Server(*faults))  # type: ignore[arg-type]


async def bodies(reads: SharedReads, *requests: HttpRequest) -> list[bytes]:
    return [answer.body for answer in await asyncio.gather(*map(reads.send, requests))]


@pytest.mark.parametrize("request_", [GET, QUESTION], ids=["a read", "a question"])
async def test_same_read_is_sent_once_while_its_answer_is_young(request_: HttpRequest) -> None:
    reads = sharing()
    assert await bodies(reads, request_, request_) == [b"1", b"1"]
    await asyncio.sleep(SHARED_SECONDS / 2)
    assert await bodies(reads, request_) == [b"1"]
    await asyncio.sleep(SHARED_SECONDS)
    assert await bodies(reads, request_) == [b"2"]


async def test_other_reads_have_answers_of_their_own() -> None:
    reads = sharing()
    other_form = HttpRequest("GET", GET.path, accept="application/yaml")
    found = await bodies(reads, GET, other_form, QUESTION, OTHER_QUESTION)
    assert len(set(found)) == 4


async def test_dry_runs_are_never_shared() -> None:
    """Their answers are drawn at random where there are several ranges."""
    reads = sharing()
    assert await bodies(reads, GET) == [b"1"]
    assert await bodies(reads, DRY_RUN, DRY_RUN) == [b"2", b"3"]
    assert await bodies(reads, GET) == [b"1"]


async def test_no_read_after_a_write_has_an_answer_from_before() -> None:
    reads = sharing()
    assert await bodies(reads, GET) == [b"1"]
    writing = asyncio.create_task(reads.send(WRITE))
    await asyncio.sleep(0.05)
    during = asyncio.create_task(reads.send(GET))
    await writing
    assert await bodies(reads, GET) == [b"4"]
    assert (await during).body == b"3"


@pytest.mark.parametrize("fault", [404, 503, ConnectionFailed("cut")], ids=str)
async def test_failure_is_that_of_all_who_wait_and_is_not_kept(fault: int | Exception) -> None:
    reads = sharing(fault)
    found = await asyncio.gather(reads.send(GET), reads.send(GET), return_exceptions=True)
    failed = [each.status if isinstance(each, HttpResponse) else each for each in found]
    assert failed == [fault, fault]
    assert await bodies(reads, GET) == [b"2"]


async def test_caller_that_leaves_ends_no_others_read() -> None:
    reads = sharing()
    first = asyncio.create_task(reads.send(GET))
    second = asyncio.create_task(reads.send(GET))
    await asyncio.sleep(0.05)
    first.cancel()
    assert (await second).body == b"1"


async def test_answers_are_forgotten_though_nobody_asks_again() -> None:
    reads = sharing()
    await bodies(reads, GET, QUESTION)
    await asyncio.sleep(SHARED_SECONDS)
    assert not reads
