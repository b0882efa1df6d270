"""The virtual clusters that Secrets of the host name now, one by its name or all, for commands that
work without the daemon.

They decide as the daemon does (:func:`.secret_clusters.chosen`), from the same Secrets: if
those of an entry can't be listed, none is found, as one of them might have a name first.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from syncer.api.errors import ClusterError, ConfigError, Problem
from syncer.api.marks import Marks
from syncer.api.objects import Obj, Side
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ReplaceableLogin
from syncer.config import SyncerConfig, VirtualCluster, VirtualClusterSecretsSection
from syncer.config.problems import guess
from syncer.daemon.fleet.secret_clusters import (
    RefusedSecrets,
    WantedCluster,
    chosen,
    name_in,
    outline,
)
from syncer.daemon.start.connecting import SecretCluster, connect_host, connected
from syncer.daemon.unserved import BEYOND
from syncer.multicluster.logins import CannotConnect, Reason
from syncer.multicluster.secret_providers import read_login
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import SECRETS
from syncer.translate.messages import MOST_LISTED
from syncer.version import VERSION


async def secret_cluster(config: SyncerConfig, name: str, *, login: bool = True) -> VirtualCluster:
    """Return the virtual cluster of this name that a Secret names.

    Without ``login`` its kubeconfig isn't read.

    Raises:
        ConfigError: There is none.
        CannotConnect: Its Secret is refused, or its kubeconfig can't be used, or the Secrets can't
            be read.
    """
    entries = config.virtual_cluster_secrets
    async with AsyncExitStack() as stack:
        host = connect_host(config, Metrics(version=VERSION), stack)
        mark = Marks(config.marks.prefix).cluster
        try:
            found = [await _listed(host, entry, mark) for entry in entries]
        except CannotConnect as error:
            why = f"virtual cluster {name} can't be looked for, as {error}"
            raise CannotConnect(error.reason, why) from error
        taken, refused = chosen(config, config.clusters(), found)
        wanted = next((each for each in taken if each.cluster.name == name), None)
        if wanted is None:
            _must_not_be_refused(name, entries, found, refused)
            raise ConfigError(_no_cluster(config, name, [each.cluster.name for each in taken]))
        if not login:
            return wanted.cluster

        try:
            return await _with_login(host, wanted)
        except CannotConnect as error:
            raise CannotConnect(error.reason, f"virtual cluster {name}: {error}") from error


async def secret_clusters(
    config: SyncerConfig,
) -> tuple[Sequence[VirtualCluster], Mapping[str, str]]:
    """Return the virtual clusters of all Secrets, once the host answers.

    Return also why others can't be served: by name, or by Secret if that is refused.

    Raises:
        CannotConnect: Secrets can't be listed.
        SyncerError: The host can't be reached.
    """
    mark = Marks(config.marks.prefix).cluster
    async with connected(config, None) as clients:
        host = clients[Side.HOST]
        found = [await _listed(host, entry, mark) for entry in config.virtual_cluster_secrets]
        taken, refused = chosen(config, config.clusters(), found)
        clusters = []
        failed = {}
        for each in taken:
            try:
                clusters.append(await _with_login(host, each))
            except CannotConnect as error:
                failed[each.cluster.name] = f"{error.reason}: {error}"

    for (namespace, secret), why in refused.items():
        named = f"Secrets in {namespace}" if secret == BEYOND else f"Secret {namespace}/{secret}"
        failed[named] = why.message
    return clusters, failed


async def _with_login(host: SideClient, wanted: WantedCluster) -> SecretCluster:
    """Return a virtual cluster with the login in its Secret.

    Raises:
        CannotConnect: The login can't be read, or is refused.
    """
    _, key = wanted.version
    login = await read_login(host, wanted.secret, key=key, environ=os.environ)
    return SecretCluster.of(wanted.cluster, ReplaceableLogin(login), None)


def _must_not_be_refused(
    name: str,
    entries: Sequence[VirtualClusterSecretsSection],
    found: Sequence[Sequence[Obj]],
    refused: RefusedSecrets,
) -> None:
    """Look for a Secret that names a virtual cluster, none of which was taken.

    Raises:
        CannotConnect: There is one, with the reason why it is refused.
    """
    for entry, secrets in zip(entries, found, strict=True):
        for secret in secrets:
            if name_in(secret) != name:
                continue
            secret_name = secret["metadata"]["name"]
            why = refused.get((entry.namespace, secret_name)) or refused[entry.namespace, BEYOND]
            named = f"the Secret {entry.namespace}/{secret_name} names the virtual cluster {name!r}"
            raise CannotConnect(Reason.REFUSED, f"{named}, and is refused: {why.message}")


async def _listed(
    host: SideClient,
    entry: VirtualClusterSecretsSection,
    mark: str,
) -> Sequence[Obj]:
    """Return the outlines of the Secrets of an entry.

    Raises:
        CannotConnect: They can't be listed.
    """
    outlines: list[Obj] = []
    pages = host.list_pages(SECRETS, namespace=entry.namespace, selector=entry.selector)
    try:
        async for page in pages:
            outlines += [outline(mark, codec.decode(raw)) for raw in page.items]
    except ClusterError as error:
        why = f"the Secrets in {entry.namespace} can't be listed: {error}"
        raise CannotConnect(Reason.UNREADABLE, why) from error
    return outlines


def _no_cluster(config: SyncerConfig, name: str, of_secrets: Sequence[str]) -> Problem:
    known = [*config.names_listed, *of_secrets]
    names = ", ".join(known[:MOST_LISTED]) or "none"
    if len(known) > MOST_LISTED:
        names = f"{names} and {len(known) - MOST_LISTED} more"
    namespaces = ", ".join(dict.fromkeys(each.namespace for each in config.virtual_cluster_secrets))
    there_are = f"listed or in Secrets of {namespaces} there are: {names}."
    instead = "list it in a configuration of its own, with its kubeconfig and hostNamespace."
    return Problem(
        f"no virtual cluster is called {name!r}; {there_are}",
        hint=guess(name, known) or f"If its Secret is gone, {instead}",
    )
