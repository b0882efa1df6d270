"""The check that nothing of others is where the names in a copy lead."""

from typing import Any

import pytest

from kube_envtest import virtual_time
from syncer.api import Key, Refused, Side
from syncer.clusters.client import Cluster
from syncer.engine.apply.preconditions import must_be_vacant
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.controller import Vacant
from syncer.resources.kinds import SECRETS
from syncer.testing import ApiServer
from syncer.testing.objects import build, namespace

VACANT = Vacant(SECRETS, Key("vc-ns", "theirs"), Key("shop", "mine"), about=())


@pytest.mark.parametrize("name", ["theirs", "vc-ns/theirs"])
@pytest.mark.parametrize("levels", [1, 100_000])
def test_name_of_an_object_of_others_is_found_however_deep_it_is(levels: int, name: str) -> None:
    """A text costs the same at every level: a generator for each would be resumed by each text below."""
    body: Any = name
    for level in range(levels):
        body = {"a": body} if level % 2 else [body]

    async def scenario() -> None:
        server = ApiServer(seed="host")
        server.put(namespace("vc-ns"))
        host = Cluster("host", Side.HOST, server.transport())
        calls = [Call(Operation.CREATE, {"spec": body})]
        await must_be_vacant(host, [VACANT], calls)
        server.put(build(SECRETS, "theirs", namespace="vc-ns"))
        with pytest.raises(Refused) as refused:
            await must_be_vacant(host, [VACANT], calls)
        assert refused.value.reason == "NameCollision"
        await must_be_vacant(host, [VACANT], [Call(Operation.CREATE, {"spec": {"theirs": "other"}})])

    virtual_time.run(scenario())


@pytest.mark.parametrize("kind", [Operation.PATCH, Operation.MERGE])
def test_name_that_is_added_to_a_copy_is_looked_at_too(kind: Operation) -> None:
    async def scenario() -> None:
        server = ApiServer(seed="host")
        for obj in (namespace("vc-ns"), build(SECRETS, "theirs", namespace="vc-ns")):
            server.put(obj)
        with pytest.raises(Refused):
            host = Cluster("host", Side.HOST, server.transport())
            await must_be_vacant(host, [VACANT], [Call(kind, {"spec": {"name": "theirs"}})])

    virtual_time.run(scenario())
