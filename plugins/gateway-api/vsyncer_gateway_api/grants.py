"""Objects that name others in other namespaces of the virtual cluster, by a ReferenceGrant there.

All copies may be in one namespace on the host, where no controller asks for a grant.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, TypeVar

from syncer.api import (
    Config,
    Context,
    Decision,
    Index,
    Indexes,
    Key,
    Mirror,
    Named,
    Obj,
    Pair,
    ReferencePaths,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    delete,
    dig,
    key_of,
    wait,
)
from vsyncer_gateway_api.kinds import GROUP, REFERENCE_GRANTS

#: Entries of ``from`` and of ``to`` in a ReferenceGrant that count, the most that its CRD allows:
#: each pair of them has an entry in an index.
MOST_ENTRIES = 16

ConfigT = TypeVar("ConfigT", bound=Config)


class GrantedMirror(Mirror[ConfigT], Indexes):
    """A mirror whose ``references`` lead to other namespaces only by a ReferenceGrant there.

    A subclass also returns these sources and indexes if it has some of its own.
    """

    #: The kind of the named objects.
    granted: ClassVar[Resource]

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the tenant's ReferenceGrants; it works without them, too."""
        return (self._grants,)

    def indexes(self) -> Sequence[Index]:
        """Return the indexes of ReferenceGrants, and of the objects that need one."""

        def needed(virtual: Obj) -> Iterator[str]:
            for each in elsewhere(self.references_down, virtual):
                yield from _values(key_of(virtual).namespace, each.key)

        def let(grant: Obj) -> Iterator[str]:
            for source, name in given(self.resource, self.granted, grant):
                yield _value(source, key_of(grant).namespace, name)

        return [
            Index(Source(Side.VIRTUAL, self.resource), self.name, needed),
            Index(
                self._grants,
                self.name,
                let,
                optional_with=self.name,
                requeues=self.name,
                keeps=False,
            ),
        ]

    def sync(self, ctx: Context[ConfigT], pair: Pair) -> Decision:
        """Update the copy; delete it if a ReferenceGrant of an object that it names is gone.

        Before the ReferenceGrants could be listed, none is known to be gone.
        """
        on_host = {each.key for each in self.references_down.named(pair.host)}
        for each in self._not_granted(ctx, pair.virtual):
            if ctx.names.to_host(each.resource, each.key) in on_host:
                if not ctx.reader.is_complete(Side.VIRTUAL, REFERENCE_GRANTS):
                    return wait("the ReferenceGrants of the virtual cluster can't be listed yet")
                why = _without_grant(each)
                return delete(host=pair.host, reason=why).warn("RefNotPermitted", why)
        return super().sync(ctx, pair)

    def translate(self, ctx: Context[ConfigT], virtual: Obj) -> Obj:
        """Return the copy.

        Raises:
            Refused: It names an object of another namespace without a grant.
        """
        for each in self._not_granted(ctx, virtual):
            why = _without_grant(each)
            raise Refused(why, path=each.path.removesuffix(".name"), reason="RefNotPermitted")
        return super().translate(ctx, virtual)

    @property
    def _grants(self) -> Source:
        return Source(Side.VIRTUAL, REFERENCE_GRANTS, optional_with=self.name)

    def _not_granted(self, ctx: Context[ConfigT], virtual: Obj) -> Iterator[Named]:
        """Yield the objects in other namespaces that no ReferenceGrant lets it have."""
        for each in elsewhere(self.references_down, virtual):
            if not self._is_granted(ctx, virtual, each.key):
                yield each

    def _is_granted(self, ctx: Context[ConfigT], virtual: Obj, named: Key) -> bool:
        for value in _values(key_of(virtual).namespace, named):
            try:
                found = ctx.reader.indexed(Side.VIRTUAL, REFERENCE_GRANTS, self.name, value)
            except KeyError:  # the virtual cluster doesn't serve ReferenceGrants
                return False
            if found:
                return True
        return False


def elsewhere(names: ReferencePaths, virtual: Obj) -> list[Named]:
    """Return the named objects in other namespaces than the virtual object's own."""
    own = key_of(virtual).namespace
    return [each for each in names.named(virtual) if each.key.namespace != own]


def given(source: Resource, target: Resource, grant: Obj) -> Iterator[tuple[str, str]]:
    """Yield the objects of a kind that a ReferenceGrant lets those of another kind name.

    Args:
        source: The kind of the Gateway API whose objects name others.
        target: The kind of the named objects.
        grant: The ReferenceGrant.

    Yields:
        The namespace of the former and the name of the latter; ``""`` for all names.
    """
    for entry in _entries(grant, "from"):
        namespace = entry.get("namespace")
        of_kind = (entry.get("group"), entry.get("kind")) == (GROUP, source.kind)
        if not of_kind or not isinstance(namespace, str) or not namespace:
            continue
        for named in _entries(grant, "to"):
            name = named.get("name") or ""
            is_target = (named.get("group"), named.get("kind")) == (target.group, target.kind)
            if is_target and isinstance(name, str):
                yield namespace, name


def _entries(grant: Obj, field: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a field of a ReferenceGrant, which may be of any shape."""
    listed = dig(grant, f"spec.{field}")
    if not isinstance(listed, list):
        return
    for each in islice(listed, MOST_ENTRIES):
        if isinstance(each, dict):
            yield each


def _values(own: str, named: Key) -> tuple[str, str]:
    """Return the index values of the grants that let objects of a namespace name an object."""
    return (
        _value(own, named.namespace, named.name),
        _value(own, named.namespace, ""),
    )


def _value(own: str, namespace: str, name: str) -> str:
    return f"{own} {namespace}/{name}"


def _without_grant(named: Named) -> str:
    """Return the reason why an object may not name another one."""
    kind = named.resource.kind
    why = f"no ReferenceGrant in the namespace {named.key.namespace} lets it have"
    return f"{why} the {kind} {named.key.name}: create one, or name a {kind} of its own namespace"
