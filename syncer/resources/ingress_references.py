"""What an Ingress refers to by name."""

from collections.abc import Iterable

from syncer.api import Key, Obj, Paths, Resource
from syncer.resources.kinds import SECRETS, SERVICES

#: Paths below an Ingress's ``spec`` whose strings are names in the Ingress's namespace, with what they name.
NAMES: Paths[Resource] = Paths(
    {
        "defaultBackend.service.name": SERVICES,
        "rules[].http.paths[].backend.service.name": SERVICES,
        "tls[].secretName": SECRETS,
    }
)


def references(ingress: Obj) -> Iterable[tuple[Resource, Key]]:
    """Everything that an Ingress names, in its own namespace."""
    namespace = ingress["metadata"].get("namespace", "")
    return {(kind, Key(namespace, name)) for kind, name in NAMES.found(ingress.get("spec") or {})}
