"""The record of what was sent to a host pod: that is the tenant's, and nothing else of the pod.

A host pod has further parts: sidecars and volumes that the host's admission has put in, with
secrets and rights of the host, and containers that the operator adds to debug the pod. The virtual
Pod doesn't distinguish them from the tenant's, who can give an ephemeral container any name, and
whose API server may show anything. So what was sent stands in a mark on the copy: the names of the
containers by their list, with the images that were sent last, and the names of the volumes. These
are those of the creation, and each ephemeral container once the host has accepted it.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from syncer.api import LONGEST_NAME, Marks, Obj, Pair, Paths, Refused, annotations_of
from syncer.resources.pods.fields import CONTAINERS

#: Below the marks' prefix: the record, as JSON.
SENT = "containers"
#: Most bytes of a record, of the 256 KiB that the annotations of an object may have: more than
#: 1,000 containers or volumes.
LARGEST = 64 << 10

#: The records that are cached in their parsed form, and the longest of them, in characters. Usual
#: ones are below that; tenants choose the length. The cache takes at most 2 MB.
CACHED = 256
LONGEST_CACHED = 2048

#: The lists that never change once a Pod is there.
_FIXED = ("containers", "initContainers")
#: The parts of the JSON beside the lists of containers.
_IMAGES = "images"
_VOLUMES = "volumes"

#: The paths at which containers name volumes and resource claims of their Pod.
_USED: Paths[str] = Paths(
    {
        f"spec.{part}[].{path}": thing
        for part in CONTAINERS
        for path, thing in (
            ("volumeMounts[].name", "volume"),
            ("volumeDevices[].name", "volume"),
            ("env[].valueFrom.fileKeyRef.volumeName", "volume"),
            ("resources.claims[].name", "resource claim"),
        )
    }
)


@dataclass(frozen=True, slots=True)
class PodRecord:
    """What of a host pod was sent."""

    #: The names of the containers, by the list in a Pod's spec; lists without any are missing.
    containers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: A digest of the tenant's image that was sent last, by the name of the container. On the host
    #: it may have another one, by ``images`` or by the host's admission, so only this shows whether
    #: the tenant has changed it.
    images: Mapping[str, str] = field(default_factory=dict)
    #: The names of the volumes.
    volumes: Sequence[str] = ()
    #: The text of the annotation, which never changes; ``""`` before somebody asked for it.
    _text: str = field(default="", init=False, repr=False, compare=False)

    def has(self, part: str, name: str) -> bool:
        """Return True if the container of this name was sent in this list of a Pod's spec."""
        return name in self.containers.get(part, ())

    @property
    def names(self) -> frozenset[str]:
        """The names of all containers; no two containers of a Pod share one."""
        return frozenset().union(*self.containers.values())

    def with_container(self, part: str, container: Obj) -> "PodRecord":
        """Return the record with one container more."""
        name = container["name"]
        names = [*self.containers.get(part, ()), name]
        images = {**self.images, name: _digest(container)}
        return replace(self, containers={**self.containers, part: names}, images=images)

    def changed_images(self, virtual: Obj) -> dict[str, str]:
        """Return the tenant's images that have changed since they were sent, by container."""
        result = {}
        for part, container in _each(virtual, _FIXED):
            name = container["name"]
            image = container.get("image")
            if image and self.has(part, name) and self.images.get(name) != _digest(container):
                result[name] = image
        return result

    def with_images(self, virtual: Obj) -> "PodRecord":
        """Return the record with the images that a virtual Pod has now."""
        images = dict(self.images)
        for part, container in _each(virtual, _FIXED):
            if self.has(part, container["name"]):
                images[container["name"]] = _digest(container)
        return PodRecord(self.containers, images, self.volumes)

    def bounded(self) -> "PodRecord":
        """Return the record.

        Raises:
            Refused: It is too large for an annotation.
        """
        size = len(self.written())
        if size > LARGEST:
            why = f"the record of its containers and volumes takes {size} bytes"
            raise Refused(
                f"{why}, and {LARGEST} are allowed: give the Pod fewer of them", path="spec"
            )
        return self

    def written(self) -> str:
        """Return the record as the text of the annotation."""
        if self._text:
            return self._text
        parts: dict[str, Any] = {part: list(names) for part, names in self.containers.items()}
        if self.images:
            parts[_IMAGES] = dict(self.images)
        if self.volumes:
            parts[_VOLUMES] = list(self.volumes)
        text = json.dumps(parts, separators=(",", ":"), sort_keys=True)
        object.__setattr__(self, "_text", text)
        return text


def mark(marks: Marks) -> str:
    """Return the annotation that has the record."""
    return f"{marks.prefix}/{SENT}"


def has_record(marks: Marks, host: Obj) -> bool:
    """Return True if a host pod has a record, of whatever contents."""
    return mark(marks) in annotations_of(host)


def recorded(marks: Marks, host: Obj) -> PodRecord:
    """Return what of a host pod was sent; nothing without a readable record."""
    text = annotations_of(host).get(mark(marks), "{}")
    return _read(text) if len(text) <= LONGEST_CACHED else _read.__wrapped__(text)


@lru_cache(maxsize=CACHED)
def _read(text: str) -> PodRecord:
    """Return the record of a text; an empty one if it isn't readable.

    Cached with its own text, as Pods of one template have the same, and as each decision about a
    Pod reads and writes it: that takes 7 µs, and 0.5 with the cache.
    """
    try:
        found = json.loads(text)
    except ValueError:
        return PodRecord()
    if not isinstance(found, dict):
        return PodRecord()
    containers = {}
    for part in CONTAINERS:
        names = found.get(part)
        if isinstance(names, list):
            containers[part] = _texts(names)
    images = found.get(_IMAGES)
    if not isinstance(images, dict):
        images = {}
    volumes = found.get(_VOLUMES)
    if not isinstance(volumes, list):
        volumes = []
    return PodRecord(containers, images, _texts(volumes))


def created(virtual: Obj) -> PodRecord:
    """Return what the copy of a Pod is created with.

    Raises:
        Refused: A container uses a volume or a resource claim that the Pod doesn't have. The API
            server of the tenant's own may show that, and the host's admission may add one of the
            name, with contents of the host. Or the record is too large.
    """
    spec = virtual["spec"]
    volumes = _names(spec.get("volumes"))
    own = {"volume": volumes, "resource claim": _names(spec.get("resourceClaims"))}
    refuse_others(virtual, own)
    containers = {part: _names(spec.get(part)) for part in _FIXED if spec.get(part)}
    return PodRecord(containers, volumes=volumes).with_images(virtual).bounded()


def refuse_others(pod: Obj, own: Mapping[str, Collection[str]]) -> None:
    """Refuse a Pod whose containers use a volume or a resource claim that isn't its own.

    Args:
        pod: A Pod with the containers to check.
        own: The names of its own ones, under ``volume`` and ``resource claim``.

    Raises:
        Refused: There is such a container.
    """
    for thing, name in _USED.found(pod):
        if name not in own.get(thing, ()):
            why = f"a container uses the {thing} {name:.{LONGEST_NAME}}, which is none of this Pod"
            raise Refused(f"{why}; name one of its own", path="spec")


def known(marks: Marks, pair: Pair) -> PodRecord:
    """Return what of a copy was sent, as the record should have it.

    A copy that an earlier version made has no record, or one without images and volumes. That
    version sent the containers that both sides have in a list that never changes; of ephemeral
    containers and of volumes none is known to have been sent, and images count as sent that the
    Pod has now.
    """
    if has_record(marks, pair.host):
        found = recorded(marks, pair.host)
    else:
        containers = {}
        for part in _FIXED:
            there = set(_names(pair.host["spec"].get(part)))
            both = [name for name in _names(pair.virtual["spec"].get(part)) if name in there]
            if both:
                containers[part] = both
        found = PodRecord(containers)
    if found.images:
        return found
    return found.with_images(pair.virtual)


def _each(pod: Obj, parts: Sequence[str]) -> Iterator[tuple[str, Obj]]:
    """Yield the containers of some lists of a Pod, each with its list."""
    for part in parts:
        for container in pod["spec"].get(part) or ():
            yield part, container


def _names(named: Sequence[Obj] | None) -> list[str]:
    return [each["name"] for each in named or ()]


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _digest(container: Obj) -> str:
    """Return a short digest of a container's image."""
    return hashlib.sha256(str(container.get("image", "")).encode()).hexdigest()[:16]
