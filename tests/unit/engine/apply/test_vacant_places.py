"""The check that nothing of others is where the names in a copy lead."""

from typing import Any

import pytest

from syncer.api import Key, NotYet, ObjectRef, Refused, Settings, Side, Source
from syncer.clusters.client import SideClient
from syncer.engine.apply.preconditions import must_be_vacant
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.controller import Vacant
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.engine.stores.informers import Informers
from syncer.names import SingleNamespace, Unchanged
from syncer.resources.kinds import NAMESPACES, SECRETS
from syncer.testing import ApiServer
from syncer.testing.objects import build, namespace

VACANT = Vacant(SECRETS, Key("vc-ns", "theirs"), Key("shop", "mine"), about=())
HOMES = HostNamespaces(
    Settings("vc", "vc-ns", SingleNamespace(cluster="vc", namespace="vc-ns")), Informers(clock=lambda: 0.0)
)


@pytest.mark.parametrize("name", ["theirs", "vc-ns/theirs"])
@pytest.mark.parametrize("levels", [1, 100_000])
async def test_name_of_an_object_of_others_is_found_however_deep_it_is(levels: int, name: str) -> None:
    """A text costs the same at every level: a generator for each would be resumed by each text below."""
    body: Any = name
    for level in range(levels):
        body = {"a": body} if level % 2 else [body]
    server = ApiServer(seed="host")
    server.put(namespace("vc-ns"))
    host = SideClient("host", Side.HOST, server.transport())
    calls = [Call(Operation.CREATE, {"spec": body})]
    await must_be_vacant(host, [VACANT], calls, homes=HOMES)
    server.put(build(SECRETS, "theirs", namespace="vc-ns"))
    with pytest.raises(Refused) as refused:
        await must_be_vacant(host, [VACANT], calls, homes=HOMES)
    assert refused.value.reason == "NameCollision"
    assert refused.value.in_the_way == ObjectRef(Side.HOST, SECRETS, Key("vc-ns", "theirs"))
    await must_be_vacant(host, [VACANT], [Call(Operation.CREATE, {"spec": {"theirs": "other"}})], homes=HOMES)


@pytest.mark.parametrize("kind", [Operation.PATCH, Operation.MERGE])
async def test_name_that_is_added_to_a_copy_is_looked_at_too(kind: Operation) -> None:
    server = ApiServer(seed="host")
    for obj in (namespace("vc-ns"), build(SECRETS, "theirs", namespace="vc-ns")):
        server.put(obj)
    with pytest.raises(Refused):
        host = SideClient("host", Side.HOST, server.transport())
        await must_be_vacant(host, [VACANT], [Call(kind, {"spec": {"name": "theirs"}})], homes=HOMES)


@pytest.mark.parametrize(
    ("name", "error"), [("default", Refused), pytest.param("theirs", NotYet, marks=pytest.mark.reason("HomeMissing"))]
)
async def test_name_that_leads_into_a_namespace_of_the_hosts_is_not_even_looked_up(
    name: str, error: type[Exception]
) -> None:
    informers = Informers(clock=lambda: 0.0)
    informers.want(Source(Side.HOST, NAMESPACES, marked=True))
    homes = HostNamespaces(Settings("vc", "vc-ns", Unchanged(cluster="vc", namespace="vc-ns")), informers)
    server = ApiServer(seed="host")
    server.put(namespace(name))
    host, host_key = SideClient("host", Side.HOST, server.transport()), Key(name, "x")
    vacant = Vacant(SECRETS, host_key, host_key, about=())
    with pytest.raises(error) as raised:
        await must_be_vacant(host, [vacant], [Call(Operation.CREATE, {"spec": {"name": "x"}})], homes=homes)
    assert not server.requests
    if isinstance(raised.value, NotYet):
        assert raised.value.on == ObjectRef(Side.HOST, NAMESPACES, Key("", name))


async def test_name_of_an_object_without_a_namespace_is_looked_up() -> None:
    homes = HostNamespaces(Settings("vc", "", Unchanged(cluster="vc", namespace="")), Informers(clock=lambda: 0.0))
    server = ApiServer(seed="host")
    host, host_key = SideClient("host", Side.HOST, server.transport()), Key("", "theirs")
    vacant = Vacant(NAMESPACES, host_key, host_key, about=())
    calls = [Call(Operation.CREATE, {"spec": {"name": "theirs"}})]
    await must_be_vacant(host, [vacant], calls, homes=homes)
    server.put(namespace("theirs"))
    with pytest.raises(Refused):
        await must_be_vacant(host, [vacant], calls, homes=homes)
