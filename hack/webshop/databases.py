"""A service of the host for tenants: the kind Database, and a small simulation of its operator."""

import asyncio
import base64
import contextlib
from dataclasses import dataclass
from pathlib import Path

import yaml

from syncer.api import AlreadyExists, ClusterError, Obj, Resource, is_deleting, key_of, uid_of
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS, SECRETS

CRD: Obj = yaml.safe_load(Path(__file__).with_name("databases.yaml").read_text())
NAME: str = CRD["metadata"]["name"]
DATABASES = Resource("platform.example.org/v1", "Database", "databases")
#: Its entry under ``sync.custom``.
SYNCED: Obj = {
    "references": {"spec.secretName": "Secret"},
    "related": [{"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretName"}}],
}
#: Seconds between rounds, and before a failed request is repeated.
PAUSE = 0.2


@dataclass
class Operator:
    """Creates the Secret with the login for each Database in a namespace, and sets its status."""

    cluster: SideClient
    namespace: str

    async def run(self) -> None:
        """Install the kind, and run until cancelled."""
        with contextlib.suppress(AlreadyExists):  # of an earlier demo on this node
            await self.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        while True:
            with contextlib.suppress(ClusterError):  # not served yet, or gone with the cluster
                await self._watch()
            await asyncio.sleep(PAUSE)

    async def _watch(self) -> None:
        async with self.cluster.watch(
            DATABASES, namespace=self.namespace, resource_version="0"
        ) as events:
            async for batch in events:
                for event in batch:
                    if event.type in ("ADDED", "MODIFIED"):
                        await self._make(codec.decode(event.object))

    async def _make(self, database: Obj) -> None:
        if is_deleting(database) or database.get("status"):
            return
        key = key_of(database)
        name = database["spec"]["secretName"]
        address = f"{key.name}.databases.example.org"
        login = {"user": "orders", "password": "tr0ub4dor-and-3", "address": address}
        owner = {
            "apiVersion": DATABASES.api_version,
            "kind": "Database",
            "name": key.name,
            "uid": uid_of(database),
        }
        secret: Obj = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": key.namespace, "ownerReferences": [owner]},
            "data": {
                part: base64.b64encode(text.encode()).decode() for part, text in login.items()
            },
        }
        with contextlib.suppress(AlreadyExists):
            await self.cluster.create(SECRETS, secret)
        status = {"status": {"phase": "Ready", "address": address}}
        await self.cluster.patch(DATABASES, key, status, subresource="status")


async def served(cluster: SideClient) -> None:
    """Wait until a cluster serves the kind."""
    while True:
        try:
            await cluster.list(DATABASES)
        except ClusterError:
            await asyncio.sleep(PAUSE)
        else:
            return
