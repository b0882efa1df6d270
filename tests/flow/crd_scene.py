"""A daemon that syncs CRDs only, for the flow tests of both directions."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from harness import CLUSTER, HOME, Daemon, Two, between
from sampled import config_model

from syncer.api import Obj
from syncer.engine.controllers.request_status import RequestStatus
from syncer.resources.definitions.public import PublicDefinitionSyncer
from syncer.resources.definitions.tenant import TenantDefinitionSyncer
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import crd

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
NAME = "widgets.example.com"
PUBLIC = {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}}
WEBHOOK = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a"}}}
ON: Obj = {"enabled": True}
NAMED: Obj = {"enabled": True, "names": [NAME]}


def public(name: str = NAME, **parts: Any) -> Obj:
    return merged(crd(name, **parts), PUBLIC)


def configured(from_host: Obj | None, to_host: Obj | None, cluster: str = CLUSTER) -> Any:
    """Return a configuration of the two syncers, as it would stand in the file."""
    section = "customResourceDefinitions"
    sync = {"fromHost": {section: from_host or {}}, "toHost": {section: to_host or {}}}
    model = config_model([PublicDefinitionSyncer, TenantDefinitionSyncer])
    return model.model_validate({"cluster": cluster, "host": {"namespace": HOME}, "sync": sync})


@contextlib.asynccontextmanager
async def daemon(
    two: Two,
    from_host: Obj | None = None,
    to_host: Obj | None = None,
    *,
    user: str = "admin",
    others: Obj | None = None,
) -> AsyncIterator[Daemon]:
    """Yield a daemon that syncs CRDs only; ``others`` are more virtual clusters (by name), with the
    same configuration.
    """
    servers = {CLUSTER: two.virtual, **(others or {})}
    served = [(configured(from_host, to_host, name), server) for name, server in servers.items()]
    async with between(two.host, served, user=user, tenant=user) as running:
        yield running


def copy(two: Two, name: str = NAME) -> Obj | None:
    return two.virtual.get(CRDS, name)


def there(server: ApiServer, name: str = NAME) -> Obj:
    found = server.get(CRDS, name)
    assert found
    return found


def status(running: Daemon, syncer: str = "public-crds") -> RequestStatus | None:
    statuses = running.process.statuses
    return next((statuses.of(request) for request in running.requests(syncer)), None)


def widget(name: str) -> Obj:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}
