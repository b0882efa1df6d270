"""What an object says of other objects, as data: where it names or selects them, and what that means.

Kubernetes writes a reference as a name, and perhaps has the kind, the group and the namespace in fields beside it. A
name of a kind that isn't known here doesn't go to the host: as it is, it would be that of an object there which the
tenant may have no part in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from syncer.api.context import Context, Settings
from syncer.api.objects import Key, Resource
from syncer.api.sources import Source


class Shows(Protocol):
    """What lets objects of the host appear in the virtual cluster, under the names that they have there."""

    @property
    def source(self) -> Source:
        """Those of the host's objects that may appear."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the place on the host that a virtual key stands for."""

    def virtual_namespace(self, host: str) -> str:
        """Return the virtual namespace in which objects of a host namespace appear; as it is where they don't."""

    def does_show(self, ctx: Context, key: Key) -> bool:
        """Return True if a virtual key is that of an object of the host that appears."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A kind of which the host's own objects may be named, those that appear in the virtual cluster."""

    resource: Resource
    by: Shows


@dataclass(frozen=True, slots=True)
class Reference:
    """The string at a path is the name of another object, in the same namespace unless a field says another."""

    #: What may be named; with several, the first is meant unless the field ``kind`` says another.
    to: Resource | Shown | tuple[Resource | Shown, ...]
    #: ``used``: what is named is on the host for as long as what names it is synced. ``named``: it is renamed in the
    #: copy, no more. ``made``: the host makes it for the copy, so nothing of that name goes down.
    use: Literal["used", "named", "made"] = "used"
    #: Whether the copy is made only once that of what is named is there. A field ``optional: true`` beside the name
    #: lifts this.
    required: bool = False
    #: The fields beside the name that have the namespace, the kind, and the group or ``apiVersion``; ``""``: none has.
    namespace: str = ""
    kind: str = ""
    group: str = ""
    #: ``key``: the text may also be ``namespace/name``, as annotations have it.
    form: Literal["name", "key"] = "name"

    @property
    def beside(self) -> bool:
        """True if fields beside the name say more about what is named."""
        return bool(self.namespace or self.kind or self.group)

    @property
    def targets(self) -> tuple[Resource | Shown, ...]:
        """All that may be named."""
        return self.to if isinstance(self.to, tuple) else (self.to,)


@dataclass(frozen=True, slots=True)
class Selects:
    """The value at a path selects objects by their labels; in the copy, only those of the same tenant and namespace."""

    resource: Resource
    #: A LabelSelector, of which an empty one selects all; or a mapping of labels, of which an empty one selects none.
    form: Literal["selector", "map"] = "selector"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The string at a path is another one on the host."""

    down: Callable[[Context, str], str]
    #: From the host's string to the virtual one; None: nothing of it can go up.
    up: Callable[[Context, str], str] | None = None


#: What can be said of a path; a resource alone is a :class:`Reference` to it.
Referred: TypeAlias = Resource | Reference | Selects | Rewritten
#: What objects of a kind say of others, by path.
References: TypeAlias = Mapping[str, Referred]


def reference_of(said: Resource | Reference) -> Reference:
    """Return what is said of a path in full."""
    return Reference(said) if isinstance(said, Resource) else said


def resources_of(references: References) -> tuple[Resource, ...]:
    """Return the kinds that are on the host, or not, because something names them; each once."""
    found = (reference_of(each) for each in references.values() if isinstance(each, Resource | Reference))
    targets = (target for each in found if each.use != "named" for target in each.targets)
    return tuple(dict.fromkeys(target for target in targets if isinstance(target, Resource)))
