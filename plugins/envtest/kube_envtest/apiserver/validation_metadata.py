"""Checks of `metadata`, the same for every kind.

Source: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kube_envtest.apiserver.fields import FieldError, forbidden, invalid, required, too_long
from kube_envtest.apiserver.syntax import (
    Check,
    dns1123_label,
    dns1123_subdomain,
    label_value,
    path_segment,
    qualified_name,
)

Obj = Mapping[str, Any]

#: Maximum size of all annotations of an object, keys and values, in bytes.
MOST_ANNOTATIONS = 256 * 1024

IMMUTABLE = "field is immutable"

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

#: Kinds whose names aren't DNS subdomains.
_NAMES: Mapping[str, Check] = {
    "Namespace": dns1123_label,
    "Service": dns1123_label,
    "Role": path_segment,
    "RoleBinding": path_segment,
    "ClusterRole": path_segment,
    "ClusterRoleBinding": path_segment,
}


def check_metadata(kind: str, metadata: Obj) -> Iterator[FieldError]:
    """Check the metadata of a new object whose name is generated already."""
    name = metadata.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from check_text(_NAMES.get(kind, dns1123_subdomain), name, "metadata.name")
    if metadata.get("namespace"):
        yield from check_text(dns1123_label, metadata["namespace"], "metadata.namespace")
    yield from _common(metadata)
    yield from _finalizers(metadata.get("finalizers") or ())


def check_metadata_update(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check the metadata of a changed object: immutable fields, and the syntax of the others."""
    if old.get("deletionTimestamp"):
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            shown = "[]string{" + ", ".join(f'"{one}"' for one in extra) + "}"
            why = "no new finalizers can be added if the object is being deleted, found new finalizers " + shown
            yield forbidden("metadata.finalizers", why)
    for key in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(key) != old.get(key):
            yield invalid(f"metadata.{key}", new.get(key), IMMUTABLE)
    yield from _common(new)


def _common(metadata: Obj) -> Iterator[FieldError]:
    yield from check_labels(metadata.get("labels") or {}, "metadata.labels")
    yield from _annotations(metadata.get("annotations") or {})
    yield from _owners(metadata.get("ownerReferences") or ())


def check_text(rule: Check, value: Any, path: str) -> Iterator[FieldError]:
    """Check a string by a rule of syntax."""
    for problem in rule(str(value)):
        yield invalid(path, value, problem)


def check_labels(labels: Obj, path: str) -> Iterator[FieldError]:
    """Check the keys and values of labels, or of a selector made of them."""
    for key, value in labels.items():
        yield from check_text(qualified_name, key, path)
        yield from check_text(label_value, value, path)


def _finalizers(finalizers: Iterable[str]) -> Iterator[FieldError]:
    for index, finalizer in enumerate(finalizers):
        yield from check_text(qualified_name, finalizer, "metadata.finalizers")
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", finalizer, why)


def _annotations(annotations: Obj) -> Iterator[FieldError]:
    size = 0
    for key, value in annotations.items():
        # The API server lowers the case first: the prefix of an annotation may be CamelCase.
        for problem in qualified_name(key.lower()):
            yield invalid("metadata.annotations", key, problem)
        size += len(key.encode()) + len(str(value).encode())
    if size > MOST_ANNOTATIONS:
        yield too_long("metadata.annotations", MOST_ANNOTATIONS)


def _owners(owners: Iterable[Obj]) -> Iterator[FieldError]:
    path = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        if not owner.get("apiVersion"):
            yield invalid(f"{path}.apiVersion", "", "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield invalid(f"{path}.{key}", "", "must not be empty")
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                why = 'Only one reference can have Controller set to true. Found "true" in references for '
                yield invalid(path, list(owners), f"{why}{controller} and {this}")
            controller = controller or this
