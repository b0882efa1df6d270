"""The host pod of a virtual Pod, confirmed by both API servers at the moment of a request."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from syncer.api.context import Settings
from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Key, Obj, annotations_of, uid_of
from syncer.api.paths import dig
from syncer.clusters.client import SideClient
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.routes import Route
from syncer.resources.kinds import PODS
from syncer.resources.pods import record

#: Most Pods that are looked up at a time: all syncers use the connections to the host, too.
MOST_LOOKUPS = 8


@dataclass(frozen=True, slots=True)
class HostedPod:
    """A host pod, and the virtual Pod that it runs."""

    key: Key
    uid: str
    virtual: Key
    virtual_uid: str


class Pods:
    """Finds host pods.

    ``holds_copies`` returns True if a host namespace contains copies; no other namespace is read.
    """

    def __init__(
        self,
        settings: Settings,
        virtual: SideClient,
        host: SideClient,
        *,
        holds_copies: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._settings = settings
        self._virtual = virtual
        self._host = host
        self._holds_copies = holds_copies
        self._lookups = asyncio.Semaphore(MOST_LOOKUPS)

    async def find(self, node: str, route: Route) -> HostedPod:
        """Return the host pod of the Pod that a route names.

        The virtual Pod and its copy are read live, so that a pod that only has the same name can't
        be reached. A container must be one that was sent to the host: the host may have added
        others to the copy for its own use.

        Raises:
            RefusedRequest: There is no such Pod on this node, or no such container in it.
        """
        key = self._settings.names.to_host(PODS, route.pod)
        async with self._lookups:
            virtual, host = await asyncio.gather(_get(self._virtual, route.pod), self._copy(key))
        gone = _gone(route.pod)
        if virtual is None or host is None:
            raise gone
        if any(dig(pod, "spec.nodeName") != node for pod in (virtual, host)):
            raise gone
        marks = self._settings.marks
        identity = self._settings.identity
        if not marks.is_ours(host, cluster=identity, resource=PODS):
            raise gone
        if marks.virtual_key(host) != route.pod:
            raise gone
        uid = uid_of(virtual)
        if annotations_of(host).get(marks.uid) != uid or route.uid not in ("", uid):
            raise gone

        if route.container and not _has(host, record.recorded(marks, host), route.container):
            raise RefusedRequest(
                404,
                f'container "{route.container}" not found in pod "{route.pod.name}"',
            )
        return HostedPod(key, uid_of(host), route.pod, uid)

    async def _copy(self, key: Key) -> Obj | None:
        try:
            may_be_there = await self._holds_copies(key.namespace)
        except ClusterError as error:
            raise _silent(self._host, error) from error
        if not may_be_there:
            return None
        return await _get(self._host, key)

    async def confirm(self, pod: HostedPod) -> None:
        """Check that a host pod still exists.

        The host's API server finds a pod by its name. If this pod existed before a request and
        exists afterwards, the request reached no other one.

        Raises:
            RefusedRequest: The pod is gone, or another one has its name.
        """
        async with self._lookups:
            host = await _get(self._host, pod.key)
        if host is None or uid_of(host) != pod.uid:
            raise _gone(pod.virtual)


def _gone(pod: Key) -> RefusedRequest:
    return RefusedRequest(404, f'pod "{pod.name}" does not exist')


def _has(host: Obj, sent: record.PodRecord, container: str) -> bool:
    """Return True if a host pod has a container in the list in which it was sent."""
    for part, names in sent.containers.items():
        if container not in names:
            continue
        for each in dig(host, f"spec.{part}") or ():
            if each.get("name") == container:
                return True
    return False


async def _get(cluster: SideClient, key: Key) -> Obj | None:
    try:
        return await cluster.get(PODS, key)
    except NotFound:
        return None
    except ClusterError as error:
        raise _silent(cluster, error) from error


def _silent(cluster: SideClient, error: ClusterError) -> RefusedRequest:
    return RefusedRequest(
        503,
        f"the {cluster.side} cluster does not answer: {type(error).__name__}",
    )
