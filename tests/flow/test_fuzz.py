"""Objects of any JSON shape on either side: unsyncable objects are refused with a reason, and stop
no others.
"""

import asyncio
import functools
from collections.abc import Sequence

import pytest
from chaos.daemons import configured
from custom_scene import CERTIFICATES, CLUSTER_ISSUERS, ISSUERS, cert_manager, certificate, custom
from harness import CLUSTER, HOME, NAMESPACE, Daemon, Two, between, play, until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_objects import JUNK, OldServer, odd, replaced
from sampled import MADE, define

from syncer.api import Key, Obj, SyncRequest
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, host_copy, ingress, pod_mounting, secret, service, serviceaccount

#: One of each kind, by the syncer that copies it.
ORIGINALS = {
    "configmaps": configmap("c"),
    "secrets": secret("s"),
    "services": service("v"),
    "serviceaccounts": serviceaccount("sa"),
    "pods": pod_mounting("p", secret="s", configmap="c"),
    CERTIFICATES: certificate("crt"),
    ISSUERS: custom(ISSUERS, "ca", spec={"ca": {"secretName": "s"}}),
    "ingresses": ingress("i", tls_secret="s"),
}
ORIGINALS |= {name: sample.object("x") for name, sample in MADE.items() if name not in ORIGINALS}
OF_THE_HOST = [custom(CLUSTER_ISSUERS, "shared", namespace="", spec={"selfSigned": {}})]
#: What is whole, and must be copied whatever else there is.
GOOD = [configmap("good"), service("good"), serviceaccount("good"), certificate("good", "good-tls")]


def named(obj: Obj, number: int, **metadata: str) -> Obj:
    """Return the object under a name of its own, as it would be stored."""
    known = {"name": f"{obj['metadata']['name']}{number}", "uid": f"u-{obj['kind']}-{number}".lower(), **metadata}
    return {**obj, "metadata": {"resourceVersion": "1", **obj["metadata"], **known}}


class Old:
    """Two old API servers, and a daemon that copies all kinds between them."""

    def __init__(self) -> None:
        self.two = Two()
        self.two.virtual, self.two.host = OldServer(seed="virtual"), OldServer(seed="host")
        self.two.host.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
        self.two.virtual.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cert_manager(self.two)
        define(self.two.virtual, self.two.host)

    def plant(self, virtual: Sequence[Obj], host: Sequence[Obj]) -> None:
        """Let there be objects, as they are."""
        for server, objects in ((self.two.virtual, virtual), (self.two.host, host)):
            assert isinstance(server, OldServer)
            for obj in objects:
                server.plant(obj)

    async def check(self, daemon: Daemon, odd_ones: Sequence[Obj]) -> None:
        """Check that all that is whole is copied, all that isn't is copied or has a reason, and
        everything runs on.
        """
        two, process = self.two, daemon.process
        for good in ("configmaps", "services", "serviceaccounts", CERTIFICATES):
            await until(functools.partial(two.copy, good, "good"), within=120)
        await asyncio.sleep(5)
        assert not daemon.working.done()
        assert [str(one) for one in process.pairs[CLUSTER].reflectors.values() if one.error] == []
        for obj in odd_ones:
            syncer = next(name for name, one in ORIGINALS.items() if one["kind"] == obj["kind"])
            self._accounted(daemon, syncer, obj["metadata"]["name"])

    def _accounted(self, daemon: Daemon, syncer: str, name: str) -> None:
        kind = MADE[syncer].plural if syncer in MADE else syncer
        if self.two.copy(kind, name) is None:
            status = daemon.process.statuses.of(SyncRequest(CLUSTER, syncer, Key(NAMESPACE, name)))
            assert status, f"no status of {kind} {name}"
            assert status.reason


def unspoken(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Return the errors of tasks that are read by no caller."""
    found: list[str] = []
    loop.set_exception_handler(lambda _, context: found.append(str(context)))
    return found


def marked(obj: Obj) -> Obj:
    """Return the object as our copy of one on the virtual side."""
    return merged({name: value for name, value in obj.items() if name != "metadata"}, host_copy(obj))


VIRTUAL = st.lists(odd(list(ORIGINALS.values())), min_size=1, max_size=12)
HOST = st.lists(odd([marked(obj) for obj in ORIGINALS.values()] + OF_THE_HOST), max_size=6)


@given(virtual=VIRTUAL, host=HOST, later=st.booleans())
@settings(max_examples=40, suppress_health_check=list(HealthCheck), database=None)
def test_object_of_any_shape_stops_no_other(virtual: list[Obj], host: list[Obj], later: bool) -> None:
    async def scenario() -> None:
        old = Old()
        unheard = unspoken(asyncio.get_running_loop())
        odd_virtual = [named(obj, number) for number, obj in enumerate(virtual)]
        odd_host = [named(obj, 100 + number) for number, obj in enumerate(host)]
        if not later:
            old.plant(odd_virtual, odd_host)
        async with between(old.two.host, [(configured(CLUSTER, HOME, everything=True), old.two.virtual)]) as daemon:
            if later:
                await daemon.settled()
                old.plant(odd_virtual, odd_host)
            for good in GOOD:
                old.two.virtual.put(good)
            await old.check(daemon, odd_virtual)
        assert unheard == []

    play(scenario)


@pytest.mark.parametrize("junk", sorted(JUNK))
@pytest.mark.parametrize("later", [False, True], ids=["listed", "watched"])
async def test_object_with_any_contents_and_no_schema_stops_no_other(junk: str, later: bool) -> None:
    """A custom resource whose CRD takes anything: all of its parts are the tenant's to write."""
    old = Old()
    whole = ORIGINALS[CERTIFICATES]
    paths = [("spec",), ("spec", "secretName"), ("spec", "issuerRef"), ("spec", "issuerRef", "name"), ("status",)]
    objects = [named(replaced(whole, path, JUNK[junk]), number) for number, path in enumerate(paths)]
    if not later:
        old.plant(objects, [])
    async with between(old.two.host, [(configured(CLUSTER, HOME, everything=True), old.two.virtual)]) as daemon:
        if later:
            await daemon.settled()
            old.plant(objects, [])
        for good in GOOD:
            old.two.virtual.put(good)
        await old.check(daemon, objects)
        known = {status.error for _, status in daemon.process.statuses.troubles()}
        assert known <= {"Refused", "NameTaken", "Invalid"}, known
