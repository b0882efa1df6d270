"""URL paths of the Kubernetes API: from resource and key to a path, and back."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from syncer.api.objects import Key, Resource

_plain = re.compile(r"[A-Za-z0-9._:~-]+").fullmatch
_rooted = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)/(?P<rest>.+)").fullmatch
#: Subresources of a Namespace; any other word behind its name is a collection in it, as in
#: k8s.io/apiserver.
_OF_NAMESPACES = ("status", "finalize")


def object_path(resource: Resource, key: Key, subresource: str = "") -> str:
    """Return the path of an object.

    Names of some kinds may contain characters with a meaning in URLs, which are quoted.
    """
    if not _plain(key.name):
        key = Key(key.namespace, quote(key.name, safe=":"))
    return resource.path(key, subresource)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a path: an object, its subresource, or with an empty name a collection.

    ``root`` is the part up to the version, ``/api/v1`` or ``/apis/apps/v1``.
    """

    root: str
    group: str
    plural: str
    key: Key
    subresource: str = ""

    @classmethod
    def of(cls, path: str) -> "Target | None":
        """Parse a path, with or without a query; None if it is no resource, like ``/version``."""
        path = path.partition("?")[0]
        found = _rooted(path)
        if found is None:
            return None
        steps = found["rest"].split("/")
        namespace = ""
        if steps[0] == "namespaces" and len(steps) > 2 and steps[2] not in _OF_NAMESPACES:
            namespace = steps[1]
            steps = steps[2:]
        plural, name, *below = (*steps, "")[: max(len(steps), 2)]
        root = path.removesuffix(found["rest"]).rstrip("/")
        return cls(
            root,
            found["group"] or "",
            plural,
            Key(namespace, unquote(name)),
            "/".join(below),
        )

    @property
    def path(self) -> str:
        """The path of the object itself, without a subresource."""
        space = f"/namespaces/{self.key.namespace}" if self.key.namespace else ""
        return f"{self.root}{space}/{self.plural}/{quote(self.key.name, safe=':')}"

    def __str__(self) -> str:
        text = self.plural
        if self.group:
            text += f".{self.group}"
        if self.subresource:
            text += f"/{self.subresource}"
        return f"{text} {self.key}"
