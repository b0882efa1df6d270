"""Compiled references: find the names in an object and translate them to the other side, in a single walk."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache

from syncer.api import selectors
from syncer.api.context import Context
from syncer.api.decision import Decision, wait
from syncer.api.errors import Refused
from syncer.api.objects import Json, Key, Obj, ObjectRef, Resource, Side, key_of
from syncer.api.paths import EACH, FieldPath, Steps, Walker, compiled, is_within, path_steps
from syncer.api.references import (
    Reference,
    References,
    Referred,
    Rewritten,
    Selects,
    Shown,
    Shows,
    reference_of,
    reserved_ending,
)
from syncer.api.sources import Source


class Named(NamedTuple):
    """A name that was found in an object."""

    #: The resource of the named object.
    resource: Resource
    #: The virtual key of the named object.
    key: Key
    #: The reference that describes the path.
    reference: Reference
    #: The path of the name.
    path: str
    #: The importer that shows the named object, if it is one of the host's own; otherwise None.
    shows: Shows | None
    #: True if the object has ``optional: true`` beside the name.
    optional: bool


class Untranslated(str):
    """A string of the host that has no translation, such as a name that no virtual object stands for."""

    __slots__ = ()


class ReferencePaths:
    """A table of references, compiled: an object is walked once, however many paths there are."""

    def __init__(self, references: References) -> None:
        """Compile a table.

        Raises:
            ValueError: A path is malformed, or ends in a list although its reference has fields
                beside the name.
        """
        self._table = dict(references)
        self._walk = _walker(self._table)
        known = [reference_of(said) for said in self._table.values() if isinstance(said, Resource | Reference)]
        #: True if the table is empty.
        self.is_empty = not self._table
        #: True if the host makes objects for the copies (``use="made"``).
        self.makes = any(each.use == "made" for each in known)
        self._required = any(each.required for each in known)
        shown = any(isinstance(target, Shown) for each in known for target in each.targets)
        #: True if a reference may delay something: creating a copy, and updating an existing one.
        self.holds_new, self.holds_made = shown or self._required, shown

    def below(self, owners: Iterable[FieldPath]) -> "ReferencePaths":
        """Return the references at or below ``owners``."""
        owned = tuple(owners)
        return ReferencePaths(
            {path: said for path, said in self._table.items() if any(is_within(path, owner) for owner in owned)}
        )

    @property
    def host_copies(self) -> tuple[Source, ...]:
        """The copies of all resources that may be named, without duplicates."""
        known = [reference_of(said) for said in self._table.values() if isinstance(said, Resource | Reference)]
        named = (target for each in known for target in each.targets if isinstance(target, Resource))
        return tuple(dict.fromkeys(Source(Side.HOST, resource, marked=True) for resource in named))

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources to read besides the objects themselves, without duplicates."""
        known = [reference_of(said) for said in self._table.values() if isinstance(said, Resource | Reference)]
        shown = [target.by.source for each in known for target in each.targets if isinstance(target, Shown)]
        waited = [target for each in known if each.required for target in each.targets if isinstance(target, Resource)]
        return tuple(dict.fromkeys((*shown, *(Source(Side.HOST, resource, marked=True) for resource in waited))))

    # -- what is named -----------------------------------------------------------------------------

    def named(self, obj: Obj) -> list[Named]:
        """Return every name in an object, with its virtual key.

        A name whose namespace is unknown is left out, and so is one with a reserved ending.
        """
        finder = _Finder(obj)
        self._walk(obj, finder)
        return finder.found

    def keys(self, obj: Obj) -> list[tuple[Resource, Key]]:
        """Return the named objects that must be on the host while this object is synced (``use="used"``)."""
        return [(one.resource, one.key) for one in self.named(obj) if one.reference.use == "used" and not one.shows]

    def made(self, obj: Obj) -> list[tuple[Resource, Key]]:
        """Return the named objects that the host makes for this object's copy (``use="made"``)."""
        return [(one.resource, one.key) for one in self.named(obj) if one.reference.use == "made"]

    def obstacle(self, ctx: Context, virtual: Obj, *, made: bool = False) -> Decision | None:
        """Return a wait if a named object is not ready, otherwise None.

        A host object that is named must be shown to the tenant, who may use only what they can see.
        The host object itself decides that, because a tenant can put any mark on a virtual object.
        A required object must have its copy, unless the copy of this object exists already
        (``made``).
        """
        if not (self.holds_made if made else self.holds_new):
            return None
        for one in self.named(virtual):
            if one.shows and not one.shows.does_show(ctx, one.key):
                place = one.shows.host_key(ctx.settings, one.key)
                why = f"it names the {one.resource.kind} {one.key}, which is none of those that the host shows"
                return wait(why, on=(ObjectRef(Side.HOST, one.shows.source.resource, place),))
            if one.reference.required and not (made or one.optional or one.shows):
                place = ctx.names.to_host(one.resource, one.key)
                copy = ctx.host(one.resource, place)
                if copy is None or not ctx.marks.is_ours(copy, cluster=ctx.identity, resource=one.resource):
                    why = f"it names the {one.resource.kind} {one.key}, which has no copy on the host yet"
                    return wait(why, on=(ObjectRef(Side.HOST, one.resource, place),))
        return None

    # -- to the other side -------------------------------------------------------------------------

    def to_host(self, ctx: Context, virtual: Obj, obj: Obj) -> Obj:
        """Return ``obj`` with its names translated to the host.

        Args:
            ctx: The context of the decision.
            virtual: The virtual object that the names are from.
            obj: The object to translate. It is not changed; unchanged parts are shared with the
                result.

        Raises:
            Refused: A name has no known translation, or is no text.
            NotYet: A name would lead to an object of the host's own.
        """
        result: Obj = self._walk(obj, _Down(ctx, virtual))
        return result

    def to_virtual(self, ctx: Context, host: Obj, obj: Obj, *, known: Iterable[Named], strict: bool = False) -> Obj:
        """Return ``obj`` with its names translated to the virtual side.

        Args:
            ctx: The context of the decision.
            host: The host object that the names are from.
            obj: The object to translate; not changed.
            known: The names in the virtual object that ``host`` is a copy of. They resolve hashed
                host names, which tell nothing by themselves.
            strict: False: a name without a translation stays as it is. True: it becomes
                :class:`Untranslated`, after the marks of the named copy were tried as well, if it
                is watched.
        """
        result: Obj = self._walk(obj, _Up(ctx, host, known, strict=strict))
        return result


# -- compiling -------------------------------------------------------------------------------------


#: Compiled tables of references that are kept.
_REMEMBERED = 512

#: The walkers of the tables that were compiled last, by path and identity of each reference, with the references,
#: which so keep their identities.
_compiled: LRUCache[tuple[tuple[str, int], ...], tuple[Walker, tuple[Referred, ...]]] = LRUCache(_REMEMBERED)


@dataclass(frozen=True, slots=True)
class _Place:
    """A path with its reference, prepared for many walks."""

    path: str
    reference: Reference
    #: The first of the resources that may be named.
    resource: Resource
    shows: Shows | None
    #: True if the host makes the named object once the copy is there.
    comes_later: bool


class _Said(NamedTuple):
    """A reference found in an object: the name, and the fields beside it."""

    place: _Place
    name: str
    #: ``""`` if there is none; then the object's own namespace is meant.
    namespace: str
    resource: Resource
    shows: Shows | None
    #: The kind that the object names, if the reference doesn't allow it; otherwise ``""``.
    other_kind: str = ""
    optional: bool = False


def _parts(target: Resource | Shown) -> tuple[Resource, Shows | None]:
    return (target.resource, target.by) if isinstance(target, Shown) else (target, None)


def _walker(table: References) -> Walker:
    """Compile a table, or return what the same references were compiled to: each virtual cluster has its own
    tables, made of the same references.
    """
    key = tuple((path, id(said)) for path, said in table.items())
    if key not in _compiled:
        _compiled[key] = compiled(_leaf(path, said) for path, said in table.items()), tuple(table.values())
    return _compiled[key][0]


def _leaf(path: str, said: Referred) -> tuple[Steps, Walker]:
    """Return the steps at which a walk stops for a path, and the walker that is called there."""
    steps = path_steps(path)
    if isinstance(said, Selects):
        return steps, lambda value, words: words.selection(said, path, value)
    if isinstance(said, Rewritten):
        return (
            steps,
            lambda value, words: words.text(said, path, value) if _is_text(value) else words.other(path, value),
        )
    reference = reference_of(said)
    comes_later = reference.comes_later or reference.use == "made"
    place = _Place(path, reference, *_parts(reference.targets[0]), comes_later)
    beside = reference.beside or reference.required
    if not beside and place.shows is None and reference.form == "name":
        return steps, lambda value, words: words.name(place, value) if _is_text(value) else words.other(path, value)
    if steps[-1] != EACH:
        return steps[:-1], lambda holder, words: _in_holder(place, steps[-1], holder, words)
    if beside:
        raise ValueError(f"{path} ends in a list, so that nothing can be beside a name there")
    return steps, lambda value, words: _in_text(place, value, words)


def _is_text(value: Json) -> bool:
    return bool(value) and isinstance(value, str)


def _in_holder(place: _Place, step: str, holder: Json, words: "_Words") -> Json:
    """Translate the name in a mapping, together with the fields beside it."""
    if not isinstance(holder, dict):
        return holder
    if not _is_text(holder.get(step)):
        words.other(place.path, holder.get(step))
        return holder
    reference = place.reference
    if reference.form == "key":
        text = _in_text(place, holder[step], words)
        return holder if text is holder[step] else {**holder, step: text}
    for beside in (reference.kind, reference.group, reference.namespace):
        if beside:
            words.other(place.path, holder.get(beside), f"the {beside} beside it ")
    before = _said(place, holder[step], holder)
    name, namespace = words.said(before)
    changes = {step: name} if name is not before.name else {}
    if namespace != before.namespace:
        changes[reference.namespace] = namespace
    return {**holder, **changes} if changes else holder


def _in_text(place: _Place, text: Json, words: "_Words") -> Json:
    """Translate a name, or ``namespace/name``."""
    if not _is_text(text):
        return words.other(place.path, text)
    namespace, _, name = text.rpartition("/") if place.reference.form == "key" else ("", "", text)
    found, where = words.said(_Said(place, name, namespace, place.resource, place.shows))
    if isinstance(found, Untranslated):
        return Untranslated(text)
    return f"{where}/{found}" if where else found


def _said(place: _Place, name: str, holder: Obj) -> _Said:
    reference = place.reference
    kind, group, namespace = (_text_of(holder, each) for each in (reference.kind, reference.group, reference.namespace))
    optional = reference.required and holder.get("optional") is True
    if reference.group == "apiVersion":
        group = group.rpartition("/")[0] if group else ""
    for target in reference.targets:
        resource, shows = _parts(target)
        if kind in ("", resource.kind) and (group == resource.group or not _text_of(holder, reference.group)):
            return _Said(place, name, namespace, resource, shows, optional=optional)
    other = f"{kind or place.resource.kind}{f' of {group}' if group else ''}"
    return _Said(place, name, namespace, place.resource, None, other, optional)


def _text_of(holder: Obj, field: str) -> str:
    value = holder.get(field) if field else None
    return value if isinstance(value, str) else ""


def _key(said: _Said, own: str) -> Key | None:
    """Return the key of a named object; None if its namespace is unknown.

    ``own`` is the namespace of the object that names it.
    """
    if not said.resource.namespaced:
        return Key("", said.name)
    return Key(said.namespace or own, said.name) if said.namespace or own else None


# -- the purposes of a walk ------------------------------------------------------------------------


class _Words:
    """The purpose of a walk: one method for each kind of reference.

    This base class changes nothing.
    """

    __slots__ = ()

    def name(self, place: _Place, text: str) -> str:
        """Translate a name without fields beside it.

        The usual case, and therefore separate from :meth:`said`.
        """
        return self.said(_Said(place, text, "", place.resource, None))[0]

    def said(self, said: _Said) -> tuple[str, str]:
        """Translate a name with fields beside it. Return the name and the namespace."""
        return said.name, said.namespace

    def selection(self, said: Selects, path: str, value: Json) -> Json:
        """Translate a label selector."""
        return value

    def text(self, said: Rewritten, path: str, value: str) -> str:
        """Translate a ``Rewritten`` string."""
        return value

    def other(self, path: str, value: Json, what: str = "") -> Json:
        """Return a value that may be no text; ``what`` says which, if it isn't the one at the path."""
        return value


class _Finder(_Words):
    """Collects the names."""

    __slots__ = ("_own", "found")

    def __init__(self, obj: Obj) -> None:
        self._own = obj["metadata"].get("namespace", "")
        self.found: list[Named] = []

    def said(self, said: _Said) -> tuple[str, str]:
        key = None if said.other_kind else _key(said, self._own)
        if key is not None and not reserved_ending(said.resource, key.name):
            place = said.place
            self.found.append(Named(said.resource, key, place.reference, place.path, said.shows, said.optional))
        return said.name, said.namespace


class _Down(_Words):
    """Translates the references of a virtual object to the host."""

    __slots__ = ("_ctx", "_own", "_owner", "_refer")

    def __init__(self, ctx: Context, virtual: Obj) -> None:
        self._ctx, self._owner, self._refer = ctx, key_of(virtual), ctx.refer
        self._own = self._owner.namespace

    def name(self, place: _Place, text: str) -> str:
        resource, own = place.resource, self._own
        if (own or not resource.namespaced) and not reserved_ending(resource, text):
            key = Key(own if resource.namespaced else "", text)
            return self._refer(resource, key, comes_later=place.comes_later).name
        return self.said(_Said(place, text, "", resource, None))[0]

    def said(self, said: _Said) -> tuple[str, str]:
        resource, path = said.resource, said.place.path
        if said.other_kind:
            raise Refused(f"names a {said.other_kind}, and no such kind is synced from there", path=path)
        key = _key(said, self._own)
        if key is None:
            raise Refused(f"names the {resource.kind} {said.name} without a namespace, and has none itself", path=path)
        if said.shows:
            return said.name, self._namespace_of_shown(said, said.shows, key)
        if ending := reserved_ending(resource, said.name):
            raise Refused(f"no {resource.kind} may have a name that ends in {ending}", path=path)
        place = self._refer(resource, key, comes_later=said.place.comes_later)
        return place.name, place.namespace if said.namespace else ""

    def _namespace_of_shown(self, said: _Said, shows: Shows, key: Key) -> str:
        """Return the namespace for the name of a host object.

        The name stays as it is. If the copy is in another namespace, the virtual object must say
        which.
        """
        place = shows.host_key(self._ctx.settings, key)
        if said.namespace:
            return place.namespace
        if place.namespace and place.namespace != self._ctx.host_key(self._owner).namespace:
            kind = said.resource.kind
            why = f"names the {kind} {key} without its namespace, which is another one on the host"
            raise Refused(why, path=said.place.path)
        return ""

    def selection(self, said: Selects, path: str, value: Json) -> Json:
        if said.empty_selects_nothing and value == {}:
            return value
        if not selectors.fits(said.form, value):
            raise Refused("is no label selector", path=path)
        key = self._owner if said.resource.namespaced else Key("", self._owner.name)
        return selectors.narrowed_in(said.form, value, self._ctx.marks.labels(self._ctx.identity, key))

    def text(self, said: Rewritten, path: str, value: str) -> str:
        return said.down(self._ctx, value)

    def other(self, path: str, value: Json, what: str = "") -> Json:
        if value is None or isinstance(value, str):
            return value
        why = f"{what}is no text, so it can't be translated to the host; write it as a text, or leave it out"
        raise Refused(why, path=path)


class _Up(_Words):
    """Translates the references of a host object to the virtual side."""

    __slots__ = ("_ctx", "_known", "_own", "_places", "_strict", "_there")

    def __init__(self, ctx: Context, host: Obj, known: Iterable[Named], *, strict: bool) -> None:
        self._ctx, self._own, self._known, self._strict = ctx, key_of(host).namespace, known, strict
        virtual = ctx.marks.virtual_key(host)
        self._there = virtual.namespace if virtual else ""
        #: Virtual keys by host key, computed on first use.
        self._places: dict[tuple[Resource, Key], Key] | None = None

    def said(self, said: _Said) -> tuple[str, str]:
        resource = said.resource
        place = None if said.other_kind else _key(said, self._own)
        if said.shows and place is not None:
            return said.name, said.shows.virtual_namespace(said.namespace)
        key = self._key(resource, place) if place is not None else None
        if key is not None and (said.namespace or not resource.namespaced or key.namespace == self._there):
            return key.name, key.namespace if said.namespace else ""
        return self._unknown(said.name), said.namespace

    def _unknown(self, text: str) -> str:
        return Untranslated(text) if self._strict else text

    def _key(self, resource: Resource, place: Key) -> Key | None:
        """Return the virtual key of a host key: from the known names, from the name itself, or from
        the copy's marks.
        """
        names = self._ctx.names
        if self._places is None:
            self._places = {(one.resource, names.to_host(one.resource, one.key)): one.key for one in self._known}
        found = self._places.get((resource, place)) or names.to_virtual(resource, place)
        return found if found is not None or not self._strict else self._marked(resource, place)

    def _marked(self, resource: Resource, place: Key) -> Key | None:
        ctx = self._ctx
        try:
            copy = ctx.host(resource, place)
        except KeyError:  # not watched
            return None
        if copy is None or not ctx.marks.is_ours(copy, cluster=ctx.identity, resource=resource):
            return None
        key = ctx.marks.virtual_key(copy)
        return key if key is not None and ctx.names.to_host(resource, key) == place else None

    def selection(self, said: Selects, path: str, value: Json) -> Json:
        fits = selectors.fits(said.form, value)
        return selectors.widened_in(said.form, value, self._ctx.marks.is_mark) if fits else value

    def text(self, said: Rewritten, path: str, value: str) -> str:
        return said.up(self._ctx, value) if said.up is not None else self._unknown(value)
