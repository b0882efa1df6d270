"""Objects that an operator on the host creates for copies of custom objects; they appear beside the
virtual objects.

For example, cert-manager's Secrets: a Certificate's ``spec.secretName`` was translated on its way
down, so the Secret is created under the translated name; here it comes up under the virtual name.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from syncer.api import (
    Context,
    Decision,
    FieldPath,
    Index,
    Indexes,
    Key,
    Marks,
    NameTranslator,
    Obj,
    ObjectRef,
    Pair,
    ReferencePaths,
    Resource,
    Settings,
    Side,
    Source,
    Sync,
    Syncer,
    SyncFromHost,
    Watch,
    Watches,
    annotations_of,
    apply,
    delete,
    is_deleting,
    key_of,
    labels_of,
    reasons,
    selectors,
    skip,
    uid_of,
    wait,
)
from syncer.resources.custom.config import NAME, By, Related
from syncer.resources.custom.contents import (
    USUAL,
    exact_of,
    harmless,
    must_be_replaced,
    owned,
    shown,
    top_level,
)
from syncer.resources.custom.mirror import CustomKind
from syncer.resources.custom.references import referred

#: Below the marks' prefix: on a virtual object that came from the host, the host key of its
#: original.
MADE_FROM = "made-from"
#: Most custom objects that are tried for a host object, by name: thousands of a tenant's may name
#: the same one.
MOST_TRIED = 1000


class Belonging(NamedTuple):
    """The owner of a host object: the object's virtual key, and the custom object on both sides."""

    key: Key
    #: True if the custom object is on the host, which must be so before anything is created for it.
    begun: bool
    on: tuple[ObjectRef, ...]


class Belongs(Syncer[Related], SyncFromHost[Related], Sync[Related], Indexes):
    """The host owns the contents of these objects.

    They are deleted when their host object is gone, or no synced custom object claims it any more.
    """

    reverts_virtual_changes = True

    def __init__(
        self, name: str, kind: CustomKind, resource: Resource, by: By, *, marks: Marks
    ) -> None:
        self._kind = kind
        self._by = by
        self._marks = marks
        # Other syncers set these in their class; this one is made from configuration.
        vars(self).update(
            name=name,
            resource=resource,
            host_resource=resource,
            section=kind.section,
            up=owned(resource) or USUAL,
            exact=owned(resource) or USUAL,
            reads=(Source(Side.VIRTUAL, kind.virtual), Source(Side.HOST, kind.host, marked=True)),
        )

    @abstractmethod
    def owners(self, ctx: Context[Related], host: Obj) -> Iterator[tuple[Key, Obj]]:
        """Yield the virtual keys that a host object may have.

        Each comes with the virtual custom object that the object belongs to.
        """

    def indexes(self) -> Sequence[Index]:
        """Return the index of our virtual objects by the host key of their original."""
        ours = Source(Side.VIRTUAL, self.resource, marked=True)
        return [Index(ours, self._by_original, self._made_from)]

    def virtual_key(self, ctx: Context[Related], host: Obj) -> Key | None:
        """Return the key that follows from the custom object that claims the host object.

        If none claims it any more, return the key under which the object has appeared, so that it
        can be deleted there; None if it has not appeared.
        """
        found = self._belonging(ctx, host)
        if found is not None:
            return found.key
        original = str(key_of(host))
        shown = ctx.reader.indexed(Side.VIRTUAL, self.resource, self._by_original, original)
        return min(shown, default=None)

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector of the objects that may appear; no others are watched."""
        selector = self._by.selector
        labels = dict(selector.match_labels)
        expressions = []
        # The value of such a label depends on the owner, so only its key can be selected by.
        for key in selector.named:
            del labels[key]
            expressions.append({"key": key, "operator": "Exists"})
        expressions += selector.plain.get("matchExpressions", [])
        return selectors.written({"matchLabels": labels, "matchExpressions": expressions})

    def sync_from_host(self, ctx: Context[Related], host: Obj) -> Decision:
        """Create the virtual object."""
        found = self._belonging(ctx, host)
        if found is None:
            return skip(reasons.NO_OWNER(self._kind.virtual.kind))
        if not found.begun:
            return wait(reasons.OWNER_ABSENT(self._kind.virtual.kind, " yet"), on=found.on)
        if is_deleting(host):
            return skip(reasons.HOST_ENDS("object"))
        reason = f"the host made it for a {self._kind.virtual.kind}"
        shown = self._shown(ctx, host, found.key)
        decision = apply(virtual=shown, reason=reason, exact=self._exact(host, None))
        return replace(decision, on=found.on)

    def sync(self, ctx: Context[Related], pair: Pair) -> Decision:
        """Update the virtual object while it belongs to a synced custom object."""
        if reason := self._is_anothers(pair.virtual):
            return skip(reason)
        if is_deleting(pair.virtual):
            gone = ObjectRef(Side.VIRTUAL, self.resource, key_of(pair.virtual))
            return wait(reasons.VIRTUAL_ENDS("object"), on=(gone,))

        found = self._belonging(ctx, pair.host)
        if found is None or found.key != key_of(pair.virtual):
            why = f"it doesn't belong to a synced {self._kind.virtual.kind} any more"
            return delete(virtual=pair.virtual, reason=why)
        if not found.begun:
            # A tenant may have set the mark, and the conditions could not be checked.
            return wait(reasons.OWNER_ABSENT(self._kind.virtual.kind, ""), on=found.on)

        virtual = self._shown(ctx, pair.host, found.key)
        if must_be_replaced(self.resource, pair.virtual, virtual):
            why = "it can't be changed to match the host's, so it is replaced"
            return delete(virtual=pair.virtual, reason=why)
        decision = apply(virtual=virtual, exact=self._exact(pair.host, pair.virtual))
        return replace(decision, on=found.on)

    def host_gone(self, ctx: Context[Related], virtual: Obj) -> Decision:
        """Delete the virtual object together with its host object."""
        if reason := self._is_anothers(virtual):
            return skip(reason)
        return delete(virtual=virtual, reason="the host object is gone")

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _by_original(self) -> str:
        """The name of the index of our virtual objects by the host key of their original."""
        return f"{self.name}/from"

    def _belonging(self, ctx: Context[Related], host: Obj) -> Belonging | None:
        """Return the owner of a host object; None if it has none here."""
        if self._is_copy(ctx, host):
            return None
        for key, owner in islice(self.owners(ctx, host), MOST_TRIED):
            if ctx.host_key(key) != key_of(host):
                # It is in another namespace than the copies, so not the tenant's.
                continue
            owner_key = ctx.names.to_host(self._kind.host, key_of(owner))
            there = ctx.host(self._kind.host, owner_key)
            begun = there is not None and ctx.marks.virtual_key(there) == key_of(owner)
            if there is None or not begun or self._holds(there, host):
                virtual = ObjectRef(Side.VIRTUAL, self._kind.virtual, key_of(owner))
                copy = ObjectRef(Side.HOST, self._kind.host, owner_key)
                return Belonging(key, begun, (virtual, copy))
        return None

    def _is_copy(self, ctx: Context, host: Obj) -> bool:
        """Return True for a copy, or a Pod's tokens, of this virtual cluster or another one.

        An operator may copy our labels to its own objects, but not the mark with our copy's name.
        """
        if labels_of(host).get(ctx.marks.cluster, ctx.identity) != ctx.identity:
            return True
        return ctx.marks.is_at_own_key(host, cluster=ctx.identity)

    def _holds(self, owner: Obj, host: Obj) -> bool:
        """Return True if an object's owner and labels are as configured.

        ``owner`` is the custom object on the host.
        """
        owners = {each.get("uid") for each in host["metadata"].get("ownerReferences") or ()}
        if self._by.owner and uid_of(owner) not in owners:
            return False
        if not self._by.selector:
            return True
        selector = self._by.selector.of(owner["metadata"]["name"])
        return selectors.matches(selector, labels_of(host))

    def _shown(self, ctx: Context[Related], host: Obj, key: Key) -> Obj:
        """Return the virtual object of a host object, with notes of its origin."""
        paths = owned(self.resource) or top_level(host)
        virtual = shown(ctx, harmless(host), key, paths)
        notes = {
            ctx.marks.made_for: self.name,
            f"{ctx.marks.prefix}/{MADE_FROM}": str(key_of(host)),
        }
        virtual["metadata"]["annotations"] = {**annotations_of(virtual), **notes}
        return virtual

    def _exact(self, host: Obj, virtual: Obj | None) -> tuple[FieldPath, ...]:
        return owned(self.resource) or exact_of(host, virtual)

    def _made_from(self, virtual: Obj) -> Iterable[str]:
        """Return the host key of the original of a virtual object that this syncer has made."""
        notes = annotations_of(virtual)
        if notes.get(self._marks.made_for) != self.name:
            return ()
        return [notes.get(f"{self._marks.prefix}/{MADE_FROM}", "")]

    def _is_anothers(self, virtual: Obj) -> str:
        """Return the reason why a virtual object isn't this syncer's; ``""`` if it is."""
        made_for = annotations_of(virtual).get(self._marks.made_for)
        if made_for == self.name:
            return ""
        return reasons.ANOTHERS(made_for or "another syncer")


class TranslatedNames(Belongs, Watches):
    """Objects that the custom object names and whose host name is translated, by ``references``."""

    def __init__(
        self,
        name: str,
        kind: CustomKind,
        resource: Resource,
        by: By,
        *,
        marks: Marks,
        names: NameTranslator,
        is_synced: Callable[[Obj], bool],
    ) -> None:
        """``is_synced`` returns True if a virtual custom object has a copy."""
        super().__init__(name, kind, resource, by, marks=marks)
        self._names = names
        self._is_synced = is_synced
        self._references = ReferencePaths({by.reference: referred(by.reference, [resource])})

    def indexes(self) -> Sequence[Index]:
        """Return the index of custom objects by the host keys of the objects that they name."""
        custom_objects = Source(Side.VIRTUAL, self._kind.virtual)
        return [*super().indexes(), Index(custom_objects, self.name, self._host_keys)]

    def watches(self) -> Sequence[Watch]:
        """Requeue the objects that a custom object begins or ceases to name."""
        return [Watch(Source(Side.VIRTUAL, self._kind.virtual), self._named)]

    def owners(self, ctx: Context[Related], host: Obj) -> Iterator[tuple[Key, Obj]]:
        """Yield each custom object that names the host object, with the key that it uses."""
        host_key = key_of(host)
        kind = self._kind.virtual
        for owner in sorted(ctx.reader.indexed(Side.VIRTUAL, kind, self.name, str(host_key))):
            virtual = ctx.virtual(kind, owner)
            if virtual is None:
                continue
            for key in self._keys(virtual):
                if ctx.names.to_host(self.resource, key) == host_key:
                    yield key, virtual

    def _host_keys(self, virtual: Obj) -> Iterable[str]:
        return [str(self._names.to_host(self.resource, key)) for key in self._keys(virtual)]

    def _named(self, virtual: Obj, settings: Settings) -> Iterable[Key]:
        return self._keys(virtual)

    def _keys(self, virtual: Obj) -> Sequence[Key]:
        if self._is_synced(virtual):
            return [key for _, key in self._references.keys(virtual)]
        return ()


class SameNames(Belongs, Watches):
    """Objects that have the same names on both sides, which an operator on the host chooses."""

    def __init__(
        self, name: str, kind: CustomKind, resource: Resource, by: By, *, marks: Marks
    ) -> None:
        super().__init__(name, kind, resource, by, marks=marks)
        named = {}
        if by.reference:
            named[by.reference] = referred(by.reference, [resource])
        self._references = ReferencePaths(named)
        self._labels = {key: _pattern(value) for key, value in by.selector.named.items()}

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same name, in the host namespace of the virtual namespace."""
        if not self.host_resource.namespaced:
            return key
        return Key(settings.names.to_host(self.host_resource, key).namespace, key.name)

    def indexes(self) -> Sequence[Index]:
        """Return the index of custom objects on the host by the names in them."""
        if self._references.is_empty:
            return super().indexes()
        copies = Source(Side.HOST, self._kind.host, marked=True)
        return [*super().indexes(), Index(copies, self.name, self._named)]

    def watches(self) -> Sequence[Watch]:
        """Requeue the objects that a custom object on the host begins or ceases to name.

        Its status may name them, for example.
        """
        if self._references.is_empty:
            return []
        copies = Source(Side.HOST, self._kind.host, marked=True)
        return [Watch(copies, self._beside)]

    def owners(self, ctx: Context[Related], host: Obj) -> Iterator[tuple[Key, Obj]]:
        """Yield each custom object that the host object may belong to.

        Each comes with the virtual key that the object has beside it.
        """
        for owner_key in self._candidates(ctx, host):
            owner = ctx.host(self._kind.host, owner_key)
            if owner is None:
                continue
            virtual = ctx.virtual_of(self._kind.virtual, owner)
            if virtual is None:
                continue
            if annotations_of(owner).get(ctx.marks.uid) == uid_of(virtual):
                yield self._key_beside(key_of(virtual), key_of(host).name), virtual

    def _candidates(self, ctx: Context[Related], host: Obj) -> Iterable[Key]:
        """Return the host keys of custom objects that the object may belong to."""
        kind = self._kind.host
        if self._by.reference:
            return sorted(ctx.reader.indexed(Side.HOST, kind, self.name, str(key_of(host))))

        if self._by.owner:
            owners = host["metadata"].get("ownerReferences") or ()
            names = [each["name"] for each in owners if each.get("kind") == kind.kind]
        else:
            names = []
            labels = labels_of(host)
            for key, pattern in self._labels.items():
                match = pattern.fullmatch(labels.get(key, ""))
                if match:
                    names.append(match["name"])
        namespace = key_of(host).namespace if kind.namespaced else ""
        return [Key(namespace, name) for name in names]

    def _key_beside(self, owner: Key, name: str) -> Key:
        """Return the key of an object beside a virtual custom object."""
        if self.resource.namespaced:
            return Key(owner.namespace, name)
        return Key("", name)

    def _named(self, owner: Obj) -> Iterable[str]:
        return [str(key) for _, key in self._references.keys(owner)]

    def _beside(self, owner: Obj, settings: Settings) -> Iterable[Key]:
        virtual = settings.marks.virtual_key(owner)
        if virtual is None:
            return ()
        return [self._key_beside(virtual, key.name) for _, key in self._references.keys(owner)]


def _pattern(value: str) -> re.Pattern[str]:
    """Return the pattern that finds the owner's name in a label value."""
    first, *others = map(re.escape, value.split(NAME))
    return re.compile(first + "(?P<name>.+)" + "(?P=name)".join(others))
