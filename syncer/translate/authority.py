"""The owner of a field: the virtual side, the host, or both.

Applied to the decisions of all kinds alike.

Two independent writes carry values down and up. Each brings its own merge base, the first on the
copy, the second on the virtual object. So whenever a crash comes, or if one of the writes fails, a
value that came from the other side never looks like a change. The copy takes over the base of the
virtual object with a later write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from syncer.api import (
    Config,
    Context,
    Decision,
    FieldPath,
    Obj,
    ReferencePaths,
    Refers,
    Refused,
    Side,
    Steps,
    Syncer,
    Untranslated,
    Verb,
    Write,
    is_within,
    path_steps,
    path_text,
)
from syncer.translate.alike import covers, same
from syncer.translate.pointers import MISSING, at
from syncer.translate.three_way import ABSENT, Merged, Tree, agreed_on, merge

#: Returns the paths of a write below which fields that it doesn't set are removed.
Exact = Callable[[Write], tuple[FieldPath, ...]]


_NO_REFERENCES = ReferencePaths({})


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision, and the merge base to store with it."""

    decision: Decision
    #: The base for the copy: hashes of the shared fields, by path.
    kept: Mapping[str, Tree] = field(default_factory=dict)
    #: The write that carries values up, with its base for the virtual object; None if nothing goes
    #: up.
    up: Write | None = None
    risen: Mapping[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Authority:
    """The paths of a syncer that the virtual side doesn't own alone, each with its owner: ``host``
    or ``both``.
    """

    #: The owners, by the canonical text of the path.
    owners: Mapping[str, str]
    #: Paths below which values are compared exactly.
    exact: tuple[FieldPath, ...] = ()
    #: The references at or below these paths. Values are compared, merged and stored with virtual
    #: names.
    references: ReferencePaths = _NO_REFERENCES
    #: True for custom resources, in which null and empty values are as given.
    verbatim: bool = False

    @property
    def shared(self) -> tuple[str, ...]:
        """The paths with the owner ``both``."""
        return tuple(path for path, owner in self.owners.items() if owner == "both")

    def ruled(
        self,
        ctx: Context,
        decision: Decision,
        *,
        virtual: Obj,
        host: Obj | None,
        base: Mapping[str, Tree] | None,
        exact: Exact,
    ) -> Ruling:
        """Apply the owners to a decision.

        Args:
            ctx: The context of the decision.
            decision: The syncer's decision.
            virtual: The virtual object.
            host: Its copy, or None.
            base: The merge base; None for a copy without one, made by an earlier version.
            exact: Returns the exact paths of a write.

        Raises:
            Refused: A value differs on the host by translation, or contains host names that the
                tenant doesn't have.
        """
        down = _write_of_copy(decision)
        if down is None:
            return Ruling(decision)
        self._refuse_translated(ctx, down, virtual)
        if host is None or not self.owners:
            agreed = {path: agreed_on(self._at(virtual, path)) for path in self.shared}
            return Ruling(decision, agreed)

        # The host's references in the names that the virtual side uses for them.
        renamed = host
        if not self.references.is_empty:
            known = self.references.named(virtual)
            renamed = self.references.to_virtual(ctx, host, host, known=known, strict=True)

        merged: dict[str, Merged] = {}
        rising: list[str] = []
        for path in self.owners:
            found = self._merged(path, virtual, renamed, base)
            merged[path] = found
            if not same(found.virtual, self._at(virtual, path)):
                _refuse_untranslated(found.virtual, path)
                rising.append(path)

        changed = _going_down(down, merged, host, (*exact(down), *self.owners))
        if not self.references.is_empty:
            changed = replace(changed, obj=self.references.to_host(ctx, virtual, changed.obj))

        writes: list[Write] = []
        for write in decision.writes:
            if write is down:
                writes.append(changed)
            else:
                writes.append(write)

        reasons = [decision.reason] if decision.reason else []
        up = None
        if rising:
            reasons.append(f"{', '.join(rising)} has changed on the host and comes up")
            up = _going_up(rising, merged, virtual)

        return Ruling(
            replace(decision, writes=tuple(writes), reason="; ".join(reasons)),
            kept={path: merged[path].kept for path in self.shared},
            up=up,
            risen={path: found.risen for path, found in merged.items() if found.risen is not None},
        )

    def _merged(
        self,
        path: str,
        virtual: Obj,
        host: Obj,
        base: Mapping[str, Tree] | None,
    ) -> Merged:
        ours = self._at(virtual, path)
        theirs = self._at(host, path)
        if self.owners[path] == "host":
            return Merged(theirs, theirs, "")

        below = None
        if base is not None:
            below = base.get(path)
        if any(is_within(path, one) for one in self.exact):
            return merge(ours, theirs, below, same=_never)
        return merge(ours, theirs, below, same=self._may_be_made_of)

    def _at(self, obj: Obj, path: str) -> Any:
        found = at(obj, path_steps(path))
        if found is MISSING:
            return ABSENT
        if found is None and not self.verbatim:
            return ABSENT
        return found

    def _may_be_made_of(self, sent: Any, found: Any) -> bool:
        """Return True if an API server may have stored ``sent`` as ``found``."""
        if found is ABSENT or (found is None and not self.verbatim):
            return sent is ABSENT or sent is None or sent in ({}, [])
        return sent is not ABSENT and covers(sent, found, verbatim=self.verbatim)

    def _refuse_translated(self, ctx: Context, down: Write, virtual: Obj) -> None:
        """Refuse an owner for a value that the syncer translates otherwise than as a reference.

        Raises:
            Refused: The value differs on the host.
        """
        expected = virtual
        if not self.references.is_empty:
            expected = self.references.to_host(ctx, virtual, virtual)
        for path, owner in self.owners.items():
            written = self._at(down.obj, path)
            if down.partial or not same(written, self._at(expected, path)):
                why = "its value is translated for the host, so it can't be copied up"
                message = f"its owner can't be {owner}: {why}; see the authority of this kind"
                raise Refused(message, path=path)


def authority_of(syncer: Syncer, config: Config) -> Authority:
    """Return the authority from a syncer's class and its section; the section wins."""
    named: dict[str, str] = {path_text(path): "both" for path in syncer.both}
    named |= {path_text(path): owner for path, owner in config.authority.items()}
    owners = {path: owner for path, owner in named.items() if owner != "virtual"}
    if not owners:
        # A syncer that syncs nothing is one of these, and its resource isn't asked for.
        return Authority(owners, syncer.exact)
    references = _NO_REFERENCES
    if isinstance(syncer, Refers):
        references = ReferencePaths(syncer.references).below(owners)
    verbatim = not syncer.resource.is_built_in
    return Authority(owners, syncer.exact, references, verbatim=verbatim)


def _write_of_copy(decision: Decision) -> Write | None:
    """Return the first write of the copy as a whole, or None."""
    for write in decision.writes:
        if write.side is Side.HOST and write.verb is Verb.APPLY and write.resource is None:
            return write
    return None


def _going_up(paths: list[str], merged: Mapping[str, Merged], virtual: Obj) -> Write:
    """Return the write of the host's changes.

    A later version of the virtual object is not changed.
    """
    own = virtual["metadata"]
    identity = {}
    for name in ("name", "namespace", "uid", "resourceVersion"):
        if name in own:
            identity[name] = own[name]
    obj: Obj = {
        "apiVersion": virtual["apiVersion"],
        "kind": virtual["kind"],
        "metadata": identity,
    }
    for path in paths:
        obj = _with(obj, path_steps(path), merged[path].virtual)
    return Write(Side.VIRTUAL, Verb.APPLY, obj, tuple(paths))


def _going_down(
    down: Write,
    merged: Mapping[str, Merged],
    host: Obj,
    exact: tuple[FieldPath, ...],
) -> Write:
    """Return the write with the values for the host.

    A later version of the copy is not changed.
    """
    obj = down.obj
    for path, found in merged.items():
        obj = _with(obj, path_steps(path), found.host)
    version = host["metadata"].get("resourceVersion", "")
    metadata = {**obj["metadata"], "resourceVersion": version}
    return replace(down, obj={**obj, "metadata": metadata}, exact=exact)


def _with(obj: Obj, steps: Steps, value: Any) -> Obj:
    """Return the object with a value at a path; ``obj`` is not changed."""
    first = steps[0]
    rest = steps[1:]
    if rest:
        inner = obj.get(first)
        if not isinstance(inner, dict):
            inner = {}
        return {**obj, first: _with(inner, rest, value)}
    if value is ABSENT:
        return {name: other for name, other in obj.items() if name != first}
    return {**obj, first: value}


def _refuse_untranslated(value: Any, path: str) -> None:
    """Refuse a value with names that can't be translated.

    Raises:
        Refused: The value contains such a name.
    """
    if isinstance(value, Untranslated):
        why = "the host names something there for which no virtual object of this namespace stands"
        raise Refused(f"{why}; set it back there, or to the name of a copy", path=path)
    if isinstance(value, dict):
        for inner in value.values():
            _refuse_untranslated(inner, path)
    elif isinstance(value, list):
        for inner in value:
            _refuse_untranslated(inner, path)


def _never(sent: Any, found: Any) -> bool:
    """Take every difference for a change: the values are compared exactly."""
    return False
