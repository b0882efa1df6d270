"""The host pod of a virtual Pod, confirmed by both API servers at the moment of a request."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from syncer.api.context import Settings
from syncer.api.errors import ClusterError, Missing
from syncer.api.objects import Key, Obj, annotations_of, uid_of
from syncer.api.paths import dig
from syncer.clusters.client import SideClient
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.routes import Route
from syncer.resources.kinds import PODS
from syncer.resources.pods import containers

#: Most Pods that are looked up at a time: the connections to the host are those of all syncers,
#: too.
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

    ``holds_copies`` returns True if copies are in a host namespace; nothing is read in others.
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
        """Return the host pod that runs the named Pod on this node.

        The virtual Pod and its copy are read live, so that nothing is reached that only bears the
        name. A container must be one that was sent to the host: it may have put others into the
        copy, for itself.

        Raises:
            Refused: There is no such Pod on this node, or no such container in it.
        """
        key = self._settings.names.to_host(PODS, route.pod)
        async with self._lookups:
            virtual, host = await asyncio.gather(_get(self._virtual, route.pod), self._copy(key))
        gone = _gone(route.pod)
        if virtual is None or host is None or dig(virtual, "spec.nodeName") != node:
            raise gone
        marks = self._settings.marks
        identity = self._settings.identity
        if not marks.is_ours(host, cluster=identity, resource=PODS) or marks.virtual_key(host) != route.pod:
            raise gone
        uid = uid_of(virtual)
        if annotations_of(host).get(marks.uid) != uid or route.uid not in ("", uid):
            raise gone
        if route.container and not _has(host, containers.recorded(marks, host), route.container):
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
        return await _get(self._host, key) if may_be_there else None

    async def confirm(self, place: HostedPod) -> None:
        """Check that a host pod still has its place.

        The host's API server takes a request for a name. The pod that it answered for is the one
        that was found before if that one is there afterwards, too.

        Raises:
            Refused: It is gone, or another one has its name.
        """
        async with self._lookups:
            host = await _get(self._host, place.key)
        if host is None or uid_of(host) != place.uid:
            raise _gone(place.virtual)


def _gone(pod: Key) -> RefusedRequest:
    return RefusedRequest(404, f'pod "{pod.name}" does not exist')


def _has(host: Obj, sent: containers.SentContainers, container: str) -> bool:
    """Return True if a host pod has a container in the list in which it was sent."""
    parts = [part for part, names in sent.items() if container in names]
    return any(each.get("name") == container for part in parts for each in dig(host, f"spec.{part}") or ())


async def _get(cluster: SideClient, key: Key) -> Obj | None:
    try:
        return await cluster.get(PODS, key)
    except Missing:
        return None
    except ClusterError as error:
        raise _silent(cluster, error) from error


def _silent(cluster: SideClient, error: ClusterError) -> RefusedRequest:
    return RefusedRequest(
        503,
        f"the {cluster.side} cluster does not answer: {type(error).__name__}",
    )
