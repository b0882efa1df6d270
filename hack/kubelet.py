"""A small simulation of scheduler and kubelet: pods are bound to a node, and become Running and
then Ready.

It remembers the status that it has reported, and counts how often others have overwritten it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from syncer.api import (
    AlreadyExists,
    ClusterError,
    Key,
    NotFound,
    Obj,
    dig,
    is_deleting,
    key_of,
    uid_of,
)
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.resources.kinds import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)
from syncer.resources.nodes import FEATURES

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
#: Seconds before a refused request is repeated.
RETRY_SECONDS = 0.2


def is_ready(pod: Obj) -> bool:
    """Return True if a Pod reports that it is Ready."""
    conditions = dig(pod, "status.conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def now() -> str:
    """Return the current time in Kubernetes' format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_half_gone(pod: Obj) -> bool:
    """Return True for what a cut deletion leaves: marked as gone, and still there;
    Kubernetes' PodGC removes it.
    """
    return dig(pod, "metadata.deletionGracePeriodSeconds") == 0 and not dig(
        pod, "metadata.finalizers"
    )


@dataclass
class Kubelet:
    """Simulates kubelet, and by default scheduler, for all pods in a namespace."""

    cluster: SideClient
    namespace: str
    node: str = "node-1"
    #: Seconds between the steps of a pod's life.
    pause: float = 0.0
    #: False if pods are bound by a scheduler.
    schedules: bool = True
    #: True to also record Events, as a real kubelet does.
    events: bool = False
    #: Number of pod states that lack the reported status. A pod about which a report got no good
    #: answer isn't counted: that report may take effect later, over a newer one.
    overwritten: int = 0
    on_ready: Callable[[str], None] = lambda name: None
    _ready: set[str] = field(default_factory=set)
    _unanswered: set[str] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)
    #: The pods that have begun to live.
    _begun: set[str] = field(default_factory=set)
    _addresses: dict[str, int] = field(default_factory=dict)
    _steps: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Run until cancelled; whatever else than a refused request goes wrong
        with a pod ends it.
        """
        is_made = False
        async with asyncio.TaskGroup() as self._steps:
            while True:
                try:
                    if not is_made:
                        await self._make_node()
                        is_made = True
                    await self._watch()
                except ClusterError:
                    await asyncio.sleep(RETRY_SECONDS)

    async def _make_node(self) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": now(),
        }
        status = {
            "conditions": [ready],
            "capacity": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
            "declaredFeatures": list(FEATURES),
        }
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.node},
            "status": status,
        }
        try:
            await self.cluster.get(NODES, Key("", self.node))
        except NotFound:
            await self.cluster.create(NODES, node)

    async def _watch(self) -> None:
        version = ""
        async for page in self.cluster.list_pages(PODS, namespace=self.namespace):
            for raw in page.items:
                self._see("ADDED", codec.decode(raw))
            version = page.resource_version
        async with self.cluster.watch(
            PODS, namespace=self.namespace, resource_version=version
        ) as events:
            async for batch in events:
                for event in batch:
                    if event.type in ("ADDED", "MODIFIED", "DELETED"):
                        self._see(event.type, codec.decode(event.object))

    def _see(self, kind: str, pod: Obj) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._known.discard(uid)
            self._begun.discard(uid)
            self._ready.discard(uid)
            self._unanswered.discard(uid)
            return
        if is_ready(pod):
            self._ready.add(uid)
        elif uid in self._ready - self._unanswered:
            self.overwritten += 1
        self._known.add(uid)
        if is_deleting(pod) and (dig(pod, "spec.nodeName") or _is_half_gone(pod)):
            self._start(self._end(pod))
        elif uid not in self._begun and self._is_mine(pod):
            self._begun.add(uid)
            self._start(self._live(pod))

    def _is_mine(self, pod: Obj) -> bool:
        """Return True if a pod is on this node, or may be put there:
        a DaemonSet's pods name their node.
        """
        if bound := dig(pod, "spec.nodeName"):
            return bool(bound == self.node)
        if not self.schedules:
            return False
        terms = dig(pod, f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms") or ()
        named: list[list[str]] = []
        for term in terms:
            named.extend(field["values"] for field in term.get("matchFields") or ())
        return not named or any(self.node in values for values in named)

    def _start(self, step: Coroutine[Any, Any, None]) -> None:
        assert self._steps is not None
        self._steps.create_task(step)

    async def _live(self, pod: Obj) -> None:
        """Bind, run, become ready; retry, like a kubelet, while the pod exists."""
        uid = pod["metadata"]["uid"]
        key = key_of(pod)
        while uid in self._known and self._is_mine(pod):
            try:
                if await self._has_claims(pod):
                    await self._go_through(key, pod)
                    self.on_ready(key.name)
                    return
            except NotFound:  # it was deleted while nothing was watched
                return
            except ClusterError:
                pass
            await asyncio.sleep(RETRY_SECONDS)
            with contextlib.suppress(ClusterError):
                found = await self.cluster.get(PODS, key)
                pod = found if uid_of(found) == uid else pod

    async def _has_claims(self, pod: Obj) -> bool:
        """Return True if every claim of a pod is there; a scheduler binds none that lacks one."""
        spec = pod["spec"]
        namespace = pod["metadata"]["namespace"]
        volumes = (volume.get("persistentVolumeClaim") for volume in spec.get("volumes") or ())
        named = [(PERSISTENT_VOLUME_CLAIMS, claim["claimName"]) for claim in volumes if claim]
        for claim in spec.get("resourceClaims") or ():
            kind = RESOURCE_CLAIMS if claim.get("resourceClaimName") else RESOURCE_CLAIM_TEMPLATES
            named.append(
                (kind, claim.get("resourceClaimName") or claim["resourceClaimTemplateName"])
            )
        for kind, name in named:
            try:
                await self.cluster.get(kind, Key(namespace, name))
            except NotFound:
                return False
        return True

    async def _go_through(self, key: Key, pod: Obj) -> None:
        if not dig(pod, "spec.nodeName"):
            await self.cluster.create(PODS, self._binding(key), subresource="binding", key=key)
            message = f"Successfully assigned {key} to {self.node}"
            await self._record_event(pod, "default-scheduler", "Scheduled", message)
        await asyncio.sleep(self.pause)
        await self._report(key, pod, ready="False")
        await self._record_event(pod, "kubelet", "Started", "Started container")
        await asyncio.sleep(self.pause)
        await self._report(key, pod, ready="True")

    def _binding(self, key: Key) -> Obj:
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        metadata = {"name": key.name, "namespace": key.namespace}
        return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}

    async def _record_event(self, pod: Obj, source: str, reason: str, message: str) -> None:
        if not self.events:
            return
        metadata = pod["metadata"]
        time = now()
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{reason.lower()}",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {"apiVersion": "v1", "kind": "Pod"}
            | {name: metadata[name] for name in ("name", "namespace", "uid")},
            "source": {"component": source, "host": self.node},
            "type": "Normal",
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": time,
            "lastTimestamp": time,
        }
        with contextlib.suppress(AlreadyExists):  # recorded for an earlier pod of this name
            await self.cluster.create(EVENTS, event)

    async def _report(self, key: Key, pod: Obj, *, ready: str) -> None:
        started = now()
        conditions = [
            {"type": kind, "status": status, "lastTransitionTime": started}
            for kind, status in (
                ("PodScheduled", "True"),
                ("Initialized", "True"),
                ("ContainersReady", ready),
                ("Ready", ready),
            )
        ]
        containers = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": f"sim://{container['image']}",
                "containerID": f"sim://{key.name}-{container['name']}",
                "ready": ready == "True",
                "restartCount": 0,
                "state": {"running": {"startedAt": started}},
                "resources": container.get("resources")
                or {},  # by which an API server knows that it could resize it
            }
            for container in pod["spec"]["containers"]
        ]
        status = {
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": containers,
            "hostIP": "192.0.2.10",
            "podIP": self._address(pod["metadata"]["uid"]),
            "startTime": started,
        }
        try:
            await self.cluster.patch(
                PODS, key, {"status": status}, kind="strategic", subresource="status"
            )
        except ClusterError:
            self._unanswered.add(uid_of(pod))
            raise

    def _address(self, uid: str) -> str:
        """Return an address that is unique to the pod."""
        number = self._addresses.setdefault(uid, len(self._addresses))
        return f"10.244.{number // 250 % 250}.{number % 250 + 1}"

    async def _end(self, pod: Obj) -> None:
        uid = uid_of(pod)
        while uid in self._known:
            try:
                await self.cluster.delete(PODS, key_of(pod), uid=uid, grace=0)
            except NotFound:
                return
            except ClusterError:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return
