"""References as data: the paths at which an object names or selects other objects.

Kubernetes writes a reference as a name, sometimes with the kind, the group and the namespace in
fields beside it. A name of an unknown kind is not copied to the host: untranslated, it would name
an object there that the tenant may have no access to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from syncer.api.context import Context, Settings
from syncer.api.objects import Key, Resource
from syncer.api.sources import Source

#: The ending of the Secrets with Pods' tokens.
TOKENS_ENDING = ".pod-tokens"
#: The endings of names that only the daemon gives to host objects, by resource. No copy has such a
#: name, and no reference may lead to one.
RESERVED_ENDINGS: Mapping[str, tuple[str, ...]] = {"secrets": (TOKENS_ENDING,)}


def reserved_ending(resource: Resource, name: str) -> str:
    """Return the reserved ending of a virtual name; ``""`` if it has none."""
    for ending in RESERVED_ENDINGS.get(str(resource), ()):
        if name.endswith(ending):
            return ending
    return ""


class Shows(Protocol):
    """Makes host objects appear in the virtual cluster under their own names.

    A syncer from the host implements it.
    """

    @property
    def source(self) -> Source:
        """The host objects that may appear."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the host key of a virtual key."""

    def virtual_namespace(self, host: str) -> str:
        """Return the virtual namespace in which objects of a host namespace appear.

        ``host`` itself if they don't appear.
        """

    def does_show(self, ctx: Context, key: Key) -> bool:
        """Return True if a host object appears in the virtual cluster at this virtual key."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A resource; the host's own objects may be named if they appear in the virtual cluster."""

    resource: Resource
    by: Shows


@dataclass(frozen=True, slots=True)
class Reference:
    """The string at a path is the name of another object.

    The object is in the same namespace unless a field beside the name has another one.
    """

    #: The resources that may be named. With several, the first is meant unless the field ``kind``
    #: names another one.
    to: Resource | Shown | tuple[Resource | Shown, ...]
    #: ``used``: the named object is on the host while the object that names it is synced.
    #: ``named``: the name is translated in the copy, nothing else. ``made``: the host makes the
    #: object for the copy, so no object of that name is copied down.
    use: Literal["used", "named", "made"] = "used"
    #: True if the host makes the named object once the copy is there, and no copy of it goes down.
    #: So nothing needs to be there before.
    comes_later: bool = False
    #: True if the copy is not created before the copy of the named object exists. A field
    #: ``optional: true`` beside the name lifts this.
    required: bool = False
    #: The fields beside the name that hold the namespace, the kind, and the group or
    #: ``apiVersion``; ``""`` if there is no such field.
    namespace: str = ""
    kind: str = ""
    group: str = ""
    #: ``key``: the string may also be ``namespace/name``, as in annotations.
    form: Literal["name", "key"] = "name"

    @property
    def beside(self) -> bool:
        """True if fields beside the name have the object's namespace, kind or group."""
        return bool(self.namespace or self.kind or self.group)

    @property
    def targets(self) -> tuple[Resource | Shown, ...]:
        """The resources that may be named, as a tuple."""
        return (self.to,) if isinstance(self.to, Resource | Shown) else self.to


@dataclass(frozen=True, slots=True)
class Selects:
    """The value at a path is a label selector.

    In the copy, it selects only objects of the same tenant and namespace.
    """

    #: The resource of the selected objects.
    resource: Resource
    #: ``selector``: a LabelSelector. ``map``: a mapping of labels.
    form: Literal["selector", "map"] = "selector"
    #: True if an empty mapping of labels selects nothing, as in a Service: it stays empty.
    #: Otherwise it is narrowed too, as it may select everything.
    empty_selects_nothing: bool = False


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The string at a path is translated by functions."""

    #: From the virtual string to the host's.
    down: Callable[[Context, str], str]
    #: From the host's string to the virtual one; None if the string can't be copied up.
    up: Callable[[Context, str], str] | None = None


#: The reference at a path. A resource alone stands for a :class:`Reference` to it.
Referred: TypeAlias = Resource | Reference | Selects | Rewritten
#: The references in objects of a kind, by path.
References: TypeAlias = Mapping[str, Referred]


def reference_of(referred: Resource | Reference) -> Reference:
    """Return the full form of a reference."""
    return Reference(referred) if isinstance(referred, Resource) else referred


def resources_of(references: References) -> tuple[Resource, ...]:
    """Return the resources of objects that are on the host only while something names them.

    Each resource is there once.
    """
    found: dict[Resource, None] = {}
    for referred in references.values():
        if not isinstance(referred, Resource | Reference):
            continue
        reference = reference_of(referred)
        if reference.use == "named":
            continue
        for target in reference.targets:
            if isinstance(target, Resource):
                found[target] = None
    return tuple(found)
