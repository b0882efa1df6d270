"""Checks of workloads: selectors, templates and immutable fields.

Source: `kubernetes/pkg/apis/{apps,batch}/validation/validation.go`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kube_envtest.apiserver.fields import FieldError, invalid, not_supported, required
from kube_envtest.apiserver.rbac import label_selector
from kube_envtest.apiserver.selectors import SelectorError
from kube_envtest.apiserver.validation_metadata import IMMUTABLE, check_labels
from kube_envtest.apiserver.validation_pods import check_pod_spec

Obj = Mapping[str, Any]

#: The kinds that need a selector, and those whose pods must always be restarted.
_SELECTED = {
    "Deployment": "deployment",
    "ReplicaSet": "replicaset",
    "StatefulSet": "statefulset",
    "DaemonSet": "daemonset",
}


def check_workload(obj: Obj) -> Iterator[FieldError]:
    """Check a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job."""
    spec = obj.get("spec") or {}
    kind = str(obj.get("kind", ""))
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if (spec.get("replicas") or 0) < 0:
        yield invalid("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    selector = spec.get("selector")
    if kind in _SELECTED:
        if selector is None:
            yield required("spec.selector")
            yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
        elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
            yield invalid("spec.selector", selector, f"empty selector is invalid for {_SELECTED[kind]}")
        elif not _selects(selector, labels or {}):
            yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from check_labels(labels or {}, "spec.template.labels")
    pod = template.get("spec") or {}
    yield from check_pod_spec(pod, "spec.template.spec")
    allowed = ("Always",) if kind in _SELECTED else ("OnFailure", "Never")
    if pod.get("restartPolicy") not in allowed:
        yield from _restart(pod.get("restartPolicy"), kind, allowed)


def _restart(found: Any, kind: str, allowed: tuple[str, ...]) -> Iterator[FieldError]:
    path = "spec.template.spec.restartPolicy"
    if kind == "Job":
        options = ", ".join(f'"{one}"' for one in allowed)
        yield required(path, f"valid values: {options}")
    else:
        yield not_supported(path, found, allowed)


def _selects(selector: Obj, labels: Mapping[str, str]) -> bool:
    try:
        return label_selector(selector)(labels)
    except (SelectorError, KeyError):
        return False


def check_selector_change(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check that a workload's selector doesn't change."""
    before = (old.get("spec") or {}).get("selector")
    after = (new.get("spec") or {}).get("selector")
    if before != after:
        yield invalid("spec.selector", after, IMMUTABLE)


def check_job_change(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check that a Job's pod template doesn't change; that of a suspended Job may."""
    before = old.get("spec") or {}
    after = new.get("spec") or {}
    for key in ("selector", "completionMode", "template"):
        if before.get(key) != after.get(key) and not (key == "template" and before.get("suspend")):
            yield invalid(f"spec.{key}", after.get(key), IMMUTABLE)
