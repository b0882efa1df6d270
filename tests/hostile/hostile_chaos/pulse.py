"""The heartbeat of another namespace: how long the daemon takes for its ConfigMaps, all the time.

A second daemon beside, which isn't attacked, gets the same ConfigMaps at the same moments from a
virtual cluster of its own and writes to the same host: both have the same share of a busy machine
and of a busy host. What is compared is what a daemon adds, from the moment at which the virtual API
server sends it the event until the copy is stored; a tenant who keeps their own API server busy
takes that time from themselves.
"""

import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from hostile_scene import COPIED, OTHERS, HostileScene, installation

from hack.bench.daemon import Process
from hostile_chaos.servers import BESIDE, PULSE, RemoteServer, StagedServer
from syncer.api import Key
from syncer.names import SingleNamespace
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import configmap, namespace

#: Seconds between two pairs of ConfigMaps, and after which a copy counts as missing.
INTERVAL, LONGEST = 0.3, 10.0
#: The virtual cluster beside, and its host namespace.
HOST_NAMESPACE = "vc-beside"
#: The factor by which the attacked daemon may be slower, and the fewest ConfigMaps that tell.
SLOWER, FEWEST = 2.0, 10

ATTACKED, UNHARMED = "attacked", "beside"
#: Starts a daemon before other processes of a busy machine, where that is allowed: one that is denied the
#: little CPU that it takes is late without any attack, and an attacked one takes more of it.
PREFERRED = ("nice", "-n", "-10")


class Beside:
    """A virtual cluster and a daemon of its own, on the host of the attacked one."""

    def __init__(self, folder: Path, host: RemoteServer) -> None:
        folder.mkdir()
        self.tenant = RemoteServer("beside")
        self.tenant.start()
        self.tenant.put(namespace(OTHERS))
        self.names = SingleNamespace(cluster=HOST_NAMESPACE, namespace=HOST_NAMESPACE)
        host.put(namespace(HOST_NAMESPACE))
        for server, side in ((self.tenant, "virtual"), (host, "host")):
            server.kubeconfig(folder / side, BESIDE.name)
        config = {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": HOST_NAMESPACE,
            "virtual": {"kubeconfig": str(folder / "virtual")},
            "host": {"kubeconfig": str(folder / "host"), "namespace": HOST_NAMESPACE},
            "networking": {"apiServer": {"host": "10.96.0.1"}},
        }
        self.daemon = Process(config, folder, command=(*PREFERRED, installation()))

    def close(self) -> None:
        """End the daemon and the server."""
        self.daemon.kill()
        self.tenant.stop()


@dataclass
class Pulse:
    """Creates ConfigMaps on a thread of its own, and measures how long each daemon takes."""

    scene: HostileScene
    beside: Beside
    host: RemoteServer
    #: Seconds, for each daemon, that it took, and until the copy was there.
    taken: dict[str, list[float]] = field(default_factory=lambda: {ATTACKED: [], UNHARMED: []})
    whole: dict[str, list[float]] = field(default_factory=lambda: {ATTACKED: [], UNHARMED: []})
    #: The moments at which a copy of the attacked daemon's was still missing after `LONGEST`.
    missed: list[float] = field(default_factory=list)
    #: False while the attacked daemon doesn't run.
    beats: bool = False
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(INTERVAL):
            if self.beats:
                number += 1
                first = (ATTACKED, UNHARMED) if number % 2 else (UNHARMED, ATTACKED)
                for each in first:
                    self._beat(each, f"{PULSE}{number}-{each}")

    def _beat(self, served: str, name: str) -> None:
        tenant, names = (
            (self.scene.tenant, self.scene.names) if served == ATTACKED else (self.beside.tenant, self.beside.names)
        )
        beat = configmap(name, namespace=OTHERS, metadata=COPIED)
        copy = names.to_host(CONFIG_MAPS, Key(OTHERS, name)).name
        begun = time.monotonic()
        tenant.put(beat)
        at = self._arrived(copy)
        sent = tenant.call(partial(StagedServer.moments, name=name))[0]
        tenant.delete("configmaps", f"{OTHERS}/{name}")
        if at and sent:
            self.taken[served].append(at - sent)
            self.whole[served].append(at - begun)
        elif not at and self.beats and served == ATTACKED:
            self.missed.append(time.time())

    def _arrived(self, name: str) -> float:
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline and self.beats:
            if at := self.host.call(partial(StagedServer.moments, name=name))[1]:
                return at
            time.sleep(0.02)
        return 0.0

    def figures(self) -> dict[str, dict[str, float]]:
        """Return number, median and 95th percentile of what each daemon took, in ms, and the median
        until the copy was there.
        """
        return {each: _figures(self.taken[each], self.whole[each]) for each in (ATTACKED, UNHARMED)}

    def slower(self) -> str:
        """Return what is wrong with the figures of the attacked daemon; "" if nothing."""
        return too_slow(self.figures())

    def stop(self) -> None:
        """End the thread."""
        self.beats = False
        self._ended.set()
        self._thread.join()


def too_slow(figures: dict[str, dict[str, float]]) -> str:
    """Return a text if the attacked daemon takes too long, or too little was measured; else ""."""
    attacked, beside = figures[ATTACKED], figures[UNHARMED]
    if min(attacked["n"], beside["n"]) < FEWEST:
        return f"too few ConfigMaps came over to tell: {attacked['n']} and {beside['n']}"
    if attacked["p50"] > SLOWER * beside["p50"]:
        return f"{attacked['p50']:g} ms, not {beside['p50']:g} ms"
    return ""


def _figures(taken: list[float], whole: list[float]) -> dict[str, float]:
    if len(taken) < 2:
        return {"n": len(taken), "p50": 0.0, "p95": 0.0, "whole": 0.0}
    values = median(taken), quantiles(taken, n=20)[-1], median(whole)
    p50, p95, until = (round(each * 1e3, 1) for each in values)
    return {"n": len(taken), "p50": p50, "p95": p95, "whole": until}
