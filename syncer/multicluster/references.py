"""Owners of objects: in the same cluster by an owner reference, in another one by an annotation."""

import json
from dataclasses import dataclass

from syncer.api.objects import Json, Obj, Resource, annotations_of, uid_of
from syncer.multicluster.requests import Request

#: The annotation of a cross-cluster reference.
REFERENCE_ANNOTATION = "vsyncer.dev/controller-reference"
#: The same as read and written by admiralty's multicluster-controller.
ADMIRALTY_REFERENCE_ANNOTATION = "multicluster.admiralty.io/controller-reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerReference:
    """A reference to the controlling owner of an object, in another cluster."""

    cluster: str
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    block_owner_deletion: bool = True

    @classmethod
    def to(cls, owner: Obj, *, cluster: str) -> "ControllerReference":
        """Return the reference to an object of a cluster."""
        metadata = owner["metadata"]
        return cls(
            cluster=cluster,
            api_version=owner["apiVersion"],
            kind=owner["kind"],
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=uid_of(owner),
        )

    @classmethod
    def of(
        cls,
        obj: Obj,
        *,
        annotation: str = REFERENCE_ANNOTATION,
    ) -> "ControllerReference | None":
        """Return the reference in an object's annotation; None if there is none, or it is
        malformed.
        """
        text = annotations_of(obj).get(annotation)
        if not text:
            return None
        try:
            found = json.loads(text)
            reference = cls(
                cluster=_text(found["clusterName"]),
                api_version=_text(found["apiVersion"]),
                kind=_text(found["kind"]),
                namespace=_text(found.get("namespace", "")),
                name=_text(found["name"]),
                uid=_text(found.get("uid", "")),
                block_owner_deletion=found.get("blockOwnerDeletion") is True,
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return reference if found.get("controller") is True else None

    def annotation(self) -> str:
        """Return the value of the annotation."""
        return json.dumps(
            {
                "apiVersion": self.api_version,
                "kind": self.kind,
                "name": self.name,
                "uid": self.uid,
                "controller": True,
                "blockOwnerDeletion": self.block_owner_deletion,
                "clusterName": self.cluster,
                "namespace": self.namespace,
            }
        )

    def put_on(self, obj: Obj, *, annotation: str = REFERENCE_ANNOTATION) -> Obj:
        """Return an object with this reference in its annotations."""
        metadata = obj.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), annotation: self.annotation()}
        return {**obj, "metadata": {**metadata, "annotations": annotations}}

    @property
    def request(self) -> Request:
        """The request of the owner."""
        return Request(self.cluster, self.namespace, self.name)


def owner_of(
    obj: Obj,
    owners: Resource,
    *,
    cluster: str,
    annotation: str = REFERENCE_ANNOTATION,
) -> Request | None:
    """Return the request of the object's controlling owner, if it is of a resource.

    An owner in the same cluster comes first, by ``ownerReferences``, then one in another cluster,
    by the annotation. Versions of the resource's group count as equal.
    """
    for each in obj["metadata"].get("ownerReferences") or ():
        if each.get("controller") is True:
            if _is_of(each.get("apiVersion"), each.get("kind"), owners):
                namespace = ""
                if owners.namespaced:
                    namespace = obj["metadata"].get("namespace", "")
                return Request(cluster, namespace, each["name"])
            return None
    reference = ControllerReference.of(obj, annotation=annotation)
    if reference is None or not _is_of(reference.api_version, reference.kind, owners):
        return None
    return reference.request


def _is_of(api_version: Json, kind: Json, resource: Resource) -> bool:
    group = str(api_version).rpartition("/")[0]
    return kind == resource.kind and group == resource.group


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a reference consists of texts")
    return value
