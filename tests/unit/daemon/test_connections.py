"""A cluster counts as lost when a probe gets no answer either, and as back when one does."""

import asyncio
import itertools
import json
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hack.side_tasks import helped_by
from syncer.api import Side
from syncer.api.errors import NoCredentials, NotFound, Unauthorized, Unreachable
from syncer.clusters.client import SideClient
from syncer.clusters.transport import ConnectionFailed, CredentialsAwaited, CredentialsFailed, HttpRequest, HttpResponse
from syncer.daemon.connections import DIALS, LAST_PROBE, PROBE_INTERVAL, PROBE_SECONDS, PROBES_LOST, Connections
from syncer.testing.in_process import ApiServer, MemoryTransport

RESET = Unreachable("reset")
#: Seconds in which a probe has been answered.
SOON = 0.01


class Line(MemoryTransport):
    """The requests to an API server that may not answer."""

    def __init__(self) -> None:
        super().__init__(ApiServer())
        self.answers, self.hangs, self.status, self.probes, self.is_closed = True, False, 0, list[float](), False
        #: What is wrong with the credentials.
        self.complaint = ""
        #: What is to give them, and hasn't yet.
        self.awaited = ""
        self.is_ready = True
        #: The answer to what takes credentials.
        self.refusal: HttpResponse | None = None
        #: The path of requests that get no answer.
        self.lost = ""

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/readyz":
            self.probes.append(asyncio.get_running_loop().time())
        if self.complaint:
            raise CredentialsFailed(self.complaint)
        if self.awaited:
            await asyncio.sleep(request.timeout)
            raise CredentialsAwaited(self.awaited)
        if request.path == "/readyz" and not self.is_ready:
            return HttpResponse(500, {}, b"")
        if self.hangs:
            await asyncio.sleep(request.timeout)
            raise ConnectionFailed("no response in time")
        if not self.answers or request.path == self.lost:
            raise ConnectionFailed("refused")
        if self.refusal is not None and request.path not in ("/readyz", "/version"):
            return self.refusal
        return HttpResponse(self.status, {}, b"{}") if self.status else await super().send(request)

    async def close(self) -> None:
        self.is_closed = True


class Kept:
    """The connection of a cluster, and what it has told."""

    def __init__(self, connections: Connections, name: str = "shop", side: Side = Side.VIRTUAL) -> None:
        self.line, self.notified = Line(), list[str]()
        self.connection = connections.add(
            SideClient(name, side, self.line),
            lost=lambda: self.notified.append("lost"),
            back=lambda: self.notified.append("back"),
        )


@asynccontextmanager
async def connections() -> AsyncIterator[Connections]:
    made = Connections(clock=asyncio.get_running_loop().time, rng=random.Random(1))
    async with helped_by(made.run()):
        yield made


@asynccontextmanager
async def kept() -> AsyncIterator[Kept]:
    async with connections() as made:
        one = Kept(made)
        async with helped_by(one.connection.run()):
            await asyncio.sleep(SOON)
            yield one


async def test_cluster_that_answers_the_probe_is_not_lost() -> None:
    """An API server may reset the requests for a single kind, again and again."""
    async with kept() as one:
        for number in range(1, 4):
            one.connection.lost(RESET)
            one.connection.lost(RESET)
            assert one.connection.up
            await asyncio.sleep(SOON)
            assert (one.connection.up, one.notified, len(one.line.probes)) == (True, [], 1 + number)


async def test_cluster_that_answers_is_probed_at_intervals_and_lost_after_some_failures_in_a_row() -> None:
    async with kept() as one:
        await asyncio.sleep(100)
        assert one.line.probes == pytest.approx([number * PROBE_INTERVAL for number in range(11)], abs=SOON)
        one.line.hangs = True
        await asyncio.sleep(PROBE_INTERVAL + PROBE_SECONDS)
        assert one.connection.up, "one that gets no answer may be a single one"
        await asyncio.sleep((PROBES_LOST - 1) * (PROBE_INTERVAL + PROBE_SECONDS))
        assert (type(one.connection.error), one.notified) == (Unreachable, ["lost"])
        assert "virtual cluster shop: get /readyz" in str(one.connection.error)


def anonymous() -> HttpResponse:
    text = 'forbidden: User "system:anonymous" cannot get path "/api"'
    body = {"kind": "Status", "status": "Failure", "message": text, "reason": "Forbidden", "code": 403}
    return HttpResponse(403, {}, json.dumps(body).encode())


REFUSALS = {"401": HttpResponse(401, {}, b"{}"), "anonymous": anonymous()}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_cluster_that_refuses_the_credentials_is_lost_within_a_probe_though_nothing_is_asked(
    refusal: HttpResponse,
) -> None:
    """Whoever has no credentials may get /readyz and /version."""
    async with kept() as one:
        one.line.refusal = refusal
        await asyncio.sleep(PROBE_INTERVAL)
        assert (type(one.connection.error), one.notified) == (Unauthorized, ["lost"])
        assert "the credentials are not accepted" in str(one.connection.error)
        assert one.connection.trouble == "the virtual cluster does not accept the daemon's credentials"
        one.line.refusal = None
        await asyncio.sleep(LAST_PROBE)
        assert (one.connection.error, one.connection.trouble, one.notified) == (None, "", ["lost", "back"])


async def test_request_that_is_refused_has_the_cluster_probed_at_once() -> None:
    async with kept() as one:
        one.connection.lost(Unauthorized("of one kind"))
        await asyncio.sleep(SOON)
        assert one.connection.up, "only an aggregated API server may refuse us"
        one.line.refusal = REFUSALS["401"]
        one.connection.lost(Unauthorized("of one kind"))
        await asyncio.sleep(SOON)
        assert type(one.connection.error) is Unauthorized


PLUGIN = "exec plugin aws of /etc/bank, context c, user u has given no answer for 12 s"


async def test_program_that_gives_no_credentials_is_named_instead_of_the_api_server() -> None:
    named = f"virtual cluster shop: there are no credentials yet: {PLUGIN}"
    async with kept() as one:
        one.line.awaited = PLUGIN
        one.connection.lost(RESET)
        await asyncio.sleep(PROBE_SECONDS + SOON)
        assert type(one.connection.error) is NoCredentials
        assert str(one.connection.error) == named
        assert (
            one.connection.trouble
            == "there are no credentials for the virtual cluster: the program that gives them has not answered"
        )
        one.line.awaited = ""
        await asyncio.sleep(LAST_PROBE)
        assert one.connection.up
    async with connections() as made:
        other = Kept(made)
        other.line.awaited = PLUGIN
        reaching = asyncio.create_task(other.connection.reach(60))
        await asyncio.sleep(30)
        assert not reaching.done(), "a slow program is waited for"
        with pytest.raises(NoCredentials) as caught:
            await reaching
        assert str(caught.value) == named


async def test_reason_why_a_cluster_is_lost_is_that_of_the_last_probe() -> None:
    """An API server may come back that doesn't accept the credentials any more."""
    async with kept() as one:
        for _ in range(2):
            one.line.answers, one.line.refusal = False, None
            one.connection.lost(RESET)
            await asyncio.sleep(LAST_PROBE)
            assert isinstance(one.connection.error, Unreachable)
            one.line.answers, one.line.refusal = True, REFUSALS["401"]
            await asyncio.sleep(LAST_PROBE)
            assert isinstance(one.connection.error, Unauthorized)
        assert one.notified == ["lost"]


async def test_connections_of_the_daemon_have_no_thread_that_looks_for_code_of_others() -> None:
    """It would take a third of the CPU of a daemon at rest."""
    async with kept():
        assert "watchdog" not in [thread.name for thread in threading.enumerate()]


async def test_cluster_is_lost_until_a_probe_is_answered() -> None:
    async with kept() as one:
        one.line.answers = False
        one.connection.lost(RESET)
        await asyncio.sleep(SOON)
        lost = one.connection.error
        assert (type(lost), one.notified) == (Unreachable, ["lost"])
        assert "refused" in str(lost)
        one.connection.lost(Unreachable("another"))
        assert one.connection.error is lost
        await asyncio.sleep(60)
        pauses = [later - earlier for earlier, later in zip(one.line.probes[2:], one.line.probes[3:], strict=False)]
        assert len(pauses) >= 60 / LAST_PROBE
        assert 1.0 <= min(pauses) < max(pauses) <= LAST_PROBE, "it is probed again, at random intervals"
        one.line.answers = True
        await asyncio.sleep(LAST_PROBE)
        assert (one.connection.up, one.notified) == (True, ["lost", "back"])
        assert not one.line.is_closed, "its owner goes on to use it"


async def test_cluster_that_does_not_answer_from_the_beginning_is_lost_with_the_first_request() -> None:
    async with connections() as made:
        one = Kept(made)
        one.line.answers = False
        running = asyncio.create_task(one.connection.run())
        await asyncio.sleep(SOON)
        assert (one.connection.up, one.notified) == (True, [])
        one.connection.lost(RESET)
        assert (one.connection.error, one.notified) == (RESET, ["lost"])
        one.line.answers = True
        await asyncio.sleep(LAST_PROBE)
        assert (one.connection.up, one.notified) == (True, ["lost", "back"])
        running.cancel()


async def test_cluster_that_refuses_us_is_lost_and_one_that_forbids_the_probe_is_not() -> None:
    async with kept() as one:
        for status, up in ((403, True), (404, True), (429, True), (500, False), (401, False)):
            one.line.status = status
            one.connection.lost(RESET)
            await asyncio.sleep(SOON)
            assert (status, one.connection.up) == (status, up)
            one.line.status = 0
            await asyncio.sleep(LAST_PROBE)
            assert one.connection.up


async def test_clusters_are_lost_each_by_itself_and_the_host_is_no_virtual_cluster() -> None:
    async with connections() as made:
        both = [Kept(made, "host"), Kept(made, "host", Side.HOST)]
        running = [asyncio.create_task(each.connection.run()) for each in both]
        await asyncio.sleep(SOON)
        for each in both:
            each.line.answers = False
        both[0].connection.lost(RESET)
        await asyncio.sleep(SOON)
        assert [each.notified for each in both] == [["lost"], []]
        running[0].cancel()
        both[1].connection.lost(RESET)
        await asyncio.sleep(SOON)
        assert [each.notified for each in both] == [["lost"], ["lost"]]
        probes = len(both[0].line.probes)
        await asyncio.sleep(60)
        assert len(both[0].line.probes) == probes, "a connection that has ended is probed no longer"
        running[1].cancel()


async def test_cluster_that_starts_later_is_reached_and_stays_so() -> None:
    async with connections() as made:
        one = Kept(made)
        one.line.answers = False
        reaching = asyncio.create_task(one.connection.reach(60))
        await asyncio.sleep(20)
        assert not reaching.done()
        one.line.answers = True
        await asyncio.sleep(LAST_PROBE)
        assert reaching.done(), "it was tried again within the longest delay"
        await reaching
        probes = len(one.line.probes)
        running = asyncio.create_task(one.connection.run())
        await asyncio.sleep(60)
        later = one.line.probes[probes - 1 :]
        pauses = [after - before for before, after in itertools.pairwise(later)]
        assert pauses == pytest.approx([PROBE_INTERVAL] * 6), "the connection that was reached is the one that is kept"
        running.cancel()


@pytest.mark.parametrize(("hangs", "why"), [(False, "refused"), (True, "no answer within 5 s")])
async def test_cluster_that_is_not_reached_in_time_is_named_with_the_reason(hangs: bool, why: str) -> None:
    async with connections() as made:
        one = Kept(made)
        one.line.answers, one.line.hangs = False, hangs
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable, match=f"virtual cluster shop.*{why}"):
            await one.connection.reach(60)
        assert asyncio.get_running_loop().time() - began == pytest.approx(60, abs=SOON)


async def test_cluster_that_refuses_the_credentials_is_not_asked_again() -> None:
    async with connections() as made:
        one = Kept(made)
        one.line.answers = False
        reaching = asyncio.create_task(one.connection.reach(60))
        await asyncio.sleep(SOON)
        one.line.answers, one.line.status = True, 401
        await asyncio.sleep(LAST_PROBE)
        assert reaching.done()
        with pytest.raises(Unauthorized, match="the credentials"):
            await reaching


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_cluster_that_gives_its_version_without_credentials_is_not_reached_without_them(
    refusal: HttpResponse,
) -> None:
    async with connections() as made:
        one = Kept(made)
        one.line.refusal = refusal
        async with asyncio.timeout(SOON):
            with pytest.raises(Unauthorized, match="the credentials are not accepted"):
                await one.connection.reach(60)


async def test_cluster_that_answers_in_any_way_is_not_waited_for() -> None:
    """Only no answer may be that of an API server that is still to start."""
    async with connections() as made:
        one = Kept(made, "no-api-server")
        one.line.status = 404
        async with asyncio.timeout(SOON):
            with pytest.raises(NotFound):
                await one.connection.reach(60)
        one = Kept(made, "unusable")
        one.line.complaint = "the exec plugin failed"
        async with asyncio.timeout(SOON):
            with pytest.raises(Unauthorized, match="the exec plugin failed"):
                await one.connection.reach(60)
        one = Kept(made, "lossy")
        one.line.lost = "/version"
        async with asyncio.timeout(SOON):
            await one.connection.reach(60)
        one = Kept(made, "starting")
        one.line.is_ready = False
        async with asyncio.timeout(SOON):
            await one.connection.reach(60)


async def test_clusters_that_hang_delay_no_other_while_they_are_fewer_than_are_dialled_at_once() -> None:
    async with connections() as made:
        hung = [Kept(made, f"hung-{number}") for number in range(DIALS - 1)]
        for each in hung:
            each.line.hangs = True
        reaching = [asyncio.create_task(each.connection.reach(60)) for each in hung]
        await asyncio.sleep(SOON)
        async with asyncio.timeout(SOON):
            await Kept(made).connection.reach(60)
        assert not any(task.done() for task in reaching)
        for task in reaching:
            task.cancel()


async def test_connection_that_has_ended_before_it_ran_is_tried_no_more() -> None:
    """A virtual cluster may leave the configuration before it has answered."""
    async with connections() as made:
        one = Kept(made)
        one.line.answers = False
        reaching = asyncio.create_task(one.connection.reach(60))
        await asyncio.sleep(SOON)
        reaching.cancel()
        one.connection.end()
        probes = len(one.line.probes)
        await asyncio.sleep(60)
        assert len(one.line.probes) == probes > 0


async def test_clusters_are_dialled_so_many_at_once_and_the_host_before_them_all() -> None:
    async with connections() as made:
        all_of_them = [Kept(made, f"vc{number}") for number in range(2 * DIALS + 1)]
        for each in all_of_them[:-1]:
            each.line.hangs = True
        host = Kept(made, "", Side.HOST)
        reached = [asyncio.create_task(each.connection.reach(PROBE_SECONDS / 2)) for each in all_of_them]
        await asyncio.sleep(SOON)
        assert sum(bool(each.line.probes) for each in all_of_them) == DIALS
        await host.connection.reach(SOON)
        ended = await asyncio.gather(*reached, return_exceptions=True)
        assert [type(each) for each in ended[:-1]] == [Unreachable] * 2 * DIALS
        assert ended[-1] is None, "its seconds begin with its turn"
