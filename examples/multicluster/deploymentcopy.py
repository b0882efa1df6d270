"""Copy the Deployments of a namespace to another cluster, and keep the copies as the originals are.

$ python examples/multicluster/deploymentcopy.py eu us --namespace shop
"""

import argparse
import asyncio
import contextlib
from dataclasses import dataclass

from syncer.api import NotFound, Obj, uid_of
from syncer.multicluster import (
    DEPLOYMENTS,
    Cluster,
    ClusterOptions,
    ConnectionSettings,
    Controller,
    ControllerReference,
    Manager,
    Request,
)


@dataclass
class Copies:
    """The Deployments of a cluster, and their copies in another one."""

    source: Cluster
    destination: Cluster

    async def reconcile(self, request: Request) -> None:
        """Bring the copy of a Deployment in step."""
        original = await self.source.get(DEPLOYMENTS, request.key)
        copy = await self.destination.get(DEPLOYMENTS, request.key)
        if copy is not None and not self.is_ours(copy):
            print(
                f"{request.key} in {self.destination} is not a copy: it stays as it is", flush=True
            )
        elif original is None and copy is not None:
            with contextlib.suppress(NotFound):
                await self.destination.delete(DEPLOYMENTS, request.key, uid=uid_of(copy))
            print(f"deleted the copy of {request.key}", flush=True)
        elif original is not None and copy is None:
            await self.destination.create(DEPLOYMENTS, self.wanted(original))
            print(f"copied {request.key}", flush=True)
        elif original is not None and copy is not None and copy["spec"] != original["spec"]:
            await self.destination.replace(DEPLOYMENTS, {**copy, "spec": original["spec"]})
            print(f"updated the copy of {request.key}", flush=True)

    def wanted(self, original: Obj) -> Obj:
        """Return a new copy, which names its original."""
        metadata = {name: original["metadata"][name] for name in ("namespace", "name")}
        copy = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": original["spec"],
        }
        return ControllerReference.to(original, cluster=self.source.name).put_on(copy)

    def is_ours(self, obj: Obj) -> bool:
        """Return True if a Deployment is a copy of one of the source."""
        reference = ControllerReference.of(obj)
        return reference is not None and reference.cluster == self.source.name


async def main() -> None:
    """Run until interrupted or terminated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="a context of the kubeconfig")
    parser.add_argument("destination", help="another context of the kubeconfig")
    parser.add_argument("--kubeconfig", default="", help="its file, otherwise as for kubectl")
    parser.add_argument("--namespace", default="default", help="the namespace, in both clusters")
    options = parser.parse_args()

    limit = ClusterOptions(namespace=options.namespace)
    source, destination = (
        Cluster(context, ConnectionSettings(options.kubeconfig, context), options=limit)
        for context in (options.source, options.destination)
    )
    controller = Controller(Copies(source, destination).reconcile)
    controller.watch_object(source, DEPLOYMENTS)
    controller.watch_owner(destination, DEPLOYMENTS, DEPLOYMENTS)
    manager = Manager()
    manager.add(controller)
    await manager.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main())
