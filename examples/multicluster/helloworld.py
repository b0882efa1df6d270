"""Print the pods of several clusters as they come, change and go.

$ python examples/multicluster/helloworld.py --contexts eu,us
"""

import argparse
import asyncio

from syncer.multicluster import PODS, Cluster, ConnectionSettings, Controller, Manager, Request


async def reconcile(request: Request) -> None:
    """Print a request."""
    print(f"{request.cluster} / {request.namespace} / {request.name}", flush=True)


async def main() -> None:
    """Run until interrupted or terminated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--contexts", required=True, help="contexts of the kubeconfig, separated by commas"
    )
    parser.add_argument("--kubeconfig", default="", help="its file, otherwise as for kubectl")
    options = parser.parse_args()

    controller = Controller(reconcile)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    manager = Manager()
    manager.add(controller)
    for context in options.contexts.split(","):
        manager.engage(Cluster(context, ConnectionSettings(options.kubeconfig, context)))
    await manager.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main())
