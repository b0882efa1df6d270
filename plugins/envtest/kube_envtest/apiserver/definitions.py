"""Validation of CustomResourceDefinitions, besides that of every object."""

from typing import Any

from kube_envtest.apiserver import schemas
from kube_envtest.apiserver.fields import FieldError, invalid

Obj = dict[str, Any]


def definition_problems(crd: Obj) -> list[FieldError]:
    """Return the problems of a definition: its name, its versions, their schemas."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    versions = spec.get("versions") or []
    found = []
    name = crd["metadata"]["name"]
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if sum(1 for one in versions if one.get("storage")) != 1:
        found.append(invalid("spec.versions", versions, "must have exactly one version marked as storage version"))
    for number, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        path = f"spec.versions[{number}].schema.openAPIV3Schema"
        if schema:
            found.extend(schemas.check(schema, path=path))
    return found
