"""Compiled references: find the names in an object and translate them to the other side, in a
single walk.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache

from syncer.api import reasons, selectors
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
from syncer.remembered import REMEMBERED


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
    """A string of the host that has no translation, such as a name that no virtual object stands
    for.
    """

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
        #: True if the table is empty.
        self.is_empty = not self._table

        # Without selectors and rewritten strings.
        by_name = [each for each in self._table.values() if isinstance(each, Resource | Reference)]
        self._by_name = [reference_of(each) for each in by_name]
        targets: list[Resource | Shown] = []
        for reference in self._by_name:
            targets += reference.targets
        self._resources = [target for target in targets if isinstance(target, Resource)]
        self._shown = [target for target in targets if isinstance(target, Shown)]
        #: True if the host makes objects for the copies (``use="made"``).
        self.makes = any(reference.use == "made" for reference in self._by_name)

        is_required = any(reference.required for reference in self._by_name)
        #: True if a reference may delay the creation of a copy.
        self.holds_new = bool(self._shown) or is_required
        #: True if a reference may delay the update of a copy.
        self.holds_made = bool(self._shown)

    def below(self, owners: Iterable[FieldPath]) -> "ReferencePaths":
        """Return the references at or below ``owners``."""
        above = tuple(owners)

        def is_owned(path: str) -> bool:
            return any(is_within(path, owner) for owner in above)

        owned = {path: each for path, each in self._table.items() if is_owned(path)}
        return ReferencePaths(owned)

    @property
    def host_copies(self) -> tuple[Source, ...]:
        """The copies of all resources that may be named, without duplicates."""
        return _copies(self._resources)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources to read besides the objects themselves, without duplicates."""
        shown = [target.by.source for target in self._shown]
        required: list[Resource] = []
        for reference in self._by_name:
            if reference.required:
                required += [each for each in reference.targets if isinstance(each, Resource)]
        return tuple(dict.fromkeys((*shown, *_copies(required))))

    # -- named objects -----------------------------------------------------------------------------

    def named(self, obj: Obj) -> list[Named]:
        """Return every name in an object, with its virtual key.

        A name whose namespace is unknown is left out, and so is one with a reserved ending.
        """
        finder = _Finder(obj)
        self._walk(obj, finder)
        return finder.found

    def keys(self, obj: Obj) -> list[tuple[Resource, Key]]:
        """Return the named objects that must be on the host while this object is synced.

        They are those of references with ``use="used"``.
        """
        used = [each for each in self.named(obj) if each.reference.use == "used"]
        return [(each.resource, each.key) for each in used if not each.shows]

    def made(self, obj: Obj) -> list[tuple[Resource, Key]]:
        """Return the named objects that the host makes for this object's copy (``use="made"``)."""
        made = [each for each in self.named(obj) if each.reference.use == "made"]
        return [(each.resource, each.key) for each in made]

    def obstacle(self, ctx: Context, virtual: Obj, *, made: bool = False) -> Decision | None:
        """Return a wait if a named object is not ready, otherwise None.

        A host object that is named must be shown to the tenant, who may use only what they can see.
        The host object itself decides that, because a tenant can put any mark on a virtual object.
        A required object must have its copy, unless the copy of this object exists already
        (``made``).
        """
        may_wait = self.holds_made if made else self.holds_new
        if not may_wait:
            return None

        for each in self.named(virtual):
            if each.shows:
                if not each.shows.does_show(ctx, each.key):
                    host_key = each.shows.host_key(ctx.settings, each.key)
                    awaited = ObjectRef(Side.HOST, each.shows.source.resource, host_key)
                    why = reasons.NOT_SHOWN(each.resource.kind, each.key)
                    return wait(why, on=(awaited,))
            elif each.reference.required and not made and not each.optional:
                host_key = ctx.names.to_host(each.resource, each.key)
                copy = ctx.host(each.resource, host_key)
                if copy is None or not _is_ours(ctx, copy, each.resource):
                    awaited = ObjectRef(Side.HOST, each.resource, host_key)
                    why = reasons.NO_COPY_YET(each.resource.kind, each.key)
                    return wait(why, on=(awaited,))
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

    def to_virtual(
        self,
        ctx: Context,
        host: Obj,
        obj: Obj,
        *,
        known: Iterable[Named],
        strict: bool = False,
    ) -> Obj:
        """Return ``obj`` with its names translated to the virtual side.

        Args:
            ctx: The context of the decision.
            host: The host object that the names are from.
            obj: The object to translate; not changed.
            known: The names in the virtual object that ``host`` is a copy of. They resolve hashed
                host names, from which the virtual name can't be computed.
            strict: False: a name without a translation stays as it is. True: it becomes
                :class:`Untranslated`, after the marks of the named copy were tried as well, if it
                is watched.
        """
        result: Obj = self._walk(obj, _Up(ctx, host, known, strict=strict))
        return result


def _copies(resources: Iterable[Resource]) -> tuple[Source, ...]:
    """Return the copies of resources on the host, without duplicates."""
    sources = (Source(Side.HOST, resource, marked=True) for resource in resources)
    return tuple(dict.fromkeys(sources))


def _is_ours(ctx: Context, obj: Obj, resource: Resource) -> bool:
    """Return True if a host object is a copy of this virtual cluster."""
    return ctx.marks.is_ours(obj, cluster=ctx.identity, resource=resource)


# -- compiling -------------------------------------------------------------------------------------


#: The walkers of the tables that were compiled last, by path and identity of each reference. The
#: references are kept with their walker, so that no other object gets their identities.
_compiled: LRUCache[tuple[tuple[str, int], ...], "_CompiledTable"] = LRUCache(REMEMBERED)


class _CompiledTable(NamedTuple):
    """A compiled table of references."""

    walker: Walker
    references: tuple[Referred, ...]


@dataclass(frozen=True, slots=True)
class _Path:
    """A path with its reference, prepared for many walks."""

    path: str
    reference: Reference
    #: The first of the resources that may be named.
    resource: Resource
    shows: Shows | None
    #: True if the host makes the named object once the copy is there.
    comes_later: bool


class _Found(NamedTuple):
    """A reference found in an object: the name, and the fields beside it."""

    path: _Path
    name: str
    #: ``""`` if there is none; then the object's own namespace is meant.
    namespace: str
    resource: Resource
    shows: Shows | None
    #: The kind that the object names, if the reference doesn't allow it; otherwise ``""``.
    other_kind: str = ""
    optional: bool = False


def _parts(target: Resource | Shown) -> tuple[Resource, Shows | None]:
    """Return the resource of a target, and the importer that shows it, or None."""
    if isinstance(target, Shown):
        return target.resource, target.by
    return target, None


def _walker(table: References) -> Walker:
    """Compile a table, or return the walker that the same references were compiled to.

    Each virtual cluster has its own tables, made of the same references.
    """
    key = tuple((path, id(referred)) for path, referred in table.items())
    if key not in _compiled:
        walker = compiled(_leaf(path, referred) for path, referred in table.items())
        _compiled[key] = _CompiledTable(walker, tuple(table.values()))
    return _compiled[key].walker


def _leaf(path: str, referred: Referred) -> tuple[Steps, Walker]:
    """Return the steps at which a walk stops for a path, and the walker that is called there."""
    steps = path_steps(path)
    if isinstance(referred, Selects):
        return steps, _selection_walker(path, referred)
    if isinstance(referred, Rewritten):
        return steps, _text_walker(path, referred)

    reference = reference_of(referred)
    resource, shows = _parts(reference.targets[0])
    comes_later = reference.comes_later or reference.use == "made"
    prepared = _Path(path, reference, resource, shows, comes_later)

    needs_holder = reference.beside or reference.required
    if not needs_holder and shows is None and reference.form == "name":
        return steps, _name_walker(prepared)
    if steps[-1] != EACH:
        return steps[:-1], _holder_walker(prepared, steps[-1])
    if needs_holder:
        raise ValueError(f"{path} ends in a list, so that nothing can be beside a name there")
    return steps, _key_walker(prepared)


def _selection_walker(path: str, selects: Selects) -> Walker:
    def walk(value: Json, purpose: "_Purpose") -> Json:
        return purpose.selection(selects, path, value)

    return walk


def _text_walker(path: str, rewritten: Rewritten) -> Walker:
    def walk(value: Json, purpose: "_Purpose") -> Json:
        if value and isinstance(value, str):
            return purpose.text(rewritten, path, value)
        return purpose.other(path, value)

    return walk


def _name_walker(path: _Path) -> Walker:
    def walk(value: Json, purpose: "_Purpose") -> Json:
        if value and isinstance(value, str):
            return purpose.name(path, value)
        return purpose.other(path.path, value)

    return walk


def _holder_walker(path: _Path, step: str) -> Walker:
    def walk(holder: Json, purpose: "_Purpose") -> Json:
        return _in_holder(path, step, holder, purpose)

    return walk


def _key_walker(path: _Path) -> Walker:
    def walk(value: Json, purpose: "_Purpose") -> Json:
        return _in_text(path, value, purpose)

    return walk


def _in_holder(path: _Path, step: str, holder: Json, purpose: "_Purpose") -> Json:
    """Translate the name in a mapping, together with the fields beside it."""
    if not isinstance(holder, dict):
        return holder
    value = holder.get(step)
    if not value or not isinstance(value, str):
        purpose.other(path.path, value)
        return holder

    reference = path.reference
    if reference.form == "key":
        text = _in_text(path, value, purpose)
        return holder if text is value else {**holder, step: text}

    for beside in (reference.kind, reference.group, reference.namespace):
        if beside:
            purpose.other(path.path, holder.get(beside), f"the {beside} beside it ")
    found = _found(path, value, holder)
    name, namespace = purpose.reference(found)
    changes: dict[str, Json] = {}
    if name is not found.name:
        changes[step] = name
    if namespace != found.namespace:
        changes[reference.namespace] = namespace
    return {**holder, **changes} if changes else holder


def _in_text(path: _Path, text: Json, purpose: "_Purpose") -> Json:
    """Translate a name, or ``namespace/name``."""
    if not text or not isinstance(text, str):
        return purpose.other(path.path, text)
    namespace = ""
    name = text
    if path.reference.form == "key":
        namespace, _, name = text.rpartition("/")

    found = _Found(path, name, namespace, path.resource, path.shows)
    other_name, other_namespace = purpose.reference(found)
    if isinstance(other_name, Untranslated):
        return Untranslated(text)
    return f"{other_namespace}/{other_name}" if other_namespace else other_name


def _found(path: _Path, name: str, holder: Obj) -> _Found:
    """Return the reference of a name in a mapping, with the fields beside it."""
    reference = path.reference
    kind = _text_in(holder, reference.kind)
    given_group = _text_in(holder, reference.group)
    namespace = _text_in(holder, reference.namespace)
    optional = reference.required and holder.get("optional") is True

    group = given_group
    if reference.group == "apiVersion":
        group, _, _ = given_group.rpartition("/")
    for target in reference.targets:
        resource, shows = _parts(target)
        is_kind = not kind or kind == resource.kind
        is_group = not given_group or group == resource.group
        if is_kind and is_group:
            return _Found(path, name, namespace, resource, shows, optional=optional)

    other_kind = kind or path.resource.kind
    if group:
        other_kind = f"{other_kind} of {group}"
    return _Found(path, name, namespace, path.resource, None, other_kind, optional)


def _text_in(holder: Obj, field: str) -> str:
    """Return the text of a field; ``""`` if there is no such field, or it is no text."""
    value = holder.get(field) if field else None
    return value if isinstance(value, str) else ""


def _key(found: _Found, own: str) -> Key | None:
    """Return the key of a named object; None if its namespace is unknown.

    ``own`` is the namespace of the object that names it.
    """
    if not found.resource.namespaced:
        return Key("", found.name)
    namespace = found.namespace or own
    return Key(namespace, found.name) if namespace else None


# -- the purposes of a walk ------------------------------------------------------------------------


class _Purpose:
    """The purpose of a walk: one method for each kind of reference.

    This base class changes nothing.
    """

    __slots__ = ()

    def name(self, path: _Path, text: str) -> str:
        """Translate a name without fields beside it.

        The usual case, and therefore separate from :meth:`reference`.
        """
        return self.reference(_Found(path, text, "", path.resource, None))[0]

    def reference(self, found: _Found) -> tuple[str, str]:
        """Translate a name with fields beside it. Return the name and the namespace."""
        return found.name, found.namespace

    def selection(self, selects: Selects, path: str, value: Json) -> Json:
        """Translate a label selector."""
        return value

    def text(self, rewritten: Rewritten, path: str, value: str) -> str:
        """Translate a ``Rewritten`` string."""
        return value

    def other(self, path: str, value: Json, what: str = "") -> Json:
        """Return a value that may be no text.

        ``what`` names the value, if it isn't the one at the path.
        """
        return value


class _Finder(_Purpose):
    """Collects the names."""

    __slots__ = ("_own", "found")

    def __init__(self, obj: Obj) -> None:
        self._own = obj["metadata"].get("namespace", "")
        self.found: list[Named] = []

    def reference(self, found: _Found) -> tuple[str, str]:
        key = None if found.other_kind else _key(found, self._own)
        if key is not None and not reserved_ending(found.resource, key.name):
            named = Named(
                found.resource,
                key,
                found.path.reference,
                found.path.path,
                found.shows,
                found.optional,
            )
            self.found.append(named)
        return found.name, found.namespace


class _Down(_Purpose):
    """Translates the references of a virtual object to the host."""

    __slots__ = ("_ctx", "_own", "_owner", "_refer")

    def __init__(self, ctx: Context, virtual: Obj) -> None:
        self._ctx = ctx
        self._owner = key_of(virtual)
        self._own = self._owner.namespace
        self._refer = ctx.refer

    def name(self, path: _Path, text: str) -> str:
        resource = path.resource
        own = self._own
        if (own or not resource.namespaced) and not reserved_ending(resource, text):
            namespace = own if resource.namespaced else ""
            key = Key(namespace, text)
            return self._refer(resource, key, comes_later=path.comes_later).name
        return self.reference(_Found(path, text, "", resource, None))[0]

    def reference(self, found: _Found) -> tuple[str, str]:
        resource = found.resource
        path = found.path.path
        if found.other_kind:
            why = f"names a {found.other_kind}, and no such kind is synced from there"
            raise Refused(why, path=path)
        key = _key(found, self._own)
        if key is None:
            named = f"names the {resource.kind} {found.name}"
            raise Refused(f"{named} without a namespace, and has none itself", path=path)
        if found.shows:
            return found.name, self._namespace_of_shown(found, found.shows, key)
        ending = reserved_ending(resource, found.name)
        if ending:
            raise Refused(f"no {resource.kind} may have a name that ends in {ending}", path=path)

        host_key = self._refer(resource, key, comes_later=found.path.comes_later)
        namespace = host_key.namespace if found.namespace else ""
        return host_key.name, namespace

    def _namespace_of_shown(self, found: _Found, shows: Shows, key: Key) -> str:
        """Return the namespace for the name of a host object.

        The name stays as it is. If the copy is in another namespace, the virtual object must have
        the namespace beside the name.
        """
        host_key = shows.host_key(self._ctx.settings, key)
        if found.namespace:
            return host_key.namespace
        if host_key.namespace and host_key.namespace != self._ctx.host_key(self._owner).namespace:
            named = f"names the {found.resource.kind} {key}"
            why = f"{named} without its namespace, which is another one on the host"
            raise Refused(why, path=found.path.path)
        return ""

    def selection(self, selects: Selects, path: str, value: Json) -> Json:
        if selects.empty_selects_nothing and value == {}:
            return value
        if not selectors.fits(selects.form, value):
            raise Refused("is no label selector", path=path)
        key = self._owner if selects.resource.namespaced else Key("", self._owner.name)
        labels = self._ctx.marks.labels(self._ctx.identity, key)
        return selectors.narrowed_in(selects.form, value, labels)

    def text(self, rewritten: Rewritten, path: str, value: str) -> str:
        return rewritten.down(self._ctx, value)

    def other(self, path: str, value: Json, what: str = "") -> Json:
        if value is None or isinstance(value, str):
            return value
        why = f"{what}is no text, so it can't be translated to the host"
        raise Refused(f"{why}; write it as a text, or leave it out", path=path)


class _Up(_Purpose):
    """Translates the references of a host object to the virtual side."""

    __slots__ = ("_ctx", "_keys", "_known", "_own", "_strict", "_virtual_namespace")

    def __init__(self, ctx: Context, host: Obj, known: Iterable[Named], *, strict: bool) -> None:
        self._ctx = ctx
        self._own = key_of(host).namespace
        self._known = known
        self._strict = strict
        virtual = ctx.marks.virtual_key(host)
        self._virtual_namespace = virtual.namespace if virtual else ""
        #: Virtual keys by host key, computed on first use.
        self._keys: dict[tuple[Resource, Key], Key] | None = None

    def reference(self, found: _Found) -> tuple[str, str]:
        resource = found.resource
        host_key = None if found.other_kind else _key(found, self._own)
        if found.shows and host_key is not None:
            return found.name, found.shows.virtual_namespace(found.namespace)

        key = self._virtual_key(resource, host_key) if host_key is not None else None
        if key is not None:
            if found.namespace:
                return key.name, key.namespace
            if not resource.namespaced or key.namespace == self._virtual_namespace:
                return key.name, ""
        return self._unknown(found.name), found.namespace

    def _unknown(self, text: str) -> str:
        return Untranslated(text) if self._strict else text

    def _virtual_key(self, resource: Resource, host_key: Key) -> Key | None:
        """Return the virtual key of a host key, or None.

        The key is from the known names, from the name itself, or from the copy's marks.
        """
        names = self._ctx.names
        if self._keys is None:
            self._keys = {}
            for each in self._known:
                copy = names.to_host(each.resource, each.key)
                self._keys[each.resource, copy] = each.key

        found = self._keys.get((resource, host_key)) or names.to_virtual(resource, host_key)
        if found is None and self._strict:
            return self._marked(resource, host_key)
        return found

    def _marked(self, resource: Resource, host_key: Key) -> Key | None:
        """Return the virtual key in the marks of a copy.

        None if there is no such copy, or if it isn't where the copy of that key belongs.
        """
        ctx = self._ctx
        try:
            copy = ctx.host(resource, host_key)
        except KeyError:  # not watched
            return None
        if copy is None or not _is_ours(ctx, copy, resource):
            return None
        key = ctx.marks.virtual_key(copy)
        if key is None or ctx.names.to_host(resource, key) != host_key:
            return None
        return key

    def selection(self, selects: Selects, path: str, value: Json) -> Json:
        if not selectors.fits(selects.form, value):
            return value
        return selectors.widened_in(selects.form, value, self._ctx.marks.is_mark)

    def text(self, rewritten: Rewritten, path: str, value: str) -> str:
        if rewritten.up is None:
            return self._unknown(value)
        return rewritten.up(self._ctx, value)
