"""Assemble the server from its parts, and create the initial objects."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kube_envtest.apiserver.admission import Plugins
from kube_envtest.apiserver.authority import Rbac, denial
from kube_envtest.apiserver.bootstrap import furnish
from kube_envtest.apiserver.clock import Clock
from kube_envtest.apiserver.controllers import Controllers
from kube_envtest.apiserver.crds import CRDS, Definitions
from kube_envtest.apiserver.deletion import DeleteOptions, Deleter
from kube_envtest.apiserver.discovery import Discovery
from kube_envtest.apiserver.errors import ApiError
from kube_envtest.apiserver.garbage import Garbage
from kube_envtest.apiserver.internal import Internal
from kube_envtest.apiserver.namespaces import Namespaces
from kube_envtest.apiserver.objects import Objects
from kube_envtest.apiserver.pods import Pods
from kube_envtest.apiserver.protection import Protection
from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.reads import Reader
from kube_envtest.apiserver.resources import Registry, ResourceType
from kube_envtest.apiserver.rest import Handler, Rest
from kube_envtest.apiserver.reviews import Reviews
from kube_envtest.apiserver.scale import Scaler
from kube_envtest.apiserver.services import SERVICES, Allocator
from kube_envtest.apiserver.storage import Snapshot, Storage
from kube_envtest.apiserver.strategies import Strategies
from kube_envtest.apiserver.tokens import Tokens
from kube_envtest.apiserver.writes import Writer

Obj = dict[str, Any]


@dataclass(slots=True)
class Parts:
    """The parts of the server."""

    storage: Storage
    registry: Registry
    rest: Rest
    controllers: Controllers
    tokens: Tokens
    internal: Internal
    deleter: Deleter
    authority: Rbac
    allocator: Allocator

    def check_definitions(self, snapshot: Snapshot) -> None:
        """Check that a snapshot has the CustomResourceDefinitions that are served.

        Raises:
            ValueError: It has others.
        """
        now, then = (tables.get(CRDS.table_name, {}) for tables in (self.storage.snapshot().tables, snapshot.tables))
        if {key: entry.revision for key, entry in now.items()} != {key: entry.revision for key, entry in then.items()}:
            raise ValueError("CustomResourceDefinitions have changed since the snapshot: take it after the last change")

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot."""
        self.storage.restore(snapshot)
        self.allocator.restore(entry.obj for entry in self.storage.scan(SERVICES.table_name))

    def impersonate(self, user: User, wanted: User) -> User:
        """Return the user that ``user`` may act as.

        Raises:
            ApiError: Forbidden.
        """
        attributes = {"verb": "impersonate", "group": "", "resource": "users", "subresource": "", "namespace": ""}
        attributes["name"] = wanted.name
        if not self.authority.allowed(user, attributes):
            why = denial(user, attributes)
            message = f'users "{wanted.name}" is forbidden: {why}'
            raise ApiError(403, "Forbidden", message, {"name": wanted.name, "kind": "users"})
        return wanted

    def remove(self, rt: ResourceType, key: str, now: float) -> None:
        """Delete an object without grace period; do nothing if there is none."""
        entry = self.storage.get(rt.table_name, key)
        if entry is not None:
            self.deleter.delete(rt, entry, DeleteOptions(grace=0, propagation="Background", now=now))


def assemble(
    users: Mapping[str, User],
    chance: Random,
    clock: Clock,
    *,
    rbac: bool,
    controllers: bool,
    history: int,
    service_range: str,
) -> Parts:
    """Return a server with its initial objects."""
    storage = Storage(history=history)
    registry = Registry()
    authority = Rbac(storage, enabled=rbac)
    tokens = Tokens(storage, users, chance)
    plugins = Plugins(storage, chance, service_accounts=controllers)
    allocator = Allocator(service_range, Random(chance.random()))
    objects = Objects(storage, Strategies(allocator), plugins, chance)
    deleter = Deleter(storage, objects)
    reader = Reader(storage, chance)
    writer = Writer(storage, objects, deleter, reader, authority.permit)
    internal = Internal(storage, registry, objects, clock)
    reactions = Controllers(storage)
    reactions.add(Definitions(storage, registry, objects, deleter, clock))
    reactions.add(Namespaces(storage, registry, objects, deleter, internal, clock, furnish=controllers))
    if controllers:
        reactions.add(Protection(storage, registry, objects))
        reactions.add(Garbage(storage, registry, objects, deleter, clock))
    handlers = _handlers(Pods(storage, objects, deleter, reader), Scaler(objects), tokens, Reviews(authority, tokens))
    handlers["finalize:update"] = writer.update
    rest = Rest(registry, reader, writer, handlers, authority, Discovery(registry).answer)
    parts = Parts(storage, registry, rest, reactions, tokens, internal, deleter, authority, allocator)
    furnish(registry, internal, rbac=rbac, service_range=service_range)
    reactions.run()
    return parts


def _handlers(pods: Pods, scaler: Scaler, tokens: Tokens, reviews: Reviews) -> dict[str, Handler]:
    """Return handlers by subresource and verb, or by resource and verb."""
    handlers: dict[str, Handler] = {
        "binding:create": pods.bind,
        "eviction:create": pods.evict,
        "token:create": tokens.request,
        "scale:get": scaler.get,
        "scale:update": scaler.change,
        "scale:patch": scaler.change,
        "selfsubjectaccessreviews.authorization.k8s.io:create": reviews.self_access,
        "subjectaccessreviews.authorization.k8s.io:create": reviews.access,
        "localsubjectaccessreviews.authorization.k8s.io:create": reviews.access,
        "selfsubjectreviews.authentication.k8s.io:create": reviews.me,
        "tokenreviews.authentication.k8s.io:create": reviews.token,
    }
    for subresource in ("ephemeralcontainers", "resize"):
        handlers |= {f"{subresource}:{verb}": pods.part for verb in ("get", "update", "patch")}
    return handlers
