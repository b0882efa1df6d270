"""What both clusters hold, and which of it is a copy of what: one row for each pair."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from hack.kubelet import is_ready
from hack.webshop.samples import DEPLOYMENTS, Samples
from syncer.api import Key, Marks, Obj, Resource, annotations_of, dig, key_of, labels_of
from syncer.api.marks import kind_mark
from syncer.clusters.client import FIELD_MANAGER, Cluster
from syncer.resources.kinds import (
    CONFIG_MAPS,
    EVENTS,
    INGRESSES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from syncer.resources.pods.references import names_used
from syncer.resources.services import KUBERNETES

MARKS = Marks()

#: What goes to the host, in the order in which it is shown.
DOWN = (SERVICE_ACCOUNTS, CONFIG_MAPS, SECRETS, SERVICES, INGRESSES, PODS)
#: What is looked at in the virtual cluster.
VIRTUAL = (*DOWN, NODES, EVENTS, DEPLOYMENTS)
TO_HOST, TO_VIRTUAL, BOTH = "->", "<-", "<->"
NOTHING = "-"

#: Each namespace of each cluster has one; it matters only where a Pod uses it.
ROOT_CA = "kube-root-ca.crt"


class Row(NamedTuple):
    """One pair: which objects, which way content goes, when the daemon last wrote, and whether all is as it should."""

    kind: str
    virtual: str
    arrow: str
    host: str
    written: str
    status: str
    good: bool


@dataclass(frozen=True)
class State:
    """All objects of both sides that the demo looks at."""

    virtual: Mapping[Resource, list[Obj]]
    host: Mapping[Resource, list[Obj]]


async def read(virtual: Cluster, host: Cluster, namespace: str) -> State:
    """Ask both clusters, the host one for its namespace and what the daemon made there."""
    up = asyncio.gather(*(virtual.list(resource) for resource in VIRTUAL))
    down = asyncio.gather(*(host.list(resource, namespace=namespace, selector=MARKS.cluster) for resource in DOWN))
    events = host.list(EVENTS, namespace=namespace)
    ups, downs, told = await asyncio.gather(up, down, events)
    return State(dict(zip(VIRTUAL, ups, strict=True)), {**dict(zip(DOWN, downs, strict=True)), EVENTS: told})


def rows(state: State, samples: Samples | None) -> list[Row]:
    """All pairs; with ``samples`` also those of them that are missing."""
    return [
        *(row for resource in DOWN for row in _copies(state, resource, samples)),
        *_tokens(state),
        *_nodes(state, samples),
        *_events(state),
        *_deployments(state),
    ]


# -- down --------------------------------------------------------------------------------------------------------------


def _copies(state: State, resource: Resource, samples: Samples | None) -> Iterator[Row]:
    copies = _by_virtual(state.host[resource], kind_mark(resource))
    objects = {key_of(obj): obj for obj in state.virtual[resource]}
    given = {key_of(obj) for obj in samples.objects if obj["kind"] == resource.kind} if samples else set()
    used = _used(state, resource)
    for key in sorted(copies.keys() | objects.keys() | given):
        stays = used is not None and key not in used
        if not (_is_system(resource, key) or (stays and key.name == ROOT_CA)):
            yield _pair(resource, key, objects.get(key), copies.get(key), stays=stays)


def _is_system(resource: Resource, key: Key) -> bool:
    """Whether it is what each cluster has of its own."""
    return key.namespace.startswith("kube-") or (resource is SERVICES and key == KUBERNETES)


def _used(state: State, resource: Resource) -> set[Key] | None:
    """The keys that virtual Pods refer to, for those kinds that are synced only then, else None."""
    if resource not in (CONFIG_MAPS, SECRETS):
        return None
    return {key for pod in state.virtual[PODS] for key in names_used(pod, resource)}


def _by_virtual(copies: list[Obj], kind: str) -> dict[Key, Obj]:
    of_kind = [(MARKS.virtual_key(copy), copy) for copy in copies if annotations_of(copy).get(MARKS.kind) == kind]
    return {key: copy for key, copy in of_kind if key}


def _pair(resource: Resource, key: Key, virtual: Obj | None, host: Obj | None, *, stays: bool) -> Row:
    arrow, own = (BOTH if resource is PODS else TO_HOST), str(key) if virtual else f"({key})"
    there, written, good = (
        str(key_of(host)) if host else NOTHING,
        _written(virtual if resource is PODS else host),
        False,
    )
    if virtual is None:
        status = "the virtual one is gone" if host else "not in the virtual cluster"
    elif host:
        status, good = _STATUS[resource](virtual, host)
    elif stays:
        arrow, status, good = "", "stays here: no Pod uses it", True
    else:
        status = "not on the host yet"
    return Row(resource.kind, own, arrow, there, written, status, good)


def _same_data(virtual: Obj, host: Obj) -> tuple[str, bool]:
    same = all(virtual.get(part) == host.get(part) for part in ("data", "binaryData"))
    number = len(virtual.get("data") or ())
    return f"{number} key{'s' * (number != 1)}, {'equal' if same else 'different'}", same


def _addresses(virtual: Obj, host: Obj) -> tuple[str, bool]:
    own, there = (dig(obj, "spec.clusterIP") for obj in (virtual, host))
    return f"ClusterIP {own}, on the host {there}", bool(there)


def _hosts(virtual: Obj, host: Obj) -> tuple[str, bool]:
    own, there = ([rule.get("host", "*") for rule in dig(obj, "spec.rules") or ()] for obj in (virtual, host))
    return ", ".join(there), own == there


def _life(virtual: Obj, host: Obj) -> tuple[str, bool]:
    own, there = _condition(virtual), _condition(host)
    if own == there:
        return f"{own}; both sides say so", is_ready(virtual)
    return f"host: {there}; virtual: {own}", False


def _condition(pod: Obj) -> str:
    phase = dig(pod, "status.phase") or "Pending"
    node = dig(pod, "spec.nodeName")
    return f"{phase}{' and Ready' if is_ready(pod) else ''}{f' on {node}' if node else ''}"


_STATUS: Mapping[Resource, Callable[[Obj, Obj], tuple[str, bool]]] = {
    SERVICE_ACCOUNTS: lambda virtual, host: ("there", True),
    CONFIG_MAPS: _same_data,
    SECRETS: _same_data,
    SERVICES: _addresses,
    INGRESSES: _hosts,
    PODS: _life,
}


def _tokens(state: State) -> Iterator[Row]:
    """The Secrets with the tokens of virtual Pods: copies of nothing."""
    for key, secret in sorted(_by_virtual(state.host[SECRETS], kind_mark(PODS)).items()):
        status = f"the Pod's token, until {annotations_of(secret).get(MARKS.token_expires, '?')}"
        yield Row("Secret", f"(Pod {key})", TO_HOST, str(key_of(secret)), _written(secret), status, good=True)


# -- up ----------------------------------------------------------------------------------------------------------------


def _nodes(state: State, samples: Samples | None) -> Iterator[Row]:
    used = {name for pod in state.host[PODS] if (name := dig(pod, "spec.nodeName"))}
    nodes = {node["metadata"]["name"]: node for node in state.virtual[NODES] if MARKS.cluster in labels_of(node)}
    for name in sorted(used | nodes.keys()):
        there = name in nodes
        status = "stands for the host node" if there else "not in the virtual cluster yet"
        yield Row("Node", name if there else NOTHING, TO_VIRTUAL, name, _written(nodes.get(name)), status, there)
    if samples and not used:
        yield Row("Node", NOTHING, TO_VIRTUAL, NOTHING, "", "no Pod is on a node yet", good=False)


def _events(state: State) -> Iterator[Row]:
    """What was told about each Pod that has a copy, one row a Pod."""
    told, retold = _by_pod(state.host[EVENTS]), _by_pod(state.virtual[EVENTS])
    for key, copy in sorted(_by_virtual(state.host[PODS], kind_mark(PODS)).items()):
        there, own = (_reasons(events) for events in (told[key_of(copy)], retold[key]))
        status, good = ", ".join(there) or "none on the host yet", bool(there)
        if missing := [reason for reason in there if reason not in own]:
            status, good = f"not in the virtual cluster yet: {', '.join(missing)}", False
        yield Row("Events", f"(Pod {key})", TO_VIRTUAL, f"(Pod {key_of(copy)})", _written(*retold[key]), status, good)


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
    """They are not synced: that they are ready shows that the tenant's controllers hear how their Pods fare."""
    for obj in state.virtual[DEPLOYMENTS]:
        wanted, ready = dig(obj, "spec.replicas") or 0, dig(obj, "status.readyReplicas") or 0
        status = f"stays here: {ready} of {wanted} Pods ready"
        yield Row("Deployment", str(key_of(obj)), "", NOTHING, "", status, ready == wanted)


def _written(*objects: Obj | None) -> str:
    """When the daemon last wrote one of them, as a wall clock here shows it; empty where it never did."""
    entries = (entry for obj in objects if obj for entry in dig(obj, "metadata.managedFields") or ())
    times = [entry["time"] for entry in entries if entry.get("manager") == FIELD_MANAGER and entry.get("time")]
    return datetime.fromisoformat(max(times)).astimezone().strftime("%H:%M:%S") if times else ""
