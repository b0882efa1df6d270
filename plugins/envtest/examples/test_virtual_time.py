"""An asyncio program in virtual time: it retries for an hour, and the test takes milliseconds."""

import asyncio
import json

from kube_envtest import ApiServer, MemoryClient, Rule, virtual_time

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def insist(client: MemoryClient, name: str) -> int:
    """Create a Lease, retrying every five minutes; return the number of attempts.

    The code under test.
    """
    body = json.dumps({"metadata": {"name": name}, "spec": {"holderIdentity": "me"}}).encode()
    tries = 1
    while (await client.request("POST", LEASES, body=body)).status != 201:
        await asyncio.sleep(300)
        tries += 1
    return tries


def test_client_retries_until_the_server_has_recovered() -> None:
    async def scenario() -> None:
        server = ApiServer()
        server.faults.add(Rule(verb="create", resource="leases", status=503, count=12))
        assert await insist(server.client(), "leader") == 13
        assert asyncio.get_running_loop().time() == 3600
        assert server.get("leases.coordination.k8s.io", "default/leader") is not None

    virtual_time.run(scenario())
