"""What a syncer may see while it decides: its configuration, the names, cached reads of both sides, and the time."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol

from typing_extensions import TypeVar

from syncer.api.config import Config
from syncer.api.marks import Marks, label_value
from syncer.api.names import NameTranslator
from syncer.api.networking import Networking
from syncer.api.objects import Key, Obj, Resource, Side, key_of
from syncer.api.patrol import Patrol

C = TypeVar("C", bound=Config, default=Config, covariant=True)
Section = TypeVar("Section", bound=Config)

#: What ``kubectl apply`` keeps on an object; it belongs to the side where somebody ran kubectl.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Reader(Protocol):
    """Cached reads. What is returned is a private copy; an object that isn't watched can't be read (KeyError)."""

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Return the object as it was last seen, or None."""
        ...

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all objects last seen."""
        ...

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """Return the keys of the objects for which the named index function gave this value."""
        ...

    def used(self, resource: Resource, virtual: Obj) -> bool | None:
        """Return True if anything synced refers to a virtual object; None where that can't be known now."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all syncers of one virtual cluster."""

    cluster: str
    host_namespace: str
    names: NameTranslator
    marks: Marks = field(default_factory=Marks)
    #: The sections of all enabled syncers by syncer name, so that one can ask whether another is on.
    sections: Mapping[str, Config] = field(default_factory=dict)
    #: The ``networking`` part of the configuration.
    networking: Networking = field(default_factory=Networking)
    #: The ``patrol`` part of the configuration; None: nothing patrols.
    patrol: Patrol | None = None
    #: The virtual cluster as marks name it: unique on the host, since the host namespace is part of it.
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        name = f"{self.cluster}.{self.host_namespace}" if self.host_namespace else self.cluster
        object.__setattr__(self, "identity", label_value(name))

    def section(self, syncer: str, config: type[Section]) -> Section | None:
        """Return the section of the syncer of this name; None where that is off or has another class of options."""
        found = self.sections.get(syncer)
        return found if isinstance(found, config) else None


@dataclass(frozen=True, slots=True)
class Context(Generic[C]):
    """Read-only; made anew for each request, so ``now`` is one time throughout a decision."""

    settings: Settings
    config: C
    resource: Resource
    host_resource: Resource
    reader: Reader
    now: datetime
    #: The syncer's own translation of a virtual key, where it isn't the name translator's.
    place: Callable[[Settings, Key], Key] | None = None

    @property
    def cluster(self) -> str:
        """The virtual cluster's name."""
        return self.settings.cluster

    @property
    def identity(self) -> str:
        """What marks say of the virtual cluster."""
        return self.settings.identity

    @property
    def names(self) -> NameTranslator:
        """The name translator of this virtual cluster."""
        return self.settings.names

    @property
    def marks(self) -> Marks:
        """The names of our labels and annotations."""
        return self.settings.marks

    def enabled(self, syncer: str) -> bool:
        """Return True if another syncer is on: a reference is renamed only where its target is synced."""
        return syncer in self.settings.sections

    def used(self, virtual: Obj) -> bool | None:
        """Return True if anything synced refers to this virtual object of the syncer's resource (see ``Refers``).

        None where some of what might refer to it isn't known at the moment: then a copy is neither made nor removed.
        """
        return self.reader.used(self.resource, virtual)

    def virtual(self, resource: Resource, key: Key) -> Obj | None:
        """Return a virtual object as it was last seen."""
        return self.reader.get(Side.VIRTUAL, resource, key)

    def host(self, resource: Resource, key: Key) -> Obj | None:
        """Return a host object as it was last seen, by its host key."""
        return self.reader.get(Side.HOST, resource, key)

    def host_key(self, key: Key) -> Key:
        """Return the place on the host of one of this syncer's virtual keys."""
        return self.place(self.settings, key) if self.place else self.names.to_host(self.host_resource, key)

    def host_of(self, resource: Resource, key: Key) -> Obj | None:
        """Return the host copy of a virtual object, by the virtual key."""
        return self.reader.get(Side.HOST, resource, self.names.to_host(resource, key))

    def virtual_of(self, resource: Resource, host: Obj) -> Obj | None:
        """Return the virtual object whose copy a host object is; None where it isn't ours or the original is gone."""
        if not self.marks.is_ours(host, cluster=self.identity, resource=resource):
            return None
        key = self.marks.virtual_key(host)
        return self.virtual(resource, key) if key else None

    def host_name(self, resource: Resource, namespace: str, name: str) -> str:
        """Return the name on the host of what a virtual object in ``namespace`` refers to by name."""
        return self.names.to_host(resource, Key(namespace if resource.namespaced else "", name)).name

    def host_copy(self, virtual: Obj) -> Obj:
        """Return a host object without contents: translated name, the tenant's labels and
        annotations, and our marks.
        """
        key, settings = key_of(virtual), self.settings
        place, marks = self.host_key(key), settings.marks
        metadata: Obj = {"name": place.name}
        if place.namespace:
            metadata["namespace"] = place.namespace
        metadata["labels"] = _kept(virtual, "labels", marks) | marks.labels(settings.identity, key)
        metadata["annotations"] = _kept(virtual, "annotations", marks) | marks.annotations(
            self.resource, virtual, place
        )
        return {"apiVersion": self.host_resource.api_version, "kind": self.host_resource.kind, "metadata": metadata}

    def virtual_copy(self, host: Obj, key: Key) -> Obj:
        """Return a virtual object without contents at the given key: the host's labels and
        annotations, and our mark.
        """
        metadata: Obj = {"name": key.name}
        if key.namespace:
            metadata["namespace"] = key.namespace
        metadata["labels"] = _kept(host, "labels", self.marks) | {self.marks.cluster: self.identity}
        if annotations := _kept(host, "annotations", self.marks):
            metadata["annotations"] = annotations
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": metadata}


def _kept(obj: Obj, part: str, marks: Marks) -> dict[str, str]:
    """Return what crosses: all but marks of ours (a tenant must not forge them) and kubectl's note."""
    found = obj["metadata"].get(part)
    if not found:
        return {}
    prefix = marks.prefix + "/"
    return {key: value for key, value in found.items() if not key.startswith(prefix) and key != LAST_APPLIED}
