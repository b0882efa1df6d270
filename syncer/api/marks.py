"""Every label and annotation of ours. They say whose copy an object is; nothing unmarked is ever written or deleted."""

import hashlib
from dataclasses import dataclass, field

from syncer.api.objects import Key, Obj, Resource, annotations_of, labels_of

#: The prefix of all marks unless the configuration says otherwise.
PREFIX = "vsyncer.dev"

#: The longest label value that Kubernetes accepts.
LABEL_LIMIT = 63


@dataclass(frozen=True, slots=True)
class Marks:
    """The names of the marks under one prefix, and what they say about an object."""

    prefix: str = PREFIX
    #: Label on every object that we made, on either side: the virtual cluster that it belongs to.
    cluster: str = field(init=False)
    #: Label on host copies: the virtual namespace, so that selectors can be narrowed to it.
    namespace_label: str = field(init=False)
    #: Annotations on host copies: identity of the virtual object.
    name: str = field(init=False)
    namespace: str = field(init=False)
    uid: str = field(init=False)
    kind: str = field(init=False)
    #: Annotations on host copies: the copy's own place. A copy of our copy, made by a host controller, has them wrong.
    host_name: str = field(init=False)
    host_namespace: str = field(init=False)
    #: Annotation on what we made: the names of the fields that we set, so that we can take back what we no longer say.
    fields: str = field(init=False)
    #: Annotation on a Secret of tokens: when the first of them ends, RFC 3339.
    token_expires: str = field(init=False)
    #: Annotation on host copies: hashes of what we last wanted, for kinds that need to know it. On virtual objects: of
    #: what has gone up, until the copy says so, too.
    base: str = field(init=False)
    #: Annotation on virtual objects: their host copy, where its deletion on the host may mean something.
    copied: str = field(init=False)
    #: Annotation on objects of either side, on virtual Namespaces, and on the note about the virtual cluster: for these
    #: nothing is written. ``"true"`` is a person's; on a copy ``"virtual"`` (its virtual object has a person's) and
    #: ``"namespace"`` (the namespace of that has) are ours.
    paused: str = field(init=False)

    def __post_init__(self) -> None:
        for name, key in (
            ("cluster", "cluster"),
            ("namespace_label", "namespace"),
            ("name", "virtual-name"),
            ("namespace", "virtual-namespace"),
            ("uid", "virtual-uid"),
            ("kind", "virtual-kind"),
            ("host_name", "host-name"),
            ("host_namespace", "host-namespace"),
            ("fields", "fields"),
            ("token_expires", "token-expires"),
            ("base", "base"),
            ("copied", "copied"),
            ("paused", "paused"),
        ):
            object.__setattr__(self, name, f"{self.prefix}/{key}")

    def is_mark(self, key: str) -> bool:
        """Return True if a label or annotation is one of ours, and so none that a tenant may set."""
        return key.startswith(self.prefix + "/")

    def selector(self, cluster: str) -> str:
        """Return the label selector of everything that belongs to one virtual cluster."""
        return f"{self.cluster}={cluster}"

    def labels(self, cluster: str, virtual: Key) -> dict[str, str]:
        """Return the labels of the host copy of a virtual object."""
        marks = {self.cluster: cluster}
        if virtual.namespace:
            marks[self.namespace_label] = virtual.namespace
        return marks

    def annotations(self, resource: Resource, virtual: Obj, host: Key) -> dict[str, str]:
        """Return the annotations of the host copy of a virtual object."""
        metadata = virtual["metadata"]
        marks = {
            self.name: metadata["name"],
            self.uid: metadata.get("uid", ""),
            self.kind: kind_mark(resource),
            self.host_name: host.name,
        }
        if namespace := metadata.get("namespace"):
            marks[self.namespace] = namespace
        if host.namespace:
            marks[self.host_namespace] = host.namespace
        return marks

    def virtual_key(self, host: Obj) -> Key | None:
        """Return the virtual key that a host object's marks name, or None where they name none."""
        annotations = annotations_of(host)
        name = annotations.get(self.name)
        return Key(annotations.get(self.namespace, ""), name) if name else None

    def is_ours(self, host: Obj, *, cluster: str, resource: Resource) -> bool:
        """Return True if a host object is a copy that we made of an object of this
        resource, and not a copy of a copy.
        """
        annotations, metadata = annotations_of(host), host["metadata"]
        return (
            labels_of(host).get(self.cluster) == cluster
            and self.name in annotations
            and annotations.get(self.kind) == kind_mark(resource)
            and annotations.get(self.host_name) == metadata["name"]
            and annotations.get(self.host_namespace, "") == metadata.get("namespace", "")
        )

    def is_from_here(self, obj: Obj, *, cluster: str) -> bool:
        """Return True if an object on the virtual side is one that we put there."""
        return labels_of(obj).get(self.cluster) == cluster


def kind_mark(resource: Resource) -> str:
    """How a resource is written into the kind mark: ``Pod``, ``Ingress.networking.k8s.io``."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def label_value(text: str) -> str:
    """Return the text as a label value, shortened by a hash where it is too long."""
    if len(text) <= LABEL_LIMIT:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: LABEL_LIMIT - 17]}-{digest}"
