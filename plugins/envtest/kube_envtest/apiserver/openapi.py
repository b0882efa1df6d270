"""OpenAPI documents with the parts that kubectl reads: parameters of paths, and schemas without details."""

from collections.abc import Iterable
from hashlib import sha512
from typing import Any

from kube_envtest.apiserver.resources import Registry, ResourceType

Obj = dict[str, Any]

INFO: Obj = {"title": "Kubernetes", "version": "v1.36.0"}

#: Without strategic merge patches: kubectl would build them from these schemas, which have no
#: details. Unlisted, it uses its own knowledge of the built-in kinds, which is right.
PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")

QUERY = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


def index(registry: Registry) -> Obj:
    """Return ``/openapi/v3``: the document of each group and version."""
    bases = dict.fromkeys(rt.base_path.strip("/") for rt in registry.all())
    paths = {}
    for base in bases:
        kinds = ",".join(sorted(rt.kind for rt in registry.all() if rt.base_path.strip("/") == base))
        digest = sha512(f"{base}:{kinds}".encode()).hexdigest().upper()
        paths[base] = {"serverRelativeURL": f"/openapi/v3/{base}?hash={digest}"}
    return {"paths": paths}


def version_3(types: Iterable[ResourceType]) -> Obj:
    """Return the document of a group and version."""
    paths: Obj = {}
    schemas: Obj = {}
    for rt in types:
        schemas[schema_name(rt)] = _schema(rt)
        paths |= _paths(rt)
    return {"openapi": "3.0.0", "info": INFO, "paths": paths, "components": {"schemas": schemas}}


def version_2(registry: Registry) -> Obj:
    """Return ``/openapi/v2``: the same for old clients."""
    definitions = {schema_name(rt): _schema(rt) for rt in registry.all()}
    paths: Obj = {}
    for rt in registry.all():
        for path, item in _paths(rt).items():
            paths[path] = {verb: _version_2(operation) for verb, operation in item.items()}
    return {"swagger": "2.0", "info": INFO, "paths": paths, "definitions": definitions}


def schema_name(rt: ResourceType) -> str:
    """Return the name of a kind's schema."""
    reverse = ".".join(reversed(rt.group.split("."))) if "." in rt.group else f"io.k8s.api.{rt.group or 'core'}"
    return f"{reverse}.{rt.version}.{rt.kind}"


def _kind(rt: ResourceType) -> Obj:
    return {"group": rt.group, "version": rt.version, "kind": rt.kind}


def _schema(rt: ResourceType) -> Obj:
    named = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    extra = {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-group-version-kind": [_kind(rt)]}
    return {"type": "object", "properties": named, **extra}


def _paths(rt: ResourceType) -> Obj:
    namespace = "{namespace}" if rt.namespaced else ""
    collection = rt.path(namespace)
    one = rt.path(namespace, "{name}")
    paths: Obj = {collection: {}, one: {}}
    for verb, (path, method, action) in METHODS.items():
        if verb in rt.verbs:
            paths[one if path == "one" else collection][method] = _operation(rt, action, method)
    return {path: operations for path, operations in paths.items() if operations}


METHODS = {
    "list": ("all", "get", "list"),
    "create": ("all", "post", "post"),
    "deletecollection": ("all", "delete", "deletecollection"),
    "get": ("one", "get", "get"),
    "update": ("one", "put", "put"),
    "patch": ("one", "patch", "patch"),
    "delete": ("one", "delete", "delete"),
}


def _operation(rt: ResourceType, action: str, method: str) -> Obj:
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in QUERY]
    operation: Obj = {
        "parameters": parameters if method in ("post", "put", "patch", "delete") else [],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(rt),
    }
    if method == "patch":
        operation["requestBody"] = {"content": {form: {"schema": {"type": "object"}} for form in PATCHES}}
    return operation


def _version_2(operation: Obj) -> Obj:
    parameters = [
        {"name": one["name"], "in": "query", "type": "string"} for one in operation["parameters"] if "schema" in one
    ]
    kept = {key: value for key, value in operation.items() if key != "requestBody"}
    return {**kept, "parameters": parameters}
