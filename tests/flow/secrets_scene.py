"""A daemon whose virtual clusters are named by Secrets of the host."""

import base64
import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

import yaml
from clusters_scene import HOME, MODEL, World
from harness import admin, namespace, utcnow

from hack.side_tasks import helped_by
from syncer.api import Obj, Side
from syncer.byte_budget import ByteBudget
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.dialer import Dialer
from syncer.clusters.transport import ConnectionFailed, Endpoint, HttpRequest, HttpResponse, Stream
from syncer.config import SyncerConfig
from syncer.daemon.fleet.cluster_sources import ClusterSources
from syncer.daemon.fleet.fleet import ServedFleet
from syncer.daemon.process import Process
from syncer.observe.metrics import Metrics
from syncer.testing.in_process import MemoryTransport

#: The namespace of the Secrets.
TEAM = "team"
LABEL = "vsyncer.dev/virtual-cluster"


def kubeconfig(server: str, *, token: str = "good", user: Mapping[str, Any] | None = None, more: Any = ()) -> bytes:
    """Return a kubeconfig that leads to an API server by its name, with ``more`` of its cluster."""
    whole = {
        "clusters": [{"name": "c", "cluster": {"server": f"https://{server}", **dict(more)}}],
        "users": [{"name": "u", "user": {"token": token} if user is None else dict(user)}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    return yaml.safe_dump(whole).encode()


def secret(name: str, config: bytes | None = None, /, *, home: str = TEAM, **more: Any) -> Obj:
    """Return a Secret with a kubeconfig, by default of the API server of its name; ``more`` are annotations by the
    end of their keys, ``labels``, and ``files`` beside the kubeconfig.
    """
    labels, files = more.pop("labels", {LABEL: ""}), more.pop("files", {})
    content = {"config": kubeconfig(name) if config is None else config, **files}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": home,
            "labels": labels,
            "annotations": {f"{LABEL}-{key.replace('_', '-')}": value for key, value in more.items()},
        },
        "data": {key: base64.b64encode(value).decode() for key, value in content.items()},
    }


def configured(*listed: str, secrets: Any = None, **options: Any) -> SyncerConfig:
    """Return a configuration with Secrets of the team, and with listed virtual clusters."""
    given = {
        "virtualClusters": [{"name": each, "kubeconfig": each, "hostNamespace": HOME} for each in listed],
        "virtualClusterSecrets": secrets or [{"namespace": TEAM, "hostNamespaces": [HOME]}],
        "sync": {"toHost": {"configMaps": {"all": True}}},
    }
    return MODEL.model_validate({**given, **options})


class Logged:
    """The way to a server by a kubeconfig: its host is the server's name, and the server knows some tokens."""

    def __init__(self, world: "Secrets", endpoint: Endpoint, credentials: LoginCredentials) -> None:
        self._world, self._name, self._credentials = world, endpoint.host, credentials
        self.dialer = Dialer(endpoint, credentials)

    async def _through(self) -> MemoryTransport | None:
        """Return the transport; None if the token isn't known."""
        if self._name in self._world.cut or self._name not in self._world.servers:
            raise ConnectionFailed("refused")
        for _ in range(2):
            access = await self._credentials.access()
            if dict(access.headers).get("Authorization") in self._world.tokens:
                return MemoryTransport(self._world.servers[self._name])
            await self._credentials.refused(access)
        return None

    async def send(self, request: HttpRequest) -> HttpResponse:
        found = await self._through()
        return HttpResponse(401, {}, b"{}") if found is None else await found.send(request)

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        found = await self._through()
        if found is None:
            raise ConnectionFailed("the token isn't known")
        async with found.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        """Nothing is open."""


class Secrets(World):
    """A host with Secrets, and the API servers that they lead to."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.host.put(namespace(TEAM))
        self.tokens = {"Bearer good"}

    def transport(
        self,
        endpoint: Endpoint,
        credentials: LoginCredentials,
        *,
        user_agent: str,
        replies: ByteBudget | None,
    ) -> Logged:
        """Stand in for HTTP."""
        assert user_agent == "vsyncer"
        return Logged(self, endpoint, credentials)

    def put(self, *secrets: Obj) -> None:
        """Write Secrets on the host."""
        for each in secrets:
            self.host.put(each)

    @contextlib.asynccontextmanager
    async def daemon(self, config: SyncerConfig) -> AsyncIterator[tuple[Process, ClusterSources]]:
        """Serve a configuration while the block runs."""
        process = Process(
            host=admin(self.host, Side.HOST),
            metrics=Metrics(version="test"),
            utcnow=utcnow,
            rng=random.Random("secrets"),
        )
        fleet = ServedFleet(process, config.clusters())
        sources = ClusterSources(process, config, fleet.update)
        async with process.running(), helped_by(sources.run(), fleet.run(), process.work()) as tasks:
            yield process, sources
            assert not any(task.done() for task in tasks)
