"""A daemon with only the rights that its configuration needs, for tests of ownership and host deletion."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from harness import CLUSTER, HOME, NAMESPACE, Daemon, Two, between, built_in, crd, namespace
from sampled import config_model
from shop_scene import the_copy, the_original

from syncer.api import Obj, Side
from syncer.config import SyncerConfig
from syncer.rights.rbac import Subject, manifests, needed
from syncer.testing import ApiServer
from syncer.testing.merge import merged

USER = "daemon"
WIDGETS = "widgets.example.org"


class Guarded(Two):
    """Two API servers that ask for rights."""

    def __init__(self) -> None:
        self.virtual, self.host = ApiServer(seed="virtual", rbac=True), ApiServer(seed="host", rbac=True)
        self.host.put(namespace(HOME))
        self.virtual.put(namespace(NAMESPACE))
        for server in (self.virtual, self.host):
            server.put(crd("widgets"))


def configured(sync: Mapping[str, Any], *syncers: str) -> SyncerConfig:
    """Return a configuration of some built-in syncers with these sections."""
    model = config_model(built_in(*syncers))
    return model.model_validate({"cluster": CLUSTER, "host": {"namespace": HOME}, "sync": sync})


def grant(two: Guarded, config: SyncerConfig) -> None:
    """Give the daemon's user what ``syncer rbac`` prints, and no more."""
    settings = config.cluster().settings()
    roles = manifests(
        needed(config.cluster().all_syncers(), settings=settings),
        cluster=CLUSTER,
        home=HOME,
        host_namespaces=settings.names.host_namespaces(),
        subjects={side: Subject(USER) for side in Side},
    )
    for side, server in ((Side.VIRTUAL, two.virtual), (Side.HOST, two.host)):
        for obj in roles[side]:
            server.put(obj)


@contextlib.asynccontextmanager
async def running(two: Guarded, config: SyncerConfig) -> AsyncIterator[Daemon]:
    """Yield a daemon with its rights."""
    grant(two, config)
    async with between(two.host, [(config, two.virtual)], user=USER, tenant=USER) as daemon:
        yield daemon


def rights(user: str, *resources: str, verbs: Iterable[str] = ("*",), name: str = "r") -> list[Obj]:
    """Return a Role in the host namespace for core resources, and its binding to a user."""
    rbac = "rbac.authorization.k8s.io"
    head = {"apiVersion": f"{rbac}/v1", "metadata": {"name": name, "namespace": HOME}}
    rules = [{"apiGroups": [""], "resources": list(resources), "verbs": list(verbs)}]
    reference = {"apiGroup": rbac, "kind": "Role", "name": name}
    subjects = [{"apiGroup": rbac, "kind": "User", "name": user}]
    return [
        {**head, "kind": "Role", "rules": rules},
        {**head, "kind": "RoleBinding", "roleRef": reference, "subjects": subjects},
    ]


def on(two: Two, side: str, plural: str, name: str = "x") -> Obj:
    """Return an object of the shop, or its copy, as it is."""
    return the_original(two, plural, name) if side == "virtual" else the_copy(two, plural, name)


def edit(two: Two, side: str, plural: str, patch: Mapping[str, Any], name: str = "x") -> None:
    """A user changes an object of the shop, or its copy."""
    server = two.virtual if side == "virtual" else two.host
    server.put(merged(on(two, side, plural, name), patch))


def events(two: Two, reason: str) -> list[Obj]:
    """Return the warnings of this reason in the virtual cluster."""
    return [one for one in two.virtual.objects("events") if one.get("reason") == reason]
