"""A virtual cluster by its name, from the Secrets of the host, for a command that works without the daemon.

The command decides as the daemon does (:func:`.secret_clusters.chosen`), from the same Secrets: if those of an entry
can't be listed, none is found, as one of them might have the name.
"""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack

from syncer.api.errors import ClusterError, ConfigError, Problem
from syncer.api.marks import Marks
from syncer.api.objects import Obj
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.connection import HeldLogin
from syncer.config import SyncerConfig, VirtualCluster, VirtualClusterSecretsSection
from syncer.config.problems import guess
from syncer.daemon.fleet.secret_clusters import chosen, name_in, outline
from syncer.daemon.start.connecting import SecretCluster, connect_host
from syncer.daemon.unserved import BEYOND
from syncer.multicluster.logins import CannotConnect, Reason
from syncer.multicluster.secret_providers import read_login
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import SECRETS
from syncer.version import VERSION

#: Virtual clusters that a message names.
NAMED = 20


async def secret_cluster(config: SyncerConfig, name: str, *, login: bool = True) -> VirtualCluster:
    """Return the virtual cluster of this name that a Secret names. Without ``login`` its kubeconfig isn't read.

    Raises:
        ConfigError: There is none.
        CannotConnect: Its Secret is refused, or its kubeconfig can't be used, or the Secrets can't be read.
    """
    async with AsyncExitStack() as stack:
        host = connect_host(config, Metrics(version=VERSION), stack)
        mark = Marks(config.marks.prefix).cluster
        found = [await _listed(host, each, mark, name) for each in config.virtual_cluster_secrets]
        taken, refused = chosen(config, config.clusters(), found)
        wanted = next((each for each in taken if each.cluster.name == name), None)
        if wanted is None:
            for entry, secrets in zip(config.virtual_cluster_secrets, found, strict=True):
                for secret in (each["metadata"]["name"] for each in secrets if name_in(each) == name):
                    why = refused.get((entry.namespace, secret)) or refused[entry.namespace, BEYOND]
                    named = f"the Secret {entry.namespace}/{secret} names the virtual cluster {name!r}"
                    raise CannotConnect(Reason.REFUSED, f"{named}, and is refused: {why.message}")
            raise ConfigError(_no_cluster(config, name, [each.cluster.name for each in taken]))
        if not login:
            return wanted.cluster
        try:
            read = await read_login(host, wanted.secret, key=wanted.version[1], environ=os.environ)
        except CannotConnect as error:
            raise CannotConnect(error.reason, f"virtual cluster {name}: {error}") from error
        return SecretCluster.of(wanted.cluster, HeldLogin(read), None)


async def _listed(host: SideClient, entry: VirtualClusterSecretsSection, mark: str, name: str) -> Sequence[Obj]:
    """Return the outlines of the Secrets of an entry.

    Raises:
        CannotConnect: They can't be listed.
    """
    try:
        pages = host.list_pages(SECRETS, namespace=entry.namespace, selector=entry.selector)
        return [outline(mark, codec.decode(raw)) async for page in pages for raw in page.items]
    except ClusterError as error:
        why = (
            f"virtual cluster {name} can't be looked for, as the Secrets in {entry.namespace} can't be listed: {error}"
        )
        raise CannotConnect(Reason.UNREADABLE, why) from error


def _no_cluster(config: SyncerConfig, name: str, of_secrets: Sequence[str]) -> Problem:
    known = [*config.names_listed, *of_secrets]
    there = ", ".join(known[:NAMED]) + (f" and {len(known) - NAMED} more" if len(known) > NAMED else "")
    places = ", ".join(dict.fromkeys(each.namespace for each in config.virtual_cluster_secrets))
    why = f"no virtual cluster is called {name!r}; listed or in Secrets of {places} there are: {there or 'none'}."
    gone = "If its Secret is gone, list it in a configuration of its own, with its kubeconfig and hostNamespace."
    return Problem(why, hint=guess(name, known) or gone)
