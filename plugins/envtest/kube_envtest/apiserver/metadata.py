"""The metadata of every object: fields that the server sets, keeps and refuses."""

from random import Random
from typing import Any
from uuid import UUID

from kube_envtest.apiserver.errors import ApiError, bad_request, details
from kube_envtest.apiserver.resources import ResourceType

Obj = dict[str, Any]

#: Letters of generated names. Source: ``k8s.io/apimachinery/pkg/util/rand``.
NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
NAME_TAIL = 5
LONGEST_BASE = 63 - NAME_TAIL

#: Fields that only the server sets.
SYSTEM_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
)


def random_uid(chance: Random) -> str:
    """Return a uid like the real server's."""
    return str(UUID(int=chance.getrandbits(128), version=4))


def generated(base: str, chance: Random) -> str:
    """Return a name for ``generateName``: cut if too long, with five random characters appended."""
    return base[:LONGEST_BASE] + "".join(chance.choices(NAME_LETTERS, k=NAME_TAIL))


def begin(metadata: Obj, *, now: str, chance: Random) -> None:
    """Remove fields that a client can't set, and set those of a new object."""
    for name in SYSTEM_FIELDS:
        metadata.pop(name, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated(metadata["generateName"], chance)
    metadata["uid"] = random_uid(chance)
    metadata["creationTimestamp"] = now
    drop_empty(metadata)


def drop_empty(metadata: Obj) -> None:
    """Remove fields that the real server omits if empty."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generateName"):
        if name in metadata and not metadata[name]:
            del metadata[name]


def keep(metadata: Obj, old: Obj) -> None:
    """Copy the fields that an update can't change."""
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        if name in old:
            metadata[name] = old[name]
        else:
            metadata.pop(name, None)
    metadata.setdefault("uid", old.get("uid"))
    metadata.pop("selfLink", None)
    drop_empty(metadata)


def match_namespace(rt: ResourceType, metadata: Obj, namespace: str) -> None:
    """Set the namespace of the path if the object has none.

    Raises:
        ApiError: BadRequest: the object has another namespace.
    """
    named = metadata.get("namespace") or ""
    if not rt.namespaced:
        if named:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata.pop("namespace", None)
    elif named and named != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        metadata["namespace"] = namespace


def name_taken(rt: ResourceType, name: str) -> ApiError:
    """Return 409 for a generated name that exists."""
    about = details(rt, name)
    message = (
        f'{rt.full_name} "{name}" already exists, the server was not able to generate a unique name for the object'
    )
    return ApiError(409, "AlreadyExists", message, {**about, "retryAfterSeconds": 1}, headers={"Retry-After": "1"})
