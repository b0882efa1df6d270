"""The read-only view that a syncer decides with: configuration, names, cached objects of both
sides, and the time.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, Protocol

from typing_extensions import TypeVar

from syncer.api.config import Config
from syncer.api.errors import Refused
from syncer.api.marks import Marks, label_value
from syncer.api.metadata_rules import KeyRules, MetadataFilter, MetadataRules, without_keys
from syncer.api.names import NameTranslator
from syncer.api.networking import ApiServerAddress, Networking
from syncer.api.objects import Json, Key, Obj, Resource, Side, annotations_of, key_of
from syncer.api.patrol import Patrol
from syncer.api.pauses import Pauses
from syncer.api.values import value_class

C = TypeVar("C", bound=Config, default=Config, covariant=True)
ConfigT = TypeVar("ConfigT", bound=Config)


@dataclass(frozen=True, slots=True)
class CopiedKind:
    """A kind whose objects have copies on the host, as a running syncer makes them."""

    #: The resource of the virtual objects, and that of their copies.
    resource: Resource
    host_resource: Resource
    #: Returns the host key of the copy of a virtual key.
    host_key: Callable[[Key], Key]
    #: Returns the objects that a virtual object refers to, or has made on the host.
    named: Callable[[Obj], Iterable[tuple[Resource, Key]]]


class Reader(Protocol):
    """Reads from the cache. Returned objects are private copies.

    Every method raises KeyError for a resource that is not watched.
    """

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Return the cached object, or None if there is none."""
        ...

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all cached objects of the resource."""
        ...

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """Return the keys of the objects for which an index function yielded ``value``.

        ``index`` is the name of the index.
        """
        ...

    def values(self, side: Side, resource: Resource, index: str, key: Key) -> Collection[str]:
        """Return the values that an index function yielded for the object of a key.

        ``index`` is the name of the index.
        """
        ...

    def resolve(
        self,
        resource: Resource,
        key: Key,
        host_key: Key,
        *,
        comes_later: bool = False,
    ) -> None:
        """Check that a name in a copy leads to nothing but the object that the tenant means.

        Args:
            resource: The resource of the named object.
            key: Its virtual key.
            host_key: The host key that the copy will name.
            comes_later: The host makes the object once the copy is there.

        Raises:
            NotYet: The name is the same on the host, where no copy of the object
                is yet: the host's own object of that name would be meant.
            syncer.api.Refused: The name is the same on the host, and no such object is ever copied.
        """
        ...

    def used(self, resource: Resource, virtual: Obj) -> bool | None:
        """Return True if a synced object refers to a virtual object; None if not known yet."""
        ...

    def copied_by(self, group: str, kind: str) -> Sequence[CopiedKind]:
        """Return the kinds that running syncers copy to objects of this kind on the host."""
        ...

    def synced(self, resource: Resource) -> bool:
        """Return True if a running syncer has host objects for virtual objects of a resource."""
        ...

    def is_complete(self, side: Side, resource: Resource) -> bool:
        """Return True if the cache has been filled: not while the first list fails."""
        ...

    def minor_version(self, side: Side) -> int:
        """Return the minor version of Kubernetes 1 of a side's API server; 0 if unknown."""
        ...

    def original(self, host_key: Key) -> Key | None:
        """Return the virtual key of the object of any kind that has its copy at a host key, or
        None.

        It is for texts: a decision that depends on it isn't made again when the copy changes.
        """
        ...

    def leave_out(self, fields: Iterable[str]) -> None:
        """Note fields of the virtual object that are not copied."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that all syncers of one virtual cluster share."""

    #: The name of the virtual cluster.
    cluster: str
    #: The host namespace that copies are put in; ``""`` if the name translator uses several.
    host_namespace: str
    #: The name translator of the virtual cluster.
    names: NameTranslator
    #: The names of our labels and annotations.
    marks: Marks = field(default_factory=Marks)
    #: The sections of all enabled syncers, by syncer name. A name that is missing here is disabled.
    sections: Mapping[str, Config] = field(default_factory=dict)
    #: The ``networking`` section: the DNS Service and cluster domain that pods are given.
    networking: Networking = field(default_factory=Networking)
    #: The host namespaces that are not ours and that copies may be put in all the same
    #: (``names.namespaces``).
    namespaces: frozenset[str] = frozenset()
    #: The ``patrol`` section; None if no patroller runs.
    patrol: Patrol | None = None
    #: The ``pause`` section.
    pause: Pauses = field(default_factory=Pauses)
    #: True if the daemon answers as the kubelet of the virtual Nodes, whose addresses and ports are
    #: its own then (``kubelet.enabled``).
    kubelet: bool = False
    #: True if it also serves figures of Pods (``kubelet.metrics``).
    metrics: bool = False
    #: True if it also asks the host's kubelets for metrics of containers (``kubelet.cadvisor``).
    cadvisor: bool = False
    #: The virtual cluster's name in marks. It includes the host namespace, so it is unique on the
    #: host.
    identity: str = field(init=False)
    #: The address at which pods reach the API server of the virtual cluster.
    api_server: ApiServerAddress = field(init=False)

    def __post_init__(self) -> None:
        name = f"{self.cluster}.{self.host_namespace}" if self.host_namespace else self.cluster
        object.__setattr__(self, "identity", label_value(name))
        given = self.networking.api_server
        object.__setattr__(self, "api_server", ApiServerAddress(given.host, given.port))

    def section(self, syncer: str, config: type[ConfigT]) -> ConfigT | None:
        """Return the section of another syncer.

        Args:
            syncer: The name of the other syncer.
            config: The expected class of its section.

        Returns:
            The section; None if that syncer is disabled or its section is of another class.
        """
        found = self.sections.get(syncer)
        return found if isinstance(found, config) else None


_ALL = MetadataFilter(MetadataRules(), MetadataRules())


@value_class
class Context(Generic[C]):
    """The arguments of a decision besides the objects.

    Created for each request; ``now`` does not change while it is decided.
    """

    #: The settings that all syncers of the virtual cluster share.
    settings: Settings
    #: The syncer's own section of the configuration.
    config: C
    #: The syncer's resource on the virtual side.
    resource: Resource
    #: The syncer's resource on the host.
    host_resource: Resource
    #: Cached reads of both sides.
    reader: Reader
    #: The time at which the decision began, in UTC.
    now: datetime
    #: The syncer's own translation of a virtual key to a host key; None if the name translator's is
    #: used.
    translate: Callable[[Settings, Key], Key] | None = None
    #: The labels and annotations that are copied; by default all but the marks.
    metadata: MetadataFilter = _ALL
    #: The name of a syncer whose host objects are no copies proper (``SyncDown.host_namespaces``).
    made_for: str = ""

    @property
    def cluster(self) -> str:
        """The name of the virtual cluster."""
        return self.settings.cluster

    @property
    def identity(self) -> str:
        """The name of the virtual cluster in marks."""
        return self.settings.identity

    @property
    def names(self) -> NameTranslator:
        """The name translator of the virtual cluster."""
        return self.settings.names

    @property
    def marks(self) -> Marks:
        """The names of our labels and annotations."""
        return self.settings.marks

    def enabled(self, syncer: str) -> bool:
        """Return True if another syncer is enabled.

        Rename a reference only if the syncer of its target is.
        """
        return syncer in self.settings.sections

    def used(self, virtual: Obj) -> bool | None:
        """Return True if a synced object refers to this virtual object of the syncer's resource
        (see ``Refers``).

        None means that not all objects that might refer to it are known yet: neither create nor
        delete a copy then.
        """
        return self.reader.used(self.resource, virtual)

    def copied_by(self, group: str, kind: str) -> Sequence[CopiedKind]:
        """Return the kinds that running syncers copy to objects of this kind on the host, such as
        ``Pod`` of the group ``""``.

        Their copies and originals can only be read with ``reads_copies``.
        """
        return self.reader.copied_by(group, kind)

    def synced(self, resource: Resource) -> bool:
        """Return True if a running syncer has host objects for virtual objects of a resource.

        These are their copies, or the objects that they are shown from. An object that needs
        another one of a resource for which this is False can't work on the host. Decisions of a
        :class:`~syncer.api.Refers` are made again when a syncer of a resource that it ``refers_to``
        begins.
        """
        return self.reader.synced(resource)

    def minor_version(self, side: Side) -> int:
        """Return the minor version of Kubernetes 1 of a side's API server, such as 36; 0 if that is
        not known.

        It is that of the time when the daemon first reached the server.
        """
        return self.reader.minor_version(side)

    def leave_out(self, *fields: str) -> None:
        """Notify the owner of the virtual object, by an event, that these fields are not copied.

        Call it at each decision about the object; the event is recorded once.
        """
        if fields:
            self.reader.leave_out(fields)

    def virtual(self, resource: Resource, key: Key) -> Obj | None:
        """Return a virtual object from the cache by its virtual key, or None.

        Raises:
            KeyError: The resource is not watched on the virtual side (see ``Syncer.reads``).
        """
        return self.reader.get(Side.VIRTUAL, resource, key)

    def host(self, resource: Resource, key: Key) -> Obj | None:
        """Return a host object from the cache by its host key, or None.

        Raises:
            KeyError: The resource is not watched on the host (see ``Syncer.reads``).
        """
        return self.reader.get(Side.HOST, resource, key)

    def host_key(self, key: Key) -> Key:
        """Return the host key of one of this syncer's virtual keys.

        Raises:
            Refused: The key has no valid translation.
        """
        if self.translate:
            return self.translate(self.settings, key)
        return self.names.to_host(self.host_resource, key)

    def host_of(self, resource: Resource, key: Key) -> Obj | None:
        """Return the host copy of a virtual object from the cache, by the virtual key, or None.

        Raises:
            KeyError: The resource is not watched on the host (see ``Syncer.reads``).
        """
        return self.reader.get(Side.HOST, resource, self.names.to_host(resource, key))

    def virtual_of(self, resource: Resource, host: Obj) -> Obj | None:
        """Return the virtual object that a host object is a copy of.

        None if the host object is not our copy, or if the virtual object is gone.
        """
        if not self.marks.is_ours(host, cluster=self.identity, resource=resource):
            return None
        key = self.marks.virtual_key(host)
        return self.virtual(resource, key) if key else None

    def host_name(self, resource: Resource, namespace: str, name: str) -> str:
        """Return the host name of an object that a virtual object refers to.

        Args:
            resource: The resource of the named object.
            namespace: The namespace of the virtual object.
            name: The name by which it refers to the object.

        Raises:
            syncer.api.Refused: The name can't be one on the host. A name that would mean an object
                of the host's own raises, too: the request then waits.
        """
        if not resource.namespaced:
            namespace = ""
        return self.refer(resource, Key(namespace, name)).name

    def refer(self, resource: Resource, key: Key, *, comes_later: bool = False) -> Key:
        """Return the host key of an object that a copy names. Raises as :meth:`Reader.resolve`."""
        host_key = self.names.to_host(resource, key)
        self.reader.resolve(resource, key, host_key, comes_later=comes_later)
        return host_key

    def host_copy(self, virtual: Obj) -> Obj:
        """Return the start of a host copy, without contents such as ``spec``.

        It has the translated name and namespace, the tenant's labels and annotations that may cross
        (see ``MetadataRules``), and our marks.
        """
        key = key_of(virtual)
        settings = self.settings
        host_key = self.host_key(key)
        metadata: Obj = {"name": host_key.name}
        if host_key.namespace:
            metadata["namespace"] = host_key.namespace

        labels = settings.marks.labels(settings.identity, key)
        metadata["labels"] = self._kept(virtual, "labels") | labels
        annotations = settings.marks.annotations(
            self.resource, virtual, host_key, made_for=self.made_for
        )
        metadata["annotations"] = self._kept(virtual, "annotations") | annotations
        return {
            "apiVersion": self.host_resource.api_version,
            "kind": self.host_resource.kind,
            "metadata": metadata,
        }

    def virtual_copy(self, host: Obj, key: Key) -> Obj:
        """Return the start of a virtual object at ``key``, without contents such as ``spec``.

        It has the host object's labels and annotations that may cross, and our cluster mark.
        """
        metadata: Obj = {"name": key.name}
        if key.namespace:
            metadata["namespace"] = key.namespace
        labels = self.metadata.kept("labels", host["metadata"].get("labels") or {})
        metadata["labels"] = labels | {self.marks.cluster: self.identity}
        annotations = self.metadata.kept("annotations", host["metadata"].get("annotations") or {})
        if annotations:
            metadata["annotations"] = annotations
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": metadata,
        }

    def with_annotation_rules(self, annotations: KeyRules) -> "Context[C]":
        """Return this context with ``annotations`` in place of the kind's own annotation rules.

        The section's still apply. Pass a module constant: a compiled filter is kept for each.
        """
        return replace(self, metadata=self.metadata.with_annotation_rules(annotations))

    def refuse_without(self, virtual: Obj, is_needed: Callable[[str], bool]) -> None:
        """Refuse an object with an annotation that it needs and that stays behind.

        Args:
            virtual: The virtual object.
            is_needed: Returns True if a copy without the annotation would be open to more.

        Raises:
            Refused: There is such an annotation.
        """
        for key in annotations_of(virtual):
            if is_needed(key) and self.metadata.denied("annotations", [key]):
                why = "the host's policy keeps this annotation out"
                effect = "without it the copy would be open to more"
                path = f"metadata.annotations[{key}]"
                raise Refused(f"{why}, and {effect}: remove it", path=path, reason="NotCopied")

    def without_marks(self, value: Json) -> Json:
        """Return fields that are copied to the host without marks and denied keys.

        The keys are those of labels and annotations in templates, at any depth: an operator on the
        host may write them to the objects that it makes. The value is not changed; parts without
        such keys are shared with the result. The object's owner is notified of the denied keys.
        """
        denied: list[str] = []

        def stays(part: str, key: str) -> bool:
            if self.metadata.is_reserved(key):
                return True
            if self.metadata.crosses(part, key) or not self.metadata.is_denied(part, key):
                return False
            denied.append(f"{part}[{key}] of a template")
            return True

        found: Json = without_keys(value, stays, self.marks.is_mark)
        if denied:
            self.reader.leave_out(denied)
        return found

    def _kept(self, virtual: Obj, part: str) -> dict[str, str]:
        """Return the labels or annotations that cross.

        The object's owner is notified of the others.
        """
        found = virtual["metadata"].get(part)
        if not found:
            return {}
        kept = self.metadata.kept(part, found)
        if len(kept) < len(found):
            denied = self.metadata.denied(part, found)
            if denied:
                self.reader.leave_out(f"metadata.{part}[{key}]" for key in denied)
        return kept
