"""One daemon between a host and several virtual clusters,
of which one goes away and another is taken out.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hack.kubelet import Kubelet, is_ready
from hack.planes import HOST_CONTROLLERS, find_programs
from hack.realnode.tenant import HOST_NAMESPACE
from hack.side_tasks import helped_by
from hack.webshop.daemon import NETWORKING, Daemon
from hack.webshop.waiting import Failed, in_thread, say
from kube_envtest import ControlPlane, NotAvailable, start_all
from syncer.api import Key, Obj, Resource, Side
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.resources.kinds import NAMESPACES, PODS
from syncer.testing.objects import namespace, pod, serviceaccount

#: The user that the daemon is.
DAEMON = "daemon"
#: The virtual namespace.
SHOP = "shop"
#: The pods of each virtual cluster at first.
PODS_EACH = 2


@dataclass(frozen=True)
class FleetDemo:
    """A run with so many virtual clusters; ``timeout`` is of each step, in seconds."""

    folder: Path
    clusters: int
    timeout: float

    async def run(self) -> None:
        """Start everything, show what the daemon does, and end.

        Raises:
            Failed: It can't go on.
        """
        names = [f"tenant-{number}" for number in range(1, self.clusters + 1)]
        async with AsyncExitStack() as stack:
            begun = time.monotonic()
            planes = await self._planes(names, stack)
            took = time.monotonic() - begun
            say(f"1. A host and {len(names)} virtual clusters. They took {took:.1f} s to start.")
            admins = {
                name: await self._admin(name, planes[name], stack) for name in ("host", *names)
            }
            await admins["host"].create(NAMESPACES, namespace(HOST_NAMESPACE))
            await stack.enter_async_context(
                helped_by(Kubelet(admins["host"], HOST_NAMESPACE).run())
            )
            daemon = await self._daemon(planes, admins, names, stack)
            say(
                "",
                f"3. {PODS_EACH} pods in each of them, all in the host namespace {HOST_NAMESPACE}:",
            )
            for name in names:
                await admins[name].create(NAMESPACES, namespace(SHOP))
                await admins[name].create(
                    _SERVICE_ACCOUNTS, serviceaccount("default", namespace=SHOP)
                )
                for number in range(PODS_EACH):
                    await admins[name].create(PODS, _pod(f"web-{number}"))
            for name in names:
                for number in range(PODS_EACH):
                    await self._ready(admins[name], f"web-{number}")
            await self._show(daemon, lambda states: states == dict.fromkeys(names, "served"))
            gone = names[0]
            other = names[1]
            say("", f"4. The API server of {gone} ends. A pod of {other} meanwhile:")
            await in_thread(planes[gone].stop)
            await admins[other].create(PODS, _pod("meanwhile"))
            seconds = await self._ready(admins[other], "meanwhile")
            say(f"   Ready after {seconds:.1f} s.")
            await self._show(
                daemon, lambda states: states[gone] == "silent" and states[other] == "served"
            )
            say("", f"5. {gone} is taken out of {daemon.file}, while the daemon runs:")
            daemon.config["virtualClusters"] = daemon.config["virtualClusters"][1:]
            daemon.write()
            await self._show(daemon, lambda states: gone not in states)
            copies = await admins["host"].list(PODS, namespace=HOST_NAMESPACE)
            left = sum(each["metadata"]["name"].endswith(f"-{gone}") for each in copies)
            say(f"   Its pods go on: {left} on the host.")

    async def _planes(self, names: Sequence[str], stack: AsyncExitStack) -> dict[str, ControlPlane]:
        try:
            programs = find_programs()
        except NotAvailable as missing:
            raise Failed(f"it needs real clusters: {missing}") from missing
        controllers = HOST_CONTROLLERS if programs.has("kube-controller-manager") else ""
        planes = {"host": ControlPlane("host", programs=programs, controllers=controllers)}
        planes |= {name: ControlPlane(name, programs=programs) for name in names}
        for plane in planes.values():
            stack.callback(plane.stop)
        await in_thread(partial(start_all, *planes.values()))
        return planes

    async def _admin(self, name: str, plane: ControlPlane, stack: AsyncExitStack) -> SideClient:
        path = plane.kubeconfig("admin", path=self.folder / f"{name}.kubeconfig")
        side = Side.HOST if name == "host" else Side.VIRTUAL
        made = connect(ConnectionSettings(str(path)), side=side, environ={})
        stack.push_async_callback(made.close)
        return made

    async def _daemon(
        self,
        planes: Mapping[str, ControlPlane],
        admins: Mapping[str, SideClient],
        names: Sequence[str],
        stack: AsyncExitStack,
    ) -> Daemon:
        files = {
            name: planes[name].kubeconfig(DAEMON, path=self.folder / f"{name}-{DAEMON}.kubeconfig")
            for name in ("host", *names)
        }
        entries = [
            {"name": name, "kubeconfig": str(files[name]), "hostNamespace": HOST_NAMESPACE}
            for name in names
        ]
        config: dict[str, Any] = {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "virtualClusters": entries,
            "host": {"kubeconfig": str(files["host"])},
            **NETWORKING,
        }
        daemon = Daemon(config, self.folder)
        daemon.write()
        say("", f"2. The daemon: syncer --config {daemon.file}")
        say(
            *(
                f"   {line}"
                for line in yaml.safe_dump(
                    {"virtualClusters": entries}, sort_keys=False
                ).splitlines()
            )
        )
        for name in names:
            await _grant(
                admins[name], await self._rights(daemon, "--side=virtual", f"--cluster={name}")
            )
        await _grant(admins["host"], await self._rights(daemon, "--side=host"))
        stack.push_async_callback(in_thread, daemon.stop)
        daemon.spawn()
        await daemon.ready(self.timeout)
        return daemon

    async def _rights(self, daemon: Daemon, *options: str) -> list[Obj]:
        result = await in_thread(
            lambda: daemon.run("rbac", *options, "--user", DAEMON, "-o", "json")
        )
        found: list[Obj] = json.loads(result.stdout)["items"]
        return found

    async def _ready(self, cluster: SideClient, name: str) -> float:
        """Wait until a pod is Ready; return the seconds."""
        begun = time.monotonic()
        while not is_ready(await cluster.get(PODS, Key(SHOP, name))):
            if time.monotonic() - begun > self.timeout:
                raise Failed(
                    f"the pod {name} of {cluster.name} isn't Ready after {self.timeout:g} s"
                )
            await asyncio.sleep(0.1)
        return time.monotonic() - begun

    async def _show(self, daemon: Daemon, is_so: Callable[[dict[str, str]], bool]) -> None:
        """Wait until the states of the virtual clusters are so,
        and show them as a user sees them.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            result = await in_thread(lambda: daemon.run("clusters", "-o", "json"))
            if result.returncode == 0 and is_so(
                {each["cluster"]: each["state"] for each in json.loads(result.stdout)}
            ):
                break
            if time.monotonic() > deadline:
                raise Failed(f"`syncer clusters` says: {result.stdout or result.stderr}")
            await asyncio.sleep(0.3)
        shown = await in_thread(lambda: daemon.run("clusters"))
        say("   $ syncer clusters", *(f"   {line}" for line in shown.stdout.splitlines()))


_SERVICE_ACCOUNTS = Resource("v1", "ServiceAccount", "serviceaccounts")


def _pod(name: str) -> Obj:
    made = pod(name, namespace=SHOP)
    del made["status"]
    return made


async def _grant(cluster: SideClient, objects: Sequence[Obj]) -> None:
    for obj in objects:
        plural = f"{obj['kind'].lower()}s"
        namespaced = not obj["kind"].startswith("Cluster")
        await cluster.create(Resource(obj["apiVersion"], obj["kind"], plural, namespaced), obj)
