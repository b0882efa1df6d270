"""Names of other objects in a custom object: found, and put into the words of the other side.

Kubernetes writes a reference as a mapping: ``name``, and beside it perhaps ``kind`` and ``namespace``. Where a path
ends in ``name``, those two are heeded, and a namespace is translated with the name. A name of a kind that isn't known
here doesn't go to the host: as it is, it would be that of an object there which the tenant may have no part in.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from syncer.api import EACH, Context, Key, Obj, Refused, Resource, Settings, Source, is_within, key_of, path_steps

#: Changes one reference; gives it back as it is where there is nothing to change.
Change = Callable[["Reference"], "Reference"]


class Shows(Protocol):
    """What lets objects of the host appear in the virtual cluster, under the names that they have there."""

    @property
    def source(self) -> Source:
        """Those of the host's objects that may appear."""

    def host_key(self, settings: Settings, key: Key) -> Key:
        """The place on the host that a virtual key stands for."""

    def virtual_namespace(self, host: str) -> str:
        """The virtual namespace in which objects of a host namespace appear; as it is where they don't."""

    def does_show(self, ctx: Context, key: Key) -> bool:
        """Whether a virtual key is that of an object of the host that appears."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind that may be named."""

    resource: Resource
    #: Which of the host's own objects may be named, where it is those and not copies.
    shows: Shows | None = None

    @property
    def renamed(self) -> bool:
        """Whether its names are other ones on the host."""
        return self.shows is None


@dataclass(frozen=True, slots=True)
class Reference:
    """One name in an object, the namespace beside it (``""``: none is given), and what it is the name of."""

    target: Target
    path: str
    name: str
    namespace: str = ""
    #: The kind that stands beside the name, where it is none of those that the path may name.
    other_kind: str = ""

    def key(self, namespace: str) -> Key:
        """The place of what is named by an object in this namespace. Raises Refused where that can't be told."""
        if not self.target.resource.namespaced:
            return Key("", self.name)
        if not (self.namespace or namespace):
            kind = self.target.resource.kind
            raise Refused(f"names the {kind} {self.name} without a namespace, and has none itself", path=self.path)
        return Key(self.namespace or namespace, self.name)


class References:
    """The references at some paths."""

    def __init__(self, targets: Mapping[str, Sequence[Target]]) -> None:
        """``targets`` by path; where there are several, the first is meant unless ``kind`` says another."""
        self.targets = dict(targets)
        self._paths = [_Path(path, kinds) for path, kinds in targets.items()]

    def found(self, obj: Obj) -> list[Reference]:
        """All references in an object, to kinds that are known."""
        result: list[Reference] = []

        def note(reference: Reference) -> Reference:
            if not reference.other_kind:
                result.append(reference)
            return reference

        self.changed(obj, note)
        return result

    def changed(self, obj: Obj, change: Change) -> Obj:
        """The object with its references changed; what isn't changed is shared with the one given."""
        for path in self._paths:
            obj = path.changed(obj, path.steps, change)
        return obj

    def below(self, owners: Iterable[str]) -> "References":
        """Those at or below one of the paths."""
        owned = tuple(owners)
        return References(
            {path: kinds for path, kinds in self.targets.items() if any(is_within(path, owner) for owner in owned)}
        )

    def resources(self) -> tuple[Resource, ...]:
        """What is synced with what names it; each once."""
        every = (target for kinds in self.targets.values() for target in kinds)
        return tuple(dict.fromkeys(target.resource for target in every if target.renamed))

    def shown(self) -> tuple[Source, ...]:
        """What of the host's own may be named; each once."""
        every = (target.shows for kinds in self.targets.values() for target in kinds)
        return tuple(dict.fromkeys(shows.source for shows in every if shows))

    def keys(self, obj: Obj) -> Iterator[tuple[Resource, Key]]:
        """What an object names of the objects that are synced with it."""
        return ((target.resource, key) for target, key in self._every(obj) if target.renamed)

    def named(self, obj: Obj) -> Iterator[tuple[Shows, Key]]:
        """What an object names of the host's own: by what that appears, and under which virtual key."""
        return ((target.shows, key) for target, key in self._every(obj) if target.shows)

    def _every(self, obj: Obj) -> Iterator[tuple[Target, Key]]:
        """What an object names; left out is what doesn't say where it is."""
        own = obj["metadata"].get("namespace", "")
        for found in self.found(obj):
            if own or found.namespace or not found.target.resource.namespaced:
                yield found.target, found.key(own)


def to_host(ctx: Context, virtual: Obj) -> Change:
    """Puts references of a virtual object into the words of the host. Raises Refused as it is called."""
    own = virtual["metadata"].get("namespace", "")

    def change(reference: Reference) -> Reference:
        if reference.other_kind:
            raise Refused(f"names a {reference.other_kind}, and no such kind is synced from there", path=reference.path)
        key = reference.key(own)
        if reference.target.shows:
            return _shown_to_host(ctx, reference.target.shows, reference, key, key_of(virtual))
        place = ctx.names.to_host(reference.target.resource, key)
        return replace(reference, name=place.name, namespace=place.namespace if reference.namespace else "")

    return change


def _shown_to_host(ctx: Context, shows: Shows, reference: Reference, key: Key, owner: Key) -> Reference:
    """A reference to one of the host's own: where the copy is in another namespace, it must say which one."""
    place = shows.host_key(ctx.settings, key)
    if reference.namespace:
        return replace(reference, namespace=place.namespace)
    if place.namespace and place.namespace != ctx.host_key(owner).namespace:
        kind = reference.target.resource.kind
        raise Refused(
            f"names the {kind} {key} without its namespace, which is another one on the host", path=reference.path
        )
    return reference


def to_virtual(ctx: Context, host: Obj, known: Iterable[tuple[Resource, Key]]) -> Change:
    """Puts references of a host object into virtual words. A name that no virtual object stands for stays as it is.

    ``known`` is what the virtual object itself names: a hashed name tells nothing by itself.
    """
    own = host["metadata"].get("namespace", "")
    by_place = {(resource, ctx.names.to_host(resource, key)): key for resource, key in known}

    def change(reference: Reference) -> Reference:
        resource, shows = reference.target.resource, reference.target.shows
        if reference.other_kind or (resource.namespaced and not (own or reference.namespace)):
            return reference
        if shows:
            return replace(reference, namespace=shows.virtual_namespace(reference.namespace))
        place = reference.key(own)
        found = by_place.get((resource, place)) or ctx.names.to_virtual(resource, place)
        if found is None:
            return reference
        return replace(reference, name=found.name, namespace=found.namespace if reference.namespace else "")

    return change


class _Path:
    """One path, and what the strings there may name."""

    def __init__(self, path: str, kinds: Sequence[Target]) -> None:
        self.path, self.steps, self.kinds = path, path_steps(path), kinds
        #: Whether the name stands in a mapping that may say more of what it names.
        self.is_object = self.steps[-1] == "name"

    def changed(self, value: Any, steps: tuple[str, ...], change: Change) -> Any:
        step, rest = steps[0], steps[1:]
        if step == EACH:
            return self._items(value, rest, change)
        if not isinstance(value, dict) or step not in value:
            return value
        if not rest:
            changes = self._reference(value, step, change)
            return {**value, **changes} if changes else value
        below = self.changed(value[step], rest, change)
        return value if below is value[step] else {**value, step: below}

    def _items(self, value: Any, rest: tuple[str, ...], change: Change) -> Any:
        if not isinstance(value, list):
            return value
        if rest:
            items = [self.changed(item, rest, change) for item in value]
        else:
            items = [self._plain(item, change) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items

    def _plain(self, name: Any, change: Change) -> Any:
        return change(Reference(self.kinds[0], self.path, name)).name if name and isinstance(name, str) else name

    def _reference(self, holder: Obj, step: str, change: Change) -> Obj:
        """The fields of the holder that a change of the reference in it changes."""
        name = holder[step]
        if not name or not isinstance(name, str):
            return {}
        kind = holder.get("kind") if self.is_object else None
        namespace = str(holder.get("namespace") or "") if self.is_object else ""
        before = self._said(name, namespace, kind if isinstance(kind, str) else "")
        after = change(before)
        return {
            **({step: after.name} if after.name != before.name else {}),
            **({"namespace": after.namespace} if after.namespace != before.namespace else {}),
        }

    def _said(self, name: str, namespace: str, kind: str) -> Reference:
        target = next((target for target in self.kinds if kind in ("", target.resource.kind)), None)
        return Reference(target or self.kinds[0], self.path, name, namespace, other_kind="" if target else kind)
