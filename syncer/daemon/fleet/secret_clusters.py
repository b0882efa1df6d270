"""Virtual clusters whose kubeconfigs are in Secrets of the host, as `virtualClusterSecrets` lists
their namespaces.

Whoever can write such a Secret is not trusted: the Secret leads only to host namespaces that are
assigned to its own namespace, gets nothing of this process (:mod:`syncer.multicluster.logins`), and
takes neither a name nor the copies of another virtual cluster. What is wrong with one Secret
concerns no other, and is shown with the reason (:attr:`.Unserved.secrets`).

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
from syncer.clusters.connection import ReplaceableLogin
from syncer.config import SyncerConfig, VirtualCluster, VirtualClusterSecretsSection
from syncer.config.virtual_cluster import name_problem, probe_key
from syncer.daemon.process import Process
from syncer.daemon.start.connecting import SecretCluster
from syncer.daemon.unserved import BEYOND, UNLISTED
from syncer.engine.controllers.pair import Condition
from syncer.multicluster.cluster_informer import ClusterInformer, InformerListener
from syncer.multicluster.logins import CannotConnect, Reason
from syncer.multicluster.secret_providers import read_login
from syncer.observe.logs import get_logger
from syncer.resources.kinds import SECRETS

#: The most characters of a text in a Secret that are kept, or shown.
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
class _KnownSecret:
    """The state of a Secret that is taken."""

    #: The version that was read last, and why that can't be used.
    version: tuple[str, str] | None = None
    error: CannotConnect | None = None
    #: The login in use, and the virtual cluster that has it, as of a configuration.
    login: ReplaceableLogin | None = None
    cluster: SecretCluster | None = None
    config: SyncerConfig | None = None


#: The reasons why Secrets are refused, by namespace and name.
RefusedSecrets = dict[tuple[str, str], Condition]


def chosen(
    config: SyncerConfig, listed: Sequence[VirtualCluster], found: Sequence[Sequence[Obj]]
) -> tuple[list[WantedCluster], RefusedSecrets]:
    """Return the virtual clusters of Secrets, and why others are refused.

    Each entry of the configuration has a list of Secrets in ``found``. Those of earlier entries
    come first, then older ones, so that any number of processes choose the same. Those that are
    ``listed`` come before all.
    """
    owners = {each.name: "virtualClusters" for each in listed}
    copies = {probe_key(each.translator): each.name for each in listed}
    taken: list[WantedCluster] = []
    refused: RefusedSecrets = {}
    entries = config.virtual_cluster_secrets
    for number, (entry, secrets) in enumerate(zip(entries, found, strict=True)):
        ordered = sorted(secrets, key=_age)
        for secret in ordered[: entry.max_clusters]:
            metadata = secret["metadata"]
            key = Key(entry.namespace, metadata["name"])
            try:
                cluster = _cluster(config, entry, secret)
                _must_be_free(cluster, owners, copies)
            except CannotConnect as error:
                refused[key.namespace, key.name] = _condition(error)
                continue

            owners[cluster.name] = f"the Secret {key}"
            copies[probe_key(cluster.translator)] = cluster.name
            version = str(metadata.get("resourceVersion")), entry.key
            taken.append(WantedCluster(key, version, cluster, number))

        beyond = len(ordered) - entry.max_clusters
        if beyond > 0:
            limit = f"there are more than {entry.max_clusters} (maxClusters)"
            why = f"{beyond} further Secrets, as {limit}"
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


def _cluster(
    config: SyncerConfig,
    entry: VirtualClusterSecretsSection,
    secret: Obj,
) -> VirtualCluster:
    """Return the virtual cluster that a Secret names.

    Raises:
        CannotConnect: It is a copy, or its name or host namespace is not allowed.
    """
    annotations = secret["metadata"].get("annotations") or {}
    name = name_in(secret)
    home = annotations.get(CLUSTER_SECRET_HOME, entry.host_namespaces[0])
    if Marks(config.marks.prefix).cluster in labels_of(secret):
        raise CannotConnect(Reason.REFUSED, "it is a copy of a tenant's Secret")
    try:
        _name.validate_python(name)
    except ValidationError as error:
        form = "at most 40 lower-case letters, digits and -"
        hint = f"annotate it with {CLUSTER_SECRET_NAME}"
        why = f"{name!r} is no name of a virtual cluster: {form}; {hint}"
        raise CannotConnect(Reason.REFUSED, why) from error
    if home not in entry.host_namespaces:
        why = f"the host namespace {home!r} is not assigned to {entry.namespace}"
        raise CannotConnect(Reason.REFUSED, why)
    cluster = config.cluster_of(entry, name, home)
    if problem := name_problem(cluster.translator, name):
        raise CannotConnect(Reason.REFUSED, problem)
    return cluster


def _must_be_free(
    cluster: VirtualCluster,
    owners: Mapping[str, str],
    copies: Mapping[Key, str],
) -> None:
    """Compare a virtual cluster with those that are taken already.

    ``owners`` says where each name comes from, and ``copies`` which virtual cluster has its copies
    at a key.

    Raises:
        CannotConnect: Another has its name, or puts its copies at the same places.
    """
    if owner := owners.get(cluster.name):
        raise CannotConnect(Reason.REFUSED, f"the name {cluster.name} is taken, by {owner}")
    if other := copies.get(probe_key(cluster.translator)):
        why = f"its copies would be at the same places as those of {other}"
        hint = "names.translator must have the cluster's name in it"
        raise CannotConnect(Reason.REFUSED, f"{why}: {hint}")


def _condition(error: CannotConnect, *, more: str = "") -> Condition:
    text = f"{error.reason}: {error}"
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}…"
    return Condition(f"{text}{more}", error.reason.value)


class SecretClusters:
    """Finds the virtual clusters of Secrets, and calls ``changed`` whenever they may be others."""

    def __init__(self, process: Process, changed: Callable[[], None]) -> None:
        self._process = process
        self._changed = changed
        self._caches: dict[_Stream, ClusterInformer] = {}
        self._reflecting: dict[_Stream, asyncio.Task[None]] = {}
        #: The cancelled tasks of earlier streams, until they have ended.
        self._ending: set[asyncio.Task[None]] = set()
        self._known: dict[Key, _KnownSecret] = {}

    async def close(self) -> None:
        """End all watches, and wait until they have ended."""
        for task in self._reflecting.values():
            task.cancel()
        tasks = (*self._reflecting.values(), *self._ending)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _follow(self, config: SyncerConfig) -> Sequence[ClusterInformer]:
        """Watch the Secrets of each entry of a configuration, in one stream for each namespace and
        selector, and end the streams of no entry. Return the caches of the entries.
        """
        mark = Marks(config.marks.prefix).cluster
        entries = config.virtual_cluster_secrets
        streams = [_Stream(entry.namespace, entry.selector, mark) for entry in entries]
        wanted = set(streams)

        for stream in self._caches.keys() - wanted:
            del self._caches[stream]
            task = self._reflecting.pop(stream)
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        for stream in wanted - self._caches.keys():
            self._caches[stream] = self._watched(stream)
        return [self._caches[stream] for stream in streams]

    def _watched(self, stream: _Stream) -> ClusterInformer:
        """Return a new cache of a stream, which a task fills."""
        process = self._process

        def changed(*_: object) -> None:
            self._changed()

        def ordered() -> bool:
            return process.host_discovery.orders_versions

        cache = ClusterInformer(
            "the host",
            SECRETS,
            namespace=stream.namespace,
            selector=stream.selector,
            transform=partial(outline, stream.mark),
            clock=process.clock,
            ordered=ordered,
        )
        cache.add_handler(changed, owner="virtualClusterSecrets")
        cache.when_synced(changed)

        reflector = Reflector(
            process.host,
            cache,
            InformerListener(changed, changed),
            namespace=stream.namespace,
            selector=stream.selector,
            rng=process.rng,
        )
        self._reflecting[stream] = asyncio.create_task(reflector.run())
        return cache

    async def decided(
        self, config: SyncerConfig, listed: Sequence[VirtualCluster]
    ) -> tuple[Sequence[VirtualCluster], bool]:
        """Return the virtual clusters of Secrets, and whether all that are taken could be read."""
        entries = config.virtual_cluster_secrets
        caches = self._follow(config)
        taken, refused = chosen(config, listed, [cache.objects() for cache in caches])
        former = self._known
        self._known = {each.secret: former.get(each.secret) or _KnownSecret() for each in taken}
        turns = asyncio.Semaphore(READS)
        await asyncio.gather(*(self._read(each, turns) for each in taken))

        clusters: list[VirtualCluster] = []
        is_complete = True
        any_of_entry = [config.cluster_of(each, "any", each.host_namespaces[0]) for each in entries]
        common = [each.options for each in any_of_entry]
        for each in taken:
            known = self._known[each.secret]
            if known.error is not None:
                if known.error.reason is Reason.UNREADABLE:
                    is_complete = False
                more = "; its former login stays in use" if known.login else ""
                condition = _condition(known.error, more=more)
                refused[each.secret.namespace, each.secret.name] = condition
            if known.login is not None:
                clusters.append(_cluster_of(known, known.login, each, config, common[each.entry]))

        for entry, cache in zip(entries, caches, strict=True):
            if cache.error is not None:
                why = Condition(
                    f"its Secrets can't be listed: {cache.error}",
                    type(cache.error).__name__,
                )
                refused[entry.namespace, UNLISTED] = why
        self._show(refused)
        return clusters, is_complete

    async def _read(self, wanted: WantedCluster, turns: asyncio.Semaphore) -> None:
        """Read the login of a Secret if that has changed, and use it."""
        known = self._known[wanted.secret]
        if known.version == wanted.version:
            return

        host = self._process.host
        _, key = wanted.version
        try:
            async with turns:
                login = await read_login(host, wanted.secret, key=key, environ=os.environ)
        except CannotConnect as error:
            known.error = error
            known.version = None if error.reason is Reason.UNREADABLE else wanted.version
            return

        known.version = wanted.version
        known.error = None
        if known.login is None:
            known.login = ReplaceableLogin(login)
        else:
            known.login.put(login)

    def _show(self, refused: RefusedSecrets) -> None:
        """Show which Secrets are refused, and log those with a new reason."""
        before = self._process.unserved.refuse(refused)
        for (namespace, secret), why in refused.items():
            if before.get((namespace, secret)) != why:
                about = {"namespace": namespace, "secret": secret, "reason": why.message}
                log.warning("a Secret with a virtual cluster is refused", **about)


def _cluster_of(
    known: _KnownSecret,
    login: ReplaceableLogin,
    wanted: WantedCluster,
    config: SyncerConfig,
    common: object,
) -> SecretCluster:
    """Return the virtual cluster of a Secret: the same object while nothing of it has changed."""
    former = known.cluster
    cluster = wanted.cluster
    if former is not None and known.config is config:
        has_same_name = former.name == cluster.name
        if has_same_name and former.host_namespace == cluster.host_namespace:
            return former

    known.cluster = SecretCluster.of(cluster, login, common)
    known.config = config
    return known.cluster


def outline(mark: str, secret: Obj) -> Obj:
    """Return the parts of a Secret that are kept to choose by; ``mark`` is the label of copies."""
    metadata = secret["metadata"]
    kept = {name: metadata[name] for name in _KEPT if name in metadata}

    given = metadata.get("annotations") or {}
    annotations = {}
    for name in (CLUSTER_SECRET_NAME, CLUSTER_SECRET_HOME):
        if name in given:
            annotations[name] = str(given[name])[:LONGEST]

    labels = {mark: ""} if mark in labels_of(secret) else {}
    return {"metadata": {**kept, "annotations": annotations, "labels": labels}}
