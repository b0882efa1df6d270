"""A daemon within the limit of memory of its chart, a hostile tenant, another one, and a hostile writer of Secrets.

All API servers are in processes of their own, so that none delays another one.
"""

import base64
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from hostile_chaos.fleet import Fleet, listed
from hostile_chaos.pulse import PREFERRED
from hostile_chaos.servers import PULSE, RemoteServer, StagedServer
from hostile_scene import COPIED, DAEMON, NAMESPACE, OTHERS, HostileScene, eventually
from kubelet_client import KubeletClient, follow, with_logs

from hack.memory_group import MemoryGroup
from kube_envtest import ApiServer
from syncer.api import Key, dig
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap, namespace, pod

#: The logs that are followed and never read, and the Secrets that lead to API servers with large objects.
LOGS, SECRETS = 300, 5
#: The size of an object, and the part of the limit that the objects of all these Secrets have together.
SIZE, PART = 900_000, 0.75
NODE = "node-1"
_VALUES = Path(__file__).parents[2] / "charts" / "syncer" / "values.yaml"
_UNITS = {"Mi": 1 << 20, "Gi": 1 << 30}


def limits_of_charts() -> dict[str, int]:
    """Return the limits of memory of the daemon's container, in bytes, by where its chart has them."""
    values = yaml.safe_load(_VALUES.read_text())
    found = {}
    for path in ("resources", "fleet.resources"):
        text: str = dig(values, f"{path}.limits.memory")
        number, unit = text[:-2], text[-2:]
        found[path] = int(number) * _UNITS[unit]
    return found


def with_large_objects(server: ApiServer, number: int) -> None:
    """Put large ConfigMaps into a server."""
    for each in range(number):
        text = base64.b64encode(random.Random(each).randbytes(SIZE * 3 // 4)).decode()
        server.put(configmap(f"c{each}", {"k": text}, namespace=NAMESPACE))


@dataclass
class CrowdedScene:
    """The daemon and its API servers."""

    folder: Path
    group: MemoryGroup
    limit: int
    stack: ExitStack = field(default_factory=ExitStack)
    _own: list[RemoteServer] = field(default_factory=list)
    _beats: int = 0

    def __post_init__(self) -> None:
        self.scene = HostileScene(
            "single-namespace", self.folder, tenant=RemoteServer("virtual"), operator=RemoteServer("host")
        )
        self.stack.callback(partial(self.scene.close, show=False))
        self.fleet = Fleet(self.folder / "fleet", self.scene.operator, lambda *fault: None)
        self.stack.enter_context(self.fleet.closing())

    def start(self) -> None:
        """Start the daemon in the group, and wait until both tenants are served."""
        self.scene.operator.call(with_logs)
        sections: dict[str, Any] = {
            **self.fleet.sections(listed(self.scene)),
            "kubelet": KubeletClient().section(10),
            "sync": {"toHost": {"configMaps": {"all": True}}},
        }
        limited = self.scene.limited(self.limit)
        command = (*self.group.command(*PREFERRED), *limited[:-1], str(self.group.limit))
        self.scene.start(command=command, **sections)
        self.fleet.settle()
        self.scene.tenant.put(pod("web"))
        copy = self.scene.copied(pod("web"))
        self.scene.operator.change(copy, {"spec": {"nodeName": NODE}, "status": {"phase": "Running"}})

    def follow_logs(self) -> Sequence[bytes]:
        """Follow the log of a Pod many times without reading, and return how each answer begins."""
        path = "status.daemonEndpoints.kubeletEndpoint.Port"
        port: int = eventually(lambda: dig(self.scene.tenant.get("nodes", NODE) or {}, path), "the Node has a port")
        return [follow(port, f"{NAMESPACE}/web", self.stack) for _ in range(LOGS)]

    def fill(self) -> None:
        """Put Secrets that lead to API servers with many large objects, and wait until one lacks room."""
        number = int(self.limit * PART / SECRETS / SIZE)
        for each in range(SECRETS):
            own = RemoteServer(f"own{each}", tls=True)
            own.start()
            self.stack.callback(own.stop)
            own.put(namespace(NAMESPACE))
            own.call(partial(with_large_objects, number=number))
            made = own.kubeconfig(self.folder / f"own{each}", DAEMON.name)
            self.scene.operator.put(self.fleet.secret(f"own{each}", yaml.safe_load(made.read_text())))
        text = "there is no room for it"
        eventually(
            lambda: text in self.scene.output_of("clusters") or "maxMegabytes" in self.scene.output_of("parked"),
            "the Secrets lack room",
            seconds=300.0,
        )

    def beat(self, times: int) -> float:
        """Return the median of the seconds that the daemon takes for a ConfigMap of the other tenant."""
        taken = []
        for _ in range(times):
            self._beats += 1
            name = f"{PULSE}{self._beats}"
            copy = self.fleet.names.to_host(CONFIG_MAPS, Key(OTHERS, name)).name
            self.fleet.neighbour.put(configmap(name, namespace=OTHERS, metadata=COPIED))
            stored = eventually(partial(self._moment, self.scene.operator, copy, 1), f"{name} has a copy")
            taken.append(stored - self._moment(self.fleet.neighbour, name, 0))
            self.fleet.neighbour.delete("configmaps", f"{OTHERS}/{name}")
            time.sleep(0.05)
        return median(taken)

    def _moment(self, server: Any, name: str, part: int) -> float:
        moments: tuple[float, float] = server.call(partial(StagedServer.moments, name=name))
        return moments[part]
