"""Decisions without a cluster: the real engine over objects in memory.

Nothing is awaited and no time passes, so a test calls a function and compares a value::

    world = World([Secrets, Pods])
    world.given(virtual=[secret("db"), pod_mounting("web", secret="db")])
    [write] = world.decide(Secrets, "shop/db").writes
    assert write.obj["metadata"]["name"] == "db-x-shop-x-vc"
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Self, cast

from syncer.api import (
    Config,
    ConfigError,
    Decision,
    Key,
    NameTranslator,
    Obj,
    Problem,
    Resource,
    Side,
    Syncer,
    SyncRequest,
    key_of,
)
from syncer.config import SyncerConfig, VirtualCluster, config_with, dotted
from syncer.config.checks import across
from syncer.config.list_form import list_form
from syncer.engine.controllers.builder import build_pair
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import View
from syncer.engine.reconcile.plan import Decided
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.engine.stores.informers import Informers
from syncer.names import SingleNamespace
from syncer.plugins import installed
from syncer.rights.rbac import sources
from syncer.testing.declared import Declared
from syncer.testing.memory import WITHOUT_STATUS, MemoryCluster, Sent
from syncer.testing.objects import CLUSTER, HOST_NAMESPACE, resource_of
from syncer.testing.stand_ins import Deaf, Notebook, at_once
from syncer.translate.merge_patch import merged

#: The default time in a world.
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
#: The default minor version of Kubernetes 1 of both sides' API servers.
MINOR = 36
#: How often a key is reconciled before the test fails because it never comes to rest.
ROUNDS = 8

AnySyncer = Syncer
#: A syncer: an instance, its class, or its name.
SyncerName = AnySyncer | type[AnySyncer] | str


class World:
    """A virtual cluster and its host, as syncers see them."""

    def __init__(
        self,
        syncers: Iterable[AnySyncer | type[AnySyncer]] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        cluster: str = CLUSTER,
        host_namespace: str = HOST_NAMESPACE,
        translator: type[NameTranslator] = SingleNamespace,
        now: datetime = NOON,
        serves: Iterable[Resource] = (),
    ) -> None:
        """Create a world.

        Args:
            syncers: The syncers; None for all built-in ones. Only those that the configuration
                enables can be called.
            config: The configuration, as in a file: ``{"sync": …}``.
            cluster: The name of the virtual cluster.
            host_namespace: The host namespace for the copies.
            translator: The class of the name translator.
            now: The time.
            serves: Custom resources that both sides serve, for ``sync.custom``.

        Raises:
            ConfigError: Options contradict each other, as in a file.
        """
        self.now = now
        #: The minor version of Kubernetes 1 of each side's API server; 0: not known.
        self.minor_versions = dict.fromkeys(Side, MINOR)
        self._translator = translator
        self._serves = tuple(serves)
        self._config = merged(
            {"cluster": cluster, "host": {"namespace": host_namespace}},
            config or {},
        )
        self._syncers: dict[type[AnySyncer], AnySyncer] = {}
        #: All requests that were made, in order.
        self.sent: list[Sent] = []
        self._sides = {side: MemoryCluster(side, self.sent, lambda: self.now) for side in Side}
        self._woken: list[SyncRequest] = []
        self._last: AnySyncer | None = None
        #: The latest decision.
        self._decided: Decided | None = None
        for syncer in installed().syncers() if syncers is None else syncers:
            self._add(syncer)
        self._pair = self._paired()

    # -- objects -----------------------------------------------------------------------------------

    def given(self, *, virtual: Iterable[Obj] = (), host: Iterable[Obj] = ()) -> Self:
        """Create or replace objects. An object without a uid gets one.

        A ``metadata.generation`` stays as it is given, and the engine's changes raise it. It is
        never added.
        """
        for side, objects in ((Side.VIRTUAL, virtual), (Side.HOST, host)):
            for obj in objects:
                self._sides[side].put(self._resource(obj), obj)
        self._show()
        return self

    def gone(self, *, virtual: Iterable[Obj] = (), host: Iterable[Obj] = ()) -> Self:
        """Remove objects (by kind and key), whatever their finalizers."""
        for side, objects in ((Side.VIRTUAL, virtual), (Side.HOST, host)):
            for obj in objects:
                self._sides[side].drop(self._resource(obj), key_of(obj))
        self._show()
        return self

    def configure(self, config: Mapping[str, Any]) -> Self:
        """Merge further options into the configuration, as in a file."""
        self._config = merged(self._config, config)
        self._pair = self._paired()
        return self

    def virtual(self, kind: str, key: str | Key) -> Obj | None:
        """Return a private copy of a virtual object: ``world.virtual("Secret", "shop/db")``."""
        return self._copy(Side.VIRTUAL, kind, key)

    def host(self, kind: str, key: str | Key) -> Obj | None:
        """Return a private copy of a host object.

        For example ``world.host("Secret", "vc-ns/db-x-shop-x-vc")``.
        """
        return self._copy(Side.HOST, kind, key)

    def objects(self, side: Side) -> list[tuple[Resource, Obj]]:
        """Return private copies of all objects on a side."""
        return [
            (resource, at_once(self._sides[side].get(resource, key)))
            for resource, objects in self._sides[side].objects.items()
            for key in objects
        ]

    def copy_of(self, syncer: SyncerName, key: str | Key) -> Obj | None:
        """Return the object at the host key of a virtual key, whoever made it."""
        made = self.syncer(syncer)
        key = _key(key)
        host_key = made.host_key(self.settings, key)
        return self._copy(Side.HOST, made.host_resource.kind, host_key)

    # -- decisions ---------------------------------------------------------------------------------

    def decide(
        self,
        syncer: SyncerName,
        key: str | Key,
        *,
        host_key: str | Key | None = None,
    ) -> Decision:
        """Return the syncer's decision about a virtual key.

        A syncer from the host is called with the host object that leads to this key. ``host_key``
        is the host key, if it isn't the translated one.

        Raises:
            Refused: The syncer refuses the objects. Any other exception of it is passed on, too.
        """
        made = self.syncer(syncer)
        self._last = made
        request = self.request(made, key, host_key=host_key)
        controller = self._pair.controllers[made.name]
        self._decided = self._pair.reconciler.decide(controller, request, self._view(made))
        return self._decided.decision

    def request(
        self,
        syncer: SyncerName,
        key: str | Key,
        *,
        host_key: str | Key | None = None,
    ) -> SyncRequest:
        """Return the request about a virtual key that a change of its object would queue.

        The arguments are those of :meth:`decide`.
        """
        made = self.syncer(syncer)
        virtual = _key(key)
        self._show()
        origin = _key(host_key) if host_key is not None else self._origin(made, virtual)
        return SyncRequest(self.settings.cluster, made.name, virtual, origin)

    def left_out(self, syncer: SyncerName, key: str | Key) -> tuple[str, ...]:
        """Return the fields that the syncer's decision about a virtual key doesn't copy.

        An event notifies the tenant of them.

        Raises as :meth:`decide`.
        """
        self.decide(syncer, key)
        return self._decided.left_out if self._decided else ()

    def apply(self, decision: Decision, *, by: SyncerName | None = None) -> list[Sent]:
        """Carry out a decision. Return the requests that it took; none if everything is in step.

        ``by`` is the syncer, if it isn't the one that was called last.

        Raises:
            Refused: A write is forbidden.
            ClusterError: A request failed.
        """
        syncer = self.syncer(by) if by is not None else self._last
        assert syncer is not None, "say whose decision it is: apply(decision, by=SYNCER)"
        self._show()
        before = len(self.sent)
        try:
            plan = self._pair.reconciler.plan_decision(
                self._pair.controllers[syncer.name],
                decision,
            )
            if self._decided is not None and self._decided.decision is decision:
                plan = replace(plan, vacant=self._decided.vacant)
            at_once(self._pair.applier.apply(plan, Deaf()))
        finally:
            self._show()
        return self.sent[before:]

    def settle(
        self,
        syncer: SyncerName,
        key: str | Key,
        *,
        host_key: str | Key | None = None,
    ) -> list[Sent]:
        """Reconcile until nothing is left to do, and return all requests.

        Raises:
            AssertionError: It never comes to rest.
        """
        sent: list[Sent] = []
        for _ in range(ROUNDS):
            calls = self.apply(self.decide(syncer, key, host_key=host_key))
            if not calls:
                return sent
            sent += calls
        raise AssertionError(
            f"{key} still needs writes after {ROUNDS} rounds: {'; '.join(map(str, calls))}",
        )

    def woken(self) -> list[SyncRequest]:
        """Return the requests that changes have queued since the last call, each once."""
        requests = list(dict.fromkeys(self._woken))
        self._woken.clear()
        return requests

    # -- a closer look -----------------------------------------------------------------------------

    @property
    def pair(self) -> ClusterPair:
        """The engine's own cluster pair."""
        return self._pair

    @property
    def settings(self) -> Any:
        """The settings of the syncers."""
        return self._pair.settings

    def syncer(self, named: SyncerName) -> AnySyncer:
        """Return a syncer; one that is not in the world yet is added."""
        # A syncer made from configuration is known by itself, not by its class.
        is_known = any(controller.syncer is named for controller in self._pair.controllers.values())
        if not isinstance(named, str) and not is_known and self._class(named) not in self._syncers:
            self._add(named)
            self._pair = self._paired()
        name = named if isinstance(named, str) else named.name
        if name not in self._pair.controllers:
            known = ", ".join(sorted(self._pair.controllers)) or "none"
            raise ValueError(f"no syncer {name!r} is switched on in this world; there are: {known}")
        return self._pair.controllers[name].syncer

    def context(self, syncer: SyncerName) -> Any:
        """Return the context of a syncer."""
        made = self.syncer(syncer)
        return self._pair.controllers[made.name].context(self._view(made).reads())

    # -- inside ------------------------------------------------------------------------------------

    @staticmethod
    def _class(syncer: AnySyncer | type[AnySyncer]) -> type[AnySyncer]:
        return syncer if isinstance(syncer, type) else type(syncer)

    def _add(self, syncer: AnySyncer | type[AnySyncer]) -> None:
        self._syncers[self._class(syncer)] = syncer() if isinstance(syncer, type) else syncer

    def _paired(self) -> ClusterPair:
        model = _model(tuple(self._syncers), self._translator)
        cluster = model.model_validate(self._config).cluster()
        found = across(list_form(self._config, model), model)
        # The translator is an argument here, so what a file has to say of it doesn't count.
        of_syncers = [(steps, message) for steps, message in found if "sync" in steps]
        if of_syncers:
            problems = [Problem(message, path=dotted(steps)) for steps, message in of_syncers]
            raise ConfigError(*problems)
        settings = cluster.settings()
        homes = HostNamespaces if "namespaces" in settings.sections else _AllExist

        def clock() -> float:
            return 0.0

        def utcnow() -> datetime:
            return self.now

        def has_status(side: Side, resource: Resource) -> bool:
            return resource.plural not in WITHOUT_STATUS

        def minor(side: Side) -> int:
            return self.minor_versions[side]

        pair = build_pair(
            settings,
            [
                *((self._syncers[type(syncer)], section) for syncer, section in cluster.enabled()),
                *self._custom(cluster),
            ],
            virtual=self._sides[Side.VIRTUAL],
            host=self._sides[Side.HOST],
            queue=Notebook(self._woken),
            clock=clock,
            utcnow=utcnow,
            has_status=has_status,
            minor=minor,
            homes=homes,
        )
        self._pair = pair
        for controller in pair.controllers.values():
            controller.ready = True
        self._show()
        return pair

    def _custom(self, cluster: VirtualCluster) -> Iterator[tuple[AnySyncer, Config]]:
        """Yield the syncers of ``sync.custom``."""
        for entry in cluster.custom_entries():
            found = entry.syncers(self._find)
            if isinstance(found, str):
                raise ValueError(
                    f"sync.{entry.section_name}: {found}. Name the resource in World(serves=…)",
                )
            sections = entry.sections()
            yield from ((syncer, sections[syncer.name]) for syncer in found)

    def _find(self, side: Side, name: str) -> Resource | None:
        for resource in self._serves:
            if name in (str(resource), f"{resource}/{resource.version}"):
                return resource
        return None

    def _view(self, syncer: AnySyncer) -> View:
        """Return the view restricted to the stores that the syncer declares: in a daemon, no other
        syncer may be enabled.
        """
        declared = Declared(self._pair.informers, syncer, sources(syncer, settings=self.settings))
        if syncer.reads_copies:
            declared.allow(self._pair.reconciler.view.copies())
        return replace(self._pair.reconciler.view, informers=cast("Informers", declared))

    def _show(self) -> None:
        """Update the stores, as watches would."""
        for store in self._pair.informers:
            marked = self._pair.informers.is_marked(store)
            there = self._sides[store.side].objects.get(store.resource, {})
            visible = {key: obj for key, obj in there.items() if not marked or self._is_marked(obj)}
            if store.part is not None:
                visible = {key: obj for key, obj in visible.items() if store.part.contains(key)}
            for key in set(store.keys()) - visible.keys():
                store.gone_live(key)
            for key, obj in visible.items():
                entry = store.entry(key)
                if entry is None or entry.version != obj["metadata"]["resourceVersion"]:
                    store.seen_live(at_once(self._sides[store.side].get(store.resource, key)))
            store.synced = True

    def _is_marked(self, obj: Obj) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return bool(labels.get(self.settings.marks.cluster) == self.settings.identity)

    def _origin(self, syncer: AnySyncer, key: Key) -> Key | None:
        """Return the host key of the object that leads to a virtual key, for a syncer from the
        host.
        """
        controller = self._pair.controllers[syncer.name]
        if not controller.direction.comes_up:
            return None
        for store in controller.hosts:
            for host_key in list(store.keys()):
                request = controller.request_for(Side.HOST, host_key, store.get(host_key))
                if request is not None and request.key == key:
                    return request.host_key
        return None

    def _resource(self, obj: Obj) -> Resource:
        """Return the resource of an object: one of a syncer, or a guess from its kind."""
        wanted = (obj["apiVersion"], obj["kind"])
        for store in self._pair.informers:
            resource = store.resource
            if (resource.api_version, resource.kind) == wanted:
                return resource
        return resource_of(obj)

    def _copy(self, side: Side, kind: str, key: str | Key) -> Obj | None:
        for resource, objects in self._sides[side].objects.items():
            if resource.kind == kind and _key(key) in objects:
                return at_once(self._sides[side].get(resource, _key(key)))
        return None


class _AllExist(HostNamespaces):
    """The host namespaces of a world in which no Namespaces are synced: all of them exist and are
    ours.
    """

    def forbids(self, namespace: str) -> str:
        """Return ``""``, unless the translator says where copies are."""
        return super().forbids(namespace) if self._fixed is not None else ""

    def lacks(self, namespace: str) -> str:
        """Return ``""``."""
        return ""


@lru_cache(maxsize=64)
def _model(
    syncers: tuple[type[AnySyncer], ...],
    translator: type[NameTranslator],
) -> type[SyncerConfig]:
    """Return the configuration model.

    Cached: building it takes 20 ms, and a property test creates hundreds of worlds.
    """
    return config_with(syncers, translator=translator)


def _key(key: str | Key) -> Key:
    return Key.parse(key) if isinstance(key, str) else key
