"""Marks: our labels and annotations.

They identify the original of a copy; an unmarked object is never written or deleted.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache

from syncer.api.objects import LONGEST_LABEL, Key, Obj, Resource, annotations_of, labels_of
from syncer.remembered import REMEMBERED

#: The prefix of all marks unless the configuration sets another.
PREFIX = "vsyncer.dev"
#: The label of a Secret with the kubeconfig of a virtual cluster; the annotations with the name of
#: that, instead of the Secret's, and with its host namespace, instead of the first that is assigned
#: to the Secret's namespace.
CLUSTER_SECRET = f"{PREFIX}/virtual-cluster"
CLUSTER_SECRET_NAME = f"{CLUSTER_SECRET}-name"
CLUSTER_SECRET_HOME = f"{CLUSTER_SECRET}-host-namespace"


@dataclass(frozen=True, slots=True)
class Marks:
    """The names of our labels and annotations under a prefix, and questions about the marks of an
    object.
    """

    prefix: str = PREFIX
    #: Label on every object that we made, on either side: the identity of the virtual cluster.
    cluster: str = field(init=False)
    #: Label on host copies: the virtual namespace, so that a selector can be narrowed to it.
    namespace_label: str = field(init=False)
    #: Labels on host copies of Pods, with the value ``"true"``: the tenant's NetworkPolicies decide
    #: who may connect to the Pod, and to whom it may. Unlike other marks, they go again.
    isolated_ingress: str = field(init=False)
    isolated_egress: str = field(init=False)
    #: Annotations on host copies: the identity of the virtual object.
    name: str = field(init=False)
    namespace: str = field(init=False)
    uid: str = field(init=False)
    kind: str = field(init=False)
    #: Annotations on host copies: the copy's own name and namespace. If a host controller copies
    #: our copy, they don't match, so the second copy is not taken for ours.
    host_name: str = field(init=False)
    host_namespace: str = field(init=False)
    #: Annotation with the name of the syncer that made an object: on virtual objects that came from
    #: the host, and on host objects that are no copies proper.
    made_for: str = field(init=False)
    #: Annotation on objects that we made: the names of the fields that we set, so that a field that
    #: we no longer set can be removed.
    fields: str = field(init=False)
    #: Annotation on a Secret with tokens: the expiry of the first of them to expire, RFC 3339.
    token_expires: str = field(init=False)
    #: Annotation on host copies: hashes of the last wanted values, for kinds with three-way merge.
    #: On virtual objects: hashes of the values copied up, until the host copy records them too.
    base: str = field(init=False)
    #: Annotation on virtual objects, where ``onHostDeletion`` is not ``recreate``: the uid of the
    #: copy, the uid of the virtual object, and the time at which the copy was created.
    copied: str = field(init=False)
    #: Annotation on a virtual Service that doesn't have the addresses of its copy yet: the known
    #: addresses, and its spec while it is changed.
    address: str = field(init=False)
    #: Annotation that pauses writes: on objects of either side, on virtual Namespaces, and on the
    #: ConfigMap that represents the virtual cluster. A user sets ``"true"``; on a copy, we set
    #: ``"virtual"`` (its virtual object is paused) or ``"namespace"`` (its virtual namespace is
    #: paused).
    paused: str = field(init=False)

    def __post_init__(self) -> None:
        for name, key in (
            ("cluster", "cluster"),
            ("namespace_label", "namespace"),
            ("isolated_ingress", "isolated-ingress"),
            ("isolated_egress", "isolated-egress"),
            ("name", "virtual-name"),
            ("namespace", "virtual-namespace"),
            ("uid", "virtual-uid"),
            ("kind", "virtual-kind"),
            ("host_name", "host-name"),
            ("host_namespace", "host-namespace"),
            ("made_for", "made-for"),
            ("fields", "fields"),
            ("token_expires", "token-expires"),
            ("base", "base"),
            ("copied", "copied"),
            ("address", "address"),
            ("paused", "paused"),
        ):
            object.__setattr__(self, name, f"{self.prefix}/{key}")

    def is_mark(self, key: str) -> bool:
        """Return True if a label or annotation key is a mark, which a tenant may not set."""
        return key.startswith(self.prefix + "/")

    def selector(self, cluster: str) -> str:
        """Return the label selector for all objects of a virtual cluster; ``cluster`` is its
        identity.
        """
        return f"{self.cluster}={cluster}"

    def labels(self, cluster: str, virtual: Key) -> dict[str, str]:
        """Return the label marks of the host copy of a virtual object."""
        marks = {self.cluster: cluster}
        if virtual.namespace:
            marks[self.namespace_label] = virtual.namespace
        return marks

    def annotations(
        self, resource: Resource, virtual: Obj, host: Key, *, made_for: str = ""
    ) -> dict[str, str]:
        """Return the annotation marks of the host copy of a virtual object.

        ``made_for`` is the syncer of an object that is no copy proper; ``""`` for a copy.
        """
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
        if made_for:
            marks[self.made_for] = made_for
        return marks

    def virtual_key(self, host: Obj) -> Key | None:
        """Return the virtual key in a host object's marks, or None if there is none."""
        annotations = annotations_of(host)
        name = annotations.get(self.name)
        return Key(annotations.get(self.namespace, ""), name) if name else None

    def is_ours(self, host: Obj, *, cluster: str, resource: Resource, made_for: str = "") -> bool:
        """Return True if a host object is our copy of an object of this resource.

        A copy of our copy, made by a host controller, is not: its ``host_name`` mark differs from
        its name. With ``made_for``, return True for an object of this syncer instead, which is no
        copy proper.
        """
        if not self.is_at_own_key(host, cluster=cluster):
            return False
        annotations = annotations_of(host)
        if annotations.get(self.made_for, "") != made_for:
            return False
        return annotations.get(self.kind) == kind_mark(resource)

    def is_at_own_key(self, host: Obj, *, cluster: str) -> bool:
        """Return True if a host object has the marks of a copy of ours at its own key.

        The copy may be of any resource.
        """
        metadata = host["metadata"]
        labels = metadata.get("labels")
        annotations = metadata.get("annotations")
        return (
            bool(labels and annotations)
            and labels.get(self.cluster) == cluster
            and self.name in annotations
            and annotations.get(self.host_name) == metadata["name"]
            and annotations.get(self.host_namespace, "") == metadata.get("namespace", "")
        )

    def is_set(self, host: Obj, *path: str) -> bool:
        """Return True if we set a field of a host object, by the names that are noted on it.

        Others may set fields, too: a load balancer's controller, or a user of the host.
        """
        try:
            names = json.loads(annotations_of(host).get(self.fields, "{}"))
        except ValueError:
            return False
        for step in path:
            if not isinstance(names, dict) or step not in names:
                return False
            names = names[step]
        return True

    def is_from_here(self, obj: Obj, *, cluster: str) -> bool:
        """Return True if an object on the virtual side was put there by us."""
        return labels_of(obj).get(self.cluster) == cluster


@lru_cache(maxsize=REMEMBERED)
def kind_mark(resource: Resource) -> str:
    """Format a resource for the ``kind`` mark: ``Pod``, ``Ingress.networking.k8s.io``."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def label_value(text: str) -> str:
    """Return the text as a label value.

    A text over 63 characters is cut and gets a hash as its end.
    """
    if len(text) <= LONGEST_LABEL:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: LONGEST_LABEL - 17]}-{digest}"
