"""A group of custom resources for the tests of definitions."""

from typing import Any

from contract_client import Api

Obj = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "replicas": {"type": "integer"},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {"port": {"type": "integer"}, "name": {"type": "string"}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "phase": {"type": "string"},
            },
        },
    },
}

COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]

SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def version(name: str, *, storage: bool, **options: Any) -> Obj:
    schema = {"openAPIV3Schema": SCHEMA}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **options}


def definition(group: str, *versions: Obj, kind: str = "Widget", plural: str = "widgets") -> Obj:
    names = {"kind": kind, "plural": plural, "shortNames": ["wd"], "categories": ["gadgets"]}
    body = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions)}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": body}


def established(api: Api, crd: str) -> bool:
    conditions = api.get(f"{CRDS}/{crd}")["status.conditions"] or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def serve(api: Api) -> str:
    """Return a group with widgets in v1 (stored) and v2."""
    name = api.name("g") + ".example.com"
    parts = {"status": {}, "scale": SCALE}
    first = version("v1", storage=True, subresources=parts, additionalPrinterColumns=COLUMNS)
    api.make(CRDS, definition(name, first, version("v2", storage=False)))
    api.eventually(lambda: established(api, f"widgets.{name}"))
    api.eventually(lambda: api.get(f"/apis/{name}/v1/widgets").status == 200)
    api.eventually(lambda: api.get(f"/apis/{name}/v2/widgets").status == 200)
    return name


def path(group: str, ns: str, name: str = "", *, version: str = "v1", part: str = "") -> str:
    base = f"/apis/{group}/{version}/namespaces/{ns}/widgets"
    return base + (f"/{name}" if name else "") + (f"/{part}" if part else "")


def widget(group: str, name: str = "a", *, version: str = "v1", **spec: Any) -> Obj:
    body = {"apiVersion": f"{group}/{version}", "kind": "Widget", "metadata": {"name": name}}
    return {**body, "spec": {"size": 3, **spec}}
