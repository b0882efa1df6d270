"""The objects of both clusters, in pairs: a row for each."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from hack.kubelet import is_ready
from hack.webshop.databases import DATABASES
from hack.webshop.samples import DEPLOYMENTS, Samples
from syncer.api import Key, Marks, NotFound, Obj, Resource, annotations_of, dig, key_of, labels_of
from syncer.api.marks import kind_mark
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.clusters.client import SideClient
from syncer.resources.definitions.config import PUBLIC_LABEL
from syncer.resources.kinds import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    INGRESSES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from syncer.resources.pods.references import PATHS
from syncer.resources.services import KUBERNETES

MARKS = Marks()

#: The kinds that go to the host, in the order of the table.
DOWN = (SERVICE_ACCOUNTS, CONFIG_MAPS, SECRETS, SERVICES, INGRESSES, PODS, DATABASES)
#: Those of them whose status comes back.
BACK = (PODS, DATABASES)
#: The kinds that are read in the virtual cluster.
VIRTUAL = (*DOWN, NODES, EVENTS, DEPLOYMENTS, CUSTOM_RESOURCE_DEFINITIONS)
#: The kinds that are read on the host; namespaced ones in the daemon's namespace.
HOST = (*DOWN, EVENTS, CUSTOM_RESOURCE_DEFINITIONS)
TO_HOST = "->"
TO_VIRTUAL = "<-"
BOTH = "<->"
NOTHING = "-"

#: Every namespace of every cluster has it; it matters only if a Pod uses it.
ROOT_CA = "kube-root-ca.crt"


class Row(NamedTuple):
    """A pair: its objects, the direction, the time of the daemon's last write,
    and whether it is in step.
    """

    kind: str
    virtual: str
    arrow: str
    host: str
    written: str
    status: str
    good: bool


@dataclass(frozen=True)
class State:
    """The objects of both sides that the demo reads."""

    virtual: Mapping[Resource, list[Obj]]
    host: Mapping[Resource, list[Obj]]


async def read(virtual: SideClient, host: SideClient, namespace: str) -> State:
    """Read both clusters; the host in its namespace."""
    up = asyncio.gather(*(_list(virtual, resource) for resource in VIRTUAL))
    down = asyncio.gather(*(_list(host, resource, namespace) for resource in HOST))
    ups, downs = await asyncio.gather(up, down)
    return State(dict(zip(VIRTUAL, ups, strict=True)), dict(zip(HOST, downs, strict=True)))


async def _list(cluster: SideClient, resource: Resource, namespace: str = "") -> list[Obj]:
    """Return all objects, of a namespace if the kind has them;
    none of a kind that isn't served yet.
    """
    if not resource.namespaced:
        namespace = ""
    try:
        return await cluster.list(resource, namespace=namespace)
    except NotFound:
        return []


def rows(state: State, samples: Samples | None) -> list[Row]:
    """Return all pairs; with ``samples`` including the missing ones."""
    found: list[Row] = []
    for resource in DOWN:
        found.extend(_copies(state, resource, samples))
    found.extend(_tokens(state))
    found.extend(_logins(state))
    found.extend(_definitions(state))
    found.extend(_nodes(state, samples))
    found.extend(_events(state))
    found.extend(_deployments(state))
    return found


# -- down ------------------------------------------------------------------------------------------


def _copies(state: State, resource: Resource, samples: Samples | None) -> Iterator[Row]:
    copies = _by_virtual(state.host[resource], kind_mark(resource))
    objects = {
        key_of(obj): obj for obj in state.virtual[resource] if MARKS.cluster not in labels_of(obj)
    }
    given = set()
    if samples:
        given = {key_of(obj) for obj in samples.objects if obj["kind"] == resource.kind}
    used = _used(state, resource)
    for key in sorted(copies.keys() | objects.keys() | given):
        stays = used is not None and key not in used
        if key in copies or not (_is_system(resource, key) or (stays and key.name == ROOT_CA)):
            yield _pair(resource, key, objects.get(key), copies.get(key), stays=stays)


def _is_system(resource: Resource, key: Key) -> bool:
    """Return True for an object that every cluster has of its own."""
    return key.namespace.startswith("kube-") or (resource is SERVICES and key == KUBERNETES)


def _used(state: State, resource: Resource) -> set[Key] | None:
    """Return the keys that virtual Pods refer to, for kinds that are only synced then,
    else None.
    """
    if resource not in (CONFIG_MAPS, SECRETS):
        return None
    found: set[Key] = set()
    for pod in state.virtual[PODS]:
        found.update(key for kind, key in PATHS.keys(pod) if kind == resource)
    return found


def _by_virtual(copies: list[Obj], kind: str) -> dict[Key, Obj]:
    of_kind = [
        (MARKS.virtual_key(copy), copy)
        for copy in copies
        if annotations_of(copy).get(MARKS.kind) == kind
    ]
    return {key: copy for key, copy in of_kind if key}


def _pair(
    resource: Resource, key: Key, virtual: Obj | None, host: Obj | None, *, stays: bool
) -> Row:
    arrow = TO_HOST
    changed = host
    if resource in BACK:
        arrow = BOTH
        changed = virtual
    own = str(key) if virtual else f"({key})"
    there = str(key_of(host)) if host else NOTHING
    written = _written(changed)
    good = False
    if virtual is None:
        status = "the virtual one is gone" if host else "not in the virtual cluster"
    elif host:
        status, good = _STATUS[resource](virtual, host)
    elif stays:
        arrow = ""
        status = "stays here: no Pod uses it"
        good = True
    else:
        status = "not on the host yet"
    return Row(resource.kind, own, arrow, there, written, status, good)


def _same_data(virtual: Obj, host: Obj) -> tuple[str, bool]:
    same = all(virtual.get(part) == host.get(part) for part in ("data", "binaryData"))
    number = len(virtual.get("data") or ())
    return f"{number} key{'s' * (number != 1)}, {'equal' if same else 'different'}", same


def _addresses(virtual: Obj, host: Obj) -> tuple[str, bool]:
    own, there = (dig(obj, "spec.clusterIP") for obj in (virtual, host))
    if own == there:
        return f"ClusterIP {own} on both sides", True
    return f"ClusterIP {own}, on the host {there}", False


def _hosts(virtual: Obj, host: Obj) -> tuple[str, bool]:
    own, there = (
        [rule.get("host", "*") for rule in dig(obj, "spec.rules") or ()] for obj in (virtual, host)
    )
    return ", ".join(there), own == there


def _life(virtual: Obj, host: Obj) -> tuple[str, bool]:
    own = _condition(virtual)
    there = _condition(host)
    if own == there:
        return f"{own}; both sides say so", is_ready(virtual) or own.startswith("Succeeded")
    return f"host: {there}; virtual: {own}", False


def _condition(pod: Obj) -> str:
    phase = dig(pod, "status.phase") or "Pending"
    node = dig(pod, "spec.nodeName")
    return f"{phase}{' and Ready' if is_ready(pod) else ''}{f' on {node}' if node else ''}"


def _phases(virtual: Obj, host: Obj) -> tuple[str, bool]:
    own, there = (dig(obj, "status.phase") or "Pending" for obj in (virtual, host))
    if own == there:
        return f"{own}; both sides say so", bool(own == "Ready")
    return f"host: {there}; virtual: {own}", False


_STATUS: Mapping[Resource, Callable[[Obj, Obj], tuple[str, bool]]] = {
    SERVICE_ACCOUNTS: lambda virtual, host: ("there", True),
    CONFIG_MAPS: _same_data,
    SECRETS: _same_data,
    SERVICES: _addresses,
    INGRESSES: _hosts,
    PODS: _life,
    DATABASES: _phases,
}


def _tokens(state: State) -> Iterator[Row]:
    """Yield the Secrets with the tokens of virtual Pods, which are copies of nothing."""
    for key, secret in sorted(_by_virtual(state.host[SECRETS], kind_mark(PODS)).items()):
        status = f"the Pod's token, until {annotations_of(secret).get(MARKS.token_expires, '?')}"
        yield Row(
            "Secret",
            f"(Pod {key})",
            TO_HOST,
            str(key_of(secret)),
            _written(secret),
            status,
            good=True,
        )


# -- up --------------------------------------------------------------------------------------------


def _logins(state: State) -> Iterator[Row]:
    """Yield the Secrets that the host's operator creates for Databases."""
    secrets = {key_of(secret): secret for secret in state.virtual[SECRETS]}
    made = {key_of(secret): secret for secret in state.host[SECRETS]}
    copies = _by_virtual(state.host[DATABASES], kind_mark(DATABASES))
    for key, copy in sorted(copies.items()):
        host_key = Key(key_of(copy).namespace, copy["spec"]["secretName"])
        asking = next((each for each in state.virtual[DATABASES] if key_of(each) == key), None)
        own = Key(key.namespace, asking["spec"]["secretName"]) if asking else host_key
        virtual = secrets.get(own)
        host = made.get(host_key)
        status = "not in the virtual cluster yet"
        good = False
        if virtual and host:
            status, good = _same_data(virtual, host)
        shown = str(own) if virtual else NOTHING
        yield Row("Secret", shown, TO_VIRTUAL, str(host_key), _written(virtual), status, good)


def _definitions(state: State) -> Iterator[Row]:
    """Yield the host's CRDs that tenants get too."""
    there = {key_of(crd): crd for crd in state.virtual[CUSTOM_RESOURCE_DEFINITIONS]}
    for key in sorted(
        key_of(crd)
        for crd in state.host[CUSTOM_RESOURCE_DEFINITIONS]
        if PUBLIC_LABEL in labels_of(crd)
    ):
        crd = there.get(key)
        own = NOTHING
        status = "not in the virtual cluster yet"
        if crd is not None:
            own = str(key)
            status = "the host's label says that tenants may use it"
        yield Row("CRD", own, TO_VIRTUAL, str(key), _written(crd), status, crd is not None)


def _nodes(state: State, samples: Samples | None) -> Iterator[Row]:
    used = {name for pod in state.host[PODS] if (name := dig(pod, "spec.nodeName"))}
    nodes = {
        node["metadata"]["name"]: node
        for node in state.virtual[NODES]
        if MARKS.cluster in labels_of(node)
    }
    for name in sorted(used | nodes.keys()):
        there = name in nodes
        own = NOTHING
        status = "not in the virtual cluster yet"
        if there:
            own = name
            status = "stands for the host node"
        yield Row("Node", own, TO_VIRTUAL, name, _written(nodes.get(name)), status, there)
    if samples and not used:
        yield Row("Node", NOTHING, TO_VIRTUAL, NOTHING, "", "no Pod is on a node yet", good=False)


def _events(state: State) -> Iterator[Row]:
    """Yield the Events about each Pod with a copy, in a row for each Pod."""
    on_host = _by_pod(state.host[EVENTS])
    virtual = _by_pod(state.virtual[EVENTS])
    for key, copy in sorted(_by_virtual(state.host[PODS], kind_mark(PODS)).items()):
        there, own = (_reasons(events) for events in (on_host[key_of(copy)], virtual[key]))
        status = ", ".join(there) or "none on the host yet"
        good = bool(there)
        if missing := [reason for reason in there if reason not in own]:
            status = f"not in the virtual cluster yet: {', '.join(missing)}"
            good = False
        yield Row(
            "Events",
            f"(Pod {key})",
            TO_VIRTUAL,
            f"(Pod {key_of(copy)})",
            _written(*virtual[key]),
            status,
            good,
        )


def _by_pod(events: list[Obj]) -> Mapping[Key, list[Obj]]:
    found: dict[Key, list[Obj]] = defaultdict(list)
    for event in events:
        about = event.get("involvedObject") or {}
        if about.get("kind") == "Pod":
            found[Key(about.get("namespace", ""), about.get("name", ""))].append(event)
    return found


def _reasons(events: list[Obj]) -> list[str]:
    return list(dict.fromkeys(event.get("reason", "") for event in events))


def _deployments(state: State) -> Iterator[Row]:
    """Yield Deployments.

    They are not synced: that they are ready shows that the tenant's controllers see the status of
    their Pods.
    """
    for obj in state.virtual[DEPLOYMENTS]:
        wanted = dig(obj, "spec.replicas") or 0
        ready = dig(obj, "status.readyReplicas") or 0
        status = f"stays here: {ready} of {wanted} Pods ready"
        yield Row("Deployment", str(key_of(obj)), "", NOTHING, "", status, ready == wanted)


def _written(*objects: Obj | None) -> str:
    """Return the time of the daemon's last write to one of them, in local time;
    empty if there was none.
    """
    times: list[str] = []
    for obj in objects:
        entries = dig(obj or {}, "metadata.managedFields") or ()
        own = [entry for entry in entries if entry.get("manager") == FIELD_MANAGER]
        times.extend(entry["time"] for entry in own if entry.get("time"))
    if not times:
        return ""
    return datetime.fromisoformat(max(times)).astimezone().strftime("%H:%M:%S")
