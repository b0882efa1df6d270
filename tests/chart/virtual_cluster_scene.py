"""The rendered objects of the chart `virtual-cluster`, and values for them."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from chart_rendering import CHARTS, Unrenderable, loaded, rendered

from syncer.api import Obj

CHART = CHARTS / "virtual-cluster"
NAME, WORKLOADS = "shop-virtual-cluster", "shop-virtual-cluster-workloads"
OURS = {"vsyncer.dev/part", "app.kubernetes.io/instance"}
#: All that makes further objects or pods.
EVERYTHING: Mapping[str, Any] = {
    "controlPlane": {"replicas": 3},
    "apiServer": {"audit": {"policy": {"rules": [{"level": "Metadata"}]}}},
    "ingress": {"enabled": True, "host": "shop.example.com"},
    "gateway": {"enabled": True, "host": "shop.example.com", "parentRefs": [{"name": "public"}]},
    "workloads": {"resourceQuota": {"hard": {"pods": "10"}}, "limits": [{"type": "Container"}]},
    "syncer": {
        "podDisruptionBudget": {"enabled": True},
        "plugins": [
            {"name": "foo", "image": "example.org/foo:1", "subPath": "plugin"},
            {"name": "bar", "image": "example.org/bar:1", "subPath": "plugin", "initContainer": {}},
        ],
        "extraRules": {"host": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    },
}


def objects(values: Mapping[str, Any] | None = None, **sections: Any) -> dict[tuple[str, str], Obj]:
    """Return the objects by kind and name."""
    return {(each["kind"], each["metadata"]["name"]): each for each in rendered(CHART, {**(values or {}), **sections})}


def pods(found: Mapping[tuple[str, str], Obj]) -> Iterator[tuple[str, Obj]]:
    """Yield the spec of each pod, also of templates."""
    for (kind, name), obj in found.items():
        spec = obj.get("spec", {})
        spec = spec["jobTemplate"]["spec"] if kind == "CronJob" else spec
        if kind in ("CronJob", "Job", "Deployment", "StatefulSet"):
            yield f"{kind} {name}", spec["template"]["spec"]
        elif kind == "Pod":
            yield f"{kind} {name}", spec


def containers(spec: Obj) -> list[Obj]:
    """Return all containers of a pod."""
    return [*spec.get("initContainers", []), *spec["containers"]]


def config(found: Mapping[tuple[str, str], Obj]) -> Obj:
    """Return the daemon's configuration."""
    made: Obj = yaml.safe_load(found["ConfigMap", f"{NAME}-syncer"]["data"]["syncer.yaml"])
    return made


def in_virtual(found: Mapping[tuple[str, str], Obj]) -> dict[str, list[Obj]]:
    """Return the objects of the virtual cluster, by file."""
    data = found["ConfigMap", f"{NAME}-manifests"]["data"]
    return {name: loaded(text) for name, text in data.items()}


def refusal(values: Mapping[str, Any]) -> str:
    """Return why Helm refuses the values."""
    with pytest.raises(Unrenderable) as caught:
        rendered(CHART, values)
    return str(caught.value)


def selectors(obj: Any) -> Iterator[Obj]:
    """Yield the labels of each selector of pods of the release's own namespace."""
    if isinstance(obj, list):
        for each in obj:
            yield from selectors(each)
    elif isinstance(obj, dict):
        for key, value in obj.items():
            if key in ("selector", "podSelector") and isinstance(value, dict):
                labels = value.get("matchLabels", {} if key == "podSelector" else value)
                labels = {**labels, **{each["key"]: "*" for each in value.get("matchExpressions", ())}}
                if labels:
                    yield labels
            elif key != "template":
                yield from selectors(value)
