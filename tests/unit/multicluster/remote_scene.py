"""A management cluster whose objects name Secrets, and the clusters that these lead to."""

import contextlib
from collections.abc import AsyncIterator

from fleet_scene import PODS, SECRETS, Site, running

from syncer.api import AlreadyExists, Key, Obj, Resource
from syncer.multicluster import (
    Agent,
    Client,
    ClusterOptions,
    ClusterRegistry,
    Controller,
    Manager,
    RemoteClusters,
    Request,
    Spawned,
)
from syncer.resources.kinds import NAMESPACES
from syncer.testing.objects import build, crd, pod, secret

REMOTES = Resource("example.org/v1", "Remote", "remotes", namespaced=False)


LOCALS = Resource("example.org/v1", "Local", "locals")


def remote(
    name: str, secret_name: str = "login", *, namespace: str = "logins", kind: Resource = REMOTES, **metadata: object
) -> Obj:
    spec = {"kubeConfig": {"secretRef": {"namespace": namespace, "name": secret_name, "key": "kubeconfig"}}}
    return build(kind, name, spec=spec, metadata=metadata)


def login(name: str, *, secret_name: str = "login", key: str = "kubeconfig") -> Obj:
    return secret(secret_name, {key: name}, namespace="logins")


class Notes:
    """An agent: a Namespace of its object's name, which may be refused."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fault: Exception | None = None

    async def install(self, client: Client, obj: Obj) -> None:
        self.calls.append("install")
        if self.fault:
            raise self.fault
        with contextlib.suppress(AlreadyExists):
            await client.create(NAMESPACES, build(NAMESPACES, "agent"))

    async def uninstall(self, client: Client, obj: Obj) -> None:
        self.calls.append("uninstall")
        if self.fault:
            raise self.fault
        await client.delete(NAMESPACES, Key("", "agent"))


class Scene:
    """A management cluster, and two others that are reached by Secrets with nothing but their names."""

    def __init__(self) -> None:
        self.manage = Site("manage", crd("remotes.example.org", scope="Cluster"), login("eu"))
        self.sites = {name: Site(name, pod(f"{name}-pod")) for name in ("eu", "us")}
        self.requests: list[Request] = []
        self.agent: Agent | None = None
        self.opened = self.closed = 0
        self.resource, self.secrets_in = REMOTES, "logins"
        self.namespaces: list[str] = []
        self.options: ClusterOptions | None = None

    def _connect(self, name: str, kubeconfig: bytes) -> Client:
        client = self.sites[kubeconfig.decode()].new_client(name)
        self.opened += 1

        async def close() -> None:
            self.closed += 1

        client.close = close  # type: ignore[method-assign]
        return client

    def _pods(self, of: Spawned) -> Controller:
        async def reconcile(request: Request) -> None:
            self.requests.append(request)

        controller = Controller(reconcile)
        controller.watch_object(of.cluster, PODS)
        return controller

    @contextlib.asynccontextmanager
    async def process(self) -> AsyncIterator[ClusterRegistry]:
        """Run a process from its start to its end."""
        manage = Site("manage").cluster
        manage.use(self.manage.new_client("manage"))
        registry = ClusterRegistry(manage, factories=[self._pods], start_timeout=10.0, options=self.options)
        remotes = RemoteClusters(
            registry,
            self.resource,
            agent=self.agent,
            agent_timeout=30.0,
            connect=self._connect,
            secrets=manage.informer(SECRETS, namespace=self.secrets_in),
            namespaces=self.namespaces,
        )
        manager = Manager()
        manager.add(remotes.controller)
        async with registry, running(manager):
            yield registry

    def ready(self, name: str | Key = "shop", condition: str = "Ready") -> tuple[str, str]:
        found = self.condition(name, condition)
        return found.get("status", ""), found.get("reason", "")

    def message(self, name: str | Key = "shop") -> str:
        return str(self.condition(name)["message"])

    def condition(self, name: str | Key = "shop", condition: str = "Ready") -> Obj:
        key = name if isinstance(name, Key) else Key("", name)
        obj = self.manage.server.get(f"{self.resource.plural}.example.org", key) or {}
        conditions = (obj.get("status") or {}).get("conditions") or []
        return next((one for one in conditions if one["type"] == condition), {})

    def since(self) -> str:
        obj = self.manage.server.get("remotes.example.org", Key("", "shop")) or {}
        return str(obj["status"]["conditions"][0]["lastTransitionTime"])

    def installed(self) -> tuple[str, str]:
        return self.ready(condition="Installed")

    def finalizers(self, name: str = "shop") -> list[str] | None:
        obj = self.manage.server.get("remotes.example.org", Key("", name))
        return None if obj is None else list(obj["metadata"].get("finalizers", []))
