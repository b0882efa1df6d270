"""Show the pods of several clusters as custom resources, PodGhosts, in one of them.

$ kubectl --context eu apply -f examples/multicluster/podghost.yaml
$ python examples/multicluster/podghost.py eu us --namespace shop
"""

import argparse
import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from syncer.api import NotFound, Obj, Resource, key_of, uid_of
from syncer.multicluster import (
    PODS,
    Cluster,
    ClusterOptions,
    ConnectionSettings,
    Controller,
    ControllerReference,
    Manager,
    Request,
)

GHOSTS = Resource("examples.vsyncer.dev/v1", "PodGhost", "podghosts")
#: The index of ghosts by the requests of their pods.
BY_POD = "pod"


@dataclass
class Ghosts:
    """The pods of several clusters, and their ghosts in one of them."""

    sources: Mapping[str, Cluster]
    destination: Cluster

    async def reconcile(self, request: Request) -> None:
        """Bring the ghost of a pod in step."""
        pod = await self.sources[request.cluster].get(PODS, request.key)
        ghosts = await self.destination.by_index(GHOSTS, BY_POD, request)
        ghost = next(
            (each for each in ghosts if pod is not None and each["spec"]["uid"] == uid_of(pod)),
            None,
        )
        for each in ghosts:
            if each is not ghost:
                await self.delete(each)
        if pod is None:
            return
        if ghost is None:
            await self.destination.create(GHOSTS, self.wanted(pod, request))
            print(f"{request.cluster} / {request.key} has a ghost", flush=True)
        elif ghost["spec"] != spec(pod, request):
            await self.destination.replace(GHOSTS, {**ghost, "spec": spec(pod, request)})
            print(f"{request.cluster} / {request.key} is {phase(pod)}", flush=True)

    def wanted(self, pod: Obj, request: Request) -> Obj:
        """Return a new ghost.

        The API server completes its name, as pods of two clusters may have the same.
        """
        ghost = {
            "apiVersion": GHOSTS.api_version,
            "kind": GHOSTS.kind,
            "metadata": {
                "namespace": request.namespace,
                "generateName": f"{request.cluster}-{request.name}-",
            },
            "spec": spec(pod, request),
        }
        return ControllerReference.to(pod, cluster=request.cluster).put_on(ghost)

    async def delete(self, ghost: Obj) -> None:
        """Delete a ghost whose pod has gone."""
        with contextlib.suppress(NotFound):
            await self.destination.delete(GHOSTS, key_of(ghost), uid=uid_of(ghost))
        print(f"the ghost {key_of(ghost)} has gone", flush=True)


def spec(pod: Obj, request: Request) -> Obj:
    """Return what a ghost shows of its pod."""
    return {
        "cluster": request.cluster,
        "pod": request.name,
        "uid": uid_of(pod),
        "phase": phase(pod),
    }


def phase(pod: Obj) -> str:
    """Return the phase of a pod."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def pod_of(ghost: Obj) -> list[Request]:
    """Return the request of a ghost's pod."""
    reference = ControllerReference.of(ghost)
    return [] if reference is None else [reference.request]


async def main() -> None:
    """Run until interrupted or terminated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "destination", help="the context of the kubeconfig whose cluster has the ghosts"
    )
    parser.add_argument("sources", nargs="+", help="the contexts whose pods have ghosts")
    parser.add_argument("--kubeconfig", default="", help="its file, otherwise as for kubectl")
    parser.add_argument("--namespace", default="default", help="the namespace, in all clusters")
    options = parser.parse_args()

    limit = ClusterOptions(namespace=options.namespace)
    contexts = dict.fromkeys((options.destination, *options.sources))
    clusters = {
        context: Cluster(context, ConnectionSettings(options.kubeconfig, context), options=limit)
        for context in contexts
    }
    destination = clusters[options.destination]
    destination.add_index(GHOSTS, BY_POD, pod_of)
    controller = Controller(Ghosts(clusters, destination).reconcile)
    for context in options.sources:
        controller.watch_object(clusters[context], PODS)
    controller.watch_owner(destination, GHOSTS, PODS)
    manager = Manager()
    manager.add(controller)
    await manager.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main())
