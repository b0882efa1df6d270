"""Run a controller in each cluster that a RemoteCluster names.

The kubeconfig of the cluster is in a Secret beside the RemoteCluster.

$ kubectl apply -f examples/multicluster/remotecluster.yaml
$ python examples/multicluster/remotecluster.py --namespace fleet
"""

import argparse
import asyncio
import contextlib

from syncer.api import AlreadyExists, Key, NotFound, Obj, Resource
from syncer.multicluster import (
    NAMESPACES,
    PODS,
    SECRETS,
    Client,
    Cluster,
    ClusterOptions,
    ClusterRegistry,
    ConnectionSettings,
    Controller,
    Manager,
    RemoteClusters,
    Request,
    Spawned,
)

REMOTE_CLUSTERS = Resource("examples.vsyncer.dev/v1", "RemoteCluster", "remoteclusters")
#: What the controllers need in a cluster.
AGENT = Key("", "remotecluster-agent")


class Agent:
    """Has a Namespace in each cluster, in place of whatever your controllers need there."""

    async def install(self, client: Client, obj: Obj) -> None:
        """Create it, before the controllers start."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT.name}}
        with contextlib.suppress(AlreadyExists):
            await client.create(NAMESPACES, namespace)

    async def uninstall(self, client: Client, obj: Obj) -> None:
        """Delete it; the RemoteCluster goes afterwards."""
        with contextlib.suppress(NotFound):
            await client.delete(NAMESPACES, AGENT)


def pods_controller(of: Spawned) -> Controller:
    """Return a controller that prints the pods of a cluster.

    ``of.manage`` is the cluster of the RemoteClusters.
    """

    async def reconcile(request: Request) -> None:
        print(f"{request.cluster}: {request.namespace} / {request.name}", flush=True)

    controller = Controller(reconcile)
    controller.watch_object(of.cluster, PODS)
    return controller


async def main() -> None:
    """Run until interrupted or terminated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--namespace", default="default", help="the namespace of the RemoteClusters and the Secrets"
    )
    parser.add_argument(
        "--kubeconfig", default="", help="that of their cluster, otherwise as for kubectl"
    )
    parser.add_argument("--context", default="", help="its context, otherwise the current one")
    options = parser.parse_args()

    connection = ConnectionSettings(options.kubeconfig, options.context)
    home = Cluster("management", connection, options=ClusterOptions(namespace=options.namespace))
    async with ClusterRegistry(home, factories=[pods_controller]) as registry:
        remotes = RemoteClusters(
            registry, REMOTE_CLUSTERS, secrets=home.informer(SECRETS), agent=Agent()
        )
        manager = Manager()
        manager.add(remotes.controller)
        await manager.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main())
