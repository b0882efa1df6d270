"""References as they are found in an object, and put into the words of the other side: one walk for all paths."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from syncer.api import selectors
from syncer.api.context import Context
from syncer.api.decision import Decision, wait
from syncer.api.errors import Refused
from syncer.api.objects import Json, Key, Obj, ObjectRef, Resource, Side, key_of
from syncer.api.paths import EACH, FieldPath, Steps, Walker, compiled, is_within, path_steps
from syncer.api.references import Reference, References, Referred, Rewritten, Selects, Shown, Shows, reference_of
from syncer.api.sources import Source


class Named(NamedTuple):
    """One name that was found in an object: of what, and what is said of it."""

    resource: Resource
    key: Key
    reference: Reference
    path: str
    #: By what the host shows it, where it is one of the host's own.
    shows: Shows | None
    #: Whether the object itself says that it can do without.
    optional: bool


class Untranslated(str):
    """Text of the host for which there is none in virtual words: a name that no virtual object stands for, say."""

    __slots__ = ()


class ReferencePaths:
    """The references at some paths, compiled: an object is walked once, however many there are."""

    def __init__(self, references: References) -> None:
        """Compile a table.

        Raises:
            ValueError: A path is none, or ends where a reference with fields beside it can't be.
        """
        self._table = dict(references)
        self._walk = compiled(_leaf(path, said) for path, said in self._table.items())
        known = [reference_of(said) for said in self._table.values() if isinstance(said, Resource | Reference)]
        #: Whether there is none.
        self.is_empty = not self._table
        #: Whether the host makes something for the copies.
        self.makes = any(each.use == "made" for each in known)
        self._required = any(each.required for each in known)
        shown = any(isinstance(target, Shown) for each in known for target in each.targets)
        #: Whether anything has to be waited for: before a copy is made, and once it is there.
        self.holds_new, self.holds_made = shown or self._required, shown

    def below(self, owners: Iterable[FieldPath]) -> "ReferencePaths":
        """Return those at or below one of the paths."""
        owned = tuple(owners)
        return ReferencePaths(
            {path: said for path, said in self._table.items() if any(is_within(path, owner) for owner in owned)}
        )

    @property
    def host_copies(self) -> tuple[Source, ...]:
        """The copies of all that may be named; each once."""
        known = [reference_of(said) for said in self._table.values() if isinstance(said, Resource | Reference)]
        named = (target for each in known for target in each.targets if isinstance(target, Resource))
        return tuple(dict.fromkeys(Source(Side.HOST, resource, marked=True) for resource in named))

    @property
    def sources(self) -> tuple[Source, ...]:
        """What has to be read besides the objects themselves; each once."""
        known = [reference_of(said) for said in self._table.values() if isinstance(said, Resource | Reference)]
        shown = [target.by.source for each in known for target in each.targets if isinstance(target, Shown)]
        waited = [target for each in known if each.required for target in each.targets if isinstance(target, Resource)]
        return tuple(dict.fromkeys((*shown, *(Source(Side.HOST, resource, marked=True) for resource in waited))))

    # -- what is named ---------------------------------------------------------------------------------------------

    def named(self, obj: Obj) -> list[Named]:
        """Return every name in an object, in the object's own words; left out is what doesn't say where it is."""
        finder = _Finder(obj)
        self._walk(obj, finder)
        return finder.found

    def keys(self, obj: Obj) -> list[tuple[Resource, Key]]:
        """Return what an object names of what is on the host for as long as it is synced."""
        return [(one.resource, one.key) for one in self.named(obj) if one.reference.use == "used" and not one.shows]

    def made(self, obj: Obj) -> list[tuple[Resource, Key]]:
        """Return what an object names that the host makes for its copy."""
        return [(one.resource, one.key) for one in self.named(obj) if one.reference.use == "made"]

    def obstacle(self, ctx: Context, virtual: Obj, *, made: bool = False) -> Decision | None:
        """Return a wait while something that the object names isn't as it must be.

        What it names of the host's own must be shown: a tenant may use what they see, and no more. It is the host's
        own object that says so, as on a virtual one a tenant can put any mark. What is required must have its copy
        unless the object's own copy is ``made``.
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

    # -- in the words of the other side ----------------------------------------------------------------------------

    def to_host(self, ctx: Context, virtual: Obj, obj: Obj) -> Obj:
        """Return an object with its names in the host's words; ``virtual`` is whose they are.

        What is given isn't changed; what isn't changed is shared with it.

        Raises:
            Refused: It can't be said what a name would be on the host.
        """
        result: Obj = self._walk(obj, _Down(ctx, virtual))
        return result

    def to_virtual(self, ctx: Context, host: Obj, obj: Obj, *, known: Iterable[Named], strict: bool = False) -> Obj:
        """Return an object with its names in virtual words; ``host`` is whose they are.

        ``known`` is what the virtual object names that it is the copy of: a hashed name tells nothing by itself. A
        name that no virtual object stands for stays as it is; with ``strict`` it is then an :class:`Untranslated`,
        and the marks of the copy that it names are asked, too, where that is watched.
        """
        result: Obj = self._walk(obj, _Up(ctx, host, known, strict=strict))
        return result


# -- compiling ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """What is said of one path, ready to be asked again and again."""

    path: str
    reference: Reference
    #: The first of what may be named.
    resource: Resource
    shows: Shows | None


class _Said(NamedTuple):
    """A reference as an object has it: the name, and what the fields beside it say."""

    place: _Place
    name: str
    #: ``""``: none is given, so that the object's own is meant.
    namespace: str
    resource: Resource
    shows: Shows | None
    #: The kind that is said, where it is none of those that may be named.
    other_kind: str = ""
    optional: bool = False


def _parts(target: Resource | Shown) -> tuple[Resource, Shows | None]:
    return (target.resource, target.by) if isinstance(target, Shown) else (target, None)


def _leaf(path: str, said: Referred) -> tuple[Steps, Walker]:
    """Return where a walk has to stop for what is said of a path, and what is done there."""
    steps = path_steps(path)
    if isinstance(said, Selects):
        return steps, lambda value, words: words.selection(said, path, value)
    if isinstance(said, Rewritten):
        return steps, lambda value, words: words.text(said, path, value) if _is_text(value) else value
    reference = reference_of(said)
    place = _Place(path, reference, *_parts(reference.targets[0]))
    beside = reference.beside or reference.required
    if not beside and place.shows is None and reference.form == "name":
        return steps, lambda value, words: words.name(place, value) if _is_text(value) else value
    if steps[-1] != EACH:
        return steps[:-1], lambda holder, words: _in_holder(place, steps[-1], holder, words)
    if beside:
        raise ValueError(f"{path} ends in a list, so that nothing can be beside a name there")
    return steps, lambda value, words: _in_text(place, value, words)


def _is_text(value: Json) -> bool:
    return bool(value) and isinstance(value, str)


def _in_holder(place: _Place, step: str, holder: Json, words: "_Words") -> Json:
    """Return a mapping with a name in it, and perhaps more about it, in other words."""
    if not isinstance(holder, dict) or not _is_text(holder.get(step)):
        return holder
    reference = place.reference
    if reference.form == "key":
        text = _in_text(place, holder[step], words)
        return holder if text is holder[step] else {**holder, step: text}
    before = _said(place, holder[step], holder)
    name, namespace = words.said(before)
    changes = {step: name} if name is not before.name else {}
    if namespace != before.namespace:
        changes[reference.namespace] = namespace
    return {**holder, **changes} if changes else holder


def _in_text(place: _Place, text: Json, words: "_Words") -> Json:
    """Return a name, or namespace and name, in other words."""
    if not _is_text(text):
        return text
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
    """Return the place of what is named by an object in this namespace; None where that can't be told."""
    if not said.resource.namespaced:
        return Key("", said.name)
    return Key(said.namespace or own, said.name) if said.namespace or own else None


# -- what a walk is for ------------------------------------------------------------------------------------------------


class _Words:
    """What becomes of each reference that a walk meets; here nothing."""

    __slots__ = ()

    def name(self, place: _Place, text: str) -> str:
        """Return a name of which nothing else is said: the usual case, and so apart from :meth:`said`."""
        return self.said(_Said(place, text, "", place.resource, None))[0]

    def said(self, said: _Said) -> tuple[str, str]:
        """Any other; gives the name and the namespace."""
        return said.name, said.namespace

    def selection(self, said: Selects, path: str, value: Json) -> Json:
        """Return a selector."""
        return value

    def text(self, said: Rewritten, path: str, value: str) -> str:
        """Another text."""
        return value


class _Finder(_Words):
    """Notes what is named."""

    __slots__ = ("_own", "found")

    def __init__(self, obj: Obj) -> None:
        self._own = obj["metadata"].get("namespace", "")
        self.found: list[Named] = []

    def said(self, said: _Said) -> tuple[str, str]:
        key = None if said.other_kind else _key(said, self._own)
        if key is not None:
            place = said.place
            self.found.append(Named(said.resource, key, place.reference, place.path, said.shows, said.optional))
        return said.name, said.namespace


class _Down(_Words):
    """Puts references of a virtual object into the words of the host."""

    __slots__ = ("_ctx", "_own", "_owner", "_to_host")

    def __init__(self, ctx: Context, virtual: Obj) -> None:
        self._ctx, self._owner, self._to_host = ctx, key_of(virtual), ctx.names.to_host
        self._own = self._owner.namespace

    def name(self, place: _Place, text: str) -> str:
        resource, own = place.resource, self._own
        if own or not resource.namespaced:
            return self._to_host(resource, Key(own if resource.namespaced else "", text)).name
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
        place = self._to_host(resource, key)
        return place.name, place.namespace if said.namespace else ""

    def _namespace_of_shown(self, said: _Said, shows: Shows, key: Key) -> str:
        """One of the host's own keeps its name; where the copy is in another namespace, it must say which one."""
        place = shows.host_key(self._ctx.settings, key)
        if said.namespace:
            return place.namespace
        if place.namespace and place.namespace != self._ctx.host_key(self._owner).namespace:
            kind = said.resource.kind
            why = f"names the {kind} {key} without its namespace, which is another one on the host"
            raise Refused(why, path=said.place.path)
        return ""

    def selection(self, said: Selects, path: str, value: Json) -> Json:
        if said.form == "map" and not value:
            return value
        if not selectors.fits(said.form, value):
            raise Refused("is no label selector", path=path)
        key = self._owner if said.resource.namespaced else Key("", self._owner.name)
        return selectors.narrowed_in(said.form, value, self._ctx.marks.labels(self._ctx.identity, key))

    def text(self, said: Rewritten, path: str, value: str) -> str:
        return said.down(self._ctx, value)


class _Up(_Words):
    """Puts references of a host object into virtual words."""

    __slots__ = ("_ctx", "_known", "_own", "_places", "_strict", "_there")

    def __init__(self, ctx: Context, host: Obj, known: Iterable[Named], *, strict: bool) -> None:
        self._ctx, self._own, self._known, self._strict = ctx, key_of(host).namespace, known, strict
        virtual = ctx.marks.virtual_key(host)
        self._there = virtual.namespace if virtual else ""
        #: What is known, by its place on the host, once that is asked for.
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
        """Return the virtual key of a place: by what the virtual object names, by the name, or by the copy's marks."""
        names = self._ctx.names
        if self._places is None:
            self._places = {(one.resource, names.to_host(one.resource, one.key)): one.key for one in self._known}
        found = self._places.get((resource, place)) or names.to_virtual(resource, place)
        return found if found is not None or not self._strict else self._marked(resource, place)

    def _marked(self, resource: Resource, place: Key) -> Key | None:
        ctx = self._ctx
        try:
            copy = ctx.host(resource, place)
        except KeyError:  # nobody watches it
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
