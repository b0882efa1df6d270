"""A tenant changes a running Pod through its subresources: the copy follows, and a refusal holds up nothing."""

import asyncio
import json
from functools import partial
from typing import Any

from harness import NAMESPACE, Two, built_in, host_path, until
from test_rights import role

from kube_envtest import Rule
from syncer.api import Key, Obj, Side
from syncer.api.reasons import RequestState
from syncer.clusters.client import SideClient
from syncer.resources.kinds import PODS
from syncer.testing.merge import merged
from syncer.testing.objects import pod

SIZE = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
POD = pod("web", spec={"containers": [{"name": "app", "image": "i", "resources": SIZE}]})
SYNCERS = built_in("pods", "serviceaccounts", "secrets")


async def changed(two: Two, part: str, spec: Obj) -> None:
    """Let the tenant patch a subresource of their Pod, as kubectl does."""
    tenant = SideClient("tenant", Side.VIRTUAL, two.virtual.transport())
    await tenant.patch(PODS, Key(NAMESPACE, "web"), {"spec": spec}, kind="strategic", subresource=part)


def messages(two: Two, reason: str) -> list[str]:
    return [each["message"] for each in two.virtual.objects("events", NAMESPACE) if each["reason"] == reason]


def debugger(name: str = "debug", **fields: Any) -> Obj:
    return {"ephemeralContainers": [{"name": name, "image": "busybox", **fields}]}


def sized(cpu: str) -> Obj:
    return {"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]}


def container(two: Two) -> Obj:
    found: Obj = (two.copy("pods", "web") or {})["spec"]["containers"][0]
    return found


def requests(two: Two, cpu: str) -> bool:
    return bool(container(two)["resources"]["requests"]["cpu"] == cpu)


def debuggers(two: Two) -> set[str]:
    return {one["name"] for one in (two.copy("pods", "web") or {})["spec"].get("ephemeralContainers") or ()}


def reports(two: Two, **status: Any) -> None:
    """Let the host's kubelet report a status."""
    there = two.copy("pods", "web") or {}
    two.host.put(merged(there, {"status": {"startTime": "2026-01-01T00:00:00Z", **status}}))


def phase(two: Two) -> str:
    return str((two.original("pods", "web") or {})["status"]["phase"])


async def test_ephemeral_container_reaches_the_host_and_its_status_comes_up(two: Two) -> None:
    two.virtual.put(POD)
    async with two.daemon(SYNCERS):
        await until(lambda: two.copy("pods", "web"))
        reports(two, phase="Running")
        await changed(two, "ephemeralcontainers", debugger(targetContainerName="app"))
        await until(lambda: debuggers(two) == {"debug"})
        await changed(two, "ephemeralcontainers", debugger("second"))
        await until(lambda: debuggers(two) == {"debug", "second"})
        running = {"name": "debug", "ready": False, "restartCount": 0, "image": "i", "imageID": "x", "state": {}}
        reports(two, phase="Running", ephemeralContainerStatuses=[running])
        await until(lambda: (two.original("pods", "web") or {})["status"].get("ephemeralContainerStatuses"))


def recorded(two: Two) -> Obj:
    """Return the containers that were sent, by list."""
    found: Obj = json.loads((two.copy("pods", "web") or {})["metadata"]["annotations"]["vsyncer.dev/containers"])
    return {part: names for part, names in found.items() if part.lower().endswith("containers")}


async def test_container_that_the_host_refuses_is_not_recorded(two: Two) -> None:
    """The host's operator may use its name afterwards."""
    two.virtual.put(POD)
    async with two.daemon(SYNCERS) as daemon:
        await until(lambda: two.copy("pods", "web"))
        both = {"ephemeralContainers": [debugger(name)["ephemeralContainers"][0] for name in ("NO-name", "good")]}
        two.virtual.put(merged(two.original("pods", "web") or {}, {"spec": both}))
        await until(lambda: messages(two, "SyncFailed"))
        await until(lambda: recorded(two).get("ephemeralContainers") == ["good"])
        await daemon.settled()
        assert recorded(two) == {"containers": ["app"], "ephemeralContainers": ["good"]}


async def test_container_added_by_the_operator_does_not_become_the_tenants(two: Two) -> None:
    """The watch reports it after the tenant's own of that name is sent."""
    two.virtual.put(POD)
    async with two.daemon(SYNCERS) as daemon:
        await until(lambda: two.copy("pods", "web"))
        await daemon.settled()
        two.host.faults.add(Rule(verb="watch", resource="pods", drop=True, count=1))
        copy = two.copy("pods", "web") or {}
        theirs = {"name": "debug", "image": "busybox"}
        two.host.put(merged(copy, {"spec": {"ephemeralContainers": [theirs]}}))
        await changed(two, "ephemeralcontainers", debugger())
        await until(lambda: messages(two, "EphemeralContainerRefused"))
        await daemon.settled()
        assert recorded(two) == {"containers": ["app"]}


async def test_copy_of_an_earlier_version_gets_its_record_at_the_start(two: Two) -> None:
    two.virtual.put(POD)
    async with two.daemon(SYNCERS) as daemon:
        await until(lambda: two.copy("pods", "web"))
        await changed(two, "ephemeralcontainers", debugger())
        await daemon.settled()
    copy = two.copy("pods", "web") or {}
    del copy["metadata"]["annotations"]["vsyncer.dev/containers"]
    two.host.put(copy)
    async with two.daemon(SYNCERS) as daemon:
        await until(lambda: "vsyncer.dev/containers" in (two.copy("pods", "web") or {})["metadata"]["annotations"])
        assert recorded(two) == {"containers": ["app"]}
        await daemon.settled()
        [message] = messages(two, "EphemeralContainerRefused")
        assert "debug: the host has a container of this name in the pod already" in message


async def test_refused_ephemeral_container_is_reported_and_delays_nothing(two: Two) -> None:
    two.virtual.put(POD)
    async with two.daemon(SYNCERS) as daemon:
        await until(lambda: two.copy("pods", "web"))
        privileged = debugger("bad", securityContext={"privileged": True})
        await changed(two, "ephemeralcontainers", privileged)
        await changed(two, "ephemeralcontainers", debugger("good"))
        await until(lambda: debuggers(two) == {"good"})
        for count in range(3):
            reports(two, phase="Running", message=f"report {count}")
            await daemon.settled()
        assert phase(two) == "Running"
        [message] = messages(two, "EphemeralContainerRefused")
        assert "bad: spec: it breaks the Pod Security level baseline" in message
        assert daemon.status("web", "pods") is None, "it is in step"


async def test_resize_reaches_the_host(two: Two) -> None:
    two.virtual.put(POD)
    async with two.daemon(SYNCERS) as daemon:
        await until(lambda: two.copy("pods", "web"))
        for cpu in ("200m", "300m"):
            await changed(two, "resize", sized(cpu))
            await until(partial(requests, two, cpu))
        await daemon.settled()
        assert daemon.status("web", "pods") is None
    since = len(two.host.requests)
    async with two.daemon(SYNCERS) as daemon:
        await daemon.settled()
        assert [one for one in list(two.host.requests)[since:] if one.verb == "patch"] == [], "no repetition"


async def test_resize_that_the_host_refuses_is_reported_and_the_rest_goes_on(two: Two) -> None:
    """The copy has a limit of the host's own, which the tenant's new request is above."""
    two.virtual.put(
        pod("web", spec={"containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "1"}}}]})
    )
    async with two.daemon(SYNCERS) as daemon:
        await until(lambda: two.copy("pods", "web"))
        limited = {**container(two), "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
        two.host.put(merged(two.copy("pods", "web") or {}, {"spec": {"containers": [limited]}}))
        await changed(two, "resize", sized("3"))
        await until(lambda: messages(two, "SyncFailed"))
        reports(two, phase="Running")
        await until(lambda: phase(two) == "Running")
        await asyncio.sleep(60)
        [message] = messages(two, "SyncFailed")
        assert "must be less than or equal to cpu limit" in message
        assert host_path("web") not in message
        status = daemon.status("web", "pods")
        assert status is not None
        assert status.state is RequestState.PENDING
        assert "pods/resize is refused" in status.reason
        await changed(two, "resize", sized("1500m"))
        await until(partial(requests, two, "1500m"))
        await daemon.settled()
        assert daemon.status("web", "pods") is None


async def test_subresource_without_its_right_is_reported_and_delays_nothing() -> None:
    """A role from before: it allows everything but these subresources."""
    two = Two(rbac=True)
    everything = ("pods", "pods/status", "secrets", "serviceaccounts", "services", "configmaps", "namespaces")
    for obj in role(*everything):
        two.host.put(obj)
    two.virtual.put(POD)
    async with two.daemon(SYNCERS, user="daemon"):
        await until(lambda: two.copy("pods", "web"))
        await changed(two, "resize", sized("200m"))
        await until(lambda: messages(two, "SyncFailed"))
        reports(two, phase="Running")
        await until(lambda: phase(two) == "Running")
        [message] = messages(two, "SyncFailed")
        assert "its operator has to grant it" in message
        for obj in role("pods/resize"):
            two.host.put(obj)
        await until(partial(requests, two, "200m"), within=310)
