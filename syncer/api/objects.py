"""The basic values: objects, keys, resources, pairs and requests."""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from syncer.api.groups import is_built_in
from syncer.api.values import value_class
from syncer.remembered import REMEMBERED

#: A JSON value, such as a field of an object.
Json = Any
#: A Kubernetes object as the JSON that the API server sent. Nothing is converted, so nothing is
#: lost.
Obj = dict[str, Json]


class Side(StrEnum):
    """One of the two clusters that are kept in step."""

    VIRTUAL = "virtual"
    HOST = "host"

    @property
    def other(self) -> "Side":
        """The opposite side."""
        return Side.HOST if self is Side.VIRTUAL else Side.VIRTUAL


#: The longest name that an API server accepts, a DNS subdomain, in characters.
LONGEST_NAME = 253
#: The longest DNS label, such as the name of a Namespace, and the longest value of a label, in
#: characters.
LONGEST_LABEL = 63


class Key(NamedTuple):
    """Namespace and name of an object. The namespace of a cluster-scoped object is ``""``."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> "Key":
        """Parse ``shop/db`` or, for a cluster-scoped object, ``node-1``."""
        namespace, _, name = text.rpartition("/")
        return cls(namespace, name)


@lru_cache(maxsize=REMEMBERED)
def _is_built_in(api_version: str) -> bool:
    """Return the same for a group and version; cached, as each write asks for it."""
    return is_built_in(api_version.rpartition("/")[0])


class Resource(NamedTuple):
    """A resource: a kind of object, and where the API server serves it.

    A tuple, as tables are keyed by it: its hash takes no call of Python code, of which there would
    be a dozen for each object.
    """

    #: Group and version, such as ``apps/v1``; ``v1`` for the core group.
    api_version: str
    #: The kind, such as ``Deployment``.
    kind: str
    #: The plural in URLs, such as ``deployments``.
    plural: str
    #: False if its objects are cluster-scoped.
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; ``""`` for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def is_built_in(self) -> bool:
        """True for a kind of kube-apiserver, False for a kind of custom resources."""
        return _is_built_in(self.api_version)

    @property
    def version(self) -> str:
        """The version within the group, such as ``v1``."""
        return self.api_version.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, namespace: str = "") -> str:
        """Return the URL path of the collection in a namespace, or of all namespaces for ``""``."""
        root = "/apis" if "/" in self.api_version else "/api"
        if namespace and self.namespaced:
            return f"{root}/{self.api_version}/namespaces/{namespace}/{self.plural}"
        return f"{root}/{self.api_version}/{self.plural}"

    def path(self, key: Key, subresource: str = "") -> str:
        """Return the URL path of an object or of its subresource."""
        path = f"{self.collection(key.namespace)}/{key.name}"
        return f"{path}/{subresource}" if subresource else path


class ObjectRef(NamedTuple):
    """A reference to an object: its side, resource and key."""

    side: Side
    resource: Resource
    key: Key

    def __str__(self) -> str:
        return f"the {self.side} {self.resource.kind} {self.key}"


@value_class
class Pair:
    """The virtual object and the host object of a key that exists on both sides."""

    virtual: Obj
    host: Obj


class SyncRequest(NamedTuple):
    """A queue item: a key of a syncer in a virtual cluster, to be reconciled.

    ``host_key`` is set only if the virtual key doesn't lead to the host object: for objects that
    begin on the host, such as Events, and for a marked object at another key than its virtual key
    translates to.
    """

    cluster: str
    syncer: str
    key: Key
    host_key: Key | None = None

    def __str__(self) -> str:
        return f"{self.syncer} {self.key}"


def key_of(obj: Obj) -> Key:
    """Return the namespace and name of an object."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


def labels_of(obj: Obj) -> Mapping[str, str]:
    """Return the labels of an object; empty if it has none."""
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Obj) -> Mapping[str, str]:
    """Return the annotations of an object; empty if it has none."""
    return obj["metadata"].get("annotations") or {}


def uid_of(obj: Obj) -> str:
    """Return the uid of an object; ``""`` if it has none yet."""
    uid: str = obj["metadata"].get("uid", "")
    return uid


def is_deleting(obj: Obj) -> bool:
    """Return True if the object is marked for deletion and waits for finalizers or its grace
    period.
    """
    return "deletionTimestamp" in obj["metadata"]
