"""Measure the memory and the longest step of the event loop that a hostile tenant's objects cost;
prints JSON.

The daemon runs in a process of its own between two in-process API servers. For each scene it starts
beside a well-behaved virtual namespace, gets the objects of the attack, and starts once more with
all of them in place. `peak_mb` is the peak of its resident memory, `rss_mb` its resident memory at
the end, `step_ms` the CPU time of the longest step of its event loop (0 if none took 10), in which
it does nothing else, and `others_ms` how long a ConfigMap of the other namespace took meanwhile.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack import loop_steps
from hack.bench.daemon import Daemon
from hack.endings import interrupt_on_sigterm
from kube_envtest import BackgroundApiServer
from syncer.api import Obj, key_of
from syncer.testing.objects import (
    configmap,
    namespace,
    pod,
    pod_mounting,
    resource_of,
    secret,
    service,
    serviceaccount,
)

HOME = "vc-ns"
NAMESPACE = "shop"
OTHERS = "bank"
COPIED = {"annotations": {"vsyncer.dev/force-sync": "true"}}
#: Deadline of a ConfigMap of the other namespace, in seconds.
PATIENCE = 120.0
#: CPU seconds of an idle daemon in `STILL_SECONDS`, whose steps are looked at.
STILL = 0.02
MB = 1 << 20


def containers(number: int) -> list[Obj]:
    """Return containers of the least size."""
    return [{"name": f"c{each}", "image": "i"} for each in range(number)]


def ports(number: int) -> list[Obj]:
    """Return ports of a Service."""
    return [{"name": f"p{each}", "port": each} for each in range(1, number + 1)]


def variables() -> Iterator[Obj]:
    """Variables of Services in containers: a product."""
    for number in range(6):
        yield service(f"many-{number}", spec={"ports": ports(500)})
    for number in range(60):
        yield service(f"some-{number}", spec={"ports": ports(90)})
    for number in (1, 100, 500):
        yield pod(f"web-{number}", spec={"containers": containers(number)})


def terms(number: int, selector: Callable[[int], Obj]) -> Obj:
    """Return an affinity with a namespaceSelector in each term."""
    each = [
        {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "x"}},
            "namespaceSelector": selector(index),
        }
        for index in range(number)
    ]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": each}}


def selectors() -> Iterator[Obj]:
    """Namespaces that affinity terms select: a product."""
    for number in range(1500):
        yield namespace(
            f"n{number}", metadata={"labels": {"team": f"t{number % 50}", "all": "yes"}}
        )
    for name, count in (("many", 2000), ("some", 200)):
        found = terms(count, lambda index: {"matchExpressions": [_not_in(index)]})
        yield pod(name, spec={"affinity": found, "containers": containers(1)})
        found = terms(count, lambda index: {"matchLabels": {"team": f"t{index % 50}"}})
        yield pod(f"{name}-few", spec={"affinity": found, "containers": containers(1)})


def namespaces() -> Iterator[Obj]:
    """Many namespaces, and affinity terms of which each selects among all of them."""
    for number in range(20_000):
        yield namespace(
            f"n{number}", metadata={"labels": {"team": f"t{number % 5000}", "all": "yes"}}
        )
    for name, selector in (
        ("positive", lambda index: {"matchLabels": {"all": "yes", "team": f"t{index}"}}),
        (
            "mixed",
            lambda index: {"matchLabels": {"all": "yes"}, "matchExpressions": [_not_in(index)]},
        ),
        (
            "negative",
            lambda index: {
                "matchExpressions": [_not_in(index), {"key": "all", "operator": "DoesNotExist"}]
            },
        ),
    ):
        yield pod(name, spec={"affinity": terms(200, selector), "containers": containers(1)})


def _not_in(index: int) -> Obj:
    return {"key": "team", "operator": "NotIn", "values": [f"x{index}"]}


def large() -> Iterator[Obj]:
    """Objects of the largest size, of a single text and of many parts."""
    yield configmap("text", {"a": "x" * MB}, metadata=COPIED)
    yield configmap("escaped", {"a": '"\n' * (MB // 3)}, metadata=COPIED)
    yield configmap("parts", {f"k{each}": "" for each in range(60_000)}, metadata=COPIED)
    yield secret("text", {"a": "x" * MB}, metadata=COPIED)
    yield pod("containers", spec={"containers": containers(8_000)})
    yield pod(
        "tolerations",
        spec={
            "containers": containers(1),
            "tolerations": [{"key": "k", "operator": "Exists"}] * 25_000,
        },
    )
    yield pod(
        "env",
        spec={
            "containers": [
                {"name": "c", "image": "i", "env": [{"name": "a", "value": ""}] * 40_000}
            ]
        },
    )
    yield serviceaccount("labels", metadata={"labels": {f"l{each}": "" for each in range(60_000)}})
    yield service("ports", spec={"ports": ports(20_000)})


def pages() -> Iterator[Obj]:
    """Objects whose page of a list is large."""
    for number in range(60):
        yield configmap(f"a{number}", {"a": "x" * MB})
        yield secret(f"a{number}", {"a": "x" * MB})


@dataclass(frozen=True)
class Passing:
    """An object that is deleted as soon as the daemon has seen it."""

    obj: Obj


def names() -> Iterator[Passing]:
    """Names that a tenant has thought of, in objects that come and go:
    nothing may be left of them.
    """
    for number in range(40):
        yield Passing(pod_mounting("web", secret=f"{number:08}".ljust(500_000, "x")))
        annotations = {f"example.org/{number:02}-{each:05}": "" for each in range(10_000)}
        yield Passing(serviceaccount("web", metadata={"annotations": annotations}))


def many() -> Iterator[Obj]:
    """Many objects at once."""
    for number in range(3000):
        yield configmap(f"a{number}", {"a": "x" * 1000}, metadata=COPIED)


SCENES: dict[str, Callable[[], Iterable[Obj | Passing]]] = {
    each.__name__: each for each in (variables, selectors, namespaces, large, pages, names, many)
}


class Scene:
    """The daemon between two API servers."""

    def __init__(self, folder: Path, python: str) -> None:
        self.tenant = BackgroundApiServer(seed="virtual")
        self.host = BackgroundApiServer(seed="host")
        self._notes = folder / "steps"
        self._beats = 0
        for server, name in ((self.tenant, "virtual"), (self.host, "host")):
            server.start()
            server.kubeconfig(folder / name)
        self.host.put(namespace(HOME))
        for name in (NAMESPACE, OTHERS):
            self.tenant.put(namespace(name))
        config = {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": "vc",
            "virtual": {"kubeconfig": str(folder / "virtual")},
            "host": {"kubeconfig": str(folder / "host"), "namespace": HOME},
            "networking": {"apiServer": {"host": "10.96.0.1"}, "dns": {"service": ""}},
        }
        self.daemon = Daemon(
            config, folder, command=(python, "-P", loop_steps.__file__, str(self._notes), "run")
        )

    def started(self) -> dict[str, Any]:
        """Start the daemon, and return what that cost."""
        self._notes.write_text("")
        self.daemon.start()
        return self._cost()

    def attacked(self, objects: Iterable[Obj | Passing]) -> dict[str, Any]:
        """Create the objects, and return their cost."""
        self.daemon.wait_still(STILL)
        self._notes.write_text("")
        self.daemon.forget_peak()
        size = 0
        for each in objects:
            obj = each.obj if isinstance(each, Passing) else each
            try:
                self.tenant.put(obj)
            except Exception as error:  # noqa: BLE001 - the message names the object
                raise SystemExit(
                    f"{obj['kind']} {obj['metadata']['name']}: {error}"[:1000]
                ) from None
            size += len(json.dumps(obj))
            if isinstance(each, Passing):
                self._served()
                self.tenant.delete(resource_of(obj), key_of(obj))
        return {
            "tenant_mb": round(size / MB, 1),
            **self._cost(),
            "rss_mb": round(self.daemon.rss(), 1),
        }

    def close(self) -> None:
        """End all."""
        self.daemon.stop()
        self.tenant.stop()
        self.host.stop()

    def _cost(self) -> dict[str, Any]:
        waited = self._served()
        self.daemon.wait_still(STILL)
        waited = max(waited, self._served())
        self.daemon.wait_still(STILL)
        notes = [json.loads(line) for line in self._notes.read_text().splitlines()]
        steps = [note for note in notes if "cpu" in note]
        nothing: dict[str, Any] = {"cpu": 0.0, "callback": "", "stack": []}
        longest = max(steps, key=lambda step: float(step["cpu"]), default=nothing)
        return {
            "peak_mb": round(self.daemon.peak(), 1),
            "step_ms": round(longest["cpu"] * 1000, 1),
            "step": " < ".join(longest["stack"]) or longest["callback"],
            "others_ms": round(waited * 1000),
        }

    def _served(self) -> float:
        """Return the seconds until a ConfigMap of the other namespace has its copy."""
        self._beats += 1
        name = f"beat-{self._beats}"
        begun = time.monotonic()
        self.tenant.put(configmap(name, namespace=OTHERS, metadata=COPIED))
        while self.host.get("configmaps", f"{HOME}/{name}-x-{OTHERS}-x-vc") is None:
            if time.monotonic() - begun > PATIENCE:
                raise SystemExit(f"{OTHERS}/{name} has no copy")
            time.sleep(0.005)
        return time.monotonic() - begun


def run(name: str, python: str) -> dict[str, Any]:
    """Run a scene."""
    with tempfile.TemporaryDirectory(prefix="syncer-bench-") as folder:
        scene = Scene(Path(folder), python)
        try:
            scene.started()
            attacked = scene.attacked(SCENES[name]())
            scene.daemon.stop()
            return {"bench": "hostile", "scene": name, **attacked, "restart": scene.started()}
        finally:
            scene.close()


def main() -> None:
    """Print a line for each scene; end with 1 if a step is longer than allowed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "scenes", nargs="*", default=list(SCENES), help=f"of {', '.join(SCENES)}; by default all"
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="that of another installation, to measure it instead",
    )
    parser.add_argument(
        "--longest", type=float, default=100.0, help="longest step that is allowed, in ms of CPU"
    )
    options = parser.parse_args()
    longest = 0.0
    for name in options.scenes:
        result = run(name, options.python)
        longest = max(longest, result["step_ms"], result["restart"]["step_ms"])
        print(json.dumps(result), flush=True)
    raise SystemExit(longest > options.longest)


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
