"""The program that enforces a node's NetworkPolicies: it watches them, Pods and Namespaces, and
sets nftables' rules.

A pod is held to them once its status tells its address, so a moment after its start; Kubernetes
lets networks do so.
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

from hack.commands import SECONDS
from hack.realnode.policies import pod_of, ruleset
from syncer.api import Key, Obj, Resource
from syncer.api.selectors import Labels
from syncer.multicluster import Cluster, ConnectionSettings
from syncer.resources.kinds import NAMESPACES, NETWORK_POLICIES, PODS

T = TypeVar("T")


class Enforcer:
    """Enforces the policies of a cluster in this network namespace."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._changed = asyncio.Event()
        self._policies = self._follow(NETWORK_POLICIES, _policy_of)
        self._pods = self._follow(PODS, pod_of)
        self._namespaces = self._follow(NAMESPACES, _labels_of)

    async def run(self) -> None:
        """Run until cancelled.

        Raises:
            CalledProcessError: nft refuses the rules; those before stay in force.
            TimeoutExpired: nft hangs.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._cluster.run())
            tasks.create_task(self._enforce())

    async def _enforce(self) -> None:
        for informer in self._cluster.informers():
            await informer.filled()
        set_before = ""
        while True:
            self._changed.clear()
            namespaces = {key.name: labels for key, labels in self._namespaces.items()}
            rules = ruleset(self._policies.values(), list(self._pods.values()), namespaces)
            if rules != set_before:
                await asyncio.to_thread(
                    subprocess.run,
                    ["nft", "-f", "-"],
                    input=rules,
                    text=True,
                    check=True,
                    timeout=SECONDS,
                )
                set_before = rules
            await self._changed.wait()

    def _follow(self, resource: Resource, parse: Callable[[Obj], T | None]) -> dict[Key, T]:
        """Return the known objects of a kind, from now on; None is left out."""
        known: dict[Key, T] = {}
        informer = self._cluster.informer(resource)

        def see(key: Key, _: Obj) -> None:
            obj = informer.get(key)
            value = None if obj is None else parse(obj)
            if value == known.get(key):
                return
            if value is None:
                del known[key]
            else:
                known[key] = value
            self._changed.set()

        informer.add_handler(see, owner="enforcer")
        return known


def _policy_of(obj: Obj) -> Obj:
    metadata = obj["metadata"]
    return {"metadata": {"namespace": metadata["namespace"]}, "spec": obj["spec"]}


def _labels_of(obj: Obj) -> Labels:
    labels: Labels = obj["metadata"].get("labels") or {}
    return labels


async def main(kubeconfig: str) -> None:
    """Enforce the policies of the cluster of a kubeconfig until the process ends."""
    await Enforcer(Cluster("node", ConnectionSettings(kubeconfig), environ={})).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
