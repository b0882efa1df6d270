"""Custom resources that begin on the virtual side: their copies on the host."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from syncer.api import (
    Context,
    Decision,
    FieldPath,
    Key,
    Mirror,
    Obj,
    Pair,
    Reference,
    ReferencePaths,
    Resource,
    Side,
    StateReason,
    SyncUp,
    is_deleting,
    reasons,
    resources_of,
    skip,
    wait,
)
from syncer.resources.custom.config import CustomConfig, NamedSelector


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A custom resource as both sides serve it."""

    name: str
    virtual: Resource
    host: Resource

    @property
    def section(self) -> str:
        """The path of its entry, below ``sync``."""
        return f"custom.{self.name}"

    @property
    def sides(self) -> Mapping[Side, Resource]:
        """The resource by side."""
        return {Side.HOST: self.host, Side.VIRTUAL: self.virtual}


@dataclass(frozen=True, slots=True)
class Ties:
    """The relations of an entry's objects to other objects."""

    #: The names in them, by path, and which of them are translated in the copy.
    references: Mapping[str, Reference] = field(default_factory=dict)
    #: Virtual objects that belong to them: found by labels, and by owner references.
    selected: Sequence[tuple[Resource, NamedSelector]] = ()
    owned: Sequence[Resource] = ()
    #: Names of objects that the host creates for their copies, by path.
    made: Mapping[str, Reference] = field(default_factory=dict)


class CustomToHost(Mirror[CustomConfig]):
    """The virtual side owns the ``down`` paths, the host the ``up`` paths.

    Names at either are translated.
    """

    follows = True

    def __init__(self, kind: CustomKind, options: CustomConfig, ties: Ties) -> None:
        self._options = options
        self._ties = ties
        self._made = ReferencePaths(_going_down(options, ties.made))
        named = resources_of(_going_down(options, ties.references))
        selected = (resource for resource, _ in ties.selected)
        refers_to = dict.fromkeys((*named, *selected))
        known_paths = (*ties.references, *(options.exact or ()), *options.authority)
        # Other syncers set these in their class; this one is made from configuration.
        vars(self).update(
            name=kind.name,
            resource=kind.virtual,
            host_resource=kind.host,
            section=kind.section,
            deletion=options.deletion,
            down=options.down_with(known_paths),
            up=options.up,
            exact=options.exact,
            references=ties.references,
            refers_to=tuple(refers_to),
            owns=tuple(dict.fromkeys(ties.owned)),
        )

    def going_down(self, virtual: Obj) -> Iterable[FieldPath]:
        """Return the configured paths; by default those of all fields that the host doesn't own."""
        return self._options.down_of(virtual)

    def selects(self, virtual: Obj) -> Iterable[tuple[Resource, Obj]]:
        """Return the label selectors of objects that belong to this object."""
        name = virtual["metadata"]["name"]
        return [(resource, selector.of(name)) for resource, selector in self._ties.selected]

    def made_on_host(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return the objects that an operator creates on the host for this object's copy.

        No object of the same name may be copied to the host.
        """
        return self._made.made(virtual)


def _going_down(
    options: CustomConfig,
    references: Mapping[str, Reference],
) -> dict[str, Reference]:
    """Return the references in fields that go to the host."""
    return {path: each for path, each in references.items() if options.goes_down(path)}


class Retained(CustomToHost, SyncUp):
    """Like ``CustomToHost``, but the host copy outlives the virtual object.

    The next virtual object of the same name takes the copy over.
    """

    own_deletion = True
    adopts = True

    def sync_down(self, ctx: Context[CustomConfig], virtual: Obj) -> Decision:
        """Create the host copy, unless the object is being deleted."""
        if is_deleting(virtual):
            return skip(reasons.ORIGINAL_ENDS("object"))
        return super().sync_down(ctx, virtual)

    def deselected(self, ctx: Context[CustomConfig], pair: Pair, reason: str) -> Decision:
        """Leave the copy alone."""
        return skip(self._retained("is no longer selected"))

    def sync(self, ctx: Context[CustomConfig], pair: Pair) -> Decision:
        """Keep both in step; leave the copy alone once the virtual object is being deleted."""
        if is_deleting(pair.virtual):
            return skip(self._retained("is being deleted"))
        if is_deleting(pair.host):
            return wait(reasons.REMADE("host copy"))
        return super().sync(ctx, pair)

    def sync_up(self, ctx: Context, host: Obj) -> Decision:
        """Leave the copy alone."""
        return skip(self._retained("is gone"))

    def _retained(self, why: str) -> StateReason:
        return reasons.COPY_RETAINED(why, self.section)
