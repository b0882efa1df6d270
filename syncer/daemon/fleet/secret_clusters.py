"""Virtual clusters whose kubeconfigs are in Secrets of the host, as `virtualClusterSecrets` lists their namespaces.

Whoever can write such a Secret is not trusted: it leads only to host namespaces that are assigned to its namespace, it
gets nothing of this process (:mod:`syncer.multicluster.logins`), and takes no name and no place that another virtual
cluster has. What is wrong with one concerns it alone, and is shown with the reason (:attr:`.Unserved.secrets`).

Of a Secret only what chooses is cached. Its kubeconfig is read when it is to be used.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from syncer.api.dns_names import ClusterName
from syncer.api.marks import CLUSTER_SECRET_HOME, CLUSTER_SECRET_NAME, Marks
from syncer.api.objects import Key, Obj, labels_of
from syncer.cache.reflector import Reflector
from syncer.clusters.connection import HeldLogin
from syncer.config import SyncerConfig, VirtualCluster, VirtualClusterSecretsSection
from syncer.config.virtual_cluster import place_of
from syncer.daemon.process import Process
from syncer.daemon.start.connecting import SecretCluster
from syncer.daemon.unserved import BEYOND, UNLISTED
from syncer.engine.controllers.pair import Condition
from syncer.multicluster.cluster_informer import ClusterInformer, InformerListener
from syncer.multicluster.logins import CannotConnect, Reason
from syncer.multicluster.secret_providers import read_login
from syncer.observe.logs import get_logger
from syncer.resources.kinds import SECRETS

#: The most characters of what a Secret says that are kept, or shown.
LONGEST = 300
#: Secrets that are read at the same time.
READS = 8
#: The metadata of a Secret that are cached, besides our annotations.
_KEPT = ("namespace", "name", "uid", "resourceVersion", "creationTimestamp")
_name = TypeAdapter(ClusterName)

log = get_logger(__name__)


class _Stream(NamedTuple):
    """Secrets that are watched together; copies among them bear the mark."""

    namespace: str
    selector: str
    mark: str


@dataclass(frozen=True, slots=True)
class WantedCluster:
    """A Secret that is taken: the virtual cluster that it names."""

    secret: Key
    #: The version of the Secret, and the key in it. Another pair may be another kubeconfig.
    version: tuple[str, str]
    cluster: VirtualCluster
    #: The number of its entry in the configuration.
    entry: int


@dataclass(slots=True)
class _Held:
    """What is known of a Secret that is taken."""

    #: The version that was read last, and why that can't be used.
    version: tuple[str, str] | None = None
    error: CannotConnect | None = None
    #: The login in use, and the virtual cluster that has it, as of a configuration.
    login: HeldLogin | None = None
    cluster: SecretCluster | None = None
    config: SyncerConfig | None = None


#: What is wrong, by namespace and Secret.
RefusedSecrets = dict[tuple[str, str], Condition]


def chosen(
    config: SyncerConfig, listed: Sequence[VirtualCluster], found: Sequence[Sequence[Obj]]
) -> tuple[list[WantedCluster], RefusedSecrets]:
    """Return the virtual clusters of Secrets, and why others are refused.

    Each entry of the configuration has a list of Secrets in ``found``. Those of earlier entries come first, then older
    ones, so that any number of processes choose the same. Those that are ``listed`` come before all.
    """
    names = {each.name: "virtualClusters" for each in listed}
    places = {place_of(each.translator): each.name for each in listed}
    taken: list[WantedCluster] = []
    refused: RefusedSecrets = {}
    for number, (entry, secrets) in enumerate(zip(config.virtual_cluster_secrets, found, strict=True)):
        ordered = sorted(secrets, key=_age)
        for secret in ordered[: entry.max_clusters]:
            at = Key(entry.namespace, secret["metadata"]["name"])
            try:
                cluster = _cluster(config, entry, secret)
                _must_be_free(cluster, names, places)
            except CannotConnect as error:
                refused[at.namespace, at.name] = _condition(error)
                continue
            names[cluster.name] = f"the Secret {at}"
            places[place_of(cluster.translator)] = cluster.name
            version = str(secret["metadata"].get("resourceVersion")), entry.key
            taken.append(WantedCluster(at, version, cluster, number))
        if (beyond := len(ordered) - entry.max_clusters) > 0:
            why = f"{beyond} further Secrets, as there are more than {entry.max_clusters} (maxClusters)"
            refused[entry.namespace, BEYOND] = Condition(why, "too many Secrets")
    return taken, refused


def _age(secret: Obj) -> tuple[str, str]:
    metadata = secret["metadata"]
    return str(metadata.get("creationTimestamp") or ""), metadata["name"]


def name_in(secret: Obj) -> str:
    """Return the name that a Secret gives to its virtual cluster, which may be none."""
    metadata = secret["metadata"]
    name: str = (metadata.get("annotations") or {}).get(CLUSTER_SECRET_NAME, metadata["name"])
    return name


def _cluster(config: SyncerConfig, entry: VirtualClusterSecretsSection, secret: Obj) -> VirtualCluster:
    """Return the virtual cluster that a Secret names.

    Raises:
        CannotConnect: It is a copy, or its name or host namespace is not allowed.
    """
    annotations, name = secret["metadata"].get("annotations") or {}, name_in(secret)
    home = annotations.get(CLUSTER_SECRET_HOME, entry.host_namespaces[0])
    if Marks(config.marks.prefix).cluster in labels_of(secret):
        raise CannotConnect(Reason.REFUSED, "it is a copy of a tenant's Secret")
    try:
        _name.validate_python(name)
    except ValidationError as error:
        why = "is no name of a virtual cluster: at most 40 lower-case letters, digits and -"
        raise CannotConnect(Reason.REFUSED, f"{name!r} {why}; annotate it with {CLUSTER_SECRET_NAME}") from error
    if home not in entry.host_namespaces:
        raise CannotConnect(Reason.REFUSED, f"the host namespace {home!r} is not assigned to {entry.namespace}")
    return config.cluster_of(entry, name, home)


def _must_be_free(cluster: VirtualCluster, names: Mapping[str, str], places: Mapping[Key, str]) -> None:
    """Compare a virtual cluster with those that are taken already.

    Raises:
        CannotConnect: Another has its name, or puts its copies at the same places.
    """
    if owner := names.get(cluster.name):
        raise CannotConnect(Reason.REFUSED, f"the name {cluster.name} is taken, by {owner}")
    if other := places.get(place_of(cluster.translator)):
        why = f"its copies would be at the same places as those of {other}"
        raise CannotConnect(Reason.REFUSED, f"{why}: names.translator must have the cluster's name in it")


def _condition(error: CannotConnect, *, more: str = "") -> Condition:
    text = f"{error.reason}: {error}"
    return Condition(f"{text if len(text) <= LONGEST else f'{text[:LONGEST]}…'}{more}", error.reason.value)


class SecretClusters:
    """Finds the virtual clusters of Secrets, and calls ``changed`` whenever they may be others."""

    def __init__(self, process: Process, changed: Callable[[], None]) -> None:
        self._process, self._changed = process, changed
        self._caches: dict[_Stream, ClusterInformer] = {}
        self._reflecting: dict[_Stream, asyncio.Task[None]] = {}
        self._held: dict[Key, _Held] = {}

    async def close(self) -> None:
        """End all watches."""
        for task in self._reflecting.values():
            task.cancel()
        await asyncio.gather(*self._reflecting.values(), return_exceptions=True)

    def _follow(self, config: SyncerConfig) -> Sequence[ClusterInformer]:
        """Watch the Secrets of each entry of a configuration, in one stream for each namespace and selector. Return
        the caches of the entries.
        """
        mark = Marks(config.marks.prefix).cluster
        streams = [_Stream(each.namespace, each.selector, mark) for each in config.virtual_cluster_secrets]
        wanted = set(streams)
        for stream in self._caches.keys() - wanted:
            del self._caches[stream]
            self._reflecting.pop(stream).cancel()
        for stream in wanted - self._caches.keys():
            namespace, selector, _ = stream
            cache = self._caches[stream] = ClusterInformer(
                "the host",
                SECRETS,
                namespace=namespace,
                selector=selector,
                transform=partial(outline, mark),
                clock=self._process.clock,
                ordered=lambda: self._process.host_discovery.orders_versions,
            )
            cache.add_handler(lambda *_: self._changed(), owner="virtualClusterSecrets")
            cache.when_synced(self._changed)
            listener = InformerListener(self._changed, lambda *_: self._changed())
            reflector = Reflector(
                self._process.host, cache, listener, namespace=namespace, selector=selector, rng=self._process.rng
            )
            self._reflecting[stream] = asyncio.create_task(reflector.run())
        return [self._caches[stream] for stream in streams]

    async def decided(
        self, config: SyncerConfig, listed: Sequence[VirtualCluster]
    ) -> tuple[Sequence[VirtualCluster], bool]:
        """Return the virtual clusters of Secrets, and whether all that are taken could be read."""
        entries, caches = config.virtual_cluster_secrets, self._follow(config)
        taken, refused = chosen(config, listed, [cache.objects() for cache in caches])
        self._held = {each.secret: self._held.get(each.secret) or _Held() for each in taken}
        turns = asyncio.Semaphore(READS)
        await asyncio.gather(*(self._read(each, turns) for each in taken))
        clusters, is_complete = list[VirtualCluster](), True
        common = [config.cluster_of(each, "any", each.host_namespaces[0]).options for each in entries]
        for each in taken:
            held = self._held[each.secret]
            if held.error is not None:
                is_complete = is_complete and held.error.reason is not Reason.UNREADABLE
                former = "; its former login stays in use" if held.login else ""
                refused[each.secret.namespace, each.secret.name] = _condition(held.error, more=former)
            if held.login is not None:
                clusters.append(_kept(held, held.login, each, config, common[each.entry]))
        for entry, cache in zip(entries, caches, strict=True):
            if cache.error is not None:
                why = Condition(f"its Secrets can't be listed: {cache.error}", type(cache.error).__name__)
                refused[entry.namespace, UNLISTED] = why
        self._show(refused)
        return clusters, is_complete

    async def _read(self, wanted: WantedCluster, turns: asyncio.Semaphore) -> None:
        """Read the login of a Secret if that has changed, and use it."""
        held = self._held[wanted.secret]
        if held.version == wanted.version:
            return
        try:
            async with turns:
                login = await read_login(self._process.host, wanted.secret, key=wanted.version[1], environ=os.environ)
        except CannotConnect as error:
            held.error = error
            held.version = None if error.reason is Reason.UNREADABLE else wanted.version
            return
        held.version, held.error = wanted.version, None
        if held.login is None:
            held.login = HeldLogin(login)
        else:
            held.login.put(login)

    def _show(self, refused: RefusedSecrets) -> None:
        """Show what is refused, and log what is so newly."""
        before = self._process.unserved.refuse(refused)
        for place, why in refused.items():
            if before.get(place) != why:
                namespace, secret = place
                log.warning(
                    "a Secret with a virtual cluster is refused", namespace=namespace, secret=secret, reason=why.message
                )


def _kept(held: _Held, login: HeldLogin, wanted: WantedCluster, config: SyncerConfig, common: object) -> SecretCluster:
    """Return the virtual cluster of a Secret: the same object while nothing of it has changed."""
    known, now = held.cluster, wanted.cluster
    if (
        known is None
        or held.config is not config
        or (known.name, known.host_namespace) != (now.name, now.host_namespace)
    ):
        held.cluster, held.config = SecretCluster.of(now, login, common), config
        return held.cluster
    return known


def outline(mark: str, secret: Obj) -> Obj:
    """Return what is kept of a Secret to choose by; ``mark`` is the label of copies."""
    metadata = secret["metadata"]
    given = metadata.get("annotations") or {}
    kept = {name: metadata[name] for name in _KEPT if name in metadata}
    annotations = {
        name: str(given[name])[:LONGEST] for name in (CLUSTER_SECRET_NAME, CLUSTER_SECRET_HOME) if name in given
    }
    labels = {mark: ""} if mark in labels_of(secret) else {}
    return {"metadata": {**kept, "annotations": annotations, "labels": labels}}
