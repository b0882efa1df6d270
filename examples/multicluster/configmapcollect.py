"""Copy the ConfigMaps with the label ``collect=yes`` of several clusters into a namespace of one.

$ python examples/multicluster/configmapcollect.py eu eu,us --namespace collected

The namespace must exist.

The copies bear the names of their originals' clusters and namespaces, and go with them, also with
those that went while this program didn't run.
"""

import argparse
import asyncio
import contextlib
from dataclasses import dataclass

from syncer.multicluster import (
    CONFIG_MAPS,
    Cluster,
    ClusterCache,
    ClusterCacheOptions,
    ClusterOptions,
    ConnectionSettings,
    ContextsProvider,
    Controller,
    ControllerReference,
    Key,
    Manager,
    NotFound,
    Obj,
    Part,
    Request,
    uid_of,
)

FIELDS = ("data", "binaryData")
COLLECTED = Part(selector="collect=yes")


@dataclass
class Collection:
    """The copies in a namespace of a cluster."""

    sources: ClusterCache
    home: Cluster
    namespace: str

    async def reconcile(self, request: Request) -> None:
        """Bring the copy of a ConfigMap in step.

        What raises, such as a lost cluster, is tried again.
        """
        source = self.sources.get_client(request.cluster)
        original = await source.get(CONFIG_MAPS, request.key)
        key = Key(self.namespace, f"{request.cluster}-{request.namespace}-{request.name}")
        copy = await self.home.get(CONFIG_MAPS, key)
        reference = ControllerReference.of(copy) if copy else None
        if copy is not None and (reference is None or reference.request != request):
            print(f"{key} is not a copy of {request}: it stays as it is", flush=True)
        elif original is None:
            if copy is not None:
                with contextlib.suppress(NotFound):
                    await self.home.delete(CONFIG_MAPS, key, uid=uid_of(copy))
                print(f"deleted {key}", flush=True)
        elif copy is None:
            await self.home.create(CONFIG_MAPS, wanted(original, request, key))
            source.recorder("configmapcollect").event(
                original, "Normal", "Collected", f"copied to {key}"
            )
            print(f"created {key}", flush=True)
        elif (
            changed := copy | wanted(original, request, key) | {"metadata": copy["metadata"]}
        ) != copy:
            await self.home.replace(CONFIG_MAPS, changed)
            print(f"updated {key}", flush=True)


def wanted(original: Obj, request: Request, key: Key) -> Obj:
    """Return the copy of a ConfigMap, which names its original."""
    copy = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": key.namespace, "name": key.name},
    }
    data = {name: original.get(name) or {} for name in FIELDS}
    return ControllerReference.to(original, cluster=request.cluster).put_on(copy | data)


async def main() -> None:
    """Run until interrupted or terminated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", help="the context of the cluster with the copies")
    parser.add_argument(
        "sources", help="contexts of the clusters with the originals, separated by commas"
    )
    parser.add_argument("--kubeconfig", default="", help="its file, otherwise as for kubectl")
    parser.add_argument("--namespace", default="collected", help="the namespace of the copies")
    options = parser.parse_args()

    provider = ContextsProvider(options.kubeconfig, contexts=options.sources.split(","))
    parts = ClusterOptions(by_object={CONFIG_MAPS: COLLECTED})  # nothing else is read or kept
    cache = ClusterCache(
        [provider], ClusterCacheOptions(user_agent="configmapcollect", clusters=parts)
    )
    connection = ConnectionSettings(options.kubeconfig, options.home)
    home = Cluster("(home)", connection, options=ClusterOptions(namespace=options.namespace))
    controller = Controller(Collection(cache, home, options.namespace).reconcile)

    def watch(cluster: Cluster) -> None:
        if cluster is not home:
            controller.watch_object(cluster, CONFIG_MAPS)

    controller.for_every_cluster(watch)
    controller.watch_owner(
        home, CONFIG_MAPS, CONFIG_MAPS
    )  # copies that go or change, or whose original has gone
    manager = Manager()
    manager.add(controller)
    manager.add(cache)
    await manager.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main())
