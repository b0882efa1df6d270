"""Clusters whose kubeconfigs are in Secrets of a management cluster.

Whoever can write a Secret chooses an address that this process connects to, and what it reads
there. So Secrets are read from listed namespaces alone, each with the host namespaces that its
clusters may lead to, and their kubeconfigs are refused what would give the writer anything of this
process (:mod:`syncer.multicluster.logins`).
"""

import asyncio
import base64
import binascii
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Key, Obj, Resource, labels_of
from syncer.clusters.client import Client
from syncer.clusters.codec import DecodeError
from syncer.clusters.login import Login
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.multicluster.kinds import SECRETS
from syncer.multicluster.logins import CannotConnect, Reason, parsed
from syncer.multicluster.providers import Fleet, ProvidedCluster
from syncer.observe.logs import get_logger

#: The resource of Cluster API whose objects are clusters, in any version.
_CLUSTERS = "clusters.cluster.x-k8s.io"
#: Most seconds between two looks for that resource, which comes with Cluster API.
LONGEST_LOOK = 30.0

log = get_logger(__name__)
#: The label of the Secrets of a cluster of Cluster API.
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
#: The end of the name of the one with its kubeconfig.
_SUFFIX = "-kubeconfig"
#: The label of kubeconfig Secrets of multicluster-runtime.
KUBECONFIG_LABEL = "sigs.k8s.io/multicluster-runtime-kubeconfig=true"
#: The key of the kubeconfig in these Secrets.
KUBECONFIG_KEY = "kubeconfig"


class _SecretReader(ABC):
    """Reads kubeconfigs from Secrets of listed namespaces."""

    def __init__(
        self,
        management: Cluster,
        namespaces: Mapping[str, Collection[str]],
        name: str,
        key: str,
        environ: Mapping[str, str] | None,
    ) -> None:
        self.name = name
        self.management = management
        self.key = key
        self._namespaces = {each: frozenset(hosts) for each, hosts in namespaces.items()}
        self._environ = os.environ if environ is None else environ
        self._fleet: Fleet | None = None

    async def run(self, fleet: Fleet) -> None:
        """Tell the fleet of all changes; the management cluster must run."""
        self._fleet = fleet
        owner = f"provider {self.name}"
        watched = [(informer, self._handler(kind)) for informer, kind in self._informers()]
        for informer, handler in watched:
            informer.add_handler(handler, owner=owner)

        try:
            for informer, handler in watched:
                for key in list(informer.keys()):
                    handler(key, {})
            await asyncio.Event().wait()
        finally:
            for informer, _ in watched:
                informer.forget(owner)
            self._fleet = None

    @abstractmethod
    def _informers(self) -> "Iterator[tuple[ClusterInformer, str]]":
        """Yield the caches to follow, each with the kind of its objects."""

    def _handler(self, kind: str) -> Callable[[Key, Obj], None]:
        def changed(key: Key, _: Obj) -> None:
            cluster = self._cluster_of(kind, key)
            if cluster is None or self._fleet is None:
                return
            name = f"{cluster.namespace}/{cluster.name}"
            member = self._member(cluster)
            if member is None:
                self._fleet.remove(name)
            else:
                self._fleet.put(name, member)

        return changed

    @abstractmethod
    def _cluster_of(self, kind: str, key: Key) -> Key | None:
        """Return the key of the cluster that a change of an object concerns; None if of none."""

    @abstractmethod
    def _member(self, cluster: Key) -> ProvidedCluster | None:
        """Return the cluster of a key; None if there is none."""

    def _reader(self, secret: Key) -> Callable[[], Awaitable[Login]]:
        """Return a function that reads a Secret live."""

        async def read() -> Login:
            client = self.management.client
            return await read_login(client, secret, key=self.key, environ=self._environ)

        return read


async def read_login(client: Client, secret: Key, *, key: str, environ: Mapping[str, str]) -> Login:
    """Return the login of the kubeconfig in a Secret. Its other keys are the files beside it.

    Raises:
        CannotConnect: There is none, or it is refused.
    """
    source = f"Secret {secret} of {client.name}"
    try:
        found = await client.get(SECRETS, secret)
    except NotFound as error:
        raise CannotConnect(Reason.KUBECONFIG_MISSING, f"there is no {source}") from error
    except (ClusterError, DecodeError) as error:
        raise CannotConnect(Reason.UNREADABLE, f"{source} can't be read: {error}") from error

    data = found.get("data") or {}
    if not data.get(key):
        raise CannotConnect(Reason.KEY_MISSING, f"{source} has no key {key}")
    try:
        files = {name: base64.b64decode(content, validate=True) for name, content in data.items()}
    except (binascii.Error, TypeError, ValueError) as error:
        raise CannotConnect(Reason.UNPARSABLE, f"{source}: {key} is not base64") from error
    return parsed(files[key], source=source, environ=environ, files=files)


class SecretsProvider(_SecretReader):
    """A cluster for each Secret with a label, called ``namespace/name``; by default those of
    multicluster-runtime.

    ``namespaces`` maps each namespace whose Secrets are read to the host namespaces that their
    clusters may lead to.
    """

    def __init__(
        self,
        management: Cluster,
        namespaces: Mapping[str, Collection[str]],
        *,
        selector: str = KUBECONFIG_LABEL,
        key: str = KUBECONFIG_KEY,
        name: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(management, namespaces, name, key, environ)
        self._selector = selector
        self._caches: dict[str, ClusterInformer] = {}

    def _informers(self) -> Iterator[tuple[ClusterInformer, str]]:
        for namespace in self._namespaces:
            cache = self.management.informer(SECRETS, namespace=namespace, selector=self._selector)
            self._caches[namespace] = cache
            yield cache, "secret"

    def _cluster_of(self, kind: str, key: Key) -> Key | None:
        return key

    def _member(self, cluster: Key) -> ProvidedCluster | None:
        secret = self._caches[cluster.namespace].get(cluster)
        if secret is None:
            return None
        return ProvidedCluster(
            read=self._reader(cluster),
            version=secret.get("data"),  # with the files beside the kubeconfig
            labels=labels_of(secret),
            namespaces=self._namespaces[cluster.namespace],
        )


class ClusterApiProvider(_SecretReader):
    """The Clusters of Cluster API, called ``namespace/name``, whose kubeconfigs are in
    ``<name>-kubeconfig``.

    A cluster whose infrastructure isn't provisioned yet is not connected to. ``namespaces`` maps
    each namespace whose clusters are read to the host namespaces that they may lead to. Without
    ``clusters`` their resource is that of the version that the management cluster prefers, and is
    awaited until Cluster API is installed.
    """

    def __init__(
        self,
        management: Cluster,
        namespaces: Mapping[str, Collection[str]],
        *,
        clusters: Resource | None = None,
        name: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(management, namespaces, name, "value", environ)
        self._clusters = clusters
        self._caches: dict[str, tuple[ClusterInformer, ClusterInformer]] = {}

    async def run(self, fleet: Fleet) -> None:
        """Report all changes to the fleet; the management cluster must run."""
        if self._clusters is None:
            retry = retry_if_exception_type((ClusterError, DecodeError))
            wait = wait_random_exponential(multiplier=1.0, max=LONGEST_LOOK)
            attempts = AsyncRetrying(retry=retry, wait=wait, before_sleep=self._not_served)
            self._clusters = await attempts(self.management.resource, _CLUSTERS)
        await super().run(fleet)

    def _not_served(self, attempt: RetryCallState) -> None:
        if attempt.attempt_number == 1 and attempt.outcome is not None:
            error = str(attempt.outcome.exception())
            cluster = self.management.name
            log.warning("can't find Cluster API, will try again", cluster=cluster, error=error)

    def _informers(self) -> Iterator[tuple[ClusterInformer, str]]:
        assert self._clusters is not None
        for namespace in self._namespaces:
            clusters = self.management.informer(self._clusters, namespace=namespace)
            secrets = self.management.informer(SECRETS, namespace=namespace, selector=CLUSTER_NAME)
            self._caches[namespace] = (clusters, secrets)
            yield clusters, "cluster"
            yield secrets, "secret"

    def _cluster_of(self, kind: str, key: Key) -> Key | None:
        if kind == "cluster":
            return key
        if key.name.endswith(_SUFFIX):
            return Key(key.namespace, key.name.removesuffix(_SUFFIX))
        return None

    def _member(self, cluster: Key) -> ProvidedCluster | None:
        clusters, secrets = self._caches[cluster.namespace]
        found = clusters.get(cluster)
        if found is None:
            return None
        secret_key = Key(cluster.namespace, f"{cluster.name}{_SUFFIX}")
        secret = secrets.get(secret_key)
        version = None
        if secret is not None:
            version = secret.get("data")  # with the files beside the kubeconfig
        return ProvidedCluster(
            read=self._reader(secret_key),
            version=version,
            labels=labels_of(found),
            namespaces=self._namespaces[cluster.namespace],
            ready=_is_provisioned(found),
        )


def _is_provisioned(cluster: Obj) -> bool:
    """Return True if a cluster has its infrastructure."""
    status = cluster.get("status") or {}
    if status.get("infrastructureReady"):
        return True
    initialization = status.get("initialization") or {}  # since v1beta2
    return bool(initialization.get("infrastructureProvisioned"))
