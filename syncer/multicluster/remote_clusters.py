"""Clusters that are objects of the management cluster: each names a Secret with its kubeconfig.

The registry's content follows the objects and the Secrets, and nothing is remembered but the
registry itself. So controllers are started again after a restart of the process, and with a changed
kubeconfig.
"""

import base64
import binascii
import contextlib
import copy
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from syncer.api.errors import SyncerError
from syncer.api.objects import Json, Key, Obj, Resource, is_deleting, key_of
from syncer.clusters.client import Client
from syncer.clusters.connection import client_of
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.login import Login
from syncer.clusters.transport import ReplyTooLarge
from syncer.multicluster.callbacks import call, name_of
from syncer.multicluster.changes import (
    add_finalizer,
    has_finalizer,
    remove_finalizer,
    write_changes,
)
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.multicluster.controller import Controller, ControllerOptions
from syncer.multicluster.errors import CacheTooLarge, ClusterNotFound, NotInstalled
from syncer.multicluster.logins import CannotConnect, Reason, parsed
from syncer.multicluster.registry import ClusterRegistry, StackState
from syncer.multicluster.requests import Request, Result
from syncer.observe.logs import get_logger
from syncer.translate.times import written

#: The finalizer of an object whose controllers run.
FINALIZER = "vsyncer.dev/remote-cluster"
#: The condition of an object that its controllers run.
READY = "Ready"
#: The condition of an object that its agent is installed.
INSTALLED = "Installed"
#: Default seconds in which an agent has to be installed, or uninstalled.
AGENT_SECONDS = 300.0
#: Seconds after which it is looked whether controllers still run.
LOOK_SECONDS = 60.0
_INDEX = "kubeconfig of remote clusters"

log = get_logger(__name__)


class Agent(Protocol):
    """What the controllers of a cluster need in it, such as CustomResourceDefinitions or a program.

    Both methods may be repeated at any time, also after they have succeeded, and may raise whatever
    they like: the object's condition reports it, and they are called again. They may be async;
    else they run in a thread.
    """

    def install(self, client: Client, obj: Obj) -> Awaitable[None] | None:
        """Install it as the object says, or bring what is installed in step with it."""

    def uninstall(self, client: Client, obj: Obj) -> Awaitable[None] | None:
        """Remove it."""


class RemoteClusters:
    """Spawns and stops controllers as the objects of a resource say.

    An object's ``spec.kubeConfig.secretRef`` has ``namespace``, ``name`` and ``key``. Whoever
    writes an object chooses the Secret, so it may be of the listed ``namespaces`` alone. If none
    are listed, it is of the object's own namespace, which is also meant where the reference has
    none; for objects without a namespace, of the one that the cache ``secrets`` is limited to. Any
    other is refused, and the condition says so. Its status gets the condition ``Ready`` and
    ``observedGeneration``, and it bears a finalizer while its controllers may run. The name in the
    registry is that of the object, with its namespace if it has one. ``secrets`` is the cache of
    the Secrets, of a namespace at best.

    An ``agent`` is installed before the controllers of a cluster start, and again after each change
    of the object or the kubeconfig; the condition ``Installed`` is about it. When the object is
    deleted, the controllers are stopped, and the object stays until the agent is uninstalled; if
    its cluster is gone for good, remove the finalizer. Either ends after ``agent_timeout`` seconds,
    with the reason ``CallbackTimeout``, and is tried again.

    Kubeconfigs that run programs, name files, or don't verify the server are refused: who writes
    them gets nothing of this process. A new token or certificate of the same server is used from
    the next request on, and no watch is lost; with anything else that is new, the controllers are
    started again. ``connect`` makes a client of a kubeconfig in another way, for each new one.
    Controllers that have ended by themselves, such as those of a cluster that has more objects than
    ``max_bytes`` of the registry's options allow, are started again. Those of an object that is
    refused, as its Secret or kubeconfig is, are stopped; while a Secret is missing they go on.
    """

    def __init__(
        self,
        registry: ClusterRegistry,
        resource: Resource,
        *,
        secrets: ClusterInformer,
        namespaces: Collection[str] = (),
        agent: Agent | None = None,
        agent_timeout: float = AGENT_SECONDS,
        connect: Callable[[str, bytes], Client] | None = None,
        environ: Mapping[str, str] | None = None,
        finalizer: str = FINALIZER,
        options: ControllerOptions | None = None,
    ) -> None:
        self._registry = registry
        self._resource = resource
        self._environ = os.environ if environ is None else environ
        self._connect = connect
        self._secrets = secrets
        self._finalizer = finalizer
        self._agent = agent
        self._agent_timeout = agent_timeout
        self._namespaces = frozenset(namespaces)
        self._manage = registry.manage
        #: The kubeconfigs of the spawned clusters.
        self._spawned: dict[str, _Spawned] = {}
        #: The checksum of the kubeconfig, and the generation of the object, that the agent of each
        #: cluster has.
        self._installed: dict[str, tuple[str, int]] = {}
        # All requests are of the management cluster, but wait for others: one that hangs delays
        # none of them.
        self.controller = Controller(
            self.reconcile,
            options or ControllerOptions(cluster_workers=0),
        )
        self._manage.add_index(resource, _INDEX, lambda obj: [_secret_of(obj)])
        self.controller.watch_object(self._manage, resource)
        self.controller.watch_map_func(self._manage, secrets, self._users)

    async def reconcile(self, request: Request) -> Result:
        """Bring the controllers of an object's cluster in step; they are looked after again, as
        they may end.

        Raises:
            SyncerError: They can't be; it is retried, and the condition says why.
        """
        obj = await self._manage.get(self._resource, request.key)
        name = str(request.key)
        if obj is None:
            await self._stop(name)
            return Result()
        if is_deleting(obj):
            await self._reconcile_delete(name, obj)
            return Result()
        obj = await add_finalizer(self._manage, self._resource, obj, self._finalizer)
        return await self._reconcile_normal(name, obj)

    async def _reconcile_delete(self, name: str, obj: Obj) -> None:
        """Stop the controllers of an object that is being deleted, uninstall its agent, and remove
        the finalizer.

        Raises:
            NotInstalled: The agent can't be uninstalled; the condition says why.
        """
        await self._stop(name)
        if not has_finalizer(obj, self._finalizer):
            return
        if self._agent is not None and _condition(obj, INSTALLED) is not None:
            await self._uninstall(name, obj, self._agent)
        await remove_finalizer(self._manage, self._resource, obj, self._finalizer)

    async def _reconcile_normal(self, name: str, obj: Obj) -> Result:
        """Install the agent of an object's cluster, start its controllers, and report both.

        Raises:
            SyncerError: As :meth:`reconcile`.
        """
        conditions: list[_Condition] = []
        try:
            kubeconfig = self._kubeconfig(obj)
            if self._agent is not None:
                if _condition(obj, INSTALLED) is None:
                    # From now on, there may be something to uninstall.
                    installing = _Condition(INSTALLED, "Unknown", "Installing", "")
                    obj = await self._report(obj, installing)
                installed = await self._install(name, obj, kubeconfig, self._agent)
                conditions.append(installed)
                if installed.status != "True":
                    why = f"the agent of cluster {name} can't be installed: {installed.message}"
                    raise NotInstalled(why)
            await self._spawn(name, kubeconfig)
        except CannotConnect as error:  # the Secret's next change is awaited
            if error.reason is Reason.REFUSED:
                await self._stop(name)
            conditions.append(_Condition(READY, "False", error.reason, str(error)))
            await self._report(obj, *conditions)
            return Result()
        except SyncerError as error:
            conditions.append(_Condition(READY, "False", _reason_of(error), str(error)))
            await self._report(obj, *conditions)
            raise

        conditions.append(_Condition(READY, "True", "Running", "its controllers run"))
        await self._report(obj, *conditions)
        return Result(requeue_after=LOOK_SECONDS)

    async def _spawn(self, name: str, kubeconfig: bytes) -> None:
        """Start the controllers of a cluster, unless they run with this kubeconfig.

        Raises:
            CannotConnect: The kubeconfig can't be used.
            SyncerError: As for :meth:`ClusterRegistry.replace`.
        """
        status = self._registry.status().get(name)
        is_running = status is not None and status.state is StackState.RUNNING
        if is_running and self._uses(name, kubeconfig):
            return
        client, credentials = self._opened(name, kubeconfig)
        await self._registry.replace(name, client)
        self._spawned[name] = _Spawned(_checksum(kubeconfig), credentials)

    def _uses(self, name: str, kubeconfig: bytes) -> bool:
        """Return True if a running cluster has this kubeconfig, or its credentials were renewed
        from it in place.

        Raises:
            CannotConnect: The kubeconfig can't be used.
        """
        spawned = self._spawned.get(name)
        if spawned is None:
            return False
        checksum = _checksum(kubeconfig)
        if spawned.checksum == checksum:
            return True
        if spawned.credentials is None:
            return False
        login = self._login(name, kubeconfig)
        if not login.renews(spawned.credentials.login):
            return False
        spawned.credentials.use(login)
        spawned.checksum = checksum
        return True

    def _login(self, name: str, kubeconfig: bytes) -> Login:
        return parsed(kubeconfig, source=f"the Secret of {name}", environ=self._environ)

    def _opened(self, name: str, kubeconfig: bytes) -> tuple[Client, LoginCredentials | None]:
        """Return a client, and its credentials if they can be renewed in place."""
        if self._connect is not None:
            return self._connect(name, kubeconfig), None
        credentials = LoginCredentials(self._login(name, kubeconfig))
        return client_of(credentials, name=name), credentials

    async def _stop(self, name: str) -> None:
        with contextlib.suppress(ClusterNotFound):
            await self._registry.stop(name)
        self._spawned.pop(name, None)
        self._installed.pop(name, None)

    # -- the agent ---------------------------------------------------------------------------------

    async def _install(self, name: str, obj: Obj, kubeconfig: bytes, agent: Agent) -> "_Condition":
        """Install the agent, unless it is installed like this, and return the condition about it.

        Raises:
            CannotConnect: The kubeconfig can't be used.
        """
        generation = int(obj["metadata"].get("generation", 0))
        wanted = (_checksum(kubeconfig), generation)
        if self._installed.get(name) != wanted:
            self._installed.pop(name, None)
            async with self._client(name, kubeconfig) as client:
                try:
                    await self._call(agent.install, name, client, obj)
                except Exception as error:
                    log.warning("an agent can't be installed", cluster=name, exc_info=error)
                    return _Condition(INSTALLED, "False", type(error).__name__, str(error))
            self._installed[name] = wanted
        return _Condition(INSTALLED, "True", "Installed", "its agent is installed")

    async def _uninstall(self, name: str, obj: Obj, agent: Agent) -> None:
        """Uninstall the agent.

        Raises:
            NotInstalled: It can't be; the condition says why.
        """
        try:
            async with self._client(name, self._kubeconfig(obj)) as client:
                await self._call(agent.uninstall, name, client, obj)
        except Exception as error:
            reason = type(error).__name__
            if isinstance(error, CannotConnect):
                reason = error.reason
            message = f"it can't be uninstalled: {error}"
            await self._report(obj, _Condition(INSTALLED, "Unknown", reason, message))
            why = f"the agent of cluster {name} can't be uninstalled: {error}"
            raise NotInstalled(why) from error

    async def _call(
        self,
        method: Callable[[Client, Obj], Awaitable[None] | None],
        name: str,
        client: Client,
        obj: Obj,
    ) -> None:
        """Call a method of the agent.

        Raises:
            CallbackTimeout: It hasn't returned in time.
        """
        what = f"{name_of(method)} of cluster {name}"
        await call(method, client, obj, what=what, timeout=self._agent_timeout)

    @contextlib.asynccontextmanager
    async def _client(self, name: str, kubeconfig: bytes) -> AsyncIterator[Client]:
        client, _ = self._opened(name, kubeconfig)
        try:
            yield client
        finally:
            await client.close()

    # -- inside ------------------------------------------------------------------------------------

    def _kubeconfig(self, obj: Obj) -> bytes:
        """Return the kubeconfig of an object's cluster, from the Secret that it names.

        Raises:
            CannotConnect: There is none, or the object may not name that Secret.
        """
        key = _secret_of(obj)
        entry = str(_reference(obj).get("key", ""))
        allowed = self._namespaces
        own = key_of(obj).namespace or self._secrets.namespace
        if not allowed and own:
            allowed = frozenset([own])

        if not key.namespace or key.namespace not in allowed:
            instead = "as no namespaces are listed"
            if allowed:
                instead = f"but only of: {', '.join(sorted(allowed))}"
            why = f"Secrets of namespace {key.namespace!r} are not read for it, {instead}"
            raise CannotConnect(Reason.REFUSED, why)
        secret = self._secrets.get(key)
        if secret is None:
            raise CannotConnect(Reason.KUBECONFIG_MISSING, f"there is no Secret {key}")
        data = (secret.get("data") or {}).get(entry)
        if not data:
            raise CannotConnect(Reason.KEY_MISSING, f"Secret {key} has no key {entry!r}")
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, TypeError, ValueError):
            why = f"key {entry!r} of Secret {key} is no base64"
            raise CannotConnect(Reason.KEY_MISSING, why) from None

    def _users(self, secret: Obj) -> Iterable[Request]:
        """Return the requests of the objects that name a Secret."""
        keys = self._manage.informer(self._resource).indexer.keys(_INDEX, key_of(secret))
        return [Request(self._manage.name, *key) for key in keys]

    async def _report(self, obj: Obj, *conditions: "_Condition") -> Obj:
        """Write conditions, if they have changed, and return the object."""
        after = copy.deepcopy(obj)
        status = after.setdefault("status", {})
        for condition in conditions:
            before = _condition(obj, condition.type)
            since = None
            if before is not None and before.get("status") == condition.status:
                since = before.get("lastTransitionTime")
            current: Obj = condition._asdict()
            current["lastTransitionTime"] = since or written(datetime.now(UTC))

            known: list[Obj] = status.get("conditions") or []
            others = [each for each in known if each.get("type") != condition.type]
            status["conditions"] = [*others, current]
        status["observedGeneration"] = obj["metadata"].get("generation", 0)
        return await write_changes(self._manage, self._resource, obj, after)


@dataclass(slots=True)
class _Spawned:
    """The kubeconfig of a spawned cluster."""

    checksum: str
    #: The credentials of its client; None if they can't be renewed in place.
    credentials: LoginCredentials | None


class _Condition(NamedTuple):
    type: str
    status: str
    reason: str
    message: str


def _condition(obj: Obj, name: str) -> Obj | None:
    conditions: list[Obj] = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == name), None)


def _reason_of(error: BaseException) -> str:
    """Return the reason of a condition: the kind of an error, or that a cluster answers with too
    much, or has it.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CacheTooLarge | ReplyTooLarge):
            return Reason.TOO_LARGE
        cause = cause.__cause__
    return type(error).__name__


def _checksum(kubeconfig: bytes) -> str:
    return hashlib.sha256(kubeconfig).hexdigest()


def _reference(obj: Obj) -> Obj:
    found: Json = obj
    for name in ("spec", "kubeConfig", "secretRef"):
        if not isinstance(found, dict):
            return {}
        found = found.get(name)
    if not isinstance(found, dict):
        return {}
    return found


def _secret_of(obj: Obj) -> Key:
    reference = _reference(obj)
    namespace = str(reference.get("namespace") or key_of(obj).namespace)
    name = str(reference.get("name", ""))
    return Key(namespace, name)
