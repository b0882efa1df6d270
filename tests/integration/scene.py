"""One virtual cluster on one host: the namespaces of a test, the daemon's configuration, and a check of both sides."""

import itertools
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from api import PATIENCE, RESOURCES, Api, eventually, nothing_left

from hack.bench.daemon import Process
from hack.kubelet import is_ready
from syncer.api import Key, Marks, NotFound, Obj, annotations_of, dig, is_deleting, key_of, labels_of, uid_of
from syncer.engine.stores import identity as claim
from syncer.names import SingleNamespace
from syncer.resources.configmaps import CONTROL_PLANE
from syncer.resources.services import KUBERNETES
from syncer.testing.objects import configmap, pod_mounting, secret, service

MARKS = Marks()
_numbers = itertools.count(1)

#: The address of the virtual API server's own Service, which its certificate names.
API_SERVER = "10.97.0.1"
#: No questions for the ranges of ClusterIPs at a start, some of which are dry runs of writes.
OWN_ADDRESSES = {"toHost": {"services": {"clusterIP": "own"}}}

#: What Kubernetes itself writes into the virtual cluster and the daemon copies only for pods.
_NOT_COPIED = ("kube-root-ca.crt",)
#: Characters of a log that are shown.
LONGEST_LOG = 8000
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass
class Scene:
    """A virtual cluster with a name of its own between two planes, and the daemons that serve it."""

    virtual: Api
    host: Api
    folder: Path
    name: str = field(default_factory=lambda: f"t{next(_numbers)}")
    daemons: list[Process] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    #: The names of the CustomResourceDefinitions of this scene, on either side.
    definitions: list[str] = field(default_factory=list)
    #: What `must_be_content` has seen, by the daemon's process.
    _seen: dict[int, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.host_namespace = f"vc-{self.name}"
        self._granted: list[tuple[Api, str]] = []
        self.names = SingleNamespace(cluster=self.name, namespace=self.host_namespace)
        self.identity = f"{self.name}.{self.host_namespace}"
        self.selector = MARKS.selector(self.identity)
        self.host.make_namespace(self.host_namespace)

    @property
    def sides(self) -> tuple[Api, Api]:
        """Both clusters."""
        return self.virtual, self.host

    # -- the daemon --------------------------------------------------------------------------------

    def config(self, *, user: str = "admin", **sections: Any) -> dict[str, Any]:
        """Return a configuration; all ConfigMaps and Secrets are copied unless sections say otherwise."""
        virtual, host = (str(side.plane.kubeconfig(user)) for side in (self.virtual, self.host))
        return {
            "apiVersion": "vsyncer.dev/v1alpha1",
            "kind": "SyncerConfig",
            "cluster": self.name,
            "virtual": {"kubeconfig": virtual},
            "host": {"kubeconfig": host, "namespace": self.host_namespace},
            "networking": {"apiServer": {"host": API_SERVER}},
            "sync": {"toHost": {"configMaps": {"all": True}, "secrets": {"all": True}}},
            "log": {"level": "info", "format": "json"},
            **sections,
        }

    def daemon(self, config: dict[str, Any] | None = None) -> Process:
        """Return a daemon of this virtual cluster, not yet started."""
        folder = self.folder / f"{self.name}-{len(self.daemons)}"
        folder.mkdir()
        made = Process(config or self.config(), folder)
        self.daemons.append(made)
        return made

    def start(self, config: dict[str, Any] | None = None) -> Process:
        """Return a daemon of this virtual cluster that is ready."""
        made = self.daemon(config)
        made.start()
        return made

    def grant(self, daemon: Process, user: str, *, without: str = "") -> None:
        """Give a user what `syncer rbac` prints, but for one resource on the host, confine it there by what
        `syncer rbac --admission` prints, and wait until both hold.
        """
        daemon.write()
        options = ["--config", str(daemon.file), "--user", user, "-o", "json"]
        for api, more in ((self.virtual, "--side=virtual"), (self.host, "--side=host"), (self.host, "--admission")):
            command = [*daemon.command, "rbac", *options, more]
            text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
            less = text.replace(f'"{without}"', '"nothing"') if without and api is self.host else text
            self.give(api, less)
            if more != "--admission":
                self._wait_granted(api, user, _DEFINITIONS if '"customresourcedefinitions"' in less else "")
        eventually(lambda: not _may_create_without_mark(self.host, self.host_namespace, user), "the policy holds")

    def give(self, api: Api, manifests: str) -> None:
        """Apply manifests to a cluster until the end of the scene."""
        api.plane.kubectl("apply", "-f", "-", stdin=manifests)
        self._granted.append((api, manifests))

    def _wait_granted(self, api: Api, user: str, more: str) -> None:
        """Wait for the authorizer of an API server, which learns of bindings through watches of its own, one
        for each kind of them.
        """
        prefix = f"namespaces/{self.host_namespace}/" if api is self.host else ""
        for path in filter(None, (f"/api/v1/{prefix}pods", more)):
            eventually(partial(_may_list, api, path, user), f"{user} may list {path}")

    def must_be_content(self) -> None:
        """Fail if the API servers had to refuse a daemon something since the last call, or it wrote what changed
        nothing.
        """
        more = Counter[str]()
        for daemon in self.daemons:
            if daemon.process and daemon.process.poll() is None:
                found = Counter[str](refused=int(daemon.requests(code="403")))
                found["written in vain"] = int(daemon.requests("syncer_futile_writes_total"))
                more += found - self._seen.get(daemon.pid, Counter())
                self._seen[daemon.pid] = found
        assert not more, f"{dict(more)}; the daemon's log says what"

    def versions(self, *kinds: str) -> dict[tuple[str, str, Key], str]:
        """Return the resourceVersion of each object of these kinds that is of this scene, by side, kind and key:
        nothing of other tests, and nothing that Kubernetes itself makes in any namespace.
        """
        return {
            (api.plane.name, kind, key_of(obj)): obj["metadata"]["resourceVersion"]
            for api in self.sides
            for kind in kinds
            for obj in api.list(kind)
            if self._is_mine(api, obj)
        }

    def _is_mine(self, api: Api, obj: Obj) -> bool:
        key = key_of(obj)
        if not key.namespace:
            return labels_of(obj).get(MARKS.cluster) == self.identity
        if api is self.virtual and key == claim.NOTE_KEY:
            return True
        if key.namespace not in (self.namespaces if api is self.virtual else [self.host_namespace]):
            return False
        if obj["kind"] == "Event":
            return obj.get("reportingComponent") == "vsyncer"
        return key.name not in (*_NOT_COPIED, "default")

    def logs(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the end of the log of each daemon."""
        for daemon in self.daemons:
            if daemon.log.exists():
                yield daemon.folder.name, daemon.log_text()[-LONGEST_LOG:]

    def close(self) -> None:
        """End the daemons, and remove from the virtual cluster what would be work for the daemons of later tests."""
        for daemon in self.daemons:
            daemon.kill()
        for _, log in self.logs():
            print(log)  # pytest shows it where the test has failed
        for namespace in self.namespaces:
            for kind in ("Pod", "Service", "Secret", "ConfigMap", "PersistentVolumeClaim", "Ingress"):
                for obj in self.virtual.list(kind, namespace=namespace):
                    with suppress(NotFound):  # the virtual cluster's controllers delete some as well
                        self._remove(kind, obj)
        self._undefine()
        for node in self.virtual.list("Node", selector=self.selector):
            self.virtual.delete("Node", key_of(node))
        if self.virtual.get("ConfigMap", claim.NOTE_KEY) is not None:
            self.virtual.delete("ConfigMap", claim.NOTE_KEY)
        for api, given in self._granted:
            api.plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=given)

    def _remove(self, kind: str, obj: Obj) -> None:
        """Delete an object of the virtual cluster, whatever finalizers hold it."""
        if obj["metadata"].get("finalizers"):  # no controller takes them off here
            self.virtual.patch(kind, key_of(obj), {"metadata": {"finalizers": None}})
        if not is_deleting(obj):
            grace = 0 if kind == "Pod" else None
            self.virtual.delete(kind, key_of(obj), grace=grace)

    def _undefine(self) -> None:
        """Remove the CustomResourceDefinitions, and with them their objects, from both clusters."""
        everywhere = [(api, name) for api in self.sides for name in self.definitions]
        for api, name in everywhere:
            if _definition(api, name):
                api.delete("CustomResourceDefinition", Key("", name))
        for api, name in everywhere:
            nothing_left(partial(_definition, api, name), f"{name} is gone")

    # -- objects -----------------------------------------------------------------------------------

    def namespace(self, name: str = "") -> str:
        """Return a new virtual namespace."""
        made = f"{self.name}-{name or len(self.namespaces)}"
        self.virtual.make_namespace(made)
        self.namespaces.append(made)
        return made

    def shop(self, *, settings: str, login: str) -> str:
        """Return a new virtual namespace with one of each, named so or ``web``: the pod ``web``
        mounts the other two.
        """
        made = self.namespace()
        for obj in (
            configmap(settings, namespace=made),
            secret(login, namespace=made),
            service("web", namespace=made),
            pod_mounting("web", secret=login, configmap=settings, namespace=made),
        ):
            self.virtual.create(obj)
        return made

    def host_key(self, kind: str, key: Key) -> Key:
        """Return where the copy of a virtual object is."""
        return self.names.to_host(RESOURCES[kind], key)

    def copy(self, kind: str, key: Key) -> Obj | None:
        """Return the copy of a virtual object."""
        return self.host.get(kind, self.host_key(kind, key))

    def copied(self, kind: str, key: Key, path: str = "metadata.name", wanted: Any = None) -> Obj:
        """Return the copy, as soon as it is there and has this value at the path."""

        def look() -> Obj | None:
            found = self.copy(kind, key)
            return found if found is not None and (wanted is None or dig(found, path) == wanted) else None

        return eventually(look, f"the copy of {kind} {key} is there, with {path} {wanted}")

    def gone(self, kind: str, key: Key) -> None:
        """Wait until there is no copy."""
        eventually(lambda: self.copy(kind, key) is None, f"the copy of {kind} {key} is gone")

    def ready(self, key: Key) -> Obj:
        """Return the virtual Pod, as soon as the host's kubelet has made it Ready."""

        def look() -> Obj | None:
            found = self.virtual.get("Pod", key)
            return found if found is not None and is_ready(found) else None

        return eventually(look, f"the virtual Pod {key} is Ready")

    def reported(self, kind: str, key: Key, path: str, wanted: object) -> None:
        """Wait until the virtual object has this value at the path."""
        eventually(lambda: dig(self.virtual.get(kind, key) or {}, path) == wanted, f"{kind} {key} has {path} {wanted}")

    # -- both sides --------------------------------------------------------------------------------

    def disagreements(
        self, kinds: Iterable[str] = ("ConfigMap", "Secret", "Service"), namespace: str = ""
    ) -> list[str]:
        """Return how the host differs from what it should have: for each virtual object one copy
        that says the same.
        """
        return [line for kind in kinds for line in self._disagreements(kind, namespace)]

    def _disagreements(self, kind: str, namespace: str) -> Iterator[str]:
        there = self.virtual.list(kind, namespace=namespace)
        selector = f"{self.selector},{MARKS.namespace_label}={namespace}" if namespace else self.selector
        virtual = {self.host_key(kind, key_of(obj)): obj for obj in there if _is_copied(kind, obj)}
        host = {key_of(obj): obj for obj in self.host.list(kind, selector=selector) if self.is_copy(obj)}
        yield from (f"{kind} {key} has no copy" for key in virtual.keys() - host.keys())
        yield from (f"{kind} {key} is the copy of nothing" for key in host.keys() - virtual.keys())
        for key in virtual.keys() & host.keys():
            wanted, found = _essence(kind, virtual[key]), _essence(kind, host[key])
            if annotations_of(host[key]).get(MARKS.uid) != uid_of(virtual[key]):
                yield f"{kind} {key} is the copy of an earlier object"
            elif wanted != found:
                yield f"{kind} {key} is {found} and should be {wanted}"

    def is_copy(self, host: Obj) -> bool:
        """Return True if a host object bears all marks of a copy, and those of its own place."""
        return MARKS.is_ours(host, cluster=self.identity, resource=RESOURCES[host["kind"]])

    def agree(self, *, seconds: float = PATIENCE) -> None:
        """Wait until both sides agree."""
        nothing_left(self.disagreements, "both sides agree", seconds=seconds)


def quiet(running: Process) -> float:
    """Return the requests that the daemon has sent so far; 0 while it still has something to do."""
    before = running.requests()
    time.sleep(0.5)
    return before if running.depth() == 0 and running.requests() == before else 0


def _may_list(api: Api, path: str, user: str) -> bool:
    return api.plane.request("GET", f"{path}?limit=1", user=user)[0] == 200


def _may_create_without_mark(api: Api, namespace: str, user: str) -> bool:
    path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
    return api.plane.request("POST", path, configmap("probe", namespace=namespace), user=user)[0] == 201


def _definition(api: Api, name: str) -> list[Obj]:
    found = api.get("CustomResourceDefinition", Key("", name))
    return [found] if found else []


def _is_copied(kind: str, virtual: Obj) -> bool:
    if kind == "Service" and key_of(virtual) == KUBERNETES:
        return False
    if kind == "ConfigMap" and key_of(virtual) in CONTROL_PLANE:
        return False
    return virtual["metadata"]["name"] not in _NOT_COPIED


def _essence(kind: str, obj: Obj) -> Obj:
    """Return the part that must be equal on both sides: the tenant's fields."""
    metadata = {
        part: _foreign(values(obj)) for part, values in (("labels", labels_of), ("annotations", annotations_of))
    }
    if kind != "Service":
        return {**metadata, **{part: obj.get(part) for part in ("data", "binaryData", "type", "immutable")}}
    spec = obj["spec"]
    ports = [{name: value for name, value in port.items() if name != "nodePort"} for port in spec["ports"]]
    selector = _foreign(spec.get("selector") or {})
    return {**metadata, "type": spec["type"], "ports": ports, "selector": selector}


def _foreign(values: Any) -> Obj:
    return {name: value for name, value in values.items() if not MARKS.is_mark(name)}


@contextmanager
def untouched(api: Api, objects: Iterable[Obj]) -> Iterator[None]:
    """Fails if one of these objects is written to, or goes, during the block."""
    before = {(obj["kind"], key_of(obj)): obj for obj in objects}
    yield
    for (kind, key), obj in before.items():
        found = api.get(kind, key)
        assert found is not None, f"{kind} {key} is gone"
        assert found["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"], f"{kind} {key} was changed"
