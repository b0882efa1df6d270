"""The stage of a hostile tenant: the clusters, the host's own objects, and the tenant's."""

import contextlib
import heapq
import itertools
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from hostile_scene import FOREIGN, HOME, NAMESPACE, OTHER, HostileScene, eventually
from kubelet_client import KubeletClient

from hostile_chaos import grants
from hostile_chaos.audit import CANARY, NEIGHBOUR_HOME, TEAM_HOME, Report, is_unmarked
from hostile_chaos.fleet import Fleet, listed
from hostile_chaos.pulse import PREFERRED, Beside
from hostile_chaos.servers import RemoteServer, StagedServer
from syncer.api import Key, Marks, Obj, Resource, annotations_of, dig, key_of
from syncer.cli.app import app
from syncer.resources.kinds import NAMESPACES
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, crd, namespace, resource_of, secret, service, serviceaccount

#: The built-in namespaces that the tenant uses, too, and the one that is on the host.
SYSTEM = "kube-system"
VOUCHERS = Resource("example.com/v1", "Voucher", "vouchers")
ISSUERS = Resource("example.com/v1", "Issuer", "issuers")
CLASSES = Resource("example.com/v1", "Class", "classes", namespaced=False)
CLAIMS = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
#: Kinds of plugins, on both sides.
PLUGIN_KINDS = {
    "certificates.cert-manager.io": "Certificate",
    "issuers.cert-manager.io": "Issuer",
    "servicemonitors.monitoring.coreos.com": "ServiceMonitor",
    "podmonitors.monitoring.coreos.com": "PodMonitor",
}
#: The kinds that are searched for copies without an original.
WITH_COPIES = (
    "pods",
    "secrets",
    "configmaps",
    "services",
    "vouchers.example.com",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "endpointslices.discovery.k8s.io",
    "priorityclasses.scheduling.k8s.io",
)
#: A name whose place on the host has an object of the host's.
TAKEN = "taken"
#: Text that a health page may not say, and the most threads of a daemon.
SECRETS_OF_THE_PAGE, THREADS = (CANARY, "127.0.0.1", "/virtual"), 40
#: Seconds, after which an action of the tenant is undone, and the objects that may be there at once.
LIFE, MOST = 12.0, 160
#: Objects that are made again at the same time.
MOST_REMADE = 3
#: Other virtual namespaces, each with labels that a selector may ask for.
SPACES = 120
#: The namespace of EndpointSlices that lead to what isn't the tenant's.
LEADING = "leading"
#: The namespace of wide Pods, and the ports of its Services: of some too many for variables, and of others few.
#: The node of the host that runs Pods, and the ports of kubelets.
NODE, KUBELETS = "node-1", 20
#: The ports that one of several virtual clusters may have.
SHARE_OF_KUBELETS = KUBELETS * 3 // 4
WIDE, PORTS = "wide", (*[400] * 6, *[3] * 40)

CUSTOM: dict[str, Any] = {
    "vouchers.example.com": {
        "references": {
            "spec.secretName": "Secret",
            "spec.issuerRef.name": ["issuers.example.com"],
        },
        "related": [{"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretName"}}],
        "patches": {
            "down": [
                {
                    "path": "/spec/unique",
                    "cel": "!has(self.spec.items) || self.spec.items.all(x, self.spec.items.exists_one(y, y == x))",
                }
            ]
        },
    },
    "issuers.example.com": {},
    "classes.example.com": {
        "direction": "fromHost",
        "patches": {"up": [{"op": "replace", "path": "/spec", "value": {"hidden": True}}]},
    },
}


def canaries(namespace: str) -> list[Obj]:
    """Return the host's own objects in a host namespace."""
    return [
        secret(f"{CANARY}-secret", {"key": "host"}, namespace=namespace),
        configmap(f"{CANARY}-config", namespace=namespace),
        serviceaccount(f"{CANARY}-account", namespace=namespace),
        service(f"{CANARY}-service", namespace=namespace),
        build(CLAIMS, f"{CANARY}-claim", namespace=namespace, spec=CLAIM),
        build(ISSUERS, f"{CANARY}-issuer", namespace=namespace, spec={"ca": {}}),
    ]


@dataclass(order=True)
class Later:
    """Work that is due at a moment."""

    at: float
    number: int
    work: Callable[[], object] = field(compare=False)


@dataclass(frozen=True)
class FrozenObject:
    """An object of which the tenant has frozen the copy."""

    obj: Obj
    #: The name of the attack.
    attack: str
    #: A value that the copy may no longer have: the address of a Pod that has ended, or a class. Empty: none.
    ended: str = ""


class Stage:
    """A scene with canaries on the host, a lying virtual API server, and objects that go again."""

    def __init__(self, translator: str, folder: Path, report: Report) -> None:
        self.report = report
        self.tenant, self.operator = RemoteServer("virtual"), RemoteServer("host")
        self.scene = HostileScene(translator, folder, self.tenant, self.operator)
        self.kubelet = KubeletClient()
        self.beside = Beside(folder / "beside", self.operator)
        self.fleet = Fleet(folder / "fleet", self.operator, report)
        self.single = self.scene.names.host_namespaces() is not None
        self.records = folder / "steps.jsonl"
        #: The names of objects that are made again when the daemon deletes them, and of those that ever were.
        self.remade: list[str] = []
        self.ever_remade: set[str] = set()
        self._mine: deque[tuple[float, Resource, Key]] = deque()
        #: What was deleted, and whose copies must go, with the attack that it is of.
        self._going: list[tuple[Obj, str]] = []
        #: Objects that stay until `wait_gone` has checked the frozen copies, and these.
        self._lasting: list[Obj] = []
        self._frozen: list[FrozenObject] = []
        #: Validates configurations in a process of its own, so that the API servers here aren't slowed.
        self._validating = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self._later: list[Later] = []
        #: The host's own objects have names of copies here.
        self.squatted: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._canaries: dict[tuple[str, str], str] = {}
        self._define()

    # -- what is there -----------------------------------------------------------------------------

    def _define(self) -> None:
        for server in (self.tenant, self.operator):
            for kind in (VOUCHERS, ISSUERS):
                server.put(crd(str(kind)))
            server.put(crd(str(CLASSES), scope="Cluster", spec={"names": {"kind": "Class", "listKind": "ClassList"}}))
            for name, one in PLUGIN_KINDS.items():
                server.put(crd(name, spec={"names": {"kind": one, "listKind": f"{one}List"}}))
        for each in (HOME, FOREIGN, SYSTEM):
            self._put_canaries(each)
        for shown in grants.shown_classes():
            self.operator.put(shown)
        for hidden in grants.hidden_classes():
            self._put_canary(hidden)
        self.operator.put(build(CLASSES, "gold", spec={"password": f"{CANARY}-password"}))
        for number in range(SPACES):
            self.tenant.put(namespace(f"space-{number}", metadata={"labels": {"tier": "one", "n": str(number)}}))
        self.tenant.put(namespace(LEADING))
        for number, ports in enumerate(PORTS):
            self.tenant.put(service(f"s{number}", range(1000, 1000 + ports), namespace=WIDE))

    def _put_canaries(self, namespace: str) -> None:
        for obj in canaries(namespace):
            self._put_canary(obj)

    def _put_canary(self, obj: Obj) -> None:
        stored = self.operator.put(obj)
        self._canaries[str(resource_of(obj)), str(key_of(obj))] = stored["metadata"]["resourceVersion"]

    def touched(self) -> list[str]:
        """Return the canaries that are no longer as they were."""
        found = []
        for (resource, key), version in self._canaries.items():
            obj = self.operator.get(resource, key)
            if obj is None or obj["metadata"]["resourceVersion"] != version:
                found.append(f"{resource} {key}")
        return found

    def start(self) -> None:
        """Start the daemon, measured, and put canaries into the host namespaces that it makes."""
        loaded = self.scene.add_plugins("cert-manager", "prometheus-operator")
        self.scene.plugins = {"issuers": {}, "serviceMonitors": {}} if loaded else {}
        custom = CUSTOM if self.single else merged(CUSTOM, {"vouchers.example.com": {"related": None}})
        self.tenant.put(self.kubelet.authority())
        command = (*PREFERRED, *self.scene.measured(self.records))
        sync = {"custom": custom, "toHost": grants.TO_HOST, "fromHost": grants.FROM_HOST}
        sections = {**self.fleet.sections(listed(self.scene)), "kubelet": self.kubelet.section(KUBELETS)}
        self.scene.start(command=command, sync=sync, **sections)
        self.beside.daemon.start()
        self.fleet.settle()
        if not self.single:
            for name in (NAMESPACE, WIDE):
                copy = self.scene.names.to_host(NAMESPACES, Key("", name)).name
                eventually(partial(self.operator.get, "namespaces", copy), f"{copy} is there")
                self._put_canaries(copy)
        self.squat()

    def squat(self) -> None:
        """Put objects of the host's where the copies of `TAKEN` belong."""
        names = set()
        for kind in (secret, configmap, serviceaccount):
            virtual = kind(TAKEN, namespace=NAMESPACE)
            host_key = self.scene.host_key(virtual)
            names.add(host_key.name)
            metadata = {"name": host_key.name, "namespace": host_key.namespace}
            stored = self.operator.put(merged(virtual, {"metadata": metadata}))
            self._canaries[str(resource_of(stored)), str(host_key)] = stored["metadata"]["resourceVersion"]
        self.squatted = frozenset(names)

    # -- the tenant's acts -------------------------------------------------------------------------

    def put(self, obj: Obj) -> Obj:
        """Create or replace an object as the tenant, for a while."""
        stored = self.tenant.put(obj)
        self._mine.append((time.monotonic() + LIFE, resource_of(obj), key_of(obj)))
        return stored

    def put_lasting(self, obj: Obj) -> Obj:
        """Create an object as the tenant that stays until the next `wait_gone`."""
        stored = self.tenant.put(obj)
        self._lasting.append(obj)
        return stored

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        """Do something after some seconds."""
        with self._lock:
            heapq.heappush(self._later, Later(time.monotonic() + seconds, next(self._numbers), work))

    def pause(self, seconds: float) -> None:
        """Wait for some seconds."""
        time.sleep(seconds)

    def kubelet_port(self, node: str) -> int:
        """Return the port of a virtual Node's kubelet; 0 if it has none."""
        found: int = dig(self.tenant.get("nodes", node) or {}, "status.daemonEndpoints.kubeletEndpoint.Port") or 0
        return found

    def kubelet_ports(self) -> set[int]:
        """Return the ports of the kubelets of virtual Nodes on which copies run."""
        nodes = self.tenant.objects("nodes")
        used = {dig(copy, "spec.nodeName") for copy in self.operator.objects("pods") if not is_unmarked(copy)}
        path = "status.daemonEndpoints.kubeletEndpoint.Port"
        return {port for node in nodes if key_of(node).name in used and (port := dig(node, path))}

    def slices_of(self, virtual_namespace: str) -> int:
        """Return how many copies a virtual namespace has of EndpointSlices."""
        mark = Marks().namespace
        copies = self.operator.objects("endpointslices.discovery.k8s.io")
        return sum(1 for copy in copies if annotations_of(copy).get(mark) == virtual_namespace)

    def served_clusters(self) -> int:
        """Return how many virtual clusters the daemon serves or tries to serve."""
        with contextlib.suppress(OSError):
            return sum(1 for name, _ in self.scene.daemon.samples() if name == "syncer_cluster_up")
        return 0

    def ask_kubelet(self, path: str, headers: Mapping[str, str] = {}) -> None:
        """Ask the kubelet of the node that runs Pods, if it answers."""
        if port := self.kubelet_port(NODE):
            with contextlib.suppress(OSError):
                self.kubelet.ask(path, port, headers, timeout=2.0)

    def must_go(self, obj: Obj, kind: str) -> None:
        """Let `wait_gone` look for the copy of what was just deleted."""
        self._going.append((obj, kind))

    def must_shrink(self, frozen: FrozenObject) -> None:
        """Let `wait_gone` check a copy against the operator's rules."""
        self._frozen.append(frozen)

    def wait_gone(self) -> None:
        """Wait until the copies of deleted objects are gone and frozen ones are within the rules.

        Others are reported. The frozen objects are deleted then.
        """
        with contextlib.suppress(AssertionError):
            eventually(lambda: not self._staying() and not self._exceeding(), "deleted and frozen copies are done")
        with contextlib.suppress(AssertionError):
            eventually(self.fleet.has_port, "the Node of another tenant has a port")
        if not self.fleet.has_port():
            self.report("ports", "the Node of another tenant has no port", "")
        for obj, kind in self._staying():
            self.report(kind, f"the copy of a deleted {obj['kind']} stays", str(key_of(obj)))
        self._going.clear()
        for frozen in self._exceeding():
            kept = ", ".join(self.excess_of(frozen))
            fault = f"the copy of a frozen {frozen.obj['kind']} keeps more than the rules allow"
            self.report(frozen.attack, fault, f"{key_of(frozen.obj)}: {kept}")
        self._frozen.clear()
        for obj in reversed(self._lasting):
            self.tenant.delete(resource_of(obj), str(key_of(obj)))
        self._lasting.clear()

    def excess_of(self, frozen: FrozenObject) -> list[str]:
        """Return the parts of a frozen copy that the rules don't allow."""
        copy = self.scene.copy(frozen.obj)
        if copy is None:
            return []
        found = list(grants.excess(copy))
        if frozen.ended and grants.names_text(copy, frozen.ended):
            found.append(frozen.ended)
        return found

    def _exceeding(self) -> list[FrozenObject]:
        return [frozen for frozen in self._frozen if self.excess_of(frozen)]

    def _staying(self) -> list[tuple[Obj, str]]:
        deleted = (each for each in self._going if not self.tenant.get(resource_of(each[0]), str(key_of(each[0]))))
        return [each for each in deleted if self.scene.copy(each[0]) is not None]

    def tidy(self, *, everything: bool = False) -> None:
        """Do what is due, and delete what has lived long enough."""
        now = time.monotonic()
        while self._later and (everything or self._later[0].at <= now):
            with self._lock:
                due = heapq.heappop(self._later)
            due.work()
        while self._mine and (everything or self._mine[0][0] <= now or len(self._mine) > MOST):
            _, resource, key = self._mine.popleft()
            self.tenant.delete(resource, str(key))

    def lie(self, name: str, choice: str, seconds: float = 4.0) -> None:
        """Let the virtual API server tell one of the lies of an object, for some seconds."""
        text = f'"{name}"'.encode()
        self.tenant.call(partial(StagedServer.lie, text=text, name=name, choice=choice))
        self.later(seconds, lambda: self.tenant.call(partial(StagedServer.be_honest, text=text)))

    def relist(self, resource: str) -> None:
        """Let the daemon list a resource of the virtual cluster again."""
        self.tenant.call(partial(StagedServer.relist, resource=resource))

    def cut_off(self, resource: str) -> None:
        """Let the virtual API server reset the daemon's requests for a resource until `heal`."""
        self.tenant.call(partial(StagedServer.cut_off, resource=resource))

    def heal(self) -> None:
        """End all outages."""
        self.tenant.call(StagedServer.heal)

    def be_honest(self) -> None:
        """End all lies, and all that is made again."""
        self.tenant.call(StagedServer.be_honest)
        self.operator.call(StagedServer.leave)
        self.remade.clear()

    def make_again(self, obj: Obj) -> None:
        """Make an object on the host, and once more whenever the daemon deletes it; the oldest of many no more."""
        while len(self.remade) >= MOST_REMADE:
            self.operator.call(partial(StagedServer.leave, name=self.remade.pop(0)))
        name = obj["metadata"]["name"]
        self.remade.append(name)
        self.ever_remade.add(name)
        self.operator.call(partial(StagedServer.make_again, name=name, obj=obj))

    def read_page(self) -> None:
        """Look at what the health page says, and what it takes."""
        if not self.scene.lives:
            return
        status, page = self.scene.daemon.readyz()
        if not status and self.scene.lives:
            self.report("page", "the health page doesn't answer", "")
        for text in SECRETS_OF_THE_PAGE:
            if text in page:
                self.report("page", f"the health page says {text}", page[:300])
        threads = re.search(r"Threads:\s*(\d+)", Path(f"/proc/{self.scene.daemon.pid}/status").read_text())
        if threads and int(threads[1]) > THREADS:
            self.report("page", "connections to the health page take a thread each, without a bound", threads[1])

    def must_refuse(self, config: Obj, section: Obj) -> None:
        """Report a configuration if `syncer config validate` accepts it."""

        def validated(result: Future[bool]) -> None:
            if not result.cancelled() and result.result():
                self.report("careless", "a configuration that hands the host over is accepted", json.dumps(section))

        cli = tuple(self.scene.cli) if OTHER in os.environ else ()
        self._validating.submit(accepts, cli, json.dumps(config)).add_done_callback(validated)

    def orphans(self) -> list[str]:
        """Return the copies of what is no longer there."""
        found, marks = [], Marks()
        for resource in WITH_COPIES:
            for copy in self.operator.objects(resource):
                annotations = annotations_of(copy)
                name, space = annotations.get(marks.name, ""), annotations.get(marks.namespace, "")
                kind = annotations.get(marks.kind, "").partition(".")[0]
                if copy["metadata"].get("namespace") in (NEIGHBOUR_HOME, TEAM_HOME):
                    continue
                if kind != copy["kind"] or not name or copy["metadata"]["name"] in self.ever_remade:
                    continue
                if self.tenant.get(resource, str(Key(space, name))) is None:
                    found.append(f"{resource} {key_of(copy)}")
        return found

    def close(self) -> None:
        """End everything; the daemon's log stays in its folder."""
        self._validating.shutdown(cancel_futures=True)
        self.scene.close(show=False)
        self.beside.close()
        self.fleet.closing().close()


def accepts(cli: tuple[str, ...], config: str) -> bool:
    """Return True if `syncer config validate` accepts a configuration; `cli` is another installation's."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        arguments = ["config", "validate", file.name]
        if cli:
            return subprocess.run([*cli, *arguments], capture_output=True, check=False, timeout=600).returncode == 0
        return CliRunner().invoke(app, arguments).exit_code == 0
