"""Faults that the sieve has found, each as a scene of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crd_scene import CRDS, NAME, daemon, public
from harness import Daemon, Two, built_in, until
from sieve_main import numbered, tried, undisturbed
from sieve_points import described
from sieve_wire import DAEMON
from sieve_workload import SCHEDULED, nodes

from syncer.api import uid_of
from syncer.testing.merge import merged
from syncer.testing.objects import pod, pod_mounting, secret

RUNNING = built_in("pods", "nodes", "secrets")


@asynccontextmanager
async def serving(two: Two) -> AsyncIterator[Daemon]:
    """A daemon that can be made to see an older state."""
    options = {"secrets": {"all": False}, "pods": {"allowNodeName": True}}
    async with two.daemon(RUNNING, options=options, user=DAEMON) as running:
        yield running


async def test_a_copy_in_use_stays_where_an_older_list_shows_no_user(two: Two) -> None:
    two.virtual.put(secret("db"))
    before = two.virtual.revision
    two.virtual.put(pod_mounting("web", secret="db"))
    async with serving(two) as running:
        await running.settled()
        copy = two.copy("secrets", "db")
        assert copy
        lag = two.virtual.lag(before, resource="pods", relist=True)
        await asyncio.sleep(3)
        lag.end()
        await asyncio.sleep(10)
        assert uid_of(two.copy("secrets", "db") or {"metadata": {}}) == uid_of(copy)


async def test_a_copy_without_user_goes_some_seconds_after_the_start(two: Two) -> None:
    two.virtual.put(secret("db"))
    two.virtual.put(pod_mounting("web", secret="db"))
    async with serving(two) as running:
        await running.settled()
    two.virtual.delete("pods", "shop/web")
    async with serving(two):
        assert await until(lambda: two.copy("secrets", "db") is None, within=10) > 3


async def test_shown_definition_stays_when_an_older_list_of_the_host_lacks_it(two: Two) -> None:
    options = {"enabled": True, "onRemoval": "delete"}
    before = two.host.revision
    two.host.put(public())
    async with daemon(two, options) as running:
        await until(lambda: two.virtual.get(CRDS, NAME))
        await running.settled()
        shown = two.virtual.get(CRDS, NAME)
    lag = two.host.lag(before, resource="customresourcedefinitions")
    async with daemon(two, options) as running:
        await asyncio.sleep(30)
        lag.end()
        await running.settled()
        assert uid_of(two.virtual.get(CRDS, NAME) or {"metadata": {}}) == uid_of(shown or {"metadata": {}})
        two.host.put(merged(public(), {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "false"}}}))
        await until(lambda: two.virtual.get(CRDS, NAME) is None)


async def test_a_pod_that_was_bound_and_is_lost_before_its_status_came_up_is_not_started_again(two: Two) -> None:
    nodes(two)
    two.virtual.put(pod("web"))
    async with serving(two) as running:
        await until(lambda: two.copy("pods", "web"))
        copy = two.copy("pods", "web")
        assert copy
        two.host.put(merged(copy, {"spec": {"nodeName": "n1"}, "status": {"conditions": [SCHEDULED]}}))
        await running.settled()
    two.host.delete("pods", "vc-ns/web-x-shop-x-vc")
    async with serving(two) as running:
        await running.settled()
        assert two.copy("pods", "web") is None
        assert two.original("pods", "web") is None, "its controller makes another one"


async def test_a_pod_with_a_node_in_its_spec_from_the_start_is_made_all_the_same(two: Two) -> None:
    nodes(two)
    two.virtual.put(pod("web", spec={"nodeName": "n1"}))
    async with serving(two) as running:
        await running.settled()
        assert two.copy("pods", "web")


async def test_a_pod_that_has_ended_is_not_made_again_from_an_older_list(two: Two) -> None:
    two.virtual.put(pod("web"))
    before = two.virtual.revision
    async with serving(two) as running:
        await until(lambda: two.copy("pods", "web"))
        two.virtual.delete("pods", "shop/web")
        await running.settled()
    lag = two.virtual.lag(before, user="admin")
    since = len(two.host.requests)
    async with two.daemon(RUNNING, options={"secrets": {"all": False}}) as running:
        await asyncio.sleep(2)
        lag.end()
        await running.settled()
    made = [one for one in list(two.host.requests)[since:] if (one.verb, one.resource) == ("create", "pods")]
    assert made == []


def test_a_copy_in_use_stays_where_the_watch_expires_between_its_users() -> None:
    """One user goes, the watch ends with 410, and only the list shows the next one."""
    trace = undisturbed("ingresses").trace
    about = "(ADDED virtual ingresses shop/web): relist"
    lost = [each for each in numbered(["ingresses"]) if about in described(each[2], trace)]
    assert len(lost) > 1
    assert [tried(*each) for each in lost] == [None] * len(lost)
